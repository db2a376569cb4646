//! The answers of the arbiters that a requester asked.

use std::fmt;
use std::sync::Arc;

use konklave_process::{Fixed, ProcessId, prefetch};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use smallvec::SmallVec;

use crate::mutex::locking::{Few, Members, first_not, prefetch_search};

/// The latest answer of each arbiter that was asked: a byte for each, in the order of their ids. In a
/// large group, thousands of requesters wait at once, each for hundreds of answers.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Answers {
    latest: SmallVec<[Answer; 16]>,
    /// The count of missing locks.
    missing: usize,
    /// How often each lock was relinquished: a copy of an earlier lock does not count.
    turns: Few<u16>,
    /// The arbiters that were asked, lowest first.
    asked: Fixed<Arc<[ProcessId]>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Answer {
    /// None yet.
    Silent,
    /// A failure; or the lock was relinquished.
    Failed,
    /// The lock.
    Locked,
    /// The lock after a failure that counts until the process enters.
    LockedTooLate,
}

impl Answer {
    fn is_locked(self) -> bool {
        matches!(self, Self::Locked | Self::LockedTooLate)
    }

    fn is_failed(self) -> bool {
        matches!(self, Self::Failed | Self::LockedTooLate)
    }
}

impl Answers {
    /// No answer yet of the arbiters `asked`.
    pub(super) fn of(asked: Arc<[ProcessId]>) -> Self {
        let latest = SmallVec::from_elem(Answer::Silent, asked.len());
        Self { latest, missing: asked.len(), turns: Few::default(), asked: Fixed(asked) }
    }

    /// More arbiters were asked.
    pub(super) fn widen(&mut self, asked: &[ProcessId]) {
        let mut wider = Self { turns: self.turns.clone(), ..Self::of(asked.into()) };
        for (p, answer) in self.all() {
            if let Some(place) = wider.place(p) {
                wider.put(place, answer);
            }
        }
        *self = wider;
    }

    /// The place of `p` among the arbiters that were asked.
    pub(super) fn place(&self, p: ProcessId) -> Option<usize> {
        let place = first_not(&self.asked, |other| *other < p);
        (self.asked.get(place) == Some(&p)).then_some(place)
    }

    fn put(&mut self, place: usize, answer: Answer) {
        let before = std::mem::replace(&mut self.latest[place], answer);
        self.missing += usize::from(before.is_locked());
        self.missing -= usize::from(answer.is_locked());
    }

    /// The lock of the arbiter at `place` arrives. If failures are `sticky`, an earlier one counts on.
    pub(super) fn lock(&mut self, place: usize, sticky: bool) {
        let late = sticky && self.latest[place].is_failed();
        self.put(place, if late { Answer::LockedTooLate } else { Answer::Locked });
    }

    /// A failure of the arbiter at `place` arrives. A lock that it sent later may have overtaken it.
    pub(super) fn fail(&mut self, place: usize) {
        if !self.latest[place].is_locked() {
            self.put(place, Answer::Failed);
        }
    }

    /// The lock of the arbiter at `place` is relinquished and counts as failed, unless that is
    /// `forgotten`. Returns how often that happened before.
    pub(super) fn give_back(&mut self, place: usize, forgotten: bool) -> u16 {
        let failed = !forgotten || self.latest[place].is_failed();
        self.put(place, if failed { Answer::Failed } else { Answer::Silent });
        let (p, turn) = (self.asked[place], self.turn(place));
        self.turns.insert(p, turn.wrapping_add(1));
        turn
    }

    /// How often the lock of the arbiter at `place` was relinquished.
    pub(super) fn turn(&self, place: usize) -> u16 {
        if self.turns.is_empty() { 0 } else { self.turns.get(self.asked[place]).unwrap_or(0) }
    }

    pub(super) fn is_locked(&self, p: ProcessId) -> bool {
        self.place(p).is_some_and(|place| self.latest[place].is_locked())
    }

    pub(super) fn is_silent(&self, p: ProcessId) -> bool {
        self.place(p).is_some_and(|place| self.latest[place] == Answer::Silent)
    }

    /// Whether the locks of all arbiters are here.
    pub(super) fn are_all_locks(&self) -> bool {
        self.missing == 0
    }

    /// The arbiters whose locks are here, lowest first.
    pub(super) fn locked(&self) -> impl Iterator<Item = ProcessId> {
        self.all().filter(|(_, answer)| answer.is_locked()).map(|(p, _)| p)
    }

    /// The arbiters that sent a failure, or whose locks were relinquished, lowest first.
    pub(super) fn failed(&self) -> impl Iterator<Item = ProcessId> {
        self.all().filter(|(_, answer)| answer.is_failed()).map(|(p, _)| p)
    }

    fn all(&self) -> impl Iterator<Item = (ProcessId, Answer)> {
        self.asked.iter().copied().zip(self.latest.iter().copied())
    }

    /// Prefetches them ahead of their use.
    pub(super) fn prefetch(&self) {
        prefetch_search(&self.asked);
        prefetch(&self.latest);
    }
}

impl Serialize for Answers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let has_turns = !self.turns.is_empty();
        let mut shown = serializer.serialize_struct("Answers", 2 + usize::from(has_turns))?;
        shown.serialize_field("locked", &self.locked().collect::<Members>())?;
        shown.serialize_field("failed", &self.failed().collect::<Members>())?;
        if has_turns {
            shown.serialize_field("turns", &self.turns)?;
        }
        shown.end()
    }
}

impl fmt::Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answers")
            .field("locked", &self.locked().collect::<Members>())
            .field("failed", &self.failed().collect::<Members>())
            .field("turns", &self.turns)
            .finish()
    }
}
