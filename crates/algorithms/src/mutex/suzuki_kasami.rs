//! Suzuki and Kasami's mutual exclusion by a broadcast token.
//!
//! The process with the token may enter. A process that wants the token asks all others; the token carries the number
//! of the last served request of each process, and the queue of those that wait.

mod rules;
mod sheet;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use konklave_process::{
    Context, Fixed, NoRecord, NoTimer, Process, ProcessId, ProcessMap, ProcessSet,
};
use serde::{Deserialize, Serialize};

use self::rules::Rules;
use super::{Fence, Indication, Request, State};

/// One process of the algorithm. At first the first of the group has the token.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct SuzukiKasami {
    state: State,
    /// RN: the highest known request number of each process.
    requested: ProcessMap<u32>,
    token: Option<Token>,
    #[serde(skip)]
    rules: Fixed<Rules>,
}

/// The right to enter.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Token {
    /// LN: the number of the last served request of each process.
    served: ProcessMap<u32>,
    /// Q: the processes that wait.
    queue: VecDeque<ProcessId>,
}

/// A request carries its number.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "REQUEST and PRIVILEGE of the paper")]
pub enum Message {
    Request(u32),
    Token(Arc<Token>),
}

impl Process for SuzukiKasami {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        match request {
            Request::Acquire if self.token.is_some() => {
                self.requested[me] += self.rules.increment_with_token();
                self.enter(ctx);
            }
            Request::Acquire => {
                self.state = State::Wanted;
                self.requested[me] += 1;
                ctx.send_to_others(Message::Request(self.requested[me]));
            }
            Request::Release => {
                self.state = State::Released;
                let token = self.token.as_mut().expect("only the process with the token leaves");
                token.served[me] = self.requested[me];
                let queued: ProcessSet = token.queue.iter().copied().collect();
                // From our successor on, so that every process has its turn, whatever the ids.
                for p in self.requested.after(me) {
                    if self.requested[p] > token.served[p] && !queued.contains(p) {
                        token.queue.push_back(p);
                    }
                }
                if let Some(next) = token.queue.pop_front() {
                    self.send_token(next, ctx);
                }
            }
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Request(number) => {
                let requester = self.rules.requester(from, ctx.me());
                self.requested[requester] = self.requested[requester].max(number);
                let requested = self.requested[requester];
                if self.state == State::Released
                    && let Some(token) = &self.token
                    && self.rules.is_outstanding(requested, token.served[requester])
                {
                    self.send_token(from, ctx);
                }
            }
            Message::Token(token) => {
                // A copy of an earlier token answers a request that was served.
                let is_due = token.served[ctx.me()] + 1 == self.requested[ctx.me()];
                if self.state == State::Wanted && is_due {
                    self.token = Some(Arc::unwrap_or_clone(token));
                    self.enter(ctx);
                }
            }
        }
    }
}

impl SuzukiKasami {
    fn enter(&mut self, ctx: &mut Context<'_, Self>) {
        let token = self.token.as_ref().expect("only the process with the token enters");
        let entries: u64 = token.served.values().map(|&times| u64::from(times)).sum();
        self.state = State::Held;
        ctx.indicate(Indication::Granted { fence: Some(Fence(0, entries + 1)) });
    }

    fn send_token(&mut self, to: ProcessId, ctx: &mut Context<'_, Self>) {
        let token = self.token.take().expect("only the process with the token passes it on");
        ctx.send(to, Message::Token(Arc::new(token)));
    }
}
