//! The data sheet of the heartbeat failure detector: assumptions, costs and guarantees.

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId, ProcessMap, ProcessSet};

use super::Heartbeat;
use crate::detector::Detector;
use crate::{Algorithm, Assumption, DataSheet, Guarantee, Mistake, Setup, SetupError, Switch};

const IMPATIENT: Mistake = Mistake {
    name: "impatient",
    what: "a wrong suspicion raises no allowance: a process that is always late is suspected again and again",
    breaks: "accuracy",
    caught_by: "",
};

const SHEET: DataSheet = DataSheet {
    name: "heartbeat",
    title: "Heartbeat failure detector",
    idea: "Each process sends a heartbeat in every period, and suspects a process that is silent for several.",
    source: "T. D. Chandra, S. Toueg, JACM 43(2), 1996 (eventually perfect detector)",
    assumes: &[Assumption::Reliable, Assumption::BoundedDelays, Assumption::KnownMembership],
    topologies: &[Shape::Complete],
    winner: None,
    costs: &[],
    guarantees: &[Guarantee::Completeness, Guarantee::EventualAccuracy],
    fence: None,
    mistakes: &[IMPATIENT],
    switches: &[
        Switch { name: "period", values: &["2", "<number>"], what: "the period, in T" },
        Switch {
            name: "misses",
            values: &["3", "<number>"],
            what: "period ends since the last heartbeat until suspicion: one whole silent period less",
        },
    ],
};

impl Inspect for Heartbeat {}

impl Algorithm for Heartbeat {
    type Problem = Detector;
    const SHEET: DataSheet = SHEET;

    fn new(_me: ProcessId, setup: &Setup) -> Self {
        let misses = setup.chosen(&SHEET, "misses").number();
        Self {
            silent: ProcessMap::new(&setup.group, 0),
            patience: ProcessMap::new(&setup.group, misses),
            suspected: ProcessSet::new(),
            period: Fixed(setup.unit * setup.chosen(&SHEET, "period").number()),
            impatient: setup.makes(&IMPATIENT),
        }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        setup.need(&SHEET, 1, &["period", "misses"])
    }
}

/// The rule that a mistake changes.
impl Heartbeat {
    /// Whether a wrong suspicion allows the process one more silent period.
    pub(super) fn learns(&self) -> bool {
        !*self.impatient
    }
}
