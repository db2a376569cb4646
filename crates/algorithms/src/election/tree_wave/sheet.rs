//! The data sheet of the wave election on trees: assumptions, costs and guarantees.

use konklave_process::topology::Shape;
use konklave_process::{CompactOption, Fixed, Inspect, ProcessId};

use super::TreeWave;
use super::rules::{LEAF_RULE, Rules};
use crate::election::Election;
use crate::election::ticked::Ticked;
use crate::{Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Setup, Winner};

const SHEET: DataSheet = DataSheet {
    name: "tree-wave",
    title: "Wave election on trees",
    idea: "Explorers wake the tree, echoes gather the maximum, and it is announced from where two echoes meet.",
    source: "F. Mattern, 1987/89; lecture \"Wahlalgorithmen\", section \"Wellenverfahren\"",
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
            rules: Fixed(Rules::of(setup)),
        }
    }
}
