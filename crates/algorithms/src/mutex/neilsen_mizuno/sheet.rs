//! The data sheet of Neilsen–Mizuno: assumptions, costs and guarantees.

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId};

use super::rules::{NO_EDGE_REVERSAL, ONLY_HOLDERS_QUEUE, Rules};
use super::{Message, NeilsenMizuno};
use crate::mutex::{Mutex, State};
use crate::{Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Setup};

const SHEET: DataSheet = DataSheet {
    name: "neilsen-mizuno",
    title: "Neilsen–Mizuno",
    idea: "Requests follow the edges of a tree and turn them; the token comes straight back.",
    source: "M. L. Neilsen, M. Mizuno, ICDCS 1991",
    assumes: &[
        Assumption::Reliable,
        Assumption::NoDuplicates,
        Assumption::NoCrash,
        Assumption::UniqueIds,
    ],
    topologies: &[Shape::Tree, Shape::Connected, Shape::Complete],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::MessagesPerEntry,
            formula: "D + 1, D = diameter of the tree, or 0 where the token is",
            when: "always",
            bound: |f| Some(Bound::AtMost(way(f.setup))),
        },
        Cost {
            metric: Metric::SyncDelay,
            formula: "T, or (D + 1)T while the next request is on its way",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(way(f.setup) * t)),
        },
        Cost {
            metric: Metric::EntryDelay,
            formula: "(D + 1)T, or 0 where the token is",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(way(f.setup) * t)),
        },
    ],
    guarantees: &[Guarantee::MutualExclusion, Guarantee::DeadlockFree, Guarantee::StarvationFree],
    fence: Some("the token's count of entries"),
    mistakes: &[NO_EDGE_REVERSAL, ONLY_HOLDERS_QUEUE],
    switches: &[],
};

impl Inspect for NeilsenMizuno {
    fn at_rest(&self) -> bool {
        self.state == State::Released && self.next.is_none()
    }

    fn tokens(&self) -> usize {
        self.token.is_some().into()
    }

    fn tokens_in(message: &Message) -> usize {
        matches!(message, Message::Token { .. }).into()
    }
}

impl Algorithm for NeilsenMizuno {
    type Problem = Mutex;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let last = setup.parent(me);
        Self {
            state: State::Released,
            last,
            next: None,
            token: last.is_none().then_some(0),
            rules: Fixed(Rules::of(setup)),
        }
    }
}

/// The longest way of a request, and one step back.
fn way(setup: &Setup) -> f64 {
    match setup.tree_diameter() {
        0 => 0.0,
        d => d as f64 + 1.0,
    }
}
