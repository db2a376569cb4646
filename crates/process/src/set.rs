//! Sets that take a few machine words, and clone, hash and compare accordingly fast.

use std::fmt;
use std::marker::PhantomData;

use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smallvec::SmallVec;

use crate::{Port, ProcessId};

/// A set of processes: ids below 128 take two words inline, larger ids take more words on the heap.
pub type ProcessSet = Set<ProcessId>;
/// A set of ports.
pub type PortSet = Set<Port>;

/// A bit set of numbered items. Trailing zero words are dropped, so that equal sets are equal values.
pub struct Set<T> {
    words: SmallVec<[u64; 2]>,
    of: PhantomData<fn() -> T>,
}

/// An item with a number.
pub trait Numbered: Copy {
    /// The number of this item.
    fn number(self) -> usize;
    /// The item with this number.
    fn numbered(number: usize) -> Self;
}

impl Numbered for ProcessId {
    #[inline]
    fn number(self) -> usize {
        self.0 as usize
    }
    #[inline]
    fn numbered(number: usize) -> Self {
        Self(number as u32)
    }
}

impl Numbered for Port {
    #[inline]
    fn number(self) -> usize {
        self.0 as usize
    }
    #[inline]
    fn numbered(number: usize) -> Self {
        Self(number as u32)
    }
}

impl<T: Numbered> Set<T> {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// The items with the numbers 0 to n − 1.
    pub fn first(n: usize) -> Self {
        let mut words: SmallVec<[u64; 2]> = SmallVec::from_elem(!0, n / 64);
        if !n.is_multiple_of(64) {
            words.push((1 << (n % 64)) - 1);
        }
        Self { words, of: PhantomData }
    }

    /// Inserts `x`; returns false if the set already contains it.
    #[inline]
    pub fn insert(&mut self, x: T) -> bool {
        let (word, bit) = (x.number() / 64, 1 << (x.number() % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        new
    }

    /// Removes `x`; returns false if the set does not contain it.
    #[inline]
    pub fn remove(&mut self, x: T) -> bool {
        let (word, bit) = (x.number() / 64, 1 << (x.number() % 64));
        let Some(w) = self.words.get_mut(word) else { return false };
        let was_in = *w & bit != 0;
        *w &= !bit;
        self.trim();
        was_in
    }

    fn trim(&mut self) {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
    }

    /// Whether the set contains `x`.
    #[inline]
    pub fn contains(&self, x: T) -> bool {
        self.words.get(x.number() / 64).is_some_and(|w| w >> (x.number() % 64) & 1 == 1)
    }

    /// Whether the set is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The number of items.
    pub fn len(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// All items, the lowest first.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.words.iter().enumerate().flat_map(|(i, &word)| {
            std::iter::successors(Some(word), |w| Some(w & w.wrapping_sub(1)))
                .take_while(|w| *w != 0)
                .map(move |w| T::numbered(i * 64 + w.trailing_zeros() as usize))
        })
    }

    /// The lowest item.
    pub fn lowest(&self) -> Option<T> {
        self.iter().next()
    }

    /// The highest item.
    pub fn highest(&self) -> Option<T> {
        let word = self.words.last()?;
        Some(T::numbered(self.words.len() * 64 - 1 - word.leading_zeros() as usize))
    }

    /// Whether `other` contains every item of `self`.
    pub fn is_subset(&self, other: &Self) -> bool {
        let padded = other.words.iter().chain(std::iter::repeat(&0));
        self.words.iter().zip(padded).all(|(a, b)| a & !b == 0)
    }

    /// Whether the sets have an item in common.
    pub fn intersects(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    /// The intersection.
    pub fn intersection(&self, other: &Self) -> Self {
        let words = self.words.iter().zip(&other.words).map(|(a, b)| a & b).collect();
        let mut set = Self { words, of: PhantomData };
        set.trim();
        set
    }

    /// The items of `self` that are not in `other`.
    pub fn difference(&self, other: &Self) -> Self {
        let padded = other.words.iter().chain(std::iter::repeat(&0));
        let words = self.words.iter().zip(padded).map(|(a, b)| a & !b).collect();
        let mut set = Self { words, of: PhantomData };
        set.trim();
        set
    }

    /// Inserts all items of `other`.
    pub fn union_with(&mut self, other: &Self) {
        if other.words.len() > self.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a |= b);
    }

    /// Removes all items.
    pub fn clear(&mut self) {
        self.words.clear();
    }
}

impl<T> Default for Set<T> {
    fn default() -> Self {
        Self { words: SmallVec::new(), of: PhantomData }
    }
}
impl<T> Clone for Set<T> {
    #[inline]
    fn clone(&self) -> Self {
        Self { words: SmallVec::from_slice(&self.words), of: PhantomData }
    }
}
impl<T> PartialEq for Set<T> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words
    }
}
impl<T> Eq for Set<T> {}
impl<T> std::hash::Hash for Set<T> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.words.hash(state);
    }
}
impl<T> PartialOrd for Set<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Set<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.words.cmp(&other.words)
    }
}

impl<T: Numbered> FromIterator<T> for Set<T> {
    fn from_iter<I: IntoIterator<Item = T>>(iter: I) -> Self {
        let mut set = Self::default();
        set.extend(iter);
        set
    }
}
impl<T: Numbered> Extend<T> for Set<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, iter: I) {
        for x in iter {
            self.insert(x);
        }
    }
}

impl<T: Numbered + fmt::Debug> fmt::Debug for Set<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // On one line even in pretty prints, so that states stay readable.
        f.write_str("{")?;
        for (i, x) in self.iter().enumerate() {
            write!(f, "{}{x:?}", if i > 0 { ", " } else { "" })?;
        }
        f.write_str("}")
    }
}

impl<T: Numbered + Serialize> Serialize for Set<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // With the length given, a serialiser need not collect the items first.
        let mut members = serializer.serialize_seq(Some(self.len()))?;
        self.iter().try_for_each(|x| members.serialize_element(&x))?;
        members.end()
    }
}
impl<'de, T: Numbered + Deserialize<'de>> Deserialize<'de> for Set<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let members: Vec<T> = Vec::deserialize(deserializer)?;
        match members.iter().find(|x| x.number() > crate::MAX_ID as usize) {
            Some(x) => Err(serde::de::Error::custom(format!("{} is no member", x.number()))),
            None => Ok(members.into_iter().collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_set_behaves_like_a_tree_set(steps in prop::collection::vec((any::<bool>(), 0u32..300), 0..80)) {
            let (mut set, mut model) = (ProcessSet::new(), BTreeSet::new());
            for (insert, x) in steps {
                if insert {
                    prop_assert_eq!(set.insert(ProcessId(x)), model.insert(x));
                } else {
                    prop_assert_eq!(set.remove(ProcessId(x)), model.remove(&x));
                }
                prop_assert_eq!(set.iter().map(|p| p.0).collect::<Vec<_>>(), model.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(set.len(), model.len());
                prop_assert_eq!(set.highest().map(|p| p.0), model.last().copied());
                // The representation is canonical: built anew, it is the same value.
                prop_assert_eq!(&set, &model.iter().copied().map(ProcessId).collect::<ProcessSet>());
            }
        }

        #[test]
        fn algebra_agrees_with_the_model(a in prop::collection::btree_set(0u32..200, 0..40), b in prop::collection::btree_set(0u32..200, 0..40)) {
            let set = |s: &BTreeSet<u32>| s.iter().copied().map(ProcessId).collect::<ProcessSet>();
            let (x, y) = (set(&a), set(&b));
            prop_assert_eq!(x.intersects(&y), !a.is_disjoint(&b));
            prop_assert_eq!(x.is_subset(&y), a.is_subset(&b));
            prop_assert_eq!(x.intersection(&y), set(&(&a & &b)));
            prop_assert_eq!(x.difference(&y), set(&(&a - &b)));
            let mut z = x;
            z.union_with(&y);
            prop_assert_eq!(z, set(&(&a | &b)));
        }
    }

    #[test]
    fn the_first_n_are_all_below_n() {
        for n in [0, 1, 63, 64, 65, 128, 200] {
            assert_eq!(ProcessSet::first(n).len(), n);
            assert_eq!(ProcessSet::first(n), (0..n as u32).map(ProcessId).collect());
        }
    }

    #[test]
    fn a_set_prints_on_one_line() {
        let set: ProcessSet = [ProcessId(3), ProcessId(70)].into_iter().collect();
        assert_eq!(format!("{set:?}"), "{p3, p70}");
    }
}
