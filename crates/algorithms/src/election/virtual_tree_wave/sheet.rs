//! The data sheet of the wave election on a virtual tree: assumptions, costs and guarantees.

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId};

use super::rules::{NO_COUNT, NO_FREEZE, Rules};
use super::{VirtualTreeWave, Wave};
use crate::election::Election;
use crate::election::edges::links;
use crate::election::virtual_tree::{TREE_SWITCHES, VirtualTree};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Setup, SetupError, Winner,
};

const SHEET: DataSheet = DataSheet {
    name: "virtual-tree-wave",
    title: "Wave election on a virtual tree",
    idea: "The processes build a tree and count until it is complete; then a wave on it gathers the highest id and \
           announces it.",
    source: "lecture \"Wahlalgorithmen\", sections \"Erzeugung eines virtuellen Baums beim Systemstart\" and \
             \"Wellenverfahren\"",
    assumes: &[
        Assumption::Reliable,
        Assumption::NoDuplicates,
        Assumption::Fifo,
        Assumption::NoCrash,
        Assumption::KnownMembership,
        Assumption::UniqueIds,
    ],
    topologies: &[Shape::Connected],
    winner: Some(Winner::MaxAll),
    costs: &[Cost {
        metric: Metric::Messages,
        formula: "those of the tree (virtual-tree), a report of each process over at most n − 1 hops, and for the wave \
                  3(n − 1), with one explorer more for a process that moves meanwhile",
        when: "always",
        bound: |f| {
            let (n, m) = (f.n(), links(f));
            let tree = 6.0 * m + 2.0 * n + 8.0 * m * n;
            Some(Bound::AtMost(if n == 1.0 { 0.0 } else { tree + (n - 1.0) * (n + 2.0) }))
        },
    }],
    guarantees: &[
        Guarantee::UniqueLeader,
        Guarantee::Agreement,
        Guarantee::Termination,
        Guarantee::AcyclicParents,
    ],
    fence: None,
    mistakes: &[NO_FREEZE, NO_COUNT],
    switches: TREE_SWITCHES,
};

impl Inspect for VirtualTreeWave {
    #[inline]
    fn prefetch(&self) {
        self.tree.prefetch();
    }

    fn at_rest(&self) -> bool {
        self.tree.at_rest() && matches!(self.wave, Wave::Ahead | Wave::Over)
    }

    fn parent(&self) -> Option<ProcessId> {
        self.tree.parent()
    }
}

impl Algorithm for VirtualTreeWave {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        Self {
            tree: VirtualTree::new(me, setup),
            reported: false,
            reports: 0,
            wave: Wave::Ahead,
            echoes: 0,
            best: me,
            rules: Fixed(Rules::of(setup)),
        }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        VirtualTree::check_setup(setup)
    }
}
