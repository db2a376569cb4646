//! The data sheet of Naimi–Tréhel: assumptions, costs and guarantees.

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId};

use super::rules::{LAST_AFTER_SEND, NO_PATH_REVERSAL, ONLY_HOLDERS_QUEUE, Rules};
use super::{Message, NaimiTrehel};
use crate::mutex::{Mutex, State};
use crate::{Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Setup};

const SHEET: DataSheet = DataSheet {
    name: "naimi-trehel",
    title: "Naimi–Tréhel",
    idea: "Requests follow pointers to the last in the queue, and turn the pointers to their requester.",
    source: "M. Naimi, M. Tréhel, 1987; with A. Arnold, JPDC 34(1), 1996",
    assumes: &[
        Assumption::Reliable,
        Assumption::NoDuplicates,
        Assumption::NoCrash,
        Assumption::KnownMembership,
        Assumption::UniqueIds,
    ],
    topologies: &[Shape::Complete],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::MessagesPerEntry,
            formula: "n, or 0 where the token is; O(log n) on average",
            when: "always",
            bound: |f| Some(Bound::AtMost(if f.n() > 1.0 { f.n() } else { 0.0 })),
        },
        Cost {
            metric: Metric::SyncDelay,
            formula: "T, or n·T while the next request is on its way",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(f.n() * t)),
        },
        Cost {
            metric: Metric::EntryDelay,
            formula: "n·T, or 0 where the token is; O(log n) on average",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(f.n() * t)),
        },
    ],
    guarantees: &[Guarantee::MutualExclusion, Guarantee::DeadlockFree, Guarantee::StarvationFree],
    fence: Some("the token's count of entries"),
    mistakes: &[LAST_AFTER_SEND, NO_PATH_REVERSAL, ONLY_HOLDERS_QUEUE],
    switches: &[],
};

impl Inspect for NaimiTrehel {
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

impl Algorithm for NaimiTrehel {
    type Problem = Mutex;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let first = setup.group.id(0);
        Self {
            state: State::Released,
            last: (me != first).then_some(first),
            next: None,
            token: (me == first).then_some(0),
            rules: Fixed(Rules::of(setup)),
        }
    }
}
