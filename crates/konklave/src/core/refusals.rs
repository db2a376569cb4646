//! Refused connections, ours and those of others. A refused peer retries for ever, so reports are limited.

use std::collections::VecDeque;
use std::time::Duration;

use super::Core;
use crate::rate_limiter::RateLimiter;
use crate::status::{Event, Refused};

/// The same refusal is reported at most once in this time.
const REPORT_PERIOD: Duration = Duration::from_secs(60);
/// How long `status` shows a refusal: a refused peer tries again more often.
const RECENT: Duration = Duration::from_secs(60);
/// How many different ones it shows.
const SHOWN: usize = 8;
/// The number of refusals to remember. Peers choose the text of some, so there may be any number.
const REMEMBERED: usize = 64;

pub(super) struct Refusals {
    /// The last refusal of the present view, for [`Core::what_is_missing`].
    last: Option<String>,
    /// The latest refusals, for `status`: each with its time.
    recent: VecDeque<(Refused, Duration)>,
    /// Keyed by address and reason.
    reports: RateLimiter<(String, String), Duration>,
}

impl Default for Refusals {
    fn default() -> Self {
        Self {
            last: None,
            recent: VecDeque::new(),
            reports: RateLimiter::new(REPORT_PERIOD, REMEMBERED),
        }
    }
}

impl Refusals {
    pub(super) fn last(&self) -> Option<&str> {
        self.last.as_deref()
    }

    /// The refusals of the last minute, the latest first.
    pub(super) fn recent(&self, now: Duration) -> Vec<Refused> {
        let fresh = self.recent.iter().filter(|(_, at)| now < *at + RECENT);
        fresh.map(|(refused, _)| refused.clone()).collect()
    }

    fn remember(&mut self, refused: Refused, now: Duration) {
        self.recent.retain(|(known, _)| *known != refused);
        self.recent.push_front((refused, now));
        self.recent.truncate(SHOWN);
    }

    /// A view began: earlier refusals no longer explain why a group is missing.
    pub(super) fn on_view(&mut self) {
        self.last = None;
    }

    /// A connection was established: the next refusal is reported, even if it repeats an earlier one.
    pub(super) fn on_peer(&mut self) {
        self.reports.clear();
    }
}

impl Core {
    /// Our call to `address` was refused.
    pub(crate) fn refused(&mut self, address: String, reason: String, now: Duration) {
        let key = address.clone();
        let refused = Refused { address: address.clone(), reason: reason.clone(), caller: false };
        self.refusals.remember(refused, now);
        self.report_refusal(key, address, reason, now);
    }

    /// We refused a call from `from`. Its last part, a port or a NATS stream, differs each time, so the report
    /// is limited per host.
    pub(crate) fn refused_caller(&mut self, from: String, reason: String, now: Duration) {
        let host = from.rsplit_once([':', '.']).map_or(&*from, |(host, _)| host).to_owned();
        let refused = Refused { address: host.clone(), reason: reason.clone(), caller: true };
        self.refusals.remember(refused, now);
        self.report_refusal(host, from, reason, now);
    }

    fn report_refusal(&mut self, key: String, address: String, reason: String, now: Duration) {
        self.refusals.last = Some(format!("{address}: {reason}"));
        if let Some(times) = self.refusals.reports.count((key, reason.clone()), 1, now) {
            self.publish(Event::Refused { address, reason, again: times - 1 });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_refusal_is_reported_again_after_new_connection() {
        let mut refusals = Refusals::default();
        let mut count = |seconds, connected: bool| {
            if connected {
                refusals.on_peer();
            }
            let key = ("a".to_owned(), "key".to_owned());
            refusals.reports.count(key, 1, Duration::from_secs(seconds))
        };
        assert_eq!((count(1, false), count(2, false)), (Some(1), None));
        assert_eq!(count(3, true), Some(1));
    }
}
