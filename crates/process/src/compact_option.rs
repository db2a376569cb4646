//! An optional number in four bytes.

use std::cmp::Ordering;
use std::fmt;
use std::marker::PhantomData;

use serde::{Serialize, Serializer};

use crate::set::Numbered;

/// An optional id or port in half the size of an [`Option`], for arrays of millions. It compares, prints and
/// serialises like an `Option`.
pub struct CompactOption<T> {
    /// The number plus one; 0 for none.
    code: u32,
    of: PhantomData<fn() -> T>,
}

impl<T: Numbered> CompactOption<T> {
    /// None.
    pub const NONE: Self = Self { code: 0, of: PhantomData };

    /// The value, as an [`Option`].
    #[inline]
    pub fn get(self) -> Option<T> {
        self.code.checked_sub(1).map(|number| T::numbered(number as usize))
    }

    /// Takes the value out and leaves none.
    #[inline]
    pub fn take(&mut self) -> Option<T> {
        std::mem::take(self).get()
    }

    /// The value, or none if it is `x`.
    #[inline]
    pub fn without(self, x: T) -> Self {
        if self == Self::from(x) { Self::NONE } else { self }
    }

    /// Whether it has no value.
    #[inline]
    pub fn is_none(self) -> bool {
        self.code == 0
    }

    /// Whether it has a value.
    #[inline]
    pub fn is_some(self) -> bool {
        self.code != 0
    }
}

impl<T: Numbered> From<Option<T>> for CompactOption<T> {
    #[inline]
    fn from(x: Option<T>) -> Self {
        Self { code: x.map_or(0, |x| x.number() as u32 + 1), of: PhantomData }
    }
}

impl<T: Numbered> From<T> for CompactOption<T> {
    #[inline]
    fn from(x: T) -> Self {
        Some(x).into()
    }
}

impl<T> Clone for CompactOption<T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for CompactOption<T> {}
impl<T> Default for CompactOption<T> {
    fn default() -> Self {
        Self { code: 0, of: PhantomData }
    }
}
impl<T> PartialEq for CompactOption<T> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.code == other.code
    }
}
impl<T> Eq for CompactOption<T> {}
impl<T> std::hash::Hash for CompactOption<T> {
    #[inline]
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.code.hash(state);
    }
}
impl<T> PartialOrd for CompactOption<T> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for CompactOption<T> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.code.cmp(&other.code)
    }
}

impl<T: Numbered> PartialEq<Option<T>> for CompactOption<T> {
    #[inline]
    fn eq(&self, other: &Option<T>) -> bool {
        *self == Self::from(*other)
    }
}
impl<T: Numbered> PartialOrd<Option<T>> for CompactOption<T> {
    #[inline]
    fn partial_cmp(&self, other: &Option<T>) -> Option<Ordering> {
        self.partial_cmp(&Self::from(*other))
    }
}

impl<T: Numbered + fmt::Debug> fmt::Debug for CompactOption<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

impl<T: Numbered + Serialize> Serialize for CompactOption<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.get().serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Port, ProcessId};

    #[test]
    fn behaves_like_an_option_in_half_the_size() {
        assert_eq!(size_of::<CompactOption<ProcessId>>(), 4);
        let all = [None, Some(0), Some(1), Some(crate::MAX_ID)].map(|x| x.map(ProcessId));
        for a in all {
            let maybe = CompactOption::from(a);
            assert_eq!(maybe.get(), a);
            assert_eq!((maybe.is_none(), maybe.is_some()), (a.is_none(), a.is_some()));
            assert_eq!(format!("{maybe:?}"), format!("{a:?}"));
            for b in all {
                assert_eq!(maybe.cmp(&CompactOption::from(b)), a.cmp(&b));
                assert_eq!((maybe == b, maybe < b), (a == b, a < b));
            }
        }
        assert_eq!(CompactOption::<Port>::default(), CompactOption::NONE);
        let mut three = CompactOption::from(Port(3));
        assert_eq!((three.without(Port(2)), three.without(Port(3))), (three, CompactOption::NONE));
        assert_eq!((three.take(), three), (Some(Port(3)), CompactOption::NONE));
        assert_eq!(CompactOption::from(Port(3)), Some(Port(3)));
    }
}
