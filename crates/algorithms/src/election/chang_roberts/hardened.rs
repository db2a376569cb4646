//! The hardened form: elections are numbered, and lost messages are sent again.
//!
//! A process takes part in the latest election it knows and ignores earlier ones. An election that takes too long, or
//! whose leader crashes, is followed by the next; the winner repeats its announcement until that returns home. The
//! number of the election is in stable storage: a restarted process never takes part in one election twice.
//!
//! Without faults the cost is that of the textbook form. One leader at a time depends on the detector: a live process
//! that is skipped by mistake may lead beside the right leader until the announcement reaches it. So may two processes
//! that restart in one election while they are skipped.

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
    /// The number of the latest known election.
    epoch: u32,
    /// Whether this process takes part in it and does not know the result.
    participant: bool,
    /// The highest number that this process has sent in it.
    best: ProcessId,
    /// The winner, once known.
    leader: Option<ProcessId>,
    leading: bool,
    /// Whether the own announcement is on its way.
    telling: bool,
    #[serde(skip)]
    patience: Fixed<Duration>,
}

/// The messages, which go round.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// This process should lead.
    Propose {
        /// The number of the election.
        epoch: u32,
        /// The number of the process.
        id: ProcessId,
        /// The number of hops so far.
        hops: u32,
    },
    /// This process leads.
    Elected {
        /// The number of the election.
        epoch: u32,
        /// The number of the process.
        id: ProcessId,
        /// The number of hops so far.
        hops: u32,
    },
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// The election should be over.
    Election,
    /// The announcement should have returned home.
    Announcement,
}

/// The number of the latest election, in stable storage.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Record(u32);

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

    /// Joins an election: an earlier result does not hold any more.
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

    /// The leader sends its announcement round until that returns home.
    fn announce(&mut self, ctx: &mut Context<'_, Self>) {
        if self.successor != ctx.me() {
            self.telling = true;
            ctx.set_timer(Timer::Announcement, *self.patience);
            self.tell(1, ctx);
        }
    }

    /// Passes the result on.
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
            // The sender missed this election: it learns the result, if that is known here.
            return self.tell(1, ctx);
        }
        let news = epoch > self.epoch;
        if news {
            self.take_part(epoch, ctx);
        }
        if !self.participant || hops as usize > ctx.group_size() || self.suspects.contains(id) {
            // The election is over, or the owner has crashed: the timer opens the next election.
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
            // A suspected process must not become the leader. If it is alive, it repeats its announcement.
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
        // Once round from its sender: a process that missed the announcement learns of it now.
        if (hops as usize) < ctx.group_size() {
            self.tell(hops + 1, ctx);
        }
    }

    /// A crashed leader must be replaced. A process that is left alone leads, but in an election of its own: a crashed
    /// process may have won the present one.
    fn on_crash_of(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        let alone = self.successor == ctx.me();
        if self.leader == Some(peer) || (alone && self.participant) {
            self.open(ctx);
        } else if alone && std::mem::take(&mut self.telling) {
            ctx.cancel_timer(Timer::Announcement);
        }
    }
}
