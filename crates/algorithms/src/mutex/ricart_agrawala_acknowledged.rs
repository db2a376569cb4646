//! Ricart and Agrawala's mutual exclusion with acknowledgements, which reveal crashes.
//!
//! Every request is answered at once: by a reply, or by an acknowledgement that the reply comes later. A process without
//! an answer in time counts as crashed, and no process waits for it; a process that defers its reply is asked again from
//! time to time. A restarted process learns the clocks of all others before it requests.
//!
//! A request that the application makes meanwhile gets its timestamp only then. Another process may learn of it by way
//! of a third one, and request with an earlier timestamp; so order is guaranteed only until a process restarts.
//!
//! Delays must have a known bound, else a slow process counts as crashed and two processes enter. With
//! `model=asynchronous` no process counts as crashed: that is always safe, and a crash blocks for ever.

mod rules;
mod sheet;
#[cfg(test)]
mod tests;

use konklave_process::{Context, Fixed, LamportClock, Process, ProcessId, ProcessSet, Timestamp};
use serde::{Deserialize, Serialize};

use self::rules::Rules;
use super::{Fence, Indication, Request};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct RicartAgrawalaAcknowledged {
    clock: LamportClock,
    state: State,
    /// The processes whose reply or welcome is missing.
    awaiting: ProcessSet,
    /// The processes that have not answered the last question.
    silent: ProcessSet,
    /// The processes that count as crashed.
    crashed: ProcessSet,
    /// The deferred requests, in the order of ids: process and timestamp.
    deferred: Vec<(ProcessId, u32)>,
    /// The number of restarts of this process.
    incarnation: u32,
    #[serde(skip)]
    rules: Fixed<Rules>,
}

/// The states of the paper, and one more.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum State {
    /// Restarted: the process learns the clocks of the others.
    Rejoining {
        /// Whether the application has requested the lock.
        wants: bool,
    },
    /// Outside.
    Released,
    /// Waiting for replies.
    Wanted {
        /// The timestamp of the request.
        since: u32,
    },
    /// Inside.
    Held,
}

/// The messages, each with the clock of its sender.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// A request.
    Request {
        /// Its timestamp.
        timestamp: u32,
    },
    /// An acknowledgement: the reply comes later.
    Ack {
        /// The timestamp of the request.
        to: u32,
        /// The clock of the sender.
        clock: u32,
    },
    /// A reply.
    Reply {
        /// The timestamp of the request.
        to: u32,
        /// The clock of the sender.
        clock: u32,
    },
    /// Repeats a request to a process that has acknowledged it.
    AreYouThere {
        /// The timestamp of the request.
        timestamp: u32,
        /// The clock of the sender.
        clock: u32,
    },
    /// A restarted process asks for the clock.
    Hello {
        /// The number of its restarts.
        incarnation: u32,
        /// Its clock.
        clock: u32,
    },
    /// The answer.
    Welcome {
        /// The number of restarts of the receiver.
        incarnation: u32,
        /// The clock of the sender.
        clock: u32,
    },
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// All asked processes must have answered.
    Answers,
}

impl Process for RicartAgrawalaAcknowledged {
    type Message = Message;
    type Timer = Timer;
    type Request = Request;
    type Indication = Indication;
    /// The number of the incarnation.
    type Record = u32;

    fn on_recover(&mut self, saved: Option<u32>, ctx: &mut Context<'_, Self>) {
        if !self.rules.rejoins() {
            return;
        }
        // A welcome to an earlier incarnation may carry an earlier clock.
        self.incarnation = saved.unwrap_or(0) + 1;
        ctx.save(self.incarnation);
        self.state = State::Rejoining { wants: false };
        let (incarnation, clock) = (self.incarnation, self.clock.now());
        self.ask_everyone(Message::Hello { incarnation, clock }, ctx);
    }

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        match request {
            Request::Acquire => match &mut self.state {
                State::Rejoining { wants } => *wants = true,
                State::Released | State::Wanted { .. } | State::Held => self.request(ctx),
            },
            Request::Release => {
                self.state = State::Released;
                let clock = self.clock.now();
                for (p, timestamp) in self.deferred.drain(..) {
                    ctx.send(p, Message::Reply { to: timestamp, clock });
                }
            }
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        self.silent.remove(from);
        self.crashed.remove(from);
        match message {
            Message::Request { timestamp } => {
                self.clock.witness(timestamp);
                self.answer(from, timestamp, ctx);
            }
            Message::AreYouThere { timestamp, clock } => {
                self.clock.witness(clock);
                self.answer(from, timestamp, ctx);
            }
            Message::Ack { clock, .. } => self.clock.witness(clock),
            Message::Reply { to, clock } => {
                self.clock.witness(clock);
                if self.state == (State::Wanted { since: to }) {
                    self.no_longer_await(from, ctx);
                }
            }
            Message::Hello { incarnation, clock } => {
                self.clock.witness(clock);
                // The request of its former life is void.
                self.deferred.retain(|(p, _)| *p != from);
                ctx.send(from, Message::Welcome { incarnation, clock: self.clock.now() });
            }
            Message::Welcome { incarnation, clock } => {
                self.clock.witness(clock);
                if matches!(self.state, State::Rejoining { .. }) && incarnation == self.incarnation
                {
                    self.no_longer_await(from, ctx);
                }
            }
        }
    }

    fn on_timer(&mut self, Timer::Answers: Timer, ctx: &mut Context<'_, Self>) {
        let dead = std::mem::take(&mut self.silent);
        self.awaiting = self.awaiting.difference(&dead);
        self.crashed.union_with(&dead);
        let clock = self.clock.now();
        match self.state {
            State::Wanted { .. } if !self.rules.probes(!self.awaiting.is_empty()) => {}
            State::Wanted { since } => {
                self.ask(Message::AreYouThere { timestamp: since, clock }, ctx);
            }
            State::Rejoining { .. } => {
                self.ask(Message::Hello { incarnation: self.incarnation, clock }, ctx);
            }
            State::Released | State::Held => {}
        }
    }
}

impl RicartAgrawalaAcknowledged {
    /// Whether the request of this process goes first. The order is total, so exactly one of two rivals yields.
    fn precedes(&self, me: ProcessId, timestamp: u32, from: ProcessId) -> bool {
        match self.state {
            // The own request has no timestamp yet: after a reply, the other process could enter again and again.
            State::Rejoining { wants } => wants,
            State::Released => false,
            State::Wanted { since } => {
                let ours = Timestamp { time: since, process: me };
                ours < Timestamp { time: timestamp, process: from }
            }
            State::Held => true,
        }
    }

    fn request(&mut self, ctx: &mut Context<'_, Self>) {
        let since = self.clock.tick();
        self.state = State::Wanted { since };
        self.ask_everyone(Message::Request { timestamp: since }, ctx);
    }

    /// Asks all processes that do not count as crashed.
    fn ask_everyone(&mut self, question: Message, ctx: &mut Context<'_, Self>) {
        let others: ProcessSet = ctx.others().collect();
        self.awaiting = others.difference(&self.crashed);
        self.ask(question, ctx);
    }

    /// Asks all awaited processes; without any, the process goes on.
    fn ask(&mut self, question: Message, ctx: &mut Context<'_, Self>) {
        if self.awaiting.is_empty() {
            return self.go_on(ctx);
        }
        if self.rules.synchronous {
            self.silent = self.awaiting.clone();
        }
        for p in self.awaiting.iter() {
            ctx.send(p, question);
        }
        ctx.set_timer(Timer::Answers, self.rules.timeout);
    }

    /// No answer is missing.
    fn go_on(&mut self, ctx: &mut Context<'_, Self>) {
        ctx.cancel_timer(Timer::Answers);
        match self.state {
            State::Rejoining { wants } => {
                self.state = State::Released;
                if wants {
                    self.request(ctx);
                    for (p, timestamp) in std::mem::take(&mut self.deferred) {
                        self.answer(p, timestamp, ctx);
                    }
                }
            }
            State::Wanted { since } => {
                self.state = State::Held;
                let fence = Fence(since.into(), ctx.me().0.into());
                ctx.indicate(Indication::Granted { fence: Some(fence) });
            }
            State::Released | State::Held => {}
        }
    }

    fn no_longer_await(&mut self, p: ProcessId, ctx: &mut Context<'_, Self>) {
        if self.awaiting.remove(p) && self.awaiting.is_empty() {
            self.go_on(ctx);
        }
    }

    fn answer(&mut self, from: ProcessId, timestamp: u32, ctx: &mut Context<'_, Self>) {
        let clock = self.clock.now();
        if self.precedes(ctx.me(), timestamp, from) {
            self.defer(from, timestamp);
            ctx.send(from, Message::Ack { to: timestamp, clock });
        } else {
            ctx.send(from, Message::Reply { to: timestamp, clock });
        }
    }

    fn defer(&mut self, from: ProcessId, timestamp: u32) {
        match self.deferred.binary_search_by_key(&from, |(p, _)| *p) {
            Ok(i) => self.deferred[i].1 = self.deferred[i].1.max(timestamp),
            Err(i) => self.deferred.insert(i, (from, timestamp)),
        }
    }
}
