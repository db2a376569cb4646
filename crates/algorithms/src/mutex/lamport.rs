//! Lamport's mutual exclusion: one queue, replicated everywhere and ordered by logical time.
//!
//! To enter, a process multicasts a timestamped request, and everyone puts it into its queue. The
//! process whose request stands first may enter once it has heard something later from everyone:
//! on FIFO channels nothing earlier can then still be on its way.

mod sheet;
#[cfg(test)]
mod tests;

use konklave_process::{
    Context, Fixed, LamportClock, NoRecord, NoTimer, Process, ProcessId, ProcessSet, Timestamp,
};
use serde::{Deserialize, Serialize};

use super::{Fence, Indication, Request};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Lamport {
    clock: LamportClock,
    state: State,
    /// Every request that we know of and that is not released, ours included, oldest first.
    queue: Vec<Timestamp>,
    #[serde(skip)]
    suppresses: Fixed<bool>,
    #[serde(skip)]
    equal_ack: Fixed<bool>,
    #[serde(skip)]
    no_tie_break: Fixed<bool>,
}

/// Where we stand.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum State {
    /// We are outside.
    Released,
    /// We asked.
    Wanted {
        /// The time of our request.
        since: u32,
        /// From whom we have heard nothing later than our request.
        awaiting: ProcessSet,
    },
    /// We are inside.
    Held {
        /// The time of our request.
        since: u32,
    },
}

/// What the processes say; each message carries a time of its sender.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Put me into your queue.
    Request {
        /// The time of the request.
        timestamp: u32,
    },
    /// I did.
    Ack {
        /// The time of the acknowledgement.
        clock: u32,
    },
    /// I left: take me out.
    Release {
        /// The time of the request that is over.
        request: u32,
        /// The time of leaving.
        clock: u32,
    },
}

impl Lamport {
    /// Whoever has sent something later than our request cannot send anything earlier any more.
    fn heard(&mut self, from: ProcessId, time: u32, ctx: &Context<'_, Self>) {
        self.clock.witness(time);
        let State::Wanted { since, awaiting } = &mut self.state else { return };
        let ours = Timestamp { time: *since, process: ctx.me() };
        if ours < (Timestamp { time, process: from }) {
            awaiting.remove(from);
        }
    }

    fn insert(&mut self, request: Timestamp) {
        if let Err(place) = self.queue.binary_search(&request) {
            self.queue.insert(place, request);
        }
    }

    fn remove(&mut self, request: Timestamp) {
        if let Ok(place) = self.queue.binary_search(&request) {
            self.queue.remove(place);
        }
    }

    fn try_enter(&mut self, ctx: &mut Context<'_, Self>) {
        let State::Wanted { since, awaiting } = &self.state else { return };
        let since = *since;
        let is_first = match self.queue.first() {
            Some(first) if *self.no_tie_break => first.time == since,
            Some(first) => *first == Timestamp { time: since, process: ctx.me() },
            None => false,
        };
        if is_first && awaiting.is_empty() {
            self.state = State::Held { since };
            let fence = Fence(since.into(), ctx.me().0.into());
            ctx.indicate(Indication::Granted { fence: Some(fence) });
        }
    }

    /// Whether our own request tells its receiver all that an acknowledgement of `theirs` would.
    fn has_said_it(&self, theirs: Timestamp, me: ProcessId) -> bool {
        match self.state {
            State::Wanted { since, .. } => theirs < Timestamp { time: since, process: me },
            State::Released | State::Held { .. } => false,
        }
    }
}

impl Process for Lamport {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        let process = ctx.me();
        match request {
            Request::Acquire => {
                let since = self.clock.tick();
                self.insert(Timestamp { time: since, process });
                self.state = State::Wanted { since, awaiting: ctx.others().collect() };
                ctx.send_to_others(Message::Request { timestamp: since });
                self.try_enter(ctx);
            }
            Request::Release => {
                let State::Held { since } = self.state else { return };
                self.state = State::Released;
                self.remove(Timestamp { time: since, process });
                let clock = self.clock.tick();
                ctx.send_to_others(Message::Release { request: since, clock });
            }
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Request { timestamp } => {
                let theirs = Timestamp { time: timestamp, process: from };
                self.heard(from, timestamp, ctx);
                self.insert(theirs);
                if !(*self.suppresses && self.has_said_it(theirs, ctx.me())) {
                    // Later than the request, or it would tell them nothing.
                    let clock = if *self.equal_ack { timestamp } else { self.clock.tick() };
                    ctx.send(from, Message::Ack { clock });
                }
            }
            Message::Ack { clock } => self.heard(from, clock, ctx),
            Message::Release { request, clock } => {
                self.heard(from, clock, ctx);
                self.remove(Timestamp { time: request, process: from });
            }
        }
        self.try_enter(ctx);
    }
}
