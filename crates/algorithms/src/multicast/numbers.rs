//! A set of message numbers of one sender.

use serde::{Serialize, Serializer};

/// A set of numbers from 1 on that fills up from below. The numbers before the first gap take one word.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize)]
pub struct Numbers {
    /// All numbers up to this one are in the set.
    upto: u32,
    /// The numbers beyond the first gap, in order; never an empty list. Mostly there are none, and a
    /// monitor of a large group keeps very many of these sets.
    #[serde(serialize_with = "listed")]
    #[expect(clippy::box_collection, reason = "an empty list would take three words")]
    beyond: Option<Box<Vec<u32>>>,
}

fn listed<S, L>(beyond: &Option<L>, to: S) -> Result<S::Ok, S::Error>
where
    S: Serializer,
    L: AsRef<Vec<u32>>,
{
    to.collect_seq(beyond.iter().flat_map(|list| list.as_ref()))
}

impl Numbers {
    /// The numbers from 1 to `upto`.
    pub fn first(upto: u32) -> Self {
        Self { upto, beyond: None }
    }

    /// Inserts `x`; false if it was in the set already.
    pub fn insert(&mut self, x: u32) -> bool {
        if x <= self.upto {
            return false;
        }
        if x > self.upto + 1 {
            let beyond = self.beyond.get_or_insert_default();
            let found = beyond.binary_search(&x);
            if let Err(i) = found {
                beyond.insert(i, x);
            }
            return found.is_err();
        }
        self.upto = x;
        if let Some(beyond) = &mut self.beyond {
            let run = beyond.iter().zip(x + 1..).take_while(|(x, y)| *x == y).count();
            beyond.drain(..run);
            self.upto += run as u32;
            if beyond.is_empty() {
                self.beyond = None;
            }
        }
        true
    }

    /// Whether `x` is in the set.
    pub fn contains(&self, x: u32) -> bool {
        x <= self.upto || self.beyond().binary_search(&x).is_ok()
    }

    /// All numbers up to this one are in the set.
    pub fn upto(&self) -> u32 {
        self.upto
    }

    /// The numbers beyond the first gap.
    pub fn beyond(&self) -> &[u32] {
        self.beyond.as_deref().map_or(&[], Vec::as_slice)
    }

    /// The highest number; 0 for the empty set.
    pub fn highest(&self) -> u32 {
        self.beyond().last().copied().unwrap_or(self.upto)
    }

    /// How many numbers are in the set.
    pub fn len(&self) -> usize {
        self.upto as usize + self.beyond().len()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The numbers up to `high` that are not in the set.
    pub fn missing(&self, high: u32) -> impl Iterator<Item = u32> + '_ {
        (self.upto + 1..=high).filter(|x| self.beyond().binary_search(x).is_err())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use konklave_process::Rng;

    use super::*;

    #[test]
    fn they_behave_like_a_set() {
        let mut rng = Rng::new(1);
        for _ in 0..200 {
            let (mut numbers, mut model) = (Numbers::default(), BTreeSet::new());
            for _ in 0..40 {
                let x = rng.below(20) + 1;
                assert_eq!(numbers.insert(x), model.insert(x));
                assert_eq!(numbers.len(), model.len());
                assert_eq!(numbers.highest(), model.last().copied().unwrap_or(0));
                let missing: Vec<u32> = (1..=25).filter(|x| !model.contains(x)).collect();
                assert_eq!(numbers.missing(25).collect::<Vec<u32>>(), missing);
                assert!((1..25).all(|x| numbers.contains(x) == model.contains(&x)));
                assert!(!numbers.beyond().contains(&(numbers.upto() + 1)));
            }
        }
    }
}
