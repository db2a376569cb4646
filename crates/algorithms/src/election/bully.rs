//! The bully algorithm of Garcia-Molina, in the message form of the slides.
//!
//! A process that misses the coordinator asks all higher processes to take over. A higher process answers and asks
//! those above itself; a process without an answer in time is the highest live one, and announces itself.
//!
//! Late messages deceive it: a process that receives an election after the announcement opens the election again, and
//! the messages may grow exponentially with the group. The [`hardened`] form, a process of its own, prevents that.
//! [`bully_1982`](super::bully_1982) is the algorithm as the paper specifies it.

pub mod hardened;
mod rules;
mod sheet;
#[cfg(test)]
mod tests;

use konklave_process::{Context, Fixed, NoRecord, Process, ProcessId};
use serde::{Deserialize, Serialize};

use self::rules::{OpenElections, Rules};
use super::{Indication, Request};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Bully {
    phase: Phase,
    /// The process it follows; itself if it leads.
    coordinator: Option<ProcessId>,
    open: OpenElections,
    #[serde(skip)]
    rules: Fixed<Rules>,
}

/// The next event that a process waits for: none, an answer, or the announcement of a coordinator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[expect(missing_docs, reason = "the states of the slides")]
pub enum Phase {
    Idle,
    AwaitAnswer,
    AwaitCoordinator,
}

/// ELECTION, ANSWER and COORDINATOR of the slides.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the messages of the slides")]
pub enum Message {
    Election,
    Answer,
    Coordinator,
}

/// The timers, named for the message that is overdue when they fire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the two timeouts of the slides")]
pub enum Timer {
    Answer,
    Coordinator,
}

impl Process for Bully {
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
            Message::Election if from > ctx.me() => ctx.unexpected("an election from above"),
            Message::Election => {
                ctx.send(from, Message::Answer);
                if self.rules.permits_election(self.phase) {
                    self.hold_election(ctx);
                }
            }
            Message::Answer if self.phase == Phase::AwaitAnswer => {
                self.open.answered();
                self.phase = Phase::AwaitCoordinator;
                ctx.cancel_timer(Timer::Answer);
                self.rules.set_second_timeout(Timer::Coordinator, ctx);
            }
            Message::Answer => {}
            Message::Coordinator if from > ctx.me() => self.follow(from, ctx),
            // This process is alive and higher: it takes over.
            Message::Coordinator if self.phase == Phase::Idle => self.hold_election(ctx),
            Message::Coordinator => {}
        }
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Context<'_, Self>) {
        match timer {
            Timer::Answer => self.win(ctx),
            Timer::Coordinator => {
                self.phase = Phase::Idle;
                self.hold_election(ctx);
            }
        }
    }

    fn on_suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        if self.coordinator == Some(peer) {
            self.hold_election(ctx);
        }
    }
}

impl Bully {
    /// The process it follows; itself if it leads.
    pub fn coordinator(&self) -> Option<ProcessId> {
        self.coordinator
    }

    /// HOLD_ELECTION: asks all higher processes. If there are none, this process wins.
    fn hold_election(&mut self, ctx: &mut Context<'_, Self>) {
        if self.coordinator.take().is_some() {
            ctx.indicate(Indication::Deposed);
        }
        let (me, mut highest) = (ctx.me(), true);
        for p in ctx.others().filter(|p| *p > me) {
            highest = false;
            ctx.send(p, Message::Election);
        }
        if highest {
            return self.win(ctx);
        }
        self.open.begin(*self.rules, ctx.group_size());
        self.phase = Phase::AwaitAnswer;
        ctx.cancel_timer(Timer::Coordinator);
        ctx.set_timer(Timer::Answer, self.rules.timeout());
    }

    fn win(&mut self, ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        self.settle(me, ctx);
        ctx.indicate(Indication::Leading { epoch: 0 });
        for _ in 0..self.open.end() {
            ctx.others().filter(|p| *p < me).for_each(|p| ctx.send(p, Message::Coordinator));
        }
    }

    fn follow(&mut self, coordinator: ProcessId, ctx: &mut Context<'_, Self>) {
        self.settle(coordinator, ctx);
        self.open.end();
        ctx.indicate(Indication::Following { leader: Some(coordinator), epoch: 0 });
    }

    /// The election is over.
    fn settle(&mut self, coordinator: ProcessId, ctx: &mut Context<'_, Self>) {
        self.coordinator = Some(coordinator);
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Idle => {}
            Phase::AwaitAnswer => ctx.cancel_timer(Timer::Answer),
            Phase::AwaitCoordinator => ctx.cancel_timer(Timer::Coordinator),
        }
    }
}
