//! From one view to the next: one consensus for each view, on the next view *and* on the messages
//! before it.

use std::collections::BTreeMap;
use std::sync::Arc;

use konklave_process::{Context, ProcessId, ProcessSet};
use serde::Serialize;

use super::{Ballot, Entry, Message, Next, Promise, Timer, VirtualSynchrony};
use crate::group::{Data, Indication, Member, View, ViewId};

/// How the end of the present view is being agreed on.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(bound = "C: Serialize")]
pub(super) struct Change<C> {
    /// Whether we have stopped. Nothing but the next view ends that.
    pub(super) wedged: bool,
    /// The highest attempt that we have promised to follow.
    pub(super) promised: Option<Ballot>,
    /// The last attempt whose proposal we have accepted.
    accepted: Option<Ballot>,
    /// The proposals we know, by attempt.
    #[serde(serialize_with = "crate::group::as_list")]
    proposals: BTreeMap<Ballot, Arc<Next<C>>>,
    /// Who has accepted them.
    #[serde(serialize_with = "crate::group::as_list")]
    accepters: BTreeMap<Ballot, ProcessSet>,
    /// Our own attempt.
    leading: Option<Leading<C>>,
    /// The highest attempt that came while we stood by the leader.
    pub(super) deferred: Option<Ballot>,
    /// What the layer above has to say, once it has said it.
    frozen: Option<C>,
    /// Whether we asked what was decided.
    asked: bool,
    /// Whether the application knows that we come to no decision.
    blocked: bool,
    attempts: u32,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
struct Leading<C> {
    /// Whether we wait no longer for those who are silent.
    collected: bool,
    proposed: bool,
    promises: BTreeMap<ProcessId, Arc<Promise<C>>>,
}

impl<C> Default for Change<C> {
    fn default() -> Self {
        Self {
            wedged: false,
            promised: None,
            accepted: None,
            proposals: BTreeMap::new(),
            accepters: BTreeMap::new(),
            leading: None,
            deferred: None,
            frozen: None,
            asked: false,
            blocked: false,
            attempts: 0,
        }
    }
}

impl<C: Data> VirtualSynchrony<C> {
    /// Starts a view change if there is a reason and it is up to us.
    pub(super) fn consider(&mut self, ctx: &mut Context<'_, Self>) {
        let at_it = |b: Ballot| b.by == ctx.me() || !self.suspects.contains(b.by);
        let someone_is = self.change.promised.is_some_and(at_it);
        if self.is_member(ctx.me())
            && self.is_due()
            && !someone_is
            && self.candidate() == Some(ctx.me())
        {
            if self.settings.retry && !self.is_urgent() {
                // Others may want in as well: one change for all.
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

    /// Whose turn it is to change the view: the most senior member that seems alive.
    pub(super) fn candidate(&self) -> Option<ProcessId> {
        self.view.members.iter().map(|m| m.id).find(|id| !self.is_gone(*id))
    }

    /// Whether there is a reason for a new view.
    fn is_due(&self) -> bool {
        let synced = self.view.observers.iter().any(|m| self.synced.contains(m.id));
        self.is_urgent() || synced || !self.joins.is_empty() || !self.over.is_empty()
    }

    /// Whether it cannot wait: someone is gone, or goes.
    fn is_urgent(&self) -> bool {
        let in_view = |set: &ProcessSet| self.view.everyone().any(|m| set.contains(m.id));
        in_view(&self.suspects) || in_view(&self.leaves) || self.reported
    }

    /// Whether a process of the view seems dead: it is silent, or lives another life.
    pub(super) fn is_gone(&self, id: ProcessId) -> bool {
        self.suspects.contains(id) || self.over.contains(id)
    }

    /// Our own attempt to end the view.
    pub(super) fn start(&mut self, ctx: &mut Context<'_, Self>) {
        if self.loyal && self.view.leader() != Some(ctx.me()) {
            return;
        }
        let round = self.change.promised.map_or(0, |b| b.round).saturating_add(1);
        let ballot = Ballot { round, by: ctx.me() };
        self.change.promised = Some(ballot);
        self.change.attempts += 1;
        self.change.leading =
            Some(Leading { collected: false, proposed: false, promises: BTreeMap::new() });
        for to in self.view.others(ctx.me()) {
            ctx.send(to, Message::Prepare { view: self.view.id, ballot });
        }
        ctx.set_timer(Timer::Collect, self.settings.unit * 8);
        self.wedge(ctx);
        self.promise(ctx);
    }

    /// Stops, for the rest of the view.
    fn wedge(&mut self, ctx: &mut Context<'_, Self>) {
        if !self.change.wedged {
            self.change.wedged = true;
            ctx.indicate(Indication::Wedged);
        }
        self.arm_retry(ctx);
    }

    /// Waits longer from attempt to attempt, and each member differently: of two that always meet,
    /// one will be done before the other starts.
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
        if self.loyal && self.view.leader() != Some(ballot.by) {
            self.change.deferred = self.change.deferred.max(Some(ballot));
            return;
        }
        self.change.promised = Some(ballot);
        if self.change.leading.take().is_some() {
            ctx.cancel_timer(Timer::Collect);
        }
        self.wedge(ctx);
        self.promise(ctx);
        // The candidate may be dead already.
        self.consider(ctx);
    }

    /// The layer above has answered.
    pub(super) fn on_freeze(&mut self, summary: C, ctx: &mut Context<'_, Self>) {
        if self.change.wedged && self.change.frozen.is_none() {
            self.change.frozen = Some(summary);
            self.promise(ctx);
        }
    }

    /// Tells the candidate what we know, as soon as the layer above has told us what it knows.
    fn promise(&mut self, ctx: &mut Context<'_, Self>) {
        let Some(ballot) = self.change.promised else { return };
        if *self.summarises && self.change.frozen.is_none() {
            return;
        }
        let promise = Arc::new(self.knowledge(ctx.me()));
        if ballot.by != ctx.me() {
            return ctx.send(ballot.by, Message::Promise { view: self.view.id, ballot, promise });
        }
        if let Some(leading) = &mut self.change.leading {
            leading.promises.insert(ctx.me(), promise);
            self.collect(ctx);
        }
    }

    fn knowledge(&self, me: ProcessId) -> Promise<C> {
        let ordering = &self.ordering;
        let own = (ordering.first_own()..).zip(&ordering.own);
        let accepted = self.change.accepted;
        Promise {
            accepted: accepted.map(|b| (b, self.change.proposals[&b].clone())),
            base: ordering.base,
            order: ordering.order.iter().cloned().collect(),
            last: ordering.last.iter().map(|(p, seq)| (*p, *seq)).collect(),
            early: ordering.early.iter().map(|(k, entry)| (*k, entry.clone())).collect(),
            own: own
                .map(|(seq, command)| Entry { sender: me, seq, command: command.clone() })
                .collect(),
            joins: self.joins.clone(),
            leaves: self.leaves.clone(),
            synced: self.synced.clone(),
            suspects: self.suspects.clone(),
            summary: self.change.frozen.clone(),
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
        if let Some(leading) = self.change.leading.as_mut().filter(|l| !l.proposed) {
            leading.promises.insert(from, promise);
            self.collect(ctx);
        }
    }

    /// We wait no longer for those who are silent.
    pub(super) fn on_collect(&mut self, ctx: &mut Context<'_, Self>) {
        if let Some(leading) = &mut self.change.leading {
            leading.collected = true;
            self.collect(ctx);
        }
    }

    /// Proposes when enough have answered, and all from whom an answer can be hoped for.
    pub(super) fn collect(&mut self, ctx: &mut Context<'_, Self>) {
        let Some(leading) = self.change.leading.as_ref().filter(|l| !l.proposed) else { return };
        let answered: ProcessSet = leading.promises.keys().copied().collect();
        let silent = |m: Member| !answered.contains(m.id) && !self.is_gone(m.id);
        let waits = !leading.collected && self.view.everyone().any(silent);
        if !self.is_quorum(&answered) || waits {
            return;
        }
        ctx.cancel_timer(Timer::Collect);
        let promises = leading.promises.clone();
        if let Some(leading) = &mut self.change.leading {
            (leading.proposed, leading.promises) = (true, BTreeMap::new());
        }
        let next = Arc::new(self.proposal(&promises, ctx.me()));
        self.propose(next, ctx);
    }

    /// What to propose: what may have been decided already, if anything; else our own.
    fn proposal(&self, promises: &BTreeMap<ProcessId, Arc<Promise<C>>>, me: ProcessId) -> Next<C> {
        let accepted = promises.values().filter_map(|p| p.accepted.as_ref()).max_by_key(|a| a.0);
        if let Some((_, next)) = accepted
            && !self.makes(&super::sheet::IGNORE_ACCEPTED)
        {
            return Next::clone(next);
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
        let said = |m: Member| Some((m, promises.get(&m.id)?.summary.clone()?));
        let summaries = self.view.everyone().filter_map(said).collect();
        let left = self.view.everyone().map(|m| m.id).filter(|id| leaves.contains(*id)).collect();
        Next { view, from, cut, left, summaries }
    }

    /// The next view: those who stopped and want to stay, most senior first; then those who have
    /// the state by now.
    fn successor(
        &self,
        promises: &BTreeMap<ProcessId, Arc<Promise<C>>>,
        leaves: &ProcessSet,
        synced: &ProcessSet,
        mut joins: Vec<Member>,
        me: ProcessId,
    ) -> View {
        let reborn = |m: &Member| joins.iter().any(|j| j.id == m.id && *j != *m);
        // Who seems dead we leave out even if it answered: if it is not, a view with it would only be the
        // next to end.
        let gone = |m: &Member| m.id != me && self.is_gone(m.id);
        let may_stay = |m: &&Member| !leaves.contains(m.id) && !reborn(m) && !gone(m);
        let stopped = |m: &&Member| {
            promises.contains_key(&m.id)
                || (self.makes(&super::sheet::NON_PROMISERS) && !self.is_gone(m.id))
        };
        let stays = |m: &&Member| may_stay(m) && stopped(m);
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
        // Of two lives of a process, the later one.
        for i in (1..joins.len()).rev() {
            if joins[i - 1].id == joins[i].id {
                joins.remove(i - 1);
            }
        }
        observers.extend(joins);
        if members.is_empty() {
            // With the last who had the state, the group is over: nobody enters it any more.
            observers.clear();
        }
        let ViewId { generation, epoch, .. } = self.view.id;
        let id = ViewId { generation, epoch: epoch.saturating_add(1), coordinator: me };
        View { id, members, observers }
    }

    /// Those who all hear each other, seniors first: with two of which one is deaf to the other, no
    /// view would last.
    fn clique<'a>(
        everyone: impl Iterator<Item = &'a Member>,
        promises: &BTreeMap<ProcessId, Arc<Promise<C>>>,
    ) -> ProcessSet {
        let deaf =
            |a: ProcessId, b: ProcessId| promises.get(&a).is_some_and(|p| p.suspects.contains(b));
        let mut clique = ProcessSet::new();
        for m in everyone {
            if clique.iter().all(|c| !deaf(c, m.id) && !deaf(m.id, c)) {
                clique.insert(m.id);
            }
        }
        clique
    }

    /// The messages before the next view: all that have a place, then those of each member that
    /// have none yet. A message whose predecessor nobody has is dropped by everyone.
    fn cut(&self, promises: &BTreeMap<ProcessId, Arc<Promise<C>>>) -> (u64, Vec<Entry<C>>) {
        let from = promises.values().map(|p| p.base).max().unwrap_or(0);
        let longest = promises.values().max_by_key(|p| p.base.saturating_add(p.order.len() as u64));
        let Some(longest) = longest else { return (from, Vec::new()) };
        let skip = from.saturating_sub(longest.base) as usize;
        let mut cut: Vec<Entry<C>> = longest.order.iter().skip(skip).cloned().collect();
        let mut last: BTreeMap<ProcessId, u32> = longest.last.iter().copied().collect();
        let mut early: Vec<&(u64, Entry<C>)> =
            promises.values().flat_map(|p| p.early.iter()).collect();
        early.sort_unstable_by_key(|(position, _)| *position);
        let members = self.view.members.iter();
        let own = members.filter_map(|m| promises.get(&m.id)).flat_map(|p| p.own.iter());
        for entry in early.into_iter().map(|(_, entry)| entry).chain(own) {
            let last = last.entry(entry.sender).or_insert(0);
            if entry.seq == last.saturating_add(1) {
                *last = entry.seq;
                cut.push(entry.clone());
            }
        }
        (from, cut)
    }

    fn propose(&mut self, next: Arc<Next<C>>, ctx: &mut Context<'_, Self>) {
        let (Some(ballot), view) = (self.change.promised, self.view.id) else { return };
        if self.makes(&super::sheet::TWO_PHASES) {
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

    fn accept(&mut self, ballot: Ballot, next: Arc<Next<C>>) {
        self.change.promised = Some(ballot);
        self.change.accepted = Some(ballot);
        self.change.proposals.insert(ballot, next);
    }

    /// A proposal arrives, from whoever accepted it. It brings all messages along, so that who
    /// accepts it can end the view.
    pub(super) fn on_accept(
        &mut self,
        from: ProcessId,
        ballot: Ballot,
        next: Arc<Next<C>>,
        ctx: &mut Context<'_, Self>,
    ) {
        if !self.is_member(ctx.me()) {
            return;
        }
        let accepter = self.change.accepters.entry(ballot).or_default();
        accepter.insert(from);
        if Some(ballot) >= self.change.promised && self.change.accepted != Some(ballot) {
            if ballot.by != ctx.me() && self.change.leading.take().is_some() {
                ctx.cancel_timer(Timer::Collect);
            }
            self.accept(ballot, next);
            self.wedge(ctx);
            let me = ctx.me();
            for member in self.view.members.iter().filter(|m| m.id != me) {
                ctx.send(member.id, Message::Accepted { view: self.view.id, ballot });
            }
            self.note_accepted(ballot, ctx.me(), ctx);
            self.consider(ctx);
        } else {
            // We may not accept it any more; but if others do, we know what it is.
            self.change.proposals.insert(ballot, next);
            self.note_accepted(ballot, from, ctx);
        }
    }

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

    /// Someone of our view knows of a decision and not what it is.
    pub(super) fn on_ask(&self, from: ProcessId, ctx: &mut Context<'_, Self>) {
        let Some(ballot) = self.change.accepted else { return };
        let next = self.change.proposals[&ballot].clone();
        ctx.send(from, Message::Accept { view: self.view.id, ballot, next });
    }

    /// The attempt has come to nothing: our turn, whoever we are.
    pub(super) fn on_retry(&mut self, ctx: &mut Context<'_, Self>) {
        if self.change.wedged && self.is_member(ctx.me()) {
            if !std::mem::replace(&mut self.change.blocked, true) {
                ctx.indicate(Indication::Blocked);
            }
            self.start(ctx);
        }
    }

    /// The view ends: the messages before its end, then the next view.
    pub(super) fn decide(&mut self, next: Arc<Next<C>>, ctx: &mut Context<'_, Self>) {
        let goes_on = next.view.includes(self.myself(ctx.me()));
        if self.has_state && (goes_on || !self.settings.agreed) {
            self.close(&next, ctx);
        }
        let old = self.view.id;
        let leaders = [Some(next.view.id.coordinator), next.view.leader()];
        if leaders.contains(&Some(ctx.me())) {
            let mut told: Vec<Member> = self.view.observers.clone();
            told.extend(&next.view.observers);
            told.sort_unstable();
            told.dedup_by_key(|m| m.id);
            let me = ctx.me();
            for to in told.iter().filter(|m| m.id != me) {
                ctx.send(to.id, Message::Install { view: old, next: next.clone() });
            }
        }
        for timer in [Timer::Collect, Timer::Retry] {
            ctx.cancel_timer(timer);
        }
        self.history = Some((old, next.clone()));
        if goes_on {
            self.install(&next, ctx);
        } else {
            self.go_out(next.left.contains(ctx.me()), ctx);
        }
    }

    /// Delivers what is missing of the view that ends.
    fn close(&mut self, next: &Next<C>, ctx: &mut Context<'_, Self>) {
        while self.ordering.delivered < next.from.min(self.ordering.end()) {
            let place = (self.ordering.delivered - self.ordering.base) as usize;
            let entry = self.ordering.order[place].clone();
            self.hand_over(entry, ctx);
        }
        let known = self.ordering.delivered.saturating_sub(next.from) as usize;
        for entry in next.cut.iter().skip(known) {
            self.hand_over(entry.clone(), ctx);
        }
    }
}
