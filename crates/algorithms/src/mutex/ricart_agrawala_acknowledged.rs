//! Ricart and Agrawala's mutual exclusion with acknowledgements, so that crashes are noticed.
//!
//! Every request is answered at once: by a reply, or by an acknowledgement that the reply comes
//! later. Who does not answer in time is taken for crashed, and nobody waits for it; who puts its
//! reply off is asked from time to time whether it is still there. A process that comes up again
//! learns everyone's clock before it asks for anything; a wish of its application counts from then.
//! Until then, what it says tells others of the wish, though it has no time: someone who learns of it
//! by way of a third process may ask with an earlier time. So order is promised until someone restarts.
//!
//! This is right only where delays have a known bound. Where they have none, a process that is
//! merely slow is taken for crashed, and two are inside. With `model=asynchronous` nobody is ever
//! taken for crashed: that is safe everywhere, and a crash blocks for ever.

mod sheet;
#[cfg(test)]
mod tests;

use std::time::Duration;

use konklave_process::{Context, Fixed, LamportClock, Process, ProcessId, ProcessSet, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Fence, Indication, Request};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct RicartAgrawalaAcknowledged {
    clock: LamportClock,
    state: State,
    /// Whose reply (or welcome) we need.
    awaiting: ProcessSet,
    /// Who has not answered since we asked last.
    silent: ProcessSet,
    /// Whom we take for crashed.
    crashed: ProcessSet,
    /// Whom we reply to when we leave: their ids, in order, and the times of their requests.
    deferred: Vec<(ProcessId, u32)>,
    /// How often we have come up again.
    incarnation: u32,
    #[serde(skip)]
    timeout: Fixed<Duration>,
    /// Whether silence means a crash.
    #[serde(skip)]
    synchronous: Fixed<bool>,
    #[serde(skip)]
    no_probe: Fixed<bool>,
    #[serde(skip)]
    no_rejoin: Fixed<bool>,
}

/// Where we stand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum State {
    /// We are up again, and learn how late it is.
    Rejoining {
        /// Whether the application waits for that.
        wants: bool,
    },
    /// We are outside.
    Released,
    /// We asked.
    Wanted {
        /// The time of our request.
        since: u32,
    },
    /// We are inside.
    Held,
}

/// What the processes say; each message carries a time of its sender.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// May I enter?
    Request {
        /// The time of the request.
        timestamp: u32,
    },
    /// I am here, but not yet.
    Ack {
        /// The time of your request.
        to: u32,
        /// The time of this answer.
        clock: u32,
    },
    /// As for me, you may.
    Reply {
        /// The time of your request.
        to: u32,
        /// The time of this answer.
        clock: u32,
    },
    /// Are you still there, and may I enter?
    AreYouThere {
        /// The time of the request.
        timestamp: u32,
        /// The time of this question.
        clock: u32,
    },
    /// I am up again: how late is it?
    Hello {
        /// How often I have come up again.
        incarnation: u32,
        /// The time of this question, as far as I know.
        clock: u32,
    },
    /// So late.
    Welcome {
        /// How often you have come up again.
        incarnation: u32,
        /// The time.
        clock: u32,
    },
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// Everyone we asked must have answered.
    Answers,
}

impl RicartAgrawalaAcknowledged {
    /// Whether our claim goes before that of `from`. The order is total: of two rivals one yields.
    fn precedes(&self, me: ProcessId, timestamp: u32, from: ProcessId) -> bool {
        match self.state {
            // Our wish has no time yet: who got our reply now could wish again and go before us.
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

    /// Asks everyone whom we do not take for crashed.
    fn ask_everyone(&mut self, question: Message, ctx: &mut Context<'_, Self>) {
        let others: ProcessSet = ctx.others().collect();
        self.awaiting = others.difference(&self.crashed);
        self.ask(question, ctx);
    }

    /// Asks everyone we wait for, and goes on if there is nobody.
    fn ask(&mut self, question: Message, ctx: &mut Context<'_, Self>) {
        if self.awaiting.is_empty() {
            return self.go_on(ctx);
        }
        if *self.synchronous {
            self.silent = self.awaiting.clone();
        }
        for p in self.awaiting.iter() {
            ctx.send(p, question);
        }
        ctx.set_timer(Timer::Answers, *self.timeout);
    }

    /// We wait for nobody any more.
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

impl Process for RicartAgrawalaAcknowledged {
    type Message = Message;
    type Timer = Timer;
    type Request = Request;
    type Indication = Indication;
    /// The number of the incarnation.
    type Record = u32;

    fn on_recover(&mut self, saved: Option<u32>, ctx: &mut Context<'_, Self>) {
        if *self.no_rejoin {
            return;
        }
        // A welcome to an earlier incarnation may tell too early a time.
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
                // What it had asked for, it does not want any more.
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
            State::Wanted { .. } if *self.no_probe && !self.awaiting.is_empty() => {}
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
