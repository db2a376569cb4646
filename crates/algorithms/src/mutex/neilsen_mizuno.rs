//! Neilsen and Mizuno's mutual exclusion on a directed acyclic graph.
//!
//! The edges of a tree lead to the one who will have the token last, the sink. A request follows
//! them and turns each edge on its way; the token then goes straight to who asked, past the tree.

mod sheet;
#[cfg(test)]
mod tests;

use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize};

use self::sheet::{NO_EDGE_REVERSAL, ONLY_HOLDERS_QUEUE};
use super::{Fence, Indication, Request};
use crate::Mistake;

/// One process of the algorithm. At first the first of the group has the token.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct NeilsenMizuno {
    phase: Phase,
    /// The neighbour in whose direction the last one is who asked; none if that is ourselves.
    last: Option<ProcessId>,
    /// Who gets the token after us.
    next: Option<ProcessId>,
    /// The token: how many entries there were.
    token: Option<u32>,
    #[serde(skip)]
    mistake: Fixed<Option<&'static str>>,
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
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// This one wants the token, says a neighbour.
    Request(ProcessId),
    /// Here it is, straight from who had it.
    Token {
        /// How many entries there were.
        entries: u32,
    },
}

impl NeilsenMizuno {
    fn makes(&self, mistake: &Mistake) -> bool {
        *self.mistake == Some(mistake.name)
    }

    fn enter(&mut self, entries: u32, ctx: &mut Context<'_, Self>) {
        self.phase = Phase::Held;
        self.token = Some(entries);
        ctx.indicate(Indication::Granted { fence: Some(Fence(0, entries.into())) });
    }

    fn pass_on(&mut self, to: ProcessId, ctx: &mut Context<'_, Self>) {
        // Only a mistaken sink is without the token: what it sends is a forgery.
        let entries = self.token.take().unwrap_or_default();
        ctx.send(to, Message::Token { entries });
    }

    fn on_wish(&mut self, from: ProcessId, origin: ProcessId, ctx: &mut Context<'_, Self>) {
        let waits = match self.phase {
            Phase::Idle => false,
            Phase::Wanting => !self.makes(&ONLY_HOLDERS_QUEUE),
            Phase::Held => true,
        };
        match self.last {
            Some(last) => {
                ctx.send(last, Message::Request(origin));
                if self.makes(&NO_EDGE_REVERSAL) {
                    return;
                }
            }
            None if !waits => self.pass_on(origin, ctx),
            None if self.next.is_some() => return ctx.unexpected("a second successor"),
            None => self.next = Some(origin),
        }
        self.last = Some(from);
    }
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
                    self.phase = Phase::Wanting;
                    ctx.send(last, Message::Request(ctx.me()));
                }
                (None, token) => self.enter(token.map_or(1, |entries| entries + 1), ctx),
            },
            Request::Release => {
                self.phase = Phase::Idle;
                if let Some(next) = self.next.take() {
                    self.pass_on(next, ctx);
                }
            }
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Request(origin) => self.on_wish(from, origin, ctx),
            Message::Token { entries } if self.phase == Phase::Wanting => {
                self.enter(entries + 1, ctx);
            }
            Message::Token { .. } => ctx.unexpected("a token that nobody asked for"),
        }
    }
}
