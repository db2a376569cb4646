//! Raymond's mutual exclusion on a tree.
//!
//! The `holder` pointers of all processes lead along the edges of the tree to the token. A process asks its holder
//! once on behalf of all in its queue, and the token comes back the way the requests went.

mod rules;
mod sheet;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize};

use self::rules::Rules;
use super::{Fence, Indication, Request, State};

/// One process of the algorithm. At first the first of the group has the token.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Raymond {
    holder: Holder,
    /// The neighbours that want the token, and this process, each at most once.
    queue: VecDeque<ProcessId>,
    /// Whether the process has asked its holder.
    asked: bool,
    state: State,
    /// How often in a row this process has served itself before the head of its queue.
    ahead: u32,
    #[serde(skip)]
    rules: Fixed<Rules>,
}

/// The token is here, with the count of entries, or in the direction of a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[expect(missing_docs, reason = "HOLDER of the paper")]
pub enum Holder {
    Us { entries: u32 },
    Neighbour(ProcessId),
}

/// REQUEST and PRIVILEGE of the paper. The token carries the count of entries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the messages of the paper")]
pub enum Message {
    Request,
    Token { entries: u32 },
}

impl Process for Raymond {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        match request {
            Request::Acquire => {
                self.state = State::Wanted;
                self.queue.push_back(ctx.me());
                self.assign_privilege(ctx);
            }
            Request::Release => {
                self.state = State::Released;
                self.assign_privilege_on_release(ctx);
            }
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Request if self.has_newly_queued(from) => {
                ctx.unexpected("a second request of the same neighbour");
            }
            Message::Request => {
                self.queue.push_back(from);
                self.assign_privilege(ctx);
            }
            Message::Token { entries } if self.holder == Holder::Neighbour(from) => {
                self.holder = Holder::Us { entries };
                self.asked = false;
                self.assign_privilege_on_arrival(ctx);
            }
            Message::Token { .. } => ctx.unexpected("a token from where there is none"),
        }
    }
}

impl Raymond {
    /// ASSIGN_PRIVILEGE: if the token is here and free, it goes to the next in the queue.
    fn assign_privilege(&mut self, ctx: &mut Context<'_, Self>) {
        let Holder::Us { entries } = self.holder else { return self.make_request(ctx) };
        if self.state == State::Held {
            return;
        }
        match self.take_next(ctx.me()) {
            Some(next) if next == ctx.me() => self.enter(entries + 1, ctx),
            Some(next) => {
                self.holder = Holder::Neighbour(next);
                ctx.send(next, Message::Token { entries });
                self.make_request_for_rest(ctx);
            }
            None => {}
        }
    }

    /// MAKE_REQUEST: if the queue is not empty, the process asks its holder once.
    fn make_request(&mut self, ctx: &mut Context<'_, Self>) {
        if let Holder::Neighbour(holder) = self.holder
            && !self.queue.is_empty()
            && self.rules.permits_request(self.asked)
        {
            self.asked = true;
            ctx.send(holder, Message::Request);
        }
    }

    fn enter(&mut self, entries: u32, ctx: &mut Context<'_, Self>) {
        self.state = State::Held;
        self.holder = Holder::Us { entries };
        ctx.indicate(Indication::Granted { fence: Some(Fence(0, entries.into())) });
    }
}
