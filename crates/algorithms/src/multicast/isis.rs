//! Total order by agreement on priorities: the ABCAST of ISIS.
//!
//! Every member proposes a priority for a message, and the highest proposal is final. Messages are
//! delivered by final priority: one whose priority may still grow holds back all behind it.

mod sheet;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId, ProcessSet};
use serde::{Deserialize, Serialize};

use super::{Indication, Numbers, Request, Unit};

/// A priority: a number, and the id of the member that proposed it, which breaks ties.
pub type Priority = (u32, ProcessId);

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Isis {
    /// How many messages this process has multicast.
    sent: u32,
    /// The highest number that this process has proposed or received as final.
    highest: u32,
    /// The undelivered messages, by sender and place in its stream.
    #[serde(serialize_with = "super::pairs")]
    queue: BTreeMap<(ProcessId, u32), Entry>,
    /// All messages that have ever been in the queue.
    seen: BTreeMap<ProcessId, Numbers>,
    /// For each own message: the highest proposal, and the members that have not proposed.
    ballots: BTreeMap<u32, (Priority, ProcessSet)>,
    #[serde(skip)]
    mistake: Fixed<Option<&'static str>>,
}

/// An undelivered message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Entry {
    priority: Priority,
    /// Whether the priority is final.
    #[serde(rename = "last")]
    is_final: bool,
    number: u32,
}

/// The messages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// A message, at its place of the sender's stream.
    Data {
        /// Its place in the stream, from 1.
        seq: u32,
        /// The number of the application's message.
        number: u32,
    },
    /// The sender proposes this priority for a message of the receiver.
    Propose {
        /// Which in the stream.
        seq: u32,
        /// The number.
        priority: u32,
    },
    /// The final priority of a message of the sender.
    Final {
        /// Which in the stream.
        seq: u32,
        /// The priority.
        priority: Priority,
    },
}

impl Isis {
    /// Puts a message into the queue. The result is the number to propose; none for a copy.
    fn enqueue(&mut self, me: ProcessId, from: ProcessId, seq: u32, number: u32) -> Option<u32> {
        if !self.seen.entry(from).or_default().insert(seq) {
            return None;
        }
        self.highest += 1;
        let entry = Entry { priority: (self.highest, me), is_final: false, number };
        self.queue.insert((from, seq), entry);
        Some(self.highest)
    }

    /// A member has proposed. After the last proposal, the highest one is final.
    fn on_proposal(&mut self, seq: u32, by: Priority, ctx: &mut Context<'_, Self>) {
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

    /// The priority of a message is final: delivers all messages that no other one holds back.
    fn settle(&mut self, id: (ProcessId, u32), priority: Priority, ctx: &mut Context<'_, Self>) {
        let Some(entry) = self.queue.get_mut(&id) else { return };
        *entry = Entry { priority, is_final: true, ..*entry };
        if self.exceeds_final() {
            self.highest = self.highest.max(priority.0);
        }
        let (ties, waits) = (self.breaks_ties_by_id(), self.waits_for_final());
        let me = ctx.me();
        let rank = |from: ProcessId, e: &Entry| {
            let others = ProcessId(u32::from(from != me));
            (e.priority.0, if ties { e.priority.1 } else { others })
        };
        let first = |queue: &BTreeMap<(ProcessId, u32), Entry>| {
            let rest = queue.iter().filter(|(_, e)| e.is_final || waits);
            rest.min_by_key(|(id, e)| rank(id.0, e)).map(|(id, e)| (*id, *e))
        };
        while let Some((id, entry)) = first(&self.queue).filter(|(_, e)| e.is_final) {
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
            self.on_proposal(seq, (own, me), ctx);
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Data { seq, number } => {
                if let Some(priority) = self.enqueue(ctx.me(), from, seq, number) {
                    ctx.send(from, Message::Propose { seq, priority });
                }
            }
            Message::Propose { seq, priority } => self.on_proposal(seq, (priority, from), ctx),
            Message::Final { seq, priority } => self.settle((from, seq), priority, ctx),
        }
    }
}
