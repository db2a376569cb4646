//! Mutual exclusion by a central coordinator.
//!
//! Everyone asks one process, the coordinator, which lets them in one after the other in the order
//! in which their requests arrive. The coordinator may be a client itself.

mod sheet;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId, ProcessMap};
use serde::{Deserialize, Serialize};

use super::{Fence, Indication, Request};

/// One process; the first of the group is the coordinator.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Central {
    #[serde(skip)]
    coordinator: Fixed<ProcessId>,
    #[serde(skip)]
    unnumbered: Fixed<bool>,
    phase: Phase,
    /// The number of our latest request.
    request: u32,
    /// At the coordinator: who may be inside, with which request.
    holder: Option<(ProcessId, u32)>,
    /// At the coordinator: who waits.
    queue: VecDeque<(ProcessId, u32)>,
    /// At the coordinator: how many grants there were.
    grants: u32,
    /// At the coordinator: the latest request of each client, to know a duplicate.
    latest: ProcessMap<u32>,
}

/// Where a client stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Phase {
    /// It wants nothing.
    Idle,
    /// It has asked.
    Wanting,
    /// It is inside.
    Held,
}

/// What is said between a client and the coordinator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Let me in, says a client for the `number`-th time.
    Request(u32),
    /// Go in, says the coordinator.
    Grant {
        /// The number of the request.
        request: u32,
        /// The number of the grant.
        fence: u32,
    },
    /// I left, says a client.
    Release(u32),
}

impl Central {
    /// Tells the coordinator, which may be ourselves: that costs no message.
    fn tell(&mut self, message: Message, ctx: &mut Context<'_, Self>) {
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
                // A duplicate of an earlier release must not free the lock of the present holder.
                if self.holder == Some((client, request)) || *self.unnumbered {
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
        self.phase = Phase::Held;
        ctx.indicate(Indication::Granted { fence: Some(Fence(0, fence.into())) });
    }
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
                self.phase = Phase::Wanting;
                self.request += 1;
                self.tell(Message::Request(self.request), ctx);
            }
            Request::Release => {
                self.phase = Phase::Idle;
                self.tell(Message::Release(self.request), ctx);
            }
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Grant { request, fence } => {
                if self.phase == Phase::Wanting && request == self.request {
                    self.enter(fence, ctx);
                }
            }
            Message::Request(_) | Message::Release(_) if ctx.me() == *self.coordinator => {
                self.coordinate(from, message, ctx);
            }
            Message::Request(_) | Message::Release(_) => {
                ctx.unexpected("a wish for the coordinator");
            }
        }
    }
}
