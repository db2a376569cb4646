//! A map from senders to values, small for one sender.

use std::fmt;

use konklave_process::ProcessId;
use serde::{Serialize, Serializer};
use smallvec::SmallVec;

/// A map from senders to values. Many large groups have one sender, so one entry is stored inline.
/// If all members send, the id of a sender is its index. The map is serialised like any map, lowest
/// id first.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct SenderMap<T>(SmallVec<[(ProcessId, T); 1]>);

impl<T> SenderMap<T> {
    /// The value of `p`.
    pub(super) fn get(&self, p: ProcessId) -> Option<&T> {
        self.find(p).ok().map(|i| &self.0[i].1)
    }

    /// The value of `p`, mutable; inserts the default value if there is none.
    pub(super) fn of(&mut self, p: ProcessId) -> &mut T
    where
        T: Default,
    {
        let i = self.find(p).unwrap_or_else(|i| {
            self.0.insert(i, (p, T::default()));
            i
        });
        &mut self.0[i].1
    }

    /// All entries, lowest id first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (ProcessId, &T)> {
        self.0.iter().map(|(p, value)| (*p, value))
    }

    /// Removes all entries.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The index of `p`, or where to insert it.
    fn find(&self, p: ProcessId) -> Result<usize, usize> {
        let guess = p.0 as usize;
        match self.0.get(guess) {
            Some((found, _)) if *found == p => Ok(guess),
            Some(_) | None => self.0.binary_search_by_key(&p, |(p, _)| *p),
        }
    }
}

impl<T> Default for SenderMap<T> {
    fn default() -> Self {
        Self(SmallVec::new())
    }
}

impl<T: fmt::Debug> fmt::Debug for SenderMap<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<T: Serialize> Serialize for SenderMap<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use konklave_process::Rng;

    use super::*;

    #[test]
    fn it_behaves_like_a_map() {
        let mut rng = Rng::new(1);
        for most in [2, 9, 1000] {
            let (mut map, mut model) = (SenderMap::<u32>::default(), BTreeMap::new());
            for _ in 0..100 {
                let p = ProcessId(rng.below(most));
                *map.of(p) += 1;
                *model.entry(p).or_insert(0) += 1;
                let q = ProcessId(rng.below(most));
                assert_eq!(map.get(q), model.get(&q));
                assert_eq!(format!("{map:?}"), format!("{model:?}"));
            }
            map.clear();
            assert_eq!(map, SenderMap::default());
        }
    }
}
