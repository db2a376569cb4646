//! The data sheet of adoption: assumptions, costs and guarantees.

use konklave_process::topology::Shape;
use konklave_process::{CompactOption, Fixed, Inspect, PortSet, ProcessId};

use super::Adoption;
use super::rules::{CASE3_CLOSE_EDGE, CASE3_LITERAL, NO_FLOOD, Rules};
use crate::election::Election;
use crate::election::edges::{Edges, echo_time, flood, links};
use crate::{Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Setup, Winner};

const SHEET: DataSheet = DataSheet {
    name: "adoption",
    title: "Adoption",
    idea: "A stronger wave adopts the processes that a weaker one has explored; only the edge to the former parent is \
           explored anew.",
    source: "lecture \"Wahlalgorithmen\", section \"Adoptionsverfahren\", case 3 corrected",
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
            formula: "2m + 3n(k − 1) + 2m − n + 1, k = number of initiators",
            when: "always",
            bound: |f| {
                let adoptions = f.n() * (f.k() - 1.0).max(0.0);
                Some(Bound::AtMost(2.0 * links(f) + 3.0 * adoptions + flood(f)))
            },
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
    mistakes: &[CASE3_LITERAL, CASE3_CLOSE_EDGE, NO_FLOOD],
    switches: &[],
};

impl Inspect for Adoption {
    #[inline]
    fn prefetch(&self) {
        // A process that knows the outcome no longer reads its edges.
        if self.leader.is_none() {
            self.edges.prefetch();
        }
    }

    fn at_rest(&self) -> bool {
        self.open.is_empty() && self.wave.is_some() == self.leader.is_some()
    }

    fn parent(&self) -> Option<ProcessId> {
        self.parent.get().map(|port| self.edges.peer(port))
    }
}

impl Algorithm for Adoption {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        Self {
            wave: CompactOption::NONE,
            parent: CompactOption::NONE,
            edges: Edges::new(me, setup),
            open: PortSet::new(),
            leader: CompactOption::NONE,
            rules: Fixed(Rules::of(setup)),
        }
    }
}
