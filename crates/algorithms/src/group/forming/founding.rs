//! Agreement on the first view, where more founders may be present than a group needs.
//!
//! Scenario: two founders each see enough processes, but different ones, and propose different first views.
//! Hazard: if each process entered the first view it hears of, both views could get a majority: two groups.
//! Rule: a process promises itself to one proposal at a time, and a view is entered when *all* its members
//! have promised it. Two sets of founders that share a member then found at most one group; they share one as
//! long as fewer than twice the needed founders are present.
//!
//! A promise ends when the proposer withdraws (because a lower id proposes, too, or because a member is gone
//! or in a group), and when the proposer restarts.

use konklave_process::{Context, Fixed, ProcessId, ProcessSet};
use serde::Serialize;

use super::{Forming, FoundingMessage, Message, PeerStatus, Timer};
use crate::group::{Data, Member, View, ViewId};

/// The promise given to a proposer, and the promises received for an own proposal.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize)]
pub(super) struct Promises {
    /// The proposal this process has promised to enter, with its number.
    given: Option<(u64, View)>,
    /// If it is an own proposal: the members that have promised it.
    received: ProcessSet,
    /// A view promised to a proposer that has restarted since: other members may have entered it.
    past: Option<View>,
    /// How many proposals this incarnation has made.
    made: u32,
    /// Whether this process leaves the field to a lower id for a while.
    pub(super) abstains: bool,
    /// Whether promises are not recorded, by mistake.
    #[serde(skip)]
    pub(super) volatile: Fixed<bool>,
}

impl Promises {
    /// The view that this process has promised to enter.
    pub(super) fn view(&self) -> Option<&View> {
        self.given.as_ref().map(|(_, given)| given).or(self.past.as_ref())
    }

    /// The part of the record: the members of that view.
    pub(super) fn recorded(&self) -> Vec<ProcessId> {
        let view = self.view().filter(|_| !*self.volatile);
        view.into_iter().flat_map(|view| &view.members).map(|m| m.id).collect()
    }

    pub(super) fn new(volatile: bool) -> Self {
        Self { volatile: Fixed(volatile), ..Self::default() }
    }

    /// Whether this is the view this process has promised to enter.
    fn covers(&self, view: &View) -> bool {
        self.view() == Some(view)
    }

    /// This process has entered a view, or the proposal failed.
    pub(super) fn clear(&mut self) {
        (self.given, self.past) = (None, None);
        self.received.clear();
    }

    fn ours(&self, me: ProcessId) -> Option<&(u64, View)> {
        self.given.as_ref().filter(|(_, view)| view.id.coordinator == me)
    }

    fn is_ours(&self, number: u64, me: ProcessId) -> bool {
        self.ours(me).is_some_and(|(ours, _)| *ours == number)
    }
}

impl<C: Data> Forming<C> {
    /// The other process to which this one has promised itself, if any.
    pub fn promised_to(&self, me: ProcessId) -> Option<ProcessId> {
        let given = self.promises.given.as_ref();
        given.map(|(_, view)| view.id.coordinator).filter(|to| *to != me)
    }

    /// The members that have not promised the own proposal.
    pub fn not_yet_promised(&self, me: ProcessId) -> Vec<ProcessId> {
        let ours = self.promises.ours(me).map(|(_, view)| view);
        let others = ours.map(|view| view.others(me)).into_iter().flatten();
        others.filter(|id| !self.promises.received.contains(*id)).collect()
    }

    pub(super) fn on_founding(
        &mut self,
        from: ProcessId,
        message: FoundingMessage,
        ctx: &mut Context<'_, Self>,
    ) {
        if self.is_inside() || self.stopped {
            return;
        }
        match message {
            FoundingMessage::Propose { number, view } => self.on_proposal(from, number, view, ctx),
            FoundingMessage::Promise { number } => {
                if self.promises.is_ours(number, ctx.me()) {
                    self.promises.received.insert(from);
                    self.found_if_all_agree(ctx);
                }
            }
            FoundingMessage::Refuse { number, to } => {
                if self.promises.is_ours(number, ctx.me()) && to < ctx.me() && self.yields() {
                    self.withdraw_proposal(ctx);
                    self.promises.abstains = true;
                    ctx.set_timer(Timer::Abstain, self.settings.times.abstain);
                }
            }
            FoundingMessage::Withdraw { number } => {
                let given = self.promises.given.as_ref();
                let of = |(n, view): &(u64, View)| view.id.coordinator == from && *n == number;
                if given.is_some_and(of) && self.releases_withdrawn() {
                    self.release(ctx);
                }
            }
        }
    }

    /// A peer reports its incarnation. If it has restarted, its earlier proposals are over.
    pub(super) fn end_promise_of_restarted(&mut self, member: Member, me: ProcessId) {
        let theirs = |(_, view): &(u64, View)| {
            let then = view.find(member.id).filter(|m| view.id.coordinator == m.id);
            then.is_some_and(|then| then.incarnation != member.incarnation)
        };
        if member.id != me
            && self.promises.given.as_ref().is_some_and(theirs)
            && self.releases_restarted()
        {
            self.promises.past = self.promises.given.take().map(|(_, view)| view);
        }
    }

    fn on_proposal(
        &mut self,
        from: ProcessId,
        number: u64,
        view: View,
        ctx: &mut Context<'_, Self>,
    ) {
        let first = view.id.coordinator == from && view.id.epoch == 0;
        self.end_withdrawn_promise(&view);
        // Members of the last view may have gone on without this process: promise only under the conditions for
        // an own proposal.
        let free = self.is_last_view_over(ctx.me()) && view.id.generation > self.known_generation();
        if !first || !free || !view.members.contains(&self.myself(ctx.me())) {
            return;
        }
        let held = self.promises.given.as_ref().map(|(_, held)| held.id.coordinator);
        let answer = match held {
            Some(held) if held == ctx.me() && from < ctx.me() => {
                self.withdraw_proposal(ctx);
                FoundingMessage::Promise { number }
            }
            Some(held) if held != from && self.promises_once() => {
                FoundingMessage::Refuse { number, to: held }
            }
            // A new proposal of the same proposer replaces its last one.
            Some(_) | None => FoundingMessage::Promise { number },
        };
        if matches!(answer, FoundingMessage::Promise { .. }) {
            self.promise(number, view, ctx);
        }
        ctx.send(from, Message::Founding(answer));
    }

    /// Proposes a first view, or repeats the present proposal to the members that have not promised.
    pub(super) fn propose(&mut self, ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        if self.promises.ours(me).is_some_and(|(_, view)| !self.can_still_be(view, me)) {
            self.withdraw_proposal(ctx);
        }
        if self.promises.given.is_none() && !self.promises.abstains {
            let Some(view) = self.first_view(me) else { return };
            self.promises.made += 1;
            // A promise to an earlier incarnation must not count for this one.
            let number = u64::from(self.numbering()) << 32 | u64::from(self.promises.made);
            self.promise(number, view, ctx);
        }
        let Some((number, view)) = self.promises.ours(me).cloned() else { return };
        for to in self.not_yet_promised(me) {
            let proposal = FoundingMessage::Propose { number, view: view.clone() };
            ctx.send(to, Message::Founding(proposal));
        }
        self.found_if_all_agree(ctx);
    }

    /// The proposer of `view` has withdrawn its earlier proposals, unless an earlier incarnation made them.
    fn end_withdrawn_promise(&mut self, view: &View) {
        let proposer = |view: &View| view.find(view.id.coordinator);
        let given = self.promises.given.as_ref();
        if given.is_some_and(|(_, given)| given != view && proposer(given) == proposer(view)) {
            self.promises.clear();
        }
    }

    /// Promises itself to a proposal, perhaps its own.
    ///
    /// Scenario: this process promises, crashes and restarts, and the other members of the proposed view go on in it. Hazard:
    /// if it had forgotten its promise, it could found another group. Rule: the promised view is part of the record, and counts
    /// as its last view.
    fn promise(&mut self, number: u64, view: View, ctx: &mut Context<'_, Self>) {
        (self.promises.given, self.promises.past) = (Some((number, view)), None);
        ctx.save(self.record());
    }

    /// The promise ends, and no process enters the promised view.
    fn release(&mut self, ctx: &mut Context<'_, Self>) {
        self.promises.clear();
        ctx.save(self.record());
    }

    /// The first view, if all founders are present and this process is the one to propose it.
    fn first_view(&self, me: ProcessId) -> Option<View> {
        let founders = self.founders(me);
        if founders.first() != Some(&me) || !self.are_all_here(founders.len()) {
            return None;
        }
        // Members of the last known view may have gone on without the founders.
        if !self.is_last_view_over(me) {
            return None;
        }
        let others = founders.iter().filter(|id| **id != me);
        let statuses: Option<Vec<(ProcessId, &PeerStatus)>> =
            others.map(|id| Some((*id, self.status_of(*id)?))).collect();
        let (own, statuses) = (self.status(), statuses?);
        let statuses = || statuses.iter().copied().chain([(me, &own)]);
        // A new table knows no earlier grants, so they must be over.
        if self.waits_for_grants() && statuses().any(|(_, s)| !s.earlier_grants_over) {
            return None;
        }
        let forgetful = statuses().any(|(_, s)| !s.has_data_dir);
        let calendar = if forgetful { self.settings.calendar } else { 0 };
        let member = |id: &ProcessId| {
            let (_, status) = statuses().find(|(s, _)| s == id)?;
            Some(Member { id: *id, incarnation: status.incarnation })
        };
        let members: Option<Vec<Member>> = founders.iter().map(member).collect();
        let generation = (1 + self.known_generation()).max(calendar);
        let id = ViewId { generation, epoch: 0, coordinator: me };
        Some(View { id, members: members?, observers: Vec::new() })
    }

    /// Whether so many founders are enough.
    fn are_all_here(&self, founders: usize) -> bool {
        let all = match self.needed {
            Some(needed) => founders >= needed,
            None => self.seeds.iter().all(Option::is_some),
        };
        all || !self.needs_all_founders()
    }

    /// Whether all members of a proposal are connected, in the proposed incarnation and in no view.
    fn can_still_be(&self, view: &View, me: ProcessId) -> bool {
        let is_ready = |m: &Member| {
            let status = self.status_of(m.id);
            status.is_some_and(|s| s.view.is_none() && s.incarnation == m.incarnation)
        };
        let others = view.members.iter().filter(|m| m.id != me);
        let lasts = others.into_iter().all(is_ready);
        lasts && view.id.generation > self.known_generation() || !self.withdraws()
    }

    /// The highest generation that this process and its peers have seen.
    fn known_generation(&self) -> u32 {
        let peers = self.peers().filter_map(|(_, status)| Some(status?.generation));
        let heard = peers.max().filter(|_| self.heeds_known_generations());
        self.group.generation().max(heard.unwrap_or(0))
    }

    /// Withdraws the own proposal, if there is one, and so releases the promises to it.
    pub(super) fn withdraw_proposal(&mut self, ctx: &mut Context<'_, Self>) {
        let Some((number, view)) = self.promises.ours(ctx.me()).cloned() else { return };
        self.release(ctx);
        for to in view.others(ctx.me()) {
            ctx.send(to, Message::Founding(FoundingMessage::Withdraw { number }));
        }
    }

    fn found_if_all_agree(&mut self, ctx: &mut Context<'_, Self>) {
        let Some((_, view)) = self.promises.ours(ctx.me()) else { return };
        let agrees = |m: &Member| m.id == ctx.me() || self.promises.received.contains(m.id);
        if !view.members.iter().all(agrees) && self.needs_all_promises() {
            return;
        }
        let view = view.clone();
        for to in view.others(ctx.me()) {
            ctx.send(to, Message::Found(view.clone()));
        }
        self.on_found(&view, ctx);
    }

    /// Enters a first view that it has promised. A promise counts for the present incarnation, outside any view.
    pub(super) fn on_found(&mut self, view: &View, ctx: &mut Context<'_, Self>) {
        if self.promises.covers(view) && !self.stopped {
            self.promises.clear();
            self.last_members = view.members.iter().map(|m| m.id).collect();
            self.enter_first(view.clone(), ctx);
        }
    }
}
