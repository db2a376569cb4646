//! The rule of the central coordinator that a mistake changes.

use konklave_process::ProcessId;

use crate::{Mistake, Setup};

pub(super) const UNNUMBERED: Mistake = Mistake {
    name: "unnumbered-release",
    what: "a release does not say which grant it ends: a duplicate frees another's lock",
    breaks: "mutual exclusion",
    caught_by: "-n 4 --requests 0,1,1,1 --duplicate 1",
};

/// Whether a process makes the mistake.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    unnumbered: bool,
}

impl Rules {
    pub(super) fn of(setup: &Setup) -> Self {
        Self { unnumbered: *setup.makes(&UNNUMBERED) }
    }

    /// A duplicate of an earlier release must not free the lock of the present holder; so a release
    /// ends a grant only if it names its request.
    pub(super) fn ends_grant(
        self,
        release: (ProcessId, u32),
        holder: Option<(ProcessId, u32)>,
    ) -> bool {
        holder == Some(release) || self.unnumbered
    }
}
