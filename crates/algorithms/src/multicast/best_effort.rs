//! Best-effort multicast: one message to each member, and nothing more.
//!
//! It is what every other algorithm of this problem improves on: it repeats nothing, orders nothing
//! and lets members disagree when a sender crashes half-way.

use konklave_process::topology::Shape;
use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize};

use super::{Indication, Multicast, Request, Unit};
use crate::{Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Mistake, Setup};

const FORGETS_ITSELF: Mistake = Mistake {
    name: "forgets-itself",
    what: "the sender counts itself out: everyone but it delivers its message",
    breaks: "deadlock",
    caught_by: "-n 2 --requests 1,0",
};

const SHEET: DataSheet = DataSheet {
    name: "best-effort",
    title: "Best-effort multicast",
    idea: "Send it to everyone, deliver what arrives.",
    source: "lecture \"Zuverlässiger Multicast\", the starting point",
    assumes: &[Assumption::Reliable, Assumption::NoDuplicates, Assumption::KnownMembership],
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
    guarantees: &[Guarantee::Validity, Guarantee::Integrity],
    fence: None,
    mistakes: &[FORGETS_ITSELF],
    switches: &[],
};

/// One process of the algorithm: it remembers nothing.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct BestEffort {
    #[serde(skip)]
    forgets_itself: Fixed<bool>,
}

/// What the processes say.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// The sender's message of this number.
    Data(u32),
}

impl Process for BestEffort {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        let Request::Multicast(number) = request;
        ctx.send_to_others(Message::Data(number));
        if !*self.forgets_itself {
            ctx.indicate(Indication::Delivered(Unit { from: ctx.me(), number }));
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        let Message::Data(number) = message;
        ctx.indicate(Indication::Delivered(Unit { from, number }));
    }
}

impl Algorithm for BestEffort {
    type Problem = Multicast;
    const SHEET: DataSheet = SHEET;

    fn new(_me: ProcessId, setup: &Setup) -> Self {
        Self { forgets_itself: setup.makes(&FORGETS_ITSELF) }
    }
}

#[cfg(test)]
mod tests {
    use konklave_process::{Group, Topology};
    use konklave_testkit::{Bench, send, tell};

    use super::*;

    fn process(n: usize) -> Bench<BestEffort> {
        let setup = Setup::new(Group::of(n), Topology::complete(n));
        Bench::new(BestEffort::new(ProcessId(0), &setup), ProcessId(0), &setup.group)
    }

    #[test]
    fn a_message_goes_to_everyone_once_and_to_ourselves_at_once() {
        let own = tell(Indication::Delivered(Unit { from: ProcessId(0), number: 1 }));
        let data = Message::Data(1);
        assert_eq!(process(1).ask(Request::Multicast(1)), std::slice::from_ref(&own));
        assert_eq!(process(3).ask(Request::Multicast(1)), [send(1, data), send(2, data), own]);
    }

    #[test]
    fn what_arrives_is_delivered_whatever_came_before() {
        for number in [7, 2] {
            let told = tell(Indication::Delivered(Unit { from: ProcessId(1), number }));
            assert_eq!(process(2).hear(1, Message::Data(number)), [told]);
        }
    }
}
