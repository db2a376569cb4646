//! The data sheet of Lamport: assumptions, costs and guarantees.

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, LamportClock, ProcessId};

use super::rules::{EQUAL_ACK, NO_TIE_BREAK, Rules};
use super::{Lamport, State};
use crate::mutex::Mutex;
use crate::{Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Setup, Switch};

const SHEET: DataSheet = DataSheet {
    name: "lamport",
    title: "Lamport",
    idea: "Each process keeps the same queue of requests; the first of the queue enters after a message of all others.",
    source: "L. Lamport, CACM 21(7), 1978; lecture \"Gegenseitiger Ausschluss\"",
    assumes: &[
        Assumption::Reliable,
        Assumption::NoDuplicates,
        Assumption::Fifo,
        Assumption::NoCrash,
        Assumption::KnownMembership,
    ],
    topologies: &[Shape::Complete],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::MessagesPerEntry,
            formula: "3(n − 1), with suppressed acknowledgements 2(n − 1) to 3(n − 1)",
            when: "always",
            bound: |f| {
                let others = f.n() - 1.0;
                Some(if f.setup.chosen(&SHEET, "acks").is("all") {
                    Bound::Exactly(3.0 * others)
                } else {
                    Bound::Between(2.0 * others, 3.0 * others)
                })
            },
        },
        Cost {
            metric: Metric::SyncDelay,
            formula: "T, or up to 3T while requests are on their way",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(3.0 * t)),
        },
        Cost {
            metric: Metric::EntryDelay,
            formula: "2T",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(2.0 * t)),
        },
    ],
    guarantees: &[
        Guarantee::MutualExclusion,
        Guarantee::DeadlockFree,
        Guarantee::StarvationFree,
        Guarantee::HappenedBefore,
    ],
    fence: Some("(timestamp, id) of the request: entries come in this order"),
    mistakes: &[EQUAL_ACK, NO_TIE_BREAK],
    switches: &[Switch {
        name: "acks",
        values: &["all", "suppressed"],
        what: "whether a request is acknowledged even if our own later one will do",
    }],
};

impl Inspect for Lamport {
    fn stamp(&self) -> u64 {
        self.clock.now().into()
    }

    fn on_stamp(&mut self, _from: ProcessId, stamp: u64) {
        self.clock.witness(stamp as u32);
    }

    fn at_rest(&self) -> bool {
        self.state == State::Released && self.queue.is_empty()
    }
}

impl Algorithm for Lamport {
    type Problem = Mutex;
    const SHEET: DataSheet = SHEET;

    fn new(_me: ProcessId, setup: &Setup) -> Self {
        Self {
            clock: LamportClock::default(),
            state: State::Released,
            queue: Vec::new(),
            rules: Fixed(Rules::of(setup, setup.chosen(&SHEET, "acks").is("suppressed"))),
        }
    }
}
