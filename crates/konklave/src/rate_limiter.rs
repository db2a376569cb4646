//! Rate limiter for reports that repeat: a refused peer retries for ever, and the log must not grow with it.

use std::collections::BTreeMap;
use std::ops::Sub;
use std::time::{Duration, Instant};

/// Passes one report per key and period, and counts the suppressed ones. The time `T` is an [`Instant`], or a
/// [`Duration`] since a fixed moment.
#[derive(Clone, Debug)]
pub struct RateLimiter<K = (), T = Instant> {
    period: Duration,
    capacity: usize,
    /// For each key: the time of its last report, and the occurrences since.
    reported: BTreeMap<K, (T, u64)>,
}

impl<K: Ord + Clone, T: Copy + Ord + Sub<Output = Duration>> RateLimiter<K, T> {
    /// A limiter that passes one report per key and `period`. It remembers at most `capacity` keys: beyond
    /// that, the key with the oldest report makes room.
    pub fn new(period: Duration, capacity: usize) -> Self {
        Self { period, capacity: capacity.max(1), reported: BTreeMap::new() }
    }

    /// Counts `times` occurrences of `key` at time `now`. If a report is due, returns the number of occurrences
    /// since the last report, these included; otherwise `None`.
    pub fn count(&mut self, key: K, times: u64, now: T) -> Option<u64> {
        if let Some((last, since)) = self.reported.get_mut(&key) {
            let total = since.saturating_add(times);
            if now < *last || now - *last < self.period {
                *since = total;
                return None;
            }
            (*last, *since) = (now, 0);
            return Some(total);
        }
        if self.reported.len() >= self.capacity
            && let Some((oldest, _)) = self.reported.iter().min_by_key(|(_, (last, _))| *last)
        {
            let oldest = oldest.clone();
            self.reported.remove(&oldest);
        }
        self.reported.insert(key, (now, 0));
        Some(times)
    }

    /// Forgets all keys: the next occurrence of each is reported.
    pub fn clear(&mut self) {
        self.reported.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_passes_once_per_period_with_number_of_occurrences() {
        let (mut limiter, start) = (RateLimiter::new(Duration::from_secs(10), 1), Instant::now());
        let mut count = |times, after| limiter.count((), times, start + Duration::from_secs(after));
        assert_eq!(count(3, 0), Some(3));
        assert_eq!((count(1, 0), count(5, 9)), (None, None));
        assert_eq!(count(1, 10), Some(7));
        assert_eq!((count(1, 19), count(u64::MAX, 20)), (None, Some(u64::MAX)));
    }

    #[test]
    fn keys_are_limited_separately_until_cleared() {
        let mut limiter = RateLimiter::new(Duration::from_secs(60), 8);
        let at = Duration::from_secs;
        assert_eq!(limiter.count("a", 1, at(1)), Some(1));
        assert_eq!(limiter.count("a", 1, at(60)), None);
        assert_eq!(limiter.count("b", 1, at(60)), Some(1));
        assert_eq!(limiter.count("a", 1, at(61)), Some(2));
        limiter.clear();
        assert_eq!(limiter.count("a", 1, at(62)), Some(1));
    }

    #[test]
    fn number_of_remembered_keys_is_bounded() {
        let mut limiter = RateLimiter::new(Duration::from_secs(60), 64);
        for n in 0..640 {
            assert_eq!(limiter.count(n, 1, Duration::from_millis(n)), Some(1));
        }
        assert_eq!(limiter.reported.len(), 64);
        assert_eq!(limiter.count(639, 1, Duration::from_secs(1)), None, "the latest keys stay");
    }
}
