//! A clock that counts the time a machine sleeps, and that cannot be set.
//!
//! Deadlines of locks are readings of this clock. Client and agent share a kernel, hence the readings. A
//! deadline is absolute, so a message that is delayed in a socket cannot extend a lock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::CLOCK_BOOTTIME;
// Counts sleep on these systems.
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::CLOCK_MONOTONIC;

/// A reading: nanoseconds since the machine started, sleep included.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Moment(pub u64);

impl Moment {
    /// The reading now.
    #[must_use]
    pub fn now() -> Self {
        // The call fails only for a clock that the kernel does not have.
        let time = clock_gettime(CLOCK).map_or(Duration::ZERO, Duration::from);
        Self(nanos(time))
    }

    /// The moment that is `duration` later.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanos(duration)))
    }

    /// The moment that is `duration` earlier.
    #[must_use]
    pub fn before(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(duration)))
    }

    /// The time left until then; zero if it has passed.
    #[must_use]
    pub fn left(self) -> Duration {
        self.since(Self::now())
    }

    /// The time from `earlier` to this; zero if this is not later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Whether it has passed.
    #[must_use]
    pub fn passed(self) -> bool {
        self <= Self::now()
    }

    /// The same moment on the wall clock, in seconds since 1970. For display only: the wall clock may jump.
    #[must_use]
    pub fn on_the_wall(self) -> f64 {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        wall.as_secs_f64() + (self.0 as f64 - Self::now().0 as f64) / 1e9
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_and_never_overflows() {
        let now = Moment::now();
        assert!(now.0 > 0);
        assert!(Moment::now() >= now);
        assert_eq!(Moment(u64::MAX).after(Duration::from_secs(1)), Moment(u64::MAX));
        assert_eq!(Moment(5).before(Duration::from_secs(1)), Moment(0));
        assert_eq!(Moment(0).left(), Duration::ZERO);
        assert!(Moment(0).passed());
        assert_eq!(now.after(Duration::from_millis(7)).since(now), Duration::from_millis(7));
    }
}
