//! The data sheet of echo with extinction: assumptions, costs and guarantees.

use konklave_process::topology::Shape;
use konklave_process::{CompactOption, Fixed, Inspect, PortSet, ProcessId};

use super::Extinction;
use super::rules::{LATE_START, NO_CROSSING, Rules};
use crate::election::Election;
use crate::election::edges::{Edges, echo_time, flood, links};
use crate::{Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Setup, Winner};

const SHEET: DataSheet = DataSheet {
    name: "extinction",
    title: "Echo with extinction",
    idea: "Every initiator starts an echo wave; weaker waves end where they meet a stronger one.",
    source: "F. Mattern, Verteilte Basisalgorithmen, 1989; G. Tel, Introduction to Distributed \
             Algorithms, 2000 (there the smallest id wins)",
    assumes: &[
        Assumption::Reliable,
        Assumption::NoDuplicates,
        Assumption::NoCrash,
        Assumption::UniqueIds,
    ],
    topologies: &[Shape::Connected],
    winner: Some(Winner::MaxInitiator),
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "2m + 2m − n + 1",
            when: "one initiator",
            bound: |f| (f.k() == 1.0).then(|| Bound::Exactly(2.0 * links(f) + flood(f))),
        },
        Cost {
            metric: Metric::Messages,
            formula: "2mk + 2m − n + 1, k = number of initiators",
            when: "always",
            bound: |f| Some(Bound::AtMost(2.0 * links(f) * f.k() + flood(f))),
        },
        Cost {
            metric: Metric::Time,
            formula: "2D + n",
            when: "one initiator, and delays have a limit",
            bound: |f| echo_time(f).filter(|_| f.k() == 1.0),
        },
    ],
    guarantees: &[
        Guarantee::UniqueLeader,
        Guarantee::Agreement,
        Guarantee::Termination,
        Guarantee::SpanningTree,
        Guarantee::AcyclicParents,
    ],
    fence: None,
    mistakes: &[LATE_START, NO_CROSSING],
    switches: &[],
};

impl Inspect for Extinction {
    #[inline]
    fn prefetch(&self) {
        // A process that knows the outcome no longer reads its edges.
        if self.leader.is_none() {
            self.edges.prefetch();
        }
    }

    fn at_rest(&self) -> bool {
        self.awaited.is_empty() && self.wave.is_some() == self.leader.is_some()
    }

    fn parent(&self) -> Option<ProcessId> {
        self.parent.get().map(|port| self.edges.peer(port))
    }
}

impl Algorithm for Extinction {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        Self {
            wave: CompactOption::NONE,
            parent: CompactOption::NONE,
            awaited: PortSet::new(),
            leader: CompactOption::NONE,
            edges: Edges::new(me, setup),
            rules: Fixed(Rules::of(setup)),
        }
    }
}
