//! The rule of the list-collecting ring election that a mistake changes.

use konklave_process::ProcessId;

use crate::{Mistake, Setup};

pub(super) const NO_FORWARD: Mistake = Mistake {
    name: "no-forward",
    what: "FINISH_ELECTION as printed does not pass the result on: only one neighbour learns it",
    breaks: "termination",
    caught_by: "-n 3 --initiators 0",
};

/// Whether a process makes the mistake.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    no_forward: bool,
}

impl Rules {
    pub(super) fn of(setup: &Setup) -> Self {
        Self { no_forward: *setup.makes(&NO_FORWARD) }
    }

    /// Every process passes the result on, not only the one that closed the list.
    pub(super) fn passes_on(self, informed: &[ProcessId]) -> bool {
        informed.is_empty() || !self.no_forward
    }
}
