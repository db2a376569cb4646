//! The end of a stream: heartbeats that become rarer, then a stop that is repeated until every receiver
//! has confirmed that it has the whole stream.
//!
//! All copies of a message can get lost, however many there are. Only an answer shows that one has
//! arrived; so a stop is answered. The sender repeats it to a silent receiver without end, at the rate
//! of the rarest heartbeats, unless it suspects that receiver.

use konklave_process::{Context, ProcessId, ProcessSet};

use super::{Message, Nack, ROUND_TRIP, Settings, Timer};

/// The time between two frequent stops, in T: an answer fits in between.
pub(super) const PATIENCE: u32 = ROUND_TRIP + 1;

impl Nack {
    /// After a new message: heartbeats and stops begin anew.
    pub(super) fn begin_beats(&mut self, ctx: &mut Context<'_, Self>) {
        self.beats = 0;
        if self.settings.stops > 0 {
            self.unanswered = ctx.others().collect();
        }
        self.next_beat(ctx);
    }

    /// Whether all heartbeats are sent, and stops follow.
    fn stopping(&self) -> bool {
        self.sent > 0 && self.beats >= self.settings.beats
    }

    /// The receivers that a stop is sent to.
    fn awaited(&self) -> ProcessSet {
        self.unanswered.difference(&self.suspected)
    }

    pub(super) fn next_beat(&self, ctx: &mut Context<'_, Self>) {
        let Settings { heartbeat, rarest, unit, beats, stops, .. } = *self.settings;
        let over = self.stopping() && self.awaited().is_empty();
        if over || ctx.group_size() == 1 || !self.sends_heartbeats() {
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

    /// Sends a heartbeat to all, or a stop to the receivers that have not answered.
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

    /// The stream of `from` ends here: answers if the whole stream has arrived, else asks for the rest.
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

    /// A suspected receiver is not waited for.
    pub(super) fn give_up(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        if self.settings.stops > 0 && self.suspected.insert(peer) {
            self.end_beats(ctx);
        }
    }

    /// `peer` is alive after all, and may lack the end of the stream.
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
