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

/// A day of the calendar, in UTC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Day {
    pub(crate) year: i32,
    pub(crate) month: u8,
    pub(crate) day: u8,
}

impl Day {
    /// The day of a moment from 1970 on.
    pub(crate) fn of(moment: SystemTime) -> Self {
        let seconds = moment.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        // Years that begin in March, in eras of 400 years: the day of leap years is their last.
        let days = seconds / 86_400 + 719_468;
        let (era, day) = (days / 146_097, days % 146_097);
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let in_month = day - (153 * month + 2) / 5 + 1;
        let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
        Self { year: (era * 400 + year + next) as i32, month: month as u8, day: in_month as u8 }
    }
}

impl std::fmt::Display for Day {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { year, month, day } = self;
        write!(f, "{year}-{month:02}-{day:02}")
    }
}

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
    fn days_follow_calendar() {
        let day = |days: u64| Day::of(UNIX_EPOCH + Duration::from_secs(days * 86_400)).to_string();
        assert_eq!(day(0), "1970-01-01");
        assert_eq!(day(11_016), "2000-02-29");
        assert_eq!(day(11_017), "2000-03-01");
        assert_eq!(day(20_776), "2026-11-19");
        assert_eq!(day(47_540), "2100-02-28");
        assert_eq!(day(47_541), "2100-03-01");
    }

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
