//! The data sheet of Suzuki–Kasami: assumptions, costs and guarantees.

use std::collections::VecDeque;

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId, ProcessMap};

use super::rules::{OWN_NUMBER, Rules, STALE, UNCOUNTED};
use super::{Message, SuzukiKasami, Token};
use crate::mutex::{Mutex, State};
use crate::{Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Setup};

const SHEET: DataSheet = DataSheet {
    name: "suzuki-kasami",
    title: "Suzuki–Kasami",
    idea: "A token that is asked for by broadcast and carries its own queue.",
    source: "I. Suzuki, T. Kasami, TOCS 3(4), 1985; lecture \"Gegenseitiger Ausschluss\"",
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
    mistakes: &[STALE, OWN_NUMBER, UNCOUNTED],
    switches: &[],
};

impl Inspect for SuzukiKasami {
    fn at_rest(&self) -> bool {
        self.state == State::Released && self.token.as_ref().is_none_or(|t| t.queue.is_empty())
    }

    fn tokens(&self) -> usize {
        self.token.is_some().into()
    }

    fn tokens_in(message: &Message) -> usize {
        matches!(message, Message::Token(_)).into()
    }
}

impl Algorithm for SuzukiKasami {
    type Problem = Mutex;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let nothing = ProcessMap::new(&setup.group, 0);
        let first = Token { served: nothing.clone(), queue: VecDeque::new() };
        Self {
            state: State::Released,
            requested: nothing,
            token: (setup.group.id(0) == me).then_some(first),
            rules: Fixed(Rules::of(setup)),
        }
    }
}
