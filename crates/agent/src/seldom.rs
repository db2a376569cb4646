//! What happens often is told now and then, with how often it did.

use std::time::{Duration, Instant};

/// So long the log hears nothing of it.
const PAUSE: Duration = Duration::from_secs(10);

/// Counts what happens, and says when the log is to hear of it.
#[derive(Debug, Default)]
pub(crate) struct Seldom {
    told: Option<Instant>,
    since: u64,
}

impl Seldom {
    /// It happened `times` more: how often in all since it was last told, if it is to be told now.
    pub(crate) fn count(&mut self, times: u64, now: Instant) -> Option<u64> {
        self.since = self.since.saturating_add(times);
        if self.told.is_some_and(|told| now.saturating_duration_since(told) < PAUSE) {
            return None;
        }
        self.told = Some(now);
        Some(std::mem::take(&mut self.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_at_once_and_then_now_and_then() {
        let (mut seldom, start) = (Seldom::default(), Instant::now());
        let mut count = |times, after| seldom.count(times, start + Duration::from_secs(after));
        assert_eq!(count(3, 0), Some(3));
        assert_eq!((count(1, 0), count(5, 9)), (None, None));
        assert_eq!(count(1, 10), Some(7));
        assert_eq!((count(1, 19), count(u64::MAX, 20)), (None, Some(u64::MAX)));
    }
}
