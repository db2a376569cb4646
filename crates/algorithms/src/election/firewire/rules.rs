//! The rules of FireWire's tree identification that a switch or a mistake changes.

use konklave_process::Context;

use super::FireWire;
use super::sheet::SHEET;
use super::timing::Timing;
use crate::{Mistake, Setup};

pub(super) const INNER_ONLY: Mistake = Mistake {
    name: "inner-only",
    what: "only a process with more than one edge becomes root, as on the slide: a leaf that is asked waits for ever",
    breaks: "deadlock",
    caught_by: "-n 2 --topology path --set timeout=0",
};
pub(super) const NO_IGNORE: Mistake = Mistake {
    name: "no-ignore",
    what: "a question that its acknowledgement has overtaken is taken for an error",
    breaks: "expected inputs",
    caught_by: "-n 2 --topology path --no-fifo --set contention=id --set timeout=0",
};
pub(super) const NO_GENERATION: Mistake = Mistake {
    name: "no-generation",
    what: "a question of an earlier generation counts in this one",
    breaks: "one leader at a time",
    caught_by: "-n 2 --topology path --requests 2,2 --no-fifo --set contention=id --set timeout=0 --property unique",
};

/// The switches and the mistake of a process.
#[derive(Debug)]
pub(super) struct Rules {
    /// Whether ids settle contention.
    pub(super) by_id: bool,
    /// Whether all processes notice a reset on the wire.
    pub(super) by_wire: bool,
    pub(super) timing: Timing,
    mistake: Option<&'static str>,
}

impl Rules {
    pub(super) fn of(setup: &Setup) -> Self {
        Self {
            by_id: setup.chosen(&SHEET, "contention").is("id"),
            by_wire: setup.chosen(&SHEET, "reset").is("wire"),
            timing: Timing::new(&SHEET, setup),
            mistake: setup.mistake,
        }
    }

    fn makes(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake.name)
    }

    /// Questions count in their own generation only.
    pub(super) fn counts_question(&self, theirs: u32, ours: u32) -> bool {
        theirs == ours || self.makes(NO_GENERATION)
    }
}

impl FireWire {
    /// Any process may become root, also a leaf.
    pub(super) fn may_be_root(&self) -> bool {
        !(self.rules.makes(INNER_ONLY) && self.edges.len() - self.unplugged.len() == 1)
    }

    /// Two scenarios put a message out of turn. If ids settle contention, an acknowledgement may overtake the question
    /// of the same process. And after a restart, a message may be for the former life of this process. Neither is an
    /// error.
    pub(super) fn ignore(&self, what: &'static str, ctx: &mut Context<'_, Self>) {
        if self.rules.makes(NO_IGNORE) {
            ctx.unexpected(what);
        }
    }
}
