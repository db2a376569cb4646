//! The hardened form: elections are numbered, and the death of the winner opens a new one.
//!
//! A process takes part in the latest election it knows and ignores earlier ones. An election that takes too long is
//! opened anew; a restarted process continues with the round it saved.

mod sheet;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use konklave_process::{Context, Fixed, Process, ProcessId};
use serde::{Deserialize, Serialize};

use super::rules::Rules;
pub use super::{List, Message};
use crate::election::ring::Suspects;
use crate::election::{Indication, Request, ring};

/// One process of the hardened form.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Hardened {
    successor: ProcessId,
    /// The suspected processes: the successor is the first that is not.
    suspects: Suspects,
    leader: Option<ProcessId>,
    /// Whether this process takes part in an election whose result it does not know.
    waiting: bool,
    /// The latest known election.
    epoch: Epoch,
    #[serde(skip)]
    patience: Fixed<Duration>,
    #[serde(skip)]
    rules: Fixed<Rules>,
}

/// An election: a later round goes before an earlier one, then the higher origin.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize)]
struct Epoch {
    round: u32,
    origin: ProcessId,
}

/// The round of the latest election, in stable storage.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Record(u32);

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// The election should be over.
    Outcome,
}

impl Process for Hardened {
    type Message = Message;
    type Timer = Timer;
    type Request = Request;
    type Indication = Indication;
    type Record = Record;

    fn on_recover(&mut self, saved: Option<Record>, ctx: &mut Context<'_, Self>) {
        self.epoch.round = saved.map_or(0, |Record(round)| round);
        self.start(ctx);
    }

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        if !self.waiting {
            self.start(ctx);
        }
    }

    fn on_message(&mut self, _from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Election { list, .. } | Message::Coordinator { list, .. }
                if list.is_empty() =>
            {
                ctx.unexpected("an election that nobody opened");
            }
            Message::Election { round, list } => self.on_election(round, list, ctx),
            Message::Coordinator { round, list, informed } => {
                self.on_coordinator(round, list, informed, ctx);
            }
        }
    }

    fn on_timer(&mut self, Timer::Outcome: Timer, ctx: &mut Context<'_, Self>) {
        if self.waiting {
            self.start(ctx);
        }
    }

    fn on_suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.suspects.insert(peer);
        self.successor = self.suspects.next_alive(ctx.me(), ctx.group());
        let alone = self.waiting && self.successor == ctx.me();
        if alone || self.leader == Some(peer) {
            self.start(ctx);
        }
    }

    fn on_trust(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.suspects.remove(peer);
        self.successor = self.suspects.next_alive(ctx.me(), ctx.group());
        if self.leader == Some(ctx.me()) {
            self.repeat_result(ctx);
        }
    }
}

impl Hardened {
    fn start(&mut self, ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        self.take_part(Epoch { round: self.epoch.round.saturating_add(1), origin: me }, ctx);
        if self.successor == me {
            return self.decide(me, ctx);
        }
        self.waiting = true;
        let round = self.epoch.round;
        ctx.send(self.successor, Message::Election { round, list: Arc::new(vec![me]) });
    }

    /// Joins an election: an earlier result does not hold any more.
    fn take_part(&mut self, epoch: Epoch, ctx: &mut Context<'_, Self>) {
        self.epoch = epoch;
        self.waiting = true;
        ctx.save(Record(epoch.round));
        ctx.set_timer(Timer::Outcome, *self.patience);
        if self.leader.take().is_some() {
            ctx.indicate(Indication::Deposed);
        }
    }

    fn decide(&mut self, leader: ProcessId, ctx: &mut Context<'_, Self>) {
        if self.waiting {
            ctx.cancel_timer(Timer::Outcome);
        }
        if self.waiting || self.leader != Some(leader) {
            self.waiting = false;
            self.leader = Some(leader);
            ring::announce(leader, self.epoch.round, ctx);
        }
    }

    fn on_election(&mut self, round: u32, mut list: List, ctx: &mut Context<'_, Self>) {
        let (me, epoch) = (ctx.me(), Epoch { round, origin: list[0] });
        let listed = list.contains(&me);
        if epoch < self.epoch {
            return self.repeat_result(ctx);
        } else if epoch > self.epoch {
            self.take_part(epoch, ctx);
        } else if !listed || !self.waiting {
            // A copy of a list that has passed here.
            return;
        }
        if listed {
            self.finish(round, list, Vec::new(), ctx);
        } else {
            Arc::make_mut(&mut list).push(me);
            ctx.send(self.successor, Message::Election { round, list });
        }
    }

    /// FINISH_ELECTION: follows the highest of `list` and passes the result on.
    fn finish(
        &mut self,
        round: u32,
        list: List,
        mut informed: Vec<ProcessId>,
        ctx: &mut Context<'_, Self>,
    ) {
        let leader = list.iter().copied().max().unwrap_or(ctx.me());
        if self.suspects.contains(leader) {
            // A suspected process must not become the leader: if no other result comes, the timer opens a new election.
            return;
        }
        self.decide(leader, ctx);
        if self.rules.passes_on(&informed) {
            informed.push(ctx.me());
            let informed = Arc::new(informed);
            ctx.send(self.successor, Message::Coordinator { round, list, informed });
        }
    }

    fn on_coordinator(
        &mut self,
        round: u32,
        list: List,
        informed: List,
        ctx: &mut Context<'_, Self>,
    ) {
        let epoch = Epoch { round, origin: list[0] };
        if informed.contains(&ctx.me()) || epoch < self.epoch {
            return;
        }
        if epoch > self.epoch {
            self.take_part(epoch, ctx);
        }
        self.finish(round, list, Arc::unwrap_or_clone(informed), ctx);
    }

    /// Scenario: a process missed the result and opened an older election, or it was suspected. It would follow nobody
    /// or an old leader; so the result goes round once more.
    fn repeat_result(&self, ctx: &mut Context<'_, Self>) {
        let Some(leader) = self.leader.filter(|_| self.successor != ctx.me()) else { return };
        let Epoch { round, origin } = self.epoch;
        let mut list = vec![origin];
        list.extend(Some(leader).filter(|l| *l != origin));
        let informed = Arc::new(vec![ctx.me()]);
        ctx.send(self.successor, Message::Coordinator { round, list: Arc::new(list), informed });
    }
}
