//! Causal order by vector clocks (Birman, Schiper and Stephenson).
//!
//! Each message says how many messages of each sender its own sender had delivered. Who has not
//! delivered as many holds it back: no answer is delivered before its question.

use std::collections::BTreeMap;

use konklave_process::topology::Shape;
use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize};

use super::{Indication, Multicast, Request, Unit};
use crate::{Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Mistake, Setup};

const FIFO_ONLY: Mistake = Mistake {
    name: "fifo-only",
    what: "only the sender's own entry is compared, not what it had delivered of others",
    breaks: "causal order",
    caught_by: "-n 3 --requests 1,1,0",
};
const ONE_LOOK: Mistake = Mistake {
    name: "one-look",
    what: "what is held back is not looked at again when something was delivered",
    breaks: "validity",
    caught_by: "-n 2 --requests 2,0 --no-fifo",
};

const SHEET: DataSheet = DataSheet {
    name: "causal",
    title: "Causal multicast",
    idea: "A vector clock on each message holds it back until its causes were delivered.",
    source: "K. Birman, A. Schiper, P. Stephenson, TOCS 9(3), 1991",
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
            formula: "T, as causes travel no longer than their effects",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(Bound::AtMost),
        },
    ],
    guarantees: &[
        Guarantee::Validity,
        Guarantee::Integrity,
        Guarantee::FifoOrder,
        Guarantee::CausalOrder,
    ],
    fence: None,
    mistakes: &[FIFO_ONLY, ONE_LOOK],
    switches: &[],
};

/// How many messages of each sender: those without any are left out.
pub type Clock = BTreeMap<ProcessId, u32>;

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Causal {
    /// How many of each we have delivered; of our own: sent.
    delivered: Clock,
    /// What waits for its causes, by sender and place in its stream.
    #[serde(serialize_with = "super::pairs")]
    held: BTreeMap<(ProcessId, u32), (Clock, u32)>,
    #[serde(skip)]
    mistake: Fixed<Option<&'static str>>,
}

/// What the processes say.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// A message, and what its sender had delivered, itself included.
    Data {
        /// The clock.
        clock: Clock,
        /// What it says.
        number: u32,
    },
}

fn count(clock: &Clock, p: ProcessId) -> u32 {
    clock.get(&p).copied().unwrap_or(0)
}

impl Causal {
    fn is_due(&self, from: ProcessId, clock: &Clock) -> bool {
        let fifo_only = *self.mistake == Some(FIFO_ONLY.name);
        count(clock, from) == count(&self.delivered, from) + 1
            && (fifo_only
                || clock.iter().all(|(p, k)| *p == from || *k <= count(&self.delivered, *p)))
    }

    fn deliver_due(&mut self, ctx: &mut Context<'_, Self>) {
        loop {
            let due = self.held.iter().find(|((from, _), (clock, _))| self.is_due(*from, clock));
            let Some((&(from, seq), &(_, number))) = due else { return };
            self.held.remove(&(from, seq));
            self.delivered.insert(from, seq);
            ctx.indicate(Indication::Delivered(Unit { from, number }));
            if *self.mistake == Some(ONE_LOOK.name) {
                return;
            }
        }
    }
}

impl Process for Causal {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        let Request::Multicast(number) = request;
        *self.delivered.entry(ctx.me()).or_insert(0) += 1;
        ctx.send_to_others(Message::Data { clock: self.delivered.clone(), number });
        ctx.indicate(Indication::Delivered(Unit { from: ctx.me(), number }));
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        let Message::Data { clock, number } = message;
        let seq = count(&clock, from);
        if seq > count(&self.delivered, from) {
            self.held.insert((from, seq), (clock, number));
            self.deliver_due(ctx);
        }
    }

    fn at_rest(&self) -> bool {
        self.held.is_empty()
    }
}

impl Algorithm for Causal {
    type Problem = Multicast;
    const SHEET: DataSheet = SHEET;

    fn new(_me: ProcessId, setup: &Setup) -> Self {
        Self { delivered: Clock::new(), held: BTreeMap::new(), mistake: Fixed(setup.mistake) }
    }
}

#[cfg(test)]
mod tests {
    use konklave_process::{Effect, Group, Topology};
    use konklave_testkit::{Bench, tell};

    use super::*;

    fn process() -> Bench<Causal> {
        let setup = Setup::new(Group::of(3), Topology::complete(3));
        Bench::new(Causal::new(ProcessId(2), &setup), ProcessId(2), &setup.group)
    }

    fn data(clock: &[(u32, u32)], number: u32) -> Message {
        Message::Data { clock: clock.iter().map(|&(p, k)| (ProcessId(p), k)).collect(), number }
    }

    fn delivered(from: u32, number: u32) -> Effect<Causal> {
        tell(Indication::Delivered(Unit { from: ProcessId(from), number }))
    }

    #[test]
    fn an_answer_waits_for_its_question() {
        let mut p = process();
        assert_eq!(p.hear(1, data(&[(0, 1), (1, 1)], 1)), []);
        assert!(!p.process.at_rest());
        assert_eq!(p.hear(0, data(&[(0, 1)], 1)), [delivered(0, 1), delivered(1, 1)]);
        assert!(p.process.at_rest());
    }

    #[test]
    fn what_is_concurrent_is_delivered_as_it_comes() {
        let mut p = process();
        assert_eq!(p.hear(1, data(&[(1, 1)], 1)), [delivered(1, 1)]);
        assert_eq!(p.hear(0, data(&[(0, 1)], 1)), [delivered(0, 1)]);
        assert_eq!(p.hear(0, data(&[(0, 1)], 1)), [], "twice is once");
    }

    #[test]
    fn our_message_tells_what_we_have_delivered() {
        let mut p = process();
        p.hear(1, data(&[(1, 1)], 1));
        let sent = p.ask(Request::Multicast(1));
        let expected = data(&[(1, 1), (2, 1)], 1);
        assert!(sent.contains(&Effect::Send { to: ProcessId(0), message: expected }));
    }
}
