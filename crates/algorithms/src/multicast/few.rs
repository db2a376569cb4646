//! A value for each of a few messages.

use std::fmt;

use serde::{Serialize, Serializer};
use smallvec::SmallVec;

use super::Unit;

/// A map from messages to what there is to know of each. One message, which is mostly all that is
/// under way at a time, is kept in place. It looks and is recorded like a list of pairs, in order.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Few<T>(SmallVec<[(Unit, T); 1]>);

impl<T> Few<T> {
    /// What is known of `unit`, to be changed.
    #[inline]
    pub(super) fn get_mut(&mut self, unit: Unit) -> Option<&mut T> {
        self.find(unit).ok().map(|i| &mut self.0[i].1)
    }

    #[inline]
    pub(super) fn contains(&self, unit: Unit) -> bool {
        self.find(unit).is_ok()
    }

    /// Puts `value` in; false, and nothing is changed, if there is one already.
    pub(super) fn insert(&mut self, unit: Unit, value: T) -> bool {
        let found = self.find(unit);
        if let Err(i) = found {
            self.0.insert(i, (unit, value));
        }
        found.is_err()
    }

    /// Takes out what is known of `unit`.
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

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self(SmallVec::new())
    }
}

impl<T: fmt::Debug> fmt::Debug for Few<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().map(|(unit, value)| (unit, value))).finish()
    }
}

impl<T: Serialize> Serialize for Few<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter())
    }
}

/// Writes which messages there are, where nothing more is known of them.
pub(super) fn units<S: Serializer>(few: &Few<()>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(few.0.iter().map(|(unit, ())| unit))
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
            let (mut few, mut model) = (Few::<u32>::default(), BTreeMap::new());
            for i in 0..200 {
                let unit = Unit { from: ProcessId(rng.below(2)), number: rng.below(most) };
                if rng.below(2) == 0 {
                    let new = !model.contains_key(&unit);
                    model.entry(unit).or_insert(i);
                    assert_eq!(few.insert(unit, i), new);
                } else {
                    assert_eq!(few.remove(unit), model.remove(&unit));
                }
                assert_eq!(few.get_mut(unit), model.get_mut(&unit));
                assert_eq!(few.contains(unit), model.contains_key(&unit));
                assert_eq!(few.is_empty(), model.is_empty());
                assert_eq!(format!("{few:?}"), format!("{model:?}"));
            }
        }
    }
}
