//! Singhal's heuristically aided token.
//!
//! Each process remembers of each other whether it last asked for the token, and so may have it by now; only those are
//! asked. The token remembers the same, and where both know a process, the later request number wins. At first the i-th
//! of the group asks those before it, so that of any two at least one asks the other.
//!
//! As printed, the algorithm loses requests that are late; this is a repaired one.

mod rules;
mod sheet;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId, ProcessMap};
use serde::{Deserialize, Serialize};

use self::rules::Rules;
use super::{Fence, Indication, Request};

/// One process of the algorithm. At first the first of the group has the token.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Singhal {
    /// ST of this process.
    state: State,
    /// ST and SN: the state and the request number of each other process, as far as known; and the own number.
    known: ProcessMap<Known>,
    token: Option<Token>,
    #[serde(skip)]
    rules: Fixed<Rules>,
}

/// The last known state and request number of a process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Known {
    state: State,
    number: u32,
}

/// The states of the paper: R, E, H and N.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum State {
    /// It asked, and may have the token by now.
    Requesting,
    /// It is inside.
    Executing,
    /// It has the token, unused.
    Holding,
    /// None of these.
    Nothing,
}

/// The right to enter, with TST and TSN: the state and the request number of each process.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Token {
    known: ProcessMap<Known>,
    entries: u32,
}

/// A request carries its number. A hint answers an outdated request: its receiver should ask the sender.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the messages of the paper")]
pub enum Message {
    Request(u32),
    Token(Arc<Token>),
    Hint,
}

impl Process for Singhal {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        match request {
            Request::Acquire => {
                self.known[me].number += 1;
                if self.token.is_some() {
                    return self.enter(ctx);
                }
                self.state = State::Requesting;
                let number = self.known[me].number;
                for (p, _) in self.known.iter().filter(|(_, k)| k.state == State::Requesting) {
                    ctx.send(p, Message::Request(number));
                }
            }
            Request::Release => {
                self.state = State::Holding;
                if let Some(token) = &mut self.token {
                    token.known[me] = self.known[me];
                }
                self.merge();
                if let Some(next) = self.next(ctx) {
                    self.send_token(next, ctx);
                }
            }
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Request(number) if number > self.known[from].number => {
                self.on_new_request(from, number, ctx);
            }
            Message::Request(_) | Message::Hint => {
                self.on_outdated(from, ctx);
            }
            Message::Token(token) => {
                if self.token.is_some() {
                    return ctx.unexpected("a second token");
                }
                if self.state != State::Requesting {
                    return ctx.unexpected("a token that was not asked for");
                }
                self.token = Some(Arc::unwrap_or_clone(token));
                self.learn_on_arrival();
                self.known[ctx.me()].state = State::Nothing;
                self.enter(ctx);
            }
        }
    }
}

impl Singhal {
    fn enter(&mut self, ctx: &mut Context<'_, Self>) {
        let Some(token) = &mut self.token else { return };
        token.entries += 1;
        self.state = State::Executing;
        let fence = Fence(0, token.entries.into());
        ctx.indicate(Indication::Granted { fence: Some(fence) });
    }

    fn send_token(&mut self, to: ProcessId, ctx: &mut Context<'_, Self>) {
        let Some(token) = self.token.take() else { return };
        self.state = State::Nothing;
        ctx.send(to, Message::Token(Arc::new(token)));
    }

    /// The process and the token exchange their knowledge; the later request number wins.
    fn merge(&mut self) {
        let Some(token) = &mut self.token else { return };
        for (ours, its) in self.known.values_mut().zip(token.known.values_mut()) {
            if ours.number > its.number {
                *its = *ours;
            } else {
                *ours = *its;
            }
        }
    }

    /// The process takes over the knowledge of the token where that is at least as late.
    fn learn(&mut self) {
        let Some(token) = &self.token else { return };
        for (ours, its) in self.known.values_mut().zip(token.known.values()) {
            if ours.number <= its.number {
                *ours = *its;
            }
        }
    }

    /// A request with a number that was not known.
    fn on_new_request(&mut self, from: ProcessId, number: u32, ctx: &mut Context<'_, Self>) {
        self.mark(from, ctx);
        self.known[from].number = number;
        if self.state == State::Holding {
            if let Some(token) = &mut self.token {
                token.known[from] = self.known[from];
            }
            self.send_token(from, ctx);
        }
    }

    /// `from` does not ask this process any more: so this process asks `from` from now on, and at once if it waits.
    fn mark(&mut self, from: ProcessId, ctx: &mut Context<'_, Self>) {
        let before = std::mem::replace(&mut self.known[from].state, State::Requesting);
        let waits = self.state == State::Requesting;
        if waits && before != State::Requesting {
            self.echo(from, ctx);
        }
    }

    /// `from` does not ask this process any more.
    fn on_hint(&mut self, from: ProcessId, ctx: &mut Context<'_, Self>) {
        match self.state {
            State::Nothing | State::Requesting => self.mark(from, ctx),
            // The token must not take it for a request: let `from` ask this process instead.
            State::Executing | State::Holding => ctx.send(from, Message::Hint),
        }
    }
}
