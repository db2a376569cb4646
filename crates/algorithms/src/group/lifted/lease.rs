//! Leases: a holder that may have been excluded knows it before another member enters.

use std::time::Duration;

use konklave_process::{Context, ProcessId, ProcessSet};
use serde::Serialize;

use super::{Inner, Lifted, Message, Timer};
use crate::group::View;

/// How many rounds of asking may count at a time.
const SLOTS: u32 = 8;

/// The lease of this process.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize)]
pub(super) struct Lease {
    /// The rounds of asking that still count: number, members that granted, whether a majority did.
    rounds: Vec<(u32, ProcessSet, bool)>,
    /// The number of the last round.
    round: u32,
    /// Whether a majority granted a round that still counts.
    pub(super) held: bool,
    /// Whether the timer for the next round runs.
    asking: bool,
}

impl Lease {
    /// Counts the grants. A lease granted by a majority stays valid over a view change.
    fn count_grants(&mut self, view: &View) -> bool {
        for (_, by, granted) in &mut self.rounds {
            *granted |= view.is_quorum(by, false);
        }
        self.held = self.rounds.iter().any(|(.., granted)| *granted);
        self.held
    }
}

impl<A: Inner> Lifted<A> {
    /// Whether leases allow this process to hold a lock.
    pub(super) fn is_leased(&self) -> bool {
        self.settings.lease.is_none() || self.lease.held
    }

    /// Starts asking for leases if the application requests a lock. A lease lasts from the moment of
    /// asking.
    pub(super) fn want_lease(&mut self, ctx: &mut Context<'_, Self>) {
        if let Some(lasts) = self.settings.lease
            && !self.lease.asking
        {
            self.ask(lasts, ctx);
        }
    }

    fn ask(&mut self, lasts: Duration, ctx: &mut Context<'_, Self>) {
        self.lease.asking = !self.requests.is_empty();
        if !self.lease.asking {
            return;
        }
        ctx.set_timer(Timer::Renew, lasts / 4);
        if self.wedged || !self.view().has_member(ctx.me()) {
            return;
        }
        self.lease.round = self.lease.round.wrapping_add(1);
        let (view, round) = (self.view().id, self.lease.round);
        self.lease.rounds.retain(|(r, ..)| *r % SLOTS != round % SLOTS);
        self.lease.rounds.push((round, [ctx.me()].into_iter().collect(), false));
        // The lease must end before the others stop waiting for it, although each clock may differ
        // by up to a tenth.
        ctx.set_timer(Timer::Lapse((round % SLOTS) as u8), lasts * 8 / 10);
        for to in self.view().others(ctx.me()) {
            ctx.send(to, Message::Ask { view, round });
        }
        self.use_lease(ctx);
    }

    pub(super) fn on_renew(&mut self, ctx: &mut Context<'_, Self>) {
        if let Some(lasts) = self.settings.lease {
            self.ask(lasts, ctx);
        }
    }

    /// `from` asks for a lease. The next view may exclude it; so a wedged process grants nothing.
    pub(super) fn on_ask(&mut self, from: ProcessId, round: u32, ctx: &mut Context<'_, Self>) {
        if !self.wedged && self.view().has_member(ctx.me()) {
            ctx.send(from, Message::Yes { view: self.view().id, round });
        }
    }

    pub(super) fn on_yes(&mut self, from: ProcessId, round: u32, ctx: &mut Context<'_, Self>) {
        if let Some((_, by, _)) = self.lease.rounds.iter_mut().find(|(r, ..)| *r == round) {
            by.insert(from);
            self.use_lease(ctx);
        }
    }

    fn use_lease(&mut self, ctx: &mut Context<'_, Self>) {
        let view = self.group.view();
        if self.lease.count_grants(view) {
            self.enter_ready(ctx);
        }
    }

    pub(super) fn on_lapse(&mut self, slot: u8, ctx: &mut Context<'_, Self>) {
        self.lease.rounds.retain(|(round, ..)| *round % SLOTS != u32::from(slot));
        let view = self.group.view();
        if !self.lease.count_grants(view) {
            self.lose_all(ctx);
        }
    }
}
