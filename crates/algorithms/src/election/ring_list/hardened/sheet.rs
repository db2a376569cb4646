//! The data sheet of the hardened form: assumptions.

use konklave_process::{Fixed, Inspect, ProcessId};

use super::super::rules::Rules;
use super::super::sheet::SHEET;
use super::{Epoch, Hardened};
use crate::election::ring::Suspects;
use crate::election::{Election, ring};
use crate::{Algorithm, DataSheet, Setup};

impl Inspect for Hardened {
    fn at_rest(&self) -> bool {
        !self.waiting
    }
}

impl Algorithm for Hardened {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let suspects = Suspects::new(me, setup);
        Self {
            successor: suspects.successor(me, setup),
            suspects,
            leader: None,
            waiting: false,
            epoch: Epoch::default(),
            patience: Fixed(ring::patience(setup)),
            rules: Fixed(Rules::of(setup)),
        }
    }

    fn longest_delay(_: &Setup) -> Option<f64> {
        Some(ring::longest_delay())
    }

    /// Crashes, losses and copies only cost time.
    fn sheet(_: &Setup) -> DataSheet {
        DataSheet { assumes: ring::HARDENED_ASSUMES, ..SHEET }
    }
}
