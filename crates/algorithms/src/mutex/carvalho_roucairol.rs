//! Carvalho and Roucairol's mutual exclusion: Ricart–Agrawala with permissions that are kept.
//!
//! For each pair of processes there is one permission. Who has those of all its pairs may enter,
//! and goes on doing so without a word until someone asks. Who is asked gives the permission away,
//! unless it is inside or waits with an earlier request; if it waits itself, it asks to have it back.

mod sheet;
#[cfg(test)]
mod tests;

use konklave_process::{
    Context, Fixed, LamportClock, NoRecord, NoTimer, Process, ProcessId, ProcessSet, Timestamp,
};
use serde::{Deserialize, Serialize};

use super::{Fence, Indication, Request};

/// One process of the algorithm. At first the lower id of each pair has its permission.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct CarvalhoRoucairol {
    clock: LamportClock,
    state: State,
    /// With whom the permission is, of those pairs whose permission we do not have.
    lacking: ProcessSet,
    /// Who gets the permission when we leave.
    deferred: ProcessSet,
    /// The highest fence that we know of.
    fence: u64,
    #[serde(skip)]
    no_re_request: Fixed<bool>,
    #[serde(skip)]
    timestamp_fence: Fixed<bool>,
}

/// Where we stand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum State {
    /// We are outside.
    Released,
    /// We want in.
    Wanted {
        /// The time of our request.
        since: u32,
    },
    /// We are inside.
    Held,
}

/// What the processes say.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Give me our permission.
    Request {
        /// The time of the request.
        timestamp: u32,
        /// The time of asking: later than the request if we had the permission in between.
        clock: u32,
    },
    /// Here it is.
    Reply {
        /// The time of giving it.
        clock: u32,
        /// The highest fence so far.
        fence: u64,
    },
}

impl CarvalhoRoucairol {
    /// Whether our claim goes before that of `from`.
    fn precedes(&self, me: ProcessId, timestamp: u32, from: ProcessId) -> bool {
        match self.state {
            State::Released => false,
            State::Wanted { since } => {
                let ours = Timestamp { time: since, process: me };
                ours < Timestamp { time: timestamp, process: from }
            }
            State::Held => true,
        }
    }

    fn try_enter(&mut self, ctx: &mut Context<'_, Self>) {
        let State::Wanted { since } = self.state else { return };
        if !self.lacking.is_empty() {
            return;
        }
        self.state = State::Held;
        self.fence += 1;
        let fence = if *self.timestamp_fence {
            Fence(since.into(), ctx.me().0.into())
        } else {
            Fence(0, self.fence)
        };
        ctx.indicate(Indication::Granted { fence: Some(fence) });
    }

    fn ask(&self, whom: ProcessId, since: u32, ctx: &mut Context<'_, Self>) {
        ctx.send(whom, Message::Request { timestamp: since, clock: self.clock.now() });
    }

    fn give(&mut self, to: ProcessId, ctx: &mut Context<'_, Self>) {
        self.lacking.insert(to);
        ctx.send(to, Message::Reply { clock: self.clock.now(), fence: self.fence });
    }
}

impl Process for CarvalhoRoucairol {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        match request {
            Request::Acquire => {
                let since = self.clock.tick();
                self.state = State::Wanted { since };
                for p in self.lacking.iter() {
                    self.ask(p, since, ctx);
                }
                self.try_enter(ctx);
            }
            Request::Release => {
                self.state = State::Released;
                for p in std::mem::take(&mut self.deferred).iter() {
                    self.give(p, ctx);
                }
            }
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Request { timestamp, clock } => {
                self.clock.witness(clock);
                if self.precedes(ctx.me(), timestamp, from) {
                    self.deferred.insert(from);
                    return;
                }
                self.give(from, ctx);
                // We need it ourselves, only later.
                if let State::Wanted { since } = self.state
                    && !*self.no_re_request
                {
                    self.ask(from, since, ctx);
                }
            }
            Message::Reply { clock, fence } => {
                self.clock.witness(clock);
                self.fence = self.fence.max(fence);
                self.lacking.remove(from);
                self.try_enter(ctx);
            }
        }
    }
}
