//! The data sheet of Itai–Rodeh: assumptions, costs and guarantees.

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId};

use super::{ItaiRodeh, Role, Rules};
use crate::election::Election;
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Setup, SetupError, Switch,
    Winner,
};

const SHEET: DataSheet = DataSheet {
    name: "itai-rodeh",
    title: "Itai–Rodeh",
    idea: "Each process draws a number and sends it round; processes with an equal highest number draw again.",
    source: "A. Itai, M. Rodeh, Inf. and Comp. 88(1), 1990; W. Fokkink, J. Pang, JUCS 12(8), 2006 (without phases)",
    assumes: &[Assumption::Reliable, Assumption::NoDuplicates, Assumption::NoCrash],
    topologies: &[Shape::DirectedRing],
    winner: Some(Winner::Any),
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "2n",
            when: "one initiator",
            bound: |f| {
                let known = f.setup.chosen(&SHEET, "believed-n").is("n");
                (known && f.k() == 1.0 && f.n() > 1.0).then(|| Bound::Exactly(2.0 * f.n()))
            },
        },
        Cost {
            metric: Metric::Messages,
            formula: "O(n log n)",
            when: "the average of many runs: a single run may need any number of draws",
            // No single run can break it.
            bound: |_| None,
        },
    ],
    guarantees: &[
        Guarantee::UniqueLeader,
        Guarantee::Agreement,
        Guarantee::TerminationWithProbabilityOne,
    ],
    fence: None,
    mistakes: &[],
    switches: &[
        Switch {
            name: "range",
            values: &["n", "<number>"],
            what: "how many numbers there are to draw from",
        },
        Switch {
            name: "phases",
            values: &["told", "untold"],
            what: "whether numbers carry their phase; if they do not, FIFO channels are needed",
        },
        Switch {
            name: "believed-n",
            values: &["n", "<number>"],
            what: "the group size that the processes believe; a wrong one gives several leaders, or none",
        },
    ],
};

/// Assumptions of the form whose numbers do not carry their phase.
const ASSUMES_ORDER: &[Assumption] =
    &[Assumption::Reliable, Assumption::NoDuplicates, Assumption::NoCrash, Assumption::Fifo];

impl Inspect for ItaiRodeh {
    fn at_rest(&self) -> bool {
        !matches!(self.role, Role::Active(_) | Role::Passive)
    }
}

impl Algorithm for ItaiRodeh {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let n = setup.group.len() as u32;
        let or_n = |switch| match setup.chosen(&SHEET, switch) {
            chosen if chosen.is("n") => n,
            chosen => chosen.number(),
        };
        Self {
            role: Role::Asleep,
            successor: Fixed(setup.successor(me)),
            rules: Fixed(Rules {
                n: or_n("believed-n"),
                range: or_n("range"),
                tell_phase: setup.chosen(&SHEET, "phases").is("told"),
            }),
        }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        setup.need(&SHEET, 1, &["believed-n"])?;
        // With one number to draw, no process ever has the highest alone.
        setup.need(&SHEET, 2, &["range"])
    }

    fn sheet(setup: &Setup) -> DataSheet {
        if setup.chosen(&SHEET, "phases").is("untold") {
            return DataSheet { assumes: ASSUMES_ORDER, ..SHEET };
        }
        SHEET
    }
}
