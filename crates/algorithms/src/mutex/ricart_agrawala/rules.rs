//! The rules of Ricart–Agrawala that a mistake changes.

use konklave_process::{ProcessSet, Timestamp};

use crate::{Mistake, Setup};

pub(super) const REQUEST_CLOCK: Mistake = Mistake {
    name: "request-clock",
    what: "only requests move the clock, as in the paper: replies carry causality, but no time",
    breaks: "happened-before order",
    caught_by: "-n 3 --requests 2,1,1 --property order",
};
pub(super) const NO_TIE_BREAK: Mistake = Mistake {
    name: "no-tie-break",
    what: "timestamps are compared without ids, and of two equal ones each lets the other go first",
    breaks: "mutual exclusion",
    caught_by: "-n 2",
};
pub(super) const SIMPLE_MAJORITY: Mistake = Mistake {
    name: "simple-majority",
    what: "a simple majority of replies is enough, as the lecture says: but a reply is no exclusive \
           vote, and an idle process gives it to every requester",
    breaks: "mutual exclusion",
    caught_by: "-n 3 --requests 1,1,0",
};

/// Which mistakes a process makes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    request_clock: bool,
    no_tie_break: bool,
    simple_majority: bool,
}

impl Rules {
    pub(super) fn of(setup: &Setup) -> Self {
        Self {
            request_clock: *setup.makes(&REQUEST_CLOCK),
            no_tie_break: *setup.makes(&NO_TIE_BREAK),
            simple_majority: *setup.makes(&SIMPLE_MAJORITY),
        }
    }

    /// The time that the receiver of a reply learns of. Replies carry causality as requests do.
    #[inline]
    pub(super) fn time_of_reply(self, clock: u32) -> u32 {
        if self.request_clock { 0 } else { clock }
    }

    /// Whether our request goes first. The order is total, so exactly one of two rivals yields.
    #[inline]
    pub(super) fn precedes(self, ours: Timestamp, theirs: Timestamp) -> bool {
        if self.no_tie_break { ours.time < theirs.time } else { ours < theirs }
    }

    /// Whether a process may enter while the replies of `awaiting` are missing.
    #[inline]
    pub(super) fn permits_entry(self, awaiting: &ProcessSet, group_size: usize) -> bool {
        let dispensable = if self.simple_majority { (group_size - 1) / 2 } else { 0 };
        awaiting.len() <= dispensable
    }
}
