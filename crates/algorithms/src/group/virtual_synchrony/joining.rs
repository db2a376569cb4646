//! Joining, leaving, and the transfer of the application's state to observers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use konklave_process::{Context, ProcessId, ProcessSet};
use serde::Serialize;

use super::{Membership, Message, Ordering, Proposal, Record, Timer, ViewChange, VirtualSynchrony};
use crate::group::{Data, Indication, Member, View, ViewId};

/// How many parts of a state may be unconfirmed by one observer.
const WINDOW: u32 = 4;
/// How many messages of later views are kept.
const LATER: usize = 4096;

/// The transfer of the application's state, at the donor or at an observer.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub(super) struct StateTransfer<C> {
    /// Whether the application has been asked for its state and has not answered.
    wanted: bool,
    /// At the donor: the state includes all deliveries before this place.
    position: u64,
    /// At the donor: the parts of the state.
    parts: Vec<C>,
    /// At the donor: how many parts were sent to each observer, and how many it confirmed.
    progress: BTreeMap<ProcessId, (u32, u32)>,
    /// At the observer: the parts received so far.
    received: Vec<C>,
    /// At the observer: the place of the state that the parts belong to.
    label: Option<u64>,
}

impl<C> StateTransfer<C> {
    pub(super) fn none() -> Self {
        Self {
            wanted: false,
            position: 0,
            parts: Vec::new(),
            progress: BTreeMap::new(),
            received: Vec::new(),
            label: None,
        }
    }
}

impl<C: Data> VirtualSynchrony<C> {
    /// Enters the next view of a decided proposal.
    pub(super) fn install(&mut self, next: &Proposal<C>, ctx: &mut Context<'_, Self>) {
        self.enter(next.view.clone());
        ctx.cancel_timer(Timer::Join);
        if self.generation < self.view.id.generation {
            self.generation = self.view.id.generation;
            self.save(ctx);
        }
        let (left, summaries) = (next.left.clone(), next.summaries.clone());
        ctx.indicate(Indication::Installed { view: self.view.clone(), left, summaries });
        self.begin(ctx);
    }

    /// Makes `view` the present one, and forgets the last one.
    pub(super) fn enter(&mut self, view: View) {
        self.membership = Membership::Inside;
        self.ordering = Ordering::new(&view);
        self.change = ViewChange::default();
        self.transfer = StateTransfer::none();
        (self.reported, self.bound_to_leader) = (false, false);
        let everyone: ProcessSet = view.everyone().map(|m| m.id).collect();
        self.reports.retain(|by, of| {
            *of = of.intersection(&everyone);
            everyone.contains(*by) && !of.is_empty()
        });
        self.heard.clear();
        self.synced.clear();
        self.silent_periods.clear();
        self.leaves.clear();
        self.joins.retain(|j| view.find(j.id).is_none_or(|m| m.incarnation < j.incarnation));
        self.restarted =
            self.joins.iter().map(|j| j.id).filter(|id| everyone.contains(*id)).collect();
        self.view = view;
    }

    /// Starts the work in a new view.
    fn begin(&mut self, ctx: &mut Context<'_, Self>) {
        if !self.view.observers.is_empty() && self.donor() == Some(ctx.me()) {
            self.transfer.wanted = true;
            ctx.indicate(Indication::StateWanted);
        }
        if self.has_state && !self.is_member(ctx.me()) {
            self.announce_synced(ctx);
        }
        let later = std::mem::take(&mut self.later);
        for (from, message) in later {
            if message.view().is_some_and(|v| v >= self.view.id) {
                self.dispatch(from, message, ctx);
            }
        }
        self.send_waiting(ctx);
        if self.leaving {
            self.leave(ctx);
        }
        self.consider_view_change(ctx);
    }

    /// The member that gives the state to observers: the most junior one, which has the least to do.
    fn donor(&self) -> Option<ProcessId> {
        self.view.members.last().map(|m| m.id)
    }

    /// Whether deliveries wait until the application has given its state (blocking transfer).
    pub(super) fn holds_for_state(&self) -> bool {
        self.transfer.wanted && !self.settings.streaming
    }

    /// The group goes on without this process: `asked` if it had asked to leave.
    pub(super) fn exit_view(&mut self, asked: bool, ctx: &mut Context<'_, Self>) {
        let nobody = View { observers: Vec::new(), members: Vec::new(), id: self.view.id };
        self.enter(nobody);
        self.membership = Membership::Outside;
        (self.has_state, self.batching) = (false, false);
        self.leaving = false;
        self.joins.clear();
        self.waiting.clear();
        self.later.clear();
        for timer in [Timer::Collect, Timer::Retry, Timer::Heartbeat, Timer::Batch] {
            ctx.cancel_timer(timer);
        }
        // This process may join again while messages of its past membership are under way. Its old
        // promises must not count for the new membership; so it joins as a new incarnation.
        self.incarnation += 1;
        self.save(ctx);
        ctx.indicate(if asked { Indication::Left } else { Indication::Excluded });
    }

    pub(super) fn save(&self, ctx: &mut Context<'_, Self>) {
        let (incarnation, generation) = (self.incarnation, self.generation);
        ctx.save(Record { incarnation, generation });
    }

    /// Asks every other process to take this one in.
    pub(super) fn ask_to_join(&mut self, ctx: &mut Context<'_, Self>) {
        self.membership = Membership::Joining;
        let member = self.myself(ctx.me());
        self.heard.clear();
        ctx.send_to_others(Message::Join { member, heard: ProcessSet::new() });
        if self.settings.retry {
            ctx.set_timer(Timer::Join, self.settings.unit * 10);
        }
        self.start_heartbeat(ctx);
    }

    /// `from` wants to join. It may receive messages from some members only, and would suspect the
    /// others at once. So it is taken in once it has received a `Welcome` from every live member.
    pub(super) fn on_join(
        &mut self,
        from: ProcessId,
        member: Member,
        heard: &ProcessSet,
        ctx: &mut Context<'_, Self>,
    ) {
        if !self.is_member(ctx.me()) || member.id != from {
            return;
        }
        if self.view.find(from).is_some_and(|m| m.incarnation < member.incarnation) {
            self.restarted.insert(from);
        }
        if !heard.contains(ctx.me()) {
            return ctx.send(from, Message::Welcome);
        }
        if self.view.includes(member) {
            // The `Install` of this view has not reached it.
            if let Some((view, next)) = self.last_change.clone() {
                ctx.send(from, Message::Install { view, next });
            }
            return;
        }
        let hears_from = |m: &Member| heard.contains(m.id) || m.id == from || self.seems_gone(m.id);
        if !self.view.members.iter().all(hears_from) {
            return;
        }
        self.suspects.remove(from);
        let known = self.view.everyone().chain(self.joins.iter().copied());
        if known.filter(|m| m.id == from).all(|m| m.incarnation < member.incarnation) {
            self.joins.retain(|j| j.id != from);
            self.joins.push(member);
            self.joins.sort_unstable();
            self.try_propose(ctx);
            self.consider_view_change(ctx);
        }
    }

    pub(super) fn on_welcome(&mut self, from: ProcessId, ctx: &mut Context<'_, Self>) {
        if self.membership == Membership::Joining {
            let member = self.myself(ctx.me());
            self.heard.insert(from);
            // This process may still suspect `from` from before. With that suspicion it would end its
            // first view at once, time after time.
            self.suspects.remove(from);
            for to in self.heard.iter() {
                ctx.send(to, Message::Join { member, heard: self.heard.clone() });
            }
        }
    }

    /// A decided proposal arrives. It ends the present view, or begins the first one.
    pub(super) fn on_install(
        &mut self,
        view: ViewId,
        next: Arc<Proposal<C>>,
        ctx: &mut Context<'_, Self>,
    ) {
        match self.membership {
            Membership::Inside if view == self.view.id => self.decide(next, ctx),
            Membership::Joining if next.view.includes(self.myself(ctx.me())) => {
                self.has_state = false;
                self.install(&next, ctx);
            }
            Membership::Joining | Membership::Outside
                if next.view.find(ctx.me()).is_some_and(|m| m.incarnation < self.incarnation) =>
            {
                // The view includes an earlier incarnation of this process. That one may have made
                // promises; so this process reports that it is over, and does not leave in its name.
                let (to, view) = (next.view.id.coordinator, next.view.id);
                let suspects = ProcessSet::from_iter([ctx.me()]);
                ctx.send(to, Message::Suspect { view, suspects });
            }
            Membership::Inside | Membership::Joining | Membership::Outside => {}
        }
    }

    pub(super) fn on_not_member(&mut self, view: ViewId, ctx: &mut Context<'_, Self>) {
        if self.membership == Membership::Inside && view > self.view.id {
            self.exit_view(false, ctx);
        }
    }

    /// Reports to a process in the earlier view `old` which view followed it.
    pub(super) fn report_successor(&self, to: ProcessId, old: ViewId, ctx: &mut Context<'_, Self>) {
        match &self.last_change {
            Some((view, next)) if *view == old => {
                ctx.send(to, Message::Install { view: old, next: next.clone() });
            }
            _ if self.view.find(to).is_none() => {
                ctx.send(to, Message::NotMember { view: self.view.id });
            }
            _ => {}
        }
    }

    /// Keeps a message of a later view until that view begins.
    pub(super) fn keep_for_later(&mut self, from: ProcessId, message: Message<C>) {
        if !matches!(message, Message::Heartbeat { .. }) && self.later.len() < LATER {
            self.later.push((from, message));
        }
    }

    pub(super) fn leave(&mut self, ctx: &mut Context<'_, Self>) {
        if self.membership != Membership::Inside {
            return;
        }
        self.leaving = true;
        self.leaves.insert(ctx.me());
        for to in self.view.others(ctx.me()) {
            ctx.send(to, Message::Leave { view: self.view.id });
        }
        self.consider_view_change(ctx);
    }

    /// Sends `Synced` and `Leave` again while no view change has acted on them: they may be lost.
    pub(super) fn repeat_announcements(&mut self, ctx: &mut Context<'_, Self>) {
        if self.change.wedged {
            return;
        }
        if self.has_state && !self.is_member(ctx.me()) {
            self.announce_synced(ctx);
        }
        if self.leaving {
            self.leave(ctx);
        }
    }

    /// Founds a group of one member, in a new generation.
    pub(super) fn refound(&mut self, ctx: &mut Context<'_, Self>) {
        self.generation = self.generation.max(self.view.id.generation) + 1;
        self.save(ctx);
        let id = ViewId {
            generation: self.generation,
            epoch: self.view.id.epoch + 1,
            coordinator: ctx.me(),
        };
        let view = View { id, members: vec![self.myself(ctx.me())], observers: Vec::new() };
        let next =
            Proposal { view, from: 0, cut: vec![], left: ProcessSet::new(), summaries: Vec::new() };
        self.has_state = true;
        self.last_change = None;
        for timer in [Timer::Collect, Timer::Retry] {
            ctx.cancel_timer(timer);
        }
        self.take_back_own(ctx.me());
        self.install(&next, ctx);
        self.start_heartbeat(ctx);
    }

    /// Queues the undelivered messages of this process for the next view, before all others. The old
    /// view ends without an agreement on its last messages; another member may have delivered them in it.
    fn take_back_own(&mut self, me: ProcessId) {
        let Ordering { base, delivered, .. } = self.ordering;
        let undelivered = self.ordering.order.drain(..).skip((delivered - base) as usize);
        let placed = undelivered.filter(|entry| entry.sender == me).map(|entry| entry.command);
        let mut own: VecDeque<C> = placed.collect();
        own.append(&mut self.ordering.unplaced);
        own.append(&mut self.waiting);
        self.waiting = own;
    }

    /// At the donor: the application has given its state.
    pub(super) fn give_state(&mut self, parts: Vec<C>, ctx: &mut Context<'_, Self>) {
        if !std::mem::take(&mut self.transfer.wanted) {
            return;
        }
        self.transfer.position = self.ordering.delivered;
        self.transfer.parts = parts;
        self.transfer.progress =
            self.view.observers.iter().map(|observer| (observer.id, (0, 0))).collect();
        for observer in self.view.observers.clone() {
            self.send_parts(observer.id, ctx);
        }
        self.deliver(ctx);
    }

    /// Sends the next parts to an observer, as many as may be unconfirmed.
    fn send_parts(&mut self, to: ProcessId, ctx: &mut Context<'_, Self>) {
        let StateTransfer { position, parts, progress, .. } = &mut self.transfer;
        let Some((sent, got)) = progress.get_mut(&to) else { return };
        let count = parts.len() as u32;
        while *sent < count.max(1) && *sent < got.saturating_add(WINDOW) {
            let (view, position, index) = (self.view.id, *position, *sent);
            let part = parts.get(index as usize).cloned();
            ctx.send(to, Message::State { view, position, index, count, part });
            *sent += 1;
        }
    }

    pub(super) fn on_state_ack(
        &mut self,
        from: ProcessId,
        parts: u32,
        ctx: &mut Context<'_, Self>,
    ) {
        if let Some((_, got)) = self.transfer.progress.get_mut(&from) {
            *got = parts.max(*got);
            self.send_parts(from, ctx);
        }
    }

    /// Sends the parts again that an observer has not confirmed.
    pub(super) fn resend_state(&mut self, ctx: &mut Context<'_, Self>) {
        for observer in self.view.observers.clone() {
            if let Some((sent, got)) = self.transfer.progress.get_mut(&observer.id) {
                *sent = *got;
                self.send_parts(observer.id, ctx);
            }
        }
    }

    pub(super) fn on_state(
        &mut self,
        (from, position): (ProcessId, u64),
        (index, count): (u32, u32),
        part: Option<C>,
        ctx: &mut Context<'_, Self>,
    ) {
        if self.has_state || self.is_member(ctx.me()) {
            return ctx.send(from, Message::StateAck { view: self.view.id, parts: count.max(1) });
        }
        if self.transfer.label != Some(position) {
            // The parts belong to another state: of another donor, or of another moment.
            self.transfer.label = Some(position);
            self.transfer.received.clear();
        }
        if index as usize == self.transfer.received.len() {
            self.transfer.received.extend(part);
        }
        let got = self.transfer.received.len() as u32;
        ctx.send(from, Message::StateAck { view: self.view.id, parts: got });
        // The observer goes on after the deliveries that the state includes; so it must have them all.
        if got == count && position <= self.ordering.end() {
            let parts = std::mem::take(&mut self.transfer.received);
            self.has_state = true;
            self.ordering.delivered = position;
            ctx.indicate(Indication::State { position, parts });
            self.announce_synced(ctx);
            self.deliver(ctx);
        }
    }

    /// Reports to the members that this observer has the state, and can become a member.
    fn announce_synced(&mut self, ctx: &mut Context<'_, Self>) {
        for member in &self.view.members {
            ctx.send(member.id, Message::Synced { view: self.view.id });
        }
    }
}
