//! The data sheet of Ricart–Agrawala with a token: assumptions, costs and guarantees.

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId, ProcessMap};

use super::rules::{Rules, STALE, UNCOUNTED};
use super::{Message, RicartAgrawalaToken};
use crate::mutex::{Mutex, State};
use crate::{Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Setup};

const SHEET: DataSheet = DataSheet {
    name: "ricart-agrawala-token",
    title: "Ricart–Agrawala with a token",
    idea: "A process asks for the token by broadcast; the token goes round to the processes that have asked.",
    source: "G. Ricart, A. K. Agrawala, CACM 26(2), 1983",
    assumes: &[Assumption::Reliable, Assumption::NoCrash, Assumption::KnownMembership],
    topologies: &[Shape::Complete],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::MessagesPerEntry,
            formula: "n, or 0 where the token is",
            when: "always",
            bound: |f| Some(Bound::AtMost(if f.n() > 1.0 { f.n() } else { 0.0 })),
        },
        Cost {
            metric: Metric::SyncDelay,
            formula: "T, or 2T while the next request is on its way",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(2.0 * t)),
        },
        Cost {
            metric: Metric::EntryDelay,
            formula: "2T, or 0 where the token is",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(2.0 * t)),
        },
    ],
    guarantees: &[Guarantee::MutualExclusion, Guarantee::DeadlockFree, Guarantee::StarvationFree],
    fence: Some("the token's count of entries"),
    mistakes: &[STALE, UNCOUNTED],
    switches: &[],
};

impl Inspect for RicartAgrawalaToken {
    fn at_rest(&self) -> bool {
        self.state == State::Released
    }

    fn tokens(&self) -> usize {
        self.token.is_some().into()
    }

    fn tokens_in(message: &Message) -> usize {
        matches!(message, Message::Token(_)).into()
    }
}

impl Algorithm for RicartAgrawalaToken {
    type Problem = Mutex;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let nothing = ProcessMap::new(&setup.group, 0);
        Self {
            state: State::Released,
            token: (setup.group.id(0) == me).then(|| nothing.clone()),
            requested: nothing,
            rules: Fixed(Rules::of(setup)),
        }
    }
}
