//! Total order by Lamport's timestamps.
//!
//! Messages are delivered in the order of their timestamps. A message is due once everyone has been
//! heard from with a later time: over FIFO channels nothing earlier can come any more. So everyone
//! answers each message, and one who stays silent stops all.

use std::collections::BTreeMap;

use konklave_process::topology::Shape;
use konklave_process::{
    Context, Fixed, LamportClock, NoRecord, NoTimer, Process, ProcessId, ProcessMap,
};
use serde::{Deserialize, Serialize};

use super::{Indication, Multicast, Request, Unit};
use crate::{Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Mistake, Setup};

const SILENT: Mistake = Mistake {
    name: "silent",
    what: "who has nothing to say says nothing: an idle member holds up everyone",
    breaks: "deadlock",
    caught_by: "-n 3 --requests 1,0,0",
};
const DEAF_CLOCK: Mistake = Mistake {
    name: "deaf-clock",
    what: "what is received does not move the clock that messages are stamped with",
    breaks: "total order",
    caught_by: "-n 3 --requests 2,1,0",
};
const HASTY: Mistake = Mistake {
    name: "hasty",
    what: "a message is delivered once its sender was heard, without word from the others",
    breaks: "total order",
    caught_by: "-n 2 --requests 1,1",
};

const SHEET: DataSheet = DataSheet {
    name: "lamport-order",
    title: "Total order by timestamps",
    idea: "Deliver by timestamp, once everyone has been heard from with a later one.",
    source: "L. Lamport, CACM 21(7), 1978",
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
            metric: Metric::Messages,
            formula: "n(n − 1) for each multicast",
            when: "always",
            bound: |f| Some(Bound::Exactly(f.entries() * f.n() * (f.n() - 1.0))),
        },
        Cost {
            metric: Metric::Delivery,
            formula: "2T",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(2.0 * t)),
        },
    ],
    guarantees: &[
        Guarantee::Validity,
        Guarantee::Integrity,
        Guarantee::FifoOrder,
        Guarantee::CausalOrder,
        Guarantee::TotalOrder,
    ],
    fence: None,
    mistakes: &[SILENT, DEAF_CLOCK, HASTY],
    switches: &[],
};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct LamportOrder {
    clock: LamportClock,
    /// What is not due yet, by time and sender.
    #[serde(serialize_with = "super::pairs")]
    queue: BTreeMap<(u32, ProcessId), u32>,
    /// The last time we heard from each.
    heard: ProcessMap<u32>,
    #[serde(skip)]
    mistake: Fixed<Option<&'static str>>,
}

/// What the processes say.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// A message.
    Data {
        /// When it was sent.
        time: u32,
        /// What it says.
        number: u32,
    },
    /// Nothing of mine is earlier than this any more.
    Ack {
        /// When it was sent.
        time: u32,
    },
}

impl LamportOrder {
    fn makes(&self, mistake: &Mistake) -> bool {
        *self.mistake == Some(mistake.name)
    }

    fn hear(&mut self, from: ProcessId, time: u32) {
        if let Some(heard) = self.heard.get_mut(from) {
            *heard = time.max(*heard);
        }
        self.clock.witness(time);
    }

    fn deliver_due(&mut self, ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        while let Some((&(time, from), &number)) = self.queue.first_key_value() {
            let hasty = self.makes(&HASTY);
            let later = |(p, heard): (ProcessId, &u32)| p == me || (*heard, p) >= (time, from);
            if !hasty && !self.heard.iter().all(later) {
                return;
            }
            self.queue.remove(&(time, from));
            ctx.indicate(Indication::Delivered(Unit { from, number }));
        }
    }
}

impl Process for LamportOrder {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        let Request::Multicast(number) = request;
        let time = if self.makes(&DEAF_CLOCK) { number } else { self.clock.tick() };
        self.queue.insert((time, ctx.me()), number);
        ctx.send_to_others(Message::Data { time, number });
        self.deliver_due(ctx);
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Data { time, number } => {
                self.hear(from, time);
                self.queue.insert((time, from), number);
                if !self.makes(&SILENT) {
                    let time = self.clock.tick();
                    ctx.send_to_others(Message::Ack { time });
                }
            }
            Message::Ack { time } => self.hear(from, time),
        }
        self.deliver_due(ctx);
    }

    fn at_rest(&self) -> bool {
        self.queue.is_empty()
    }
}

impl Algorithm for LamportOrder {
    type Problem = Multicast;
    const SHEET: DataSheet = SHEET;

    fn new(_me: ProcessId, setup: &Setup) -> Self {
        Self {
            clock: LamportClock::default(),
            queue: BTreeMap::new(),
            heard: ProcessMap::new(&setup.group, 0),
            mistake: Fixed(setup.mistake),
        }
    }
}

#[cfg(test)]
mod tests {
    use konklave_process::{Effect, Group, Topology};
    use konklave_testkit::{Bench, send, tell};

    use super::*;

    fn process(me: u32, n: usize) -> Bench<LamportOrder> {
        let setup = Setup::new(Group::of(n), Topology::complete(n));
        Bench::new(LamportOrder::new(ProcessId(me), &setup), ProcessId(me), &setup.group)
    }

    fn delivered(from: u32, number: u32) -> Effect<LamportOrder> {
        tell(Indication::Delivered(Unit { from: ProcessId(from), number }))
    }

    #[test]
    fn a_message_waits_for_word_from_everyone() {
        let mut p = process(0, 3);
        let data = Message::Data { time: 1, number: 1 };
        assert_eq!(p.ask(Request::Multicast(1)), [send(1, data), send(2, data)]);
        assert_eq!(p.hear(1, Message::Ack { time: 2 }), []);
        assert_eq!(p.hear(2, Message::Ack { time: 2 }), [delivered(0, 1)]);
    }

    #[test]
    fn of_two_of_the_same_time_the_lower_id_comes_first() {
        let mut p = process(1, 2);
        p.ask(Request::Multicast(1));
        let heard = p.hear(0, Message::Data { time: 1, number: 1 });
        assert_eq!(heard, [send(0, Message::Ack { time: 2 }), delivered(0, 1)]);
        assert_eq!(p.hear(0, Message::Ack { time: 2 }), [delivered(1, 1)]);
    }

    #[test]
    fn alone_a_message_is_due_at_once() {
        assert_eq!(process(0, 1).ask(Request::Multicast(1)), [delivered(0, 1)]);
    }
}
