//! The end of a stream: heartbeats that become rarer, then a stop that is repeated until everyone
//! has said that it has all.
//!
//! However often a signal is repeated, all of its copies can get lost. Only an answer tells that it
//! has arrived, so a stop has one; whoever does not answer is asked for ever, at the rate of the
//! rarest heartbeats, unless the detector takes it for crashed.

use konklave_process::{Context, ProcessId, ProcessSet};

use super::sheet::NO_HEARTBEAT;
use super::{Message, Nack, ROUND_TRIP, Settings, Timer};

/// From one stop to the next, in T, while they are frequent: an answer comes in between.
pub(super) const PATIENCE: u32 = ROUND_TRIP + 1;

impl Nack {
    /// There is a new message: what follows it begins anew.
    pub(super) fn begin_beats(&mut self, ctx: &mut Context<'_, Self>) {
        self.beats = 0;
        if self.settings.stops > 0 {
            self.unanswered = ctx.others().collect();
        }
        self.next_beat(ctx);
    }

    /// Whether all heartbeats are over.
    fn stopping(&self) -> bool {
        self.sent > 0 && self.beats >= self.settings.beats
    }

    /// Whom a stop would be sent.
    fn awaited(&self) -> ProcessSet {
        self.unanswered.difference(&self.suspected)
    }

    pub(super) fn next_beat(&self, ctx: &mut Context<'_, Self>) {
        let Settings { heartbeat, rarest, unit, beats, stops, .. } = *self.settings;
        let over = self.stopping() && self.awaited().is_empty();
        if over || ctx.group_size() == 1 || self.makes(&NO_HEARTBEAT) {
            return;
        }
        let wait = if self.beats <= beats {
            heartbeat.saturating_mul(1 << self.beats.min(20)).min(rarest)
        } else if self.beats < beats.saturating_add(stops) {
            PATIENCE
        } else {
            rarest.max(PATIENCE)
        };
        ctx.set_timer(Timer::Beat, unit * wait);
    }

    /// Says how far the stream goes: to all, or that it ends there, to those who have not answered.
    pub(super) fn beat(&mut self, ctx: &mut Context<'_, Self>) {
        if self.stopping() {
            for p in self.awaited().iter() {
                ctx.send(p, Message::Stop { life: self.life, last: self.sent });
            }
        } else {
            ctx.send_to_others(Message::Heartbeat { life: self.life, high: self.sent });
        }
        let most = self.settings.beats.saturating_add(self.settings.stops);
        self.beats = (self.beats + 1).min(most);
        self.next_beat(ctx);
    }

    /// The stream of `from` ends here: who has all of it says so, the others ask first.
    pub(super) fn on_stop(
        &mut self,
        from: ProcessId,
        life: u32,
        last: u32,
        ctx: &mut Context<'_, Self>,
    ) {
        self.on_heartbeat(from, life, last, ctx);
        if self.has_complete(from, life) {
            ctx.send(from, Message::Whole { life, last });
        }
    }

    pub(super) fn on_whole(
        &mut self,
        from: ProcessId,
        life: u32,
        last: u32,
        ctx: &mut Context<'_, Self>,
    ) {
        if life == self.life && last == self.sent && self.unanswered.remove(from) {
            self.end_beats(ctx);
        }
    }

    /// Nobody waits for one that has crashed.
    pub(super) fn give_up(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        if self.settings.stops > 0 && self.suspected.insert(peer) {
            self.end_beats(ctx);
        }
    }

    /// Someone is back, who may lack the end.
    pub(super) fn take_back(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        let silent = self.stopping() && self.awaited().is_empty();
        if self.suspected.remove(peer) && silent {
            self.next_beat(ctx);
        }
    }

    fn end_beats(&self, ctx: &mut Context<'_, Self>) {
        if self.stopping() && self.awaited().is_empty() {
            ctx.cancel_timer(Timer::Beat);
        }
    }
}
