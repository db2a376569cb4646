//! Reliable multicast by negative acknowledgements (RFC 5401): receivers report what they lack.
//!
//! - A gap in a sender's numbers shows a receiver that messages are missing, and it asks for them.
//! - A loss at the end makes no gap. So each message is followed by heartbeats with the sender's last
//!   number, which become rarer, and then by a stop. The stop is repeated until every receiver has
//!   confirmed that it has the whole stream.
//! - The sender keeps a limited number of messages for repairs. It reports older ones as gone, so no
//!   receiver skips a gap silently.

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

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Nack {
    /// The incarnation of this process. Its numbers begin anew in each.
    life: u32,
    /// How many messages this process has multicast.
    sent: u32,
    /// The messages that can still be repaired, by place in this process's stream.
    kept: BTreeMap<u32, u32>,
    /// The places of messages repaired within the last round trip, in order.
    #[serde(rename = "cooling")]
    just_repaired: Vec<u32>,
    /// How many heartbeats and stops have followed the last message.
    beats: u32,
    /// The receivers that have not confirmed that they have the whole stream.
    #[serde(rename = "open")]
    unanswered: ProcessSet,
    /// The suspected processes: this process does not wait for them.
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
    /// A message that is sent again.
    Repair {
        /// The incarnation of the sender.
        life: u32,
        /// Its place in the stream.
        seq: u32,
        /// The number of the application's message.
        number: u32,
    },
    /// The stream goes up to this number.
    Heartbeat {
        /// The incarnation of the sender.
        life: u32,
        /// The last number.
        high: u32,
    },
    /// The stream ends here for now. A receiver that has all of it answers `Whole`.
    Stop {
        /// The incarnation of the sender.
        life: u32,
        /// The last number.
        last: u32,
    },
    /// The sender has the whole stream of the receiver.
    Whole {
        /// The incarnation of the stream's sender.
        life: u32,
        /// The last number.
        last: u32,
    },
    /// The sender lacks these messages of the receiver's stream.
    Nack {
        /// The incarnation of the sender.
        life: u32,
        /// Ranges of places, both ends included.
        ranges: Vec<(u32, u32)>,
    },
    /// All messages below this place are gone.
    Gone {
        /// The incarnation of the sender.
        life: u32,
        /// The first place that can still be repaired.
        below: u32,
    },
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// A heartbeat or a stop is due.
    Beat,
    /// A request for missing messages to this sender is due.
    Ask(ProcessId),
    /// The message at this place may be repaired again.
    Cool(u32),
}

/// A round trip, in T.
const ROUND_TRIP: u32 = 2;

impl Nack {
    /// A receiver asks for missing messages.
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
                // One repair serves all requests within a round trip.
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
