//! Chang and Roberts's election on a one-way ring, in the form of the project report.
//!
//! Proposals go round: each process passes on only numbers above its own, and a process that does not take part yet
//! replaces a lower number by its own. The number that returns home has won, and its owner announces that to the ring.
//!
//! In the original form, a process that did not start passes all numbers on. The [`hardened`] form, a process of its
//! own, survives crashes, losses and copies.

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
    /// Whether this process has sent a proposal in this election.
    participant: bool,
    leading: bool,
    /// Whether this process passes on the numbers of an election that it did not start (original form).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    relays: bool,
    #[serde(skip)]
    rules: Fixed<Rules>,
    suspects: Suspects,
}

/// The messages, which go round.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// This process should lead.
    Propose {
        /// Its number.
        id: ProcessId,
        /// The number of hops so far.
        hops: u32,
    },
    /// This process leads.
    Elected {
        /// Its number.
        id: ProcessId,
        /// The number of hops so far.
        hops: u32,
    },
}

impl Process for ChangRoberts {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        // One number of each process is on its way at most.
        if self.participant || self.relays {
            return;
        }
        self.step_down(ctx);
        if self.rules.is_original() {
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
        // The owner of a message that has passed all processes has crashed.
        if hops as usize > ctx.group_size() {
            return;
        }
        let hops = self.rules.next_hop(hops);
        match message {
            Message::Propose { id, .. } => self.on_proposal(id, hops, ctx),
            Message::Elected { id, .. } => self.on_elected(id, hops, ctx),
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

impl ChangRoberts {
    fn propose(&mut self, id: ProcessId, hops: u32, ctx: &mut Context<'_, Self>) {
        self.participant = true;
        ctx.send(self.successor, Message::Propose { id, hops });
    }

    fn step_down(&mut self, ctx: &mut Context<'_, Self>) {
        if self.leading && self.rules.leaves_office() {
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
        if !self.participant && self.rules.is_original() {
            if id != me {
                self.relays = true;
                ctx.send(self.successor, Message::Propose { id, hops });
            }
        } else if id > me {
            self.propose(id, hops, ctx);
        } else if id < me && !self.participant {
            self.propose(me, 1, ctx);
        } else if id == me && self.participant {
            // The own number is home: no process on the ring has a higher one.
            self.lead(ctx);
        }
    }

    fn on_elected(&mut self, leader: ProcessId, hops: u32, ctx: &mut Context<'_, Self>) {
        // The announcement ends at home.
        if leader != ctx.me() {
            (self.participant, self.relays) = (false, false);
            self.step_down(ctx);
            ctx.indicate(Indication::Following { leader: Some(leader), epoch: 0 });
            ctx.send(self.successor, Message::Elected { id: leader, hops });
        }
    }
}
