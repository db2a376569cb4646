//! The form of Chang–Roberts, and its rules that a mistake changes.

use konklave_process::Fixed;

use super::sheet::is;
use crate::{Mistake, Setup};

pub(super) const NO_STEP_DOWN: Mistake = Mistake {
    name: "no-step-down",
    what: "the incumbent stays in office while the next election runs",
    breaks: "one leader at a time",
    caught_by: "-n 2 --requests 2,0 --down 1 --restart 1 --property unique",
};
pub(super) const NO_HOP_LIMIT: Mistake = Mistake {
    name: "no-hop-limit",
    what: "a message whose owner crashed goes round for ever",
    breaks: "livelock",
    caught_by: "-n 3 --crash 1 --property livelock",
};

/// The form and the mistakes of a process, in a byte.
#[derive(Clone, Copy)]
pub(super) struct Rules(u8);

const ORIGINAL: u8 = 1;
const STAYS_IN_OFFICE: u8 = 2;
const COUNTS_NO_HOPS: u8 = 4;

impl Rules {
    pub(super) fn new(setup: &Setup) -> Fixed<Self> {
        let rules = [
            (ORIGINAL, is(setup, "original")),
            (STAYS_IN_OFFICE, *setup.makes(&NO_STEP_DOWN)),
            (COUNTS_NO_HOPS, *setup.makes(&NO_HOP_LIMIT)),
        ];
        Fixed(Self(rules.iter().filter(|(_, holds)| *holds).map(|(rule, _)| rule).sum()))
    }

    /// The original form: a process that did not start passes all numbers on.
    #[inline]
    pub(super) fn is_original(self) -> bool {
        self.0 & ORIGINAL != 0
    }

    /// An incumbent leaves office as soon as it learns of a new election.
    #[inline]
    pub(super) fn leaves_office(self) -> bool {
        self.0 & STAYS_IN_OFFICE == 0
    }

    /// The hops of a message that is passed on.
    #[inline]
    pub(super) fn next_hop(self, hops: u32) -> u32 {
        hops + u32::from(self.0 & COUNTS_NO_HOPS == 0)
    }
}
