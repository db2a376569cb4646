//! The data sheet of Suzuki–Kasami: what it assumes, costs and promises, and its mistake switches.

use std::collections::VecDeque;

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId, ProcessMap};

use super::{Message, Phase, SuzukiKasami, Token};
use crate::mutex::Mutex;
use crate::{Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Mistake, Setup};

pub(super) const STALE: Mistake = Mistake {
    name: "stale-request",
    what: "an idle holder sends the token to whoever asks, even if that request was served already",
    breaks: "deadlock",
    caught_by: "-n 3 --requests 2,1,1",
};
pub(super) const OWN_NUMBER: Mistake = Mistake {
    name: "own-number",
    what: "a request moves and is judged by the receiver's own number, as the slide's index has it",
    breaks: "deadlock",
    caught_by: "-n 2 --requests 1,1",
};
pub(super) const UNCOUNTED: Mistake = Mistake {
    name: "uncounted-entry",
    what: "a holder that enters without asking does not count that as a request",
    breaks: "growing fences",
    caught_by: "-n 2 --requests 2,0 --property fence",
};

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
            formula: "T, or 2T while the next one's request is on its way",
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
        self.phase == Phase::Idle && self.token.as_ref().is_none_or(|t| t.queue.is_empty())
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
            phase: Phase::Idle,
            requested: nothing,
            token: (setup.group.id(0) == me).then_some(first),
            mistake: Fixed(setup.mistake),
        }
    }
}
