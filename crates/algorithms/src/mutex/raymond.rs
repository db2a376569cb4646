//! Raymond's mutual exclusion on a tree.
//!
//! Everyone knows in which direction the token is, and nobody more: `holder` pointers along the
//! edges of a tree lead to it. Who wants it asks its holder; a process asks once on behalf of all
//! in its queue, and the token comes back the way the requests went.

mod sheet;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize};

use self::sheet::{FORGETS_REST, FORGETS_SELF, NO_ASKED_FLAG, UNBOUNDED_GREEDY};
use super::{Fence, Indication, Request};
use crate::Mistake;

/// One process of the algorithm. At first the first of the group has the token.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Raymond {
    holder: Holder,
    /// Who wants the token from us: neighbours and ourselves, each at most once.
    queue: VecDeque<ProcessId>,
    /// Whether we have asked our holder.
    asked: bool,
    phase: Phase,
    /// How many wishes in a row we have served before those who queued first.
    ahead: u32,
    /// How many we may.
    #[serde(skip)]
    greedy: Fixed<u32>,
    #[serde(skip)]
    mistake: Fixed<Option<&'static str>>,
}

/// Where we stand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Phase {
    /// We want nothing.
    Idle,
    /// We are in our own queue.
    Wanting,
    /// We are inside.
    Held,
}

/// Where the token is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Holder {
    /// We have it.
    Us {
        /// How many entries there were.
        entries: u32,
    },
    /// In the direction of this neighbour.
    Neighbour(ProcessId),
}

/// What goes over an edge of the tree.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Someone on my side wants the token.
    Request,
    /// Here it is.
    Token {
        /// How many entries there were.
        entries: u32,
    },
}

impl Raymond {
    fn makes(&self, mistake: &Mistake) -> bool {
        *self.mistake == Some(mistake.name)
    }

    /// Serves the next in the queue if the token is here and free; asks for it if it is not here.
    fn step(&mut self, ctx: &mut Context<'_, Self>) {
        if let Holder::Us { entries } = self.holder
            && self.phase != Phase::Held
            && let Some(next) = self.next(ctx.me())
        {
            if next == ctx.me() {
                self.enter(entries + 1, ctx);
            } else {
                self.holder = Holder::Neighbour(next);
                ctx.send(next, Message::Token { entries });
                if self.makes(&FORGETS_REST) {
                    return;
                }
            }
        }
        self.ask(ctx);
    }

    fn ask(&mut self, ctx: &mut Context<'_, Self>) {
        if let Holder::Neighbour(holder) = self.holder
            && !self.queue.is_empty()
            && (!self.asked || self.makes(&NO_ASKED_FLAG))
        {
            self.asked = true;
            ctx.send(holder, Message::Request);
        }
    }

    /// Takes the next one to serve out of the queue: the first, or ourselves if we are greedy and
    /// have not been too often.
    fn next(&mut self, me: ProcessId) -> Option<ProcessId> {
        if self.queue.front() == Some(&me) {
            self.ahead = 0;
        } else if self.phase == Phase::Wanting && self.ahead < *self.greedy {
            self.ahead += 1;
            let place = self.queue.iter().position(|&p| p == me)?;
            return self.queue.remove(place);
        }
        self.queue.pop_front()
    }

    fn enter(&mut self, entries: u32, ctx: &mut Context<'_, Self>) {
        self.phase = Phase::Held;
        self.holder = Holder::Us { entries };
        ctx.indicate(Indication::Granted { fence: Some(Fence(0, entries.into())) });
    }

    /// Whether `from` is in the queue. That must not be, so a look at the newest will do: the queue
    /// in the middle of a star is long.
    fn has_newly_queued(&self, from: ProcessId) -> bool {
        self.queue.iter().rev().take(32).any(|&p| p == from)
    }

    fn on_token(&mut self, entries: u32, ctx: &mut Context<'_, Self>) {
        self.holder = Holder::Us { entries };
        self.asked = false;
        if self.makes(&FORGETS_SELF) && self.queue.front() == Some(&ctx.me()) {
            self.queue.pop_front();
        }
        self.step(ctx);
    }
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
                self.phase = Phase::Wanting;
                self.queue.push_back(ctx.me());
                self.step(ctx);
            }
            Request::Release => {
                self.phase = Phase::Idle;
                if !self.makes(&UNBOUNDED_GREEDY) {
                    self.step(ctx);
                }
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
                self.step(ctx);
            }
            Message::Token { entries } if self.holder == Holder::Neighbour(from) => {
                self.on_token(entries, ctx);
            }
            Message::Token { .. } => ctx.unexpected("a token from where there is none"),
        }
    }
}
