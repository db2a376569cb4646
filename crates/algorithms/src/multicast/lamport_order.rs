//! Total order by Lamport's timestamps.
//!
//! Messages are delivered in the order of their timestamps. A message is due once everyone has been
//! heard from with a later time: over FIFO channels nothing earlier can come any more. So everyone
//! answers each message, and one who stays silent stops all.

mod sheet;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use konklave_process::{
    Context, Fixed, LamportClock, NoRecord, NoTimer, Process, ProcessId, ProcessMap,
};
use serde::{Deserialize, Serialize};

use self::sheet::{DEAF_CLOCK, HASTY, SILENT};
use super::{Indication, Request, Unit};
use crate::Mistake;

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct LamportOrder {
    clock: LamportClock,
    /// What is not due yet, by time and sender.
    #[serde(serialize_with = "super::pairs")]
    queue: BTreeMap<(u32, ProcessId), u32>,
    /// The last time we heard from each.
    latest: ProcessMap<u32>,
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

    fn note_time(&mut self, from: ProcessId, time: u32) {
        if let Some(heard) = self.latest.get_mut(from) {
            *heard = time.max(*heard);
        }
        self.clock.witness(time);
    }

    fn deliver_due(&mut self, ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        while let Some((&(time, from), &number)) = self.queue.first_key_value() {
            let hasty = self.makes(&HASTY);
            let later = |(p, heard): (ProcessId, &u32)| p == me || (*heard, p) >= (time, from);
            if !hasty && !self.latest.iter().all(later) {
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
                self.note_time(from, time);
                self.queue.insert((time, from), number);
                if !self.makes(&SILENT) {
                    let time = self.clock.tick();
                    ctx.send_to_others(Message::Ack { time });
                }
            }
            Message::Ack { time } => self.note_time(from, time),
        }
        self.deliver_due(ctx);
    }
}
