//! Naimi and Tréhel's mutual exclusion by path reversal.
//!
//! The `last` pointers lead to the process that will have the token last. A request follows them, and every process on
//! its way turns its pointer to the requester; the waiting processes form a queue, linked by `next`.

mod rules;
mod sheet;
#[cfg(test)]
mod tests;

use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize};

use self::rules::Rules;
use super::{Fence, Indication, Request, State};

/// One process of the algorithm. At first the first of the group has the token.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct NaimiTrehel {
    state: State,
    /// The last known requester; none if that is this process, the root.
    last: Option<ProcessId>,
    /// The process that gets the token after this one.
    next: Option<ProcessId>,
    /// The token: the count of entries.
    token: Option<u32>,
    #[serde(skip)]
    rules: Fixed<Rules>,
}

/// A request names its requester: the processes on its way pass it on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(
    missing_docs,
    reason = "the messages of the paper; the token carries the count of entries"
)]
pub enum Message {
    Request(ProcessId),
    Token { entries: u32 },
}

impl Process for NaimiTrehel {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        match request {
            Request::Acquire => {
                let Some(last) = self.last else { return self.enter(ctx) };
                self.state = State::Wanted;
                self.last = self.rules.last_of_requester(last);
                ctx.send(last, Message::Request(ctx.me()));
            }
            Request::Release => {
                self.state = State::Released;
                if let Some(next) = self.next.take() {
                    self.send_token(next, ctx);
                }
            }
        }
    }

    fn on_message(&mut self, _from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Request(requester) if requester == ctx.me() => {
                ctx.unexpected("our own request");
            }
            Message::Request(requester) => {
                match self.last {
                    Some(last) => ctx.send(last, Message::Request(requester)),
                    None if !self.rules.queues_requests(self.state) => {
                        self.send_token(requester, ctx);
                    }
                    None if self.next.is_some() => return ctx.unexpected("a second successor"),
                    None => self.next = Some(requester),
                }
                self.reverse_path(requester);
            }
            Message::Token { entries } if self.state == State::Wanted => {
                self.token = Some(entries);
                self.last = self.rules.last_at_token(self.last);
                self.enter(ctx);
            }
            Message::Token { .. } => ctx.unexpected("a token that nobody asked for"),
        }
    }
}

impl NaimiTrehel {
    fn enter(&mut self, ctx: &mut Context<'_, Self>) {
        self.state = State::Held;
        let entries = self.token.map_or(1, |entries| entries + 1);
        self.token = Some(entries);
        ctx.indicate(Indication::Granted { fence: Some(Fence(0, entries.into())) });
    }

    fn send_token(&mut self, to: ProcessId, ctx: &mut Context<'_, Self>) {
        // Only a mistaken root is without the token: what it sends is a forgery.
        let entries = self.token.take().unwrap_or_default();
        ctx.send(to, Message::Token { entries });
    }
}
