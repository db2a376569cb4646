//! Singhal's heuristically aided token.
//!
//! Everyone remembers of everyone whether it last asked for the token, and so may have it by now;
//! only those are asked. The token remembers the same, and where two memories meet, the fresher one
//! wins. At first the i-th of the group asks those before it: a staircase, in which of any two at
//! least one asks the other.
//!
//! As printed, requests get lost when messages are late: a request that the token has overtaken is
//! taken for old news, although it says that its sender no longer asks us. Here it is a hint, and
//! what the token knows counts from its arrival on.

mod sheet;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId, ProcessMap};
use serde::{Deserialize, Serialize};

use super::{Fence, Indication, Request};

/// One process of the algorithm. At first the first of the group has the token.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Singhal {
    /// ST of ourselves.
    state: State,
    /// ST and SN: what we know of each other process, and how often we have asked.
    known: ProcessMap<Known>,
    token: Option<Token>,
    #[serde(skip)]
    arbitration: Fixed<Arbitration>,
    #[serde(skip)]
    merges_on_arrival: Fixed<bool>,
    #[serde(skip)]
    takes_hints: Fixed<bool>,
    #[serde(skip)]
    no_echo: Fixed<bool>,
}

/// What is known of a process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Known {
    state: State,
    /// How often it has asked.
    number: u32,
}

/// The states of the book: R, E, H and N.
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

/// The right to enter, and what it knows: TST and TSN.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Token {
    known: ProcessMap<Known>,
    entries: u32,
}

/// Who gets the token next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Arbitration {
    RoundRobin,
    Smallest,
    Nearest,
}

/// What the processes say.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// I want the token, for the `number`-th time.
    Request(u32),
    /// Here it is.
    Token(Arc<Token>),
    /// Your request came late: from now on, ask me, for I do not ask you.
    Hint,
}

impl Singhal {
    fn enter(&mut self, ctx: &mut Context<'_, Self>) {
        let Some(token) = &mut self.token else { return };
        token.entries += 1;
        self.state = State::Executing;
        let fence = Fence(0, token.entries.into());
        ctx.indicate(Indication::Granted { fence: Some(fence) });
    }

    fn pass_on(&mut self, to: ProcessId, ctx: &mut Context<'_, Self>) {
        let Some(token) = self.token.take() else { return };
        self.state = State::Nothing;
        ctx.send(to, Message::Token(Arc::new(token)));
    }

    /// We and the token tell each other what we know; the fresher knowledge wins.
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

    /// The same when the token arrives; only that it need not know yet.
    fn learn(&mut self) {
        let Some(token) = &self.token else { return };
        for (ours, its) in self.known.values_mut().zip(token.known.values()) {
            if ours.number <= its.number {
                *ours = *its;
            }
        }
    }

    /// A request that we had not heard of.
    fn on_new_request(&mut self, from: ProcessId, number: u32, ctx: &mut Context<'_, Self>) {
        self.mark(from, ctx);
        self.known[from].number = number;
        if self.state == State::Holding {
            if let Some(token) = &mut self.token {
                token.known[from] = self.known[from];
            }
            self.pass_on(from, ctx);
        }
    }

    /// `from` does not ask us any more: so we ask `from` from now on, and at once if we wait.
    fn mark(&mut self, from: ProcessId, ctx: &mut Context<'_, Self>) {
        let before = std::mem::replace(&mut self.known[from].state, State::Requesting);
        let waits = self.state == State::Requesting;
        if waits && before != State::Requesting && !*self.no_echo {
            ctx.send(from, Message::Request(self.known[ctx.me()].number));
        }
    }

    /// Something old from `from`: it says no more than that `from` does not ask us.
    fn on_hint(&mut self, from: ProcessId, ctx: &mut Context<'_, Self>) {
        match self.state {
            State::Nothing | State::Requesting => self.mark(from, ctx),
            // The token must not take it for a request: let `from` ask us instead.
            State::Executing | State::Holding => ctx.send(from, Message::Hint),
        }
    }

    /// Who gets the token next, if anyone wants it.
    fn next(&self, ctx: &Context<'_, Self>) -> Option<ProcessId> {
        let me = ctx.me();
        let place = |p: ProcessId| ctx.group().place(p).unwrap_or(0);
        let mut wanting =
            self.known.after(me).filter(|p| self.known[*p].state == State::Requesting);
        match *self.arbitration {
            Arbitration::RoundRobin => wanting.next(),
            Arbitration::Smallest => wanting.min_by_key(|p| self.known[*p].number),
            Arbitration::Nearest => {
                wanting.min_by_key(|p| (place(*p).abs_diff(place(me)), place(*p)))
            }
        }
    }
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
                    self.pass_on(next, ctx);
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
                if *self.takes_hints {
                    self.on_hint(from, ctx);
                }
            }
            Message::Token(token) => {
                if self.token.is_some() {
                    return ctx.unexpected("a second token");
                }
                if self.state != State::Requesting {
                    return ctx.unexpected("a token that was not asked for");
                }
                self.token = Some(Arc::unwrap_or_clone(token));
                if *self.merges_on_arrival {
                    self.learn();
                }
                self.known[ctx.me()].state = State::Nothing;
                self.enter(ctx);
            }
        }
    }
}
