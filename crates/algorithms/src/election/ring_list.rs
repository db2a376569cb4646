//! The ring election of the slides: gather everyone, then take the maximum.
//!
//! A list goes round to which everyone adds itself; who finds itself on it closes the round and
//! sends the result after it. The slides credit Chang and Roberts; it is rather Le Lann's, for no
//! number stops another. Hardened, elections are numbered and a dead winner opens a new one.

mod sheet;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use konklave_process::{Context, Fixed, Process, ProcessId};
use serde::{Deserialize, Serialize};

use super::ring::Suspects;
use super::{Indication, Request, ring};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct RingList {
    successor: ProcessId,
    /// Whom the detector suspects: skipped.
    suspects: Suspects,
    leader: Option<ProcessId>,
    /// Whether we started (hardened: or took part), and do not know the outcome.
    waiting: bool,
    /// The latest election we know of, if elections are numbered.
    epoch: Epoch,
    #[serde(skip)]
    hardened: Fixed<bool>,
    #[serde(skip)]
    patience: Fixed<Duration>,
    #[serde(skip)]
    no_forward: Fixed<bool>,
}

/// Which election: a later round goes before an earlier one, then the higher origin.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize)]
struct Epoch {
    round: u32,
    origin: ProcessId,
}

/// A list of processes; a message on its way is its only owner, so that adding to it copies nothing.
type List = Arc<Vec<ProcessId>>;

/// What goes round. The first of a list opened the election.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Add yourself.
    Election {
        /// The number of the election; 0 where they have none.
        round: u32,
        /// Who has been reached.
        list: List,
    },
    /// The highest of them leads.
    Coordinator {
        /// The number of the election.
        round: u32,
        /// Who was reached.
        list: List,
        /// Who knows the result.
        informed: List,
    },
}

/// What is kept in stable storage: the round of the latest election.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Record(u32);

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// The election should be over.
    Outcome,
}

impl RingList {
    fn start(&mut self, ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        if *self.hardened {
            self.take_part(Epoch { round: self.epoch.round.saturating_add(1), origin: me }, ctx);
        }
        if self.successor == me {
            return self.decide(me, ctx);
        }
        self.waiting = true;
        let round = self.epoch.round;
        ctx.send(self.successor, Message::Election { round, list: Arc::new(vec![me]) });
    }

    /// What was decided before does not hold any more.
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
        if *self.hardened && self.waiting {
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
        if *self.hardened {
            if epoch < self.epoch {
                return self.tell(ctx);
            } else if epoch > self.epoch {
                self.take_part(epoch, ctx);
            } else if !listed || !self.waiting {
                // We have seen this one: it is a copy.
                return;
            }
        }
        if listed {
            self.finish(round, list, Vec::new(), ctx);
        } else {
            Arc::make_mut(&mut list).push(me);
            ctx.send(self.successor, Message::Election { round, list });
        }
    }

    /// Takes the result of `list` over and passes it on.
    fn finish(
        &mut self,
        round: u32,
        list: List,
        mut informed: Vec<ProcessId>,
        ctx: &mut Context<'_, Self>,
    ) {
        let leader = list.iter().copied().max().unwrap_or(ctx.me());
        if *self.hardened && self.suspects.contains(leader) {
            // Nobody shall follow the dead: unless we learn better, time will open a new election.
            return;
        }
        self.decide(leader, ctx);
        if informed.is_empty() || !*self.no_forward {
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
        if informed.contains(&ctx.me()) || (*self.hardened && epoch < self.epoch) {
            return;
        }
        if *self.hardened && epoch > self.epoch {
            self.take_part(epoch, ctx);
        }
        self.finish(round, list, Arc::unwrap_or_clone(informed), ctx);
    }

    /// Someone is behind the times: the result goes round once more.
    fn tell(&self, ctx: &mut Context<'_, Self>) {
        let Some(leader) = self.leader.filter(|_| self.successor != ctx.me()) else { return };
        let Epoch { round, origin } = self.epoch;
        let mut list = vec![origin];
        list.extend(Some(leader).filter(|l| *l != origin));
        let informed = Arc::new(vec![ctx.me()]);
        ctx.send(self.successor, Message::Coordinator { round, list: Arc::new(list), informed });
    }
}

impl Process for RingList {
    type Message = Message;
    type Timer = Timer;
    type Request = Request;
    type Indication = Indication;
    type Record = Record;

    fn on_recover(&mut self, saved: Option<Record>, ctx: &mut Context<'_, Self>) {
        if *self.hardened {
            self.epoch.round = saved.map_or(0, |Record(round)| round);
            self.start(ctx);
        }
    }

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        if !(*self.hardened && self.waiting) {
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
        if *self.hardened && (alone || self.leader == Some(peer)) {
            self.start(ctx);
        }
    }

    fn on_trust(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.suspects.remove(peer);
        self.successor = self.suspects.next_alive(ctx.me(), ctx.group());
        if *self.hardened && self.leader == Some(ctx.me()) {
            self.tell(ctx);
        }
    }
}
