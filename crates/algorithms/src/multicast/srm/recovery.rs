//! Requests and repairs: when a member sends one, and when it suppresses its own.

use konklave_process::{Context, ProcessId};
use serde::Serialize;

use super::adapt::STEP;
use super::{EVERYWHERE, Message, Srm, Timer};
use crate::multicast::{Indication, Note, Unit};

/// The recovery of a missing message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Recovery {
    /// How many times the wait has grown.
    round: u32,
    /// Whether a request of another member delays this process's own.
    listening: bool,
    /// Whether any member has requested it yet.
    heard: bool,
    /// The present wait, in 1/256 T.
    wait: u64,
}

/// A repair that is about to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct PendingRepair {
    /// The member that requested it.
    asker: ProcessId,
    /// How far around that member the repair is sent, in links.
    radius: u32,
    /// The wait, in 1/256 of the distance to that member.
    wait: u64,
}

/// How many times the wait grows at most.
const MOST_ROUNDS: u32 = 5;
/// The resolution of random waits.
const GRAINS: u32 = 1 << 12;

impl Srm {
    /// Takes in a message, and delivers it at once.
    pub(super) fn receive(&mut self, unit: Unit, ctx: &mut Context<'_, Self>) {
        if !self.held.of(unit.from).insert(unit.number) {
            return;
        }
        if self.missing.remove(unit).is_some() {
            ctx.cancel_timer(Timer::Ask(unit));
            ctx.cancel_timer(Timer::Listen(unit));
        }
        let high = self.high.of(unit.from);
        let news = unit.number > *high;
        if news && unit.from == ctx.me() {
            *high = unit.number;
        }
        ctx.indicate(Indication::Delivered(unit));
        if news {
            self.on_news(ctx);
        }
    }

    /// The source has sent messages up to `high`: notices the missing ones.
    pub(super) fn on_highest(&mut self, source: ProcessId, high: u32, ctx: &mut Context<'_, Self>) {
        if !ctx.group().contains(source) {
            return;
        }
        let before = self.high.get(source).copied().unwrap_or(0);
        if high <= before || source == ctx.me() && !self.settings.agreed {
            return;
        }
        *self.high.of(source) = high;
        if source == ctx.me() {
            // An earlier incarnation of this process came further. Its messages are not missed, but all
            // members are to agree on the number.
            return self.on_news(ctx);
        }
        let held = self.held.of(source);
        let missing: Vec<u32> = held.missing(high).filter(|number| *number > before).collect();
        for number in missing {
            self.detect(Unit { from: source, number }, 0, ctx);
        }
        self.on_news(ctx);
    }

    /// Notices that `unit` is missing, and sets the timer for a request.
    fn detect(&mut self, unit: Unit, round: u32, ctx: &mut Context<'_, Self>) {
        if self.missing.contains(unit) {
            return;
        }
        ctx.indicate(Indication::Note(Note::Missing(unit)));
        if self.settings.adaptive {
            self.tuning.requests.begin();
        }
        let fresh = Recovery { round, listening: false, heard: round > 0, wait: 0 };
        self.missing.insert(unit, fresh);
        self.arm_request(unit, ctx);
    }

    /// Sets the timer for the next request: the wait grows with the distance and with each round.
    fn arm_request(&mut self, unit: Unit, ctx: &mut Context<'_, Self>) {
        let distance = self.distance(ctx.me(), unit.from);
        let side = &self.tuning.requests;
        let base: u64 = if self.settings.adaptive { 3 } else { 2 };
        let part = drawn(side.least, side.spread, ctx);
        let Some(request) = self.missing.get_mut(unit) else { return };
        let part = part.saturating_mul(base.pow(request.round.min(MOST_ROUNDS)));
        request.wait = part * u64::from(distance);
        request.listening = request.round == 0;
        let repeats = request.round > 0;
        ctx.set_timer(Timer::Ask(unit), self.time(distance, part));
        if repeats {
            ctx.set_timer(Timer::Listen(unit), self.time(distance, part / 2));
        }
    }

    /// Another member's request delays this process's own from now on.
    pub(super) fn listen(&mut self, unit: Unit) {
        if let Some(request) = self.missing.get_mut(unit) {
            request.listening = true;
        }
    }

    /// No request of another member arrived in time: requests the message.
    pub(super) fn ask(&mut self, unit: Unit, ctx: &mut Context<'_, Self>) {
        let (me, scope) = (ctx.me(), self.settings.scope);
        let distance = self.distance(me, unit.from);
        let repeats = self.repeats_requests();
        let Some(request) = self.missing.get_mut(unit) else { return };
        let radius = match scope {
            0 => EVERYWHERE,
            _ if request.round >= MOST_ROUNDS => EVERYWHERE,
            scope => scope.saturating_mul(1 << request.round),
        };
        if !request.heard && self.settings.adaptive {
            self.tuning.requests.speak(request.wait as i64 / (2 * i64::from(distance)));
        }
        request.heard = true;
        request.round = (request.round + 1).min(MOST_ROUNDS);
        ctx.indicate(Indication::Note(Note::Asked(unit)));
        self.spread(me, radius, &Message::Request { unit, distance, radius }, ctx);
        if repeats {
            self.arm_request(unit, ctx);
        }
    }

    /// Another member requests a message. This process prepares a repair if it has the message, and
    /// delays its own request if it lacks it, too.
    pub(super) fn on_repair_request(
        &mut self,
        from: ProcessId,
        unit: Unit,
        theirs: u32,
        radius: u32,
        ctx: &mut Context<'_, Self>,
    ) {
        let me = ctx.me();
        if unit.from == me && !self.has(unit) || !ctx.group().contains(unit.from) {
            return;
        }
        if self.has(unit) {
            if self.held_down.contains(unit) || self.pending_repairs.contains(unit) {
                return;
            }
            if self.settings.adaptive {
                self.tuning.repairs.begin();
            }
            let distance = self.distance(me, from);
            let side = &self.tuning.repairs;
            let part = drawn(side.least, side.spread, ctx);
            self.pending_repairs.insert(unit, PendingRepair { asker: from, radius, wait: part });
            return ctx.set_timer(Timer::Repair(unit), self.time(distance, part));
        }
        let ours = self.distance(me, unit.from);
        match self.missing.get_mut(unit) {
            // The message is news to this process, and requested already: its own request starts with
            // a longer wait.
            None => self.detect(unit, 1, ctx),
            Some(request) => {
                if std::mem::replace(&mut request.heard, true) {
                    self.tuning.requests.duplicate(theirs, ours);
                }
                let Some(request) = self.missing.get_mut(unit) else { return };
                if request.listening {
                    request.round = (request.round + 1).min(MOST_ROUNDS);
                    self.arm_request(unit, ctx);
                }
            }
        }
    }

    /// No repair of another member arrived in time: repairs the message.
    pub(super) fn repair(&mut self, unit: Unit, ctx: &mut Context<'_, Self>) {
        let Some(PendingRepair { asker, radius, wait }) = self.pending_repairs.remove(unit) else {
            return;
        };
        let me = ctx.me();
        let distance = self.distance(me, asker);
        if self.settings.adaptive {
            self.tuning.repairs.speak(wait as i64 / 2);
        }
        ctx.indicate(Indication::Note(Note::Repaired(unit)));
        self.spread(asker, radius, &Message::Repair { unit, asker, distance }, ctx);
        let far = if unit.from == me { distance } else { self.distance(me, unit.from) };
        self.hold_down(unit, far, ctx);
    }

    /// A repair arrives: suppresses this process's own, and ignores requests for a while.
    pub(super) fn on_repair(
        &mut self,
        unit: Unit,
        asker: ProcessId,
        theirs: u32,
        ctx: &mut Context<'_, Self>,
    ) {
        let me = ctx.me();
        if !ctx.group().contains(unit.from) || unit.from == me && !self.has(unit) {
            return;
        }
        if self.pending_repairs.remove(unit).is_some() {
            ctx.cancel_timer(Timer::Repair(unit));
        } else if self.held_down.contains(unit) {
            let ours = self.distance(me, asker);
            self.tuning.repairs.duplicate(theirs, ours);
        }
        if self.has(unit) {
            ctx.indicate(Indication::Note(Note::Unwanted(unit)));
        } else {
            self.receive(unit, ctx);
            self.on_highest(unit.from, unit.number, ctx);
        }
        let far = self.distance(me, unit.from);
        self.hold_down(unit, far, ctx);
    }

    /// Ignores requests for a repaired message for three times the delay from its source.
    fn hold_down(&mut self, unit: Unit, distance: u32, ctx: &mut Context<'_, Self>) {
        self.held_down.insert(unit, ());
        ctx.set_timer(Timer::Rest(unit), self.time(distance, 3 * 256));
    }
}

/// A random wait from `least` to `least + spread`, in 1/256 of the distance.
fn drawn(least: u32, spread: u32, ctx: &mut Context<'_, Srm>) -> u64 {
    let chance = if spread > 0 { u64::from(ctx.choose(GRAINS)) } else { 0 };
    let twentieths = 256 * u64::from(least) + 256 * u64::from(spread) * chance / u64::from(GRAINS);
    twentieths / u64::from(STEP)
}
