//! Limits how often repeated events are reported in the log.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Counts events by key and reports each key at most once per interval.
#[derive(Debug)]
pub(crate) struct RateLimiter<K = ()> {
    interval: Duration,
    capacity: usize,
    /// For each key, the time of its last report and the number of events since.
    reports: BTreeMap<K, (Instant, u64)>,
}

impl<K: Ord> RateLimiter<K> {
    /// A limiter that remembers at most `capacity` keys. A new key beyond that forgets all others.
    pub(crate) fn new(interval: Duration, capacity: usize) -> Self {
        Self { interval, capacity, reports: BTreeMap::new() }
    }

    /// Counts `times` events of `key`. Returns the number of events since the last report, these
    /// included, if a report is due.
    pub(crate) fn count(&mut self, key: K, times: u64, now: Instant) -> Option<u64> {
        if let Some((last, since)) = self.reports.get_mut(&key) {
            *since = since.saturating_add(times);
            if now.saturating_duration_since(*last) < self.interval {
                return None;
            }
            *last = now;
            return Some(std::mem::take(since));
        }
        if self.reports.len() >= self.capacity {
            self.reports.clear();
        }
        self.reports.insert(key, (now, 0));
        Some(times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_event_is_reported_at_once_and_later_ones_once_per_interval() {
        let mut limiter = RateLimiter::new(Duration::from_secs(10), 1);
        let start = Instant::now();
        let mut count = |times, after| limiter.count((), times, start + Duration::from_secs(after));
        assert_eq!(count(3, 0), Some(3));
        assert_eq!((count(1, 0), count(5, 9)), (None, None));
        assert_eq!(count(1, 10), Some(7));
        assert_eq!((count(1, 19), count(u64::MAX, 20)), (None, Some(u64::MAX)));
    }

    #[test]
    fn keys_are_limited_separately_and_in_number() {
        let mut limiter = RateLimiter::new(Duration::from_secs(60), 1000);
        let start = Instant::now();
        let mut count = |user, after| limiter.count(user, 1, start + Duration::from_secs(after));
        assert_eq!(count(7, 0), Some(1));
        assert_eq!((count(7, 1), count(7, 59)), (None, None));
        assert_eq!(count(8, 2), Some(1));
        assert_eq!(count(7, 60), Some(3));
        assert_eq!(count(7, 61), None);
        for user in 0..10_000 {
            count(user, 62);
        }
        assert!(limiter.reports.len() <= 1000);
    }

    #[test]
    fn limiter_of_capacity_one_reports_each_change_of_key() {
        let mut limiter = RateLimiter::new(Duration::from_secs(60), 1);
        let start = Instant::now();
        let mut due =
            |why, after| limiter.count(why, 1, start + Duration::from_secs(after)).is_some();
        assert!(due("no agent", 0));
        assert!(!due("no agent", 1) && !due("no agent", 59));
        assert!(due("no agent", 60));
        assert!(due("another reason", 61));
        assert!(!due("another reason", 62));
    }
}
