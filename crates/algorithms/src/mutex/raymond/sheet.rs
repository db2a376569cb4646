//! The data sheet of Raymond's tree: assumptions, costs and guarantees.

use std::collections::VecDeque;

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId};

use super::rules::{FORGETS_REST, FORGETS_SELF, NO_ASKED_FLAG, Rules, UNBOUNDED_GREEDY};
use super::{Holder, Message, Raymond};
use crate::mutex::{Mutex, State};
use crate::{Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Setup, Switch};

const SHEET: DataSheet = DataSheet {
    name: "raymond",
    title: "Raymond's tree",
    idea: "Pointers along a tree lead to the token; requests go that way, the token comes back.",
    source: "K. Raymond, TOCS 7(1), 1989; lecture \"Gegenseitiger Ausschluss\" 5.5.4",
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
            formula: "2D, D = diameter of the tree; about 4 when all want",
            when: "always",
            bound: |f| Some(Bound::AtMost(2.0 * f.setup.tree_diameter() as f64)),
        },
        Cost {
            metric: Metric::SyncDelay,
            formula: "D·T, or 2D·T while the next request is on its way",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(2.0 * f.setup.tree_diameter() as f64 * t)),
        },
        Cost {
            metric: Metric::EntryDelay,
            formula: "2D·T, or 0 where the token is",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(2.0 * f.setup.tree_diameter() as f64 * t)),
        },
    ],
    guarantees: &[Guarantee::MutualExclusion, Guarantee::DeadlockFree, Guarantee::StarvationFree],
    fence: Some("the token's count of entries"),
    mistakes: &[NO_ASKED_FLAG, FORGETS_SELF, FORGETS_REST, UNBOUNDED_GREEDY],
    switches: &[Switch {
        name: "greedy",
        values: &["0", "<number>"],
        what: "number of own requests in a row that a process may serve before the head of its queue",
    }],
};

impl Inspect for Raymond {
    fn at_rest(&self) -> bool {
        self.state == State::Released && self.queue.is_empty()
    }

    fn tokens(&self) -> usize {
        matches!(self.holder, Holder::Us { .. }).into()
    }

    fn tokens_in(message: &Message) -> usize {
        matches!(message, Message::Token { .. }).into()
    }
}

impl Algorithm for Raymond {
    type Problem = Mutex;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        Self {
            holder: setup.parent(me).map_or(Holder::Us { entries: 0 }, Holder::Neighbour),
            queue: VecDeque::new(),
            asked: false,
            state: State::Released,
            ahead: 0,
            rules: Fixed(Rules::of(setup, setup.chosen(&SHEET, "greedy").number())),
        }
    }
}
