//! Views that are over, and the group of one.

use konklave_process::{Context, ProcessId};

use super::{Forming, Indication, PeerStatus, Timer};
use crate::group::virtual_synchrony::{self, Record};
use crate::group::{Data, Member};

impl<C: Data> Forming<C> {
    /// Leaves a view that cannot decide anything any more, to found a group anew with all.
    ///
    /// A view is over when more than half of its members have restarted (a restarted process may have
    /// forgotten its promises), or have gone on in another generation. If exactly half is left, it can
    /// continue, provided the other half has restarted and knows it. A process that forgot its incarnations
    /// may report a lower number, which proves nothing. Such a half gets a while to appear; so does a voter
    /// that this process waits for while it has no vote itself. `waited`: that while is over.
    pub(super) fn dissolve_if_stalled(&mut self, waited: bool, ctx: &mut Context<'_, Self>) {
        if !self.is_inside() {
            return;
        }
        let (view, me) = (self.group.view(), ctx.me());
        let (mut lost, mut unsure, mut silent) = (0, false, 0);
        for member in view.members.iter().filter(|m| m.id != me) {
            let Some(now) = self.status_of(member.id) else {
                silent += 1;
                continue;
            };
            let elsewhere = self.has_seen_later(now)
                || now.view.is_some_and(|v| v.generation != view.id.generation);
            lost += usize::from(now.incarnation != member.incarnation || elsewhere);
            unsure |= elsewhere || now.incarnation < member.incarnation;
        }
        let (all, outside) = (view.members.len(), !view.has_member(me));
        let left = all - lost;
        let tie = 2 * left == all && all > 0;
        if !self.dissolves() {
            return;
        }
        if 2 * left < all || (tie && unsure) {
            return self.dissolve(ctx);
        }
        if !(tie || outside && silent == all) {
            return self.calm(ctx);
        }
        if waited && self.stalled {
            self.dissolve(ctx);
        } else if !std::mem::replace(&mut self.stalled, true) {
            ctx.set_timer(Timer::Stall, self.settings.times.stall);
        }
    }

    /// The view can decide, as far as this process knows.
    pub(super) fn calm(&mut self, ctx: &mut Context<'_, Self>) {
        if std::mem::take(&mut self.stalled) {
            ctx.cancel_timer(Timer::Stall);
        }
    }

    fn dissolve(&mut self, ctx: &mut Context<'_, Self>) {
        use virtual_synchrony::Timer::{Batch, Collect, Heartbeat, Retry};
        self.calm(ctx);
        for timer in [Collect, Retry, Heartbeat, Batch] {
            ctx.cancel_timer(Timer::Group(timer));
        }
        let (incarnation, generation) = (self.group.incarnation(), self.group.generation());
        self.begin_incarnation(Record { incarnation, generation }, ctx);
        self.await_end_of_grants(ctx);
        ctx.indicate(Indication::Dissolved);
        self.announce(ctx);
    }

    /// Grants of the view that this process was in may be in use for a lease.
    pub(super) fn await_end_of_grants(&mut self, ctx: &mut Context<'_, Self>) {
        self.grants_over = false;
        ctx.set_timer(Timer::GrantsOver, self.settings.times.lease);
    }

    /// Whether the process has been in a later generation than the present view's.
    fn has_seen_later(&self, status: &PeerStatus) -> bool {
        status.generation > self.group.view().id.generation
    }

    /// Whether to ignore a join request as proof that its sender left the present view.
    ///
    /// Scenario: the sender has gone on in a later generation, and this process no longer sees a majority of its
    /// own view. Hazard: that generation may have replaced this view, so nothing follows for its other
    /// members. Rule: ignore the join until this is clear, and also until the peer has reported its
    /// generation. The peer repeats it.
    pub(super) fn is_superseded_by(&self, from: ProcessId, me: ProcessId) -> bool {
        let members = &self.group.view().members;
        let lives = |m: &&Member| {
            let same = |now: &PeerStatus| now.incarnation == m.incarnation && now.view.is_some();
            m.id == me || self.status_of(m.id).is_some_and(same)
        };
        self.is_inside()
            && self.status_of(from).is_none_or(|now| self.has_seen_later(now))
            && 2 * members.iter().filter(lives).count() <= members.len()
    }

    /// Whether all members of the view are connected, in it and in its incarnations.
    pub(super) fn is_view_healthy(&self, me: ProcessId) -> bool {
        let view = self.group.view();
        let is_well = |m: &Member| {
            let status = self.status_of(m.id);
            let there = |s: &PeerStatus| s.view.is_some_and(|v| v.generation == view.id.generation);
            m.id == me || status.is_some_and(|s| s.incarnation == m.incarnation && there(s))
        };
        view.members.iter().all(is_well)
    }

    /// The members of the last view that this process was in, and of the view that it has promised another process to enter.
    fn last_view(&self, me: ProcessId) -> impl Iterator<Item = ProcessId> {
        let promised = self.promises.view().filter(|view| view.id.coordinator != me);
        let promised = promised.into_iter().flat_map(|view| &view.members).map(|m| m.id);
        self.last_members.iter().copied().chain(promised)
    }

    /// Whether all members of the last view are connected and in no view, and their grants are over.
    pub(super) fn is_last_view_over(&self, me: ProcessId) -> bool {
        let is_over = |s: &PeerStatus| {
            s.view.is_none() && (s.earlier_grants_over || !self.waits_for_grants())
        };
        let mut others = self.last_view(me).filter(|id| *id != me);
        others.all(|id| self.status_of(id).is_some_and(is_over)) || !self.heeds_last_view()
    }

    /// Founds a group of one after a while. Members of the last view may still be in a group: they get the time to
    /// report it.
    pub(super) fn found_alone_later(&mut self, ctx: &mut Context<'_, Self>) {
        let others = self.last_members.iter().any(|id| *id != ctx.me());
        if others && self.gives_time_to_report() {
            ctx.set_timer(Timer::Alone, self.settings.times.patience);
        } else {
            self.alone = true;
            self.found_alone_if_due(ctx);
        }
    }

    /// Founds a group of one if that was requested, grants from before are over, and no peer is in a group.
    pub(super) fn found_alone_if_due(&mut self, ctx: &mut Context<'_, Self>) {
        if !self.grants_over || !std::mem::take(&mut self.alone) {
            return;
        }
        if let Some(id) = self.peer_inside() {
            ctx.indicate(Indication::JoinsInstead(id));
        } else if !self.is_inside() {
            self.refound(ctx);
        }
    }
}
