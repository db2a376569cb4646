//! Open load: requests that arrive whether or not earlier ones were served.

use serde::Serialize;

/// When requests arrived and when they were served, in ticks.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    arrived: Vec<u64>,
    entered: Vec<u64>,
}

/// More than this share of all requests still waits when the last arrives: the lock is saturated.
const SATURATED: f64 = 0.1;

impl Arrivals {
    pub(super) fn arrive(&mut self, at: u64) {
        self.arrived.push(at);
    }

    pub(super) fn enter(&mut self, at: u64) {
        if !self.arrived.is_empty() {
            self.entered.push(at);
        }
    }

    /// The summary for `n` clients; none if no request arrived by itself, or all at one moment.
    pub(super) fn summary(&self, n: usize, unit: f64) -> Option<OpenLoad> {
        let (mut arrived, mut entered) = (self.arrived.clone(), self.entered.clone());
        arrived.sort_unstable();
        entered.sort_unstable();
        let (first, last) = (*arrived.first()?, *arrived.last()?);
        let end = last.max(entered.last().copied().unwrap_or(0));
        if first == last {
            return None;
        }
        let total = |times: &[u64]| times.iter().map(|t| (t - first) as f64).sum::<f64>();
        let waited = total(&entered) - total(&arrived)
            + (arrived.len() - entered.len()) as f64 * (end - first) as f64;
        let mut served = entered.iter().peekable();
        let (mut done, mut most) = (0, 0);
        for (i, at) in arrived.iter().enumerate() {
            while served.next_if(|entered| *entered < at).is_some() {
                done += 1;
            }
            most = most.max(i + 1 - done);
        }
        let at_last = arrived.len() - entered.iter().filter(|t| **t <= last).count();
        let offered = rate(&arrived) * unit;
        let share = at_last as f64 / arrived.len() as f64;
        let saturated = share > SATURATED && at_last > n;
        let words = match saturated {
            true => format!(
                "{offered:.3} requests per T: saturated, {at_last} of {} requests were waiting when the last arrived, \
                 so the response grows with the length of the run",
                arrived.len()
            ),
            false => format!("{offered:.3} requests per T, at most {most} waited at a time"),
        };
        Some(OpenLoad {
            offered,
            backlog_mean: waited / (end - first) as f64,
            backlog_max: most as u64,
            backlog_at_last_arrival: at_last as u64,
            saturated,
            words,
        })
    }
}

/// How many requests arrived in one tick, while the first three quarters of them did: clients end at different times,
/// so the last requests are rarer.
fn rate(arrived: &[u64]) -> f64 {
    let quarters = (3 * arrived.len()).div_ceil(4).max(2);
    let until = [quarters, arrived.len()].into_iter().find(|k| arrived[k - 1] > arrived[0]);
    until.map_or(0.0, |k| (k - 1) as f64 / (arrived[k - 1] - arrived[0]) as f64)
}

/// The open load of a run. The backlog counts requests that have arrived and not entered.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct OpenLoad {
    /// How many requests arrived in one T.
    pub offered: f64,
    /// The backlog on average over time, from the first arrival to the last entry.
    pub backlog_mean: f64,
    /// The largest backlog.
    pub backlog_max: u64,
    /// The backlog when the last request arrived.
    pub backlog_at_last_arrival: u64,
    /// Whether requests arrive faster than they are served: more than a tenth of them, and more than one for each
    /// client, were in that backlog.
    pub saturated: bool,
    /// The same in words.
    pub words: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(arrived: &[u64], entered: &[u64]) -> Option<OpenLoad> {
        let arrivals = Arrivals { arrived: arrived.to_vec(), entered: entered.to_vec() };
        arrivals.summary(1, 1.0)
    }

    #[test]
    fn backlog_counts_requests_between_arrival_and_entry() {
        let load = load(&[0, 2, 4, 6], &[0, 5, 10, 12]).unwrap();
        assert_eq!((load.offered, load.backlog_max, load.backlog_at_last_arrival), (0.5, 2, 2));
        // 0 + 3 + 6 + 6 waited, over 12.
        assert_eq!(load.backlog_mean, 15.0 / 12.0);
        assert!(load.saturated);
    }

    #[test]
    fn requests_that_were_never_served_stay_in_the_backlog() {
        let load = load(&[0, 10], &[4]).unwrap();
        assert_eq!((load.backlog_mean, load.backlog_at_last_arrival), (0.4, 1));
    }

    #[test]
    fn a_lock_that_keeps_up_is_not_saturated() {
        let arrived: Vec<u64> = (0..100).map(|i| 10 * i).collect();
        let entered: Vec<u64> = arrived.iter().map(|t| t + 3).collect();
        let load = load(&arrived, &entered).unwrap();
        assert!(!load.saturated && load.backlog_max == 1 && load.backlog_at_last_arrival == 1);
        assert!(load.words.contains("at most 1 waited"), "{}", load.words);
    }

    #[test]
    fn without_arrivals_there_is_no_open_load() {
        assert_eq!(load(&[], &[]), None);
        assert_eq!(load(&[5], &[7]), None);
    }
}
