//! The data sheet of the token ring: assumptions, costs and guarantees.

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId};

use super::rules::{KEEPS_TOKEN, NO_EPOCH, Rules};
use super::{Message, State, Token, TokenRing};
use crate::mutex::Mutex;
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Setup, Switch,
};

pub(super) const SHEET: DataSheet = DataSheet {
    name: "token-ring",
    title: "Token ring",
    idea: "A token goes round; the process with the token may enter once.",
    source: "G. Le Lann, 1977; lecture \"Übereinstimmung und Koordination\", slide \"Token-Ring\"; \
             lecture \"Gegenseitiger Ausschluss\", perpetuum mobile",
    assumes: &[
        Assumption::Reliable,
        Assumption::NoDuplicates,
        Assumption::NoRestart,
        Assumption::Synchronous,
        Assumption::KnownMembership,
    ],
    topologies: &[Shape::DirectedRing],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::MessagesPerEntry,
            formula: "1 if all ask; parking: n where the token rests, else 2n to 3n − 2",
            when: "parking, and only one process asks",
            bound: |f| {
                let most = if f.n() > 1.0 { 3.0 * f.n() - 2.0 } else { 0.0 };
                (parks_in_peace(f) && f.uncontended).then_some(Bound::AtMost(most))
            },
        },
        Cost {
            metric: Metric::MessagesPerEntry,
            formula: "n² + n − 1",
            when: "parking, and no process crashes: each of n − 1 processes that a call wakes may send the token round \
                   once more",
            bound: |f| {
                let most = if f.n() > 1.0 { f.n() * f.n() + f.n() - 1.0 } else { 0.0 };
                parks_in_peace(f).then_some(Bound::AtMost(most))
            },
        },
        Cost {
            metric: Metric::SyncDelay,
            formula: "T to (n − 1)T",
            when: "no process crashes, and delays have a limit",
            bound: |f| {
                f.delay_max.filter(|_| is_intact(f)).map(|t| Bound::AtMost((f.n() - 1.0) * t))
            },
        },
        Cost {
            metric: Metric::EntryDelay,
            formula: "0 to nT, n/2 T on average",
            when: "no process crashes, and delays have a limit",
            bound: |f| f.delay_max.filter(|_| is_intact(f)).map(|t| Bound::AtMost(f.n() * t)),
        },
    ],
    guarantees: &[Guarantee::MutualExclusion, Guarantee::DeadlockFree, Guarantee::StarvationFree],
    fence: Some("the epoch, and the number of entries with the token"),
    mistakes: &[KEEPS_TOKEN, NO_EPOCH],
    switches: &[
        Switch {
            name: "mode",
            values: &["parking", "perpetual"],
            what: "whether the token rests while no process wants it",
        },
        Switch {
            name: "patience",
            values: &["0", "<number>"],
            what: "number of rounds to wait before asking whether the token is lost, twice as many before asking \
                   again; 0: for ever",
        },
    ],
};

impl Inspect for TokenRing {
    fn at_rest(&self) -> bool {
        let waits = self.frozen || self.probing.is_some();
        matches!(self.state, State::Released | State::Out) && !waits
    }

    fn tokens(&self) -> usize {
        (self.token.is_some() && self.rules.counts_token(self.epoch)).into()
    }

    fn tokens_in(message: &Message) -> usize {
        matches!(message, Message::Token { epoch: 0, .. }).into()
    }
}

impl Algorithm for TokenRing {
    type Problem = Mutex;
    const SHEET: DataSheet = SHEET;

    /// The token of a perpetuum mobile never rests.
    fn goes_on(setup: &Setup) -> bool {
        setup.chosen(&SHEET, "mode").is("perpetual")
    }

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let group = &setup.group;
        let mut crashed = setup.down.clone();
        crashed.sort_unstable();
        let first = group.members().iter().find(|p| crashed.binary_search(p).is_err());
        let mut process = Self {
            successor: setup.successor(me),
            state: State::Released,
            token: (first == Some(&me)).then_some(Token { entries: 0, idle: 0 }),
            called: false,
            epoch: 0,
            frozen: false,
            probing: None,
            crashed,
            alarms: 0,
            rules: Fixed(Rules::of(setup)),
        };
        process.mend(me, group);
        process
    }
}

pub(super) fn parks_in_peace(f: &Facts<'_>) -> bool {
    is_intact(f) && f.setup.chosen(&SHEET, "mode").is("parking")
}

/// Whether the first token goes round for ever.
pub(super) fn is_intact(f: &Facts<'_>) -> bool {
    let patient = f.setup.chosen(&SHEET, "patience").number() == 0;
    f.undisturbed && f.setup.down.is_empty() && patient
}
