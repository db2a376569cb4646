//! Mutual exclusion by a central coordinator.
//!
//! Every process asks one process, the coordinator, which grants the requests one after the other in the order in which
//! they arrive. The coordinator may be a client itself.

mod rules;
mod sheet;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId, ProcessMap};
use serde::{Deserialize, Serialize};

use self::rules::Rules;
use super::{Fence, Indication, Request, State};

/// One process; the first of the group is the coordinator.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Central {
    #[serde(skip)]
    coordinator: Fixed<ProcessId>,
    #[serde(skip)]
    rules: Fixed<Rules>,
    state: State,
    /// The number of the latest request of this process.
    request: u32,
    /// At the coordinator: the client whose request is granted, and its number.
    holder: Option<(ProcessId, u32)>,
    /// At the coordinator: the clients that wait, and the numbers of their requests.
    queue: VecDeque<(ProcessId, u32)>,
    /// At the coordinator: the count of grants.
    grants: u32,
    /// At the coordinator: the latest request of each client, which tells duplicates.
    latest: ProcessMap<u32>,
}

/// A client numbers its requests; grant and release name the request they are about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the messages of the textbook")]
pub enum Message {
    Request(u32),
    Grant { request: u32, fence: u32 },
    Release(u32),
}

impl Process for Central {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        match request {
            Request::Acquire => {
                self.state = State::Wanted;
                self.request += 1;
                self.send_to_coordinator(Message::Request(self.request), ctx);
            }
            Request::Release => {
                self.state = State::Released;
                self.send_to_coordinator(Message::Release(self.request), ctx);
            }
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Grant { request, fence } => {
                if self.state == State::Wanted && request == self.request {
                    self.enter(fence, ctx);
                }
            }
            Message::Request(_) | Message::Release(_) if ctx.me() == *self.coordinator => {
                self.coordinate(from, message, ctx);
            }
            Message::Request(_) | Message::Release(_) => {
                ctx.unexpected("a request for the coordinator");
            }
        }
    }
}

impl Central {
    /// Sends a message to the coordinator; if that is this process, it costs nothing.
    fn send_to_coordinator(&mut self, message: Message, ctx: &mut Context<'_, Self>) {
        if ctx.me() == *self.coordinator {
            self.coordinate(ctx.me(), message, ctx);
        } else {
            ctx.send(*self.coordinator, message);
        }
    }

    fn coordinate(&mut self, client: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Request(request) => {
                if request <= self.latest[client] {
                    return;
                }
                self.latest[client] = request;
                self.queue.push_back((client, request));
                if self.holder.is_none() {
                    self.grant_next(ctx);
                }
            }
            Message::Release(request) => {
                if self.rules.ends_grant((client, request), self.holder) {
                    self.grant_next(ctx);
                }
            }
            Message::Grant { .. } => ctx.unexpected("a grant to the coordinator"),
        }
    }

    fn grant_next(&mut self, ctx: &mut Context<'_, Self>) {
        self.holder = self.queue.pop_front();
        let Some((client, request)) = self.holder else { return };
        self.grants += 1;
        if client == ctx.me() {
            self.enter(self.grants, ctx);
        } else {
            ctx.send(client, Message::Grant { request, fence: self.grants });
        }
    }

    fn enter(&mut self, fence: u32, ctx: &mut Context<'_, Self>) {
        self.state = State::Held;
        ctx.indicate(Indication::Granted { fence: Some(Fence(0, fence.into())) });
    }
}
