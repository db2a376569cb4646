//! The data sheet of Ricart–Agrawala: assumptions, costs and guarantees.

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, LamportClock, ProcessId, ProcessMap};

use super::rules::{NO_TIE_BREAK, REQUEST_CLOCK, Rules, SIMPLE_MAJORITY};
use super::{RicartAgrawala, State, clocks};
use crate::mutex::Mutex;
use crate::{Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Setup, SetupError};

pub(super) const SHEET: DataSheet = DataSheet {
    name: "ricart-agrawala",
    title: "Ricart–Agrawala",
    idea: "A process asks all others and enters when all have replied. A process that is inside, or asked earlier, replies later.",
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
            rules: Fixed(Rules::of(setup)),
        }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        clocks::check(setup)
    }
}
