//! The data sheet of FireWire's tree identification: assumptions, costs and guarantees.

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, PortSet, ProcessId};

use super::rules::{INNER_ONLY, NO_GENERATION, NO_IGNORE, Rules};
use super::timing::Timing;
use super::{FireWire, State};
use crate::election::Election;
use crate::election::edges::Edges;
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Setup, SetupError,
    Switch, Winner,
};

pub(super) const SHEET: DataSheet = DataSheet {
    name: "firewire",
    title: "FireWire tree identification",
    idea: "Leaves ask their neighbour to be their parent, and so on inwards; the process that is asked on all its \
           edges is the root.",
    source: "IEEE 1394-1995, tree identify; lecture \"Übereinstimmung und Koordination\", slides \"Wahl auf Bäumen: \
             FireWire\"",
    assumes: &[Assumption::ReliableLinks, Assumption::NoDuplicates, Assumption::AccurateDetector],
    topologies: &[Shape::Tree, Shape::Connected],
    winner: Some(Winner::Any),
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "2(n − 1), and 1 more for contention; 2(n − 1) more for the reset",
            when: "a tree, contention=id, one reset",
            bound: |f| by_id(f).then(|| Bound::Between(least(f), least(f) + 1.0)),
        },
        Cost {
            metric: Metric::Messages,
            formula: "as many, and 2 more for each round of contention, of which 64 are less \
                      likely than one in 10¹⁹",
            when: "a tree, contention=random, one reset, and a long wait outlasts a short one and \
                   two delays",
            bound: |f| {
                let most = least(f) + 2.0 * ROUNDS;
                parts_by_chance(f).then_some(Bound::Between(least(f), most))
            },
        },
        Cost {
            metric: Metric::Time,
            formula: "2D + 2 hops, each with a look at the ports",
            when: "a tree, contention=id, and delays have a limit",
            bound: |f| {
                let number = |name| f64::from(f.setup.chosen(&SHEET, name).number());
                let hop = f.delay_max.filter(|_| by_id(f))? + number("look") / number("cable");
                Some(Bound::AtMost((2.0 * f.setup.topology.diameter() as f64 + 2.0) * hop))
            },
        },
    ],
    guarantees: &[
        Guarantee::UniqueWhileUnchanged,
        Guarantee::Agreement,
        Guarantee::TerminationWithProbabilityOne,
        Guarantee::SpanningTree,
        Guarantee::AcyclicParents,
    ],
    fence: None,
    mistakes: &[INNER_ONLY, NO_IGNORE, NO_GENERATION],
    switches: &[
        Switch {
            name: "contention",
            values: &["random", "id"],
            what: "how contention ends: by chance, or the higher id becomes root",
        },
        Switch {
            name: "reset",
            values: &["message", "wire"],
            what: "whether a reset spreads by messages, or all processes notice it (then all start)",
        },
        Switch {
            name: "look",
            values: &["20", "<number>"],
            what: "time to look at the ports, in ns",
        },
        Switch {
            name: "short",
            values: &["240", "<number>"],
            what: "the shortest short wait, in ns",
        },
        Switch {
            name: "short-max",
            values: &["260", "<number>"],
            what: "the longest short wait, in ns",
        },
        Switch {
            name: "long",
            values: &["570", "<number>"],
            what: "the shortest long wait, in ns",
        },
        Switch {
            name: "long-max",
            values: &["600", "<number>"],
            what: "the longest long wait, in ns",
        },
        Switch {
            name: "cable",
            values: &["100", "<number>"],
            what: "the number of ns that T stands for",
        },
        Switch {
            name: "timeout",
            values: &["auto", "<number>"],
            what: "time without a root after which there is a loop, in ns; 0: no timeout; auto: that of the standard, \
                   and more for large groups",
        },
    ],
};

/// No run has so many rounds of contention: each is the last with a probability of one half.
pub(super) const ROUNDS: f64 = 64.0;

impl Inspect for FireWire {
    #[inline]
    fn prefetch(&self) {
        self.edges.prefetch();
    }

    fn at_rest(&self) -> bool {
        self.is_settled() || self.late
    }

    fn parent(&self) -> Option<ProcessId> {
        match self.state {
            State::Child(parent) => Some(self.edges.peer(parent)),
            State::Off
            | State::Waiting
            | State::Asking(_)
            | State::Contending { .. }
            | State::Root => None,
        }
    }
}

impl Algorithm for FireWire {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        Self {
            generation: 0,
            state: State::Off,
            children: PortSet::new(),
            silent: 0,
            unplugged: PortSet::new(),
            late: false,
            edges: Edges::new(me, setup),
            rules: Fixed(setup.share("rules of firewire", || Rules::of(setup))),
        }
    }

    /// Every process feels a reset of the wire.
    fn start_together(setup: &Setup) -> bool {
        setup.chosen(&SHEET, "reset").is("wire")
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        Timing::check(&SHEET, setup)
    }
}

/// The messages without contention: over each edge a question, an answer, and the reset in both directions.
pub(super) fn least(f: &Facts<'_>) -> f64 {
    let reset = if f.setup.chosen(&SHEET, "reset").is("message") { 2.0 } else { 0.0 };
    (2.0 + reset) * (f.n() - 1.0)
}

/// Whether there is a root, and contention ends as soon as one process chooses the short wait and the other the long
/// one: the question after the short wait arrives during the long wait, even if that began two delays later.
pub(super) fn parts_by_chance(f: &Facts<'_>) -> bool {
    let number = |name| f64::from(f.setup.chosen(&SHEET, name).number());
    let parts = |t: f64| number("short-max") + 2.0 * t * number("cable") < number("long");
    f.setup.topology.fits(Shape::Tree) && !by_id(f) && f.delay_max.is_some_and(parts)
}

/// Whether there is a root, and ids settle contention.
fn by_id(f: &Facts<'_>) -> bool {
    f.setup.topology.fits(Shape::Tree) && f.setup.chosen(&SHEET, "contention").is("id")
}
