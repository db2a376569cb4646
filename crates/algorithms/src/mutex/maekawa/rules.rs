//! The rules in which Maekawa's, Sanders's and the voting algorithms differ, and those that a switch or a mistake changes.

use std::fmt::Debug;
use std::hash::Hash;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use konklave_process::{
    Context, Fixed, Group, Inspect, LamportClock, ProcessId, ProcessMap, Timestamp, prefetch_whole,
};
use smallvec::SmallVec;

use super::answers::Answers;
use super::{Arbiter, Message, Node, Requester, State};
use crate::mutex::locking::{Clocks, Few, Members, Outbox, Queue};
use crate::{Mistake, Setup};

/// Names an algorithm with the handlers of Maekawa.
pub trait Variant: Clone + Eq + Hash + Debug + Send + Sync + 'static {}

/// Maekawa's algorithm: the locks of a quorum.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Quorums {}

impl Variant for Quorums {}

/// The rules of one process. They never change.
#[derive(Clone, Debug)]
pub(in crate::mutex) struct Rules {
    /// The arbiters to ask for their locks, in the order of ids.
    pub(in crate::mutex) ask: Arc<[ProcessId]>,
    /// The arbiters to inform of the release.
    pub(in crate::mutex) inform: Arc<[ProcessId]>,
    /// The group whose tree it is, if quorums are paths of a tree: detours avoid suspected arbiters.
    pub(in crate::mutex) tree: Option<Group>,
    /// The requesters that inform this process, as an arbiter, of their release; none: all.
    pub(in crate::mutex) informants: Option<Arc<[ProcessId]>>,
    pub(in crate::mutex) enough: Enough,
    /// Whether a failure counts until the process enters, even if the lock comes in the meantime.
    pub(in crate::mutex) sticky: bool,
    /// Which messages move the clocks.
    pub(in crate::mutex) clocks: Clocks,
    pub(in crate::mutex) flaw: Option<Flaw>,
}

/// The rules of a process of the algorithm `V`.
#[derive(Clone, Debug)]
pub(super) struct Governed<V>(Arc<Rules>, PhantomData<V>);

impl<V> Deref for Governed<V> {
    type Target = Rules;

    fn deref(&self) -> &Rules {
        &self.0
    }
}

/// The locks that a process needs to enter.
#[derive(Clone, Debug)]
pub(in crate::mutex) enum Enough {
    /// The locks of all arbiters.
    All,
    /// Locks with more than half of all votes.
    Votes {
        /// The votes of each process.
        votes: Arc<ProcessMap<u32>>,
        /// The sum of all votes.
        total: u64,
        /// Whether one FAILED counts as failing, although the other votes might suffice.
        eager: bool,
        /// Whether half of the votes counts as enough.
        half: bool,
    },
}

/// A mistake in one of the rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::mutex) enum Flaw {
    /// A request that is displaced from the head of a queue does not fail.
    NoDisplacedFailed,
    /// A lock that was relinquished does not count as missing.
    YieldForgotten,
    /// Messages do not name the request they are about; every inquiry is noted.
    AsPrinted,
    /// The same, but an inquiry that finds its process inside or outside is ignored.
    UnstampedNoYieldHeld,
    /// The same, but an inquiry for a lock that the process does not have is ignored.
    DropEarlyInquire,
    /// No failures, no inquiries.
    NoDeadlockHandling,
    /// A release that arrives before its request is ignored.
    NoTombstone,
    /// The locks that one request gets of one arbiter, one after the other, have one name.
    UncountedReturns,
}

impl Flaw {
    /// The flaw of the mistake that `setup` makes, if it is one of these.
    pub(in crate::mutex) fn of(setup: &Setup, flaws: &[(&Mistake, Self)]) -> Option<Self> {
        let made = flaws.iter().find(|(mistake, _)| setup.mistake == Some(mistake.name));
        made.map(|(_, flaw)| *flaw)
    }
}

/// Rules of the requester.
impl Rules {
    pub(super) fn asks(&self, arbiter: ProcessId) -> bool {
        self.ask.binary_search(&arbiter).is_ok()
    }

    /// A message about an earlier request is not about the present one.
    fn is_about(&self, request: u32, since: u32) -> bool {
        request == since || !self.stamped()
    }

    /// A lock counts only once: the next lock for the same request has the next turn.
    pub(super) fn is_due(&self, turn: u16, expected: u16) -> bool {
        turn == expected || !self.counts_returns()
    }

    /// An inquiry is noted while the request it names waits; once that entered, the release answers it.
    fn notes_inquiry(&self, state: &State, from: ProcessId, request: u32) -> bool {
        match (state, self.flaw) {
            (_, Some(Flaw::AsPrinted)) => true,
            (State::Wanted { .. }, Some(Flaw::UnstampedNoYieldHeld)) => true,
            (State::Wanted { answers, .. }, Some(Flaw::DropEarlyInquire)) => {
                answers.is_locked(from)
            }
            (State::Wanted { since, .. }, _) => request == *since,
            (State::Released | State::Held { .. }, _) => false,
        }
    }

    /// Inquiries are void when the process enters: its release answers them.
    pub(super) fn forget_inquiries(&self, inquired: &mut Members) {
        if self.flaw != Some(Flaw::AsPrinted) {
            *inquired = Members::default();
        }
    }

    /// A process relinquishes only locks that it has: an inquiry may overtake its lock.
    fn has_lock(&self, answers: &Answers, arbiter: ProcessId) -> bool {
        answers.is_locked(arbiter)
            || matches!(self.flaw, Some(Flaw::AsPrinted | Flaw::UnstampedNoYieldHeld))
    }

    /// A lock that was relinquished is missing until it comes again. Returns how often it was relinquished before.
    fn relinquish(&self, answers: &mut Answers, place: usize) -> u16 {
        answers.give_back(place, self.flaw == Some(Flaw::YieldForgotten))
    }

    /// A suspected process matters if it has a detour or its vote may be missing.
    pub(super) fn heeds_suspicions(&self) -> bool {
        self.may_be_early()
    }
}

/// Rules of the arbiter.
impl Rules {
    /// Whether `requester` will inform this arbiter of its release.
    pub(super) fn is_informed_by(&self, requester: ProcessId) -> bool {
        let all = self.informants.as_ref();
        all.is_none_or(|informants| informants.binary_search(&requester).is_ok())
    }

    /// The request that holds the lock, if `lock` names it.
    pub(super) fn held_by(&self, holder: Option<Timestamp>, lock: Timestamp) -> Option<Timestamp> {
        holder.filter(|holder| {
            holder.process == lock.process && (holder.time == lock.time || !self.stamped())
        })
    }

    /// Remembers the latest release of each process, for [`Arbiter::is_copy`].
    pub(super) fn remember_release(&self, lock: Timestamp, released: &mut Few<u32>) {
        if self.may_be_early() && self.flaw != Some(Flaw::NoTombstone) {
            let last = released.get(lock.process).unwrap_or(0);
            released.insert(lock.process, last.max(lock.time));
        }
    }
}

/// Rules against deadlocks: no request may wait for ever with the locks of others.
impl Rules {
    /// An arbiter inquires once for each lock.
    pub(super) fn permits_inquiry(&self, inquired: bool) -> bool {
        !inquired && self.flaw != Some(Flaw::NoDeadlockHandling)
    }

    /// The request behind `place` others, if it has not failed before.
    pub(super) fn failing(&self, queue: &mut Queue, place: usize) -> Option<Timestamp> {
        if self.flaw == Some(Flaw::NoDeadlockHandling) { None } else { queue.fail(place) }
    }
}

/// Rules of the messages.
impl Rules {
    /// Whether messages name the request they are about.
    fn stamped(&self) -> bool {
        use Flaw::{AsPrinted, DropEarlyInquire, UnstampedNoYieldHeld};
        !matches!(self.flaw, Some(AsPrinted | DropEarlyInquire | UnstampedNoYieldHeld))
    }

    /// Whether messages also name the lock, by how often it was relinquished.
    pub(super) fn counts_returns(&self) -> bool {
        self.stamped() && self.flaw != Some(Flaw::UncountedReturns)
    }

    /// Whether a process may enter before its request has arrived everywhere, so that a release may
    /// arrive before its request, and a lock after the release.
    fn may_be_early(&self) -> bool {
        self.tree.is_some() || matches!(self.enough, Enough::Votes { .. })
    }
}

impl Enough {
    /// Whether the process has enough locks: those of `needed`, or else of all that were asked.
    pub(super) fn is_reached(&self, answers: &Answers, needed: Option<&[ProcessId]>) -> bool {
        match self {
            Self::All => match needed {
                None => answers.are_all_locks(),
                Some(needed) => needed.iter().all(|p| answers.is_locked(*p)),
            },
            Self::Votes { votes, total, half, .. } => {
                let sum: u64 = answers.locked().map(|p| u64::from(votes[p])).sum();
                2 * sum > *total || *half && 2 * sum == *total
            }
        }
    }

    /// Whether the rest is not enough without the locks of `lost`, which names no process twice.
    pub(super) fn is_out_of_reach(&self, lost: impl Iterator<Item = ProcessId>) -> bool {
        match self {
            Self::All | Self::Votes { eager: true, .. } => lost.take(1).count() > 0,
            Self::Votes { votes, total, .. } => {
                let lost: u64 = lost.map(|p| u64::from(votes[p])).sum();
                2 * (total - lost) <= *total
            }
        }
    }
}

impl Message {
    /// The clock of the sender; 0 if the message carries none.
    pub(super) fn clock(self) -> u32 {
        match self {
            Self::Request { time } => time,
            Self::Locked { clock, .. }
            | Self::Failed { clock, .. }
            | Self::Inquire { clock, .. }
            | Self::Relinquish { clock, .. }
            | Self::Release { clock, .. } => clock,
        }
    }

    /// The highest fence that the sender knows; 0 if the message carries none.
    pub(super) fn entries(self) -> u32 {
        match self {
            Self::Locked { entries, .. } | Self::Release { entries, .. } => entries,
            Self::Request { .. }
            | Self::Failed { .. }
            | Self::Inquire { .. }
            | Self::Relinquish { .. } => 0,
        }
    }
}

impl Arbiter {
    /// The place of `request` in the queue; none if it is a copy.
    pub(super) fn enqueue(&mut self, request: Timestamp) -> Option<usize> {
        if self.is_copy(request) { None } else { self.queue.insert(request, false) }
    }

    /// Whether `request` is locked for already, or over.
    ///
    /// Scenario: a copy arrives, or a process enters without this lock and its release overtakes its request. The
    /// arbiter would lock itself for a request that is over; so it compares the latest release.
    fn is_copy(&self, request: Timestamp) -> bool {
        let last = self.released.get(request.process);
        last.is_some_and(|last| request.time <= last) || self.holder == Some(request)
    }
}

impl Requester {
    /// The answers to the present request; none if `request` is an earlier one.
    pub(super) fn answers_to(&mut self, request: u32, rules: &Rules) -> Option<&mut Answers> {
        match &mut self.state {
            State::Wanted { since, answers } if rules.is_about(request, *since) => Some(answers),
            State::Released | State::Wanted { .. } | State::Held { .. } => None,
        }
    }

    /// Takes the locks that arbiters want back out of the answers, each with its turn. An inquiry that has overtaken its
    /// lock stays.
    pub(super) fn take_inquired_locks(&mut self, rules: &Rules) -> SmallVec<[(ProcessId, u16); 4]> {
        let mut locks = SmallVec::new();
        let State::Wanted { answers, .. } = &mut self.state else { return locks };
        for arbiter in std::mem::take(&mut self.inquired).iter() {
            let Some(place) = answers.place(arbiter) else { continue };
            if rules.has_lock(answers, arbiter) {
                locks.push((arbiter, rules.relinquish(answers, place)));
            } else {
                self.inquired.insert(arbiter);
            }
        }
        locks
    }
}

impl State {
    /// Whether a waiting process has asked `arbiter`.
    fn may_answer(&self, arbiter: ProcessId) -> bool {
        match self {
            Self::Wanted { answers, .. } => answers.place(arbiter).is_some(),
            Self::Released | Self::Held { .. } => true,
        }
    }
}

impl<V: Variant> Node<V> {
    /// A process that goes by `rules` and suspects `down` from the start.
    pub(in crate::mutex) fn of(rules: Rules, down: &[ProcessId]) -> Self {
        let suspected = down.iter().copied().collect();
        Self {
            clock: LamportClock::default(),
            entries: 0,
            requester: Requester { suspected, ..Requester::default() },
            arbiter: Arbiter::default(),
            rules: Fixed(Governed(Arc::new(rules), PhantomData)),
        }
    }

    /// If a process leaves with all locks, no lock can be late. Scenario: an arbiter took a copy of a served request for
    /// a new one, and its lock arrives. It would wait for a release for ever; so the process releases the lock.
    pub(super) fn release_stray_lock(
        &mut self,
        arbiter: ProcessId,
        request: u32,
        out: &mut Outbox<Self>,
    ) {
        let is_inside = matches!(self.requester.state, State::Held { since } if since == request);
        if !is_inside && !self.rules.may_be_early() && self.rules.stamped() {
            let (entries, clock) = (out.entries, out.clock);
            out.send(arbiter, Message::Release { request, entries, clock });
        }
    }

    /// Whether an inquiry of `arbiter` is to be answered by a relinquished lock.
    pub(super) fn notes_inquiry(
        &self,
        arbiter: ProcessId,
        request: u32,
        out: &mut Outbox<Self>,
    ) -> bool {
        let noted = self.rules.notes_inquiry(&self.requester.state, arbiter, request);
        let is_asked = self.requester.state.may_answer(arbiter);
        if noted && !is_asked {
            out.unasked();
        }
        noted && is_asked
    }

    /// Sanders's correction. Scenario: an older request displaces another from the head of the queue. The displaced
    /// one has not failed, so it would keep the locks of others for ever; so it fails now.
    pub(super) fn fail_displaced(&mut self, out: &mut Outbox<Self>) {
        if self.rules.flaw != Some(Flaw::NoDisplacedFailed) {
            self.fail(1, out);
        }
    }

    /// Does `action`, and then handles the messages of this process to itself.
    pub(super) fn step(
        &mut self,
        ctx: &mut Context<'_, Self>,
        action: impl FnOnce(&mut Self, &mut Outbox<Self>),
    ) {
        let mut out = Outbox::new(self.entries, self.rules.clocks.told(self.clock), ctx);
        action(self, &mut out);
        while let Some(message) = out.next_own() {
            self.receive(out.me(), message, &mut out);
        }
        self.entries = out.entries;
    }
}

impl<V: Variant> Inspect for Node<V> {
    fn stamp(&self) -> u64 {
        self.clock.now().into()
    }

    fn on_stamp(&mut self, _from: ProcessId, stamp: u64) {
        self.clock.witness(u32::try_from(stamp).unwrap_or(u32::MAX));
    }

    /// Prefetches what most messages read: quorums and queues of a large group are long.
    #[inline]
    fn prefetch(&self) {
        prefetch_whole(&**self.rules);
        if let State::Wanted { answers, .. } = &self.requester.state {
            answers.prefetch();
        }
        self.arbiter.queue.prefetch();
    }

    fn at_rest(&self) -> bool {
        let is_free = self.arbiter.holder.is_none() && self.arbiter.queue.is_empty();
        is_free && self.requester.state == State::Released
    }
}
