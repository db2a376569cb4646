//! Total order by a fixed sequencer: the first of the group numbers all messages.
//!
//! Either everyone gets the message from its sender and the number from the sequencer (BB), or the
//! sequencer gets the message and sends it on with its number (UB). A message is delivered as soon
//! as it has a number (agreed), or once a majority holds both (uniform).

mod sheet;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use konklave_process::{Context, Fixed, NoRecord, Process, ProcessId, ProcessMap};
use serde::{Deserialize, Serialize};

use self::sheet::{ANY_TURN, HASTY, OWN_TURN, SHEET, TWICE};
use super::sender_map::SenderMap;
use super::{Indication, Note, Request, Unit};
use crate::{Bound, Facts, Mistake};

fn alone(f: &Facts<'_>) -> bool {
    f.setup.chosen(&SHEET, "batch").is("1")
}

fn delivery(f: &Facts<'_>) -> Option<Bound> {
    let times = match f.setup.chosen(&SHEET, "delivery").0 {
        "uniform" => 3.0,
        "committed" => 4.0,
        _ => 2.0,
    };
    f.delay_max.filter(|_| alone(f)).map(|t| Bound::AtMost(times * t))
}

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Sequencer {
    /// How many messages we have multicast.
    sent: u32,
    /// Messages that wait for their number or their turn, by sender and place in its stream.
    #[serde(serialize_with = "super::pairs")]
    bodies: BTreeMap<(ProcessId, u32), u32>,
    /// Which message each number belongs to, from the first we have not delivered.
    order: BTreeMap<u32, (ProcessId, u32)>,
    /// How many we have delivered: the next number is this one.
    delivered: u32,
    /// How many of each sender we have delivered.
    streams: SenderMap<u32>,
    /// All below this number we hold, message and number.
    held: u32,
    /// The sequencer's own.
    numbering: Numbering,
    /// Uniform: below which number each member holds all.
    holds: Option<ProcessMap<u32>>,
    /// Committed: below which number a majority holds all.
    committed: u32,
    #[serde(skip)]
    settings: Fixed<Settings>,
}

/// What the sequencer does.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize)]
pub struct Numbering {
    /// The next number to give.
    next: u32,
    /// How many of each sender have a number.
    numbered: SenderMap<u32>,
    /// Numbers that have not gone out.
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

/// What the processes say.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// To the sequencer (ub) or to all (bb): my message at this place of my stream.
    Data {
        /// Which in the stream, from 1.
        seq: u32,
        /// What it says.
        number: u32,
    },
    /// The sequencer (ub): this message has this number.
    Numbered {
        /// Its number in the order.
        position: u32,
        /// Whose it is.
        from: ProcessId,
        /// Which in the stream.
        seq: u32,
        /// What it says.
        number: u32,
    },
    /// The sequencer (bb): these messages have the numbers from `first` on.
    Order {
        /// The first number.
        first: u32,
        /// Whose, and which in the stream.
        ids: Vec<(ProcessId, u32)>,
    },
    /// I hold all below this number.
    Held(u32),
    /// A majority holds all below this number.
    Commit(u32),
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// Numbers have waited long enough to go out.
    Batch,
}

impl Sequencer {
    fn makes(&self, mistake: &Mistake) -> bool {
        self.settings.mistake == Some(mistake.name)
    }

    /// A message is here; the sequencer gives numbers to all of its sender that are due.
    fn accept(&mut self, from: ProcessId, seq: u32, number: u32, ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        if me == self.settings.sequencer {
            let numbered = self.numbering.numbered.of(from);
            if seq <= *numbered && !self.makes(&TWICE) && !self.makes(&ANY_TURN) {
                return;
            }
            self.bodies.insert((from, seq), number);
            if self.makes(&TWICE) || self.makes(&ANY_TURN) {
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

    /// The next of this sender, if it is here.
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

    /// Sees how far we hold messages and numbers, says so where others wait for it, and delivers.
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

    /// Below which number `p` holds all.
    fn note_held(&mut self, p: ProcessId, below: u32) {
        if let Some(held) = self.holds.as_mut().and_then(|holds| holds.get_mut(p)) {
            *held = below.max(*held);
        }
    }

    /// Below which number a majority holds all.
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
            _ if self.makes(&HASTY) => self.held,
            Delivery::Uniform => self.majority().min(self.held),
            Delivery::Committed => self.committed.min(self.held),
        };
        while self.delivered < allowed {
            let Some(id) = self.order.remove(&self.delivered) else { return };
            self.delivered += 1;
            *self.streams.of(id.0) = id.1;
            let Some(number) = self.bodies.remove(&id) else { continue };
            if id.0 != ctx.me() || !self.makes(&OWN_TURN) {
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
        if self.makes(&OWN_TURN) {
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
