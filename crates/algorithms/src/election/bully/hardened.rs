//! The hardened form: reigns are numbered, so that late messages, restarts and wrong suspicions do no harm.
//!
//! A reign is a round and the id of its leader, and a later reign supersedes an earlier one. A process answers the
//! announcement of an old reign with the latest it knows, and a leader in office answers an election itself.

mod sheet;
#[cfg(test)]
mod tests;

use std::time::Duration;

use konklave_process::{Context, Fixed, NoRecord, Process, ProcessId};
use serde::{Deserialize, Serialize};

use super::Phase;
use super::rules::{OpenElections, Rules};
use crate::election::{Indication, Request, ring};

/// One process of the hardened form.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Hardened {
    phase: Phase,
    /// The process it follows; itself if it leads.
    coordinator: Option<ProcessId>,
    /// The latest reign that this process accepted.
    reign: Reign,
    /// The highest round that it knows of.
    round: u32,
    open: OpenElections,
    #[serde(skip)]
    rules: Fixed<Rules>,
    /// The time between two reminders of a leader.
    #[serde(skip)]
    ping: Fixed<Option<Duration>>,
}

/// A time in office; later ones are greater.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
pub struct Reign {
    round: u32,
    leader: ProcessId,
}

/// The messages of the textbook form, and two more.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// A higher process should take over: this reign, the latest known, is over.
    Election(Reign),
    /// The sender takes over, or a process above it.
    Answer,
    /// The sender leads, in this round.
    Coordinator(u32),
    /// The receiver does not lead: this reign is later.
    Reject(Reign),
    /// A reminder: the sender leads, in this round.
    Ping(u32),
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// An answer is overdue.
    Answer,
    /// The announcement of a coordinator is overdue.
    Coordinator,
    /// The leader sends its next reminder.
    Ping,
    /// A reminder of the coordinator is overdue.
    Silence,
}

impl Process for Hardened {
    type Message = Message;
    type Timer = Timer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_recover(&mut self, _saved: Option<NoRecord>, ctx: &mut Context<'_, Self>) {
        self.hold_election(ctx);
    }

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        if self.phase == Phase::Idle {
            self.hold_election(ctx);
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Election(_) if from > ctx.me() => ctx.unexpected("an election from above"),
            Message::Election(over) => self.on_election(from, over, ctx),
            Message::Answer if self.phase == Phase::AwaitAnswer => {
                self.open.answered();
                self.phase = Phase::AwaitCoordinator;
                ctx.cancel_timer(Timer::Answer);
                self.rules.set_second_timeout(Timer::Coordinator, ctx);
            }
            Message::Answer => {}
            Message::Coordinator(round) => self.on_coordinator(Reign { round, leader: from }, ctx),
            Message::Reject(reign) => self.on_reject(reign, ctx),
            Message::Ping(round) => {
                let reign = Reign { round, leader: from };
                if reign == self.reign && self.coordinator == Some(from) {
                    self.expect_ping(ctx);
                }
                self.on_coordinator(reign, ctx);
            }
        }
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Context<'_, Self>) {
        match timer {
            Timer::Answer => self.win(ctx),
            Timer::Coordinator => {
                self.phase = Phase::Idle;
                self.hold_election(ctx);
            }
            Timer::Ping => {
                ctx.send_to_others(Message::Ping(self.reign.round));
                self.ping_later(ctx);
            }
            Timer::Silence => self.hold_election(ctx),
        }
    }

    fn on_suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        if self.coordinator == Some(peer) {
            self.hold_election(ctx);
        }
    }
}

impl Hardened {
    /// The process it follows; itself if it leads.
    pub fn coordinator(&self) -> Option<ProcessId> {
        self.coordinator
    }

    fn on_election(&mut self, from: ProcessId, over: Reign, ctx: &mut Context<'_, Self>) {
        self.round = self.round.max(over.round);
        let leads = self.coordinator == Some(ctx.me());
        if leads && over < self.reign {
            // The sender missed the announcement: there is no need for an election.
            return ctx.send(from, Message::Coordinator(self.reign.round));
        }
        if leads && over.leader <= ctx.me() {
            // The sender gave this leader up, or knows an old reign of it: it follows only a new reign.
            return self.win(ctx);
        }
        ctx.send(from, Message::Answer);
        if self.rules.permits_election(self.phase) {
            self.hold_election(ctx);
        }
    }

    fn on_coordinator(&mut self, reign: Reign, ctx: &mut Context<'_, Self>) {
        self.round = self.round.max(reign.round);
        if reign < self.reign {
            ctx.send(reign.leader, Message::Reject(self.reign));
        } else if reign == self.reign {
            // A copy, or a reminder.
        } else if reign.leader > ctx.me() {
            self.follow(reign, ctx);
        } else if self.phase == Phase::Idle {
            // This process is alive and higher: it takes over.
            self.hold_election(ctx);
        }
    }

    fn on_reject(&mut self, reign: Reign, ctx: &mut Context<'_, Self>) {
        self.round = self.round.max(reign.round);
        if self.coordinator != Some(ctx.me()) || reign <= self.reign {
            return;
        }
        if reign.leader == ctx.me() {
            // The later reign was its own, before it crashed.
            self.win(ctx);
        } else {
            self.hold_election(ctx);
        }
    }

    /// HOLD_ELECTION: asks all higher processes. If there are none, this process wins.
    fn hold_election(&mut self, ctx: &mut Context<'_, Self>) {
        if self.coordinator.take().is_some() {
            ctx.indicate(Indication::Deposed);
            self.stop_pings(ctx);
        }
        let (me, mut highest) = (ctx.me(), true);
        for p in ctx.others().filter(|p| *p > me) {
            highest = false;
            ctx.send(p, Message::Election(self.reign));
        }
        if highest {
            return self.win(ctx);
        }
        self.open.begin(*self.rules, ctx.group_size());
        self.phase = Phase::AwaitAnswer;
        ctx.cancel_timer(Timer::Coordinator);
        ctx.set_timer(Timer::Answer, self.rules.timeout());
    }

    /// Begins a reign and announces it to all: a higher process that is not down learns of it, too.
    fn win(&mut self, ctx: &mut Context<'_, Self>) {
        self.settle(ctx.me(), ctx);
        self.round += 1;
        self.reign = Reign { round: self.round, leader: ctx.me() };
        ring::announce(ctx.me(), self.epoch(ctx), ctx);
        for _ in 0..self.open.end() {
            ctx.send_to_others(Message::Coordinator(self.round));
        }
        self.ping_later(ctx);
    }

    fn follow(&mut self, reign: Reign, ctx: &mut Context<'_, Self>) {
        self.settle(reign.leader, ctx);
        self.open.end();
        self.reign = reign;
        ring::announce(reign.leader, self.epoch(ctx), ctx);
        self.expect_ping(ctx);
    }

    /// The election is over.
    fn settle(&mut self, coordinator: ProcessId, ctx: &mut Context<'_, Self>) {
        self.stop_pings(ctx);
        self.coordinator = Some(coordinator);
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Idle => {}
            Phase::AwaitAnswer => ctx.cancel_timer(Timer::Answer),
            Phase::AwaitCoordinator => ctx.cancel_timer(Timer::Coordinator),
        }
    }

    fn stop_pings(&self, ctx: &mut Context<'_, Self>) {
        if self.ping.is_some() {
            ctx.cancel_timer(Timer::Ping);
            ctx.cancel_timer(Timer::Silence);
        }
    }

    fn ping_later(&self, ctx: &mut Context<'_, Self>) {
        if let Some(period) = *self.ping {
            ctx.set_timer(Timer::Ping, period);
        }
    }

    fn expect_ping(&self, ctx: &mut Context<'_, Self>) {
        if let Some(period) = *self.ping {
            ctx.set_timer(Timer::Silence, 3 * period);
        }
    }

    /// Round and leader in one number: no two leaders share one.
    fn epoch(&self, ctx: &Context<'_, Self>) -> u32 {
        let place = ctx.group().place(self.reign.leader).expect("leaders are members");
        let n = ctx.group_size() as u32;
        self.reign.round.saturating_mul(n).saturating_add(place as u32)
    }
}
