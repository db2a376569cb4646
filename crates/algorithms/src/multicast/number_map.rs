//! A map whose keys are a moving range of numbers.

use std::collections::VecDeque;
use std::fmt;

use serde::{Serialize, Serializer};

/// A map from numbers to values, for numbers with few gaps, such as those of messages under way. Most
/// lookups compute an index and do not search. The map is serialised like any map, lowest number first.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct NumberMap<T>(VecDeque<(u32, T)>);

impl<T> NumberMap<T> {
    /// Inserts `value`. If the number has a value already, nothing changes and the result is false.
    pub(super) fn insert(&mut self, number: u32, value: T) -> bool {
        let place = match self.0.back() {
            Some((last, _)) if *last >= number => self.find(number).err(),
            Some(_) | None => Some(self.0.len()),
        };
        if let Some(i) = place {
            self.0.insert(i, (number, value));
        }
        place.is_some()
    }

    /// The value of `number`.
    pub(super) fn get(&self, number: u32) -> Option<&T> {
        self.find(number).ok().map(|i| &self.0[i].1)
    }

    /// Whether `number` has a value.
    pub(super) fn contains(&self, number: u32) -> bool {
        self.find(number).is_ok()
    }

    /// Removes all entries up to `number`.
    pub(super) fn forget_upto(&mut self, number: u32) {
        while self.0.front().is_some_and(|(first, _)| *first <= number) {
            self.0.pop_front();
        }
    }

    /// Whether the map has no entry.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The index of `number`, or where to insert it.
    fn find(&self, number: u32) -> Result<usize, usize> {
        let first = self.0.front().map_or(0, |(first, _)| *first);
        let guess = number.wrapping_sub(first) as usize;
        match self.0.get(guess) {
            Some((found, _)) if *found == number => Ok(guess),
            Some(_) | None => self.0.binary_search_by_key(&number, |(number, _)| *number),
        }
    }

    fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.0.iter().map(|(number, value)| (*number, value))
    }
}

impl<T> Default for NumberMap<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T: fmt::Debug> fmt::Debug for NumberMap<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<T: Serialize> Serialize for NumberMap<T> {
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
    fn it_behaves_like_a_map_and_equal_maps_are_equal_values() {
        let mut rng = Rng::new(1);
        for _ in 0..300 {
            let (mut map, mut model) = (NumberMap::default(), BTreeMap::new());
            for step in 0..40 {
                let number = if rng.below(50) == 0 { u32::MAX - 1 } else { rng.below(20) + 1 };
                if rng.below(3) == 0 {
                    map.forget_upto(number);
                    model.retain(|n, _| *n > number);
                } else {
                    let new = !model.contains_key(&number);
                    model.entry(number).or_insert(step);
                    assert_eq!(map.insert(number, step), new);
                }
                assert_eq!(map.is_empty(), model.is_empty());
                assert_eq!(format!("{map:?}"), format!("{model:?}"));
                assert!((0..25).all(|n| map.get(n) == model.get(&n)));
                let mut anew = NumberMap::default();
                model.iter().rev().for_each(|(n, value)| assert!(anew.insert(*n, *value)));
                assert_eq!(map, anew);
            }
        }
    }
}
