//! A clock that goes on while the machine sleeps: a lease must not outlive a closed lid.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Where the time comes from.
#[derive(Clone, Debug)]
pub(crate) enum Clock {
    /// The machine, suspended or not.
    Machine,
    /// Nanoseconds that a test sets.
    Fake(Arc<AtomicU64>),
}

impl Clock {
    /// The time since some moment in the past.
    pub(crate) fn now(&self) -> Duration {
        match self {
            Self::Machine => {
                let time = clock_gettime(ClockId::Boottime);
                let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
                Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
            }
            Self::Fake(nanoseconds) => Duration::from_nanos(nanoseconds.load(Ordering::SeqCst)),
        }
    }
}

/// Seconds of the calendar, for people only: nothing is decided by it but the generation of a group
/// whose members remember nothing.
pub(crate) fn calendar_seconds() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |time| time.as_secs())
}
