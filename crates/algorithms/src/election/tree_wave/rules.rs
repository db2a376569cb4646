//! The rule of the wave election on trees that a mistake changes.

use crate::{Mistake, Setup};

pub(super) const LEAF_RULE: Mistake = Mistake {
    name: "leaf-rule",
    what: "a leaf echoes only when it receives an explorer, as on the slide: a leaf that starts never does",
    breaks: "deadlock",
    caught_by: "-n 4 --topology path --initiators 0,3",
};

/// Whether a process makes the mistake.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    leaf_rule: bool,
}

impl Rules {
    pub(super) fn of(setup: &Setup) -> Self {
        Self { leaf_rule: *setup.makes(&LEAF_RULE) }
    }

    /// A leaf echoes as soon as it is awake, also if it starts by itself.
    pub(super) fn permits_echo_of_starter(self, edges: usize) -> bool {
        !self.leaf_rule || edges != 1
    }

    /// An explorer has no effect on a process that is awake.
    #[inline]
    pub(super) fn ignores_explorer(self, awake: bool) -> bool {
        awake && !self.leaf_rule
    }
}
