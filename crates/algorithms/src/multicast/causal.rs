//! Causal order by vector clocks (Birman, Schiper and Stephenson).
//!
//! Each message says how many messages of each sender its own sender had delivered. Who has not
//! delivered as many holds it back: no answer is delivered before its question.

mod sheet;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize};

use self::sheet::{FIFO_ONLY, ONE_LOOK};
use super::{Indication, Request, Unit};

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
}
