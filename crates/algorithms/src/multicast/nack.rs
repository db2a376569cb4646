//! Reliable multicast by negative acknowledgements: receivers say what they lack.
//!
//! A hole in a sender's numbers shows that something is missing, and whoever misses it asks for it
//! again. A loss at the end makes no hole: heartbeats that become rarer tell how far the sender has
//! come, and after them a stop is repeated until everyone has said that it has all. The sender keeps
//! what it can and says when something is gone for good, so no hole is silent.

mod sheet;
mod stop;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use konklave_process::{Context, Fixed, Process, ProcessId, ProcessSet};
use serde::{Deserialize, Serialize};

pub use self::stream::Stream;
use super::{Indication, Note, Request, Unit};
use crate::Mistake;

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Nack {
    /// Which life of this process it is: its numbers begin anew in each.
    life: u32,
    /// How many messages we have multicast.
    sent: u32,
    /// What we can still send again, by its place in our stream.
    kept: BTreeMap<u32, u32>,
    /// What was sent again a moment ago, and for how many rounds it was asked for since.
    just_repaired: Vec<u32>,
    /// How many heartbeats, and after them stops, have followed our last message.
    beats: u32,
    /// Who has not yet said that it has all of our stream.
    unanswered: ProcessSet,
    /// Whom the detector takes for crashed: for them nobody waits.
    suspected: ProcessSet,
    streams: BTreeMap<ProcessId, Stream>,
    #[serde(skip)]
    settings: Fixed<Settings>,
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    unit: Duration,
    heartbeat: u32,
    rarest: u32,
    beats: u32,
    stops: u32,
    exponential: bool,
    tries: u32,
    keep: usize,
    mistake: Option<&'static str>,
}

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
    /// The same, again.
    Repair {
        /// The life of the sender.
        life: u32,
        /// Which in the stream.
        seq: u32,
        /// What it says.
        number: u32,
    },
    /// So far my stream goes.
    Heartbeat {
        /// The life of the sender.
        life: u32,
        /// The last number.
        high: u32,
    },
    /// Here my stream ends, until there is more: who has all of it says so.
    Stop {
        /// The life of the sender.
        life: u32,
        /// The last number.
        last: u32,
    },
    /// I have all of your stream.
    Whole {
        /// The life of the one who stops.
        life: u32,
        /// The last number.
        last: u32,
    },
    /// I lack these.
    Nack {
        /// The life of the sender.
        life: u32,
        /// From the first to the last, each.
        ranges: Vec<(u32, u32)>,
    },
    /// What lies below is gone for good.
    Gone {
        /// The life of the sender.
        life: u32,
        /// The first that is still there.
        below: u32,
    },
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// Time for a heartbeat, or for a stop.
    Beat,
    /// Time to ask this sender for what we lack.
    Ask(ProcessId),
    /// This message of ours may be sent again.
    Cool(u32),
}

/// A round trip, in T.
const ROUND_TRIP: u32 = 2;

impl Nack {
    fn makes(&self, mistake: &Mistake) -> bool {
        self.settings.mistake == Some(mistake.name)
    }

    fn on_nack(&mut self, from: ProcessId, ranges: &[(u32, u32)], ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        let below = self.kept.keys().next().copied().unwrap_or(self.sent + 1);
        if ranges.iter().any(|(low, _)| *low < below) {
            ctx.send(from, Message::Gone { life: self.life, below });
        }
        for &(low, high) in ranges {
            let wanted: Vec<(u32, u32)> = if low <= high {
                self.kept.range(low..=high).map(|(seq, number)| (*seq, *number)).collect()
            } else {
                Vec::new()
            };
            for (seq, number) in wanted {
                // One repair serves all who ask within a round trip.
                if self.just_repaired.contains(&seq) {
                    continue;
                }
                self.just_repaired.push(seq);
                ctx.set_timer(Timer::Cool(seq), self.settings.unit * ROUND_TRIP);
                ctx.indicate(Indication::Note(Note::Repaired(Unit { from: me, number })));
                ctx.send_to_others(Message::Repair { life: self.life, seq, number });
            }
        }
        self.just_repaired.sort_unstable();
    }
}

impl Process for Nack {
    type Message = Message;
    type Timer = Timer;
    type Request = Request;
    type Indication = Indication;
    type Record = u32;

    fn on_start(&mut self, ctx: &mut Context<'_, Self>) {
        ctx.save(self.life);
    }

    fn on_recover(&mut self, saved: Option<u32>, ctx: &mut Context<'_, Self>) {
        self.life = saved.unwrap_or(0) + 1;
        ctx.save(self.life);
    }

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        let Request::Multicast(number) = request;
        self.sent += 1;
        self.kept.insert(self.sent, number);
        if self.kept.len() > self.settings.keep {
            self.kept.pop_first();
        }
        ctx.send_to_others(Message::Data { life: self.life, seq: self.sent, number });
        ctx.indicate(Indication::Delivered(Unit { from: ctx.me(), number }));
        self.begin_beats(ctx);
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Data { life, seq, number } => {
                self.on_data(from, life, seq, number, false, ctx);
            }
            Message::Repair { life, seq, number } => {
                self.on_data(from, life, seq, number, true, ctx);
            }
            Message::Heartbeat { life, high } => self.on_heartbeat(from, life, high, ctx),
            Message::Stop { life, last } => self.on_stop(from, life, last, ctx),
            Message::Whole { life, last } => self.on_whole(from, life, last, ctx),
            Message::Gone { life, below } => self.on_gone(from, life, below, ctx),
            Message::Nack { life, ranges } => {
                if life == self.life {
                    self.on_nack(from, &ranges, ctx);
                }
            }
        }
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Context<'_, Self>) {
        match timer {
            Timer::Beat => self.beat(ctx),
            Timer::Ask(from) => self.ask(from, ctx),
            Timer::Cool(seq) => self.just_repaired.retain(|s| *s != seq),
        }
    }

    fn on_suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.give_up(peer, ctx);
    }

    fn on_trust(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.take_back(peer, ctx);
    }
}
