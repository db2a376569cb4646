//! The data sheet of the central coordinator: assumptions, costs and guarantees.

use std::collections::VecDeque;

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Group, Inspect, ProcessId, ProcessMap};

use super::Central;
use super::rules::{Rules, UNNUMBERED};
use crate::mutex::{Mutex, State};
use crate::{Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Setup};

const SHEET: DataSheet = DataSheet {
    name: "central",
    title: "Central coordinator",
    idea: "Each process asks the coordinator, which grants one request after the other.",
    source: "folklore; lecture \"Gegenseitiger Ausschluss\", centralised solution",
    assumes: &[Assumption::Reliable, Assumption::NoCrash, Assumption::KnownMembership],
    topologies: &[Shape::Complete],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "3 per entry, 0 for the coordinator's own",
            when: "always",
            bound: |f| Some(Bound::Exactly(3.0 * f.entries_but(f.setup.group.id(0)))),
        },
        Cost {
            metric: Metric::SyncDelay,
            formula: "2T",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(2.0 * t)),
        },
        Cost {
            metric: Metric::EntryDelay,
            formula: "2T",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(2.0 * t)),
        },
    ],
    guarantees: &[Guarantee::MutualExclusion, Guarantee::DeadlockFree, Guarantee::StarvationFree],
    fence: Some("the coordinator's count of grants"),
    mistakes: &[UNNUMBERED],
    switches: &[],
};

impl Inspect for Central {
    fn at_rest(&self) -> bool {
        self.state == State::Released && self.holder.is_none() && self.queue.is_empty()
    }
}

impl Algorithm for Central {
    type Problem = Mutex;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let coordinator = setup.group.id(0);
        let clients = if me == coordinator { setup.group.clone() } else { Group::of(1) };
        Self {
            coordinator: Fixed(coordinator),
            rules: Fixed(Rules::of(setup)),
            state: State::Released,
            request: 0,
            holder: None,
            queue: VecDeque::new(),
            grants: 0,
            latest: ProcessMap::new(&clients, 0),
        }
    }
}
