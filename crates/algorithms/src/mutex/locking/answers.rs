//! What those who were asked have answered.

use std::fmt;
use std::sync::Arc;

use konklave_process::{Fixed, ProcessId, prefetch};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use smallvec::SmallVec;

use super::search::{first_not, prefetch_search};
use super::{Few, Members};

/// How it stands with each of those whom we asked: a byte for each, in the order of their ids. In a
/// large group, thousands of requesters wait at once, each for hundreds of answers.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Answers {
    standings: SmallVec<[Standing; 16]>,
    /// How many locks we lack.
    missing: usize,
    /// How often we gave whose lock back: the copy of a lock that we had is none.
    turns: Few<u16>,
    /// Whom we asked, lowest first.
    asked: Fixed<Arc<[ProcessId]>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Standing {
    /// It has not answered.
    Silent,
    /// We have to wait, it said; or we gave its lock back.
    Failed,
    /// We have its lock.
    Locked,
    /// We have its lock, but that we had to wait counts until we enter.
    LockedTooLate,
}

impl Standing {
    fn is_locked(self) -> bool {
        matches!(self, Self::Locked | Self::LockedTooLate)
    }

    fn is_failed(self) -> bool {
        matches!(self, Self::Failed | Self::LockedTooLate)
    }
}

impl Answers {
    /// Nobody of `asked` has answered yet.
    pub(super) fn of(asked: Arc<[ProcessId]>) -> Self {
        let standings = SmallVec::from_elem(Standing::Silent, asked.len());
        Self { standings, missing: asked.len(), turns: Few::default(), asked: Fixed(asked) }
    }

    /// More have been asked.
    pub(super) fn widen(&mut self, asked: &[ProcessId]) {
        let mut wider = Self { turns: self.turns.clone(), ..Self::of(asked.into()) };
        for (p, standing) in self.all() {
            if let Some(seat) = wider.seat(p) {
                wider.put(seat, standing);
            }
        }
        *self = wider;
    }

    /// Where `p` stands among those whom we asked.
    pub(super) fn seat(&self, p: ProcessId) -> Option<usize> {
        let seat = first_not(&self.asked, |other| *other < p);
        (self.asked.get(seat) == Some(&p)).then_some(seat)
    }

    fn put(&mut self, seat: usize, standing: Standing) {
        let before = std::mem::replace(&mut self.standings[seat], standing);
        self.missing += usize::from(before.is_locked());
        self.missing -= usize::from(standing.is_locked());
    }

    /// The lock of the one at `seat` is here. If failures are `sticky`, its own counts on.
    pub(super) fn lock(&mut self, seat: usize, sticky: bool) {
        let late = sticky && self.standings[seat].is_failed();
        self.put(seat, if late { Standing::LockedTooLate } else { Standing::Locked });
    }

    /// We have to wait, says the one at `seat`. A lock that it sent later may have come earlier.
    pub(super) fn fail(&mut self, seat: usize) {
        if !self.standings[seat].is_locked() {
            self.put(seat, Standing::Failed);
        }
    }

    /// We give the lock of the one at `seat` back, which then is one that we lack, unless that is
    /// `forgotten`. Returns how often we had done so before.
    pub(super) fn give_back(&mut self, seat: usize, forgotten: bool) -> u16 {
        let failed = !forgotten || self.standings[seat].is_failed();
        self.put(seat, if failed { Standing::Failed } else { Standing::Silent });
        let (p, turn) = (self.asked[seat], self.turn(seat));
        self.turns.insert(p, turn.wrapping_add(1));
        turn
    }

    /// How often we have given back the lock of the one at `seat`.
    pub(super) fn turn(&self, seat: usize) -> u16 {
        if self.turns.is_empty() { 0 } else { self.turns.get(self.asked[seat]).unwrap_or(0) }
    }

    pub(super) fn is_locked(&self, p: ProcessId) -> bool {
        self.seat(p).is_some_and(|seat| self.standings[seat].is_locked())
    }

    pub(super) fn is_silent(&self, p: ProcessId) -> bool {
        self.seat(p).is_some_and(|seat| self.standings[seat] == Standing::Silent)
    }

    /// Whether we have the locks of all whom we asked.
    pub(super) fn are_all_locks(&self) -> bool {
        self.missing == 0
    }

    /// Whose locks we have, lowest first.
    pub(super) fn locked(&self) -> impl Iterator<Item = ProcessId> {
        self.all().filter(|(_, standing)| standing.is_locked()).map(|(p, _)| p)
    }

    /// Who said that we have to wait, and whose locks we gave back, lowest first.
    pub(super) fn failed(&self) -> impl Iterator<Item = ProcessId> {
        self.all().filter(|(_, standing)| standing.is_failed()).map(|(p, _)| p)
    }

    fn all(&self) -> impl Iterator<Item = (ProcessId, Standing)> {
        self.asked.iter().copied().zip(self.standings.iter().copied())
    }

    /// Calls them up ahead of their use.
    pub(super) fn prefetch(&self) {
        prefetch_search(&self.asked);
        prefetch(&self.standings);
    }
}

impl Serialize for Answers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let given_back = !self.turns.is_empty();
        let mut shown = serializer.serialize_struct("Answers", 2 + usize::from(given_back))?;
        shown.serialize_field("locked", &self.locked().collect::<Members>())?;
        shown.serialize_field("failed", &self.failed().collect::<Members>())?;
        if given_back {
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
