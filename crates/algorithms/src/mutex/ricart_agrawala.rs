//! Ricart and Agrawala's mutual exclusion by multicast and logical clocks.
//!
//! To enter, a process multicasts a timestamped request and waits for every other process to reply.
//! A process holds its reply back while it is inside, or while it waits with an earlier request.

mod clocks;

use konklave_process::topology::Shape;
use konklave_process::{
    Context, Fixed, LamportClock, NoRecord, NoTimer, Process, ProcessId, ProcessMap, ProcessSet,
    Timestamp,
};
use serde::{Deserialize, Serialize};

use super::{Fence, Indication, Mutex, Request};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Mistake, Setup, SetupError,
};

const REQUEST_CLOCK: Mistake = Mistake {
    name: "request-clock",
    what: "only requests move the clock, as in the paper: replies carry causality, but no time",
    breaks: "happened-before order",
    caught_by: "-n 3 --requests 2,1,1 --property order",
};
const NO_TIE_BREAK: Mistake = Mistake {
    name: "no-tie-break",
    what: "timestamps are compared without ids, and of two equal ones each lets the other go first",
    breaks: "mutual exclusion",
    caught_by: "-n 2",
};
const SIMPLE_MAJORITY: Mistake = Mistake {
    name: "simple-majority",
    what: "a simple majority of replies is enough, as the lecture says: but a reply is no exclusive \
           vote, and an idle process gives it to everyone",
    breaks: "mutual exclusion",
    caught_by: "-n 3 --requests 1,1,0",
};

const SHEET: DataSheet = DataSheet {
    name: "ricart-agrawala",
    title: "Ricart–Agrawala",
    idea: "Ask everyone; enter when all have replied. Who is inside or asked earlier replies later.",
    source: "G. Ricart, A. K. Agrawala, CACM 24(1), 1981; lecture \"Gegenseitiger Ausschluss\"",
    assumes: &[Assumption::Reliable, Assumption::NoCrash, Assumption::KnownMembership],
    topologies: &[Shape::Complete],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::MessagesPerEntry,
            formula: "2(n − 1)",
            when: "always",
            bound: |f| Some(Bound::Exactly(2.0 * (f.n() - 1.0))),
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
    mistakes: &[REQUEST_CLOCK, NO_TIE_BREAK, SIMPLE_MAJORITY],
    switches: &[clocks::SWITCH],
};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct RicartAgrawala {
    clock: LamportClock,
    state: State,
    /// Whom we answer when we leave: the time of their request, 0 for the others.
    deferred: ProcessMap<u32>,
    #[serde(skip)]
    request_clock: Fixed<bool>,
    #[serde(skip)]
    no_tie_break: Fixed<bool>,
    #[serde(skip)]
    simple_majority: Fixed<bool>,
}

/// The states of the book.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum State {
    /// We are outside.
    Released,
    /// We asked.
    Wanted {
        /// The time of our request.
        since: u32,
        /// Whose reply is missing.
        awaiting: ProcessSet,
    },
    /// We are inside.
    Held,
}

/// What the processes say.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// May I enter?
    Request {
        /// The time of the request.
        timestamp: u32,
    },
    /// As for me, you may.
    Reply {
        /// The time of your request: an answer to an older one does not count.
        to: u32,
        /// The clock of the one who replies: replies carry causality, too.
        clock: u32,
    },
}

impl RicartAgrawala {
    /// Whether our claim goes before that of `from`. The order is total: of two rivals one yields.
    fn precedes(&self, me: ProcessId, timestamp: u32, from: ProcessId) -> bool {
        match self.state {
            State::Released => false,
            State::Wanted { since, .. } if *self.no_tie_break => since < timestamp,
            State::Wanted { since, .. } => {
                let ours = Timestamp { time: since, process: me };
                ours < Timestamp { time: timestamp, process: from }
            }
            State::Held => true,
        }
    }

    fn enter(&mut self, since: u32, ctx: &mut Context<'_, Self>) {
        self.state = State::Held;
        let fence = Fence(since.into(), ctx.me().0.into());
        ctx.indicate(Indication::Granted { fence: Some(fence) });
    }
}

impl Process for RicartAgrawala {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        match request {
            Request::Acquire => {
                let since = self.clock.tick();
                let awaiting: ProcessSet = ctx.others().collect();
                if awaiting.is_empty() {
                    return self.enter(since, ctx);
                }
                self.state = State::Wanted { since, awaiting };
                ctx.send_to_others(Message::Request { timestamp: since });
            }
            Request::Release => {
                self.state = State::Released;
                let clock = self.clock.now();
                for p in ctx.others() {
                    let timestamp = std::mem::take(&mut self.deferred[p]);
                    if timestamp > 0 {
                        ctx.send(p, Message::Reply { to: timestamp, clock });
                    }
                }
            }
        }
    }

    // Inlined, a host that has one kind of effect most of the time carries it out on the spot.
    #[inline(always)]
    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Request { timestamp } => {
                self.clock.witness(timestamp);
                if self.precedes(ctx.me(), timestamp, from) {
                    // A late copy of an earlier request must not hide the one that waits.
                    let deferred = &mut self.deferred[from];
                    *deferred = timestamp.max(*deferred);
                } else {
                    let clock = self.clock.now();
                    ctx.send(from, Message::Reply { to: timestamp, clock });
                }
            }
            Message::Reply { to, clock } => {
                if !*self.request_clock {
                    self.clock.witness(clock);
                }
                let State::Wanted { since, awaiting } = &mut self.state else { return };
                let enough = if *self.simple_majority { (ctx.group_size() - 1) / 2 } else { 0 };
                if to == *since && awaiting.remove(from) && awaiting.len() <= enough {
                    let since = *since;
                    self.enter(since, ctx);
                }
            }
        }
    }

    fn stamp(&self) -> u64 {
        self.clock.now().into()
    }

    fn on_stamp(&mut self, _from: ProcessId, stamp: u64) {
        self.clock.witness(stamp as u32);
    }

    fn at_rest(&self) -> bool {
        self.state == State::Released && self.deferred.values().all(|t| *t == 0)
    }
}

impl Algorithm for RicartAgrawala {
    type Problem = Mutex;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let mut clock = LamportClock::default();
        clock.witness(clocks::begin(me, setup).unwrap_or(0));
        Self {
            clock,
            state: State::Released,
            deferred: ProcessMap::new(&setup.group, 0),
            request_clock: setup.makes(&REQUEST_CLOCK),
            no_tie_break: setup.makes(&NO_TIE_BREAK),
            simple_majority: setup.makes(&SIMPLE_MAJORITY),
        }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        clocks::check(setup)
    }
}
