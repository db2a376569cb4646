//! What is kept of a row of numbers that moves on.

use std::collections::VecDeque;
use std::fmt;

use serde::{Serialize, Serializer};

/// A map from numbers of which few are missing in between, such as those of messages that are under way:
/// most are found by counting instead of searching. It looks and is recorded like any map, lowest
/// number first.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Window<T>(VecDeque<(u32, T)>);

impl<T> Window<T> {
    /// Puts `value` in, unless there is one of this number: then false.
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

    /// The value of this number.
    pub(super) fn get(&self, number: u32) -> Option<&T> {
        self.find(number).ok().map(|i| &self.0[i].1)
    }

    /// Whether there is one of this number.
    pub(super) fn contains(&self, number: u32) -> bool {
        self.find(number).is_ok()
    }

    /// Takes all up to `number` out.
    pub(super) fn forget_upto(&mut self, number: u32) {
        while self.0.front().is_some_and(|(first, _)| *first <= number) {
            self.0.pop_front();
        }
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Where this number stands, or should.
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

impl<T> Default for Window<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T: fmt::Debug> fmt::Debug for Window<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<T: Serialize> Serialize for Window<T> {
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
            let (mut window, mut model) = (Window::default(), BTreeMap::new());
            for step in 0..40 {
                let number = if rng.below(50) == 0 { u32::MAX - 1 } else { rng.below(20) + 1 };
                if rng.below(3) == 0 {
                    window.forget_upto(number);
                    model.retain(|n, _| *n > number);
                } else {
                    let new = !model.contains_key(&number);
                    model.entry(number).or_insert(step);
                    assert_eq!(window.insert(number, step), new);
                }
                assert_eq!(window.is_empty(), model.is_empty());
                assert_eq!(format!("{window:?}"), format!("{model:?}"));
                assert!((0..25).all(|n| window.get(n) == model.get(&n)));
                let mut anew = Window::default();
                model.iter().rev().for_each(|(n, value)| assert!(anew.insert(*n, *value)));
                assert_eq!(window, anew);
            }
        }
    }
}
