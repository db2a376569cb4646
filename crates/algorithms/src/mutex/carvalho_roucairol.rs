//! Carvalho and Roucairol's mutual exclusion: Ricart–Agrawala with permissions that are kept.
//!
//! Each pair of processes has one permission; a process enters when it has those of all its pairs. It gives a permission
//! away on request, unless it is inside or waits with an earlier request; if it waits itself, it asks to have it back.

mod rules;
mod sheet;
#[cfg(test)]
mod tests;

use konklave_process::{
    Context, Fixed, LamportClock, NoRecord, NoTimer, Process, ProcessId, ProcessSet, Timestamp,
};
use serde::{Deserialize, Serialize};

use self::rules::Rules;
use super::{Indication, Request};

/// One process of the algorithm. At first the lower id of each pair has its permission.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct CarvalhoRoucairol {
    clock: LamportClock,
    state: State,
    /// The processes that have the permission of their pair with this one.
    lacking: ProcessSet,
    /// The processes that get the permission on release.
    deferred: ProcessSet,
    /// The highest known fence.
    fence: u64,
    #[serde(skip)]
    rules: Fixed<Rules>,
}

/// Outside, waiting since this timestamp, or inside.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[expect(missing_docs, reason = "the states of the paper")]
pub enum State {
    Released,
    Wanted { since: u32 },
    Held,
}

/// A request carries its timestamp, and the clock of its sender when it asked: that is later if the permission was
/// given away in between. A reply carries the permission, the clock of its sender and the highest fence it knows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the messages of the paper")]
pub enum Message {
    Request { timestamp: u32, clock: u32 },
    Reply { clock: u32, fence: u64 },
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
                if self.defers(Timestamp { time: timestamp, process: from }, ctx.me()) {
                    self.deferred.insert(from);
                } else {
                    self.give(from, ctx);
                    if let State::Wanted { since } = self.state {
                        self.ask_back(from, since, ctx);
                    }
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

impl CarvalhoRoucairol {
    /// Whether the reply to request `theirs` has to wait for our release.
    fn defers(&self, theirs: Timestamp, me: ProcessId) -> bool {
        match self.state {
            State::Released => false,
            State::Wanted { since } => Timestamp { time: since, process: me } < theirs,
            State::Held => true,
        }
    }

    fn try_enter(&mut self, ctx: &mut Context<'_, Self>) {
        let State::Wanted { since } = self.state else { return };
        if self.lacking.is_empty() {
            self.state = State::Held;
            self.fence += 1;
            let fence = self.rules.fence(self.fence, Timestamp { time: since, process: ctx.me() });
            ctx.indicate(Indication::Granted { fence: Some(fence) });
        }
    }

    fn ask(&self, peer: ProcessId, since: u32, ctx: &mut Context<'_, Self>) {
        ctx.send(peer, Message::Request { timestamp: since, clock: self.clock.now() });
    }

    fn give(&mut self, to: ProcessId, ctx: &mut Context<'_, Self>) {
        self.lacking.insert(to);
        ctx.send(to, Message::Reply { clock: self.clock.now(), fence: self.fence });
    }
}
