//! A value for each process of a group.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};
use std::sync::Arc;

use prefetch_index::prefetch_index;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::group::Places;
use crate::{Fixed, Group, ProcessId};

/// A value for each member of a group, in node order: the arrays of the textbook, for arbitrary ids.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProcessMap<T> {
    values: Box<[T]>,
    keys: Fixed<Keys>,
}

/// The places, shared with the group, so that a map costs no more memory than its values.
#[derive(Clone)]
struct Keys {
    members: Arc<[ProcessId]>,
    places: Places,
    /// The position of the last change. Large groups are mostly visited in node order, so lookups try this
    /// position and the next one before the table of places.
    last: u32,
}

/// From this size on, the table of places outgrows the nearest caches.
const LARGE: usize = 1 << 16;

impl Keys {
    #[inline]
    fn position(&self, p: ProcessId) -> Option<usize> {
        if self.members.len() >= LARGE && matches!(self.places, Places::Table(_)) {
            let last = self.last as usize;
            let near = self.members[last..].iter().take(2).position(|q| *q == p);
            if let Some(further) = near {
                return Some(last + further);
            }
        }
        self.places.of(p)
    }
}

impl<T: Clone> ProcessMap<T> {
    /// `value` for each member of `group`.
    pub fn new(group: &Group, value: T) -> Self {
        let (members, places) = (group.shared_members(), group.places().clone());
        let keys = Keys { members, places, last: 0 };
        Self { values: vec![value; group.len()].into(), keys: Fixed(keys) }
    }
}

impl<T> ProcessMap<T> {
    #[inline]
    fn position(&self, p: ProcessId) -> Option<usize> {
        self.keys.position(p)
    }

    fn id(&self, position: usize) -> ProcessId {
        self.keys.members[position]
    }

    /// The value of `p`, if it is a member.
    pub fn get(&self, p: ProcessId) -> Option<&T> {
        self.position(p).map(|i| &self.values[i])
    }

    /// The value of `p`, if it is a member.
    pub fn get_mut(&mut self, p: ProcessId) -> Option<&mut T> {
        let i = self.position(p)?;
        self.keys.0.last = i as u32;
        Some(&mut self.values[i])
    }

    /// Prefetches the value of `p`. If ids are not places, it does nothing, since the table of places would
    /// have to be read first.
    #[inline]
    pub fn prefetch(&self, p: ProcessId) {
        if let Places::Same(_) = self.keys.places {
            prefetch_index(&self.values, p.0 as usize);
        }
    }

    /// All members with their values, in node order.
    pub fn iter(&self) -> impl Iterator<Item = (ProcessId, &T)> {
        self.values.iter().enumerate().map(|(i, value)| (self.id(i), value))
    }

    /// All values, in node order.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.values.iter()
    }

    /// All values, in node order.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.values.iter_mut()
    }

    /// All ids in node order, starting after `p` and ending with `p`: the fair order for a scan.
    pub fn after(&self, p: ProcessId) -> impl Iterator<Item = ProcessId> + '_ {
        let n = self.values.len();
        let start = self.position(p).map_or(0, |place| place + 1);
        (0..n).map(move |i| self.id((start + i) % n))
    }
}

impl<T> Index<ProcessId> for ProcessMap<T> {
    type Output = T;
    #[inline]
    fn index(&self, p: ProcessId) -> &T {
        self.get(p).expect("only members have values")
    }
}

impl<T> IndexMut<ProcessId> for ProcessMap<T> {
    #[inline]
    fn index_mut(&mut self, p: ProcessId) -> &mut T {
        self.get_mut(p).expect("only members have values")
    }
}

impl<T: Hash> Hash for ProcessMap<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.values.hash(state);
    }
}

impl<T: fmt::Debug> fmt::Debug for ProcessMap<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (i, (p, value)) in self.iter().enumerate() {
            write!(f, "{}{p:?}: {value:?}", if i > 0 { ", " } else { "" })?;
        }
        f.write_str("}")
    }
}

impl<T: Serialize> Serialize for ProcessMap<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for ProcessMap<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Entries(PhantomData))
    }
}

/// Reads a map entry by entry, in the order in which it was written.
struct Entries<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
    type Value = ProcessMap<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value for each process")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ProcessMap<T>, A::Error> {
        let (mut members, mut values) = (Vec::new(), Vec::new());
        while let Some((p, value)) = map.next_entry::<ProcessId, T>()? {
            members.push(p);
            values.push(value);
        }
        let places = Places::new(&members).map_err(serde::de::Error::custom)?;
        let keys = Keys { members: members.into(), places, last: 0 };
        Ok(ProcessMap { values: values.into(), keys: Fixed(keys) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_id_dense_or_not() {
        let sparse = Group::new([17, 4, 99].map(ProcessId).to_vec()).unwrap();
        for (group, id) in [(Group::of(3), 1), (sparse, 17)] {
            let mut map = ProcessMap::new(&group, 0);
            map[ProcessId(id)] = 5;
            assert_eq!(map[ProcessId(id)], 5);
            assert_eq!(map.get(ProcessId(50)), None);
            assert_eq!(map.values().sum::<i32>(), 5);
        }
    }

    #[test]
    fn values_of_large_groups_are_found_in_any_order() {
        let ids: Vec<ProcessId> = (0..LARGE as u32).rev().map(ProcessId).collect();
        let mut map = ProcessMap::new(&Group::new(ids.clone()).unwrap(), 0);
        for p in ids.iter().chain(ids.iter().rev()).chain(ids.iter().step_by(1000)) {
            map[*p] += p.0;
            assert_eq!(map[*p] % p.0.max(1), 0);
        }
        assert_eq!(map.get(ProcessId(LARGE as u32)), None);
        assert_eq!(map[ids[1]], 2 * ids[1].0);
    }

    #[test]
    fn scan_starts_after_the_given_id_and_wraps_around() {
        let map = ProcessMap::new(&Group::new([17, 4, 99].map(ProcessId).to_vec()).unwrap(), ());
        assert_eq!(map.after(ProcessId(17)).map(|p| p.0).collect::<Vec<_>>(), [4, 99, 17]);
        let map = ProcessMap::new(&Group::of(3), ());
        assert_eq!(map.after(ProcessId(2)).map(|p| p.0).collect::<Vec<_>>(), [0, 1, 2]);
    }
}
