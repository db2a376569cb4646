//! How long a wrapper tries again when its agent is not available.

use std::time::{Duration, Instant};

use konklave::RateLimiter;

use super::Job;

/// The pause before the first try again, and the longest one.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));
/// How often the same reason for waiting is printed.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// The time that a wrapper has to obtain its lock.
pub(super) struct Retry {
    again: bool,
    /// The time of `--timeout`, and when it began.
    wait: Option<Duration>,
    start: Instant,
    /// Whether an agent has answered once: then it exists, and its restart is waited for.
    connected: bool,
    pause: Duration,
    reports: RateLimiter<String>,
}

impl Retry {
    pub(super) fn new(job: &Job) -> Self {
        Self {
            again: job.again,
            wait: job.wait,
            start: Instant::now(),
            connected: false,
            pause: PAUSE.0,
            reports: RateLimiter::new(REPORT_INTERVAL, 1),
        }
    }

    /// The lock was held and lost: the time begins again.
    pub(super) fn begin_again(&mut self) {
        (self.start, self.pause) = (Instant::now(), PAUSE.0);
    }

    pub(super) fn connected(&mut self) {
        (self.connected, self.pause) = (true, PAUSE.0);
    }

    /// The rest of `--timeout`. It is zero only if `--timeout` is, because zero means not to wait at all.
    pub(super) fn left(&self) -> Option<Duration> {
        let left = |wait: Duration| wait.saturating_sub(self.start.elapsed());
        let least = Duration::from_millis(1);
        self.wait.map(|wait| if wait.is_zero() { wait } else { left(wait).max(least) })
    }

    /// Whether to try again after the agent was not available.
    pub(super) fn is_allowed(&self) -> bool {
        match self.wait {
            _ if self.again => true,
            Some(wait) => self.start.elapsed() < wait,
            None => self.connected,
        }
    }

    /// Prints why the agent is not available, now and then, and returns the pause before the next try.
    pub(super) fn after(&mut self, why: &str) -> Duration {
        if self.reports.count(why.to_owned(), 1, Instant::now()).is_some() {
            eprintln!("konklave: {why}\n  trying again");
        }
        let pause = self.pause;
        self.pause = (pause * 2).min(PAUSE.1);
        let rest = self.wait.filter(|_| !self.again);
        rest.map_or(pause, |wait| pause.min(wait.saturating_sub(self.start.elapsed())))
    }
}
