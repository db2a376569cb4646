//! When to ask a command to end, and when to kill it, so that it is gone before its deadline.

use std::time::Duration;

use crate::clock::Moment;

/// The moments that follow from a deadline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Plan {
    /// Nothing was renewed: SIGTERM.
    pub(super) ask: Moment,
    /// Still there: SIGKILL.
    pub(super) kill: Moment,
    /// From here on someone else may have the lock.
    pub(super) deadline: Moment,
}

impl Plan {
    /// The plan at `now` for a lock that is ours until `deadline`.
    ///
    /// A tenth of what is left (50 to 500 ms) is kept for killing and for clocks that differ; up to a
    /// quarter of it, or `grace` if that is shorter, is for the command to end by itself.
    pub(super) fn new(now: Moment, deadline: Moment, grace: Duration) -> Self {
        let left = deadline.since(now);
        let margin = (left / 10).clamp(Duration::from_millis(50), Duration::from_millis(500));
        let kill = deadline.before(margin.min(left / 2));
        let ask = kill.before(grace.min(left / 4));
        Self { ask, kill, deadline }
    }

    /// When the watchdog asks, if the wrapper has not: a little later, since programs may take a
    /// second request for an order.
    pub(super) fn second(self) -> Moment {
        self.ask.after(self.kill.since(self.ask) / 4)
    }

    /// The plan once the lock is known to be lost: ask now, and kill after `grace`, but never later
    /// than planned.
    pub(super) fn hurry(self, now: Moment, grace: Duration) -> Self {
        Self { ask: now, ..self.ending(now.after(grace)) }
    }

    /// The same for a command that was asked to end by `end`, be its lock renewed for longer.
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
    fn asked_then_killed_then_the_deadline() {
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
    fn the_shares_are_as_documented() {
        let now = Moment(0);
        let plan = Plan::new(now, now.after(ms(1000)), ms(5000));
        assert_eq!((plan.ask.0, plan.kill.0), (650_000_000, 900_000_000));
        let plan = Plan::new(now, now.after(ms(60_000)), ms(2000));
        assert_eq!((plan.ask.0, plan.kill.0), (57_500_000_000, 59_500_000_000));
    }

    #[test]
    fn a_hurry_never_delays() {
        let now = Moment(0);
        let plan = Plan::new(now, now.after(ms(1000)), ms(100));
        assert_eq!(plan.hurry(now, ms(200)).kill, Moment(200_000_000));
        assert_eq!(plan.hurry(now, ms(5000)).kill, plan.kill);
    }
}
