//! Naimi and Tréhel's mutual exclusion by path reversal.
//!
//! `last` pointers lead to the one who will have the token last. A request follows them, and all
//! on its way turn their pointers to who asked: the more someone asks, the shorter the ways to it.
//! Those who wait form a queue: each knows who is `next`.

mod sheet;
#[cfg(test)]
mod tests;

use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize};

use self::sheet::{LAST_AFTER_SEND, NO_PATH_REVERSAL, ONLY_HOLDERS_QUEUE};
use super::{Fence, Indication, Request};
use crate::Mistake;

/// One process of the algorithm. At first the first of the group has the token.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct NaimiTrehel {
    phase: Phase,
    /// Who asked last, as far as we know; none if that is ourselves: then we are the root.
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
    /// This one wants the token; whoever passes it on says so on its behalf.
    Request(ProcessId),
    /// Here it is.
    Token {
        /// How many entries there were.
        entries: u32,
    },
}

impl NaimiTrehel {
    fn makes(&self, mistake: &Mistake) -> bool {
        *self.mistake == Some(mistake.name)
    }

    fn enter(&mut self, ctx: &mut Context<'_, Self>) {
        self.phase = Phase::Held;
        let entries = self.token.map_or(1, |entries| entries + 1);
        self.token = Some(entries);
        ctx.indicate(Indication::Granted { fence: Some(Fence(0, entries.into())) });
    }

    fn pass_on(&mut self, to: ProcessId, ctx: &mut Context<'_, Self>) {
        // Only a mistaken root is without the token: what it sends is a forgery.
        let entries = self.token.take().unwrap_or_default();
        ctx.send(to, Message::Token { entries });
    }

    fn on_wish(&mut self, origin: ProcessId, ctx: &mut Context<'_, Self>) {
        let waits = match self.phase {
            Phase::Idle => false,
            Phase::Wanting => !self.makes(&ONLY_HOLDERS_QUEUE),
            Phase::Held => true,
        };
        match self.last {
            Some(last) => ctx.send(last, Message::Request(origin)),
            None if !waits => {
                self.pass_on(origin, ctx);
                if self.makes(&NO_PATH_REVERSAL) {
                    return;
                }
            }
            None if self.next.is_some() => return ctx.unexpected("a second successor"),
            None => self.next = Some(origin),
        }
        self.last = Some(origin);
    }
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
                self.phase = Phase::Wanting;
                if !self.makes(&LAST_AFTER_SEND) {
                    self.last = None;
                }
                ctx.send(last, Message::Request(ctx.me()));
            }
            Request::Release => {
                self.phase = Phase::Idle;
                if let Some(next) = self.next.take() {
                    self.pass_on(next, ctx);
                }
            }
        }
    }

    fn on_message(&mut self, _from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Request(origin) if origin == ctx.me() => {
                ctx.unexpected("our own request");
            }
            Message::Request(origin) => self.on_wish(origin, ctx),
            Message::Token { entries } if self.phase == Phase::Wanting => {
                self.token = Some(entries);
                if self.makes(&LAST_AFTER_SEND) {
                    self.last = None;
                }
                self.enter(ctx);
            }
            Message::Token { .. } => ctx.unexpected("a token that nobody asked for"),
        }
    }
}
