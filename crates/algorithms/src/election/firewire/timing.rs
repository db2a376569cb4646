//! How long things take on a bus.

use std::time::Duration;

use crate::{DataSheet, Setup, SetupError};

/// The times that a process waits. They are chosen in nanoseconds; the mean delay T stands for the
/// length of a cable in them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    /// To look at the ports.
    pub(super) look: Duration,
    /// Until there should be a root; zero where nobody counts.
    pub(super) timeout: Duration,
    short: (u32, u32),
    long: (u32, u32),
    unit: Duration,
    cable: u32,
}

/// How long a reset bus may take to be configured, by the standard.
const CONFIGURATION: u64 = 167_000;

impl Timing {
    /// The times that `setup` has chosen.
    pub(super) fn new(sheet: &DataSheet, setup: &Setup) -> Self {
        let number = |name| setup.chosen(sheet, name).number();
        let (unit, cable, timeout) = (setup.unit, number("cable"), setup.chosen(sheet, "timeout"));
        let nanoseconds = if timeout.is("auto") {
            // The standard knows no large groups: there, four delays for each process.
            (4 * u64::from(cable) * setup.group.len() as u64).max(CONFIGURATION)
        } else {
            u64::from(timeout.number())
        };
        Self {
            look: unit * number("look") / cable,
            timeout: unit.mul_f64(nanoseconds as f64 / f64::from(cable)),
            short: (number("short"), number("short-max")),
            long: (number("long"), number("long-max")),
            unit,
            cable,
        }
    }

    /// What of the choice is impossible.
    pub(super) fn check(sheet: &DataSheet, setup: &Setup) -> Result<(), SetupError> {
        let number = |name| setup.chosen(sheet, name).number();
        if number("cable") == 0 {
            return Err(SetupError("cable must be at least 1".into()));
        }
        for (least, most) in [("short", "short-max"), ("long", "long-max")] {
            let (low, high) = (number(least), number(most));
            if low > high {
                return Err(SetupError(format!("{least} is {low}, more than {most}, {high}")));
            }
        }
        Ok(())
    }

    /// A short or a long time, by chance.
    pub(super) fn wait(&self, mut choose: impl FnMut(u32) -> u32) -> Duration {
        let (least, most) = if choose(2) == 0 { self.short } else { self.long };
        let nanoseconds = if most > least { least + choose(most - least + 1) } else { least };
        self.unit * nanoseconds / self.cable
    }
}
