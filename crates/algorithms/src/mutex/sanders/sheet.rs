//! The data sheet of Sanders: assumptions, costs, guarantees and mistakes.

use std::sync::Arc;

use konklave_process::ProcessId;
use konklave_process::topology::Shape;

use super::{Sanders, Structure};
use crate::mutex::coterie::Figures;
use crate::mutex::locking::Clocks;
use crate::mutex::maekawa::{Enough, Flaw, Rules};
use crate::mutex::{Mutex, hand_over};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, ProcessSets,
    Setup, SetupError, Switch,
};

pub(super) const NO_DEADLOCK_HANDLING: Mistake = Mistake {
    name: "no-deadlock-handling",
    what: "no process relinquishes a lock, as in the basic form on the slides",
    breaks: "deadlock",
    caught_by: "-n 4",
};
pub(super) const NO_DISPLACED_FAILED: Mistake = Mistake {
    name: "no-displaced-failed",
    what: "deadlocks are handled as in Maekawa's paper: a request that an older one displaces from \
           the head of a queue is not told to wait",
    breaks: "deadlock",
    caught_by: "-n 4",
};
pub(super) const YIELD_FORGOTTEN: Mistake = Mistake {
    name: "yield-forgotten",
    what: "a process that relinquished a lock does not count it as missing when the next inquiry arrives",
    breaks: "deadlock",
    caught_by: "-n 4",
};
pub(super) const INFORM_UNASKED: Mistake = Mistake {
    name: "inform-unasked",
    what: "the slides' condition alone: a process may inform a process that it does not ask",
    breaks: "mutual exclusion",
    caught_by: "-n 3 --set structure=0:0/0,2+1:1/1,2+2:2 --requests 1,1,0",
};

pub(super) const SHEET: DataSheet = DataSheet {
    name: "sanders",
    title: "Sanders",
    idea: "For each process, one set of arbiters to ask and one to inform: each choice of the sets is an algorithm.",
    source: "B. Sanders, TOCS 5(3), 1987; lecture \"Gegenseitiger Ausschluss\" 5.4",
    assumes: &[Assumption::Reliable, Assumption::NoCrash, Assumption::KnownMembership],
    topologies: &[Shape::Complete],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "|I − i| + 2|R − i| to that + Σ D per entry, D = 1 or 4 for each of R",
            when: "always; the least if requests never meet",
            bound: |f| Some(messages(f)),
        },
        Cost {
            metric: Metric::SyncDelay,
            formula: "T if the one that leaves informs only itself, else 2T",
            when: hand_over::SETTLED,
            bound: |f| hand_over::settled(f, if informs_nobody(f) { 1.0 } else { 2.0 }),
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
    fence: Some(
        "the count of entries, known to an arbiter that two successive requesters both ask",
    ),
    mistakes: &[NO_DEADLOCK_HANDLING, NO_DISPLACED_FAILED, YIELD_FORGOTTEN, INFORM_UNASKED],
    switches: &[
        Switch {
            name: "structure",
            values: &["new", "central", "ricart-agrawala", "lamport", "maekawa", "<text>"],
            what: "the sets to ask and to inform; a text lists both by id, as in \
                   0:0,1/0;1:0,1/1;2:0,1,2, where 2 informs all arbiters that it asks (+ stands for ;)",
        },
        Clocks::SWITCH,
    ],
};

impl Algorithm for Sanders {
    type Problem = Mutex;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let structure = structure(setup).unwrap_or_else(|e| panic!("{e}"));
        let flaws = [
            (&NO_DEADLOCK_HANDLING, Flaw::NoDeadlockHandling),
            (&NO_DISPLACED_FAILED, Flaw::NoDisplacedFailed),
            (&YIELD_FORGOTTEN, Flaw::YieldForgotten),
        ];
        let rules = Rules {
            ask: structure.ask(me).clone(),
            inform: structure.inform(me).clone(),
            tree: None,
            informants: Some(structure.informants(me).clone()),
            enough: Enough::All,
            sticky: false,
            clocks: Clocks::of(setup, &SHEET),
            flaw: Flaw::of(setup, &flaws),
        };
        Self::of(rules, &[])
    }

    fn quorums(setup: &Setup) -> Vec<(&'static str, Figures)> {
        structure(setup).map_or_else(|_| Vec::new(), |structure| structure.figures().into())
    }

    fn process_sets(setup: &Setup) -> Vec<ProcessSets> {
        let Ok(structure) = structure(setup) else { return Vec::new() };
        vec![
            ProcessSets::of("R", "asks", setup, |p| structure.ask(p).iter()),
            ProcessSets::of("I", "informs", setup, |p| structure.inform(p).iter()),
        ]
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        structure(setup).map(|_| ())
    }
}

pub(super) fn messages(facts: &Facts<'_>) -> Bound {
    let structure = structure(facts.setup).expect("a run was set up right");
    let sum = |cost: &dyn Fn(ProcessId) -> usize| -> f64 {
        facts.served.iter().map(|&(p, times)| times as f64 * cost(p) as f64).sum()
    };
    let least = sum(&|p| structure.least_messages(p));
    let most = sum(&|p| structure.most_messages(p));
    if facts.uncontended { Bound::Exactly(least) } else { Bound::Between(least, most) }
}

/// Whether all served processes inform only themselves.
pub(super) fn informs_nobody(facts: &Facts<'_>) -> bool {
    let structure = structure(facts.setup).expect("a run was set up right");
    let mut served = facts.served.iter().filter(|(_, times)| *times > 0);
    served.all(|(p, _)| structure.inform(*p).iter().all(|q| q == p))
}

pub(super) fn structure(setup: &Setup) -> Result<Arc<Structure>, SetupError> {
    let careless = *setup.makes(&INFORM_UNASKED);
    Structure::named(setup.chosen(&SHEET, "structure").0, setup, careless)
}
