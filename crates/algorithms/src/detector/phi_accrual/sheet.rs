//! The data sheet of the φ accrual failure detector: assumptions, costs and guarantees.

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId, ProcessMap, ProcessSet};

use super::{PhiAccrual, Rhythm, Settings, TICK, reach};
use crate::detector::Detector;
use crate::{Algorithm, Assumption, DataSheet, Guarantee, Mistake, Setup, SetupError, Switch};

const SKIP_LATE: Mistake = Mistake {
    name: "skip-late",
    what: "a heartbeat that ends a suspicion is no sample, as in some libraries: a process that became slower is suspected again and again",
    breaks: "accuracy",
    caught_by: "",
};

const SHEET: DataSheet = DataSheet {
    name: "phi-accrual",
    title: "φ accrual failure detector",
    idea: "Each process learns the intervals between the heartbeats of another, and suspects it when so long a silence is unlikely.",
    source: "N. Hayashibara, X. Défago, R. Yared, T. Katayama, SRDS 2004; mean deviation as in V. Jacobson, SIGCOMM 1988",
    assumes: &[Assumption::Reliable, Assumption::BoundedDelays, Assumption::KnownMembership],
    topologies: &[Shape::Complete],
    winner: None,
    costs: &[],
    guarantees: &[Guarantee::Completeness, Guarantee::EventualAccuracy],
    fence: None,
    mistakes: &[SKIP_LATE],
    switches: &[
        Switch { name: "period", values: &["2", "<number>"], what: "the period, in T" },
        Switch { name: "ticks", values: &["4", "<number>"], what: "number of ticks in a period" },
        Switch {
            name: "threshold",
            values: &["8", "<number>"],
            what: "φ at which a process is suspected",
        },
        Switch {
            name: "memory",
            values: &["16", "<number>"],
            what: "number of arrivals that the mean covers, about",
        },
    ],
};

impl Inspect for PhiAccrual {}

impl Algorithm for PhiAccrual {
    type Problem = Detector;
    const SHEET: DataSheet = SHEET;

    fn new(_me: ProcessId, setup: &Setup) -> Self {
        let number = |name| setup.chosen(&SHEET, name).number().max(1);
        let ticks = number("ticks");
        Self {
            rhythms: ProcessMap::new(&setup.group, Rhythm::new(ticks)),
            suspected: ProcessSet::new(),
            ticks: 0,
            settings: Fixed(Settings {
                tick: setup.unit * number("period") / ticks,
                ticks,
                memory: number("memory"),
                reach: (reach(number("threshold")) * f64::from(TICK)) as u32,
                skip_late: *setup.makes(&SKIP_LATE),
            }),
        }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        setup.need(&SHEET, 1, &["period", "ticks", "threshold", "memory"])?;
        // Finer ticks give no better estimate, and a process would do nothing but count them.
        setup.limit(&SHEET, 1000, &["ticks"])
    }
}

/// The rule that a mistake changes.
impl PhiAccrual {
    /// Whether a heartbeat that ends a wrong suspicion changes the estimates.
    pub(super) fn learns_from_late(&self) -> bool {
        !self.settings.skip_late
    }
}
