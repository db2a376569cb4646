//! The data sheet of Chang–Roberts: assumptions, costs and guarantees.

use konklave_process::topology::Shape;
use konklave_process::{Inspect, ProcessId};

use super::ChangRoberts;
use super::costs::{one_starts, proposals, relayed};
use super::rules::{NO_HOP_LIMIT, NO_STEP_DOWN, Rules};
use crate::election::Election;
use crate::election::ring::Suspects;
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Setup, SetupError, Switch,
    Winner,
};

pub(super) const SHEET: DataSheet = DataSheet {
    name: "chang-roberts",
    title: "Chang–Roberts",
    idea: "Numbers go round a ring; only the highest returns home.",
    source: "E. Chang, R. Roberts, CACM 22(5), 1979; project report on the ring election",
    assumes: &[
        Assumption::Reliable,
        Assumption::NoDuplicates,
        Assumption::Fifo,
        Assumption::NoCrash,
        Assumption::AccurateDetector,
        Assumption::UniqueIds,
    ],
    topologies: &[Shape::DirectedRing],
    winner: Some(Winner::MaxAll),
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "d + 2n, d = hops from the initiator to the maximum",
            when: "one initiator",
            bound: |f| {
                let alone = f.initiators.len() == 1 && !is(f.setup, "original");
                alone.then(|| Bound::Exactly(one_starts(f)))
            },
        },
        Cost {
            metric: Metric::Messages,
            formula: "S + n, S = Σ distance to the next higher id",
            when: "all start at once",
            bound: |f| {
                (f.n() > 1.0 && f.k() == f.n()).then(|| Bound::Exactly(proposals(f) + f.n()))
            },
        },
        Cost {
            metric: Metric::Messages,
            formula: "nk − k(k − 1)/2 + n, k = number of initiators",
            when: "in the original form",
            bound: |f| is(f.setup, "original").then(|| Bound::AtMost(relayed(f))),
        },
        Cost {
            metric: Metric::Messages,
            formula: "n(n + 1)/2 + n",
            when: "always",
            bound: |f| Some(Bound::AtMost(f.n() * (f.n() + 1.0) / 2.0 + f.n())),
        },
        Cost {
            metric: Metric::Time,
            formula: "3n − 1, or 2n if all start at once",
            when: "delays have a limit; not in the hardened form, whose timeouts take part",
            bound: |f| {
                let hops = if f.k() == f.n() { 2.0 * f.n() } else { 3.0 * f.n() - 1.0 };
                f.delay_max.filter(|_| !is(f.setup, "hardened")).map(|t| Bound::AtMost(hops * t))
            },
        },
    ],
    guarantees: &[Guarantee::UniqueLeader, Guarantee::Agreement, Guarantee::Termination],
    fence: None,
    mistakes: &[NO_STEP_DOWN, NO_HOP_LIMIT],
    switches: &[Switch {
        name: "mode",
        values: &["textbook", "original", "hardened"],
        what: "original: a process that did not start passes all numbers on; hardened: numbered elections and timeouts",
    }],
};

impl Inspect for ChangRoberts {
    fn at_rest(&self) -> bool {
        !self.participant && !self.relays
    }
}

impl Algorithm for ChangRoberts {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let suspects = Suspects::new(me, setup);
        Self {
            successor: suspects.successor(me, setup),
            participant: false,
            leading: false,
            relays: false,
            rules: Rules::new(setup),
            suspects,
        }
    }

    fn sheet(setup: &Setup) -> DataSheet {
        let winner = if is(setup, "original") { Winner::MaxInitiator } else { Winner::MaxAll };
        DataSheet { winner: Some(winner), ..SHEET }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        match is(setup, "hardened") {
            true => Err(SetupError("the hardened form is a process of its own".into())),
            false => Ok(()),
        }
    }
}

pub(super) fn is(setup: &Setup, mode: &str) -> bool {
    setup.chosen(&SHEET, "mode").is(mode)
}
