//! Total order by a token that goes round: the single ring of Totem.
//!
//! Only who has the token numbers messages, and sends them to all with their numbers. The token
//! carries what someone lacks, so that any holder sends it again, and how far everyone has come, so
//! that all learn what is safe. When all is safe the token rests at the first of the ring.

mod sheet;
#[cfg(test)]
mod tests;
mod token;

use std::collections::VecDeque;
use std::time::Duration;

use konklave_process::{Context, Fixed, NoRecord, Process, ProcessId};
use serde::{Deserialize, Serialize};

use self::sheet::{NO_COPY, ONE_VISIT, SILENT_LAG, TWICE};
pub use self::token::Token;
use super::number_map::NumberMap;
use super::{Indication, Note, Request, Unit};
use crate::Mistake;

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct TokenOrder {
    /// Our messages that have no number.
    backlog: VecDeque<u32>,
    /// What is here and may be asked for, or is not delivered, by its number in the order.
    bodies: NumberMap<Unit>,
    /// All numbers up to here are here.
    aru: u32,
    /// All up to here are delivered.
    delivered: u32,
    /// All up to here are at every member.
    safe: u32,
    /// What the token said when it left us last.
    last_visit: Visit,
    /// The token, while it stays here.
    held_token: Option<Token>,
    /// The token as we passed it on, until we know that it arrived.
    sent_token: Option<Token>,
    /// Whether the token rests, as far as we know.
    resting: bool,
    /// The first of the ring: for how many rounds someone has lacked the same.
    stalled: u32,
    /// Whether someone on the ring is down: then only a view change helps.
    ring_broken: bool,
    #[serde(skip)]
    settings: Fixed<Settings>,
}

/// What a member remembers of the token.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize)]
pub struct Visit {
    /// Which visit of the token it was, counted around the ring.
    serial: u32,
    /// The last number given.
    seq: u32,
    /// How far everyone had come.
    aru: u32,
    /// How many messages we sent.
    sent: u32,
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    first: ProcessId,
    successor: ProcessId,
    safe: bool,
    burst: u32,
    window: u32,
    patient: bool,
    /// How long the token takes at most, if nothing is lost.
    round: Duration,
    mistake: Option<&'static str>,
}

/// What the processes say.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// A message and its number.
    Data {
        /// Its number in the order, from 1.
        seq: u32,
        /// Whose it is, and which of its messages.
        unit: Unit,
    },
    /// The right to give numbers.
    Token(Token),
    /// To one who passed the token on again: it has come, this was the last.
    Got(u32),
    /// From the first of the ring: the token rests here.
    Resting(u32),
    /// To the first of the ring: I have something to send.
    Wake,
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// Nothing shows that the token arrived: it goes out again.
    Token,
    /// The token should have come by.
    Wake,
    /// The token has been held back for long enough.
    Hold,
}

impl TokenOrder {
    fn makes(&self, mistake: &Mistake) -> bool {
        self.settings.mistake == Some(mistake.name)
    }

    /// Takes in a message with its number.
    fn store(&mut self, seq: u32, unit: Unit, ctx: &mut Context<'_, Self>) {
        if seq <= self.aru || !self.bodies.insert(seq, unit) {
            return ctx.indicate(Indication::Note(Note::Unwanted(unit)));
        }
        ctx.indicate(Indication::Note(Note::Held(unit)));
        while self.bodies.contains(self.aru + 1) {
            self.aru += 1;
        }
        self.deliver(ctx);
    }

    fn deliver(&mut self, ctx: &mut Context<'_, Self>) {
        let due = if self.settings.safe { self.safe.min(self.aru) } else { self.aru };
        while self.delivered < due
            && let Some(&unit) = self.bodies.get(self.delivered + 1)
        {
            self.delivered += 1;
            ctx.indicate(Indication::Delivered(unit));
        }
        self.bodies.forget_upto(self.safe.min(self.delivered));
    }

    /// The token is here for the first time on this round.
    fn visit(&mut self, mut token: Token, ctx: &mut Context<'_, Self>) {
        self.resting = false;
        self.forget_sent_token(ctx);
        if !self.backlog.is_empty() {
            ctx.cancel_timer(Timer::Wake);
        }
        let (arrived, lacked) = (token.seq, !token.lacking.is_empty());
        self.repair(&mut token, ctx);
        let sent = self.send_due(&mut token, ctx);
        self.ask(&mut token);
        token.mark(ctx.me(), arrived, self.aru, self.makes(&SILENT_LAG));
        let before = if self.makes(&ONE_VISIT) { token.aru } else { self.last_visit.aru };
        self.safe = before.min(token.aru).max(self.safe);
        let still = sent == 0 && !lacked && token.lacking.is_empty() && token.aru == token.seq;
        token.idle = if still { token.idle.saturating_add(1) } else { 0 };
        let lags = token.aru < token.seq && token.aru == self.last_visit.aru;
        let counts = lags && ctx.me() == self.settings.first;
        self.stalled = if counts { self.stalled.saturating_add(1) } else { 0 };
        self.last_visit = Visit { serial: token.serial, seq: token.seq, aru: token.aru, sent };
        self.deliver(ctx);
        self.go_on(token, ctx);
    }

    /// Sends again what others lack and we have.
    fn repair(&mut self, token: &mut Token, ctx: &mut Context<'_, Self>) {
        let (bodies, mut left) = (&self.bodies, self.settings.burst);
        token.lacking.retain(|&seq| {
            let Some(&unit) = bodies.get(seq).filter(|_| left > 0) else { return true };
            left -= 1;
            ctx.indicate(Indication::Note(Note::Repaired(unit)));
            ctx.send_to_others(Message::Data { seq, unit });
            false
        });
    }

    /// Numbers and sends what is due of our own, as far as the window goes.
    fn send_due(&mut self, token: &mut Token, ctx: &mut Context<'_, Self>) -> u32 {
        token.flow = token.flow.saturating_sub(self.last_visit.sent);
        let allowed = self.settings.burst.min(self.settings.window.saturating_sub(token.flow));
        let due = (self.backlog.len() as u32).min(allowed);
        for _ in 0..due {
            let Some(number) = self.backlog.pop_front() else { break };
            token.seq += 1;
            let unit = Unit { from: ctx.me(), number };
            ctx.send_to_others(Message::Data { seq: token.seq, unit });
            self.store(token.seq, unit, ctx);
        }
        token.flow += due;
        if !self.backlog.is_empty() {
            self.set(Timer::Wake, ctx);
        }
        due
    }

    /// Asks for what is not here. What was numbered on this very round may still be on its way: the
    /// token is no slower than the messages.
    fn ask(&self, token: &mut Token) {
        let upto = if self.settings.patient { self.last_visit.seq } else { token.seq };
        let here = |seq: &u32| self.bodies.contains(*seq);
        token.ask((self.aru + 1..=upto).filter(|seq| !here(seq)));
    }

    /// Passes the token on, unless all is safe and it may rest, or nothing but repairs would go round.
    fn go_on(&mut self, token: Token, ctx: &mut Context<'_, Self>) {
        let first = ctx.me() == self.settings.first;
        if first && token.idle as usize >= 2 * ctx.group_size() {
            ctx.send_to_others(Message::Resting(token.serial));
            self.resting = true;
            self.held_token = Some(token);
        } else if first && self.stalled > 1 {
            self.held_token = Some(token);
            self.set(Timer::Hold, ctx);
        } else {
            self.pass(token, ctx);
        }
    }

    fn pass(&mut self, mut token: Token, ctx: &mut Context<'_, Self>) {
        token.serial += 1;
        ctx.send(self.settings.successor, Message::Token(token.clone()));
        if !self.makes(&NO_COPY) {
            self.sent_token = Some(token);
            self.set(Timer::Token, ctx);
        }
    }

    fn forget_sent_token(&mut self, ctx: &mut Context<'_, Self>) {
        if self.sent_token.take().is_some() {
            ctx.cancel_timer(Timer::Token);
        }
    }

    fn set(&self, timer: Timer, ctx: &mut Context<'_, Self>) {
        if self.ring_broken {
            return;
        }
        let after = match timer {
            Timer::Token | Timer::Wake => self.settings.round,
            Timer::Hold => self.settings.round * (1 << self.stalled.min(6)),
        };
        ctx.set_timer(timer, after);
    }

    /// We have something to send, and the token rests elsewhere.
    fn wake(&self, ctx: &mut Context<'_, Self>) {
        ctx.send(self.settings.first, Message::Wake);
        self.set(Timer::Wake, ctx);
    }
}

impl Process for TokenOrder {
    type Message = Message;
    type Timer = Timer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        let Request::Multicast(number) = request;
        if ctx.group_size() == 1 {
            let unit = Unit { from: ctx.me(), number };
            ctx.indicate(Indication::Note(Note::Held(unit)));
            return ctx.indicate(Indication::Delivered(unit));
        }
        let first = self.backlog.is_empty();
        self.backlog.push_back(number);
        if self.resting
            && let Some(token) = self.held_token.take()
        {
            self.visit(token, ctx);
        } else if first && self.resting {
            self.wake(ctx);
        } else if first {
            self.set(Timer::Wake, ctx);
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Data { seq, unit } => {
                // A higher number than the token had with us: it has arrived.
                if self.sent_token.as_ref().is_some_and(|copy| copy.seq < seq) {
                    self.forget_sent_token(ctx);
                }
                self.store(seq, unit, ctx);
            }
            Message::Token(token) => {
                if token.serial > self.last_visit.serial || self.makes(&TWICE) {
                    self.visit(token, ctx);
                } else {
                    ctx.send(from, Message::Got(self.last_visit.serial));
                }
            }
            Message::Got(serial) => {
                if self.sent_token.as_ref().is_some_and(|copy| copy.serial <= serial) {
                    self.forget_sent_token(ctx);
                }
            }
            Message::Resting(serial) => {
                if serial > self.last_visit.serial {
                    self.forget_sent_token(ctx);
                    self.resting = true;
                    if !self.backlog.is_empty() {
                        self.wake(ctx);
                    }
                }
            }
            Message::Wake => {
                if self.resting
                    && let Some(token) = self.held_token.take()
                {
                    self.resting = false;
                    self.pass(token, ctx);
                }
            }
        }
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Context<'_, Self>) {
        match timer {
            Timer::Token => {
                if let Some(token) = self.sent_token.clone() {
                    ctx.send(self.settings.successor, Message::Token(token));
                    self.set(Timer::Token, ctx);
                }
            }
            Timer::Wake => self.wake(ctx),
            Timer::Hold => {
                if let Some(token) = self.held_token.take() {
                    self.pass(token, ctx);
                }
            }
        }
    }

    fn on_suspect(&mut self, _: ProcessId, ctx: &mut Context<'_, Self>) {
        // A ring without one of its members goes nowhere.
        self.ring_broken = true;
        self.forget_sent_token(ctx);
        ctx.cancel_timer(Timer::Wake);
        ctx.cancel_timer(Timer::Hold);
    }
}
