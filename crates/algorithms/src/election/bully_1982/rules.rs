//! The rules of the bully algorithm of 1982 that a mistake changes, and its times.

use std::time::Duration;

use konklave_process::{Context, ProcessId};

use super::sheet::SHEET;
use super::{Bully1982, Timer};
use crate::{Mistake, Setup};

pub(super) const KEEPS_RUNNING: Mistake = Mistake {
    name: "keeps-running",
    what: "a halted process continues its own election, and leads beside the process that halted it",
    breaks: "one leader at a time",
    caught_by: "-n 3 --initiators 1 --crash 1 --restart 1 --synchronous --set check=0 --property unique",
};
pub(super) const NO_HALTED_BY: Mistake = Mistake {
    name: "no-halted-by",
    what: "a halted process accepts any coordinator, not only the one that halted it last (as in the slides' form)",
    breaks: "agreement",
    caught_by: "-n 3 --initiators 1 --crash 1 --restart 1 --synchronous --set check=0 --property agreement",
};

/// The times and the mistakes of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// The time until a call must have returned.
    pub(super) timeout: Duration,
    /// The time between two checks of a coordinator.
    pub(super) check: Option<Duration>,
    keeps_running: bool,
    no_halted_by: bool,
}

impl Rules {
    pub(super) fn of(setup: &Setup) -> Self {
        let check = setup.chosen(&SHEET, "check").number();
        Self {
            timeout: setup.unit * setup.chosen(&SHEET, "timeout").number(),
            check: (check > 0).then(|| setup.unit * check),
            keeps_running: *setup.makes(&KEEPS_RUNNING),
            no_halted_by: *setup.makes(&NO_HALTED_BY),
        }
    }
}

impl Bully1982 {
    /// A halted process stops its own election.
    pub(super) fn stop_own_calls(&mut self, ctx: &mut Context<'_, Self>) {
        if !self.rules.keeps_running && self.calling.take().is_some() {
            ctx.cancel_timer(Timer::Return);
        }
    }

    /// Scenario: a candidate halts a process, then a higher one halts both. The process must not follow the overtaken
    /// candidate; so it accepts only the process that halted it last.
    pub(super) fn accepts_coordinator(&self, from: ProcessId) -> bool {
        self.halted_by == Some(from) || self.rules.no_halted_by
    }
}
