//! The rules of the invitation algorithm that a switch or a mistake changes, and its times.

use std::time::Duration;

use konklave_process::{Context, ProcessId};

use super::Invitation;
use super::sheet::SHEET;
use crate::{Mistake, Setup};

pub(super) const EQUAL_WAITS: Mistake = Mistake {
    name: "equal-waits",
    what: "all coordinators wait equally long before they invite: two invite each other again and again, and neither \
           accepts",
    breaks: "agreement",
    caught_by: "-n 2 --synchronous --clock 1 --time-limit 24 --settled --set timeout=1 --property agreement",
};
pub(super) const NO_PERSIST: Mistake = Mistake {
    name: "no-persist",
    what: "the count is not saved: a restarted coordinator uses a group number again, and an old READY fits",
    breaks: "growing epochs",
    caught_by: "-n 2 --crash 1 --restart 1 --synchronous --set max-count=2 --property fence",
};

/// The times, the switch and the mistake of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// The time to wait for an answer.
    pub(super) timeout: Duration,
    /// The time that a coordinator waits before it invites: the higher its id, the shorter.
    pub(super) patience: Duration,
    max_count: u32,
    no_persist: bool,
}

impl Rules {
    pub(super) fn of(me: ProcessId, setup: &Setup) -> Self {
        let timeout = setup.unit * setup.chosen(&SHEET, "timeout").number();
        let above = setup.group.members().iter().filter(|p| **p > me).count() as u32;
        Self {
            timeout,
            patience: if *setup.makes(&EQUAL_WAITS) { timeout } else { timeout * above },
            max_count: setup.chosen(&SHEET, "max-count").number(),
            no_persist: *setup.makes(&NO_PERSIST),
        }
    }

    /// Whether a process that founded `count` groups may found another.
    pub(super) fn permits_invitation(self, count: u32) -> bool {
        self.max_count == 0 || count < self.max_count
    }
}

impl Invitation {
    /// Scenario: a coordinator restarts and counts from 0. An old READY of its former life would fit its new group; so
    /// the count is saved before it is used.
    pub(super) fn save_count(&self, ctx: &mut Context<'_, Self>) {
        if !self.rules.no_persist {
            ctx.save(self.count);
        }
    }
}
