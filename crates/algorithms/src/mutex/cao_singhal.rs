//! Cao and Singhal's mutual exclusion by quorums with the shortest delay.
//!
//! As in Maekawa's algorithm a process needs the locks of its quorum. But an arbiter tells the
//! holder of its lock who is next, and the holder passes the lock on when it leaves: that takes one
//! message, not one to the arbiter and one from it. Each lock of an arbiter has a number, for the
//! same request may get the same arbiter's lock more than once.

mod arbiter;
mod requester;

use std::sync::Arc;

use konklave_process::topology::Shape;
use konklave_process::{
    Context, Fixed, LamportClock, NoRecord, NoTimer, Process, ProcessId, Timestamp,
};
use serde::{Deserialize, Serialize};

use self::arbiter::{Arbiter, Release};
use self::requester::Requester;
use super::coterie::{Coterie, Figures};
use super::locking::{Clocks, Post};
use super::{Indication, Mutex, Request, hand_over};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, Setup,
    SetupError, Switch,
};

const TIMESTAMPS_ONLY: Mistake = Mistake {
    name: "timestamps-only",
    what: "a lock is named by the time of its request, not by a number of its own: an old transfer \
           is taken for one of the second lock",
    breaks: "quiescence",
    caught_by: "-n 5 --set quorums=0:3,4+1:3,4+2:3,4 --requests 1,1,1,0,0",
};
const KEEP_TRANSFERS: Mistake = Mistake {
    name: "keep-transfers",
    what: "the same, and who gives a lock back remembers whom to pass it on to",
    breaks: "deadlock",
    caught_by: "-n 5 --set quorums=0:3,4+1:3,4+2:3,4 --requests 1,1,1,0,0",
};
const NO_RELEASE_BUFFER: Mistake = Mistake {
    name: "no-release-buffer",
    what: "an arbiter ignores the release of one who got its lock from another, if it is faster \
           than that other's release",
    breaks: "deadlock",
    caught_by: "-n 5 --set quorums=0:3,4+1:3,4+2:3 --requests 1,1,1,0,0",
};
const DROP_EARLY_INQUIRE: Mistake = Mistake {
    name: "drop-early-inquire",
    what: "an inquiry for a lock that is still on its way is ignored",
    breaks: "deadlock",
    caught_by: "-n 5 --set quorums=0:3,4+1:3,4+2:3 --requests 1,1,1,0,0",
};
const NO_INQUIRE_AFTER_FORWARD: Mistake = Mistake {
    name: "no-inquire-after-forward",
    what: "an arbiter whose lock was passed on to a younger request does not inquire",
    breaks: "deadlock",
    caught_by: "-n 5 --set quorums=0:3,4+1:3,4+2:3 --requests 1,1,1,0,0",
};
const NO_DISPLACED_FAILED: Mistake = Mistake {
    name: "no-displaced-failed",
    what: "a request that an older one displaces from the head of a queue is not told to wait",
    breaks: "deadlock",
    caught_by: "-n 6 --set quorums=0:4,5+1:4+2:4,5+3:4 --requests 1,1,1,1,0,0",
};

const SHEET: DataSheet = DataSheet {
    name: "cao-singhal",
    title: "Cao–Singhal",
    idea: "Quorums whose locks are passed on from holder to holder, without the way through the \
           arbiter.",
    source: "G. Cao, M. Singhal, ICDCS 1998 and TPDS 12(12), 2001; \
             lecture \"Quorumbasierte Algorithmen\"",
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
                   by id, as in 0:3,4;1:3,4;2:3 (+ will do for ;)",
        },
        Switch {
            name: "transfers",
            values: &["strongest", "last", "prompt"],
            what: "to whom a lock is passed on: the oldest announced, the last announced, or none \
                   that was announced before the lock came",
        },
        Clocks::SWITCH,
    ],
};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct CaoSinghal {
    clock: LamportClock,
    /// How many entries we know of: the latest had this number as its fence.
    entries: u32,
    requester: Requester,
    arbiter: Arbiter,
    #[serde(skip)]
    rules: Fixed<Arc<Rules>>,
}

/// What is said. Locks are named by their arbiter and their number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Lock yourself for me, says a requester.
    Request {
        /// The time of the request.
        time: u32,
    },
    /// You have a lock, says its arbiter, or the one who had it before.
    Locked {
        /// Whose lock it is.
        by: ProcessId,
        /// The number of the lock.
        lock: u32,
        /// The time of your request.
        request: u32,
        /// Who is next, if that is known already.
        next: Option<Timestamp>,
        /// How many entries I know of.
        entries: u32,
        /// The clock of the one who says it; 0 if only requests move clocks.
        clock: u32,
    },
    /// You have to wait, says an arbiter.
    Failed {
        /// The time of your request.
        request: u32,
        /// The clock of the one who says it; 0 if only requests move clocks.
        clock: u32,
    },
    /// Pass my lock on when you leave, says an arbiter.
    Transfer {
        /// The number of the lock.
        lock: u32,
        /// To which request.
        next: Timestamp,
        /// The clock of the one who says it; 0 if only requests move clocks.
        clock: u32,
    },
    /// The same; and if you have to wait anyway, give my lock back.
    Inquire {
        /// The number of the lock.
        lock: u32,
        /// To which request.
        next: Timestamp,
        /// The clock of the one who says it; 0 if only requests move clocks.
        clock: u32,
    },
    /// Have your lock back, says a requester, who still wants it.
    Yield {
        /// The number of the lock.
        lock: u32,
        /// The clock of the one who says it; 0 if only requests move clocks.
        clock: u32,
    },
    /// I left, says a requester.
    Release {
        /// The number of the lock.
        lock: u32,
        /// To which request I passed the lock on.
        forwarded: Option<Timestamp>,
        /// How many entries there were, this one included.
        entries: u32,
        /// The clock of the one who says it; 0 if only requests move clocks.
        clock: u32,
    },
}

impl Message {
    /// What it tells of the time.
    fn clock(self) -> u32 {
        match self {
            Self::Request { time } => time,
            Self::Locked { clock, .. }
            | Self::Failed { clock, .. }
            | Self::Transfer { clock, .. }
            | Self::Inquire { clock, .. }
            | Self::Yield { clock, .. }
            | Self::Release { clock, .. } => clock,
        }
    }
}

/// How one process takes part. It never changes.
#[derive(Debug)]
struct Rules {
    /// Whom we ask for their locks, in the order of ids.
    quorum: Arc<[ProcessId]>,
    transfers: Transfers,
    /// Which messages move the clocks.
    clocks: Clocks,
    flaw: Option<Flaw>,
}

/// To whom a lock is passed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Transfers {
    /// The oldest that was announced.
    Strongest,
    /// The one that was announced last.
    Last,
    /// The oldest that was announced after the lock came.
    Prompt,
}

/// What can be done wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Flaw {
    TimestampsOnly,
    KeepTransfers,
    NoReleaseBuffer,
    DropEarlyInquire,
    NoInquireAfterForward,
    NoDisplacedFailed,
}

impl Rules {
    /// Whether each lock of an arbiter has a higher number than the one before.
    fn are_locks_numbered(&self) -> bool {
        !matches!(self.flaw, Some(Flaw::TimestampsOnly | Flaw::KeepTransfers))
    }

    /// The number of the lock after `lock`, for this request.
    fn next_lock(&self, lock: u32, request: Timestamp) -> u32 {
        if self.are_locks_numbered() { lock.saturating_add(1) } else { request.time }
    }
}

/// A request costs 3 for each other member of the quorum: request, lock, release. Besides, at each
/// member it is announced to the holder; it may fail; for its sake a lock may be given back and be
/// given a second time; and once it has passed its lock on, the next one is announced anew. At its
/// own arbiter, what it tells itself is free.
fn messages(facts: &Facts<'_>) -> Bound {
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

fn quorums(setup: &Setup) -> Result<Arc<Coterie>, SetupError> {
    Coterie::named(setup.chosen(&SHEET, "quorums").0, setup)
}

impl CaoSinghal {
    /// What the message says, and then all that follows from it within this process.
    fn hear(&mut self, from: ProcessId, message: Message, post: &mut Post<'_, '_, Self>) {
        let rules = &**self.rules;
        let (requester, arbiter) = (&mut self.requester, &mut self.arbiter);
        match message {
            Message::Request { time } => {
                arbiter.on_request(Timestamp { time, process: from }, rules, post);
            }
            Message::Locked { by, lock, request, next, entries, .. } => {
                post.entries = post.entries.max(entries);
                requester.on_locked(by, lock, request, next, rules, post);
            }
            Message::Failed { request, .. } => requester.on_failed(from, request, rules, post),
            Message::Transfer { lock, next, .. } => requester.on_transfer(from, lock, next, rules),
            Message::Inquire { lock, next, .. } => {
                requester.on_transfer(from, lock, next, rules);
                requester.on_inquire(from, lock, rules, post);
            }
            Message::Yield { lock, .. } => arbiter.on_yield(lock, from, rules, post),
            Message::Release { lock, forwarded, entries, .. } => {
                post.entries = post.entries.max(entries);
                arbiter.on_release(Release { lock, by: from, forwarded }, rules, post);
            }
        }
    }

    /// Handles what we sent ourselves.
    fn finish(&mut self, mut post: Post<'_, '_, Self>) {
        while let Some(message) = post.next_own() {
            self.hear(post.me(), message, &mut post);
        }
        self.entries = post.entries;
    }
}

impl Process for CaoSinghal {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        let since = match request {
            Request::Acquire => self.clock.tick(),
            Request::Release => self.clock.now(),
        };
        let mut post = Post::new(self.entries, self.rules.clocks.told(self.clock), ctx);
        match request {
            Request::Acquire => self.requester.acquire(since, &self.rules, &mut post),
            Request::Release => self.requester.release(&self.rules, &mut post),
        }
        self.finish(post);
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        let arbiter = match message {
            Message::Locked { by, .. } => Some(by),
            Message::Failed { .. } | Message::Transfer { .. } | Message::Inquire { .. } => {
                Some(from)
            }
            Message::Request { .. } | Message::Yield { .. } | Message::Release { .. } => None,
        };
        if arbiter.is_some_and(|arbiter| self.rules.quorum.binary_search(&arbiter).is_err()) {
            return ctx.unexpected("a message about a lock that we did not ask for");
        }
        self.clock.witness(message.clock());
        let mut post = Post::new(self.entries, self.rules.clocks.told(self.clock), ctx);
        self.hear(from, message, &mut post);
        self.finish(post);
    }

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

    /// Process 0 asks 3 and 4 and is asked by 3, 4 and 5.
    fn bench() -> Bench<CaoSinghal> {
        let group = Group::of(6);
        let mut setup = Setup::new(group.clone(), Topology::complete(6));
        setup.chosen.insert("quorums", "0:3,4;1:3;2:3;3:0,3;4:0,3;5:0,3".into());
        setup.chosen.insert("clock", "requests".into());
        Bench::new(CaoSinghal::new(ProcessId(0), &setup), ProcessId(0), &group)
    }

    fn at(time: u32, p: u32) -> Timestamp {
        Timestamp { time, process: ProcessId(p) }
    }

    fn locked(by: u32, lock: u32, request: u32, next: Option<Timestamp>, entries: u32) -> Message {
        Message::Locked { by: ProcessId(by), lock, request, next, entries, clock: 0 }
    }

    #[test]
    fn a_holder_passes_its_lock_on_to_the_oldest_that_was_announced() {
        let mut p0 = bench();
        p0.ask(Request::Acquire);
        p0.hear(3, locked(3, 7, 1, Some(at(9, 5)), 0));
        let granted = tell(Indication::Granted { fence: Some(Fence(0, 3)) });
        // From whom it comes is all one: 2 had the lock of 4 before.
        assert_eq!(p0.hear(2, locked(4, 2, 1, None, 2)), [granted]);
        p0.hear(3, Message::Transfer { lock: 7, next: at(4, 2), clock: 0 });
        p0.hear(3, Message::Transfer { lock: 7, next: at(6, 1), clock: 0 });
        p0.hear(3, Message::Transfer { lock: 5, next: at(1, 1), clock: 0 });
        let forwarded = Some(at(4, 2));
        assert_eq!(
            p0.ask(Request::Release),
            [
                send(2, locked(3, 8, 4, None, 3)),
                send(3, Message::Release { lock: 7, forwarded, entries: 3, clock: 0 }),
                send(4, Message::Release { lock: 2, forwarded: None, entries: 3, clock: 0 }),
            ]
        );
        assert_eq!(p0.hear(3, Message::Transfer { lock: 7, next: at(1, 1), clock: 0 }), []);
        assert!(p0.process.at_rest());
    }

    #[test]
    fn an_arbiter_announces_who_is_next_and_inquires_for_older_requests() {
        let mut p0 = bench();
        let first = locked(0, 1, 5, None, 0);
        assert_eq!(p0.hear(4, Message::Request { time: 5 }), [send(4, first)]);
        let younger = p0.hear(5, Message::Request { time: 5 });
        let waits = send(5, Message::Failed { request: 5, clock: 0 });
        let transfer = Message::Transfer { lock: 1, next: at(5, 5), clock: 0 };
        assert_eq!(younger, [send(4, transfer), waits]);
        let older = p0.hear(3, Message::Request { time: 5 });
        assert_eq!(older, [send(4, Message::Inquire { lock: 1, next: at(5, 3), clock: 0 })]);
        let next = locked(0, 2, 5, Some(at(5, 4)), 0);
        assert_eq!(p0.hear(4, Message::Yield { lock: 1, clock: 0 }), [send(3, next)]);
        assert_eq!(p0.hear(4, Message::Yield { lock: 1, clock: 0 }), []);
    }

    #[test]
    fn releases_out_of_order_are_put_in_order() {
        let mut p0 = bench();
        p0.hear(4, Message::Request { time: 1 });
        p0.hear(5, Message::Request { time: 1 });
        // 5 got the lock from 4, and has left already.
        let release =
            |lock, forwarded| Message::Release { lock, forwarded, entries: lock, clock: 0 };
        assert_eq!(p0.hear(5, release(2, None)), []);
        assert!(!p0.process.at_rest());
        assert_eq!(p0.hear(4, release(1, Some(at(1, 5)))), []);
        assert!(p0.process.at_rest());
    }

    #[test]
    fn an_older_request_that_came_too_late_for_a_transfer_has_the_new_holder_inquired() {
        let mut p0 = bench();
        p0.hear(4, Message::Request { time: 1 });
        p0.hear(5, Message::Request { time: 2 });
        p0.hear(3, Message::Request { time: 1 });
        let release = Message::Release { lock: 1, forwarded: Some(at(2, 5)), entries: 1, clock: 0 };
        let inquire = Message::Inquire { lock: 2, next: at(1, 3), clock: 0 };
        assert_eq!(p0.hear(4, release), [send(5, inquire)]);
    }

    #[test]
    fn an_inquiry_may_come_before_its_lock_and_one_of_an_earlier_lock_is_void() {
        let mut p0 = bench();
        p0.ask(Request::Acquire);
        p0.hear(4, Message::Failed { request: 1, clock: 0 });
        assert_eq!(p0.hear(3, Message::Inquire { lock: 6, next: at(1, 1), clock: 0 }), []);
        let back = [send(3, Message::Yield { lock: 6, clock: 0 })];
        assert_eq!(p0.clone().hear(3, locked(3, 6, 1, None, 0)), back);
        assert_eq!(p0.hear(3, locked(3, 8, 1, None, 0)), []);
    }

    #[test]
    fn a_lock_that_was_not_asked_for_is_unexpected() {
        let mut p0 = bench();
        let what = "a message about a lock that we did not ask for";
        assert_eq!(p0.hear(3, locked(5, 1, 1, None, 0)), [Effect::Unexpected(what)]);
    }
}
