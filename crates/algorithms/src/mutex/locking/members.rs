//! Sets and maps of few among many.

use std::fmt;

use konklave_process::ProcessId;
use serde::{Serialize, Serializer};
use smallvec::SmallVec;

/// A set of processes as a sorted list. A quorum of a large group is small, so the list is smaller than a bit set over
/// all ids.
#[derive(Clone, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub(in crate::mutex) struct Members(SmallVec<[ProcessId; 4]>);

impl Members {
    /// Puts `p` in.
    pub(in crate::mutex) fn insert(&mut self, p: ProcessId) {
        if let Err(i) = self.0.binary_search(&p) {
            self.0.insert(i, p);
        }
    }

    /// Takes `p` out; false if it was not in.
    pub(in crate::mutex) fn remove(&mut self, p: ProcessId) -> bool {
        let found = self.0.binary_search(&p);
        found.map(|i| self.0.remove(i)).is_ok()
    }

    pub(in crate::mutex) fn contains(&self, p: ProcessId) -> bool {
        self.0.binary_search(&p).is_ok()
    }

    pub(in crate::mutex) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All, lowest first.
    pub(in crate::mutex) fn iter(&self) -> impl Iterator<Item = ProcessId> {
        self.0.iter().copied()
    }
}

impl FromIterator<ProcessId> for Members {
    fn from_iter<I: IntoIterator<Item = ProcessId>>(iter: I) -> Self {
        let mut members = Self::default();
        iter.into_iter().for_each(|p| members.insert(p));
        members
    }
}

impl fmt::Debug for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // On one line also in pretty prints, as other sets.
        f.write_str(&super::super::coterie::members(&self.0))
    }
}

/// A value for few among many processes: a sorted list.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(in crate::mutex) struct Few<T>(SmallVec<[(ProcessId, T); 2]>);

impl<T: Copy> Few<T> {
    /// The value of `p`, if it has one.
    pub(in crate::mutex) fn get(&self, p: ProcessId) -> Option<T> {
        self.find(p).ok().map(|i| self.0[i].1)
    }

    /// Gives `p` this value.
    pub(in crate::mutex) fn insert(&mut self, p: ProcessId, value: T) {
        match self.find(p) {
            Ok(i) => self.0[i].1 = value,
            Err(i) => self.0.insert(i, (p, value)),
        }
    }

    /// Takes the value of `p` away.
    pub(in crate::mutex) fn remove(&mut self, p: ProcessId) {
        if let Ok(i) = self.find(p) {
            self.0.remove(i);
        }
    }

    /// Takes all values away.
    pub(in crate::mutex) fn clear(&mut self) {
        self.0.clear();
    }

    pub(in crate::mutex) fn len(&self) -> usize {
        self.0.len()
    }

    pub(in crate::mutex) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All with their values, lowest first.
    pub(in crate::mutex) fn iter(&self) -> impl Iterator<Item = (ProcessId, T)> {
        self.0.iter().copied()
    }

    fn find(&self, p: ProcessId) -> Result<usize, usize> {
        self.0.binary_search_by_key(&p, |(q, _)| *q)
    }
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self(SmallVec::new())
    }
}

impl<T: Serialize> Serialize for Few<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter())
    }
}
