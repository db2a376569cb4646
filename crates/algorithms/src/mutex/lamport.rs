//! Lamport's mutual exclusion: one queue, replicated everywhere and ordered by logical time.
//!
//! To enter, a process multicasts a timestamped request, and everyone puts it into its queue. The
//! process whose request stands first may enter once it has heard something later from everyone:
//! on FIFO channels nothing earlier can then still be on its way.

use konklave_process::topology::Shape;
use konklave_process::{
    Context, Fixed, LamportClock, NoRecord, NoTimer, Process, ProcessId, ProcessSet, Timestamp,
};
use serde::{Deserialize, Serialize};

use super::{Fence, Indication, Mutex, Request};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Mistake, Setup, Switch,
};

const EQUAL_ACK: Mistake = Mistake {
    name: "equal-ack",
    what: "an acknowledgement carries the time of the request, not a later one: with a lower id it \
           does not count as later",
    breaks: "deadlock",
    caught_by: "-n 2 --requests 0,1",
};
const NO_TIE_BREAK: Mistake = Mistake {
    name: "no-tie-break",
    what: "the queue is ordered by time without ids, and of two equal requests each takes its own \
           for the first",
    breaks: "mutual exclusion",
    caught_by: "-n 2",
};

const SHEET: DataSheet = DataSheet {
    name: "lamport",
    title: "Lamport",
    idea: "Everyone keeps the same queue of requests; enter as its first, once all have been heard.",
    source: "L. Lamport, CACM 21(7), 1978; lecture \"Gegenseitiger Ausschluss\"",
    assumes: &[
        Assumption::Reliable,
        Assumption::NoDuplicates,
        Assumption::Fifo,
        Assumption::NoCrash,
        Assumption::KnownMembership,
    ],
    topologies: &[Shape::Complete],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::MessagesPerEntry,
            formula: "3(n − 1), with suppressed acknowledgements 2(n − 1) to 3(n − 1)",
            when: "always",
            bound: |f| {
                let others = f.n() - 1.0;
                Some(if f.setup.chosen(&SHEET, "acks").is("all") {
                    Bound::Exactly(3.0 * others)
                } else {
                    Bound::Between(2.0 * others, 3.0 * others)
                })
            },
        },
        Cost {
            metric: Metric::SyncDelay,
            formula: "T, or up to 3T while requests are on their way",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(3.0 * t)),
        },
        Cost {
            metric: Metric::EntryDelay,
            formula: "2T",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(2.0 * t)),
        },
    ],
    guarantees: &[
        Guarantee::MutualExclusion,
        Guarantee::DeadlockFree,
        Guarantee::StarvationFree,
        Guarantee::HappenedBefore,
    ],
    fence: Some("(timestamp, id) of the request: entries come in this order"),
    mistakes: &[EQUAL_ACK, NO_TIE_BREAK],
    switches: &[Switch {
        name: "acks",
        values: &["all", "suppressed"],
        what: "whether a request is acknowledged even if our own later one will do",
    }],
};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Lamport {
    clock: LamportClock,
    state: State,
    /// Every request that we know of and that is not released, ours included, oldest first.
    queue: Vec<Timestamp>,
    #[serde(skip)]
    suppresses: Fixed<bool>,
    #[serde(skip)]
    equal_ack: Fixed<bool>,
    #[serde(skip)]
    no_tie_break: Fixed<bool>,
}

/// Where we stand.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum State {
    /// We are outside.
    Released,
    /// We asked.
    Wanted {
        /// The time of our request.
        since: u32,
        /// From whom we have heard nothing later than our request.
        awaiting: ProcessSet,
    },
    /// We are inside.
    Held {
        /// The time of our request.
        since: u32,
    },
}

/// What the processes say; each message carries a time of its sender.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Put me into your queue.
    Request {
        /// The time of the request.
        timestamp: u32,
    },
    /// I did.
    Ack {
        /// The time of the acknowledgement.
        clock: u32,
    },
    /// I left: take me out.
    Release {
        /// The time of the request that is over.
        request: u32,
        /// The time of leaving.
        clock: u32,
    },
}

impl Lamport {
    /// Whoever has sent something later than our request cannot send anything earlier any more.
    fn heard(&mut self, from: ProcessId, time: u32, ctx: &Context<'_, Self>) {
        self.clock.witness(time);
        let State::Wanted { since, awaiting } = &mut self.state else { return };
        let ours = Timestamp { time: *since, process: ctx.me() };
        if ours < (Timestamp { time, process: from }) {
            awaiting.remove(from);
        }
    }

    fn insert(&mut self, request: Timestamp) {
        if let Err(place) = self.queue.binary_search(&request) {
            self.queue.insert(place, request);
        }
    }

    fn remove(&mut self, request: Timestamp) {
        if let Ok(place) = self.queue.binary_search(&request) {
            self.queue.remove(place);
        }
    }

    fn try_enter(&mut self, ctx: &mut Context<'_, Self>) {
        let State::Wanted { since, awaiting } = &self.state else { return };
        let since = *since;
        let is_first = match self.queue.first() {
            Some(first) if *self.no_tie_break => first.time == since,
            Some(first) => *first == Timestamp { time: since, process: ctx.me() },
            None => false,
        };
        if is_first && awaiting.is_empty() {
            self.state = State::Held { since };
            let fence = Fence(since.into(), ctx.me().0.into());
            ctx.indicate(Indication::Granted { fence: Some(fence) });
        }
    }

    /// Whether our own request tells its receiver all that an acknowledgement of `theirs` would.
    fn has_said_it(&self, theirs: Timestamp, me: ProcessId) -> bool {
        match self.state {
            State::Wanted { since, .. } => theirs < Timestamp { time: since, process: me },
            State::Released | State::Held { .. } => false,
        }
    }
}

impl Process for Lamport {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        let process = ctx.me();
        match request {
            Request::Acquire => {
                let since = self.clock.tick();
                self.insert(Timestamp { time: since, process });
                self.state = State::Wanted { since, awaiting: ctx.others().collect() };
                ctx.send_to_others(Message::Request { timestamp: since });
                self.try_enter(ctx);
            }
            Request::Release => {
                let State::Held { since } = self.state else { return };
                self.state = State::Released;
                self.remove(Timestamp { time: since, process });
                let clock = self.clock.tick();
                ctx.send_to_others(Message::Release { request: since, clock });
            }
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Request { timestamp } => {
                let theirs = Timestamp { time: timestamp, process: from };
                self.heard(from, timestamp, ctx);
                self.insert(theirs);
                if !(*self.suppresses && self.has_said_it(theirs, ctx.me())) {
                    // Later than the request, or it would tell them nothing.
                    let clock = if *self.equal_ack { timestamp } else { self.clock.tick() };
                    ctx.send(from, Message::Ack { clock });
                }
            }
            Message::Ack { clock } => self.heard(from, clock, ctx),
            Message::Release { request, clock } => {
                self.heard(from, clock, ctx);
                self.remove(Timestamp { time: request, process: from });
            }
        }
        self.try_enter(ctx);
    }

    fn stamp(&self) -> u64 {
        self.clock.now().into()
    }

    fn on_stamp(&mut self, _from: ProcessId, stamp: u64) {
        self.clock.witness(stamp as u32);
    }

    fn at_rest(&self) -> bool {
        self.state == State::Released && self.queue.is_empty()
    }
}

impl Algorithm for Lamport {
    type Problem = Mutex;
    const SHEET: DataSheet = SHEET;

    fn new(_me: ProcessId, setup: &Setup) -> Self {
        Self {
            clock: LamportClock::default(),
            state: State::Released,
            queue: Vec::new(),
            suppresses: Fixed(setup.chosen(&SHEET, "acks").is("suppressed")),
            equal_ack: setup.makes(&EQUAL_ACK),
            no_tie_break: setup.makes(&NO_TIE_BREAK),
        }
    }
}

#[cfg(test)]
mod tests {
    use konklave_process::{Group, Topology};
    use konklave_testkit::{Bench, send, tell};

    use super::*;

    fn bench(me: u32, acks: &str) -> Bench<Lamport> {
        let mut setup = Setup::new(Group::of(3), Topology::complete(3));
        setup.chosen.insert("acks", acks.into());
        Bench::new(Lamport::new(ProcessId(me), &setup), ProcessId(me), &setup.group)
    }

    fn granted(time: u64, id: u64) -> konklave_process::Effect<Lamport> {
        tell(Indication::Granted { fence: Some(Fence(time, id)) })
    }

    #[test]
    fn a_request_is_acknowledged_with_a_later_time() {
        let mut p1 = bench(1, "all");
        let asked = p1.hear(0, Message::Request { timestamp: 4 });
        assert_eq!(asked, [send(0, Message::Ack { clock: 5 })]);
        assert!(!p1.process.at_rest());
        p1.hear(0, Message::Release { request: 4, clock: 6 });
        assert!(p1.process.at_rest());
    }

    #[test]
    fn the_first_of_the_queue_enters_when_all_have_been_heard() {
        let mut p1 = bench(1, "all");
        let request = Message::Request { timestamp: 1 };
        assert_eq!(p1.ask(Request::Acquire), [send(0, request), send(2, request)]);
        assert_eq!(p1.hear(0, Message::Ack { clock: 2 }), []);
        assert_eq!(p1.hear(2, Message::Ack { clock: 2 }), [granted(1, 1)]);
        let release = Message::Release { request: 1, clock: 3 };
        assert_eq!(p1.ask(Request::Release), [send(0, release), send(2, release)]);
    }

    #[test]
    fn an_equal_request_of_a_higher_id_counts_as_later_and_of_a_lower_one_goes_first() {
        let mut p1 = bench(1, "suppressed");
        p1.ask(Request::Acquire);
        let younger = p1.hear(2, Message::Request { timestamp: 1 });
        assert_eq!(younger, [send(2, Message::Ack { clock: 2 })]);
        // p0's request is older: ours is on its way to p0, and tells it so.
        assert_eq!(p1.hear(0, Message::Request { timestamp: 1 }), []);
        assert_eq!(p1.hear(0, Message::Release { request: 1, clock: 3 }), [granted(1, 1)]);
    }

    #[test]
    fn an_acknowledgement_of_an_earlier_request_does_not_count() {
        let mut p1 = bench(1, "all");
        p1.hear(0, Message::Request { timestamp: 6 });
        p1.hear(0, Message::Release { request: 6, clock: 7 });
        p1.ask(Request::Acquire);
        p1.hear(2, Message::Ack { clock: 9 });
        assert_eq!(p1.hear(0, Message::Ack { clock: 8 }), []);
        assert_eq!(p1.hear(0, Message::Ack { clock: 10 }), [granted(8, 1)]);
    }
}
