//! The data sheet of Singhal: assumptions, costs and guarantees.

use konklave_process::topology::Shape;
use konklave_process::{Inspect, ProcessId, ProcessMap};

use super::rules::{AS_PRINTED, NO_ECHO, NO_STAIRCASE, ONLY_HINTS, ONLY_MERGE, Rules};
use super::{Known, Message, Singhal, State, Token};
use crate::mutex::{Mutex, hand_over};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, ProcessSets, Setup,
    Switch,
};

const SHEET: DataSheet = DataSheet {
    name: "singhal",
    title: "Singhal",
    idea: "A process asks only the processes that may have the token: those that asked for it.",
    source: "M. Singhal, IEEE Trans. Computers 38(5), 1989; lecture \"Gegenseitiger Ausschluss\"; \
             repaired",
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
            metric: Metric::Messages,
            formula: "i + 1 for the first entry of the i-th process, counted from 0, and nothing \
                      from then on; so (n + 1)/2 on average, and 0 where the token is",
            when: "only one process asks",
            bound: |f| f.uncontended.then(|| Bound::Exactly(of_one_asker(f))),
        },
        Cost {
            metric: Metric::MessagesPerEntry,
            formula: "n, and for each of the requests up to E + 1 hints, E = number of entries",
            when: "always: a hint is answered by another only if the token was faster",
            bound: |f| {
                let hints = (f.n() - 1.0) * (f.entries() + 1.0);
                Some(Bound::AtMost(if f.n() > 1.0 { f.n() + hints } else { 0.0 }))
            },
        },
        Cost {
            metric: Metric::SyncDelay,
            formula: "T",
            when: hand_over::SETTLED,
            bound: |f| hand_over::settled(f, 1.0),
        },
        // In the worst case an old request is still on its way to the one that leaves: a hint goes
        // back, a request comes, the token follows.
        Cost {
            metric: Metric::SyncDelay,
            formula: "4T",
            when: "no fault strikes a message, and delays have a limit",
            bound: |f| f.delay_max.filter(|_| f.undisturbed).map(|t| Bound::AtMost(4.0 * t)),
        },
        Cost {
            metric: Metric::EntryDelay,
            formula: "2T, or 0 where the token is",
            when: "only one process asks, and delays have a limit",
            bound: |f| f.delay_max.filter(|_| f.uncontended).map(|t| Bound::AtMost(2.0 * t)),
        },
    ],
    guarantees: &[Guarantee::MutualExclusion, Guarantee::DeadlockFree, Guarantee::StarvationFree],
    fence: Some("the token's count of entries"),
    mistakes: &[AS_PRINTED, ONLY_MERGE, ONLY_HINTS, NO_STAIRCASE, NO_ECHO],
    switches: &[Switch {
        name: "arbitration",
        values: &["round-robin", "smallest", "nearest"],
        what: "the process that gets the token next: in turn, the process served least, or the nearest (a far process \
               may starve)",
    }],
};

impl Inspect for Singhal {
    fn at_rest(&self) -> bool {
        matches!(self.state, State::Nothing | State::Holding)
    }

    fn tokens(&self) -> usize {
        self.token.is_some().into()
    }

    fn tokens_in(message: &Message) -> usize {
        matches!(message, Message::Token(_)).into()
    }
}

impl Algorithm for Singhal {
    type Problem = Mutex;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let group = &setup.group;
        let nothing = ProcessMap::new(group, Known { state: State::Nothing, number: 0 });
        let mut known = nothing.clone();
        let place = setup.place(me);
        let asked = Rules::staircase(setup, place);
        for p in &group.members()[..asked] {
            known[*p].state = State::Requesting;
        }
        Self {
            state: if place == 0 { State::Holding } else { State::Nothing },
            known,
            token: (place == 0).then_some(Token { known: nothing, entries: 0 }),
            rules: Rules::of(setup, setup.chosen(&SHEET, "arbitration").0),
        }
    }

    fn process_sets(setup: &Setup) -> Vec<ProcessSets> {
        let asked = |p| &setup.group.members()[..Rules::staircase(setup, setup.place(p))];
        vec![ProcessSets::of("R", "asks at first", setup, asked)]
    }
}

/// At first each asks all before it, and gets the token; then it has it.
fn of_one_asker(f: &Facts<'_>) -> f64 {
    let asker = f.served.iter().find(|(_, times)| *times > 0);
    match asker.map_or(0, |(p, _)| f.setup.place(*p)) {
        0 => 0.0,
        place => place as f64 + 1.0,
    }
}
