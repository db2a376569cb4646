//! Maekawa's mutual exclusion by quorums.
//!
//! To enter, a process needs the locks of its quorum only, some √n processes. Any two quorums have
//! a member in common, and that one locks itself for one of both at a time. As the paper has it,
//! the algorithm can deadlock; this is the version that Sanders corrected, with every message
//! stamped by the request it is about. What happens is told in `locking.rs`.

use konklave_process::topology::Shape;
use konklave_process::{Context, NoRecord, NoTimer, Process, ProcessId};
use serde::Serialize;

use super::coterie::{Coterie, Figures};
pub use super::locking::Message;
use super::locking::{Clocks, Enough, Flaw, Node, Rules};
use super::{Indication, Mutex, Request, hand_over};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, Setup,
    SetupError, Switch,
};

const NO_DISPLACED_FAILED: Mistake = Mistake {
    name: "no-displaced-failed",
    what: "a request that an older one displaces from the head of a queue is not told to wait, as \
           in the paper; Sanders found it",
    breaks: "deadlock",
    caught_by: "-n 5 --set quorums=0:3,4+1:3,4+2:3 --requests 1,1,1,0,0",
};
const YIELD_FORGOTTEN: Mistake = Mistake {
    name: "yield-forgotten",
    what: "who gave a lock back does not count it as missing when the next one inquires",
    breaks: "deadlock",
    caught_by: "-n 5 --set quorums=0:3,4+1:3,4+2:3,4 --requests 1,1,1,0,0",
};
const AS_PRINTED: Mistake = Mistake {
    name: "as-printed",
    what: "messages do not say which request they are about, and every inquiry is noted, as the \
           slides have it: an old one gives away a lock of the next request",
    breaks: "mutual exclusion",
    caught_by: "-n 5 --set quorums=0:3,4+1:3,4+2:3 --requests 1,1,2,0,0 --property exclusion",
};
const UNSTAMPED_NO_YIELD_HELD: Mistake = Mistake {
    name: "unstamped-no-yield-held",
    what: "the same, but an inquiry that finds us inside is ignored",
    breaks: "mutual exclusion",
    caught_by: "-n 5 --set quorums=0:3,4+1:3,4+2:3 --requests 1,1,2,0,0 --property exclusion",
};
const DROP_EARLY_INQUIRE: Mistake = Mistake {
    name: "drop-early-inquire",
    what: "the same, but an inquiry for a lock that we do not have is ignored: right only if \
           messages keep their order",
    breaks: "deadlock",
    caught_by: "-n 5 --set quorums=0:3,4+1:3,4+2:3 --requests 1,1,1,0,0 --no-fifo",
};
const NO_DEADLOCK_HANDLING: Mistake = Mistake {
    name: "no-deadlock-handling",
    what: "nobody ever gives a lock back",
    breaks: "deadlock",
    caught_by: "-n 3 --set quorums=plane",
};
const UNCOUNTED_RETURNS: Mistake = Mistake {
    name: "uncounted-returns",
    what: "a lock that was given back and came again has the same name as before: the copy of a \
           message about the one is taken for the other",
    breaks: "mutual exclusion",
    caught_by: "-n 5 --set quorums=0:3+1:3,4+2:3,4 --requests 1,1,1,0,0 --duplicate 1 --no-fifo",
};

const SHEET: DataSheet = DataSheet {
    name: "maekawa",
    title: "Maekawa",
    idea: "Ask a quorum instead of all: any two quorums share a member, who decides.",
    source: "M. Maekawa, TOCS 3(2), 1985; B. Sanders, TOCS 5(3), 1987; \
             lecture \"Quorumbasierte Algorithmen\"",
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
                   by id, as in 0:3,4;1:3,4;2:3 (+ will do for ;)",
        },
        Switch {
            name: "failed",
            values: &["until-locked", "for-good"],
            what: "for how long a failure counts: the longer, the more locks are given back",
        },
        Clocks::SWITCH,
    ],
};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(transparent)]
pub struct Maekawa(Node);

/// A request costs 3 for each other member of the quorum: request, lock, release. Besides, at each
/// member it fails, or it has another fail, or it takes a lock from another: inquiry, return, and
/// that one's second lock. At its own arbiter only the last costs anything.
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

impl Process for Maekawa {
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

    fn on_suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        if self.0.finds_ways_around() {
            self.0.on_suspect(peer, ctx);
        }
    }

    fn on_trust(&mut self, peer: ProcessId, _ctx: &mut Context<'_, Self>) {
        self.0.on_trust(peer);
    }

    fn stamp(&self) -> u64 {
        self.0.stamp()
    }

    fn on_stamp(&mut self, _from: ProcessId, stamp: u64) {
        self.0.on_stamp(stamp);
    }

    #[inline]
    fn call_up(&self) {
        self.0.call_up();
    }

    fn at_rest(&self) -> bool {
        self.0.at_rest()
    }
}

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
        Self(Node::new(rules, down))
    }

    fn quorums(setup: &Setup) -> Vec<(&'static str, Figures)> {
        quorums(setup).map(|coterie| ("quorums", coterie.figures())).into_iter().collect()
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        quorums(setup).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use konklave_process::{Effect, Group, Topology};
    use konklave_testkit::{Bench, send, tell};

    use super::*;
    use crate::mutex::Fence;

    /// Process 0 asks 0 and 1; it is an arbiter of all.
    fn bench(mistake: Option<&'static str>) -> Bench<Maekawa> {
        bench_with("requests", mistake)
    }

    fn bench_with(clock: &str, mistake: Option<&'static str>) -> Bench<Maekawa> {
        let group = Group::of(4);
        let mut setup = Setup::new(group.clone(), Topology::complete(4));
        setup.chosen.insert("quorums", "0:0,1;1:0;2:0;3:0".into());
        setup.mistake = mistake;
        setup.chosen.insert("clock", clock.into());
        Bench::new(Maekawa::new(ProcessId(0), &setup), ProcessId(0), &group)
    }

    fn locked(to: u32, request: u32) -> Effect<Maekawa> {
        send(to, Message::Locked { request, turn: 0, entries: 0, clock: 0 })
    }

    #[test]
    fn an_arbiter_locks_itself_for_one_request_and_has_younger_ones_wait() {
        let mut p0 = bench(None);
        assert_eq!(p0.hear(1, Message::Request { time: 1 }), [locked(1, 1)]);
        let waits = send(2, Message::Failed { request: 1, clock: 0 });
        assert_eq!(p0.hear(2, Message::Request { time: 1 }), [waits]);
        assert!(!p0.process.at_rest());
        let after = Message::Release { request: 1, entries: 7, clock: 0 };
        let next = send(2, Message::Locked { request: 1, turn: 0, entries: 7, clock: 0 });
        assert_eq!(p0.hear(1, after), [next]);
        assert_eq!(p0.hear(2, Message::Release { request: 1, entries: 8, clock: 0 }), []);
        assert!(p0.process.at_rest());
    }

    #[test]
    fn for_older_requests_an_arbiter_inquires_once_and_has_whom_they_displace_fail() {
        let mut p0 = bench(None);
        p0.hear(3, Message::Request { time: 5 });
        let inquire = send(3, Message::Inquire { request: 5, clock: 0 });
        assert_eq!(p0.hear(2, Message::Request { time: 4 }), [inquire]);
        let displaced = send(2, Message::Failed { request: 4, clock: 0 });
        assert_eq!(p0.hear(1, Message::Request { time: 4 }), [displaced]);
        assert_eq!(
            p0.hear(3, Message::Relinquish { request: 5, turn: 0, clock: 0 }),
            [locked(1, 4)]
        );
        // An old answer is none.
        assert_eq!(p0.hear(3, Message::Relinquish { request: 5, turn: 0, clock: 0 }), []);
        let mut flawed = bench(Some(NO_DISPLACED_FAILED.name));
        flawed.hear(3, Message::Request { time: 5 });
        flawed.hear(2, Message::Request { time: 4 });
        assert_eq!(flawed.hear(1, Message::Request { time: 4 }), []);
    }

    #[test]
    fn with_all_locks_it_enters_with_the_next_number_and_writes_it_back() {
        let mut p0 = bench(None);
        let asks = send(1, Message::Request { time: 1 });
        assert_eq!(p0.ask(Request::Acquire), [asks]);
        let granted = tell(Indication::Granted { fence: Some(Fence(0, 5)) });
        assert_eq!(
            p0.hear(1, Message::Locked { request: 1, turn: 0, entries: 4, clock: 0 }),
            [granted]
        );
        let leaves = send(1, Message::Release { request: 1, entries: 5, clock: 0 });
        assert_eq!(p0.ask(Request::Release), [leaves]);
        assert!(p0.process.at_rest());
    }

    #[test]
    fn who_has_to_wait_gives_a_lock_back_and_counts_it_as_missing() {
        let mut p0 = bench(None);
        p0.hear(2, Message::Request { time: 1 });
        // Its own arbiter is locked for 2, whose request is older.
        p0.ask(Request::Acquire);
        assert_eq!(p0.hear(1, Message::Inquire { request: 2, clock: 0 }), []);
        let back = |turn| [send(1, Message::Relinquish { request: 2, turn, clock: 0 })];
        let lock = |turn| Message::Locked { request: 2, turn, entries: 0, clock: 0 };
        assert_eq!(p0.hear(1, lock(0)), back(0));
        // The copy of a lock that it gave back is none.
        assert_eq!(p0.hear(1, lock(0)), []);
        assert_eq!(p0.clone().hear(1, Message::Inquire { request: 2, clock: 0 }), []);
        assert_eq!(p0.hear(1, lock(1)), []);
        assert_eq!(p0.hear(1, Message::Inquire { request: 2, clock: 0 }), back(1));
    }

    #[test]
    fn an_arbiter_that_took_a_copy_for_a_request_is_told_that_it_is_over() {
        let mut p0 = bench(None);
        p0.ask(Request::Acquire);
        let lock = Message::Locked { request: 1, turn: 0, entries: 0, clock: 0 };
        p0.hear(1, lock);
        assert_eq!(p0.hear(1, lock), []);
        let release = send(1, Message::Release { request: 1, entries: 1, clock: 0 });
        assert_eq!(p0.ask(Request::Release), std::slice::from_ref(&release));
        assert_eq!(p0.hear(1, lock), [release]);
    }

    #[test]
    fn the_copy_of_a_return_does_not_give_the_next_lock_back() {
        let mut p0 = bench(None);
        p0.hear(3, Message::Request { time: 5 });
        p0.hear(2, Message::Request { time: 4 });
        let back = Message::Relinquish { request: 5, turn: 0, clock: 0 };
        assert_eq!(p0.hear(3, back), [locked(2, 4)]);
        let again = Message::Locked { request: 5, turn: 1, entries: 1, clock: 0 };
        let release = Message::Release { request: 4, entries: 1, clock: 0 };
        assert_eq!(p0.hear(2, release), [send(3, again)]);
        p0.hear(1, Message::Request { time: 4 });
        assert_eq!(p0.hear(3, back), []);
    }

    #[test]
    fn what_is_about_an_earlier_request_is_ignored() {
        let mut p0 = bench(None);
        p0.ask(Request::Acquire);
        p0.hear(1, Message::Locked { request: 1, turn: 0, entries: 0, clock: 0 });
        assert_eq!(p0.hear(1, Message::Inquire { request: 1, clock: 0 }), []);
        p0.ask(Request::Release);
        p0.ask(Request::Acquire);
        for old in
            [Message::Inquire { request: 1, clock: 0 }, Message::Failed { request: 1, clock: 0 }]
        {
            let before = p0.process.clone();
            assert_eq!(p0.hear(1, old), []);
            assert_eq!(p0.process, before);
        }
    }

    #[test]
    fn every_message_carries_the_clock_and_moves_that_of_its_receiver() {
        let mut p0 = bench_with("full", None);
        let locked = send(1, Message::Locked { request: 7, turn: 0, entries: 0, clock: 7 });
        assert_eq!(p0.hear(1, Message::Request { time: 7 }), [locked]);
        assert_eq!(p0.hear(1, Message::Release { request: 7, entries: 1, clock: 9 }), []);
        assert_eq!(p0.ask(Request::Acquire), [send(1, Message::Request { time: 10 })]);
        p0.hear(1, Message::Locked { request: 10, turn: 0, entries: 1, clock: 12 });
        let leaves = Message::Release { request: 10, entries: 2, clock: 12 };
        assert_eq!(p0.ask(Request::Release), [send(1, leaves)]);
        // As the sources have it, answers carry no time.
        let mut p0 = bench(None);
        p0.hear(1, Message::Request { time: 7 });
        p0.hear(1, Message::Release { request: 7, entries: 1, clock: 0 });
        assert_eq!(p0.ask(Request::Acquire), [send(1, Message::Request { time: 8 })]);
    }

    #[test]
    fn an_answer_from_a_stranger_is_unexpected() {
        let mut p0 = bench(None);
        p0.ask(Request::Acquire);
        let effects = p0.hear(3, Message::Locked { request: 1, turn: 0, entries: 0, clock: 0 });
        assert_eq!(effects, [Effect::Unexpected("an answer from one who was not asked")]);
    }

    #[test]
    fn in_a_tree_those_below_stand_in_for_one_that_crashed() {
        let mut setup = Setup::new(Group::of(3), Topology::complete(3));
        setup.chosen.extend([("quorums", "tree".into()), ("clock", "requests".into())]);
        let mut p1 = Bench::new(Maekawa::new(ProcessId(1), &setup), ProcessId(1), &setup.group);
        let request = Message::Request { time: 1 };
        assert_eq!(p1.ask(Request::Acquire), [send(0, request)]);
        assert_eq!(p1.suspect(0), [send(2, request)]);
        // Its own lock and that of p2 will do; p0 may only be slow, and is told as well.
        let granted = tell(Indication::Granted { fence: Some(Fence(0, 1)) });
        let lock = Message::Locked { request: 1, turn: 0, entries: 0, clock: 0 };
        assert_eq!(p1.hear(2, lock), [granted]);
        let release = Message::Release { request: 1, entries: 1, clock: 0 };
        assert_eq!(p1.ask(Request::Release), [send(0, release), send(2, release)]);
        // From now on p0 is not even asked.
        let request = Message::Request { time: 2 };
        assert_eq!(p1.ask(Request::Acquire), [send(2, request)]);
    }
}
