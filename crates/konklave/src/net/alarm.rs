//! Timer that wakes a node when something is due.
//!
//! It uses the clock of leases, which runs while the machine sleeps: after waking up, a holder learns at once
//! that its grant is lost. The runtime's own timers stand still during sleep. They also wake up twice for
//! delays of more than a few dozen milliseconds, which would be most of an idle node's work.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

pub(super) struct AlarmClock {
    timer: AsyncFd<OwnedFd>,
    /// When it rings; `None` if it is not set.
    set: Option<Duration>,
}

impl AlarmClock {
    pub(super) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Boottime, flags)?;
        #[expect(
            deprecated,
            reason = "its successor is unsafe, for descriptors that are not owned"
        )]
        let timer = AsyncFd::with_interest(timer, Interest::READABLE)?;
        Ok(Self { timer, set: None })
    }

    /// Makes it ring at time `at` of the machine's clock (not zero), or earlier. Setting the timer is a
    /// system call, so it is set only if it would ring too late.
    pub(super) fn ring_by(&mut self, at: Duration) -> io::Result<()> {
        if self.set.is_some_and(|set| set <= at) {
            return Ok(());
        }
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        let tv_sec = i64::try_from(at.as_secs()).unwrap_or(i64::MAX);
        let then = Timespec { tv_sec, tv_nsec: at.subsec_nanos().into() };
        let once = Itimerspec { it_interval: never, it_value: then };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)?;
        self.set = Some(at);
        Ok(())
    }

    /// Waits until it rings.
    pub(super) async fn rings(&mut self) {
        match self.timer.readable().await {
            Ok(mut ready) => ready.clear_ready(),
            // The runtime is shutting down.
            Err(_) => std::future::pending().await,
        }
        self.set = None;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;
    use crate::clock::Clock;

    const MS: Duration = Duration::from_millis(1);

    #[tokio::test]
    async fn alarm_rings_at_each_time_set() {
        let mut alarm = AlarmClock::new().unwrap();
        for _ in 0..3 {
            let at = Clock::Machine.now() + 5 * MS;
            alarm.ring_by(at).unwrap();
            timeout(Duration::from_secs(20), alarm.rings()).await.unwrap();
            assert!(Clock::Machine.now() >= at);
            assert!(timeout(20 * MS, alarm.rings()).await.is_err(), "once");
        }
    }

    #[tokio::test]
    async fn earliest_time_counts_even_if_past() {
        let mut alarm = AlarmClock::new().unwrap();
        let now = Clock::Machine.now();
        for at in [1000, 20, 500] {
            alarm.ring_by(now + at * Duration::from_secs(1)).unwrap();
        }
        assert!(timeout(20 * MS, alarm.rings()).await.is_err(), "it is set for later");
        alarm.ring_by(now - MS).unwrap();
        timeout(Duration::from_secs(10), alarm.rings()).await.unwrap();
    }
}
