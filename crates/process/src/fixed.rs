//! Constant parts of a process.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

/// A constant part of a process: its neighbours, its quorum, its switches. It is not part of the state: it is
/// not hashed, compared or printed.
#[derive(Clone, Copy, Default)]
pub struct Fixed<T>(pub T);

impl<T> Deref for Fixed<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> PartialEq for Fixed<T> {
    #[inline]
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for Fixed<T> {}

impl<T> PartialOrd for Fixed<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Fixed<T> {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

impl<T> Hash for Fixed<T> {
    #[inline]
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl<T> fmt::Debug for Fixed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}
