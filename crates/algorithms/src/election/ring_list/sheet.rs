//! The data sheet of List-collecting ring election: what it assumes, costs and promises, and its mistake switches.

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId};

use super::{Epoch, RingList};
use crate::election::ring::Suspects;
use crate::election::{Election, ring};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Mistake, Setup, Switch,
    Winner,
};

const NO_FORWARD: Mistake = Mistake {
    name: "no-forward",
    what: "FINISH_ELECTION as printed does not pass the result on: only one neighbour learns it",
    breaks: "termination",
    caught_by: "-n 3 --initiators 0",
};

const SHEET: DataSheet = DataSheet {
    name: "ring-list",
    title: "List-collecting ring election",
    idea: "A list goes round, everyone adds itself, and the maximum of the full list leads.",
    source: "lecture \"Wahlverfahren\", ring algorithm; after G. Le Lann, IFIP Congress 1977",
    assumes: &[
        Assumption::Reliable,
        Assumption::NoDuplicates,
        Assumption::NoCrash,
        Assumption::UniqueIds,
        Assumption::KnownMembership,
    ],
    topologies: &[Shape::DirectedRing],
    winner: Some(Winner::MaxAll),
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "2n·s, n of them alive, s = number of initiators",
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
        what: "hardened: numbered elections, a timeout, and a dead winner opens a new election",
    }],
};

/// Crashes, losses and copies only cost time.
const HARDENED_ASSUMES: &[Assumption] = &[
    Assumption::Synchronous,
    Assumption::StableStorage,
    Assumption::UniqueIds,
    Assumption::KnownMembership,
];

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
            epoch: Epoch::default(),
            hardened: Fixed(is_hardened(setup)),
            patience: Fixed(ring::patience(setup)),
            no_forward: setup.makes(&NO_FORWARD),
        }
    }

    fn longest_delay(setup: &Setup) -> Option<f64> {
        is_hardened(setup).then(ring::longest_delay)
    }

    fn sheet(setup: &Setup) -> DataSheet {
        if is_hardened(setup) {
            return DataSheet { assumes: HARDENED_ASSUMES, ..SHEET };
        }
        SHEET
    }
}

fn is_hardened(setup: &Setup) -> bool {
    setup.chosen(&SHEET, "mode").is("hardened")
}
