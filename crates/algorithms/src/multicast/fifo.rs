//! FIFO order: each sender's messages are numbered, and nobody delivers one before its
//! predecessor.
//!
//! Only the number decides, never the order of arrival: two connections to one peer may overtake
//! each other.

mod sheet;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize};

use self::sheet::{ARRIVAL, FORGETFUL};
use super::{Indication, Request, Unit};

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
    /// What came too out_of_order, by its place in the stream.
    out_of_order: BTreeMap<u32, u32>,
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
        stream.out_of_order.insert(seq, number);
        while let Some(number) = stream.out_of_order.remove(&(stream.delivered + 1)) {
            stream.delivered += 1;
            ctx.indicate(Indication::Delivered(Unit { from, number }));
        }
    }
}
