//! The rules of the wave on a virtual tree that a mistake changes.

use super::VirtualTreeWave;
use crate::{Mistake, Setup};

pub(super) const NO_FREEZE: Mistake = Mistake {
    name: "no-freeze",
    what: "a process that the explorer has reached still moves to a nearer parent, and takes new children",
    breaks: "deadlock",
    caught_by: "-n 4 --topology random:4 --seed 2 --initiators 0",
};
pub(super) const NO_COUNT: Mistake = Mistake {
    name: "no-count",
    what: "the wave starts when the root has its first child, not when the tree is complete",
    breaks: "termination",
    caught_by: "-n 3 --topology path --initiators 0",
};

/// The mistakes of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    no_freeze: bool,
    no_count: bool,
}

impl Rules {
    pub(super) fn of(setup: &Setup) -> Self {
        Self { no_freeze: *setup.makes(&NO_FREEZE), no_count: *setup.makes(&NO_COUNT) }
    }

    /// The tree is complete when all other processes have reported to the root.
    pub(super) fn is_complete(self, reports: u32, group_size: usize) -> bool {
        let others = group_size as u32 - 1;
        reports >= if self.no_count { others.min(1) } else { others }
    }
}

impl VirtualTreeWave {
    /// A process that the explorer has reached keeps its parent and its children.
    pub(super) fn freeze(&mut self) {
        if !self.rules.no_freeze {
            self.tree.freeze();
        }
    }
}
