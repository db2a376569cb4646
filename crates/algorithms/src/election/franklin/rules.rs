//! The rules of Franklin's election that a switch or a mistake changes.

use konklave_process::ProcessId;

use super::queues::{Heard, Queues};
use super::sheet::SHEET;
use crate::election::{Direction, ring};
use crate::{Mistake, Setup};

pub(super) const DROP_QUEUED: Mistake = Mistake {
    name: "drop-queued",
    what: "a process that turns passive drops the numbers in its queues instead of passing them on",
    breaks: "deadlock",
    caught_by: "-n 3",
};
pub(super) const EQUAL_SIDES: Mistake = Mistake {
    name: "equal-sides",
    what: "the same number from both sides ends the election, even if it is the number of another process",
    breaks: "one leader at a time",
    caught_by: "-n 2",
};

/// The switches and the mistakes of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) joins: bool,
    /// Whether numbers carry their round.
    pub(super) tells_round: bool,
    drop_queued: bool,
    equal_sides: bool,
}

impl Rules {
    pub(super) fn of(setup: &Setup) -> Self {
        Self {
            joins: ring::joins(&SHEET, setup),
            tells_round: setup.chosen(&SHEET, "rounds").is("told"),
            drop_queued: *setup.makes(&DROP_QUEUED),
            equal_sides: *setup.makes(&EQUAL_SIDES),
        }
    }

    /// The own number from both sides: no other process is active.
    pub(super) fn is_alone(self, [a, b]: [ProcessId; 2], me: ProcessId) -> bool {
        a == b && (a == me || self.equal_sides)
    }

    /// The numbers in the queues of a process that turns passive are for the next active process.
    pub(super) fn left_over(
        self,
        queues: &mut Queues,
    ) -> impl Iterator<Item = (Heard, Direction)> + use<> {
        queues.take_all().filter(move |_| !self.drop_queued)
    }
}
