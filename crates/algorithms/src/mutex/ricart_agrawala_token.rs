//! Ricart and Agrawala's mutual exclusion by a token.
//!
//! The process with the token may enter. A process that wants the token asks all others; a process that leaves looks
//! around in a circle, from itself on, for the first whose last request was not served.

mod rules;
mod sheet;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId, ProcessMap};
use serde::{Deserialize, Serialize};

use self::rules::Rules;
use super::{Fence, Indication, Request, State};

/// One process of the algorithm. At first the first of the group has the token.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct RicartAgrawalaToken {
    state: State,
    /// The highest known request number of each process.
    requested: ProcessMap<u32>,
    /// The token: the number of the last served request of each process.
    token: Option<ProcessMap<u32>>,
    #[serde(skip)]
    rules: Fixed<Rules>,
}

/// A request carries its number, the token the number of the last served request of each process.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the messages of the paper")]
pub enum Message {
    Request(u32),
    Token(Arc<ProcessMap<u32>>),
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
                    self.requested[me] += self.rules.increment_with_token();
                    self.enter(served, ctx);
                }
                None => {
                    self.state = State::Wanted;
                    self.requested[me] += 1;
                    ctx.send_to_others(Message::Request(self.requested[me]));
                }
            },
            Request::Release => {
                self.state = State::Released;
                let Some(served) = &mut self.token else { return };
                served[me] = self.requested[me];
                let mut circle = self.requested.after(me);
                let next = circle.find(|&p| self.requested[p] > served[p]);
                drop(circle);
                if let Some(next) = next {
                    self.send_token(next, ctx);
                }
            }
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Request(number) => {
                self.requested[from] = self.requested[from].max(number);
                if self.state == State::Released
                    && let Some(served) = &self.token
                    && self.rules.is_outstanding(number, served[from])
                {
                    self.send_token(from, ctx);
                }
            }
            Message::Token(served) => {
                // A copy of an earlier token answers a request that was served.
                let is_due = served[ctx.me()] + 1 == self.requested[ctx.me()];
                if self.state == State::Wanted && is_due {
                    self.enter(Arc::unwrap_or_clone(served), ctx);
                }
            }
        }
    }
}

impl RicartAgrawalaToken {
    fn enter(&mut self, served: ProcessMap<u32>, ctx: &mut Context<'_, Self>) {
        let entries: u64 = served.values().map(|&times| u64::from(times)).sum();
        self.token = Some(served);
        self.state = State::Held;
        ctx.indicate(Indication::Granted { fence: Some(Fence(0, entries + 1)) });
    }

    fn send_token(&mut self, to: ProcessId, ctx: &mut Context<'_, Self>) {
        if let Some(token) = self.token.take() {
            ctx.send(to, Message::Token(Arc::new(token)));
        }
    }
}
