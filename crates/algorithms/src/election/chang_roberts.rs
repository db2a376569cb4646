//! Chang and Roberts's election on a one-way ring, in the form of the project report.
//!
//! Proposals go round; each process lets only numbers above its own pass, and a process that did
//! not take part yet puts its own number in for a lower one. The number that comes home has won,
//! and its owner tells the ring. In the original form, who did not start only passes numbers on.
//! The [`hardened`] form, a process of its own, outlives crashes, losses and copies.

mod costs;
pub mod hardened;
mod rules;
mod sheet;
#[cfg(test)]
mod tests;

use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize};

use self::rules::Rules;
use super::ring::Suspects;
use super::{Indication, Request};

/// One process of the algorithm. Rings of millions are built of these: it takes 16 bytes.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct ChangRoberts {
    successor: ProcessId,
    /// Whether we let a proposal of this election pass.
    participant: bool,
    leading: bool,
    /// Whether we pass on the numbers of an election we did not start (original form).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    relays: bool,
    #[serde(skip)]
    rules: Fixed<Rules>,
    suspects: Suspects,
}

/// What goes round.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// This one should lead.
    Propose {
        /// Who.
        id: ProcessId,
        /// How far this has come from its owner.
        hops: u32,
    },
    /// This one leads.
    Elected {
        /// Who.
        id: ProcessId,
        /// How far this has come from its owner.
        hops: u32,
    },
}

impl ChangRoberts {
    fn propose(&mut self, id: ProcessId, hops: u32, ctx: &mut Context<'_, Self>) {
        self.participant = true;
        ctx.send(self.successor, Message::Propose { id, hops });
    }

    /// An incumbent leaves office as soon as it hears of a new election.
    fn step_down(&mut self, ctx: &mut Context<'_, Self>) {
        if self.leading && !self.rules.has(Rules::NO_STEP_DOWN) {
            self.leading = false;
            ctx.indicate(Indication::Deposed);
        }
    }

    fn lead(&mut self, ctx: &mut Context<'_, Self>) {
        (self.participant, self.leading) = (false, true);
        ctx.indicate(Indication::Leading { epoch: 0 });
        if self.successor != ctx.me() {
            ctx.send(self.successor, Message::Elected { id: ctx.me(), hops: 1 });
        }
    }

    #[inline(always)]
    fn on_proposal(&mut self, id: ProcessId, hops: u32, ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        if id != me {
            self.step_down(ctx);
        }
        if !self.participant && self.rules.has(Rules::ORIGINAL) {
            if id != me {
                self.relays = true;
                ctx.send(self.successor, Message::Propose { id, hops });
            }
        } else if id > me {
            self.propose(id, hops, ctx);
        } else if id < me && !self.participant {
            self.propose(me, 1, ctx);
        } else if id == me && self.participant {
            // Our own number came home: nobody on the ring has a higher one.
            self.lead(ctx);
        }
    }

    fn on_elected(&mut self, leader: ProcessId, hops: u32, ctx: &mut Context<'_, Self>) {
        // Back home, everyone knows.
        if leader != ctx.me() {
            (self.participant, self.relays) = (false, false);
            self.step_down(ctx);
            ctx.indicate(Indication::Following { leader: Some(leader), epoch: 0 });
            ctx.send(self.successor, Message::Elected { id: leader, hops });
        }
    }
}

impl Process for ChangRoberts {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        // A second number of ours on its way would be one too many.
        if self.participant || self.relays {
            return;
        }
        self.step_down(ctx);
        if self.rules.has(Rules::ORIGINAL) {
            ctx.indicate(Indication::Candidate);
        }
        match self.successor == ctx.me() {
            true => self.lead(ctx),
            false => self.propose(ctx.me(), 1, ctx),
        }
    }

    // Inlined, a host that has one kind of effect most of the time carries it out on the spot.
    #[inline(always)]
    fn on_message(&mut self, _from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        let (Message::Propose { hops, .. } | Message::Elected { hops, .. }) = message;
        // What has passed everyone has lost its owner.
        if hops as usize > ctx.group_size() {
            return;
        }
        let further = hops + u32::from(!self.rules.has(Rules::NO_HOP_LIMIT));
        match message {
            Message::Propose { id, .. } => self.on_proposal(id, further, ctx),
            Message::Elected { id, .. } => self.on_elected(id, further, ctx),
        }
    }

    fn on_suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.suspects.insert(peer);
        self.successor = self.suspects.next_alive(ctx.me(), ctx.group());
    }

    fn on_trust(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.suspects.remove(peer);
        self.successor = self.suspects.next_alive(ctx.me(), ctx.group());
    }
}
