//! The data sheet of Ricart–Agrawala: what it assumes, costs and promises, and its mistake switches.

use konklave_process::topology::Shape;
use konklave_process::{Inspect, LamportClock, ProcessId, ProcessMap};

use super::{RicartAgrawala, State, clocks};
use crate::mutex::Mutex;
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Mistake, Setup, SetupError,
};

pub(super) const REQUEST_CLOCK: Mistake = Mistake {
    name: "request-clock",
    what: "only requests move the clock, as in the paper: replies carry causality, but no time",
    breaks: "happened-before order",
    caught_by: "-n 3 --requests 2,1,1 --property order",
};
pub(super) const NO_TIE_BREAK: Mistake = Mistake {
    name: "no-tie-break",
    what: "timestamps are compared without ids, and of two equal ones each lets the other go first",
    breaks: "mutual exclusion",
    caught_by: "-n 2",
};
pub(super) const SIMPLE_MAJORITY: Mistake = Mistake {
    name: "simple-majority",
    what: "a simple majority of replies is enough, as the lecture says: but a reply is no exclusive \
           vote, and an idle process gives it to everyone",
    breaks: "mutual exclusion",
    caught_by: "-n 3 --requests 1,1,0",
};

pub(super) const SHEET: DataSheet = DataSheet {
    name: "ricart-agrawala",
    title: "Ricart–Agrawala",
    idea: "Ask everyone; enter when all have replied. Who is inside or asked earlier replies later.",
    source: "G. Ricart, A. K. Agrawala, CACM 24(1), 1981; lecture \"Gegenseitiger Ausschluss\"",
    assumes: &[Assumption::Reliable, Assumption::NoCrash, Assumption::KnownMembership],
    topologies: &[Shape::Complete],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::MessagesPerEntry,
            formula: "2(n − 1)",
            when: "always",
            bound: |f| Some(Bound::Exactly(2.0 * (f.n() - 1.0))),
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
    mistakes: &[REQUEST_CLOCK, NO_TIE_BREAK, SIMPLE_MAJORITY],
    switches: &[clocks::SWITCH],
};

impl Inspect for RicartAgrawala {
    fn stamp(&self) -> u64 {
        self.clock.now().into()
    }

    fn on_stamp(&mut self, _from: ProcessId, stamp: u64) {
        self.clock.witness(stamp as u32);
    }

    fn at_rest(&self) -> bool {
        self.state == State::Released && self.deferred.values().all(|t| *t == 0)
    }
}

impl Algorithm for RicartAgrawala {
    type Problem = Mutex;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let mut clock = LamportClock::default();
        clock.witness(clocks::begin(me, setup).unwrap_or(0));
        Self {
            clock,
            state: State::Released,
            deferred: ProcessMap::new(&setup.group, 0),
            request_clock: setup.makes(&REQUEST_CLOCK),
            no_tie_break: setup.makes(&NO_TIE_BREAK),
            simple_majority: setup.makes(&SIMPLE_MAJORITY),
        }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        clocks::check(setup)
    }
}
