//! The rules of the bully algorithm that a mistake changes, and its timeouts.

use std::time::Duration;

use konklave_process::{Context, Process};
use serde::Serialize;

use super::Phase;
use super::sheet::SHEET;
use crate::{Mistake, Setup};

pub(super) const NO_GUARD: Mistake = Mistake {
    name: "no-guard",
    what: "every ELECTION opens one more election, also during one, as printed on the slides: with one detector \
           that is 2^(n−1) − 1 ELECTIONs",
    breaks: "bound",
    caught_by: "-n 5 --down 4 --initiators 0 --synchronous --clock 1 --property bound:20",
};
pub(super) const NO_SECOND_TIMEOUT: Mistake = Mistake {
    name: "no-second-timeout",
    what: "after an ANSWER a process waits for the coordinator for ever (\"do something else\" on the slides)",
    breaks: "deadlock",
    caught_by: "-n 3 --down 2 --initiators 0 --crash 1 --synchronous --property deadlock",
};

/// The time to wait for an answer, and the mistakes of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    timeout: Duration,
    no_guard: bool,
    no_second_timeout: bool,
}

impl Rules {
    pub(super) fn of(setup: &Setup) -> Self {
        Self {
            timeout: setup.unit * setup.chosen(&SHEET, "timeout").number(),
            no_guard: *setup.makes(&NO_GUARD),
            no_second_timeout: *setup.makes(&NO_SECOND_TIMEOUT),
        }
    }

    pub(super) fn timeout(self) -> Duration {
        self.timeout
    }

    /// The guard: during an election of its own, a process opens no other.
    pub(super) fn permits_election(self, phase: Phase) -> bool {
        phase == Phase::Idle || self.no_guard
    }

    /// Scenario: a process answers, then crashes. The asking process would wait for a coordinator for ever; so it waits
    /// for three timeouts.
    pub(super) fn set_second_timeout<P: Process>(self, timer: P::Timer, ctx: &mut Context<'_, P>) {
        if !self.no_second_timeout {
            ctx.set_timer(timer, 3 * self.timeout);
        }
    }
}

/// How many elections of a process are open. With the guard it is at most one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize)]
#[serde(transparent)]
pub(super) struct OpenElections(u32);

impl OpenElections {
    pub(super) fn begin(&mut self, rules: Rules, group_size: usize) {
        // One detector causes at most so many: a higher count would only add states for the checker.
        let most = if rules.no_guard { 1 << group_size.min(31) } else { 1 };
        self.0 = (self.0 + 1).min(most);
    }

    /// A higher process takes over: all open elections wait for the same coordinator.
    pub(super) fn answered(&mut self) {
        self.0 = 1;
    }

    /// Ends all elections; the number of announcements, should this process have won them.
    pub(super) fn end(&mut self) -> u32 {
        std::mem::take(&mut self.0).max(1)
    }
}
