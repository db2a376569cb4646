//! Leases: who is inside knows in time that it may have been excluded.

use std::time::Duration;

use konklave_process::{Context, ProcessId, ProcessSet};
use serde::Serialize;

use super::{Inner, Lifted, Message, Timer};
use crate::group::View;

/// How many questions may be open at a time.
const SLOTS: u32 = 8;

/// Our lease.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize)]
pub(super) struct Lease {
    /// The questions that still count, with who said yes, and whether that was a majority.
    rounds: Vec<(u32, ProcessSet, bool)>,
    round: u32,
    /// Whether a majority has said yes to one that still counts.
    pub(super) held: bool,
    asking: bool,
}

impl Lease {
    /// Counts again: what a majority granted counts as long as it lasts, whatever view comes.
    fn look(&mut self, view: &View) -> bool {
        for (_, by, granted) in &mut self.rounds {
            *granted |= view.is_quorum(by, false);
        }
        self.held = self.rounds.iter().any(|(.., granted)| *granted);
        self.held
    }
}

impl<A: Inner> Lifted<A> {
    /// Whether we may be inside, as far as leases go.
    pub(super) fn is_leased(&self) -> bool {
        self.settings.lease.is_none() || self.lease.held
    }

    /// Asks for a lease, if we want something and have not asked. It counts from now on.
    pub(super) fn want_lease(&mut self, ctx: &mut Context<'_, Self>) {
        if let Some(lasts) = self.settings.lease
            && !self.lease.asking
        {
            self.ask(lasts, ctx);
        }
    }

    fn ask(&mut self, lasts: Duration, ctx: &mut Context<'_, Self>) {
        self.lease.asking = !self.wishes.is_empty();
        if !self.lease.asking {
            return;
        }
        ctx.set_timer(Timer::Renew, lasts / 4);
        if self.frozen || !self.view().has_member(ctx.me()) {
            return;
        }
        self.lease.round = self.lease.round.wrapping_add(1);
        let (view, round) = (self.view().id, self.lease.round);
        self.lease.rounds.retain(|(r, ..)| *r % SLOTS != round % SLOTS);
        self.lease.rounds.push((round, [ctx.me()].into_iter().collect(), false));
        // Shorter than others wait: clocks differ, by less than a tenth each.
        ctx.set_timer(Timer::Lapse((round % SLOTS) as u8), lasts * 8 / 10);
        for to in self.view().others(ctx.me()) {
            ctx.send(to, Message::Ask { view, round });
        }
        self.look(ctx);
    }

    pub(super) fn on_renew(&mut self, ctx: &mut Context<'_, Self>) {
        if let Some(lasts) = self.settings.lease {
            self.ask(lasts, ctx);
        }
    }

    /// Who has stopped for a view change grants nothing: the next view may be without the one who
    /// asks.
    pub(super) fn on_ask(&mut self, from: ProcessId, round: u32, ctx: &mut Context<'_, Self>) {
        if !self.frozen && self.view().has_member(ctx.me()) {
            ctx.send(from, Message::Yes { view: self.view().id, round });
        }
    }

    pub(super) fn on_yes(&mut self, from: ProcessId, round: u32, ctx: &mut Context<'_, Self>) {
        if let Some((_, by, _)) = self.lease.rounds.iter_mut().find(|(r, ..)| *r == round) {
            by.insert(from);
            self.look(ctx);
        }
    }

    fn look(&mut self, ctx: &mut Context<'_, Self>) {
        let view = self.group.view();
        if self.lease.look(view) {
            self.enter_ready(ctx);
        }
    }

    pub(super) fn on_lapse(&mut self, slot: u8, ctx: &mut Context<'_, Self>) {
        self.lease.rounds.retain(|(round, ..)| *round % SLOTS != u32::from(slot));
        let view = self.group.view();
        if !self.lease.look(view) {
            self.lose_all(ctx);
        }
    }
}
