//! The rules of Ricart–Agrawala with acknowledgements that a switch or a mistake changes.

use std::time::Duration;

use super::sheet::SHEET;
use crate::{Mistake, Setup};

pub(super) const NO_PROBE: Mistake = Mistake {
    name: "no-probe",
    what: "a process that has acknowledged is never asked again: if it crashes then, its reply never comes",
    breaks: "deadlock",
    caught_by: "-n 2 --crash 1 --synchronous",
};
pub(super) const NO_REJOIN: Mistake = Mistake {
    name: "no-rejoin",
    what: "a restarted process requests at once, with a clock that has forgotten its replies",
    breaks: "mutual exclusion",
    caught_by: "-n 3 --requests 1,0,1 --crash 1 --restart 1 --synchronous",
};

/// The timeout, the switch and the mistakes of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// The time until all asked processes must have answered.
    pub(super) timeout: Duration,
    /// Whether silence means a crash.
    pub(super) synchronous: bool,
    no_probe: bool,
    no_rejoin: bool,
}

impl Rules {
    pub(super) fn of(setup: &Setup) -> Self {
        Self {
            timeout: setup.unit * setup.chosen(&SHEET, "timeout").number(),
            synchronous: setup.chosen(&SHEET, "model").is("synchronous"),
            no_probe: *setup.makes(&NO_PROBE),
            no_rejoin: *setup.makes(&NO_REJOIN),
        }
    }

    /// Scenario: a process acknowledges, then crashes. Its reply never comes; so processes that defer their reply are
    /// asked again. Without any, there is no process to ask, and the requester enters.
    pub(super) fn probes(self, is_deferred: bool) -> bool {
        !(self.no_probe && is_deferred)
    }

    /// Scenario: a process replies, crashes and restarts. Its new request could have an earlier time than one it has
    /// replied to, and two processes would enter; so it learns the clocks of all others first.
    pub(super) fn rejoins(self) -> bool {
        !self.no_rejoin
    }
}
