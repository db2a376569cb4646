//! Ricart and Agrawala's mutual exclusion by multicast and logical clocks.
//!
//! To enter, a process multicasts a timestamped request and waits for every other process to reply.
//! A process holds its reply back while it is inside, or while it waits with an earlier request.

mod clocks;
mod sheet;

use konklave_process::{
    Context, Fixed, LamportClock, NoRecord, NoTimer, Process, ProcessId, ProcessMap, ProcessSet,
    Timestamp,
};
use serde::{Deserialize, Serialize};

use super::{Fence, Indication, Request};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct RicartAgrawala {
    clock: LamportClock,
    state: State,
    /// Whom we answer when we leave: the time of their request, 0 for the others.
    deferred: ProcessMap<u32>,
    #[serde(skip)]
    request_clock: Fixed<bool>,
    #[serde(skip)]
    no_tie_break: Fixed<bool>,
    #[serde(skip)]
    simple_majority: Fixed<bool>,
}

/// The states of the book.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum State {
    /// We are outside.
    Released,
    /// We asked.
    Wanted {
        /// The time of our request.
        since: u32,
        /// Whose reply is missing.
        awaiting: ProcessSet,
    },
    /// We are inside.
    Held,
}

/// What the processes say.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// May I enter?
    Request {
        /// The time of the request.
        timestamp: u32,
    },
    /// As for me, you may.
    Reply {
        /// The time of your request: an answer to an older one does not count.
        to: u32,
        /// The clock of the one who replies: replies carry causality, too.
        clock: u32,
    },
}

impl RicartAgrawala {
    /// Whether our claim goes before that of `from`. The order is total: of two rivals one yields.
    fn precedes(&self, me: ProcessId, timestamp: u32, from: ProcessId) -> bool {
        match self.state {
            State::Released => false,
            State::Wanted { since, .. } if *self.no_tie_break => since < timestamp,
            State::Wanted { since, .. } => {
                let ours = Timestamp { time: since, process: me };
                ours < Timestamp { time: timestamp, process: from }
            }
            State::Held => true,
        }
    }

    fn enter(&mut self, since: u32, ctx: &mut Context<'_, Self>) {
        self.state = State::Held;
        let fence = Fence(since.into(), ctx.me().0.into());
        ctx.indicate(Indication::Granted { fence: Some(fence) });
    }
}

impl Process for RicartAgrawala {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        match request {
            Request::Acquire => {
                let since = self.clock.tick();
                let awaiting: ProcessSet = ctx.others().collect();
                if awaiting.is_empty() {
                    return self.enter(since, ctx);
                }
                self.state = State::Wanted { since, awaiting };
                ctx.send_to_others(Message::Request { timestamp: since });
            }
            Request::Release => {
                self.state = State::Released;
                let clock = self.clock.now();
                for p in ctx.others() {
                    let timestamp = std::mem::take(&mut self.deferred[p]);
                    if timestamp > 0 {
                        ctx.send(p, Message::Reply { to: timestamp, clock });
                    }
                }
            }
        }
    }

    // Inlined, a host that has one kind of effect most of the time carries it out on the spot.
    #[inline(always)]
    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Request { timestamp } => {
                self.clock.witness(timestamp);
                if self.precedes(ctx.me(), timestamp, from) {
                    // A late copy of an earlier request must not hide the one that waits.
                    let deferred = &mut self.deferred[from];
                    *deferred = timestamp.max(*deferred);
                } else {
                    let clock = self.clock.now();
                    ctx.send(from, Message::Reply { to: timestamp, clock });
                }
            }
            Message::Reply { to, clock } => {
                if !*self.request_clock {
                    self.clock.witness(clock);
                }
                let State::Wanted { since, awaiting } = &mut self.state else { return };
                let enough = if *self.simple_majority { (ctx.group_size() - 1) / 2 } else { 0 };
                if to == *since && awaiting.remove(from) && awaiting.len() <= enough {
                    let since = *since;
                    self.enter(since, ctx);
                }
            }
        }
    }
}
