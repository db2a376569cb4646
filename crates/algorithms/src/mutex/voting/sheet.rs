//! The data sheet of Majority voting: assumptions, costs, guarantees and mistakes.

use std::sync::Arc;

use konklave_process::ProcessId;
use konklave_process::topology::Shape;

use super::{Electorate, Voting};
use crate::mutex::coterie::Figures;
use crate::mutex::locking::Clocks;
use crate::mutex::maekawa::{Enough, Flaw, Rules};
use crate::mutex::{Mutex, hand_over};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, Setup,
    SetupError, Switch,
};

const SHARED_VOTES: Mistake = Mistake {
    name: "shared-votes",
    what: "a voter that is not inside itself votes for every request, as Ricart and Agrawala's replies \
           do: \"a simple majority is enough\"",
    breaks: "mutual exclusion",
    caught_by: "-n 3 --requests 1,1,0",
};
const HALF_IS_ENOUGH: Mistake = Mistake {
    name: "half-is-enough",
    what: "half of the votes is taken for a majority",
    breaks: "mutual exclusion",
    caught_by: "-n 2",
};
const NO_TOMBSTONE: Mistake = Mistake {
    name: "no-tombstone",
    what: "a voter ignores a release that arrives before its request, and then votes for a process that \
           has left",
    breaks: "quiescence",
    caught_by: "-n 3 --requests 1,1,0 --no-fifo",
};
const NO_DEADLOCK_HANDLING: Mistake = Mistake {
    name: "no-deadlock-handling",
    what: "no process relinquishes a vote: three processes with one vote each wait for ever",
    breaks: "deadlock",
    caught_by: "-n 3",
};

pub(super) const SHEET: DataSheet = DataSheet {
    name: "voting",
    title: "Majority voting",
    idea: "A process enters with more than half of all votes: any two majorities share a voter.",
    source: "R. H. Thomas, TODS 4(2), 1979; D. K. Gifford, SOSP 1979; \
             lecture \"Gegenseitiger Ausschluss\", improvements of Ricart–Agrawala",
    assumes: &[Assumption::Reliable, Assumption::NoCrash, Assumption::KnownMembership],
    topologies: &[Shape::Complete],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "2(n − 1) to 6(n − 1) + 3 per entry, n the number of voters",
            when: "always; 3(n − 1) if requests never meet",
            bound: |f| Some(messages(f)),
        },
        Cost {
            metric: Metric::SyncDelay,
            formula: "2T",
            when: hand_over::SETTLED,
            bound: |f| hand_over::settled(f, 2.0),
        },
        hand_over::UNSETTLED,
        Cost {
            metric: Metric::EntryDelay,
            formula: "2T",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(2.0 * t)),
        },
    ],
    guarantees: &[Guarantee::MutualExclusion, Guarantee::DeadlockFree, Guarantee::StarvationFree],
    fence: Some("the count of entries, known to a voter of each majority and written back"),
    mistakes: &[SHARED_VOTES, HALF_IS_ENOUGH, NO_TOMBSTONE, NO_DEADLOCK_HANDLING],
    switches: &[
        Switch {
            name: "votes",
            values: &["equal", "<text>"],
            what: "the votes of each process, in node order, as in 2,1,1; a process without a vote is not asked",
        },
        Switch {
            name: "failing",
            values: &["exact", "eager"],
            what: "when votes are relinquished: once the rest cannot be enough, or at the first refusal",
        },
        Clocks::SWITCH,
    ],
};

impl Algorithm for Voting {
    type Problem = Mutex;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let electorate = Electorate::of(setup).unwrap_or_else(|e| panic!("{e}"));
        let shared = *setup.makes(&SHARED_VOTES);
        let only_me: Arc<[ProcessId]> = [me].into();
        let flaws =
            [(&NO_TOMBSTONE, Flaw::NoTombstone), (&NO_DEADLOCK_HANDLING, Flaw::NoDeadlockHandling)];
        let rules = Rules {
            ask: electorate.voters.clone(),
            inform: if shared { only_me.clone() } else { electorate.voters.clone() },
            tree: None,
            informants: shared.then_some(only_me),
            enough: Enough::Votes {
                votes: electorate.votes.clone(),
                total: electorate.total,
                eager: setup.chosen(&SHEET, "failing").is("eager"),
                half: *setup.makes(&HALF_IS_ENOUGH),
            },
            sticky: false,
            clocks: Clocks::of(setup, &SHEET),
            flaw: Flaw::of(setup, &flaws),
        };
        Self::of(rules, &setup.down)
    }

    fn quorums(setup: &Setup) -> Vec<(&'static str, Figures)> {
        Electorate::of(setup).map_or_else(|_| Vec::new(), |all| all.figures(setup).into())
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        Electorate::of(setup).map(|_| ())
    }
}

/// As with quorums, the quorum being all voters; but a vote that comes too late is not given.
fn messages(facts: &Facts<'_>) -> Bound {
    let electorate = Electorate::of(facts.setup).expect("a run was set up right");
    let (mut remote, mut local) = (0.0, 0.0);
    for &(p, times) in facts.served {
        let own = f64::from(u8::from(electorate.votes[p] > 0));
        remote += times as f64 * (electorate.voters.len() as f64 - own);
        local += times as f64 * own;
    }
    if facts.uncontended {
        return Bound::Exactly(3.0 * remote);
    }
    Bound::Between(2.0 * remote, 6.0 * remote + 3.0 * local)
}
