//! The data sheet of Ricart–Agrawala with acknowledgements: assumptions, costs and guarantees.

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, LamportClock, ProcessId, ProcessSet};

use super::rules::{NO_PROBE, NO_REJOIN, Rules};
use super::{RicartAgrawalaAcknowledged, State};
use crate::mutex::Mutex;
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Setup, SetupError,
    Switch,
};

pub(super) const SHEET: DataSheet = DataSheet {
    name: "ricart-agrawala-acknowledged",
    title: "Ricart–Agrawala with acknowledgements",
    idea: "As Ricart–Agrawala, but every request is answered at once, and a silent process has crashed.",
    source: "G. Ricart, A. K. Agrawala, CACM 24(1), 1981 (node failures); lecture \
             \"Gegenseitiger Ausschluss\", first improvement",
    assumes: &[
        Assumption::Reliable,
        Assumption::Synchronous,
        Assumption::KnownMembership,
        Assumption::StableStorage,
    ],
    topologies: &[Shape::Complete],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::MessagesPerEntry,
            formula: "2(n − 1)",
            when: "only one process asks, and two delays are shorter than the timeout; else up to \
                   3(n − 1), and two for each probe",
            bound: |f| {
                let alone = f.uncontended && prompt(f).is_some();
                alone.then(|| Bound::Exactly(2.0 * (f.n() - 1.0)))
            },
        },
        Cost {
            metric: Metric::SyncDelay,
            formula: "T, or up to 3T while requests are on their way",
            when: "no process crashes, and two delays are shorter than the timeout",
            bound: |f| prompt(f).map(|t| Bound::AtMost(3.0 * t)),
        },
        Cost {
            metric: Metric::EntryDelay,
            formula: "2T",
            when: "no process crashes, and two delays are shorter than the timeout",
            bound: |f| prompt(f).map(|t| Bound::AtMost(2.0 * t)),
        },
    ],
    guarantees: &[
        Guarantee::MutualExclusion,
        Guarantee::DeadlockFree,
        Guarantee::StarvationFree,
        Guarantee::HappenedBeforeUntilRestart,
    ],
    fence: Some("(timestamp, id) of the request: entries come in this order"),
    mistakes: &[NO_PROBE, NO_REJOIN],
    switches: &[
        Switch {
            name: "model",
            values: &["synchronous", "asynchronous"],
            what: "whether silence means a crash, or nothing",
        },
        Switch {
            name: "timeout",
            values: &["5", "<number>"],
            what: "time until an answer is overdue, in T: more than twice the longest delay",
        },
    ],
};

impl Inspect for RicartAgrawalaAcknowledged {
    fn stamp(&self) -> u64 {
        self.clock.now().into()
    }

    fn on_stamp(&mut self, _from: ProcessId, stamp: u64) {
        self.clock.witness(stamp as u32);
    }

    fn at_rest(&self) -> bool {
        self.state == State::Released && self.deferred.is_empty()
    }
}

impl Algorithm for RicartAgrawalaAcknowledged {
    type Problem = Mutex;
    const SHEET: DataSheet = SHEET;

    fn new(_me: ProcessId, setup: &Setup) -> Self {
        Self {
            clock: LamportClock::default(),
            state: State::Released,
            awaiting: ProcessSet::new(),
            silent: ProcessSet::new(),
            crashed: ProcessSet::new(),
            deferred: Vec::new(),
            incarnation: 0,
            rules: Fixed(Rules::of(setup)),
        }
    }

    fn longest_delay(setup: &Setup) -> Option<f64> {
        let synchronous = setup.chosen(&SHEET, "model").is("synchronous");
        synchronous.then(|| f64::from(setup.chosen(&SHEET, "timeout").number()) / 2.0)
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        setup.need(&SHEET, 1, &["timeout"])
    }
}

/// The longest delay, if no process crashes and all answers arrive before the timeout.
fn prompt(f: &Facts<'_>) -> Option<f64> {
    let timeout = f64::from(f.setup.chosen(&SHEET, "timeout").number());
    f.delay_max.filter(|t| f.undisturbed && f.setup.down.is_empty() && 2.0 * t < timeout)
}
