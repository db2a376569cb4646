//! Adaptive timers: too many duplicates widen them, long waits narrow them.

use serde::Serialize;

use super::sheet::SHEET;
use crate::Setup;

/// The constants are stored in twentieths: the smallest step is 0.05.
pub(super) const STEP: u32 = 20;
/// Averages are stored in 1/256. Each new value counts a quarter.
const ONE: i64 = 256;

/// C1, C2 (requests) and D1, D2 (repairs), with the measurements that adapt them.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Tuning {
    pub(super) requests: Side,
    pub(super) repairs: Side,
}

/// One of the two kinds of timers.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Side {
    /// The least wait, in twentieths of the distance.
    pub(super) least: u32,
    /// The random part on top of it.
    pub(super) spread: u32,
    /// Bounds of the least wait and of the spread.
    bounds: [(u32, u32); 2],
    /// The average number of duplicates; `duplicates`: those of the present period.
    average: i64,
    duplicates: u32,
    /// The average wait, in round trips.
    delay: i64,
    /// Whether this process has sent one in the present period.
    spoke: bool,
    /// Whether this process seems to be the closest to the loss.
    closest: bool,
    /// Whether there has been a period yet.
    begun: bool,
}

impl Tuning {
    pub(super) fn new(setup: &Setup, members: u32) -> Self {
        let log = (f64::from(members.max(2)).log10() * f64::from(STEP)).round() as u32;
        let chosen = |name| match setup.chosen(&SHEET, name) {
            value if value.is("log10") => log,
            value => value.number().saturating_mul(STEP),
        };
        let most = members.max(2).saturating_mul(STEP);
        let requests = Side::new(chosen("c1"), chosen("c2"), [(STEP / 2, 2 * STEP), (STEP, most)]);
        let repairs =
            Side::new(chosen("d1"), chosen("d2"), [(STEP / 2, log.max(STEP / 2)), (STEP, most)]);
        Self { requests, repairs }
    }
}

impl Side {
    fn new(least: u32, spread: u32, bounds: [(u32, u32); 2]) -> Self {
        Self {
            least,
            spread,
            bounds,
            average: 0,
            duplicates: 0,
            delay: 0,
            spoke: false,
            closest: false,
            begun: false,
        }
    }

    /// A new loss begins a period: adapts the constants to the last one.
    pub(super) fn begin(&mut self) {
        if !std::mem::replace(&mut self.begun, true) {
            return;
        }
        self.average += (i64::from(self.duplicates) * ONE - self.average) / 4;
        (self.duplicates, self.spoke) = (0, false);
        let (mut least, mut spread) = (i64::from(self.least), i64::from(self.spread));
        // Being the closest counts for one period: a process that sends no more has no reason to hurry.
        if std::mem::take(&mut self.closest) {
            spread -= 2;
        } else if self.average >= ONE {
            least += 2;
            spread += 10;
        } else if self.average * 10 < 9 * ONE {
            spread -= if self.delay > ONE { 2 } else { 0 };
            least -= i64::from(self.average * 4 < ONE);
        } else {
            least += 1;
        }
        let within =
            |x: i64, (low, high): (u32, u32)| x.clamp(i64::from(low), i64::from(high)) as u32;
        self.least = within(least, self.bounds[0]);
        self.spread = within(spread, self.bounds[1]);
    }

    /// This process sends first, after this wait in round trips, in 1/256.
    pub(super) fn speak(&mut self, waited: i64) {
        self.delay += (waited - self.delay) / 4;
        self.least = self.least.saturating_sub(1).max(self.bounds[0].0);
        (self.spoke, self.closest) = (true, true);
    }

    /// Another member sent for the same loss, too: with its distance and this process's own. The first
    /// such duplicate shows a process that has sent whether it is the closest.
    pub(super) fn duplicate(&mut self, theirs: u32, ours: u32) {
        self.duplicates += 1;
        if self.spoke && self.duplicates == 1 {
            self.closest = 2 * u64::from(theirs) > 3 * u64::from(ours);
        }
    }
}
