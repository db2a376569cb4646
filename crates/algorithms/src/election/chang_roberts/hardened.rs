//! The hardened form: elections are numbered, and whatever gets lost is tried again.
//!
//! A process follows the latest election it has heard of and forgets the ones before, so that no
//! flag and no message of an old one does harm. An election that takes too long is opened anew
//! under the next number; the winner repeats its word until it comes home; and who learns that its
//! leader is dead opens the next election at once. The number of the election is kept in stable
//! storage: a restarted process never takes part in one election twice.
//!
//! Without faults this costs what the textbook form costs. That there is one leader at a time rests
//! on the detector: a live process that is skipped by mistake, or two that restart in one election
//! while they are still skipped, may lead besides the right one until its word reaches them.

mod sheet;
#[cfg(test)]
mod tests;

use std::time::Duration;

use konklave_process::{Context, Fixed, Process, ProcessId};
use serde::{Deserialize, Serialize};

use crate::election::ring::Suspects;
use crate::election::{Indication, Request, ring};

/// One process of the hardened form.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Hardened {
    successor: ProcessId,
    suspects: Suspects,
    /// The number of the latest election we heard of.
    epoch: u32,
    /// Whether it is open, as far as we know.
    participant: bool,
    /// The highest number we proposed or let pass in it.
    best: ProcessId,
    /// Who has won it, once we know.
    leader: Option<ProcessId>,
    leading: bool,
    /// Whether our word is on its way round.
    telling: bool,
    #[serde(skip)]
    patience: Fixed<Duration>,
}

/// What goes round.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// This one should lead.
    Propose {
        /// The number of the election.
        epoch: u32,
        /// Who.
        id: ProcessId,
        /// How far this has come from its owner.
        hops: u32,
    },
    /// This one leads.
    Elected {
        /// The number of the election.
        epoch: u32,
        /// Who.
        id: ProcessId,
        /// How far this has come from who sent it round.
        hops: u32,
    },
}

/// What may take too long.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// The election should be over.
    Election,
    /// Our word should have come home.
    Announcement,
}

/// What is kept in stable storage: the number of the latest election.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Record(u32);

impl Hardened {
    /// Opens the next election.
    fn open(&mut self, ctx: &mut Context<'_, Self>) {
        let epoch = self.epoch.saturating_add(1);
        self.take_part(epoch, ctx);
        if self.successor == ctx.me() {
            return self.win(ctx);
        }
        self.propose(ctx.me(), 1, ctx);
    }

    /// What was decided before does not hold any more.
    fn take_part(&mut self, epoch: u32, ctx: &mut Context<'_, Self>) {
        let (knew, told) = (self.leader.take(), std::mem::take(&mut self.telling));
        (self.epoch, self.best) = (epoch, ctx.me());
        ctx.save(Record(epoch));
        if told {
            ctx.cancel_timer(Timer::Announcement);
        }
        ctx.set_timer(Timer::Election, *self.patience);
        self.participant = true;
        self.leading = false;
        if knew.is_some() {
            ctx.indicate(Indication::Deposed);
        }
    }

    fn propose(&mut self, id: ProcessId, hops: u32, ctx: &mut Context<'_, Self>) {
        self.best = self.best.max(id);
        ctx.send(self.successor, Message::Propose { epoch: self.epoch, id, hops });
    }

    /// The election has this winner.
    fn decide(&mut self, leader: ProcessId, ctx: &mut Context<'_, Self>) {
        self.leader = Some(leader);
        self.participant = false;
        self.leading = leader == ctx.me();
        ctx.cancel_timer(Timer::Election);
        ring::announce(leader, self.epoch, ctx);
    }

    fn win(&mut self, ctx: &mut Context<'_, Self>) {
        self.decide(ctx.me(), ctx);
        self.announce(ctx);
    }

    /// The leader sends its word round, until it comes home.
    fn announce(&mut self, ctx: &mut Context<'_, Self>) {
        if self.successor != ctx.me() {
            self.telling = true;
            ctx.set_timer(Timer::Announcement, *self.patience);
            self.tell(1, ctx);
        }
    }

    /// Passes on who leads.
    fn tell(&mut self, hops: u32, ctx: &mut Context<'_, Self>) {
        if let Some(id) = self.leader
            && self.successor != ctx.me()
        {
            ctx.send(self.successor, Message::Elected { epoch: self.epoch, id, hops });
        }
    }

    fn on_proposal(&mut self, epoch: u32, id: ProcessId, hops: u32, ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        if epoch < self.epoch {
            // Someone is behind the times: it will hear from us, if we know the outcome.
            return self.tell(1, ctx);
        }
        let news = epoch > self.epoch;
        if news {
            self.take_part(epoch, ctx);
        }
        if !self.participant || hops as usize > ctx.group_size() || self.suspects.contains(id) {
            // The election is over, or the owner is gone: then time will tell.
        } else if id > me {
            self.propose(id, hops + 1, ctx);
        } else if news {
            self.propose(me, 1, ctx);
        } else if id == me && self.best == me {
            self.win(ctx);
        }
    }

    fn on_elected(&mut self, epoch: u32, id: ProcessId, hops: u32, ctx: &mut Context<'_, Self>) {
        if epoch < self.epoch {
            return;
        }
        if epoch > self.epoch {
            self.take_part(epoch, ctx);
        }
        if self.suspects.contains(id) {
            // Nobody shall follow the dead. If it is none, it will say so again.
            return;
        }
        match self.leader {
            None if id == ctx.me() => return self.open(ctx),
            None => self.decide(id, ctx),
            Some(leader) if leader < id => self.decide(id, ctx),
            Some(leader) if leader > id => return self.tell(1, ctx),
            Some(_) => {}
        }
        if self.leading && std::mem::take(&mut self.telling) {
            ctx.cancel_timer(Timer::Announcement);
        }
        // Once round, whoever began: those who missed it hear it now.
        if (hops as usize) < ctx.group_size() {
            self.tell(hops + 1, ctx);
        }
    }

    /// A leader that is dead has to be replaced; who is left alone leads, but in an election of its
    /// own: the dead may have won this one.
    fn on_crash_of(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        let alone = self.successor == ctx.me();
        if self.leader == Some(peer) || (alone && self.participant) {
            self.open(ctx);
        } else if alone && std::mem::take(&mut self.telling) {
            ctx.cancel_timer(Timer::Announcement);
        }
    }
}

impl Process for Hardened {
    type Message = Message;
    type Timer = Timer;
    type Request = Request;
    type Indication = Indication;
    type Record = Record;

    fn on_recover(&mut self, saved: Option<Record>, ctx: &mut Context<'_, Self>) {
        self.epoch = saved.map_or(0, |Record(epoch)| epoch);
        self.open(ctx);
    }

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        if !self.participant {
            self.open(ctx);
        }
    }

    fn on_message(&mut self, _from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Propose { epoch, id, hops } => self.on_proposal(epoch, id, hops, ctx),
            Message::Elected { epoch, id, hops } => self.on_elected(epoch, id, hops, ctx),
        }
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Context<'_, Self>) {
        match timer {
            Timer::Election if self.participant => self.open(ctx),
            Timer::Announcement if self.leading && self.telling => self.announce(ctx),
            Timer::Election | Timer::Announcement => {}
        }
    }

    fn on_suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.suspects.insert(peer);
        self.successor = self.suspects.next_alive(ctx.me(), ctx.group());
        self.on_crash_of(peer, ctx);
    }

    fn on_trust(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.suspects.remove(peer);
        self.successor = self.suspects.next_alive(ctx.me(), ctx.group());
        if self.leading {
            self.announce(ctx);
        }
    }
}
