//! Sanders's mutual exclusion by any information structure.
//!
//! Each process has a set of others that it must ask and a set of those that it must inform when it
//! leaves. An arbiter that grants a request keeps itself locked only if it will be informed. With
//! the right sets this is a coordinator, or Ricart and Agrawala's algorithm, or Maekawa's, or
//! something between them. What happens is told in `locking.rs`.

mod structure;

use std::sync::Arc;

use konklave_process::topology::Shape;
use konklave_process::{Context, NoRecord, NoTimer, Process, ProcessId};
use serde::Serialize;

pub use self::structure::Structure;
use super::coterie::Figures;
pub use super::locking::Message;
use super::locking::{Clocks, Enough, Flaw, Node, Rules};
use super::{Indication, Mutex, Request, hand_over};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, Setup,
    SetupError, Switch,
};

const NO_DEADLOCK_HANDLING: Mistake = Mistake {
    name: "no-deadlock-handling",
    what: "nobody ever gives a lock back, as in the basic form on the slides",
    breaks: "deadlock",
    caught_by: "-n 4",
};
const NO_DISPLACED_FAILED: Mistake = Mistake {
    name: "no-displaced-failed",
    what: "deadlocks are handled as in Maekawa's paper: a request that an older one displaces from \
           the head of a queue is not told to wait",
    breaks: "deadlock",
    caught_by: "-n 4",
};
const YIELD_FORGOTTEN: Mistake = Mistake {
    name: "yield-forgotten",
    what: "who gave a lock back does not count it as missing when the next one inquires",
    breaks: "deadlock",
    caught_by: "-n 4",
};
const INFORM_UNASKED: Mistake = Mistake {
    name: "inform-unasked",
    what: "the slides' condition alone: a process may inform one that it does not ask",
    breaks: "mutual exclusion",
    caught_by: "-n 3 --set structure=0:0/0,2+1:1/1,2+2:2 --requests 1,1,0",
};

const SHEET: DataSheet = DataSheet {
    name: "sanders",
    title: "Sanders",
    idea: "Say whom each asks and whom it informs, and get an algorithm: one for all of a kind.",
    source: "B. Sanders, TOCS 5(3), 1987; lecture \"Quorumbasierte Algorithmen\"",
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
    fence: Some("the count of entries, known to whom two in a row both ask"),
    mistakes: &[NO_DEADLOCK_HANDLING, NO_DISPLACED_FAILED, YIELD_FORGOTTEN, INFORM_UNASKED],
    switches: &[
        Switch {
            name: "structure",
            values: &["new", "central", "ricart-agrawala", "lamport", "maekawa", "<text>"],
            what: "whom each asks and informs; a text lists both by id, as in \
                   0:0,1/0;1:0,1/1;2:0,1,2, where 2 informs all whom it asks (+ will do for ;)",
        },
        Clocks::SWITCH,
    ],
};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(transparent)]
pub struct Sanders(Node);

fn messages(facts: &Facts<'_>) -> Bound {
    let structure = structure(facts.setup).expect("a run was set up right");
    let sum = |cost: &dyn Fn(ProcessId) -> usize| -> f64 {
        facts.served.iter().map(|&(p, times)| times as f64 * cost(p) as f64).sum()
    };
    let least = sum(&|p| structure.least_messages(p));
    let most = sum(&|p| structure.most_messages(p));
    if facts.uncontended { Bound::Exactly(least) } else { Bound::Between(least, most) }
}

/// Whether all who were served inform only themselves.
fn informs_nobody(facts: &Facts<'_>) -> bool {
    let structure = structure(facts.setup).expect("a run was set up right");
    let mut served = facts.served.iter().filter(|(_, times)| *times > 0);
    served.all(|(p, _)| structure.inform(*p).iter().all(|q| q == p))
}

fn structure(setup: &Setup) -> Result<Arc<Structure>, SetupError> {
    let careless = *setup.makes(&INFORM_UNASKED);
    Structure::named(setup.chosen(&SHEET, "structure").0, setup, careless)
}

impl Process for Sanders {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        self.0.on_request(request, ctx);
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        self.0.on_message(from, message, ctx);
    }

    fn stamp(&self) -> u64 {
        self.0.stamp()
    }

    fn on_stamp(&mut self, _from: ProcessId, stamp: u64) {
        self.0.on_stamp(stamp);
    }

    fn at_rest(&self) -> bool {
        self.0.at_rest()
    }
}

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
        Self(Node::new(rules, &[]))
    }

    fn quorums(setup: &Setup) -> Vec<(&'static str, Figures)> {
        structure(setup).map_or_else(|_| Vec::new(), |structure| structure.figures().into())
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        structure(setup).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use konklave_process::{Group, Topology};
    use konklave_testkit::{Bench, send, tell};

    use super::*;
    use crate::mutex::Fence;

    fn bench(me: u32) -> Bench<Sanders> {
        let group = Group::of(4);
        let mut setup = Setup::new(group.clone(), Topology::complete(4));
        setup.chosen.insert("clock", "requests".into());
        Bench::new(Sanders::new(ProcessId(me), &setup), ProcessId(me), &group)
    }

    #[test]
    fn an_arbiter_stays_free_for_one_who_will_not_inform_it() {
        let mut p0 = bench(0);
        // 1 does not inform 0, so 2 is granted, too; 2 does, so 3 has to wait.
        let locked = |p| [send(p, Message::Locked { request: 1, turn: 0, entries: 0, clock: 0 })];
        assert_eq!(p0.hear(1, Message::Request { time: 1 }), locked(1));
        assert!(p0.process.at_rest());
        assert_eq!(p0.hear(2, Message::Request { time: 1 }), locked(2));
        let waits = [send(3, Message::Failed { request: 1, clock: 0 })];
        assert_eq!(p0.hear(3, Message::Request { time: 1 }), waits);
    }

    #[test]
    fn a_free_arbiter_grants_until_it_is_locked() {
        let mut p0 = bench(0);
        p0.hear(2, Message::Request { time: 1 });
        p0.hear(1, Message::Request { time: 4 });
        p0.hear(3, Message::Request { time: 5 });
        let release = Message::Release { request: 1, entries: 1, clock: 0 };
        let both = [(1, 4), (3, 5)].map(|(p, request)| {
            send(p, Message::Locked { request, turn: 0, entries: 1, clock: 0 })
        });
        assert_eq!(p0.hear(2, release), both);
    }

    #[test]
    fn one_is_asked_and_not_informed() {
        let mut p0 = bench(0);
        assert_eq!(p0.ask(Request::Acquire), [send(1, Message::Request { time: 1 })]);
        let granted = tell(Indication::Granted { fence: Some(Fence(0, 1)) });
        assert_eq!(
            p0.hear(1, Message::Locked { request: 1, turn: 0, entries: 0, clock: 0 }),
            [granted]
        );
        // What was held back goes out at once.
        p0.hear(1, Message::Request { time: 2 });
        let locked = [send(1, Message::Locked { request: 2, turn: 0, entries: 1, clock: 0 })];
        assert_eq!(p0.ask(Request::Release), locked);
    }
}
