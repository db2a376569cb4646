//! Causal order by vector clocks (Birman, Schiper and Stephenson).
//!
//! Each message carries a vector clock: how many messages of each sender its own sender had delivered.
//! A member that has delivered fewer holds the message back, until it has delivered all its causes.

mod sheet;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize};

use super::{Indication, Request, Unit};

/// A vector clock: the number of messages of each sender. Senders with none are left out.
pub type Clock = BTreeMap<ProcessId, u32>;

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Causal {
    /// How many messages of each sender this process has delivered, and of its own: sent.
    delivered: Clock,
    /// Messages that wait for their causes, by sender and place in its stream, with clock and number.
    #[serde(serialize_with = "super::pairs")]
    held: BTreeMap<(ProcessId, u32), (Clock, u32)>,
    #[serde(skip)]
    mistake: Fixed<Option<&'static str>>,
}

/// The messages.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// A message with the clock of its sender, which counts the message itself.
    Data {
        /// The clock.
        clock: Clock,
        /// The number of the application's message.
        number: u32,
    },
}

fn count(clock: &Clock, p: ProcessId) -> u32 {
    clock.get(&p).copied().unwrap_or(0)
}

impl Causal {
    /// Whether a message is due: it is the next of its sender, and all its causes are delivered.
    fn is_due(&self, from: ProcessId, clock: &Clock) -> bool {
        let is_next = count(clock, from) == count(&self.delivered, from) + 1;
        let caused = |(p, k): (&ProcessId, &u32)| *p == from || *k <= count(&self.delivered, *p);
        is_next && (!self.waits_for_others() || clock.iter().all(caused))
    }

    fn deliver_due(&mut self, ctx: &mut Context<'_, Self>) {
        loop {
            let due = self.held.iter().find(|((from, _), (clock, _))| self.is_due(*from, clock));
            let Some((&(from, seq), &(_, number))) = due else { return };
            self.held.remove(&(from, seq));
            self.delivered.insert(from, seq);
            ctx.indicate(Indication::Delivered(Unit { from, number }));
            if !self.looks_again() {
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
}
