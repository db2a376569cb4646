//! Ricart and Agrawala's mutual exclusion by a token.
//!
//! Whoever has the token may enter. Who wants it asks everyone; the token carries the number of
//! the last request of each process that was served. Who leaves looks around in a circle, from
//! itself on, for the first whose request is newer than that.

mod sheet;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId, ProcessMap};
use serde::{Deserialize, Serialize};

use super::{Fence, Indication, Request};

/// One process of the algorithm. At first the first of the group has the token.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct RicartAgrawalaToken {
    phase: Phase,
    /// The highest number of a request of each process that we heard of.
    requested: ProcessMap<u32>,
    /// The token: the number of the last request of each process that was served.
    token: Option<ProcessMap<u32>>,
    #[serde(skip)]
    stale: Fixed<bool>,
    #[serde(skip)]
    uncounted: Fixed<bool>,
}

/// Where we stand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Phase {
    /// We want nothing.
    Idle,
    /// We have asked.
    Wanting,
    /// We are inside.
    Held,
}

/// What the processes say.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// I want the token, for the `number`-th time.
    Request(u32),
    /// Here it is, with the number of the last request of each process that was served.
    Token(Arc<ProcessMap<u32>>),
}

impl RicartAgrawalaToken {
    fn enter(&mut self, served: ProcessMap<u32>, ctx: &mut Context<'_, Self>) {
        let entries: u64 = served.values().map(|&times| u64::from(times)).sum();
        self.token = Some(served);
        self.phase = Phase::Held;
        ctx.indicate(Indication::Granted { fence: Some(Fence(0, entries + 1)) });
    }

    /// Passes the token on, if someone is to have it.
    fn pass_on(&mut self, to: Option<ProcessId>, ctx: &mut Context<'_, Self>) {
        if let Some(to) = to
            && let Some(token) = self.token.take()
        {
            ctx.send(to, Message::Token(Arc::new(token)));
        }
    }
}

impl Process for RicartAgrawalaToken {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        match request {
            Request::Acquire => match self.token.take() {
                Some(served) => {
                    self.requested[me] += u32::from(!*self.uncounted);
                    self.enter(served, ctx);
                }
                None => {
                    self.phase = Phase::Wanting;
                    self.requested[me] += 1;
                    ctx.send_to_others(Message::Request(self.requested[me]));
                }
            },
            Request::Release => {
                self.phase = Phase::Idle;
                let Some(served) = &mut self.token else { return };
                served[me] = self.requested[me];
                let mut circle = self.requested.after(me);
                let next = circle.find(|&p| self.requested[p] > served[p]);
                drop(circle);
                self.pass_on(next, ctx);
            }
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Request(number) => {
                let known = &mut self.requested[from];
                *known = (*known).max(number);
                let wants = |served: &ProcessMap<u32>| number > served[from] || *self.stale;
                if self.phase == Phase::Idle && self.token.as_ref().is_some_and(wants) {
                    self.pass_on(Some(from), ctx);
                }
            }
            Message::Token(served) => {
                // A copy of an earlier token answers a request that was served.
                let due = served[ctx.me()] + 1 == self.requested[ctx.me()];
                if self.phase == Phase::Wanting && due {
                    self.enter(Arc::unwrap_or_clone(served), ctx);
                }
            }
        }
    }
}
