//! The waits and timeouts of a bus.

use std::time::Duration;

use crate::{DataSheet, Setup, SetupError};

/// The times that a process waits. The switches give them in nanoseconds; the mean delay T stands for the length of a
/// cable in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    /// The time to look at the ports.
    pub(super) look: Duration,
    /// The time until a root is overdue; zero for no timeout.
    pub(super) timeout: Duration,
    short: (u32, u32),
    long: (u32, u32),
    unit: Duration,
    cable: u32,
}

/// The time to configure a bus after a reset, by the standard.
const CONFIGURATION: u64 = 167_000;

impl Timing {
    /// The times that `setup` chose.
    pub(super) fn new(sheet: &DataSheet, setup: &Setup) -> Self {
        let number = |name| setup.chosen(sheet, name).number();
        let (unit, cable, timeout) = (setup.unit, number("cable"), setup.chosen(sheet, "timeout"));
        let nanoseconds = if timeout.is("auto") {
            // The standard has no large groups: these get four delays for each process.
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

    /// Refuses impossible times.
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

    /// A short or a long wait, by chance.
    pub(super) fn wait(&self, mut choose: impl FnMut(u32) -> u32) -> Duration {
        let (least, most) = if choose(2) == 0 { self.short } else { self.long };
        let nanoseconds = if most > least { least + choose(most - least + 1) } else { least };
        self.unit * nanoseconds / self.cable
    }
}
