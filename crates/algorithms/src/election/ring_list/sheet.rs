//! The data sheet of the list-collecting ring election: assumptions, costs and guarantees.

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId};

use super::RingList;
use super::rules::{NO_FORWARD, Rules};
use crate::election::Election;
use crate::election::ring::Suspects;
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Setup, Switch, Winner,
};

pub(super) const SHEET: DataSheet = DataSheet {
    name: "ring-list",
    title: "List-collecting ring election",
    idea: "A list goes round, each process adds itself, and the highest of the full list leads.",
    source: "lecture \"Übereinstimmung und Koordination\", slides \"Ring-Algorithmus\"; after G. Le Lann, IFIP Congress 1977",
    assumes: &[
        Assumption::Reliable,
        Assumption::NoDuplicates,
        Assumption::NoCrash,
        Assumption::AccurateDetector,
        Assumption::UniqueIds,
        Assumption::KnownMembership,
    ],
    topologies: &[Shape::DirectedRing],
    winner: Some(Winner::MaxAll),
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "2n·s, n = number of live processes, s = number of initiators",
            when: "all start before they learn of a leader; hardened: one initiator",
            bound: |f| {
                let counts = !is_hardened(f.setup) || f.k() == 1.0;
                let alive = f.n() - f.setup.down.len() as f64;
                let all = if alive > 1.0 { 2.0 * alive * f.k() } else { 0.0 };
                counts.then_some(Bound::Exactly(all))
            },
        },
        Cost {
            metric: Metric::Time,
            formula: "2n",
            when: "all start at once, and delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(2.0 * f.n() * t)),
        },
    ],
    guarantees: &[
        Guarantee::UniqueLeader,
        Guarantee::Agreement,
        Guarantee::LiveLeader,
        Guarantee::Termination,
    ],
    fence: None,
    mistakes: &[NO_FORWARD],
    switches: &[Switch {
        name: "mode",
        values: &["textbook", "hardened"],
        what: "hardened: numbered elections, a timeout, and a new election if the winner has crashed",
    }],
};

impl Inspect for RingList {
    fn at_rest(&self) -> bool {
        !self.waiting
    }
}

impl Algorithm for RingList {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let suspects = Suspects::new(me, setup);
        Self {
            successor: suspects.successor(me, setup),
            suspects,
            leader: None,
            waiting: false,
            rules: Fixed(Rules::of(setup)),
        }
    }
}

fn is_hardened(setup: &Setup) -> bool {
    setup.chosen(&SHEET, "mode").is("hardened")
}
