//! Reliable multicast by acknowledgements: the sender knows its receivers and repeats a message
//! until each has confirmed it.
//!
//! A window limits what is unconfirmed. Confirmations are cumulative and selective; they can be put
//! off and spoken for many messages at once, or gathered along a tree, against their implosion at
//! the sender. A receiver that stays silent too long is given up, so that it holds up nobody.
//! Receivers agree only while the sender stays up: if it crashes half-way, some have a message and
//! some do not, which only a view change can mend.

mod sheet;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use konklave_process::{Context, Fixed, Group, Process, ProcessId, ProcessMap, ProcessSet};
use serde::{Deserialize, Serialize};

use self::sheet::{ONE_LIFE, PATIENT};
pub use self::stream::Stream;
use super::{Indication, Note, Numbers, Request, Unit};
use crate::Mistake;

/// How often a message is sent on average until all of `receivers` have it, if each misses it with
/// probability `loss`: Σ 1 − (1 − pⁱ)ʳ.
pub fn expected_transmissions(loss: f64, receivers: usize) -> f64 {
    (0..2000).map(|i| 1.0 - (1.0 - loss.powi(i)).powi(receivers as i32)).sum()
}

/// How far that number deviates from its mean, as the root of its mean square.
pub fn deviation_of_transmissions(loss: f64, receivers: usize) -> f64 {
    let more_than = |i: i32| 1.0 - (1.0 - loss.powi(i)).powi(receivers as i32);
    let square: f64 = (0..2000).map(|i| f64::from(2 * i + 1) * more_than(i)).sum();
    (square - expected_transmissions(loss, receivers).powi(2)).max(0.0).sqrt()
}

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Ack {
    /// Which life of this process it is: its numbers begin anew in each.
    life: u32,
    sending: Option<Box<Sending>>,
    streams: BTreeMap<ProcessId, Stream>,
    /// Whom we do not wait for any more.
    given_up: ProcessSet,
    /// After a restart: who has not yet told us where its stream stands.
    strangers: ProcessSet,
    #[serde(skip)]
    settings: Fixed<Settings>,
}

/// What a sender knows.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Sending {
    sent: u32,
    /// What someone has not confirmed, by its place in our stream.
    open: BTreeMap<u32, Open>,
    /// What the window does not admit yet.
    queue: VecDeque<u32>,
    confirmed: ProcessMap<Numbers>,
}

/// A message that someone has not confirmed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Open {
    number: u32,
    /// How often it was repeated.
    tries: u32,
    /// How many have not confirmed it.
    missing: u32,
}

#[derive(Clone, Debug)]
struct Settings {
    group: Group,
    unit: Duration,
    window: u32,
    every: u32,
    jitter: u32,
    fanout: usize,
    timeout: u32,
    backoff: u32,
    limit: u32,
    share: usize,
    mistake: Option<&'static str>,
}

/// A timeout is doubled at most so often.
const MOST_DOUBLINGS: u32 = 5;

/// What the processes say.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// A message at its place of the sender's stream.
    Data {
        /// The life of the sender.
        life: u32,
        /// Which in the stream, from 1.
        seq: u32,
        /// What it says.
        number: u32,
    },
    /// All up to `upto` are here, and those `beyond`.
    Ack {
        /// Whose stream.
        of: ProcessId,
        /// In which of its lives.
        life: u32,
        /// All up to here.
        upto: u32,
        /// And these.
        beyond: Vec<u32>,
    },
    /// I am new here: where do you stand?
    Hello,
    /// What I send to you begins after this place of my stream.
    Welcome {
        /// My life.
        life: u32,
        /// The place.
        base: u32,
    },
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// This message of ours should be confirmed by now.
    Retry(u32),
    /// The messages of this sender should be confirmed now.
    Confirm(ProcessId),
    /// All should have welcomed us by now.
    Hello,
}

impl Ack {
    fn makes(&self, mistake: &Mistake) -> bool {
        self.settings.mistake == Some(mistake.name)
    }

    /// Whether we, as a sender, wait for the confirmations of `p` itself.
    fn awaits(&self, me: ProcessId, p: ProcessId) -> bool {
        if p == me || self.given_up.contains(p) {
            return false;
        }
        self.settings.fanout == 0 || self.settings.parent(me, p) == Some(me)
    }

    /// Sends what the window admits.
    fn pump(&mut self, ctx: &mut Context<'_, Self>) {
        // Each confirmation comes here: to count all receivers each time would be their square.
        if self.sending.as_ref().is_none_or(|sending| sending.queue.is_empty()) {
            return;
        }
        let me = ctx.me();
        let missing = ctx.others().filter(|p| self.awaits(me, *p)).count() as u32;
        let (life, settings) = (self.life, &self.settings);
        let Some(sending) = &mut self.sending else { return };
        let oldest = |s: &Sending| s.open.keys().next().copied().unwrap_or(s.sent + 1);
        while sending.sent + 1 - oldest(sending) < settings.window
            && let Some(number) = sending.queue.pop_front()
        {
            sending.sent += 1;
            let seq = sending.sent;
            ctx.send_to_others(Message::Data { life, seq, number });
            ctx.indicate(Indication::Delivered(Unit { from: me, number }));
            if missing > 0 {
                sending.open.insert(seq, Open { number, tries: 0, missing });
                ctx.set_timer(Timer::Retry(seq), settings.unit * settings.timeout);
            }
        }
    }

    fn on_ack(&mut self, from: ProcessId, upto: u32, beyond: &[u32], ctx: &mut Context<'_, Self>) {
        if !self.awaits(ctx.me(), from) {
            return;
        }
        let Some(sending) = &mut self.sending else { return };
        // Nobody can have what we have not sent: a stray number must not open a hole.
        let sent = sending.sent;
        let Some(confirmed) = sending.confirmed.get_mut(from) else { return };
        let news = (confirmed.upto() + 1..=upto).chain(beyond.iter().copied());
        for seq in news.filter(|seq| *seq <= sent) {
            if confirmed.insert(seq)
                && let Some(open) = sending.open.get_mut(&seq)
            {
                open.missing -= 1;
                if open.missing == 0 {
                    sending.open.remove(&seq);
                    ctx.cancel_timer(Timer::Retry(seq));
                }
            }
        }
        self.pump(ctx);
    }

    /// A message is not confirmed in time.
    fn repeat(&mut self, seq: u32, ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        let awaited: Vec<ProcessId> = ctx.others().filter(|p| self.awaits(me, *p)).collect();
        let (life, settings) = (self.life, self.settings.clone());
        let Some(sending) = &mut self.sending else { return };
        let Some(open) = sending.open.get_mut(&seq) else { return };
        let lacking: Vec<ProcessId> =
            awaited.into_iter().filter(|p| !sending.confirmed[*p].contains(seq)).collect();
        if settings.limit > 0 && open.tries >= settings.limit {
            if settings.mistake == Some(PATIENT.name) {
                return;
            }
            for p in lacking {
                self.give_up(p, ctx);
            }
            return self.pump(ctx);
        }
        let bound = if settings.limit > 0 { settings.limit } else { MOST_DOUBLINGS };
        open.tries = (open.tries + 1).min(bound);
        let data = Message::Data { life, seq, number: open.number };
        ctx.indicate(Indication::Note(Note::Repaired(Unit { from: me, number: open.number })));
        // What a tree gathers does not say who lacks it.
        let many = lacking.len() * 100 > settings.share * (ctx.group_size() - 1);
        if many || settings.fanout > 0 {
            ctx.send_to_others(data);
        } else {
            lacking.into_iter().for_each(|p| ctx.send(p, data.clone()));
        }
        let grown = settings.backoff.pow(open.tries.min(MOST_DOUBLINGS));
        ctx.set_timer(Timer::Retry(seq), settings.unit * settings.timeout * grown);
    }

    /// Goes on without `p`.
    fn give_up(&mut self, p: ProcessId, ctx: &mut Context<'_, Self>) {
        let awaited = self.awaits(ctx.me(), p);
        if !self.given_up.insert(p) {
            return;
        }
        self.strangers.remove(p);
        ctx.indicate(Indication::Suspected(p));
        let Some(sending) = self.sending.as_mut().filter(|_| awaited) else { return };
        let sent = sending.sent;
        let confirmed = std::mem::replace(&mut sending.confirmed[p], Numbers::first(sent));
        sending.open.retain(|seq, open| {
            open.missing -= u32::from(!confirmed.contains(*seq));
            if open.missing == 0 {
                ctx.cancel_timer(Timer::Retry(*seq));
            }
            open.missing > 0
        });
    }
}

impl Settings {
    /// Whom the confirmations of `p` for the stream of `source` go to along the tree.
    fn parent(&self, source: ProcessId, p: ProcessId) -> Option<ProcessId> {
        let n = self.group.len();
        let (root, place) = (self.group.place(source)?, self.group.place(p)?);
        let rank = (place + n - root) % n;
        (rank > 0).then(|| self.group.id(((rank - 1) / self.fanout + root) % n))
    }

    /// Whose confirmations for the stream of `source` come to `p`.
    fn children(&self, source: ProcessId, p: ProcessId) -> impl Iterator<Item = ProcessId> + '_ {
        let n = self.group.len();
        let places = self.group.place(source).zip(self.group.place(p));
        let root = places.map_or(0, |(root, _)| root);
        let rank = places.map_or(n, |(root, place)| (place + n - root) % n);
        let first = rank.saturating_mul(self.fanout).saturating_add(1);
        (first..first.saturating_add(self.fanout).min(n))
            .map(move |r| self.group.id((r + root) % n))
    }
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
        if !self.makes(&ONE_LIFE) {
            self.life = saved.unwrap_or(0) + 1;
        }
        ctx.save(self.life);
        self.strangers = ctx.others().collect();
        self.on_timer(Timer::Hello, ctx);
    }

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        let Request::Multicast(number) = request;
        let fresh = || {
            let confirmed = ProcessMap::new(ctx.group(), Numbers::default());
            Box::new(Sending { sent: 0, open: BTreeMap::new(), queue: VecDeque::new(), confirmed })
        };
        self.sending.get_or_insert_with(fresh).queue.push_back(number);
        self.pump(ctx);
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Data { life, seq, number } => self.on_data(from, life, seq, number, ctx),
            Message::Ack { of, life, upto, beyond } => {
                if of != ctx.me() {
                    self.on_child(of, life, from, upto, ctx);
                } else if life == self.life {
                    self.on_ack(from, upto, &beyond, ctx);
                }
            }
            Message::Hello => {
                // What it missed while it was away is not for it: its view begins now.
                self.streams.retain(|_, stream| {
                    stream.forget(from);
                    true
                });
                let base = self.sending.as_ref().map_or(0, |sending| sending.sent);
                self.on_ack(from, base, &[], ctx);
                self.given_up.remove(from);
                ctx.send(from, Message::Welcome { life: self.life, base });
            }
            Message::Welcome { life, base } => {
                if self.strangers.remove(from) {
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
                for p in self.strangers.iter() {
                    ctx.send(p, Message::Hello);
                }
                if !self.strangers.is_empty() {
                    ctx.set_timer(Timer::Hello, self.settings.unit * self.settings.timeout);
                }
            }
        }
    }

    fn on_suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        if !self.makes(&PATIENT) {
            self.give_up(peer, ctx);
            self.pump(ctx);
        }
    }
}
