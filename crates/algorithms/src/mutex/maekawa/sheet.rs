//! The data sheet of Maekawa: assumptions, costs, guarantees and mistakes.

use konklave_process::ProcessId;
use konklave_process::topology::Shape;

use super::{Enough, Flaw, Maekawa, Rules};
use crate::mutex::coterie::{Coterie, Figures};
use crate::mutex::locking::Clocks;
use crate::mutex::{Mutex, hand_over};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, ProcessSets,
    Setup, SetupError, Switch,
};

pub(super) const NO_DISPLACED_FAILED: Mistake = Mistake {
    name: "no-displaced-failed",
    what: "a request that an older one displaces from the head of a queue is not told to wait, as \
           in the paper; Sanders found it",
    breaks: "deadlock",
    caught_by: "-n 5 --set quorums=0:3,4+1:3,4+2:3 --requests 1,1,1,0,0",
};
const YIELD_FORGOTTEN: Mistake = Mistake {
    name: "yield-forgotten",
    what: "a process that relinquished a lock does not count it as missing when the next inquiry arrives",
    breaks: "deadlock",
    caught_by: "-n 5 --set quorums=0:3,4+1:3,4+2:3,4 --requests 1,1,1,0,0",
};
const AS_PRINTED: Mistake = Mistake {
    name: "as-printed",
    what: "messages do not name their request, and a process notes every inquiry, as on the slides: an \
           inquiry for the last request takes a lock from the next one",
    breaks: "mutual exclusion",
    caught_by: "-n 5 --set quorums=0:3,4+1:3,4+2:3 --requests 1,1,2,0,0 --property exclusion",
};
const UNSTAMPED_NO_YIELD_HELD: Mistake = Mistake {
    name: "unstamped-no-yield-held",
    what: "the same, but an inquiry that finds its process inside is ignored",
    breaks: "mutual exclusion",
    caught_by: "-n 5 --set quorums=0:3,4+1:3,4+2:3 --requests 1,1,2,0,0 --property exclusion",
};
const DROP_EARLY_INQUIRE: Mistake = Mistake {
    name: "drop-early-inquire",
    what: "the same, but an inquiry for a lock that the process does not have is ignored: right only if \
           messages keep their order",
    breaks: "deadlock",
    caught_by: "-n 5 --set quorums=0:3,4+1:3,4+2:3 --requests 1,1,1,0,0 --no-fifo",
};
const NO_DEADLOCK_HANDLING: Mistake = Mistake {
    name: "no-deadlock-handling",
    what: "no process relinquishes a lock",
    breaks: "deadlock",
    caught_by: "-n 3 --set quorums=plane",
};
const UNCOUNTED_RETURNS: Mistake = Mistake {
    name: "uncounted-returns",
    what: "a lock that was relinquished and came again has the same name as before: the copy of a \
           message about the first is taken for one about the second",
    breaks: "mutual exclusion",
    caught_by: "-n 5 --set quorums=0:3+1:3,4+2:3,4 --requests 1,1,1,0,0 --duplicate 1 --no-fifo",
};

const SHEET: DataSheet = DataSheet {
    name: "maekawa",
    title: "Maekawa",
    idea: "A process asks a quorum instead of all: any two quorums share a member, which decides.",
    source: "M. Maekawa, TOCS 3(2), 1985; B. Sanders, TOCS 5(3), 1987; \
             lecture \"Gegenseitiger Ausschluss\" 5.4",
    assumes: &[Assumption::Reliable, Assumption::NoCrash, Assumption::KnownMembership],
    topologies: &[Shape::Complete],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "3(K − 1) to 6(K − 1) + 3 per entry, K the size of the quorum",
            when: "always; 3(K − 1) if requests never meet",
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
    fence: Some("the count of entries, known to an arbiter of each quorum and written back"),
    mistakes: &[
        NO_DISPLACED_FAILED,
        YIELD_FORGOTTEN,
        AS_PRINTED,
        UNSTAMPED_NO_YIELD_HELD,
        DROP_EARLY_INQUIRE,
        NO_DEADLOCK_HANDLING,
        UNCOUNTED_RETURNS,
    ],
    switches: &[
        Switch {
            name: "quorums",
            values: &["grid", "plane", "majority", "tree", "13", "<text>"],
            what: "how quorums are built; a text is weighted:2,1,1 or wall:1,2,3, or lists them \
                   by id, as in 0:3,4;1:3,4;2:3 (+ stands for ;)",
        },
        Switch {
            name: "failed",
            values: &["until-locked", "for-good"],
            what: "time for which a failure counts: the longer, the more locks are relinquished",
        },
        Clocks::SWITCH,
    ],
};

impl Algorithm for Maekawa {
    type Problem = Mutex;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let coterie = quorums(setup).unwrap_or_else(|e| panic!("{e}"));
        let quorum = coterie.quorum(me).clone();
        let flaws = [
            (&NO_DISPLACED_FAILED, Flaw::NoDisplacedFailed),
            (&YIELD_FORGOTTEN, Flaw::YieldForgotten),
            (&AS_PRINTED, Flaw::AsPrinted),
            (&UNSTAMPED_NO_YIELD_HELD, Flaw::UnstampedNoYieldHeld),
            (&DROP_EARLY_INQUIRE, Flaw::DropEarlyInquire),
            (&NO_DEADLOCK_HANDLING, Flaw::NoDeadlockHandling),
            (&UNCOUNTED_RETURNS, Flaw::UncountedReturns),
        ];
        let rules = Rules {
            ask: quorum.clone(),
            inform: quorum,
            tree: setup.chosen(&SHEET, "quorums").is("tree").then(|| setup.group.clone()),
            informants: None,
            enough: Enough::All,
            sticky: setup.chosen(&SHEET, "failed").is("for-good"),
            clocks: Clocks::of(setup, &SHEET),
            flaw: Flaw::of(setup, &flaws),
        };
        let down = if rules.tree.is_some() { &*setup.down } else { &[] };
        Self::of(rules, down)
    }

    fn quorums(setup: &Setup) -> Vec<(&'static str, Figures)> {
        quorums(setup).map(|coterie| ("quorums", coterie.figures())).into_iter().collect()
    }

    fn process_sets(setup: &Setup) -> Vec<ProcessSets> {
        let Ok(coterie) = quorums(setup) else { return Vec::new() };
        vec![ProcessSets::of("S", "asks", setup, |p| coterie.quorum(p).iter())]
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        quorums(setup).map(|_| ())
    }
}

/// A request costs 3 messages for each other member of the quorum: request, lock, release. Besides, at each member it
/// fails, or lets another request fail, or takes a lock from another: inquiry, relinquishment, and a second lock later.
/// At its own arbiter only the last costs messages.
fn messages(facts: &Facts<'_>) -> Bound {
    let coterie = quorums(facts.setup).expect("a run was set up right");
    let (mut least, mut most) = (0.0, 0.0);
    for &(p, times) in facts.served {
        let others = coterie.others(p) as f64;
        let own = (coterie.quorum(p).len() - coterie.others(p)) as f64;
        least += times as f64 * 3.0 * others;
        most += times as f64 * (6.0 * others + 3.0 * own);
    }
    if facts.uncontended { Bound::Exactly(least) } else { Bound::Between(least, most) }
}

fn quorums(setup: &Setup) -> Result<std::sync::Arc<Coterie>, SetupError> {
    Coterie::named(setup.chosen(&SHEET, "quorums").0, setup)
}
