//! When to send SIGTERM and SIGKILL to a command, so that it is dead before the deadline of its lock.

use std::time::Duration;

use crate::clock::Moment;

/// The moments that follow from a deadline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Plan {
    /// When to send SIGTERM, if the lock has not been renewed.
    pub(super) ask: Moment,
    /// When to send SIGKILL.
    pub(super) kill: Moment,
    /// From then on another client may hold the lock.
    pub(super) deadline: Moment,
}

impl Plan {
    /// The plan at `now` for a lock that is held until `deadline`.
    ///
    /// SIGKILL comes a tenth of the remaining time (50 to 500 ms) before the deadline. SIGTERM comes `grace`
    /// before SIGKILL, but at most a quarter of the remaining time.
    pub(super) fn new(now: Moment, deadline: Moment, grace: Duration) -> Self {
        let left = deadline.since(now);
        let margin = (left / 10).clamp(Duration::from_millis(50), Duration::from_millis(500));
        let kill = deadline.before(margin.min(left / 2));
        let ask = kill.before(grace.min(left / 4));
        Self { ask, kill, deadline }
    }

    /// When the watchdog sends SIGTERM if the wrapper has not. A little later, because programs may quit at once
    /// on a second SIGTERM.
    pub(super) fn second(self) -> Moment {
        self.ask.after(self.kill.since(self.ask) / 4)
    }

    /// The plan for a lock that is lost: SIGTERM now, and SIGKILL after `grace`, but not later than planned.
    pub(super) fn ask_now(self, now: Moment, grace: Duration) -> Self {
        Self { ask: now, ..self.ending(now.after(grace)) }
    }

    /// The plan for a command that must end by `end`, even if its lock is renewed for longer.
    pub(super) fn ending(self, end: Moment) -> Self {
        Self { kill: self.kill.min(end), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn sigterm_precedes_sigkill_precedes_deadline() {
        let now = Moment(1_000_000_000);
        for left in [0, 1, 10, 100, 900, 5_000, 60_000, 86_400_000] {
            for grace in [0, 50, 5_000] {
                let plan = Plan::new(now, now.after(ms(left)), ms(grace));
                assert!(now <= plan.ask && plan.ask <= plan.kill, "{left} {grace}");
                assert!(plan.kill <= plan.deadline);
                assert!(left == 0 || plan.kill < plan.deadline, "{left} {grace}");
            }
        }
    }

    #[test]
    fn times_before_the_deadline_are_as_documented() {
        let now = Moment(0);
        let plan = Plan::new(now, now.after(ms(1000)), ms(5000));
        assert_eq!((plan.ask.0, plan.kill.0), (650_000_000, 900_000_000));
        let plan = Plan::new(now, now.after(ms(60_000)), ms(2000));
        assert_eq!((plan.ask.0, plan.kill.0), (57_500_000_000, 59_500_000_000));
    }

    #[test]
    fn ask_now_never_delays_the_kill() {
        let now = Moment(0);
        let plan = Plan::new(now, now.after(ms(1000)), ms(100));
        assert_eq!(plan.ask_now(now, ms(200)).kill, Moment(200_000_000));
        assert_eq!(plan.ask_now(now, ms(5000)).kill, plan.kill);
    }
}
