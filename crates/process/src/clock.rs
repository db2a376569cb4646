//! Logical clocks.

use serde::{Deserialize, Serialize};

use crate::{Group, ProcessId, ProcessMap};

/// A point of Lamport's logical time, made total by the id of its process: smaller is older.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
pub struct Timestamp {
    /// The time.
    pub time: u32,
    /// The process that took it; breaks ties.
    pub process: ProcessId,
}

/// Lamport's clock.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct LamportClock(u32);

impl LamportClock {
    /// The time of the last event.
    pub fn now(self) -> u32 {
        self.0
    }

    /// Counts an event of this process; returns its time.
    pub fn tick(&mut self) -> u32 {
        self.0 = self.0.saturating_add(1);
        self.0
    }

    /// Advances the clock past the time of an event elsewhere.
    pub fn witness(&mut self, time: u32) {
        self.0 = self.0.max(time);
    }
}

/// A vector clock: how many events of each process are known.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct VectorClock(ProcessMap<u32>);

impl VectorClock {
    /// A clock that knows of no event.
    pub fn new(group: &Group) -> Self {
        Self(ProcessMap::new(group, 0))
    }

    /// How many events of `p` are known.
    pub fn of(&self, p: ProcessId) -> u32 {
        self.0[p]
    }

    /// Counts an event of `me`.
    pub fn tick(&mut self, me: ProcessId) {
        self.0[me] += 1;
    }

    /// Takes over all events that `other` knows.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.values_mut().zip(other.0.values()) {
            *mine = (*mine).max(*theirs);
        }
    }

    /// Whether `other` knows all events that `self` knows.
    pub fn is_known_to(&self, other: &Self) -> bool {
        self.0.values().zip(other.0.values()).all(|(a, b)| a <= b)
    }

    /// Whether each knows an event that the other does not.
    pub fn is_concurrent_with(&self, other: &Self) -> bool {
        !self.is_known_to(other) && !other.is_known_to(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_time_goes_first_and_the_lower_id_breaks_ties() {
        let at = |time, p| Timestamp { time, process: ProcessId(p) };
        assert!(at(1, 9) < at(2, 0));
        assert!(at(2, 0) < at(2, 1));
    }

    #[test]
    fn vector_clocks_tell_before_from_concurrent() {
        let group = Group::of(2);
        let (mut a, mut b) = (VectorClock::new(&group), VectorClock::new(&group));
        a.tick(ProcessId(0));
        b.tick(ProcessId(1));
        assert!(a.is_concurrent_with(&b));
        b.merge(&a);
        assert!(a.is_known_to(&b) && !b.is_known_to(&a));
        assert_eq!(b.of(ProcessId(0)), 1);
    }
}
