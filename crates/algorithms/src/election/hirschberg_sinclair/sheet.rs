//! The data sheet of Hirschberg–Sinclair: assumptions, costs and guarantees.

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId};

use super::rules::{NO_RELAY_LOCK, Rules};
use super::{HirschbergSinclair, Role};
use crate::election::ring::Sides;
use crate::election::{Election, ring};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Setup, Winner,
};

pub(super) const SHEET: DataSheet = DataSheet {
    name: "hirschberg-sinclair",
    title: "Hirschberg–Sinclair",
    idea: "Probes go twice as far in each phase; only a local maximum gets both replies.",
    source: "D. S. Hirschberg, J. B. Sinclair, CACM 23(11), 1980",
    assumes: &[
        Assumption::Reliable,
        Assumption::NoDuplicates,
        Assumption::NoCrash,
        Assumption::UniqueIds,
    ],
    topologies: &[Shape::Ring],
    winner: Some(Winner::MaxInitiator),
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "8n(1 + ⌈log₂ n⌉) + n",
            when: "always",
            bound: |f| {
                let all = 8.0 * f.n() * (1.0 + f.n().log2().ceil()) + f.n();
                Some(if f.n() > 1.0 { Bound::AtMost(all) } else { Bound::Exactly(0.0) })
            },
        },
        Cost {
            metric: Metric::Time,
            formula: "5n + n; 3n + n if n is a power of two",
            when: "all start at once, and delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost((slowest(f) + f.n()) * t)),
        },
    ],
    guarantees: &[Guarantee::UniqueLeader, Guarantee::Agreement, Guarantee::Termination],
    fence: None,
    mistakes: &[NO_RELAY_LOCK],
    switches: &[ring::JOIN],
};

impl Inspect for HirschbergSinclair {
    fn at_rest(&self) -> bool {
        self.leader.is_some() || self.role == Role::Asleep
    }
}

impl Algorithm for HirschbergSinclair {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        Self {
            role: Role::Asleep,
            leader: None,
            sides: Sides::new(me, setup),
            rules: Fixed(Rules::of(setup)),
        }
    }

    fn sheet(setup: &Setup) -> DataSheet {
        ring::sheet_with_join(SHEET, setup)
    }
}

/// The time until a probe returns home.
fn slowest(f: &Facts<'_>) -> f64 {
    if f.setup.group.len().is_power_of_two() { 3.0 * f.n() } else { 5.0 * f.n() }
}
