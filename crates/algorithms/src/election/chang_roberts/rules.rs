//! The form and the mistakes, in a byte.

use konklave_process::Fixed;

use super::sheet::{NO_HOP_LIMIT, NO_STEP_DOWN, is};
use crate::Setup;

#[derive(Clone, Copy)]
pub(super) struct Rules(u8);

impl Rules {
    pub(super) const ORIGINAL: u8 = 1;
    pub(super) const NO_STEP_DOWN: u8 = 2;
    pub(super) const NO_HOP_LIMIT: u8 = 4;

    pub(super) fn new(setup: &Setup) -> Fixed<Self> {
        let rules = [
            (Self::ORIGINAL, is(setup, "original")),
            (Self::NO_STEP_DOWN, *setup.makes(&NO_STEP_DOWN)),
            (Self::NO_HOP_LIMIT, *setup.makes(&NO_HOP_LIMIT)),
        ];
        Fixed(Self(rules.iter().filter(|(_, holds)| *holds).map(|(rule, _)| rule).sum()))
    }

    #[inline]
    pub(super) fn has(self, rule: u8) -> bool {
        self.0 & rule != 0
    }
}
