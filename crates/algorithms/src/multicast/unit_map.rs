//! A map from messages to values, small for few messages.

use std::fmt;

use serde::{Serialize, Serializer};
use smallvec::SmallVec;

use super::Unit;

/// A map from messages to values. Mostly one message is under way at a time, so one entry is stored
/// inline. The map is serialised as a list of pairs, in order.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct UnitMap<T>(SmallVec<[(Unit, T); 1]>);

impl<T> UnitMap<T> {
    /// The value of `unit`, mutable.
    #[inline]
    pub(super) fn get_mut(&mut self, unit: Unit) -> Option<&mut T> {
        self.find(unit).ok().map(|i| &mut self.0[i].1)
    }

    #[inline]
    pub(super) fn contains(&self, unit: Unit) -> bool {
        self.find(unit).is_ok()
    }

    /// Inserts `value`. If `unit` has a value already, nothing changes and the result is false.
    pub(super) fn insert(&mut self, unit: Unit, value: T) -> bool {
        let found = self.find(unit);
        if let Err(i) = found {
            self.0.insert(i, (unit, value));
        }
        found.is_err()
    }

    /// Removes `unit` and returns its value.
    #[inline]
    pub(super) fn remove(&mut self, unit: Unit) -> Option<T> {
        self.find(unit).ok().map(|i| self.0.remove(i).1)
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    fn find(&self, unit: Unit) -> Result<usize, usize> {
        self.0.binary_search_by_key(&unit, |(unit, _)| *unit)
    }
}

impl<T> Default for UnitMap<T> {
    fn default() -> Self {
        Self(SmallVec::new())
    }
}

impl<T: fmt::Debug> fmt::Debug for UnitMap<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().map(|(unit, value)| (unit, value))).finish()
    }
}

impl<T: Serialize> Serialize for UnitMap<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter())
    }
}

/// Serialises the messages alone, without values.
pub(super) fn units<S: Serializer>(map: &UnitMap<()>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(map.0.iter().map(|(unit, ())| unit))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use konklave_process::{ProcessId, Rng};

    use super::*;

    #[test]
    fn it_behaves_like_a_map() {
        let mut rng = Rng::new(1);
        for most in [1, 4, 40] {
            let (mut map, mut model) = (UnitMap::<u32>::default(), BTreeMap::new());
            for i in 0..200 {
                let unit = Unit { from: ProcessId(rng.below(2)), number: rng.below(most) };
                if rng.below(2) == 0 {
                    let new = !model.contains_key(&unit);
                    model.entry(unit).or_insert(i);
                    assert_eq!(map.insert(unit, i), new);
                } else {
                    assert_eq!(map.remove(unit), model.remove(&unit));
                }
                assert_eq!(map.get_mut(unit), model.get_mut(&unit));
                assert_eq!(map.contains(unit), model.contains_key(&unit));
                assert_eq!(map.is_empty(), model.is_empty());
                assert_eq!(format!("{map:?}"), format!("{model:?}"));
            }
        }
    }
}
