//! The data sheet of the hardened form: assumptions and guarantees.

use konklave_process::{Fixed, Inspect, ProcessId};

use super::Hardened;
use crate::election::chang_roberts::sheet::SHEET;
use crate::election::ring::Suspects;
use crate::election::{Election, ring};
use crate::{Algorithm, DataSheet, Guarantee, Setup, SetupError};

impl Inspect for Hardened {
    fn at_rest(&self) -> bool {
        !self.participant && !self.telling
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
            epoch: 0,
            participant: false,
            best: ProcessId::default(),
            leader: None,
            leading: false,
            telling: false,
            patience: Fixed(ring::patience(setup)),
        }
    }

    fn longest_delay(_: &Setup) -> Option<f64> {
        Some(ring::longest_delay())
    }

    /// Crashes, losses, copies and any order of messages only cost time.
    fn sheet(_: &Setup) -> DataSheet {
        DataSheet {
            assumes: ring::HARDENED_ASSUMES,
            guarantees: &[
                Guarantee::UniqueLeader,
                Guarantee::UniquePerEpoch,
                Guarantee::Agreement,
                Guarantee::LiveLeader,
                Guarantee::Termination,
            ],
            ..SHEET
        }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        match setup.mistake {
            Some(mistake) => {
                Err(SetupError(format!("{mistake} is no mistake of the hardened form")))
            }
            None => Ok(()),
        }
    }
}
