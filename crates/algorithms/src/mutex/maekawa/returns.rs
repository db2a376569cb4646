//! How often each request has relinquished the lock of an arbiter.

use konklave_process::Timestamp;
use serde::Serialize;
use smallvec::SmallVec;

use super::Rules;

/// The requests that have relinquished the lock, oldest first, each with how often.
///
/// Scenario: a request relinquishes the lock, gets it again, and a copy of the first RELINQUISH arrives.
/// The arbiter would take the second lock for relinquished and lock itself for another request, while the
/// first one enters. So a RELINQUISH says how often its request has relinquished this lock before.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(transparent)]
pub(super) struct Returns(SmallVec<[(Timestamp, u16); 1]>);

impl Returns {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How often `request` has relinquished the lock.
    pub(super) fn of(&self, request: Timestamp) -> u16 {
        self.0.iter().find(|(returned, _)| *returned == request).map_or(0, |(_, turn)| *turn)
    }

    /// Counts that `request` relinquishes the lock; false if the message is a copy of an earlier one.
    pub(super) fn count(&mut self, request: Timestamp, turn: u16, rules: &Rules) -> bool {
        match self.0.binary_search_by_key(&request, |(returned, _)| *returned) {
            Ok(i) if self.0[i].1 == turn => self.0[i].1 = turn.wrapping_add(1),
            Err(i) if turn == 0 => self.0.insert(i, (request, 1)),
            Ok(_) | Err(_) => return !rules.counts_returns(),
        }
        true
    }

    /// Forgets a request that was released.
    pub(super) fn forget(&mut self, request: Timestamp) {
        self.0.retain(|(returned, _)| *returned != request);
    }
}
