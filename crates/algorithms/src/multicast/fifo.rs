//! FIFO order: each sender numbers its messages, and no member delivers one before its predecessor.
//!
//! Two messages to one member may travel over two connections, and overtake each other. So only the
//! number decides, never the order of arrival.

mod sheet;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize};

use super::{Indication, Request, Unit};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Fifo {
    /// How many messages this process has multicast.
    sent: u32,
    /// The streams of all senders of which a message has arrived.
    streams: BTreeMap<ProcessId, Stream>,
    #[serde(skip)]
    mistake: Fixed<Option<&'static str>>,
}

/// The stream of one sender.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize)]
pub struct Stream {
    /// How many messages were delivered.
    delivered: u32,
    /// Messages that arrived before one of their predecessors, by place.
    #[serde(rename = "early")]
    out_of_order: BTreeMap<u32, u32>,
}

/// The messages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// A message and its place in the sender's stream.
    Data {
        /// Its place in the stream, from 1.
        seq: u32,
        /// The number of the application's message.
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
        if !self.waits_for_predecessor() {
            return ctx.indicate(Indication::Delivered(Unit { from, number }));
        }
        let keeps = self.keeps_out_of_order();
        let stream = self.streams.entry(from).or_default();
        if seq <= stream.delivered || seq > stream.delivered + 1 && !keeps {
            return;
        }
        stream.out_of_order.insert(seq, number);
        while let Some(number) = stream.out_of_order.remove(&(stream.delivered + 1)) {
            stream.delivered += 1;
            ctx.indicate(Indication::Delivered(Unit { from, number }));
        }
    }
}
