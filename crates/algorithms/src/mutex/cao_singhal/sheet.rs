//! The data sheet of Cao–Singhal: assumptions, costs, guarantees and mistakes.

use std::sync::Arc;

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, LamportClock, ProcessId};

use super::CaoSinghal;
use super::arbiter::Arbiter;
use super::requester::Requester;
use super::rules::{Flaw, Rules, Transfers};
use crate::mutex::coterie::{Coterie, Figures};
use crate::mutex::locking::Clocks;
use crate::mutex::{Mutex, hand_over};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, ProcessSets,
    Setup, SetupError, Switch,
};

pub(super) const TIMESTAMPS_ONLY: Mistake = Mistake {
    name: "timestamps-only",
    what: "a lock is named by the time of its request, not by a number of its own: an old transfer \
           is taken for one of the second lock",
    breaks: "quiescence",
    caught_by: "-n 5 --set quorums=0:3,4+1:3,4+2:3,4 --requests 1,1,1,0,0",
};
pub(super) const KEEP_TRANSFERS: Mistake = Mistake {
    name: "keep-transfers",
    what: "the same, and a process that relinquishes a lock remembers where to pass it on",
    breaks: "deadlock",
    caught_by: "-n 5 --set quorums=0:3,4+1:3,4+2:3,4 --requests 1,1,1,0,0 --property deadlock",
};
pub(super) const NO_RELEASE_BUFFER: Mistake = Mistake {
    name: "no-release-buffer",
    what: "an arbiter ignores the release of a process that got its lock from another one, if that release arrives \
           before the other's",
    breaks: "deadlock",
    caught_by: "-n 5 --set quorums=0:3,4+1:3,4+2:3 --requests 1,1,1,0,0 --property deadlock",
};
pub(super) const DROP_EARLY_INQUIRE: Mistake = Mistake {
    name: "drop-early-inquire",
    what: "an inquiry for a lock that is still on its way is ignored",
    breaks: "deadlock",
    caught_by: "-n 5 --set quorums=0:3,4+1:3,4+2:3 --requests 1,1,1,0,0",
};
pub(super) const NO_INQUIRE_AFTER_FORWARD: Mistake = Mistake {
    name: "no-inquire-after-forward",
    what: "an arbiter whose lock was passed on to a younger request does not inquire",
    breaks: "deadlock",
    caught_by: "-n 5 --set quorums=0:3,4+1:3,4+2:3 --requests 1,1,1,0,0",
};
pub(super) const NO_DISPLACED_FAILED: Mistake = Mistake {
    name: "no-displaced-failed",
    what: "a request that an older one displaces from the head of a queue is not told to wait",
    breaks: "deadlock",
    caught_by: "-n 6 --set quorums=0:4,5+1:4+2:4,5+3:4 --requests 1,1,1,1,0,0",
};

pub(super) const SHEET: DataSheet = DataSheet {
    name: "cao-singhal",
    title: "Cao–Singhal",
    idea: "Maekawa's quorums, but a holder passes its locks on to the next holder directly, without the way through \
           the arbiter.",
    source: "G. Cao, M. Singhal, ICDCS 1998 and TPDS 12(12), 2001; \
             lecture \"Gegenseitiger Ausschluss\" 5.4",
    assumes: &[Assumption::Reliable, Assumption::NoCrash, Assumption::KnownMembership],
    topologies: &[Shape::Complete],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "3(K − 1) to 8(K − 1) + 5 per entry, K the size of the quorum",
            when: "always; 3(K − 1) if requests never meet, about 5(K − 1) under load",
            bound: |f| Some(messages(f)),
        },
        Cost {
            metric: Metric::SyncDelay,
            formula: "T",
            when: hand_over::SETTLED,
            bound: |f| hand_over::settled(f, 1.0),
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
    fence: Some("the count of entries, which travels with the locks"),
    mistakes: &[
        TIMESTAMPS_ONLY,
        KEEP_TRANSFERS,
        NO_RELEASE_BUFFER,
        DROP_EARLY_INQUIRE,
        NO_INQUIRE_AFTER_FORWARD,
        NO_DISPLACED_FAILED,
    ],
    switches: &[
        Switch {
            name: "quorums",
            values: &["grid", "plane", "majority", "tree", "13", "<text>"],
            what: "how quorums are built; a text is weighted:2,1,1 or wall:1,2,3, or lists them \
                   by id, as in 0:3,4;1:3,4;2:3 (+ stands for ;)",
        },
        Switch {
            name: "transfers",
            values: &["strongest", "last", "prompt"],
            what: "the request that a lock is passed on to: the oldest announced, the last announced, or none \
                   announced before the lock arrived",
        },
        Clocks::SWITCH,
    ],
};

impl Inspect for CaoSinghal {
    fn stamp(&self) -> u64 {
        self.clock.now().into()
    }

    fn on_stamp(&mut self, _from: ProcessId, stamp: u64) {
        self.clock.witness(u32::try_from(stamp).unwrap_or(u32::MAX));
    }

    fn at_rest(&self) -> bool {
        self.requester.at_rest() && self.arbiter.at_rest()
    }
}

impl Algorithm for CaoSinghal {
    type Problem = Mutex;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let coterie = quorums(setup).unwrap_or_else(|e| panic!("{e}"));
        let flaws = [
            (&TIMESTAMPS_ONLY, Flaw::TimestampsOnly),
            (&KEEP_TRANSFERS, Flaw::KeepTransfers),
            (&NO_RELEASE_BUFFER, Flaw::NoReleaseBuffer),
            (&DROP_EARLY_INQUIRE, Flaw::DropEarlyInquire),
            (&NO_INQUIRE_AFTER_FORWARD, Flaw::NoInquireAfterForward),
            (&NO_DISPLACED_FAILED, Flaw::NoDisplacedFailed),
        ];
        let made = flaws.iter().find(|(mistake, _)| *setup.makes(mistake));
        let rules = Rules {
            quorum: coterie.quorum(me).clone(),
            transfers: match setup.chosen(&SHEET, "transfers").0 {
                "last" => Transfers::Last,
                "prompt" => Transfers::Prompt,
                _ => Transfers::Strongest,
            },
            clocks: Clocks::of(setup, &SHEET),
            flaw: made.map(|(_, flaw)| *flaw),
        };
        Self {
            clock: LamportClock::default(),
            entries: 0,
            requester: Requester::default(),
            arbiter: Arbiter::default(),
            rules: Fixed(Arc::new(rules)),
        }
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

/// A request costs 3 for each other member of the quorum: request, lock, release. Besides, at each
/// member it is announced to the holder; it may fail; for its sake a lock may be given back and be
/// given a second time; and once it has passed its lock on, the next one is announced anew. At its
/// own arbiter, what it tells itself is free.
pub(super) fn messages(facts: &Facts<'_>) -> Bound {
    let coterie = quorums(facts.setup).expect("a run was set up right");
    let (mut least, mut most) = (0.0, 0.0);
    for &(p, times) in facts.served {
        let others = coterie.others(p) as f64;
        let own = (coterie.quorum(p).len() - coterie.others(p)) as f64;
        least += times as f64 * 3.0 * others;
        most += times as f64 * (8.0 * others + 5.0 * own);
    }
    if facts.uncontended { Bound::Exactly(least) } else { Bound::Between(least, most) }
}

pub(super) fn quorums(setup: &Setup) -> Result<Arc<Coterie>, SetupError> {
    Coterie::named(setup.chosen(&SHEET, "quorums").0, setup)
}
