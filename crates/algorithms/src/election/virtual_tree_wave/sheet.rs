//! The data sheet of Wave election on a virtual tree: what it assumes, costs and promises, and its mistake switches.

use konklave_process::topology::Shape;
use konklave_process::{Inspect, ProcessId};

use super::{VirtualTreeWave, Wave};
use crate::election::Election;
use crate::election::edges::links;
use crate::election::virtual_tree::VirtualTree;
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Mistake, Setup, SetupError,
    Winner,
};

const NO_FREEZE: Mistake = Mistake {
    name: "no-freeze",
    what: "who has been reached still moves to a nearer parent, and takes new children",
    breaks: "deadlock",
    caught_by: "-n 4 --topology random:4 --seed 2 --initiators 0",
};
const NO_COUNT: Mistake = Mistake {
    name: "no-count",
    what: "the wave starts when the root has its first child, not when the tree is complete",
    breaks: "termination",
    caught_by: "-n 3 --topology path --initiators 0",
};

const SHEET: DataSheet = DataSheet {
    name: "virtual-tree-wave",
    title: "Wave election on a virtual tree",
    idea: "Build a tree over all who are known, count until it is complete, then let a wave on it \
           gather the highest id and announce it.",
    source: "lecture \"Wahlalgorithmen\" (virtual tree at system start, then the wave on trees)",
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
        formula: "the tree's (virtual-tree), a report from everyone over at most n − 1 hops, and \
                  3(n − 1) for the wave",
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
    switches: VirtualTree::SHEET.switches,
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
            no_freeze: setup.makes(&NO_FREEZE),
            no_count: setup.makes(&NO_COUNT),
        }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        VirtualTree::check_setup(setup)
    }
}
