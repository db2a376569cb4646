//! Total order by agreement on priorities: the ABCAST of ISIS.
//!
//! Everyone proposes a priority for a message, the highest proposal is final, and messages are
//! delivered by final priority. A message whose priority may still grow holds back those behind it.

use std::collections::BTreeMap;

use konklave_process::topology::Shape;
use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId, ProcessSet};
use serde::{Deserialize, Serialize};

use super::{Indication, Multicast, Numbers, Request, Unit};
use crate::{Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Mistake, Setup};

const NO_TIES: Mistake = Mistake {
    name: "no-tie-break",
    what: "of equal priorities each takes its own message first: the id does not break the tie",
    breaks: "total order",
    caught_by: "-n 2 --requests 1,1",
};
const OWN_ONLY: Mistake = Mistake {
    name: "own-proposals-only",
    what: "a proposal exceeds the own proposals before it, but not the final priorities seen",
    breaks: "total order",
    caught_by: "-n 3 --requests 1,1,1",
};
const SKIPS: Mistake = Mistake {
    name: "skips",
    what: "a final message is delivered though one before it is not final",
    breaks: "total order",
    caught_by: "-n 2 --requests 1,1",
};

const SHEET: DataSheet = DataSheet {
    name: "isis",
    title: "ISIS ABCAST",
    idea: "Everyone proposes a priority, the highest is final; deliver by priority.",
    source: "K. Birman, T. Joseph, TOCS 5(1), 1987",
    assumes: &[
        Assumption::Reliable,
        Assumption::Fifo,
        Assumption::NoCrash,
        Assumption::KnownMembership,
    ],
    topologies: &[Shape::Complete],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "3(n − 1) for each multicast",
            when: "always",
            bound: |f| Some(Bound::Exactly(3.0 * f.entries() * (f.n() - 1.0))),
        },
        Cost {
            metric: Metric::Delivery,
            formula: "3T, and up to 2T more behind others",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(5.0 * t)),
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
    mistakes: &[NO_TIES, OWN_ONLY, SKIPS],
    switches: &[],
};

/// First the number, then the id of who proposed it.
pub type Priority = (u32, ProcessId);

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Isis {
    /// How many messages we have multicast.
    sent: u32,
    /// The highest number that we have proposed or seen as final.
    highest: u32,
    /// What is not delivered, by sender and place in its stream.
    #[serde(serialize_with = "super::pairs")]
    queue: BTreeMap<(ProcessId, u32), Entry>,
    /// What has ever been in the queue.
    seen: BTreeMap<ProcessId, Numbers>,
    /// For our own messages: the highest proposal, and who has not proposed.
    ballots: BTreeMap<u32, (Priority, ProcessSet)>,
    #[serde(skip)]
    mistake: Fixed<Option<&'static str>>,
}

/// A message that is not delivered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Entry {
    priority: Priority,
    last: bool,
    number: u32,
}

/// What the processes say.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// A message, at its place of the sender's stream.
    Data {
        /// Which in the stream, from 1.
        seq: u32,
        /// What it says.
        number: u32,
    },
    /// I propose this priority for your message.
    Propose {
        /// Which in the stream.
        seq: u32,
        /// The number.
        priority: u32,
    },
    /// This is the priority of my message.
    Final {
        /// Which in the stream.
        seq: u32,
        /// The priority.
        priority: Priority,
    },
}

impl Isis {
    fn makes(&self, mistake: &Mistake) -> bool {
        *self.mistake == Some(mistake.name)
    }

    /// Takes a message into the queue and says which number we propose; none if we know it.
    fn enqueue(&mut self, me: ProcessId, from: ProcessId, seq: u32, number: u32) -> Option<u32> {
        if !self.seen.entry(from).or_default().insert(seq) {
            return None;
        }
        self.highest += 1;
        let entry = Entry { priority: (self.highest, me), last: false, number };
        self.queue.insert((from, seq), entry);
        Some(self.highest)
    }

    /// One more has proposed; after the last, the highest is final.
    fn count(&mut self, seq: u32, by: Priority, ctx: &mut Context<'_, Self>) {
        let Some((highest, missing)) = self.ballots.get_mut(&seq) else { return };
        *highest = by.max(*highest);
        missing.remove(by.1);
        if missing.is_empty() {
            let priority = *highest;
            self.ballots.remove(&seq);
            ctx.send_to_others(Message::Final { seq, priority });
            self.settle((ctx.me(), seq), priority, ctx);
        }
    }

    fn settle(&mut self, id: (ProcessId, u32), priority: Priority, ctx: &mut Context<'_, Self>) {
        let Some(entry) = self.queue.get_mut(&id) else { return };
        *entry = Entry { priority, last: true, ..*entry };
        if !self.makes(&OWN_ONLY) {
            self.highest = self.highest.max(priority.0);
        }
        let (ties, skips) = (!self.makes(&NO_TIES), self.makes(&SKIPS));
        let me = ctx.me();
        let rank = |from: ProcessId, e: &Entry| {
            let others = ProcessId(u32::from(from != me));
            (e.priority.0, if ties { e.priority.1 } else { others })
        };
        let first = |queue: &BTreeMap<(ProcessId, u32), Entry>| {
            let rest = queue.iter().filter(|(_, e)| e.last || !skips);
            rest.min_by_key(|(id, e)| rank(id.0, e)).map(|(id, e)| (*id, *e))
        };
        while let Some((id, entry)) = first(&self.queue).filter(|(_, e)| e.last) {
            self.queue.remove(&id);
            ctx.indicate(Indication::Delivered(Unit { from: id.0, number: entry.number }));
        }
    }
}

impl Process for Isis {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        let Request::Multicast(number) = request;
        let me = ctx.me();
        self.sent += 1;
        let seq = self.sent;
        ctx.send_to_others(Message::Data { seq, number });
        if let Some(own) = self.enqueue(me, me, seq, number) {
            let members = ctx.group().members().iter().copied().collect();
            self.ballots.insert(seq, ((own, me), members));
            self.count(seq, (own, me), ctx);
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Data { seq, number } => {
                if let Some(priority) = self.enqueue(ctx.me(), from, seq, number) {
                    ctx.send(from, Message::Propose { seq, priority });
                }
            }
            Message::Propose { seq, priority } => self.count(seq, (priority, from), ctx),
            Message::Final { seq, priority } => self.settle((from, seq), priority, ctx),
        }
    }

    fn at_rest(&self) -> bool {
        self.queue.is_empty() && self.ballots.is_empty()
    }
}

impl Algorithm for Isis {
    type Problem = Multicast;
    const SHEET: DataSheet = SHEET;

    fn new(_me: ProcessId, setup: &Setup) -> Self {
        Self {
            sent: 0,
            highest: 0,
            queue: BTreeMap::new(),
            seen: BTreeMap::new(),
            ballots: BTreeMap::new(),
            mistake: Fixed(setup.mistake),
        }
    }
}

#[cfg(test)]
mod tests {
    use konklave_process::{Effect, Group, Topology};
    use konklave_testkit::{Bench, send, tell};

    use super::*;

    fn process(me: u32, n: usize) -> Bench<Isis> {
        let setup = Setup::new(Group::of(n), Topology::complete(n));
        Bench::new(Isis::new(ProcessId(me), &setup), ProcessId(me), &setup.group)
    }

    fn delivered(from: u32, number: u32) -> Effect<Isis> {
        tell(Indication::Delivered(Unit { from: ProcessId(from), number }))
    }

    const DATA: Message = Message::Data { seq: 1, number: 1 };

    fn propose(priority: u32) -> Message {
        Message::Propose { seq: 1, priority }
    }

    fn settled(number: u32, p: u32) -> Message {
        Message::Final { seq: 1, priority: (number, ProcessId(p)) }
    }

    #[test]
    fn the_highest_proposal_is_final_and_all_must_have_proposed() {
        let mut p = process(0, 3);
        assert_eq!(p.ask(Request::Multicast(1)), [send(1, DATA), send(2, DATA)]);
        assert_eq!(p.hear(1, propose(4)), []);
        assert_eq!(p.hear(1, propose(4)), [], "one that proposes twice is still one");
        let last = [send(1, settled(4, 1)), send(2, settled(4, 1)), delivered(0, 1)];
        assert_eq!(p.hear(2, propose(2)), last);
        assert!(p.process.at_rest());
    }

    #[test]
    fn i3_a_proposal_exceeds_every_final_priority_seen() {
        let mut p = process(2, 3);
        assert_eq!(p.hear(0, DATA), [send(0, propose(1))]);
        p.hear(0, settled(7, 1));
        assert_eq!(p.hear(1, DATA), [send(1, propose(8))]);
    }

    #[test]
    fn i4_a_final_message_waits_behind_one_that_is_not() {
        let mut p = process(2, 3);
        p.hear(0, DATA);
        p.hear(1, DATA);
        assert_eq!(p.hear(1, settled(2, 2)), []);
        assert_eq!(p.hear(0, settled(3, 0)), [delivered(1, 1), delivered(0, 1)]);
    }

    #[test]
    fn i2_of_equal_numbers_the_lower_id_comes_first() {
        let mut p = process(2, 3);
        p.hear(0, DATA);
        p.hear(1, DATA);
        p.hear(0, settled(5, 1));
        assert_eq!(p.hear(1, settled(5, 0)), [delivered(1, 1), delivered(0, 1)]);
    }

    #[test]
    fn alone_a_message_is_final_at_once() {
        assert_eq!(process(0, 1).ask(Request::Multicast(1)), [delivered(0, 1)]);
    }
}
