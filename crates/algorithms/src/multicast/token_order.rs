//! Total order by a token that goes round: the single ring of Totem.
//!
//! Only the holder of the token numbers messages, and sends them to all members. The token carries the
//! numbers of missing messages, so that any later holder repairs them. It also carries the number up
//! to which all members have received everything (*aru*, all received up to): from it the members
//! learn which messages are safe. If all messages are safe, the token rests at the first member of
//! the ring.

mod custody;
mod sheet;
#[cfg(test)]
mod tests;
mod token;

use std::collections::VecDeque;

use konklave_process::{Context, Fixed, NoRecord, Process, ProcessId};
use serde::{Deserialize, Serialize};

use self::custody::Settings;
pub use self::token::Token;
use super::number_map::NumberMap;
use super::{Indication, Note, Request, Unit};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct TokenOrder {
    /// The messages of this process that have no number yet.
    backlog: VecDeque<u32>,
    /// The received messages that are not safe or not delivered yet, by number.
    bodies: NumberMap<Unit>,
    /// All messages up to this number have arrived.
    aru: u32,
    /// All messages up to this number are delivered.
    delivered: u32,
    /// All messages up to this number have arrived at every member.
    safe: u32,
    /// The token's content when it last left this process.
    #[serde(rename = "left")]
    last_visit: Visit,
    /// The token, while it rests or is held here.
    #[serde(rename = "hand")]
    held_token: Option<Token>,
    /// A copy of the token as it was passed on, until it is known to have arrived.
    #[serde(rename = "copy")]
    sent_token: Option<Token>,
    /// Whether the token rests at the first member, as far as this process knows.
    resting: bool,
    /// At the first member: for how many rounds a member has lacked the same messages.
    #[serde(rename = "stuck")]
    stalled: u32,
    /// Whether a member of the ring is suspected: then only a view change helps.
    #[serde(rename = "broken")]
    ring_broken: bool,
    #[serde(skip)]
    settings: Fixed<Settings>,
}

/// A visit of the token, as a member remembers it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize)]
pub struct Visit {
    /// The serial number of the token.
    serial: u32,
    /// The last number that was given.
    seq: u32,
    /// The number up to which all members had received everything.
    aru: u32,
    /// How many messages this process sent.
    sent: u32,
}

/// The messages.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// A message and its number.
    Data {
        /// Its number in the order, from 1.
        seq: u32,
        /// The message.
        unit: Unit,
    },
    /// The right to give numbers.
    Token(Token),
    /// The answer to a repeated token: the token with this serial number has arrived.
    Got(u32),
    /// From the first member: the token rests there.
    Resting(u32),
    /// To the first member: the sender has a message to multicast.
    Wake,
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// Nothing shows that the token has arrived: it is sent again.
    Token,
    /// The token should have come by.
    Wake,
    /// The held token is passed on.
    Hold,
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
                // A number above those of the passed token: a later holder has given it.
                if self.sent_token.as_ref().is_some_and(|copy| copy.seq < seq) {
                    self.forget_sent_token(ctx);
                }
                self.store(seq, unit, ctx);
            }
            Message::Token(token) => {
                if token.serial > self.last_visit.serial || !self.recognises_copy() {
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
        // The token cannot pass a crashed member.
        self.ring_broken = true;
        self.forget_sent_token(ctx);
        ctx.cancel_timer(Timer::Wake);
        ctx.cancel_timer(Timer::Hold);
    }
}

impl TokenOrder {
    /// Takes in a numbered message.
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

    /// The token arrives, for the first time on this round.
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
        token.mark(ctx.me(), arrived, self.aru, !self.reports_lag());
        let before = if self.waits_two_visits() { self.last_visit.aru } else { token.aru };
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

    /// Sends the messages again that other members lack and this process has.
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

    /// Numbers and sends waiting messages, as many as burst and window admit.
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

    /// Asks for missing messages. The token may overtake messages of the present round. So only numbers
    /// of the last round count as missing, unless `asking` is `at-once`.
    fn ask(&self, token: &mut Token) {
        let upto = if self.settings.patient { self.last_visit.seq } else { token.seq };
        let here = |seq: &u32| self.bodies.contains(*seq);
        token.ask((self.aru + 1..=upto).filter(|seq| !here(seq)));
    }

    /// Passes the token on, lets it rest once all is safe, or holds it if it only carries repairs round.
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
}
