//! The data sheet of Dolev–Klawe–Rodeh / Peterson: assumptions, costs and guarantees.

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId};

use super::rules::{DETECTOR_IS_LEADER, Rules};
use super::{DolevKlaweRodeh, Role};
use crate::election::{Election, ring};
use crate::{Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Setup, Winner};

pub(super) const SHEET: DataSheet = DataSheet {
    name: "dolev-klawe-rodeh",
    title: "Dolev–Klawe–Rodeh / Peterson",
    idea: "Values travel one way; only a value that is higher than both its neighbours survives a round.",
    source: "D. Dolev, M. Klawe, M. Rodeh, J. Algorithms 3(3), 1982; G. L. Peterson, TOPLAS 4(4), 1982; \
             named in the project report on the ring election",
    assumes: &[
        Assumption::Reliable,
        Assumption::NoDuplicates,
        Assumption::Fifo,
        Assumption::NoCrash,
        Assumption::UniqueIds,
    ],
    topologies: &[Shape::DirectedRing],
    winner: Some(Winner::MaxInitiator),
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "2n",
            when: "one initiator",
            bound: |f| {
                let alone = ring::log_of_starters(&SHEET, f) == 0.0;
                (f.n() > 1.0 && alone).then(|| Bound::Exactly(2.0 * f.n()))
            },
        },
        Cost {
            metric: Metric::Messages,
            formula: "2n⌊log₂ k⌋ + 2n, k = number of initiators",
            when: "always",
            bound: |f| {
                let all = 2.0 * f.n() * (ring::log_of_starters(&SHEET, f) + 1.0);
                Some(if f.n() > 1.0 { Bound::AtMost(all) } else { Bound::Exactly(0.0) })
            },
        },
    ],
    guarantees: &[Guarantee::UniqueLeader, Guarantee::Agreement, Guarantee::Termination],
    fence: None,
    mistakes: &[DETECTOR_IS_LEADER],
    switches: &[ring::JOIN],
};

impl Inspect for DolevKlaweRodeh {
    fn at_rest(&self) -> bool {
        matches!(self.role, Role::Asleep | Role::Over(_))
    }
}

impl Algorithm for DolevKlaweRodeh {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        Self {
            role: Role::Asleep,
            successor: Fixed(setup.successor(me)),
            rules: Fixed(Rules::of(setup)),
        }
    }

    fn sheet(setup: &Setup) -> DataSheet {
        ring::sheet_with_join(SHEET, setup)
    }
}
