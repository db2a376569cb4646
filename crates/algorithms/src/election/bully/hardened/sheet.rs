//! The data sheet of the hardened bully algorithm: assumptions and guarantees.

use konklave_process::{Fixed, Inspect, ProcessId};

use super::super::Phase;
use super::super::rules::{OpenElections, Rules};
use super::super::sheet::{SHEET, longest_delay};
use super::{Hardened, Reign};
use crate::election::Election;
use crate::{Algorithm, Assumption, DataSheet, Guarantee, Setup, SetupError};

impl Inspect for Hardened {
    fn at_rest(&self) -> bool {
        self.phase == Phase::Idle
    }
}

impl Algorithm for Hardened {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;

    fn new(_me: ProcessId, setup: &Setup) -> Self {
        let ping = setup.chosen(&SHEET, "ping").number();
        Self {
            phase: Phase::Idle,
            coordinator: None,
            reign: Reign::default(),
            round: 0,
            open: OpenElections::default(),
            rules: Fixed(Rules::of(setup)),
            ping: Fixed((ping > 0).then(|| setup.unit * ping)),
        }
    }

    /// A later reign supersedes what a restarted process knows. Two leaders may act at the same time, in different
    /// epochs.
    fn sheet(_: &Setup) -> DataSheet {
        DataSheet {
            assumes: &[
                Assumption::Reliable,
                Assumption::Synchronous,
                Assumption::KnownMembership,
                Assumption::UniqueIds,
            ],
            guarantees: &[
                Guarantee::UniquePerEpoch,
                Guarantee::Agreement,
                Guarantee::LiveLeader,
                Guarantee::Termination,
            ],
            ..SHEET
        }
    }

    fn longest_delay(setup: &Setup) -> Option<f64> {
        Some(longest_delay(setup))
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        setup.need(&SHEET, 1, &["timeout"])
    }
}
