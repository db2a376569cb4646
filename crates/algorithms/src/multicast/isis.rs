//! Total order by agreement on priorities: the ABCAST of ISIS.
//!
//! Everyone proposes a priority for a message, the highest proposal is final, and messages are
//! delivered by final priority. A message whose priority may still grow holds back those behind it.

mod sheet;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId, ProcessSet};
use serde::{Deserialize, Serialize};

use self::sheet::{NO_TIES, OWN_ONLY, SKIPS};
use super::{Indication, Numbers, Request, Unit};
use crate::Mistake;

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
    is_final: bool,
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
        let entry = Entry { priority: (self.highest, me), is_final: false, number };
        self.queue.insert((from, seq), entry);
        Some(self.highest)
    }

    /// One more has proposed; after the last, the highest is final.
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

    fn settle(&mut self, id: (ProcessId, u32), priority: Priority, ctx: &mut Context<'_, Self>) {
        let Some(entry) = self.queue.get_mut(&id) else { return };
        *entry = Entry { priority, is_final: true, ..*entry };
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
            let rest = queue.iter().filter(|(_, e)| e.is_final || !skips);
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
