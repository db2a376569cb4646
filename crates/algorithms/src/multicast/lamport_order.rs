//! Total order by Lamport's timestamps.
//!
//! Messages are delivered in the order of their timestamps. A message is due once a later timestamp
//! has arrived from every member: over FIFO channels no earlier one can follow. So every member
//! acknowledges each message, and a silent member stops all others.

mod sheet;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use konklave_process::{
    Context, Fixed, LamportClock, NoRecord, NoTimer, Process, ProcessId, ProcessMap,
};
use serde::{Deserialize, Serialize};

use super::{Indication, Request, Unit};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct LamportOrder {
    clock: LamportClock,
    /// Messages that are not due yet, by timestamp and sender.
    #[serde(serialize_with = "super::pairs")]
    queue: BTreeMap<(u32, ProcessId), u32>,
    /// The latest timestamp from each member.
    #[serde(rename = "heard")]
    latest: ProcessMap<u32>,
    #[serde(skip)]
    mistake: Fixed<Option<&'static str>>,
}

/// The messages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// A message.
    Data {
        /// Its timestamp.
        time: u32,
        /// The number of the application's message.
        number: u32,
    },
    /// All further messages of the sender have later timestamps.
    Ack {
        /// The timestamp.
        time: u32,
    },
}

impl LamportOrder {
    fn note_time(&mut self, from: ProcessId, time: u32) {
        if let Some(latest) = self.latest.get_mut(from) {
            *latest = time.max(*latest);
        }
        self.clock.witness(time);
    }

    fn deliver_due(&mut self, ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        while let Some((&(time, from), &number)) = self.queue.first_key_value() {
            let later = |(p, latest): (ProcessId, &u32)| p == me || (*latest, p) >= (time, from);
            if self.waits_for_all() && !self.latest.iter().all(later) {
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
        let time = if self.stamps_by_clock() { self.clock.tick() } else { number };
        self.queue.insert((time, ctx.me()), number);
        ctx.send_to_others(Message::Data { time, number });
        self.deliver_due(ctx);
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Data { time, number } => {
                self.note_time(from, time);
                self.queue.insert((time, from), number);
                if self.acknowledges() {
                    let time = self.clock.tick();
                    ctx.send_to_others(Message::Ack { time });
                }
            }
            Message::Ack { time } => self.note_time(from, time),
        }
        self.deliver_due(ctx);
    }
}
