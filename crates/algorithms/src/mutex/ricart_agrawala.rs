//! Ricart and Agrawala's mutual exclusion by multicast and logical clocks.
//!
//! To enter, a process multicasts a request with a timestamp and waits for a reply of every other process.
//! A process defers its reply while it is inside, or while it waits with an earlier request.

mod clocks;
mod rules;
mod sheet;

use konklave_process::{
    Context, Fixed, LamportClock, NoRecord, NoTimer, Process, ProcessId, ProcessMap, ProcessSet,
    Timestamp,
};
use serde::{Deserialize, Serialize};

use self::rules::Rules;
use super::{Fence, Indication, Request};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct RicartAgrawala {
    clock: LamportClock,
    state: State,
    /// The timestamp of each request whose reply waits for our release; 0 for none.
    deferred: ProcessMap<u32>,
    #[serde(skip)]
    rules: Fixed<Rules>,
}

/// Outside, waiting since this timestamp for the replies of these processes, or inside.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
#[expect(missing_docs, reason = "the states of the paper")]
pub enum State {
    Released,
    Wanted { since: u32, awaiting: ProcessSet },
    Held,
}

/// A reply names the timestamp of the request it answers, and carries the clock of its sender.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the messages of the paper")]
pub enum Message {
    Request { timestamp: u32 },
    Reply { to: u32, clock: u32 },
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
                self.state = State::Wanted { since, awaiting: ctx.others().collect() };
                ctx.send_to_others(Message::Request { timestamp: since });
                self.try_enter(ctx);
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
                if self.defers(Timestamp { time: timestamp, process: from }, ctx.me()) {
                    // A late copy of an earlier request must not replace the request that waits.
                    self.deferred[from] = timestamp.max(self.deferred[from]);
                } else {
                    ctx.send(from, Message::Reply { to: timestamp, clock: self.clock.now() });
                }
            }
            Message::Reply { to, clock } => {
                self.clock.witness(self.rules.time_of_reply(clock));
                let State::Wanted { since, awaiting } = &mut self.state else { return };
                if to == *since && awaiting.remove(from) {
                    self.try_enter(ctx);
                }
            }
        }
    }
}

impl RicartAgrawala {
    /// Whether the reply to request `theirs` has to wait for our release.
    fn defers(&self, theirs: Timestamp, me: ProcessId) -> bool {
        match self.state {
            State::Released => false,
            State::Wanted { since, .. } => {
                self.rules.precedes(Timestamp { time: since, process: me }, theirs)
            }
            State::Held => true,
        }
    }

    fn try_enter(&mut self, ctx: &mut Context<'_, Self>) {
        let State::Wanted { since, ref awaiting } = self.state else { return };
        if self.rules.permits_entry(awaiting, ctx.group_size()) {
            self.state = State::Held;
            let fence = Fence(since.into(), ctx.me().0.into());
            ctx.indicate(Indication::Granted { fence: Some(fence) });
        }
    }
}
