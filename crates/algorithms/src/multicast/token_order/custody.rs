//! The custody of the token: it is passed on, sent again until it has arrived, held, and woken.

use std::time::Duration;

use konklave_process::{Context, ProcessId};

use super::{Message, Timer, Token, TokenOrder};

/// The switches of a process, and its place on the ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) first: ProcessId,
    pub(super) successor: ProcessId,
    pub(super) safe: bool,
    pub(super) burst: u32,
    pub(super) window: u32,
    pub(super) patient: bool,
    /// The longest round of the token if nothing is lost.
    pub(super) round: Duration,
    pub(super) mistake: Option<&'static str>,
}

impl TokenOrder {
    pub(super) fn pass(&mut self, mut token: Token, ctx: &mut Context<'_, Self>) {
        token.serial += 1;
        ctx.send(self.settings.successor, Message::Token(token.clone()));
        if self.keeps_copy() {
            self.sent_token = Some(token);
            self.set(Timer::Token, ctx);
        }
    }

    pub(super) fn forget_sent_token(&mut self, ctx: &mut Context<'_, Self>) {
        if self.sent_token.take().is_some() {
            ctx.cancel_timer(Timer::Token);
        }
    }

    pub(super) fn set(&self, timer: Timer, ctx: &mut Context<'_, Self>) {
        if self.ring_broken {
            return;
        }
        let after = match timer {
            Timer::Token | Timer::Wake => self.settings.round,
            Timer::Hold => self.settings.round * (1 << self.stalled.min(6)),
        };
        ctx.set_timer(timer, after);
    }

    /// Wakes the token that rests at the first member: this process has a message to multicast.
    pub(super) fn wake(&self, ctx: &mut Context<'_, Self>) {
        ctx.send(self.settings.first, Message::Wake);
        self.set(Timer::Wake, ctx);
    }
}
