//! FIFO multicast: every member delivers the messages of one sender in the order in which they were sent.

use std::collections::{BTreeMap, BTreeSet};

use konklave_lab::algorithms::multicast::{Indication, Multicast, Request, Unit};
use konklave_lab::algorithms::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, Setup,
};
use konklave_lab::process::topology::Shape;
use konklave_lab::process::{Context, Fixed, Inspect, NoRecord, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize};

/// One process. The value is the whole state: the checker compares, hashes and copies it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct MyAlgorithm {
    /// The messages that this process has received from each sender.
    streams: BTreeMap<ProcessId, Stream>,
    // `Fixed`: set once by `new`, and no part of the state.
    #[serde(skip)]
    drops_early: Fixed<bool>,
}

/// The messages of one sender.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize)]
struct Stream {
    /// The number of delivered messages.
    delivered: u32,
    /// Messages that overtook an earlier one and wait for it.
    early: BTreeSet<u32>,
}

/// The messages of the algorithm. The names of the variants appear in tables and diagrams.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// The sender's message of this number, counted from 1.
    Data(u32),
}

impl Process for MyAlgorithm {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    /// A client of this process multicasts.
    fn on_request(&mut self, Request::Multicast(number): Request, ctx: &mut Context<'_, Self>) {
        ctx.send_to_others(Message::Data(number));
        ctx.indicate(Indication::Delivered(Unit {
            from: ctx.me(),
            number,
        }));
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        let Message::Data(number) = message;
        let stream = self.streams.entry(from).or_default();
        let is_early = number > stream.delivered + 1;
        if number <= stream.delivered || is_early && *self.drops_early {
            return;
        }
        stream.early.insert(number);
        while stream.early.remove(&(stream.delivered + 1)) {
            stream.delivered += 1;
            ctx.indicate(Indication::Delivered(Unit {
                from,
                number: stream.delivered,
            }));
        }
    }
}

impl Inspect for MyAlgorithm {
    /// Whether no work is left over; the checker asks at the end of every run.
    fn at_rest(&self) -> bool {
        self.streams.values().all(|stream| stream.early.is_empty())
    }
}

const DROPS_EARLY: Mistake = Mistake {
    name: "drops-early",
    what: "a message that overtook an earlier one is dropped instead of kept",
    breaks: "validity",
    caught_by: "-n 2 --requests 2,0 --no-fifo",
};

impl Algorithm for MyAlgorithm {
    type Problem = Multicast;

    const SHEET: DataSheet = DataSheet {
        name: "my-algorithm",
        title: "MyAlgorithm",
        idea: "Number the messages of each sender and deliver them in that order.",
        source: "after V. Hadzilacos, S. Toueg, \"Fault-tolerant broadcasts\", 1993",
        assumes: &[
            Assumption::Reliable,
            Assumption::NoRestart,
            Assumption::KnownMembership,
        ],
        topologies: &[Shape::Connected],
        costs: &[
            Cost {
                metric: Metric::Messages,
                formula: "n − 1 for each multicast",
                when: "always",
                bound: one_to_each,
            },
            Cost {
                metric: Metric::Delivery,
                formula: "T",
                when: "delays have a limit",
                bound: |f| f.delay_max.map(Bound::AtMost),
            },
        ],
        guarantees: &[
            Guarantee::Validity,
            Guarantee::Integrity,
            Guarantee::FifoOrder,
        ],
        mistakes: &[DROPS_EARLY],
        ..DataSheet::BLANK
    };

    fn new(_me: ProcessId, setup: &Setup) -> Self {
        Self {
            streams: BTreeMap::new(),
            drops_early: setup.makes(&DROPS_EARLY),
        }
    }
}

/// One message to each of the other members. `run` measures and compares.
fn one_to_each(facts: &Facts<'_>) -> Option<Bound> {
    Some(Bound::Exactly(facts.entries() * (facts.n() - 1.0)))
}
