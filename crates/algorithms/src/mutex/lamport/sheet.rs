//! The data sheet of Lamport: what it assumes, costs and promises, and its mistake switches.

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, LamportClock, ProcessId};

use super::{Lamport, State};
use crate::mutex::Mutex;
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Mistake, Setup, Switch,
};

const EQUAL_ACK: Mistake = Mistake {
    name: "equal-ack",
    what: "an acknowledgement carries the time of the request, not a later one: with a lower id it \
           does not count as later",
    breaks: "deadlock",
    caught_by: "-n 2 --requests 0,1",
};
const NO_TIE_BREAK: Mistake = Mistake {
    name: "no-tie-break",
    what: "the queue is ordered by time without ids, and of two equal requests each takes its own \
           for the first",
    breaks: "mutual exclusion",
    caught_by: "-n 2",
};

const SHEET: DataSheet = DataSheet {
    name: "lamport",
    title: "Lamport",
    idea: "Everyone keeps the same queue of requests; enter as its first, once all have been heard.",
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
            suppresses: Fixed(setup.chosen(&SHEET, "acks").is("suppressed")),
            equal_ack: setup.makes(&EQUAL_ACK),
            no_tie_break: setup.makes(&NO_TIE_BREAK),
        }
    }
}
