//! The data sheet of Wave election on trees: what it assumes, costs and promises, and its mistake switches.

use konklave_process::topology::Shape;
use konklave_process::{CompactOption, Inspect, ProcessId};

use super::TreeWave;
use crate::election::Election;
use crate::election::ticked::Ticked;
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Mistake, Setup, Winner,
};

const LEAF_RULE: Mistake = Mistake {
    name: "leaf-rule",
    what: "a leaf echoes only when it receives an explorer, as on the slide: one that starts never does",
    breaks: "deadlock",
    caught_by: "-n 4 --topology path --initiators 0,3",
};

const SHEET: DataSheet = DataSheet {
    name: "tree-wave",
    title: "Wave election on trees",
    idea: "Explorers wake the tree, echoes gather the maximum, where they meet it is announced.",
    source: "F. Mattern, 1987/89; lecture \"Wahlverfahren\", election on trees",
    assumes: &[
        Assumption::Reliable,
        Assumption::NoDuplicates,
        Assumption::NoCrash,
        Assumption::UniqueIds,
    ],
    topologies: &[Shape::Tree],
    winner: Some(Winner::MaxAll),
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "3n + k − 4, k = number of initiators",
            when: "all initiators start before they are woken",
            bound: |f| {
                let all = if f.n() == 1.0 { 0.0 } else { 3.0 * f.n() + f.k() - 4.0 };
                f.setup.down.is_empty().then_some(Bound::Exactly(all))
            },
        },
        Cost {
            metric: Metric::Time,
            formula: "3D",
            when: "delays have a limit",
            bound: |f| {
                let diameter = f.setup.topology.diameter() as f64;
                f.delay_max.map(|t| Bound::AtMost(3.0 * diameter * t))
            },
        },
    ],
    guarantees: &[Guarantee::UniqueLeader, Guarantee::Agreement, Guarantee::Termination],
    fence: None,
    mistakes: &[LEAF_RULE],
    switches: &[],
};

impl Inspect for TreeWave {
    #[inline]
    fn prefetch(&self) {
        self.edges.prefetch();
    }

    fn at_rest(&self) -> bool {
        self.awake == self.decided
    }
}

impl Algorithm for TreeWave {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let edges = Ticked::new(me, setup);
        Self {
            awake: false,
            left: edges.len() as u32,
            edges,
            sent: CompactOption::NONE,
            best: me,
            decided: false,
            leaf_rule: setup.makes(&LEAF_RULE),
        }
    }
}
