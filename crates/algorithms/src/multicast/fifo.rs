//! FIFO order: each sender's messages are numbered, and nobody delivers one before its
//! predecessor.
//!
//! Only the number decides, never the order of arrival: two connections to one peer may overtake
//! each other.

use std::collections::BTreeMap;

use konklave_process::topology::Shape;
use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize};

use super::{Indication, Multicast, Request, Unit};
use crate::{Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Mistake, Setup};

const ARRIVAL: Mistake = Mistake {
    name: "arrival-order",
    what: "what arrives is delivered at once, as if one connection could not overtake another",
    breaks: "fifo order",
    caught_by: "-n 2 --requests 2,0 --no-fifo",
};
const FORGETFUL: Mistake = Mistake {
    name: "drops-early",
    what: "a message that comes too early is dropped instead of held",
    breaks: "validity",
    caught_by: "-n 2 --requests 2,0 --no-fifo",
};

const SHEET: DataSheet = DataSheet {
    name: "fifo",
    title: "FIFO multicast",
    idea: "Number the messages of each sender and deliver them in that order.",
    source: "V. Hadzilacos, S. Toueg, \"Fault-tolerant broadcasts\", 1993",
    assumes: &[Assumption::Reliable, Assumption::KnownMembership],
    topologies: &[Shape::Connected],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "n − 1 for each multicast",
            when: "always",
            bound: |f| Some(Bound::Exactly(f.entries() * (f.n() - 1.0))),
        },
        Cost {
            metric: Metric::Delivery,
            formula: "T",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(Bound::AtMost),
        },
    ],
    guarantees: &[Guarantee::Validity, Guarantee::Integrity, Guarantee::FifoOrder],
    fence: None,
    mistakes: &[ARRIVAL, FORGETFUL],
    switches: &[],
};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Fifo {
    /// How many messages we have multicast.
    sent: u32,
    /// What we know of each sender that we heard of.
    streams: BTreeMap<ProcessId, Stream>,
    #[serde(skip)]
    mistake: Fixed<Option<&'static str>>,
}

/// The messages of one sender.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize)]
pub struct Stream {
    /// How many were delivered.
    delivered: u32,
    /// What came too early, by its place in the stream.
    early: BTreeMap<u32, u32>,
}

/// What the processes say.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// A message and its place in the sender's stream.
    Data {
        /// Which in the stream, from 1.
        seq: u32,
        /// What it says.
        number: u32,
    },
}

impl Process for Fifo {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        let Request::Multicast(number) = request;
        self.sent += 1;
        ctx.send_to_others(Message::Data { seq: self.sent, number });
        ctx.indicate(Indication::Delivered(Unit { from: ctx.me(), number }));
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        let Message::Data { seq, number } = message;
        if *self.mistake == Some(ARRIVAL.name) {
            return ctx.indicate(Indication::Delivered(Unit { from, number }));
        }
        let stream = self.streams.entry(from).or_default();
        if seq <= stream.delivered {
            return;
        }
        if *self.mistake == Some(FORGETFUL.name) && seq > stream.delivered + 1 {
            return;
        }
        stream.early.insert(seq, number);
        while let Some(number) = stream.early.remove(&(stream.delivered + 1)) {
            stream.delivered += 1;
            ctx.indicate(Indication::Delivered(Unit { from, number }));
        }
    }

    fn at_rest(&self) -> bool {
        self.streams.values().all(|stream| stream.early.is_empty())
    }
}

impl Algorithm for Fifo {
    type Problem = Multicast;
    const SHEET: DataSheet = SHEET;

    fn new(_me: ProcessId, setup: &Setup) -> Self {
        Self { sent: 0, streams: BTreeMap::new(), mistake: Fixed(setup.mistake) }
    }
}

#[cfg(test)]
mod tests {
    use konklave_process::{Group, Topology};
    use konklave_testkit::{Bench, tell};

    use super::*;

    fn process() -> Bench<Fifo> {
        let setup = Setup::new(Group::of(3), Topology::complete(3));
        Bench::new(Fifo::new(ProcessId(0), &setup), ProcessId(0), &setup.group)
    }

    fn data(seq: u32) -> Message {
        Message::Data { seq, number: seq }
    }

    fn delivered(from: u32, number: u32) -> konklave_process::Effect<Fifo> {
        tell(Indication::Delivered(Unit { from: ProcessId(from), number }))
    }

    #[test]
    fn what_comes_too_early_waits_for_what_it_overtook() {
        let mut p = process();
        assert_eq!(p.hear(1, data(2)), []);
        assert!(!p.process.at_rest());
        assert_eq!(p.hear(2, data(1)), [delivered(2, 1)]);
        assert_eq!(p.hear(1, data(1)), [delivered(1, 1), delivered(1, 2)]);
        assert!(p.process.at_rest());
    }

    #[test]
    fn what_comes_twice_is_delivered_once() {
        let mut p = process();
        assert_eq!(p.hear(1, data(1)), [delivered(1, 1)]);
        assert_eq!(p.hear(1, data(1)), []);
        assert_eq!(p.hear(1, data(3)), []);
        assert_eq!(p.hear(1, data(3)), []);
        assert_eq!(p.hear(1, data(2)), [delivered(1, 2), delivered(1, 3)]);
    }
}
