//! The clock of leases. It runs while the machine sleeps: a lease must not outlive a closed laptop lid.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The source of time.
#[derive(Clone, Debug)]
pub(crate) enum Clock {
    /// The machine's `CLOCK_BOOTTIME`.
    Machine,
    /// Nanoseconds set by a test.
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

/// Calendar time in seconds. Used only for the generation of a group whose members have no data directory.
pub(crate) fn calendar_seconds() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |time| time.as_secs())
}
