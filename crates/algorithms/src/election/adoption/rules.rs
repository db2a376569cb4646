//! The rules of adoption that a mistake changes.

use konklave_process::{Context, Port, ProcessId};

use super::Adoption;
use crate::{Mistake, Setup};

pub(super) const CASE3_LITERAL: Mistake = Mistake {
    name: "case3-literal",
    what: "a weaker explorer is sent back as it is, as on the slide: its wave takes the edge for done",
    breaks: "right winner",
    caught_by: "-n 3 --topology path --ids 2,1,3 --property winner",
};
pub(super) const CASE3_CLOSE_EDGE: Mistake = Mistake {
    name: "case3-close-edge",
    what: "a weaker explorer is sent back as it is, and both ends take the edge for done",
    breaks: "one leader at a time",
    caught_by: "-n 3 --topology path --ids 2,1,3 --property unique",
};
pub(super) const NO_FLOOD: Mistake = Mistake {
    name: "no-flood",
    what: "a process without a wave forwards an explorer only to its former parent, and it has none: the four cases \
           of the slide do not include the first contact",
    breaks: "deadlock",
    caught_by: "-n 3 --topology path --initiators 0",
};

/// The mistakes of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    case3_literal: bool,
    case3_close_edge: bool,
    no_flood: bool,
}

impl Rules {
    pub(super) fn of(setup: &Setup) -> Self {
        Self {
            case3_literal: *setup.makes(&CASE3_LITERAL),
            case3_close_edge: *setup.makes(&CASE3_CLOSE_EDGE),
            no_flood: *setup.makes(&NO_FLOOD),
        }
    }

    /// A process that joins its first wave explores all other edges.
    pub(super) fn explores_further(self, parent: Option<Port>) -> bool {
        !self.no_flood || parent.is_none()
    }
}

impl Adoption {
    /// Case 3: a weaker wave arrives, so its sender does not know the wave of this process yet.
    pub(super) fn answer_weaker_wave(
        &mut self,
        theirs: ProcessId,
        ours: ProcessId,
        port: Port,
        ctx: &mut Context<'_, Self>,
    ) {
        if self.rules.case3_literal {
            self.explore(theirs, port, ctx);
        } else if self.rules.case3_close_edge {
            self.explore(theirs, port, ctx);
            self.close(port, ctx);
        } else {
            self.explore_again(ours, port, ctx);
        }
    }
}
