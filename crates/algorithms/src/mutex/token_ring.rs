//! Mutual exclusion by a token that goes round a ring.
//!
//! The process with the token may enter once, and passes it on when it leaves. In `mode=perpetual` the token never
//! rests, as in the lectures. In `mode=parking` it rests after a round in which no process wanted it, and a process that
//! wants it sends a wake-up call round the ring.
//!
//! The ring skips crashed processes. The token may be lost with a crashed process, so the survivor with the highest id
//! begins a new epoch (`token_ring/regeneration.rs`). With `patience` above 0 it also does so after a long wait of a
//! process: that may be unnecessary, and does no harm.

mod regeneration;
mod rules;
mod sheet;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use konklave_process::{Context, Fixed, NoRecord, Process, ProcessId};
use serde::{Deserialize, Serialize};

use self::rules::Rules;
use super::{Fence, Indication, Request};
pub use regeneration::Probing;

/// One process of the algorithm. At first the first of the group has the token.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct TokenRing {
    successor: ProcessId,
    state: State,
    token: Option<Token>,
    /// Whether a wake-up call has arrived since the token was last here.
    called: bool,
    /// The joined epoch. The i-th process of the group begins the epochs that are i modulo n.
    epoch: u32,
    /// Whether the token here must not be used before all processes have joined the epoch.
    frozen: bool,
    /// If this process begins the epoch: the processes that have not joined it.
    probing: Option<Box<Probing>>,
    /// The crashed processes, lowest id first.
    crashed: Vec<ProcessId>,
    /// The number of questions for a lost token since the process wants it.
    alarms: u32,
    #[serde(skip)]
    rules: Fixed<Rules>,
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
    /// Restarted after a crash: the other processes continue without this one.
    Out,
}

/// The right to enter, once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Token {
    /// The number of entries with this token.
    entries: u32,
    /// The number of processes that did not want it since one did.
    idle: u32,
}

/// Token and wake-up call go round the ring; the others, from [`Probe`](Message::Probe) on, go directly.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// The token.
    Token {
        /// Its epoch.
        epoch: u32,
        /// The token.
        token: Token,
    },
    /// A process wants the token.
    Wake {
        /// The number of further hops.
        hops: u32,
    },
    /// An epoch begins and makes tokens of earlier ones void. Asks whether the receiver has the token.
    Probe {
        /// The epoch.
        epoch: u32,
        /// The crashed processes.
        crashed: Arc<[ProcessId]>,
    },
    /// The sender has joined the epoch.
    Report {
        /// The epoch.
        epoch: u32,
        /// Whether it has the token.
        token: bool,
    },
    /// All processes have joined: the token of the receiver belongs to this epoch.
    Resume {
        /// The epoch.
        epoch: u32,
    },
    /// The sender has joined a later epoch.
    Outdated {
        /// The later epoch.
        epoch: u32,
    },
    /// The sender has waited long: asks whether the token is lost.
    Alarm,
    /// The sender has crashed and restarted.
    Gone,
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// The token is overdue.
    Patience,
}

impl Process for TokenRing {
    type Message = Message;
    type Timer = Timer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_start(&mut self, ctx: &mut Context<'_, Self>) {
        if !self.rules.parks {
            self.pass_on(ctx);
        }
    }

    fn on_recover(&mut self, _saved: Option<NoRecord>, ctx: &mut Context<'_, Self>) {
        // The process knows neither the epoch nor whether the token was here: no other process must rely on it.
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
                self.pass_on_after_release(ctx);
            }
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        // The epoch that follows a crash needs no message of the crashed process.
        if self.state == State::Out || self.has_crashed(from) {
            return;
        }
        match message {
            Message::Token { epoch, token } => {
                if self.rules.is_void(epoch, self.epoch) {
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

impl TokenRing {
    /// The token is here.
    fn use_token(&mut self, token: Token, ctx: &mut Context<'_, Self>) {
        let called = std::mem::take(&mut self.called);
        let idle = if called { 0 } else { token.idle + 1 };
        self.token = Some(Token { idle: if self.rules.parks { idle } else { 0 }, ..token });
        match self.state {
            State::Wanted => self.enter(ctx),
            State::Released if self.rules.rests(idle, ctx.group_size()) => {}
            State::Released => self.pass_on(ctx),
            State::Held | State::Out => ctx.unexpected("a second token"),
        }
    }

    fn enter(&mut self, ctx: &mut Context<'_, Self>) {
        let Some(token) = self.token.as_mut().filter(|_| !self.frozen) else { return };
        token.entries += 1;
        token.idle = 0;
        self.state = State::Held;
        if self.rules.patience.is_some() {
            self.alarms = 0;
            ctx.cancel_timer(Timer::Patience);
        }
        let fence = Fence(self.epoch.into(), token.entries.into());
        ctx.indicate(Indication::Granted { fence: Some(fence) });
    }

    fn pass_on(&mut self, ctx: &mut Context<'_, Self>) {
        if self.frozen || self.successor == ctx.me() {
            return;
        }
        let Some(token) = self.token.take() else { return };
        let epoch = self.rules.epoch_of_token(self.epoch);
        ctx.send(self.successor, Message::Token { epoch, token });
    }

    /// Wakes the token up, where it rests.
    fn call(&self, ctx: &mut Context<'_, Self>) {
        if self.rules.parks && self.successor != ctx.me() {
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
            (State::Wanted | State::Held, _) => self.called = self.rules.remembers_call(),
            (State::Out, _) => {}
        }
    }
}
