//! Coming, going, and getting the state.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use konklave_process::{Context, ProcessId, ProcessSet};
use serde::Serialize;

use super::{Change, Message, Next, Ordering, Record, Standing, Timer, VirtualSynchrony};
use crate::group::{Data, Indication, Member, View, ViewId};

/// How many parts of a state may be under way to one observer.
const WINDOW: u32 = 4;
/// How many messages of views to come are kept.
const AHEAD: usize = 4096;

/// The state on its way.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub(super) struct Transfer<C> {
    /// Whether the application has been asked for its state and has not answered.
    wanted: bool,
    /// At the donor: what it gives, and how many parts each observer has been sent and has got.
    position: u64,
    parts: Vec<C>,
    progress: BTreeMap<ProcessId, (u32, u32)>,
    /// At the observer: what it has got so far.
    received: Vec<C>,
    /// The place that the parts belong to.
    label: Option<u64>,
}

impl<C> Transfer<C> {
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
    /// Enters the view that `next` begins.
    pub(super) fn install(&mut self, next: &Next<C>, ctx: &mut Context<'_, Self>) {
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

    /// Makes `view` the present one: nothing of the last one remains.
    pub(super) fn enter(&mut self, view: View) {
        self.standing = Standing::Inside;
        self.ordering = Ordering::new(&view);
        self.change = Change::default();
        self.transfer = Transfer::none();
        (self.reported, self.loyal) = (false, false);
        let everyone: ProcessSet = view.everyone().map(|m| m.id).collect();
        self.reports.retain(|by, of| {
            *of = of.intersection(&everyone);
            everyone.contains(*by) && !of.is_empty()
        });
        self.heard.clear();
        self.synced.clear();
        self.silence.clear();
        self.leaves.clear();
        self.joins.retain(|j| view.find(j.id).is_none_or(|m| m.incarnation < j.incarnation));
        self.over = self.joins.iter().map(|j| j.id).filter(|id| everyone.contains(*id)).collect();
        self.view = view;
    }

    /// What there is to do at the start of a view.
    fn begin(&mut self, ctx: &mut Context<'_, Self>) {
        if !self.view.observers.is_empty() && self.donor() == Some(ctx.me()) {
            self.transfer.wanted = true;
            ctx.indicate(Indication::StateWanted);
        }
        if self.has_state && !self.is_member(ctx.me()) {
            self.tell_synced(ctx);
        }
        let ahead = std::mem::take(&mut self.ahead);
        for (from, message) in ahead {
            if message.view().is_some_and(|v| v >= self.view.id) {
                self.hear(from, message, ctx);
            }
        }
        self.send_waiting(ctx);
        if self.leaving {
            self.leave(ctx);
        }
        self.consider(ctx);
    }

    /// Who gives the state to observers: the most junior member, who has the least to do.
    fn donor(&self) -> Option<ProcessId> {
        self.view.members.last().map(|m| m.id)
    }

    /// Whether deliveries wait until the application has given its state (blocking transfer).
    pub(super) fn holds_for_state(&self) -> bool {
        self.transfer.wanted && !self.settings.streaming
    }

    /// The others go on without us.
    pub(super) fn go_out(&mut self, wished: bool, ctx: &mut Context<'_, Self>) {
        let nobody = View { observers: Vec::new(), members: Vec::new(), id: self.view.id };
        self.enter(nobody);
        self.standing = Standing::Outside;
        (self.has_state, self.batching) = (false, false);
        self.leaving = false;
        self.joins.clear();
        self.waiting.clear();
        self.ahead.clear();
        for timer in [Timer::Collect, Timer::Retry, Timer::Heartbeat, Timer::Batch] {
            ctx.cancel_timer(timer);
        }
        // Who comes again is another: what the old one promised is not ours to keep or to break.
        self.incarnation += 1;
        self.save(ctx);
        ctx.indicate(if wished { Indication::Left } else { Indication::Excluded });
    }

    pub(super) fn save(&self, ctx: &mut Context<'_, Self>) {
        let (incarnation, generation) = (self.incarnation, self.generation);
        ctx.save(Record { incarnation, generation });
    }

    /// Asks everyone to be taken in.
    pub(super) fn ask_to_join(&mut self, ctx: &mut Context<'_, Self>) {
        self.standing = Standing::Joining;
        let member = self.myself(ctx.me());
        self.heard.clear();
        ctx.send_to_others(Message::Join { member, heard: ProcessSet::new() });
        if self.settings.retry {
            ctx.set_timer(Timer::Join, self.settings.unit * 10);
        }
        self.start_heartbeat(ctx);
    }

    /// Someone wants in. It is taken in only when it hears all of us: a view with someone who is
    /// deaf would not last.
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
            self.over.insert(from);
        }
        if !heard.contains(ctx.me()) {
            return ctx.send(from, Message::Welcome);
        }
        if self.view.includes(member) {
            // It does not know yet.
            if let Some((view, next)) = self.history.clone() {
                ctx.send(from, Message::Install { view, next });
            }
            return;
        }
        let hears = |m: &Member| heard.contains(m.id) || m.id == from || self.is_gone(m.id);
        if !self.view.members.iter().all(hears) {
            return;
        }
        self.suspects.remove(from);
        let known = self.view.everyone().chain(self.joins.iter().copied());
        if known.filter(|m| m.id == from).all(|m| m.incarnation < member.incarnation) {
            self.joins.retain(|j| j.id != from);
            self.joins.push(member);
            self.joins.sort_unstable();
            self.collect(ctx);
            self.consider(ctx);
        }
    }

    pub(super) fn on_welcome(&mut self, from: ProcessId, ctx: &mut Context<'_, Self>) {
        if self.standing == Standing::Joining {
            let member = self.myself(ctx.me());
            self.heard.insert(from);
            // It lives, and we hear it. Else we would come in only to have it, or ourselves, thrown
            // out again, time after time.
            self.suspects.remove(from);
            for to in self.heard.iter() {
                ctx.send(to, Message::Join { member, heard: self.heard.clone() });
            }
        }
    }

    /// A decision arrives: the end of our view, or the beginning of our first.
    pub(super) fn on_install(
        &mut self,
        view: ViewId,
        next: Arc<Next<C>>,
        ctx: &mut Context<'_, Self>,
    ) {
        match self.standing {
            Standing::Inside if view == self.view.id => self.decide(next, ctx),
            Standing::Joining if next.view.includes(self.myself(ctx.me())) => {
                self.has_state = false;
                self.install(&next, ctx);
            }
            Standing::Joining | Standing::Outside
                if next.view.find(ctx.me()).is_some_and(|m| m.incarnation < self.incarnation) =>
            {
                // They have taken in an earlier life of ours. It is over, but it did not leave in order.
                let (to, view) = (next.view.id.coordinator, next.view.id);
                let suspects = ProcessSet::from_iter([ctx.me()]);
                ctx.send(to, Message::Suspect { view, suspects });
            }
            Standing::Inside | Standing::Joining | Standing::Outside => {}
        }
    }

    pub(super) fn on_not_member(&mut self, view: ViewId, ctx: &mut Context<'_, Self>) {
        if self.standing == Standing::Inside && view > self.view.id {
            self.go_out(false, ctx);
        }
    }

    /// Tells someone who is behind what became of its view.
    pub(super) fn help(&self, to: ProcessId, old: ViewId, ctx: &mut Context<'_, Self>) {
        match &self.history {
            Some((view, next)) if *view == old => {
                ctx.send(to, Message::Install { view: old, next: next.clone() });
            }
            _ if self.view.find(to).is_none() => {
                ctx.send(to, Message::NotMember { view: self.view.id });
            }
            _ => {}
        }
    }

    /// Keeps what belongs to a view to come.
    pub(super) fn keep(&mut self, from: ProcessId, message: Message<C>) {
        if !matches!(message, Message::Heartbeat { .. }) && self.ahead.len() < AHEAD {
            self.ahead.push((from, message));
        }
    }

    pub(super) fn leave(&mut self, ctx: &mut Context<'_, Self>) {
        if self.standing != Standing::Inside {
            return;
        }
        self.leaving = true;
        self.leaves.insert(ctx.me());
        for to in self.view.others(ctx.me()) {
            ctx.send(to, Message::Leave { view: self.view.id });
        }
        self.consider(ctx);
    }

    /// Says again what we want, as long as nobody has acted on it: it may have been lost.
    pub(super) fn repeat_wishes(&mut self, ctx: &mut Context<'_, Self>) {
        if self.change.wedged {
            return;
        }
        if self.has_state && !self.is_member(ctx.me()) {
            self.tell_synced(ctx);
        }
        if self.leaving {
            self.leave(ctx);
        }
    }

    /// A group of one, in a new generation.
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
            Next { view, from: 0, cut: vec![], left: ProcessSet::new(), summaries: Vec::new() };
        self.has_state = true;
        self.history = None;
        for timer in [Timer::Collect, Timer::Retry] {
            ctx.cancel_timer(timer);
        }
        self.take_back_own(ctx.me());
        self.install(&next, ctx);
        self.start_heartbeat(ctx);
    }

    /// The view is over without an agreement on its last messages: our own that we have not delivered wait
    /// for the next one, before all others. Who else delivered them did so in a view that is declared over.
    fn take_back_own(&mut self, me: ProcessId) {
        let Ordering { base, delivered, .. } = self.ordering;
        let undelivered = self.ordering.order.drain(..).skip((delivered - base) as usize);
        let placed = undelivered.filter(|entry| entry.sender == me).map(|entry| entry.command);
        let mut own: VecDeque<C> = placed.collect();
        own.append(&mut self.ordering.own);
        own.append(&mut self.waiting);
        self.waiting = own;
    }

    /// The application gives its state.
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

    /// Sends the next parts to an observer, as many as may be under way.
    fn send_parts(&mut self, to: ProcessId, ctx: &mut Context<'_, Self>) {
        let Transfer { position, parts, progress, .. } = &mut self.transfer;
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

    /// Sends again what an observer has not got.
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
            // Another donor, or another moment: parts of two states do not make one.
            self.transfer.label = Some(position);
            self.transfer.received.clear();
        }
        if index as usize == self.transfer.received.len() {
            self.transfer.received.extend(part);
        }
        let got = self.transfer.received.len() as u32;
        ctx.send(from, Message::StateAck { view: self.view.id, parts: got });
        // Deliveries that the state includes must be known to us, to go on behind them.
        if got == count && position <= self.ordering.end() {
            let parts = std::mem::take(&mut self.transfer.received);
            self.has_state = true;
            self.ordering.delivered = position;
            ctx.indicate(Indication::State { position, parts });
            self.tell_synced(ctx);
            self.deliver(ctx);
        }
    }

    /// An observer with the state can become a member.
    fn tell_synced(&mut self, ctx: &mut Context<'_, Self>) {
        for member in &self.view.members {
            ctx.send(member.id, Message::Synced { view: self.view.id });
        }
    }
}
