//! The data sheet of Franklin: assumptions, costs and guarantees.

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId};

use super::rules::{DROP_QUEUED, EQUAL_SIDES, Rules};
use super::{Franklin, Queues, Role};
use crate::election::ring::Sides;
use crate::election::{Election, ring};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Setup, Switch, Winner,
};

pub(super) const SHEET: DataSheet = DataSheet {
    name: "franklin",
    title: "Franklin",
    idea: "In each round only a process that is higher than both active neighbours stays active.",
    source: "W. R. Franklin, CACM 25(5), 1982; project report on the ring election",
    assumes: &[
        Assumption::Reliable,
        Assumption::NoDuplicates,
        Assumption::Fifo,
        Assumption::NoCrash,
        Assumption::UniqueIds,
    ],
    topologies: &[Shape::Ring],
    winner: Some(Winner::MaxInitiator),
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "3n",
            when: "one initiator",
            bound: |f| (f.n() > 1.0 && rounds(f) == 1.0).then(|| Bound::Exactly(3.0 * f.n())),
        },
        Cost {
            metric: Metric::Messages,
            formula: "2n(⌊log₂ k⌋ + 1) + n, k = number of initiators",
            when: "always",
            bound: |f| {
                let all = 2.0 * f.n() * rounds(f) + f.n();
                Some(if f.n() > 1.0 { Bound::AtMost(all) } else { Bound::Exactly(0.0) })
            },
        },
        Cost {
            metric: Metric::Time,
            formula: "n(⌊log₂ k⌋ + 3)",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(f.n() * (rounds(f) + 2.0) * t)),
        },
    ],
    guarantees: &[Guarantee::UniqueLeader, Guarantee::Agreement, Guarantee::Termination],
    fence: None,
    mistakes: &[DROP_QUEUED, EQUAL_SIDES],
    switches: &[
        ring::JOIN,
        Switch {
            name: "rounds",
            values: &["untold", "told"],
            what: "whether numbers carry their round; if they do, FIFO channels are not needed",
        },
    ],
};

/// Assumptions of the form whose numbers carry their round.
const ASSUMES_NO_ORDER: &[Assumption] =
    &[Assumption::Reliable, Assumption::NoDuplicates, Assumption::NoCrash, Assumption::UniqueIds];

impl Inspect for Franklin {
    fn at_rest(&self) -> bool {
        matches!(self.role, Role::Asleep | Role::Over(_))
    }
}

impl Algorithm for Franklin {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        Self {
            role: Role::Asleep,
            round: 0,
            heard: Queues::default(),
            sides: Sides::new(me, setup),
            rules: Fixed(Rules::of(setup)),
        }
    }

    fn sheet(setup: &Setup) -> DataSheet {
        let sheet = ring::sheet_with_join(SHEET, setup);
        if setup.chosen(&SHEET, "rounds").is("told") {
            return DataSheet { assumes: ASSUMES_NO_ORDER, ..sheet };
        }
        sheet
    }
}

/// The most rounds: each at least halves the active processes, until one is left.
fn rounds(f: &Facts<'_>) -> f64 {
    ring::log_of_starters(&SHEET, f) + 1.0
}
