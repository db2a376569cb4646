//! Neilsen and Mizuno's mutual exclusion on a directed acyclic graph.
//!
//! The `last` edges of a tree lead to the process that will have the token last, the sink. A request follows them and
//! turns each edge on its way; the token then goes straight to the requester, past the tree.

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
pub struct NeilsenMizuno {
    state: State,
    /// The neighbour in the direction of the last requester; none if that is this process, the sink.
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

impl Process for NeilsenMizuno {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        match request {
            Request::Acquire => match (self.last.take(), self.token) {
                (Some(last), _) => {
                    self.state = State::Wanted;
                    ctx.send(last, Message::Request(ctx.me()));
                }
                (None, token) => self.enter(token.map_or(1, |entries| entries + 1), ctx),
            },
            Request::Release => {
                self.state = State::Released;
                if let Some(next) = self.next.take() {
                    self.send_token(next, ctx);
                }
            }
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Request(requester) => {
                self.last = match self.last {
                    Some(last) => {
                        ctx.send(last, Message::Request(requester));
                        self.rules.reversed(last, from)
                    }
                    None if !self.rules.queues_requests(self.state) => {
                        self.send_token(requester, ctx);
                        Some(from)
                    }
                    None if self.next.is_some() => return ctx.unexpected("a second successor"),
                    None => {
                        self.next = Some(requester);
                        Some(from)
                    }
                };
            }
            Message::Token { entries } if self.state == State::Wanted => {
                self.enter(entries + 1, ctx);
            }
            Message::Token { .. } => ctx.unexpected("a token that nobody asked for"),
        }
    }
}

impl NeilsenMizuno {
    fn enter(&mut self, entries: u32, ctx: &mut Context<'_, Self>) {
        self.state = State::Held;
        self.token = Some(entries);
        ctx.indicate(Indication::Granted { fence: Some(Fence(0, entries.into())) });
    }

    fn send_token(&mut self, to: ProcessId, ctx: &mut Context<'_, Self>) {
        // Only a mistaken sink is without the token: what it sends is a forgery.
        let entries = self.token.take().unwrap_or_default();
        ctx.send(to, Message::Token { entries });
    }
}
