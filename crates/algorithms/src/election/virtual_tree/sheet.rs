//! The data sheet of the virtual tree: assumptions, costs and guarantees.

use konklave_process::topology::Shape;
use konklave_process::{CompactOption, Fixed, Inspect, PortSet, ProcessId};

use super::rules::{ASK_ONCE, NAIVE_RESELECT, Rules, SLIDE_CONNECT, registry, run_time};
use super::{Contacts, VirtualTree};
use crate::election::Election;
use crate::election::edges::{Edges, links};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Setup, SetupError,
    Switch, Winner,
};

pub(super) const SHEET: DataSheet = DataSheet {
    name: "virtual-tree",
    title: "Virtual tree",
    idea: "A process connects to all known processes and takes the nearest to the root as its parent, never one as far \
           as itself.",
    source: "lecture \"Wahlalgorithmen\", section \"Erzeugung eines virtuellen Baums beim Systemstart\", corrected and \
             extended",
    assumes: &[
        Assumption::Reliable,
        Assumption::NoDuplicates,
        Assumption::Fifo,
        Assumption::Synchronous,
        Assumption::KnownMembership,
        Assumption::UniqueIds,
        Assumption::StableStorage,
    ],
    topologies: &[Shape::Connected],
    winner: Some(Winner::Any),
    costs: &[Cost {
        metric: Metric::Messages,
        formula: "6m − 2·deg(root) + 2(n − 1), and up to 8mn for processes that move",
        when: "no process crashes",
        bound: |f| {
            let least = if f.n() == 1.0 { 0.0 } else { least(f) };
            Some(Bound::AtMost(least + 8.0 * links(f) * f.n()))
        },
    }],
    guarantees: &[
        Guarantee::UniquePerEpoch,
        Guarantee::Agreement,
        Guarantee::Termination,
        Guarantee::AcyclicParents,
        Guarantee::SpanningTree,
    ],
    fence: None,
    mistakes: &[SLIDE_CONNECT, NAIVE_RESELECT, ASK_ONCE],
    switches: &[
        TREE_SWITCHES[0],
        TREE_SWITCHES[1],
        Switch {
            name: "registry",
            values: &["fixed", "<number>"],
            what: "the known addresses: the links of the topology; or a process gets them when it comes up from the \
                   process with this id, which must not crash (on a complete topology)",
        },
    ],
};

/// The switches of the tree that an algorithm above it has, too.
pub(in crate::election) const TREE_SWITCHES: &[Switch] = &[
    Switch {
        name: "root",
        values: &["first", "<number>"],
        what: "the first root: the first process in node order, or this id",
    },
    Switch { name: "cap", values: &["64", "<number>"], what: "the highest level" },
];

/// The costs with a registry at run time. The second process gets one address, each later one at most two.
const RUN_TIME_COSTS: &[Cost] = &[Cost {
    metric: Metric::Messages,
    formula: "4(n − 1) + 6m with m = 2n − 3 connections, and up to 8mn for processes that move",
    when: "no process crashes",
    bound: |f| {
        let (n, m) = (f.n(), 2.0 * f.n() - 3.0);
        let most = 4.0 * (n - 1.0) + 6.0 * m + 8.0 * m * n;
        Some(Bound::AtMost(if n == 1.0 { 0.0 } else { most }))
    },
}];

impl Inspect for VirtualTree {
    #[inline]
    fn prefetch(&self) {
        self.edges.prefetch();
    }

    fn at_rest(&self) -> bool {
        let is_orphan = self.parent.is_none() && self.level.is_some_and(|level| level > 0);
        let waits = self.contacts.as_deref().is_some_and(Contacts::waits);
        !waits
            && !is_orphan
            && self.asked.is_none()
            && self.owed.is_none()
            && self.greeted.is_empty()
    }

    fn parent(&self) -> Option<ProcessId> {
        self.parent.get().map(|port| self.edges.peer(port))
    }
}

impl Algorithm for VirtualTree {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        Self {
            epoch: None,
            level: None,
            parent: CompactOption::NONE,
            children: PortSet::new(),
            edges: Edges::new(me, setup),
            greeted: PortSet::new(),
            asked: CompactOption::NONE,
            owed: CompactOption::NONE,
            dissolving: false,
            frozen: false,
            suspects: None,
            contacts: run_time(setup).map(|_| Box::default()),
            rules: Fixed(setup.share("rules of virtual-tree", || Rules::of(setup))),
        }
    }

    /// With a registry at run time, a process that does not start is no part of the tree.
    fn start_together(setup: &Setup) -> bool {
        run_time(setup).is_some()
    }

    fn sheet(setup: &Setup) -> DataSheet {
        match run_time(setup) {
            None => SHEET,
            Some(_) => DataSheet { topologies: &[Shape::Complete], costs: RUN_TIME_COSTS, ..SHEET },
        }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        if let Some(at) = run_time(setup) {
            return check_run_time(at, setup);
        }
        let Some(registry) = registry(setup) else {
            let root = setup.chosen(&SHEET, "root").0;
            return Err(SetupError(format!("root {root} is no member")));
        };
        let (cap, deepest) = (setup.chosen(&SHEET, "cap").number() as usize, registry.depth(setup));
        if deepest > cap {
            let error =
                format!("{deepest} levels are needed, but cap is {cap}: --set cap={deepest}");
            return Err(SetupError(error));
        }
        Ok(())
    }
}

/// Whether process `at` may be the registry of this setup.
fn check_run_time(at: ProcessId, setup: &Setup) -> Result<(), SetupError> {
    let error = if setup.group.place(at).is_none() {
        format!("registry {} is no member", at.0)
    } else if setup.down.contains(&at) {
        format!("{at} is the registry, and must not be down")
    } else if !setup.topology.fits(Shape::Complete) {
        "a registry names any process, so any two need a link: --topology complete".to_owned()
    } else if !setup.chosen(&SHEET, "root").is("first") {
        "the first process that asks the registry is the root: omit root, or registry".to_owned()
    } else {
        return setup.need(&SHEET, 1, &["cap"]);
    };
    Err(SetupError(error))
}

/// The messages of a start in which no process moves: each process but the root connects to all neighbours and asks one,
/// and each process names its level once to each neighbour.
pub(super) fn least(f: &Facts<'_>) -> f64 {
    let root = registry(f.setup).map_or(0, |registry| registry.first);
    let degree = f.setup.topology.degree(root) as f64;
    6.0 * links(f) - 2.0 * degree + 2.0 * (f.n() - 1.0)
}
