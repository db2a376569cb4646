//! The rules of Dolev–Klawe–Rodeh that a switch or a mistake changes.

use konklave_process::ProcessId;

use super::sheet::SHEET;
use crate::election::ring;
use crate::{Mistake, Setup};

pub(super) const DETECTOR_IS_LEADER: Mistake = Mistake {
    name: "detector-is-leader",
    what: "a process whose value meets itself takes itself for the winner, not the owner of the value",
    breaks: "right winner",
    caught_by: "-n 2",
};

/// The switch and the mistake of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) joins: bool,
    detector_is_leader: bool,
}

impl Rules {
    pub(super) fn of(setup: &Setup) -> Self {
        Self {
            joins: ring::joins(&SHEET, setup),
            detector_is_leader: *setup.makes(&DETECTOR_IS_LEADER),
        }
    }

    /// The value that met itself is the last. Its owner has won, not the process that carries it.
    pub(super) fn winner(self, value: ProcessId, me: ProcessId) -> ProcessId {
        if self.detector_is_leader { me } else { value }
    }
}
