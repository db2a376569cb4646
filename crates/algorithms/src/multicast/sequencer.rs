//! Total order by a fixed sequencer: the first of the group numbers all messages.
//!
//! In mode BB, the sender sends its message to all members, and the sequencer sends its number. In
//! mode UB, the sender sends its message to the sequencer, which sends it on with its number.
//!
//! A member delivers a message in its turn (agreed), or once a majority holds message and number:
//! each member reports that to all members (uniform), or to the sequencer alone (committed).

mod sheet;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use konklave_process::{Context, Fixed, NoRecord, Process, ProcessId, ProcessMap};
use serde::{Deserialize, Serialize};

use super::sender_map::SenderMap;
use super::{Indication, Note, Request, Unit};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Sequencer {
    /// How many messages this process has multicast.
    sent: u32,
    /// Messages that wait for their number or their turn, by sender and place in its stream.
    #[serde(serialize_with = "super::pairs")]
    bodies: BTreeMap<(ProcessId, u32), u32>,
    /// The message of each number, from the first undelivered one on.
    order: BTreeMap<u32, (ProcessId, u32)>,
    /// How many messages were delivered: the next delivery has this number.
    delivered: u32,
    /// How many messages of each sender were delivered.
    streams: SenderMap<u32>,
    /// This process holds all messages below this number.
    held: u32,
    /// At the sequencer: the numbers given.
    #[serde(rename = "desk")]
    numbering: Numbering,
    /// Uniform and committed: the number below which each member holds all messages.
    holds: Option<ProcessMap<u32>>,
    /// Committed: the number below which a majority holds all messages.
    committed: u32,
    #[serde(skip)]
    settings: Fixed<Settings>,
}

/// The state of the sequencer.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize)]
pub struct Numbering {
    /// The next number to give.
    next: u32,
    /// How many messages of each sender have a number.
    numbered: SenderMap<u32>,
    /// Numbered messages whose numbers were not sent yet.
    batch: Vec<(ProcessId, u32)>,
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    sequencer: ProcessId,
    bb: bool,
    delivery: Delivery,
    batch: usize,
    wait: std::time::Duration,
    mistake: Option<&'static str>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Delivery {
    Agreed,
    Uniform,
    Committed,
}

/// The messages.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// A message of the sender: to the sequencer (UB) or to all (BB).
    Data {
        /// Its place in the sender's stream, from 1.
        seq: u32,
        /// The number of the application's message.
        number: u32,
    },
    /// From the sequencer (UB): a message with its number.
    Numbered {
        /// Its number in the order.
        position: u32,
        /// Its sender.
        from: ProcessId,
        /// Its place in the sender's stream.
        seq: u32,
        /// The number of the application's message.
        number: u32,
    },
    /// From the sequencer (BB): these messages have the numbers from `first` on.
    Order {
        /// The first number.
        first: u32,
        /// Senders and places in their streams.
        ids: Vec<(ProcessId, u32)>,
    },
    /// The sender holds all messages below this number.
    Held(u32),
    /// A majority holds all messages below this number.
    Commit(u32),
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// The batch of numbers is due.
    Batch,
}

impl Sequencer {
    /// A message arrives. The sequencer gives numbers to all messages of its sender that are due.
    fn accept(&mut self, from: ProcessId, seq: u32, number: u32, ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        if me == self.settings.sequencer {
            let numbered = self.numbering.numbered.of(from);
            if seq <= *numbered && self.numbers_in_turn() {
                return;
            }
            self.bodies.insert((from, seq), number);
            if !self.numbers_in_turn() {
                return self.give_number(from, seq, ctx);
            }
            while let Some(seq) = self.due(from) {
                self.give_number(from, seq, ctx);
            }
        } else if seq > self.streams.get(from).copied().unwrap_or(0) {
            self.bodies.insert((from, seq), number);
            self.hold(ctx);
        }
    }

    /// The place of this sender's next message without a number, if it has arrived.
    fn due(&self, from: ProcessId) -> Option<u32> {
        let next = self.numbering.numbered.get(from).copied().unwrap_or(0) + 1;
        self.bodies.contains_key(&(from, next)).then_some(next)
    }

    fn give_number(&mut self, from: ProcessId, seq: u32, ctx: &mut Context<'_, Self>) {
        let position = self.numbering.next;
        self.numbering.next += 1;
        *self.numbering.numbered.of(from) = seq;
        self.order.insert(position, (from, seq));
        if self.settings.bb {
            self.numbering.batch.push((from, seq));
            if self.numbering.batch.len() >= self.settings.batch {
                self.send_batch(ctx);
            } else if self.numbering.batch.len() == 1 {
                ctx.set_timer(Timer::Batch, self.settings.wait);
            }
        } else {
            let number = self.bodies[&(from, seq)];
            ctx.send_to_others(Message::Numbered { position, from, seq, number });
        }
        self.hold(ctx);
    }

    fn send_batch(&mut self, ctx: &mut Context<'_, Self>) {
        let ids = std::mem::take(&mut self.numbering.batch);
        if self.settings.batch > 1 {
            ctx.cancel_timer(Timer::Batch);
        }
        if !ids.is_empty() {
            let first = self.numbering.next - ids.len() as u32;
            ctx.send_to_others(Message::Order { first, ids });
        }
    }

    /// Updates up to which number this process holds all messages, reports it if others wait for it,
    /// and delivers.
    fn hold(&mut self, ctx: &mut Context<'_, Self>) {
        let before = self.held;
        while let Some(id) = self.order.get(&self.held)
            && let Some(&number) = self.bodies.get(id)
        {
            ctx.indicate(Indication::Note(Note::Held(Unit { from: id.0, number })));
            self.held += 1;
        }
        if self.held > before {
            let (me, sequencer) = (ctx.me(), self.settings.sequencer);
            match self.settings.delivery {
                Delivery::Agreed => {}
                Delivery::Uniform => {
                    ctx.send_to_others(Message::Held(self.held));
                    self.note_held(me, self.held);
                }
                Delivery::Committed if me == sequencer => self.on_held(me, self.held, ctx),
                Delivery::Committed => ctx.send(sequencer, Message::Held(self.held)),
            }
        }
        self.deliver(ctx);
    }

    /// Notes that `p` holds all messages below this number.
    fn note_held(&mut self, p: ProcessId, below: u32) {
        if let Some(held) = self.holds.as_mut().and_then(|holds| holds.get_mut(p)) {
            *held = below.max(*held);
        }
    }

    /// The number below which a majority holds all messages.
    fn majority(&self) -> u32 {
        let Some(holds) = &self.holds else { return 0 };
        let mut all: Vec<u32> = holds.values().copied().collect();
        all.sort_unstable_by(|a, b| b.cmp(a));
        all[all.len() / 2]
    }

    fn on_held(&mut self, from: ProcessId, below: u32, ctx: &mut Context<'_, Self>) {
        self.note_held(from, below);
        if self.settings.delivery == Delivery::Committed {
            let majority = self.majority();
            if majority > self.committed {
                self.committed = majority;
                ctx.send_to_others(Message::Commit(majority));
            }
        }
    }

    fn deliver(&mut self, ctx: &mut Context<'_, Self>) {
        let allowed = match self.settings.delivery {
            Delivery::Agreed => self.held,
            _ if !self.waits_for_majority() => self.held,
            Delivery::Uniform => self.majority().min(self.held),
            Delivery::Committed => self.committed.min(self.held),
        };
        while self.delivered < allowed {
            let Some(id) = self.order.remove(&self.delivered) else { return };
            self.delivered += 1;
            *self.streams.of(id.0) = id.1;
            let Some(number) = self.bodies.remove(&id) else { continue };
            if id.0 != ctx.me() || self.delivers_own_in_turn() {
                ctx.indicate(Indication::Delivered(Unit { from: id.0, number }));
            }
        }
    }
}

impl Process for Sequencer {
    type Message = Message;
    type Timer = Timer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        let Request::Multicast(number) = request;
        let (me, sequencer) = (ctx.me(), self.settings.sequencer);
        self.sent += 1;
        let data = Message::Data { seq: self.sent, number };
        if !self.delivers_own_in_turn() {
            ctx.indicate(Indication::Delivered(Unit { from: me, number }));
        }
        if self.settings.bb {
            ctx.send_to_others(data);
            self.accept(me, self.sent, number, ctx);
        } else if me == sequencer {
            self.accept(me, self.sent, number, ctx);
        } else {
            ctx.send(sequencer, data);
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Data { seq, number } => self.accept(from, seq, number, ctx),
            Message::Numbered { position, from, seq, number } => {
                if position >= self.delivered {
                    self.order.insert(position, (from, seq));
                    self.bodies.insert((from, seq), number);
                    self.hold(ctx);
                }
            }
            Message::Order { first, ids } => {
                let fresh = (first..).zip(ids).filter(|(k, _)| *k >= self.delivered);
                self.order.extend(fresh);
                self.hold(ctx);
            }
            Message::Held(below) => {
                self.on_held(from, below, ctx);
                self.deliver(ctx);
            }
            Message::Commit(below) => {
                self.committed = below.max(self.committed);
                self.deliver(ctx);
            }
        }
    }

    fn on_timer(&mut self, Timer::Batch: Timer, ctx: &mut Context<'_, Self>) {
        self.send_batch(ctx);
    }
}
