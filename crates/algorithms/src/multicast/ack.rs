//! Reliable multicast by acknowledgements: the sender knows its receivers, and repeats a message
//! until each receiver has confirmed it.
//!
//! - A window limits the unconfirmed messages.
//! - Confirmations are cumulative and selective. Many confirmations would swamp the sender
//!   (implosion): so a receiver can delay one and confirm many messages at once, or a tree can gather
//!   them.
//! - A receiver that stays silent for too long is given up: otherwise it would hold up all others.
//! - If the sender crashes half-way, only some receivers have its message. Only a view change can
//!   mend that.

mod settings;
mod sheet;
mod stream;
#[cfg(test)]
mod tests;
mod transmissions;

use std::collections::{BTreeMap, VecDeque};

use konklave_process::{Context, Fixed, Process, ProcessId, ProcessMap, ProcessSet};
use serde::{Deserialize, Serialize};

use self::settings::Settings;
pub use self::stream::Stream;
pub use self::transmissions::{deviation_of_transmissions, expected_transmissions};
use super::{Indication, Note, Numbers, Request, Unit};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Ack {
    /// The incarnation of this process. Its numbers begin anew in each.
    life: u32,
    sending: Option<Box<Sending>>,
    streams: BTreeMap<ProcessId, Stream>,
    /// The receivers for which this sender waits no longer.
    given_up: ProcessSet,
    /// After a restart: the members whose `Welcome` is missing. Until then, the start of their streams
    /// is unknown.
    #[serde(rename = "strangers")]
    welcomes_missing: ProcessSet,
    #[serde(skip)]
    settings: Fixed<Settings>,
}

/// The state of a sender.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Sending {
    sent: u32,
    /// The messages that a receiver has not confirmed, by their places in the stream.
    #[serde(rename = "open")]
    outstanding: BTreeMap<u32, Outstanding>,
    /// The messages that the window does not admit yet.
    queue: VecDeque<u32>,
    confirmed: ProcessMap<Numbers>,
}

/// A message that a receiver has not confirmed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Outstanding {
    number: u32,
    /// How often it was repeated.
    tries: u32,
    /// How many receivers have not confirmed it.
    missing: u32,
}

/// How often a timeout is doubled at most.
const MOST_DOUBLINGS: u32 = 5;

/// The messages.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// A message at its place of the sender's stream.
    Data {
        /// The incarnation of the sender.
        life: u32,
        /// Its place in the stream, from 1.
        seq: u32,
        /// The number of the application's message.
        number: u32,
    },
    /// The receiver has all messages up to `upto`, and those in `beyond`.
    Ack {
        /// The sender of the stream.
        of: ProcessId,
        /// The incarnation of that sender.
        life: u32,
        /// All messages up to this place.
        upto: u32,
        /// Further messages after a gap.
        beyond: Vec<u32>,
    },
    /// The sender has restarted, and asks for the start of the receiver's stream.
    Hello,
    /// The receiver gets the sender's stream from after this place on.
    Welcome {
        /// The incarnation of the sender.
        life: u32,
        /// The place.
        base: u32,
    },
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// The message at this place should be confirmed by now.
    Retry(u32),
    /// A delayed confirmation to this sender is due.
    Confirm(ProcessId),
    /// Every `Welcome` should have arrived by now.
    Hello,
}

impl Process for Ack {
    type Message = Message;
    type Timer = Timer;
    type Request = Request;
    type Indication = Indication;
    type Record = u32;

    fn on_start(&mut self, ctx: &mut Context<'_, Self>) {
        ctx.save(self.life);
    }

    fn on_recover(&mut self, saved: Option<u32>, ctx: &mut Context<'_, Self>) {
        if self.counts_restarts() {
            self.life = saved.unwrap_or(0) + 1;
        }
        ctx.save(self.life);
        self.welcomes_missing = ctx.others().collect();
        self.on_timer(Timer::Hello, ctx);
    }

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        let Request::Multicast(number) = request;
        let fresh = || {
            let confirmed = ProcessMap::new(ctx.group(), Numbers::default());
            Box::new(Sending {
                sent: 0,
                outstanding: BTreeMap::new(),
                queue: VecDeque::new(),
                confirmed,
            })
        };
        self.sending.get_or_insert_with(fresh).queue.push_back(number);
        self.send_admitted(ctx);
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Data { life, seq, number } => self.on_data(from, life, seq, number, ctx),
            Message::Ack { of, life, upto, beyond } => {
                if of != ctx.me() {
                    self.on_child_ack(of, life, from, upto, ctx);
                } else if life == self.life {
                    self.on_ack(from, upto, &beyond, ctx);
                }
            }
            Message::Hello => {
                // `from` does not get the messages that it missed: its stream begins now.
                self.streams.retain(|_, stream| {
                    stream.forget_child(from);
                    true
                });
                let base = self.sending.as_ref().map_or(0, |sending| sending.sent);
                self.on_ack(from, base, &[], ctx);
                self.given_up.remove(from);
                ctx.send(from, Message::Welcome { life: self.life, base });
            }
            Message::Welcome { life, base } => {
                if self.welcomes_missing.remove(from) {
                    self.streams.insert(from, Stream::from_base(life, base));
                }
            }
        }
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Context<'_, Self>) {
        match timer {
            Timer::Retry(seq) => self.repeat(seq, ctx),
            Timer::Confirm(from) => self.confirm(from, ctx),
            Timer::Hello => {
                for p in self.welcomes_missing.iter() {
                    ctx.send(p, Message::Hello);
                }
                if !self.welcomes_missing.is_empty() {
                    ctx.set_timer(Timer::Hello, self.settings.unit * self.settings.timeout);
                }
            }
        }
    }

    fn on_suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        if self.gives_up() {
            self.give_up(peer, ctx);
            self.send_admitted(ctx);
        }
    }
}

impl Ack {
    /// Whether `me`, as a sender, waits for confirmations from `p` itself.
    fn awaits(&self, me: ProcessId, p: ProcessId) -> bool {
        if p == me || self.given_up.contains(p) {
            return false;
        }
        self.settings.fanout == 0 || self.settings.parent(me, p) == Some(me)
    }

    /// Sends queued messages, as many as the window admits.
    fn send_admitted(&mut self, ctx: &mut Context<'_, Self>) {
        // Every confirmation comes here. Counting all receivers each time would take quadratic time.
        if self.sending.as_ref().is_none_or(|sending| sending.queue.is_empty()) {
            return;
        }
        let me = ctx.me();
        let missing = ctx.others().filter(|p| self.awaits(me, *p)).count() as u32;
        let (life, settings) = (self.life, &self.settings);
        let Some(sending) = &mut self.sending else { return };
        let oldest = |s: &Sending| s.outstanding.keys().next().copied().unwrap_or(s.sent + 1);
        while sending.sent + 1 - oldest(sending) < settings.window
            && let Some(number) = sending.queue.pop_front()
        {
            sending.sent += 1;
            let seq = sending.sent;
            ctx.send_to_others(Message::Data { life, seq, number });
            ctx.indicate(Indication::Delivered(Unit { from: me, number }));
            if missing > 0 {
                sending.outstanding.insert(seq, Outstanding { number, tries: 0, missing });
                ctx.set_timer(Timer::Retry(seq), settings.unit * settings.timeout);
            }
        }
    }

    fn on_ack(&mut self, from: ProcessId, upto: u32, beyond: &[u32], ctx: &mut Context<'_, Self>) {
        if !self.awaits(ctx.me(), from) {
            return;
        }
        let Some(sending) = &mut self.sending else { return };
        // A confirmation may name a place that was never sent. It must not count for a later message.
        let sent = sending.sent;
        let Some(confirmed) = sending.confirmed.get_mut(from) else { return };
        let news = (confirmed.upto() + 1..=upto).chain(beyond.iter().copied());
        for seq in news.filter(|seq| *seq <= sent) {
            if confirmed.insert(seq)
                && let Some(outstanding) = sending.outstanding.get_mut(&seq)
            {
                outstanding.missing -= 1;
                if outstanding.missing == 0 {
                    sending.outstanding.remove(&seq);
                    ctx.cancel_timer(Timer::Retry(seq));
                }
            }
        }
        self.send_admitted(ctx);
    }

    /// A message is not confirmed in time: sends it again, or gives up the silent receivers.
    fn repeat(&mut self, seq: u32, ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        let awaited: Vec<ProcessId> = ctx.others().filter(|p| self.awaits(me, *p)).collect();
        let (life, settings, gives_up) = (self.life, self.settings.clone(), self.gives_up());
        let Some(sending) = &mut self.sending else { return };
        let Some(outstanding) = sending.outstanding.get_mut(&seq) else { return };
        let lacking: Vec<ProcessId> =
            awaited.into_iter().filter(|p| !sending.confirmed[*p].contains(seq)).collect();
        if settings.limit > 0 && outstanding.tries >= settings.limit {
            if !gives_up {
                return;
            }
            for p in lacking {
                self.give_up(p, ctx);
            }
            return self.send_admitted(ctx);
        }
        let bound = if settings.limit > 0 { settings.limit } else { MOST_DOUBLINGS };
        outstanding.tries = (outstanding.tries + 1).min(bound);
        let data = Message::Data { life, seq, number: outstanding.number };
        ctx.indicate(Indication::Note(Note::Repaired(Unit {
            from: me,
            number: outstanding.number,
        })));
        // Confirmations gathered by a tree do not show which receiver lacks the message.
        let many = lacking.len() * 100 > settings.share * (ctx.group_size() - 1);
        if many || settings.fanout > 0 {
            ctx.send_to_others(data);
        } else {
            lacking.into_iter().for_each(|p| ctx.send(p, data.clone()));
        }
        let grown = settings.backoff.pow(outstanding.tries.min(MOST_DOUBLINGS));
        ctx.set_timer(Timer::Retry(seq), settings.unit * settings.timeout * grown);
    }

    /// Gives up `p`: waits no longer for its confirmations.
    fn give_up(&mut self, p: ProcessId, ctx: &mut Context<'_, Self>) {
        let awaited = self.awaits(ctx.me(), p);
        if !self.given_up.insert(p) {
            return;
        }
        self.welcomes_missing.remove(p);
        ctx.indicate(Indication::Suspected(p));
        let Some(sending) = self.sending.as_mut().filter(|_| awaited) else { return };
        let sent = sending.sent;
        let confirmed = std::mem::replace(&mut sending.confirmed[p], Numbers::first(sent));
        sending.outstanding.retain(|seq, outstanding| {
            outstanding.missing -= u32::from(!confirmed.contains(*seq));
            if outstanding.missing == 0 {
                ctx.cancel_timer(Timer::Retry(*seq));
            }
            outstanding.missing > 0
        });
    }
}
