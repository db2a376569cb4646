//! From one view to the next: one consensus decides the next view *and* the messages before it.

use std::collections::BTreeMap;
use std::sync::Arc;

use konklave_process::{Context, ProcessId, ProcessSet};
use serde::Serialize;

use super::{Ballot, Entry, Message, Promise, Proposal, Timer, VirtualSynchrony};
use crate::group::{Data, Indication, Member, View, ViewId};

/// The state of the consensus that ends the present view.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(bound = "C: Serialize")]
pub(super) struct ViewChange<C> {
    /// Whether this process has stopped taking in messages. Only the next view ends that.
    pub(super) wedged: bool,
    /// The highest ballot that this process has promised to follow.
    pub(super) promised: Option<Ballot>,
    /// The last ballot whose proposal this process has accepted.
    accepted: Option<Ballot>,
    /// The known proposals, by ballot.
    #[serde(serialize_with = "crate::group::as_list")]
    proposals: BTreeMap<Ballot, Arc<Proposal<C>>>,
    /// The members that have accepted the proposal of each ballot.
    #[serde(serialize_with = "crate::group::as_list")]
    accepters: BTreeMap<Ballot, ProcessSet>,
    /// At a candidate: its own attempt.
    #[serde(rename = "leading")]
    attempt: Option<Attempt<C>>,
    /// The highest ballot that arrived while a lease bound this process to the leader.
    pub(super) deferred: Option<Ballot>,
    /// The summary of the layer above, once that layer has given it.
    #[serde(rename = "frozen")]
    summary: Option<C>,
    /// Whether this process asked for a decided proposal that it lacks.
    asked: bool,
    /// Whether the application was told that no majority answers.
    blocked: bool,
    /// How many attempts this process has started in this view.
    attempts: u32,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
struct Attempt<C> {
    /// Whether the candidate waits no longer for processes that have not promised.
    collected: bool,
    proposed: bool,
    promises: BTreeMap<ProcessId, Arc<Promise<C>>>,
}

impl<C> Default for ViewChange<C> {
    fn default() -> Self {
        Self {
            wedged: false,
            promised: None,
            accepted: None,
            proposals: BTreeMap::new(),
            accepters: BTreeMap::new(),
            attempt: None,
            deferred: None,
            summary: None,
            asked: false,
            blocked: false,
            attempts: 0,
        }
    }
}

impl<C: Data> VirtualSynchrony<C> {
    /// Starts a view change if there is a reason for one and this process is the candidate.
    pub(super) fn consider_view_change(&mut self, ctx: &mut Context<'_, Self>) {
        let is_alive = |b: Ballot| b.by == ctx.me() || !self.suspects.contains(b.by);
        let under_way = self.change.promised.is_some_and(is_alive);
        if self.is_member(ctx.me())
            && self.is_due()
            && !under_way
            && self.candidate() == Some(ctx.me())
        {
            if self.settings.retry && !self.is_urgent() {
                // More processes may ask to join: one view change serves all of them.
                if !std::mem::replace(&mut self.batching, true) {
                    ctx.set_timer(Timer::Batch, self.settings.unit * 3);
                }
                return;
            }
            self.start(ctx);
        }
    }

    pub(super) fn on_batch(&mut self, ctx: &mut Context<'_, Self>) {
        self.batching = false;
        if self.change.promised.is_none() && self.is_member(ctx.me()) && self.is_due() {
            self.start(ctx);
        }
    }

    /// The candidate, which is to change the view: the most senior member that seems alive.
    pub(super) fn candidate(&self) -> Option<ProcessId> {
        self.view.members.iter().map(|m| m.id).find(|id| !self.seems_gone(*id))
    }

    /// Whether there is a reason for a new view.
    fn is_due(&self) -> bool {
        let synced = self.view.observers.iter().any(|m| self.synced.contains(m.id));
        self.is_urgent() || synced || !self.joins.is_empty() || !self.restarted.is_empty()
    }

    /// Whether the view change cannot wait: a process of the view is suspected, or leaves.
    fn is_urgent(&self) -> bool {
        let in_view = |set: &ProcessSet| self.view.everyone().any(|m| set.contains(m.id));
        in_view(&self.suspects) || in_view(&self.leaves) || self.reported
    }

    /// Whether a process of the view seems dead: it is suspected, or has restarted.
    pub(super) fn seems_gone(&self, id: ProcessId) -> bool {
        self.suspects.contains(id) || self.restarted.contains(id)
    }

    /// Starts an attempt to end the view, with a higher ballot than all known ones (phase 1).
    pub(super) fn start(&mut self, ctx: &mut Context<'_, Self>) {
        if self.bound_to_leader && self.view.leader() != Some(ctx.me()) {
            return;
        }
        let round = self.change.promised.map_or(0, |b| b.round).saturating_add(1);
        let ballot = Ballot { round, by: ctx.me() };
        self.change.promised = Some(ballot);
        self.change.attempts += 1;
        self.change.attempt =
            Some(Attempt { collected: false, proposed: false, promises: BTreeMap::new() });
        for to in self.view.others(ctx.me()) {
            ctx.send(to, Message::Prepare { view: self.view.id, ballot });
        }
        ctx.set_timer(Timer::Collect, self.settings.unit * 8);
        self.wedge(ctx);
        self.promise(ctx);
    }

    /// Stops taking in messages, for the rest of the view.
    fn wedge(&mut self, ctx: &mut Context<'_, Self>) {
        if !self.change.wedged {
            self.change.wedged = true;
            ctx.indicate(Indication::Wedged);
        }
        self.arm_retry(ctx);
    }

    /// Sets the timer for the next attempt. Two candidates whose attempts always meet would stop each
    /// other forever. So the wait grows with each attempt and differs from member to member.
    fn arm_retry(&mut self, ctx: &mut Context<'_, Self>) {
        if self.settings.retry && self.is_member(ctx.me()) {
            let rank = self.view.rank(ctx.me()).unwrap_or(0) as u32;
            let n = self.view.members.len() as u32;
            let pause = self.settings.unit * 12 * (1 << self.change.attempts.min(6));
            ctx.set_timer(Timer::Retry, pause + pause * rank / n);
        }
    }

    pub(super) fn on_prepare(&mut self, ballot: Ballot, ctx: &mut Context<'_, Self>) {
        if Some(ballot) < self.change.promised {
            return;
        }
        if self.bound_to_leader && self.view.leader() != Some(ballot.by) {
            self.change.deferred = self.change.deferred.max(Some(ballot));
            return;
        }
        self.change.promised = Some(ballot);
        if self.change.attempt.take().is_some() {
            ctx.cancel_timer(Timer::Collect);
        }
        self.wedge(ctx);
        self.promise(ctx);
        // The candidate may have crashed since: then this process may be the next one.
        self.consider_view_change(ctx);
    }

    /// The layer above has given its summary.
    pub(super) fn on_freeze(&mut self, summary: C, ctx: &mut Context<'_, Self>) {
        if self.change.wedged && self.change.summary.is_none() {
            self.change.summary = Some(summary);
            self.promise(ctx);
        }
    }

    /// Promises: reports to the candidate what this process knows, once the layer above has given
    /// its summary.
    fn promise(&mut self, ctx: &mut Context<'_, Self>) {
        let Some(ballot) = self.change.promised else { return };
        if *self.summarises && self.change.summary.is_none() {
            return;
        }
        let promise = Arc::new(self.knowledge(ctx.me()));
        if ballot.by != ctx.me() {
            return ctx.send(ballot.by, Message::Promise { view: self.view.id, ballot, promise });
        }
        if let Some(attempt) = &mut self.change.attempt {
            attempt.promises.insert(ctx.me(), promise);
            self.try_propose(ctx);
        }
    }

    /// The content of a promise.
    fn knowledge(&self, me: ProcessId) -> Promise<C> {
        let ordering = &self.ordering;
        let unplaced = (ordering.first_unplaced()..).zip(&ordering.unplaced);
        let accepted = self.change.accepted;
        Promise {
            accepted: accepted.map(|b| (b, self.change.proposals[&b].clone())),
            base: ordering.base,
            order: ordering.order.iter().cloned().collect(),
            last: ordering.last.iter().map(|(p, seq)| (*p, *seq)).collect(),
            out_of_order: ordering
                .out_of_order
                .iter()
                .map(|(k, entry)| (*k, entry.clone()))
                .collect(),
            unplaced: unplaced
                .map(|(seq, command)| Entry { sender: me, seq, command: command.clone() })
                .collect(),
            joins: self.joins.clone(),
            leaves: self.leaves.clone(),
            synced: self.synced.clone(),
            suspects: self.suspects.clone(),
            summary: self.change.summary.clone(),
        }
    }

    pub(super) fn on_promise(
        &mut self,
        from: ProcessId,
        ballot: Ballot,
        promise: Arc<Promise<C>>,
        ctx: &mut Context<'_, Self>,
    ) {
        if self.change.promised != Some(ballot) {
            return;
        }
        if let Some(attempt) = self.change.attempt.as_mut().filter(|l| !l.proposed) {
            attempt.promises.insert(from, promise);
            self.try_propose(ctx);
        }
    }

    /// The candidate waits no longer for processes that have not promised.
    pub(super) fn on_collect(&mut self, ctx: &mut Context<'_, Self>) {
        if let Some(attempt) = &mut self.change.attempt {
            attempt.collected = true;
            self.try_propose(ctx);
        }
    }

    /// At a candidate: proposes when a majority has promised, and all others that seem alive, too.
    pub(super) fn try_propose(&mut self, ctx: &mut Context<'_, Self>) {
        let Some(attempt) = self.change.attempt.as_ref().filter(|l| !l.proposed) else { return };
        let answered: ProcessSet = attempt.promises.keys().copied().collect();
        let silent = |m: Member| !answered.contains(m.id) && !self.seems_gone(m.id);
        let waits = !attempt.collected && self.view.everyone().any(silent);
        if !self.is_quorum(&answered) || waits {
            return;
        }
        ctx.cancel_timer(Timer::Collect);
        let promises = attempt.promises.clone();
        if let Some(attempt) = &mut self.change.attempt {
            (attempt.proposed, attempt.promises) = (true, BTreeMap::new());
        }
        let next = Arc::new(self.proposal(&promises, ctx.me()));
        self.propose(next, ctx);
    }

    /// The proposal of this candidate. A majority may have accepted an earlier one, which is then
    /// decided; so the accepted proposal of the highest ballot takes precedence (Q1).
    fn proposal(
        &self,
        promises: &BTreeMap<ProcessId, Arc<Promise<C>>>,
        me: ProcessId,
    ) -> Proposal<C> {
        let accepted = promises.values().filter_map(|p| p.accepted.as_ref()).max_by_key(|a| a.0);
        if let Some((_, next)) = accepted
            && self.adopts_accepted()
        {
            return Proposal::clone(next);
        }
        let mut leaves = self.leaves.clone();
        let mut synced = self.synced.clone();
        let mut joins = self.joins.clone();
        for promise in promises.values() {
            leaves.union_with(&promise.leaves);
            synced.union_with(&promise.synced);
            joins.extend(&promise.joins);
        }
        let (from, cut) = self.cut(promises);
        let view = self.successor(promises, &leaves, &synced, joins, me);
        let summary = |m: Member| Some((m, promises.get(&m.id)?.summary.clone()?));
        let summaries = self.view.everyone().filter_map(summary).collect();
        let left = self.view.everyone().map(|m| m.id).filter(|id| leaves.contains(*id)).collect();
        Proposal { view, from, cut, left, summaries }
    }

    /// The next view. Its members are the members that promised and want to stay, the most senior
    /// first, and then the observers that have the state. Its observers are the remaining observers
    /// and the processes that asked to join.
    fn successor(
        &self,
        promises: &BTreeMap<ProcessId, Arc<Promise<C>>>,
        leaves: &ProcessSet,
        synced: &ProcessSet,
        mut joins: Vec<Member>,
        me: ProcessId,
    ) -> View {
        let restarted = |m: &Member| joins.iter().any(|j| j.id == m.id && *j != *m);
        // A suspected process is left out even if it promised: the suspicion would end the next view
        // at once.
        let gone = |m: &Member| m.id != me && self.seems_gone(m.id);
        let may_stay = |m: &&Member| !leaves.contains(m.id) && !restarted(m) && !gone(m);
        let promised =
            |m: &&Member| promises.contains_key(&m.id) || self.admits_without_promise(m.id);
        let stays = |m: &&Member| may_stay(m) && promised(m);
        let mut members: Vec<Member> = self.view.members.iter().filter(stays).copied().collect();
        let mut observers: Vec<Member> =
            self.view.observers.iter().filter(stays).copied().collect();
        members.extend(observers.extract_if(.., |m| synced.contains(m.id)));
        let clique = Self::clique(members.iter().chain(&observers), promises);
        if self.is_quorum(&clique) {
            members.retain(|m| clique.contains(m.id));
            observers.retain(|m| clique.contains(m.id));
        }
        joins.sort_unstable();
        joins.dedup();
        joins.retain(|j| members.iter().chain(&observers).all(|m| m.id != j.id));
        // Of two incarnations of a process, the later one joins.
        for i in (1..joins.len()).rev() {
            if joins[i - 1].id == joins[i].id {
                joins.remove(i - 1);
            }
        }
        observers.extend(joins);
        if members.is_empty() {
            // No process of the next view has the state: the group is over, so no process joins it.
            observers.clear();
        }
        let ViewId { generation, epoch, .. } = self.view.id;
        let id = ViewId { generation, epoch: epoch.saturating_add(1), coordinator: me };
        View { id, members, observers }
    }

    /// Processes none of which suspects another, chosen from the most senior on. If one process of
    /// a view suspects another, the view does not last.
    fn clique<'a>(
        everyone: impl Iterator<Item = &'a Member>,
        promises: &BTreeMap<ProcessId, Arc<Promise<C>>>,
    ) -> ProcessSet {
        let suspects =
            |a: ProcessId, b: ProcessId| promises.get(&a).is_some_and(|p| p.suspects.contains(b));
        let mut clique = ProcessSet::new();
        for m in everyone {
            if clique.iter().all(|c| !suspects(c, m.id) && !suspects(m.id, c)) {
                clique.insert(m.id);
            }
        }
        clique
    }

    /// The messages before the next view: all that have a place, then the messages of each member
    /// that have none. If no promise contains a predecessor of a message, every process drops it.
    fn cut(&self, promises: &BTreeMap<ProcessId, Arc<Promise<C>>>) -> (u64, Vec<Entry<C>>) {
        let from = promises.values().map(|p| p.base).max().unwrap_or(0);
        let longest = promises.values().max_by_key(|p| p.base.saturating_add(p.order.len() as u64));
        let Some(longest) = longest else { return (from, Vec::new()) };
        let skip = from.saturating_sub(longest.base) as usize;
        let mut cut: Vec<Entry<C>> = longest.order.iter().skip(skip).cloned().collect();
        let mut last: BTreeMap<ProcessId, u32> = longest.last.iter().copied().collect();
        let mut out_of_order: Vec<&(u64, Entry<C>)> =
            promises.values().flat_map(|p| p.out_of_order.iter()).collect();
        out_of_order.sort_unstable_by_key(|(position, _)| *position);
        let members = self.view.members.iter();
        let unplaced = members.filter_map(|m| promises.get(&m.id)).flat_map(|p| p.unplaced.iter());
        for entry in out_of_order.into_iter().map(|(_, entry)| entry).chain(unplaced) {
            let last = last.entry(entry.sender).or_insert(0);
            if entry.seq == last.saturating_add(1) {
                *last = entry.seq;
                cut.push(entry.clone());
            }
        }
        (from, cut)
    }

    /// Asks all members to accept a proposal (phase 2).
    fn propose(&mut self, next: Arc<Proposal<C>>, ctx: &mut Context<'_, Self>) {
        let (Some(ballot), view) = (self.change.promised, self.view.id) else { return };
        if !self.asks_to_accept() {
            for to in self.view.others(ctx.me()) {
                ctx.send(to, Message::Install { view, next: next.clone() });
            }
            return self.decide(next, ctx);
        }
        let me = ctx.me();
        for member in self.view.members.iter().filter(|m| m.id != me) {
            ctx.send(member.id, Message::Accept { view, ballot, next: next.clone() });
        }
        self.accept(ballot, next);
        self.note_accepted(ballot, ctx.me(), ctx);
    }

    fn accept(&mut self, ballot: Ballot, next: Arc<Proposal<C>>) {
        self.change.promised = Some(ballot);
        self.change.accepted = Some(ballot);
        self.change.proposals.insert(ballot, next);
    }

    /// `from` has accepted a proposal. The proposal carries all its messages, so that this process
    /// can end the view once it is decided (Q3).
    pub(super) fn on_accept(
        &mut self,
        from: ProcessId,
        ballot: Ballot,
        next: Arc<Proposal<C>>,
        ctx: &mut Context<'_, Self>,
    ) {
        if !self.is_member(ctx.me()) {
            return;
        }
        let accepter = self.change.accepters.entry(ballot).or_default();
        accepter.insert(from);
        if Some(ballot) >= self.change.promised && self.change.accepted != Some(ballot) {
            if ballot.by != ctx.me() && self.change.attempt.take().is_some() {
                ctx.cancel_timer(Timer::Collect);
            }
            self.accept(ballot, next);
            self.wedge(ctx);
            let me = ctx.me();
            for member in self.view.members.iter().filter(|m| m.id != me) {
                ctx.send(member.id, Message::Accepted { view: self.view.id, ballot });
            }
            self.note_accepted(ballot, ctx.me(), ctx);
            self.consider_view_change(ctx);
        } else {
            // This process promised a higher ballot. A majority may still accept the proposal, and
            // then this process has it.
            self.change.proposals.insert(ballot, next);
            self.note_accepted(ballot, from, ctx);
        }
    }

    /// Counts that `by` accepted the proposal of `ballot`. A majority decides it.
    pub(super) fn note_accepted(
        &mut self,
        ballot: Ballot,
        by: ProcessId,
        ctx: &mut Context<'_, Self>,
    ) {
        let accepters = self.change.accepters.entry(ballot).or_default();
        accepters.insert(by);
        let accepters = accepters.clone();
        if !self.is_quorum(&accepters) {
            return;
        }
        match self.change.proposals.get(&ballot) {
            Some(next) => self.decide(next.clone(), ctx),
            None if !self.change.asked => {
                self.change.asked = true;
                ctx.send(by, Message::Ask { view: self.view.id });
            }
            None => {}
        }
    }

    /// `from` knows that a proposal was decided, and has not received it.
    pub(super) fn on_ask(&self, from: ProcessId, ctx: &mut Context<'_, Self>) {
        let Some(ballot) = self.change.accepted else { return };
        let next = self.change.proposals[&ballot].clone();
        ctx.send(from, Message::Accept { view: self.view.id, ballot, next });
    }

    /// The present attempt has taken too long: any member starts the next one.
    pub(super) fn on_retry(&mut self, ctx: &mut Context<'_, Self>) {
        if self.change.wedged && self.is_member(ctx.me()) {
            if !std::mem::replace(&mut self.change.blocked, true) {
                ctx.indicate(Indication::Blocked);
            }
            self.start(ctx);
        }
    }

    /// A proposal is decided: delivers the remaining messages of the view, then ends it.
    pub(super) fn decide(&mut self, next: Arc<Proposal<C>>, ctx: &mut Context<'_, Self>) {
        let goes_on = next.view.includes(self.myself(ctx.me()));
        if self.has_state && (goes_on || !self.settings.agreed) {
            self.deliver_cut(&next, ctx);
        }
        let old = self.view.id;
        let leaders = [Some(next.view.id.coordinator), next.view.leader()];
        if leaders.contains(&Some(ctx.me())) {
            let mut observers: Vec<Member> = self.view.observers.clone();
            observers.extend(&next.view.observers);
            observers.sort_unstable();
            observers.dedup_by_key(|m| m.id);
            let me = ctx.me();
            for to in observers.iter().filter(|m| m.id != me) {
                ctx.send(to.id, Message::Install { view: old, next: next.clone() });
            }
        }
        for timer in [Timer::Collect, Timer::Retry] {
            ctx.cancel_timer(timer);
        }
        self.last_change = Some((old, next.clone()));
        if goes_on {
            self.install(&next, ctx);
        } else {
            self.exit_view(next.left.contains(ctx.me()), ctx);
        }
    }

    /// Delivers the remaining messages of the view that ends.
    fn deliver_cut(&mut self, next: &Proposal<C>, ctx: &mut Context<'_, Self>) {
        while self.ordering.delivered < next.from.min(self.ordering.end()) {
            let place = (self.ordering.delivered - self.ordering.base) as usize;
            let entry = self.ordering.order[place].clone();
            self.deliver_entry(entry, ctx);
        }
        let known = self.ordering.delivered.saturating_sub(next.from) as usize;
        for entry in next.cut.iter().skip(known) {
            self.deliver_entry(entry.clone(), ctx);
        }
    }
}
