//! The data sheet of Carvalho–Roucairol: assumptions, costs and guarantees.

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, LamportClock, ProcessId, ProcessSet};

use super::rules::{NO_RE_REQUEST, Rules, TIMESTAMP_FENCE};
use super::{CarvalhoRoucairol, State};
use crate::mutex::Mutex;
use crate::{Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Setup};

const SHEET: DataSheet = DataSheet {
    name: "carvalho-roucairol",
    title: "Carvalho–Roucairol",
    idea: "A permission stays until another process asks for it: a process that enters again asks none.",
    source: "O. S. F. Carvalho, G. Roucairol, CACM 26(2), 1983",
    assumes: &[
        Assumption::Reliable,
        Assumption::NoDuplicates,
        Assumption::NoCrash,
        Assumption::KnownMembership,
    ],
    topologies: &[Shape::Complete],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::MessagesPerEntry,
            formula: "0 to 2(n − 1)",
            when: "always",
            bound: |f| Some(Bound::Between(0.0, 2.0 * (f.n() - 1.0))),
        },
        Cost {
            metric: Metric::SyncDelay,
            formula: "T, or up to 3T while requests are on their way",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(3.0 * t)),
        },
        Cost {
            metric: Metric::EntryDelay,
            formula: "0 or 2T",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(2.0 * t)),
        },
    ],
    guarantees: &[Guarantee::MutualExclusion, Guarantee::DeadlockFree, Guarantee::StarvationFree],
    fence: Some("one more than the highest fence of all processes that gave their permission"),
    mistakes: &[NO_RE_REQUEST, TIMESTAMP_FENCE],
    switches: &[],
};

impl Inspect for CarvalhoRoucairol {
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

impl Algorithm for CarvalhoRoucairol {
    type Problem = Mutex;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        Self {
            clock: LamportClock::default(),
            state: State::Released,
            lacking: setup.group.members().iter().copied().filter(|p| *p < me).collect(),
            deferred: ProcessSet::new(),
            fence: 0,
            rules: Fixed(Rules::of(setup)),
        }
    }
}
