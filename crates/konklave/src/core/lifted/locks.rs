//! The locks in use in this view. A name is looked up once per event; everything else goes by index.

use std::ops::{Index, IndexMut};

use rustc_hash::FxHashMap;

use super::{Lock, REPORT};
use crate::table::Name;

/// The index of a lock in the [`Locks`] that returned it. Locks are never removed one by one; all are dropped
/// when the view or the membership ends, and their indices with them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LockIndex(usize);

/// Locks, in the order of their first use.
#[derive(Default)]
pub(super) struct Locks {
    indices: FxHashMap<Name, LockIndex>,
    /// Side by side: a lock is large, and a hash table of locks would waste most of its memory.
    locks: Vec<Lock>,
    /// The length of all names together.
    bytes: usize,
}

impl Locks {
    pub(super) fn find(&self, name: &str) -> Option<LockIndex> {
        self.indices.get(name).copied()
    }

    pub(super) fn find_or_begin(&mut self, name: &Name) -> LockIndex {
        if let Some(index) = self.find(name) {
            return index;
        }
        let index = LockIndex(self.locks.len());
        self.locks.push(Lock::new(name.clone()));
        self.bytes += name.len();
        self.indices.insert(name.clone(), index);
        index
    }

    pub(super) fn get(&self, name: &str) -> Option<&Lock> {
        self.find(name).map(|index| &self[index])
    }

    pub(super) fn len(&self) -> usize {
        self.locks.len()
    }

    /// An upper bound of the bytes of all reports, with `reports` reports on each lock.
    pub(super) fn weight(&self, reports: usize) -> usize {
        (self.bytes + self.locks.len() * REPORT) * reports
    }

    pub(super) fn is_empty(&self) -> bool {
        self.locks.is_empty()
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Lock> {
        self.locks.iter()
    }

    /// The indices of the locks that match, ordered by name.
    pub(super) fn sorted(&self, matches: impl Fn(&Lock) -> bool) -> Vec<LockIndex> {
        let indices = (0..self.locks.len()).map(LockIndex);
        let mut indices: Vec<LockIndex> = indices.filter(|index| matches(&self[*index])).collect();
        indices.sort_unstable_by(|a, b| self[*a].name.cmp(&self[*b].name));
        indices
    }
}

impl Index<LockIndex> for Locks {
    type Output = Lock;

    fn index(&self, index: LockIndex) -> &Lock {
        &self.locks[index.0]
    }
}

impl IndexMut<LockIndex> for Locks {
    fn index_mut(&mut self, index: LockIndex) -> &mut Lock {
        &mut self.locks[index.0]
    }
}

impl IntoIterator for Locks {
    type Item = Lock;
    type IntoIter = std::vec::IntoIter<Lock>;

    fn into_iter(self) -> Self::IntoIter {
        self.locks.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(names: &[&str]) -> (Locks, Vec<LockIndex>) {
        let mut locks = Locks::default();
        let indices = names.iter().map(|name| locks.find_or_begin(&Name::from(*name))).collect();
        (locks, indices)
    }

    #[test]
    fn name_keeps_its_index() {
        let (mut locks, indices) = some(&["b", "a", "b", "c"]);
        assert_eq!(indices[0], indices[2]);
        assert_eq!(locks.len(), 3);
        locks[indices[0]].local_turns = 7;
        for i in 0..1000 {
            locks.find_or_begin(&Name::from(format!("more {i}")));
        }
        for (name, index) in ["b", "a", "b", "c"].into_iter().zip(indices) {
            assert_eq!(locks.find(name), Some(index));
            assert_eq!(&*locks[index].name, name);
        }
        assert_eq!(locks.get("b").map(|lock| lock.local_turns), Some(7));
        assert_eq!(locks.get("a").map(|lock| lock.local_turns), Some(0));
    }

    #[test]
    fn lookup_creates_nothing() {
        let (locks, _) = some(&[]);
        assert!(locks.find("a").is_none() && locks.get("a").is_none());
        assert!(locks.is_empty());
    }

    #[test]
    fn sorted_orders_by_name_and_iter_by_first_use() {
        let (mut locks, indices) = some(&["b", "d", "a", "c"]);
        locks[indices[1]].broken = true;
        assert_eq!(locks.sorted(|lock| !lock.broken), [indices[2], indices[0], indices[3]]);
        let names: Vec<&str> = locks.iter().map(|lock| &*lock.name).collect();
        assert_eq!(names, ["b", "d", "a", "c"]);
        assert!(locks.into_iter().map(|lock| lock.name).eq(["b", "d", "a", "c"].map(Name::from)));
    }
}
