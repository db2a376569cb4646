//! Mutual exclusion by a token that goes round a ring.
//!
//! Whoever has the token may enter once, and passes it on when it leaves. In `mode=perpetual` the
//! token never rests, as in the lectures. In `mode=parking` it stops after a round in which nobody
//! wanted it, and who wants it sends a wake-up call after it.
//!
//! Crashed processes are skipped. Whenever someone crashes, the token may be lost with it, so the
//! survivor with the highest id begins a new epoch (`regeneration.rs`). With `patience` above 0 it
//! also does so when someone has waited too long: that may be wrong, and does no harm.

mod regeneration;
mod sheet;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use konklave_process::{Context, Fixed, NoRecord, Process, ProcessId};
use serde::{Deserialize, Serialize};

use super::{Fence, Indication, Request};
pub use regeneration::Probing;

/// One process of the algorithm. At first the first of the group has the token.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct TokenRing {
    successor: ProcessId,
    state: State,
    token: Option<Token>,
    /// Whether somebody's wake-up call came by since the token did.
    called: bool,
    /// The epoch we have joined. Those that the i-th of the group begins are i modulo n.
    epoch: u32,
    /// Whether our token must not be used before all have joined the epoch.
    frozen: bool,
    /// If it is us who begin the epoch: who has not joined yet.
    probing: Option<Box<Probing>>,
    /// Who has crashed, lowest id first.
    crashed: Vec<ProcessId>,
    /// How often we have asked whether the token is lost since we want it.
    alarms: u32,
    #[serde(skip)]
    parks: Fixed<bool>,
    /// How long we wait before we ask whether the token is lost.
    #[serde(skip)]
    patience: Fixed<Option<Duration>>,
    #[serde(skip)]
    keeps_token: Fixed<bool>,
    #[serde(skip)]
    no_epoch: Fixed<bool>,
}

/// The states of a lock, and one more.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum State {
    /// Outside.
    Released,
    /// Waiting for the token.
    Wanted,
    /// Inside.
    Held,
    /// Restarted after a crash: the others go on without this process.
    Out,
}

/// The right to enter, once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Token {
    /// How often someone has entered in this token's time.
    entries: u32,
    /// How many did not want it since someone did.
    idle: u32,
}

/// What goes round the ring; and, from [`Probe`](Message::Probe) on, what is said past it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Enter or pass it on.
    Token {
        /// The epoch it belongs to.
        epoch: u32,
        /// The token.
        token: Token,
    },
    /// Somebody wants the token.
    Wake {
        /// How many more shall hear that.
        hops: u32,
    },
    /// An epoch begins: tokens of earlier ones are void. Do you have the token?
    Probe {
        /// The epoch.
        epoch: u32,
        /// Who has crashed.
        crashed: Arc<[ProcessId]>,
    },
    /// I have joined the epoch.
    Report {
        /// The epoch.
        epoch: u32,
        /// Whether I have the token.
        token: bool,
    },
    /// All have joined: the token that you have belongs to this epoch.
    Resume {
        /// The epoch.
        epoch: u32,
    },
    /// I have joined a later one.
    Outdated {
        /// The later epoch.
        epoch: u32,
    },
    /// I have waited long: is the token lost?
    Alarm,
    /// I have crashed, though I am up again.
    Gone,
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// The token should have come.
    Patience,
}

impl TokenRing {
    /// The token is here.
    fn use_token(&mut self, token: Token, ctx: &mut Context<'_, Self>) {
        let called = std::mem::take(&mut self.called);
        let idle = if called { 0 } else { token.idle + 1 };
        self.token = Some(Token { idle: if *self.parks { idle } else { 0 }, ..token });
        match self.state {
            State::Wanted => self.enter(ctx),
            State::Released if *self.parks && idle as usize >= ctx.group_size() => {}
            State::Released => self.pass_on(ctx),
            State::Held | State::Out => ctx.unexpected("a second token"),
        }
    }

    fn enter(&mut self, ctx: &mut Context<'_, Self>) {
        let Some(token) = self.token.as_mut().filter(|_| !self.frozen) else { return };
        token.entries += 1;
        token.idle = 0;
        self.state = State::Held;
        if self.patience.is_some() {
            self.alarms = 0;
            ctx.cancel_timer(Timer::Patience);
        }
        let fence = Fence(self.epoch.into(), token.entries.into());
        ctx.indicate(Indication::Granted { fence: Some(fence) });
    }

    /// Waits for the token, if we do not wait for ever. An epoch takes time to begin, and who is
    /// inside keeps the token that long: if each wait were as short, epoch would follow epoch and
    /// the token never get anywhere.
    fn be_patient(&self, ctx: &mut Context<'_, Self>) {
        const MOST_DOUBLED: u32 = 16;
        if let Some(patience) = *self.patience {
            let factor = 1 << self.alarms.min(MOST_DOUBLED);
            ctx.set_timer(Timer::Patience, patience.saturating_mul(factor));
        }
    }

    fn pass_on(&mut self, ctx: &mut Context<'_, Self>) {
        if self.frozen || self.successor == ctx.me() {
            return;
        }
        let Some(token) = self.token.take() else { return };
        let epoch = if *self.no_epoch { 0 } else { self.epoch };
        ctx.send(self.successor, Message::Token { epoch, token });
    }

    /// Wakes the token up, wherever it rests.
    fn call(&self, ctx: &mut Context<'_, Self>) {
        if *self.parks && self.successor != ctx.me() {
            ctx.send(self.successor, Message::Wake { hops: ctx.group_size() as u32 - 2 });
        }
    }

    fn on_wake(&mut self, hops: u32, ctx: &mut Context<'_, Self>) {
        match (self.state, &mut self.token) {
            (State::Released, Some(token)) => {
                token.idle = 0;
                self.pass_on(ctx);
            }
            (State::Released, None) => {
                self.called = true;
                if hops > 0 && self.successor != ctx.me() {
                    ctx.send(self.successor, Message::Wake { hops: hops - 1 });
                }
            }
            // Once we have had our turn, the token makes a whole round.
            (State::Wanted | State::Held, _) => self.called = *self.keeps_token,
            (State::Out, _) => {}
        }
    }
}

impl Process for TokenRing {
    type Message = Message;
    type Timer = Timer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_start(&mut self, ctx: &mut Context<'_, Self>) {
        if !*self.parks {
            self.pass_on(ctx);
        }
    }

    fn on_recover(&mut self, _saved: Option<NoRecord>, ctx: &mut Context<'_, Self>) {
        // We know neither the epoch nor whether the token was here: nobody must count on us.
        self.state = State::Out;
        self.token = None;
        ctx.send_to_others(Message::Gone);
    }

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        match request {
            Request::Acquire if self.state == State::Out => {}
            Request::Acquire => {
                self.state = State::Wanted;
                self.be_patient(ctx);
                if self.token.is_some() {
                    self.enter(ctx);
                } else {
                    self.call(ctx);
                }
            }
            Request::Release => {
                self.state = State::Released;
                if !*self.keeps_token || std::mem::take(&mut self.called) {
                    self.pass_on(ctx);
                }
            }
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        // The last words of one who has crashed: the epoch that its crash brings about is right
        // without them.
        if self.state == State::Out || self.has_crashed(from) {
            return;
        }
        match message {
            Message::Token { epoch, token } => {
                if epoch < self.epoch && !*self.no_epoch {
                    return;
                }
                self.join(epoch);
                if self.token.is_some() {
                    return ctx.unexpected("a second token");
                }
                self.use_token(token, ctx);
            }
            Message::Wake { hops } => self.on_wake(hops, ctx),
            Message::Probe { epoch, crashed } => self.on_probe(from, epoch, &crashed, ctx),
            Message::Report { epoch, token } => self.on_report(from, epoch, token, ctx),
            Message::Resume { epoch } if epoch == self.epoch => self.resume(ctx),
            Message::Resume { .. } => {}
            Message::Outdated { epoch } => self.on_outdated(epoch, ctx),
            Message::Alarm => {
                if self.is_coordinator(ctx) {
                    self.begin_epoch(ctx);
                }
            }
            Message::Gone => self.on_crash_of(from, ctx),
        }
    }

    fn on_timer(&mut self, Timer::Patience: Timer, ctx: &mut Context<'_, Self>) {
        self.alarms = self.alarms.saturating_add(1);
        self.be_patient(ctx);
        if self.is_coordinator(ctx) {
            self.begin_epoch(ctx);
        } else {
            ctx.send(self.coordinator(ctx), Message::Alarm);
        }
    }

    fn on_suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        if self.state != State::Out {
            self.on_crash_of(peer, ctx);
        }
    }
}
