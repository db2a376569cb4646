//! Reliable multicast by negative acknowledgements: receivers say what they lack.
//!
//! A hole in a sender's numbers shows that something is missing, and whoever misses it asks for it
//! again. A loss at the end makes no hole: heartbeats that become rarer tell how far the sender has
//! come, and after them a stop is repeated until everyone has said that it has all. The sender keeps
//! what it can and says when something is gone for good, so no hole is silent.

mod stop;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use konklave_process::topology::Shape;
use konklave_process::{Context, Fixed, Process, ProcessId, ProcessSet};
use serde::{Deserialize, Serialize};

pub use self::stream::Stream;
use super::{Indication, Multicast, Note, Request, Unit};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, Setup,
    SetupError, Switch,
};

const NO_HEARTBEAT: Mistake = Mistake {
    name: "no-heartbeat",
    what: "a sender with nothing more to say says nothing: a loss at the end goes unnoticed",
    breaks: "validity",
    caught_by: "-n 2 --requests 1,0 --loss 1 --synchronous --set suppression=none --set beats=2 --set stops=0",
};
const SILENT_HOLE: Mistake = Mistake {
    name: "silent-hole",
    what: "who has asked often enough in vain goes on without the message and tells nobody",
    breaks: "validity",
    caught_by: "-n 2 --requests 1,0 --loss 3 --synchronous --set suppression=none --set beats=3 --set stops=0 --set tries=1",
};

const SHEET: DataSheet = DataSheet {
    name: "nack",
    title: "Reliable multicast by negative acknowledgements",
    idea: "Who sees a hole in the numbers asks for what is missing; heartbeats and a stop show lost tails.",
    source: "lecture \"Zuverlässiger Multicast\", negative acknowledgement; RFC 5401",
    assumes: &[Assumption::StableStorage],
    topologies: &[Shape::Connected],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "n − 1 for each multicast and each heartbeat, 2 (n − 1) for each stop",
            when: "nothing happens to messages",
            bound: messages,
        },
        Cost {
            metric: Metric::Delivery,
            formula: "T",
            when: "nothing happens to messages",
            bound: |f| f.delay_max.filter(|_| f.undisturbed).map(Bound::AtMost),
        },
    ],
    guarantees: &[Guarantee::Validity, Guarantee::Integrity, Guarantee::FifoOrder],
    fence: None,
    mistakes: &[NO_HEARTBEAT, SILENT_HOLE],
    switches: &[
        Switch {
            name: "heartbeat",
            values: &["2", "<number>"],
            what: "T from a message to the first heartbeat; twice as long to each next one",
        },
        Switch {
            name: "rarest",
            values: &["64", "<number>"],
            what: "the most T between heartbeats",
        },
        Switch {
            name: "beats",
            values: &["12", "<number>"],
            what: "how many heartbeats follow a message until the sender says that it stops",
        },
        Switch {
            name: "stops",
            values: &["3", "<number>"],
            what: "how often a stop is said to who has not answered before it is said less often; 0: never",
        },
        Switch {
            name: "suppression",
            values: &["exponential", "none"],
            what: "how requests are spread so that one repair spares most: RFC 5401, or 1 T for all",
        },
        Switch {
            name: "tries",
            values: &["16", "<number>"],
            what: "how often a message is asked for until it is given up",
        },
        Switch {
            name: "keep",
            values: &["1024", "<number>"],
            what: "how many of its messages a sender keeps for repairs",
        },
    ],
};

fn messages(f: &Facts<'_>) -> Option<Bound> {
    let number = |name| f64::from(f.setup.chosen(&SHEET, name).number());
    let (beats, stops) = (number("beats"), number("stops"));
    let others = f.n() - 1.0;
    let senders = f.served.iter().filter(|(_, sent)| *sent > 0).count() as f64;
    let least = f.entries() * others + senders * others * (beats + 2.0 * stops.min(1.0));
    // Between messages there may be heartbeats, too. No answer takes as long as all the stops.
    let answered = stops == 0.0
        || f.delay_max.is_some_and(|delay| 2.0 * delay <= stops * f64::from(stop::PATIENCE));
    let most = f.entries() * others * (1.0 + beats + 2.0 * stops);
    (f.undisturbed && answered).then_some(Bound::Between(least, most))
}

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
    cooling: Vec<u32>,
    /// How many heartbeats, and after them stops, have followed our last message.
    beats: u32,
    /// Who has not yet said that it has all of our stream.
    open: ProcessSet,
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
                if self.cooling.contains(&seq) {
                    continue;
                }
                self.cooling.push(seq);
                ctx.set_timer(Timer::Cool(seq), self.settings.unit * ROUND_TRIP);
                ctx.indicate(Indication::Note(Note::Repaired(Unit { from: me, number })));
                ctx.send_to_others(Message::Repair { life: self.life, seq, number });
            }
        }
        self.cooling.sort_unstable();
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
            Timer::Cool(seq) => self.cooling.retain(|s| *s != seq),
        }
    }

    fn on_suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.give_up(peer, ctx);
    }

    fn on_trust(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.take_back(peer, ctx);
    }

    fn at_rest(&self) -> bool {
        self.cooling.is_empty() && self.streams.values().all(Stream::is_whole)
    }
}

impl Algorithm for Nack {
    type Problem = Multicast;
    const SHEET: DataSheet = SHEET;

    fn new(_me: ProcessId, setup: &Setup) -> Self {
        let number = |name| setup.chosen(&SHEET, name).number();
        Self {
            life: 0,
            sent: 0,
            kept: BTreeMap::new(),
            cooling: Vec::new(),
            beats: 0,
            open: ProcessSet::new(),
            suspected: ProcessSet::new(),
            streams: BTreeMap::new(),
            settings: Fixed(Settings {
                unit: setup.unit,
                heartbeat: number("heartbeat"),
                rarest: number("rarest"),
                beats: number("beats"),
                stops: number("stops"),
                exponential: setup.chosen(&SHEET, "suppression").is("exponential"),
                tries: number("tries"),
                keep: number("keep") as usize,
                mistake: setup.mistake,
            }),
        }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        setup.need(&SHEET, 1, &["heartbeat", "rarest", "tries", "keep"])
    }
}
