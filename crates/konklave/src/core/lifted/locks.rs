//! The locks that we have to do with in a view, each at a index of its own: a name is looked up once
//! for whatever happens, and the rest goes by the index.

use std::ops::{Index, IndexMut};

use rustc_hash::FxHashMap;

use super::{Lock, REPORT};
use crate::table::Name;

/// Where a lock lies among the [`Locks`] that gave this index, and only there. Nothing is taken out of
/// them; when they are dropped, with the end of a view or of our membership, nobody may keep one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LockIndex(usize);

/// Locks, in the order in which they came.
#[derive(Default)]
pub(super) struct Locks {
    indices: FxHashMap<Name, LockIndex>,
    /// Side by side: a lock is large, and a table of them mostly holes.
    locks: Vec<Lock>,
    /// How many bytes all names take together.
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

    /// At most so many bytes are reports about them, if there are so many about each.
    pub(super) fn weight(&self, reports: usize) -> usize {
        (self.bytes + self.locks.len() * REPORT) * reports
    }

    pub(super) fn is_empty(&self) -> bool {
        self.locks.is_empty()
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Lock> {
        self.locks.iter()
    }

    /// Those that are `meant`, by name.
    pub(super) fn sorted(&self, meant: impl Fn(&Lock) -> bool) -> Vec<LockIndex> {
        let indices = (0..self.locks.len()).map(LockIndex);
        let mut indices: Vec<LockIndex> = indices.filter(|index| meant(&self[*index])).collect();
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
    fn a_name_begins_once_and_keeps_its_place() {
        let (mut locks, indices) = some(&["b", "a", "b", "c"]);
        assert_eq!(indices[0], indices[2]);
        assert_eq!(locks.len(), 3);
        locks[indices[0]].turn = 7;
        for i in 0..1000 {
            locks.find_or_begin(&Name::from(format!("more {i}")));
        }
        for (name, index) in ["b", "a", "b", "c"].into_iter().zip(indices) {
            assert_eq!(locks.find(name), Some(index));
            assert_eq!(&*locks[index].name, name);
        }
        assert_eq!(locks.get("b").map(|lock| lock.turn), Some(7));
        assert_eq!(locks.get("a").map(|lock| lock.turn), Some(0));
    }

    #[test]
    fn to_look_begins_nothing() {
        let (locks, _) = some(&[]);
        assert!(locks.find("a").is_none() && locks.get("a").is_none());
        assert!(locks.is_empty());
    }

    #[test]
    fn those_that_are_meant_come_by_name_and_all_in_the_order_of_their_coming() {
        let (mut locks, indices) = some(&["b", "d", "a", "c"]);
        locks[indices[1]].broken = true;
        assert_eq!(locks.sorted(|lock| !lock.broken), [indices[2], indices[0], indices[3]]);
        let names: Vec<&str> = locks.iter().map(|lock| &*lock.name).collect();
        assert_eq!(names, ["b", "d", "a", "c"]);
        assert!(locks.into_iter().map(|lock| lock.name).eq(["b", "d", "a", "c"].map(Name::from)));
    }
}
