//! The data sheet of Itai–Rodeh: what it assumes, costs and promises, and its mistake switches.

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
    idea: "Draw lots, send them round, and draw again where the highest was drawn twice.",
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
            when: "many runs are averaged: a single one may draw lots for as long as it likes",
            // Nothing that a single run could break.
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
            what: "whether numbers tell their phase; if they do not, FIFO is needed",
        },
        Switch {
            name: "believed-n",
            values: &["n", "<number>"],
            what: "how many the processes think they are: wrong, and there are several leaders or none",
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
        // With one number to draw, nobody is ever the only one with the highest.
        setup.need(&SHEET, 2, &["range"])
    }

    fn sheet(setup: &Setup) -> DataSheet {
        if setup.chosen(&SHEET, "phases").is("untold") {
            return DataSheet { assumes: ASSUMES_ORDER, ..SHEET };
        }
        SHEET
    }
}
