//! A value for each sender.

use std::fmt;

use konklave_process::ProcessId;
use serde::{Serialize, Serializer};
use smallvec::SmallVec;

/// A map from those who have sent to what is known of each. One sender, which is all that many large
/// groups have, is kept in place; where all send, each is found where its id says. It looks and is
/// recorded like any map, lowest id first.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Table<T>(SmallVec<[(ProcessId, T); 1]>);

impl<T> Table<T> {
    /// What is known of `p`.
    pub(super) fn get(&self, p: ProcessId) -> Option<&T> {
        self.find(p).ok().map(|i| &self.0[i].1)
    }

    /// What is known of `p`, to be changed; it is there from now on.
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

    /// All, lowest id first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (ProcessId, &T)> {
        self.0.iter().map(|(p, value)| (*p, value))
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Where `p` stands, or should.
    fn find(&self, p: ProcessId) -> Result<usize, usize> {
        let guess = p.0 as usize;
        match self.0.get(guess) {
            Some((found, _)) if *found == p => Ok(guess),
            Some(_) | None => self.0.binary_search_by_key(&p, |(p, _)| *p),
        }
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(SmallVec::new())
    }
}

impl<T: fmt::Debug> fmt::Debug for Table<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<T: Serialize> Serialize for Table<T> {
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
            let (mut table, mut model) = (Table::<u32>::default(), BTreeMap::new());
            for _ in 0..100 {
                let p = ProcessId(rng.below(most));
                *table.of(p) += 1;
                *model.entry(p).or_insert(0) += 1;
                let q = ProcessId(rng.below(most));
                assert_eq!(table.get(q), model.get(&q));
                assert_eq!(format!("{table:?}"), format!("{model:?}"));
            }
            table.clear();
            assert_eq!(table, Table::default());
        }
    }
}
