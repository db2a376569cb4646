//! The rules of echo with extinction that a mistake changes.

use konklave_process::{CompactOption, ProcessId};

use crate::{Mistake, Setup};

pub(super) const LATE_START: Mistake = Mistake {
    name: "late-start",
    what: "a process that a wave has captured still starts one of its own",
    breaks: "one leader at a time",
    caught_by: "-n 2 --property unique",
};
pub(super) const NO_CROSSING: Mistake = Mistake {
    name: "no-crossing",
    what: "explorers of one wave that cross on an edge do not count as answers: both ends wait",
    breaks: "deadlock",
    caught_by: "-n 3 --topology complete --initiators 0",
};

/// The mistakes of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    late_start: bool,
    no_crossing: bool,
}

impl Rules {
    pub(super) fn of(setup: &Setup) -> Self {
        Self { late_start: *setup.makes(&LATE_START), no_crossing: *setup.makes(&NO_CROSSING) }
    }

    /// A process that a wave has captured starts none of its own.
    pub(super) fn permits_start(self, wave: CompactOption<ProcessId>) -> bool {
        wave.is_none() || self.late_start
    }

    /// An explorer of the own wave that comes from a neighbour is an answer, too.
    pub(super) fn counts_crossing_explorers(self) -> bool {
        !self.no_crossing
    }
}
