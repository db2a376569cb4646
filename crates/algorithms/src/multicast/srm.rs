//! Scalable reliable multicast: everyone asks everyone, and anyone who has it answers.
//!
//! Requests and repairs go to the whole group. Timers that grow with the distance, and chance where
//! distances are equal, let one member speak for many: who hears a request for what it lacks waits
//! instead of asking, who hears a repair does not send its own. Messages have lasting names, so any
//! member can repair, even when the source is gone. There is no order; session messages tell how far
//! each source has come, and go on until all agree on it.

mod adapt;
mod recovery;
mod sessions;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use konklave_process::topology::{Hops, Shape};
use konklave_process::{Context, Fixed, NoRecord, Process, ProcessId, ProcessSet};
use serde::{Deserialize, Serialize};

pub use self::adapt::{Side, Tuning};
pub use self::recovery::{Repairing, Request as Asking};
use super::few::Few;
use super::table::Table;
use super::{Indication, Multicast, Numbers, Request, Unit};
use crate::{
    Algorithm, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, Setup, SetupError, Switch,
};

const ONE_ROUND: Mistake = Mistake {
    name: "one-round",
    what: "who has asked does not ask again: a lost request is never repeated",
    breaks: "validity",
    caught_by: "-n 2 --requests 1,0 --loss 2 --synchronous --set sessions=3 --set timers=fixed --set c2=0 --set d1=1 --set d2=0",
};
const SHEET: DataSheet = DataSheet {
    name: "srm",
    title: "Scalable reliable multicast",
    idea: "Requests and repairs go to all; timers by distance and chance let one speak for many.",
    source: "S. Floyd, V. Jacobson, C.-G. Liu, S. McCanne, L. Zhang, ToN 5(6), 1997; ns-2",
    assumes: &[],
    topologies: &[Shape::Connected],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "n − 1 for each multicast, and n − 1 for each session message",
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
    guarantees: &[Guarantee::Validity, Guarantee::Integrity, Guarantee::Agreement],
    fence: None,
    mistakes: &[ONE_ROUND],
    switches: &[
        Switch {
            name: "timers",
            values: &["adaptive", "fixed"],
            what: "whether C1, C2, D1 and D2 follow what happens, or stay as chosen",
        },
        Switch { name: "c1", values: &["2", "<number>"], what: "C1: least wait before a request" },
        Switch { name: "c2", values: &["2", "<number>"], what: "C2: how far requests are spread" },
        Switch {
            name: "d1",
            values: &["log10", "<number>"],
            what: "D1: least wait before a repair; log10: of the size of the group",
        },
        Switch {
            name: "d2",
            values: &["log10", "<number>"],
            what: "D2: how far repairs are spread; log10: of the size of the group",
        },
        Switch {
            name: "sessions",
            values: &["agreed", "<number>"],
            what: "session messages of each member after its last news: until all agree, or so many",
        },
        Switch {
            name: "interval",
            values: &["10", "<number>"],
            what: "T between two session messages, each up to a tenth more or less",
        },
        Switch {
            name: "scope",
            values: &["0", "<number>"],
            what: "ask only so many links around first, twice as far each time; 0: always all",
        },
    ],
};

fn messages(f: &Facts<'_>) -> Option<Bound> {
    let chosen = f.setup.chosen(&SHEET, "sessions");
    let interval = f64::from(f.setup.chosen(&SHEET, "interval").number());
    let prompt = f.delay_max.is_some_and(|delay| delay <= interval);
    let sessions = match chosen.is("agreed") {
        true => f64::from(sessions::MOST),
        false => f64::from(chosen.number()),
    };
    let least = f.entries() * (f.n() - 1.0);
    let most = least + f.n() * (f.n() - 1.0) * sessions * (f.entries() + 1.0);
    let applies = f.undisturbed && (prompt || !chosen.is("agreed"));
    applies.then_some(Bound::Between(least, most))
}

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Srm {
    /// What we have, by source.
    held: Table<Numbers>,
    /// How far each source has come, as far as we know.
    high: Table<u32>,
    /// What we lack.
    asking: Few<Asking>,
    /// What we are about to repair, and for whom.
    repairing: Few<Repairing>,
    /// What was repaired a moment ago.
    #[serde(serialize_with = "super::few::units")]
    resting: Few<()>,
    tuning: Tuning,
    /// How many session messages we have sent since the last news.
    sessions: u32,
    /// Who has told the same as we know, since our last news.
    agreed: ProcessSet,
    /// Whom the detector takes for crashed.
    suspected: ProcessSet,
    /// Whether we are going to send a session message, where they end with agreement.
    talking: bool,
    #[serde(skip)]
    settings: Fixed<Settings>,
}

#[derive(Clone, Debug)]
struct Settings {
    hops: Arc<Hops>,
    /// T, in nanoseconds.
    unit: u64,
    adaptive: bool,
    /// Whether session messages go on until all agree.
    agreed: bool,
    /// How many there are if not.
    sessions: u32,
    interval: u32,
    scope: u32,
    members: u32,
    /// The mistake: a request is not repeated.
    one_round: bool,
}

/// What the processes say.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// The sender's message of this number.
    Data(u32),
    /// Who has this?
    Request {
        /// What.
        unit: Unit,
        /// How far the one who asks is from its source.
        distance: u32,
        /// How far the request goes.
        radius: u32,
    },
    /// Here it is.
    Repair {
        /// What.
        unit: Unit,
        /// Who asked.
        asker: ProcessId,
        /// How far the one who repairs is from the one who asked.
        distance: u32,
    },
    /// So far each source has come, as far as I know.
    Session {
        /// The last number of each source.
        high: Vec<(ProcessId, u32)>,
        /// Whether everyone has told me the same.
        settled: bool,
    },
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// Time to ask for this.
    Ask(Unit),
    /// From now on another request puts ours off again.
    Listen(Unit),
    /// Time to repair this.
    Repair(Unit),
    /// Requests for this count again.
    Rest(Unit),
    /// Time for a session message.
    Session,
}

/// A radius that reaches all.
const EVERYWHERE: u32 = u32::MAX;

impl Srm {
    /// How far `p` is, in links. Nobody is at our own place: a timer of no length would let all
    /// fire at once.
    fn distance(&self, me: ProcessId, p: ProcessId) -> u32 {
        self.settings.hops.between(me, p).max(1)
    }

    fn has(&self, unit: Unit) -> bool {
        self.held.get(unit.from).is_some_and(|numbers| numbers.contains(unit.number))
    }

    /// `links` links, times a part in 1/256.
    fn time(&self, links: u32, part: u64) -> Duration {
        let nanos = self.settings.unit;
        Duration::from_nanos(nanos.saturating_mul(u64::from(links)).saturating_mul(part) / 256)
    }

    /// Sends to all within `radius` of `centre`.
    fn spread(
        &self,
        centre: ProcessId,
        radius: u32,
        message: &Message,
        ctx: &mut Context<'_, Self>,
    ) {
        for p in ctx.others() {
            if radius == EVERYWHERE || self.settings.hops.between(centre, p) <= radius {
                ctx.send(p, message.clone());
            }
        }
    }
}

impl Process for Srm {
    type Message = Message;
    type Timer = Timer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        let Request::Multicast(number) = request;
        let unit = Unit { from: ctx.me(), number };
        ctx.send_to_others(Message::Data(number));
        self.take(unit, ctx);
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Data(number) => {
                self.take(Unit { from, number }, ctx);
                self.learn(from, number, ctx);
            }
            Message::Request { unit, distance, radius } => {
                self.on_asked(from, unit, distance, radius, ctx);
            }
            Message::Repair { unit, asker, distance } => {
                self.on_repaired(unit, asker, distance, ctx);
            }
            Message::Session { high, settled } => self.on_session(from, high, settled, ctx),
        }
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Context<'_, Self>) {
        match timer {
            Timer::Ask(unit) => self.ask(unit, ctx),
            Timer::Listen(unit) => self.listen(unit),
            Timer::Repair(unit) => self.repair(unit, ctx),
            Timer::Rest(unit) => {
                self.resting.remove(unit);
            }
            Timer::Session => self.session(ctx),
        }
    }

    fn on_suspect(&mut self, peer: ProcessId, _: &mut Context<'_, Self>) {
        self.give_up(peer);
    }

    fn on_trust(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.take_back(peer, ctx);
    }

    fn at_rest(&self) -> bool {
        self.asking.is_empty() && self.repairing.is_empty()
    }
}

impl Algorithm for Srm {
    type Problem = Multicast;
    const SHEET: DataSheet = SHEET;

    fn new(_me: ProcessId, setup: &Setup) -> Self {
        let hops = setup.share("hops", || Hops::new(&setup.topology, &setup.group));
        let number = |name| setup.chosen(&SHEET, name).number();
        let members = setup.group.len() as u32;
        Self {
            held: Table::default(),
            high: Table::default(),
            asking: Few::default(),
            repairing: Few::default(),
            resting: Few::default(),
            tuning: Tuning::new(setup, members),
            sessions: 0,
            agreed: ProcessSet::new(),
            suspected: ProcessSet::new(),
            talking: false,
            settings: Fixed(Settings {
                hops,
                unit: setup.unit.as_nanos() as u64,
                adaptive: setup.chosen(&SHEET, "timers").is("adaptive"),
                agreed: setup.chosen(&SHEET, "sessions").is("agreed"),
                sessions: number("sessions"),
                interval: number("interval"),
                scope: number("scope"),
                members,
                one_round: setup.mistake == Some(ONE_ROUND.name),
            }),
        }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        let number = |name| setup.chosen(&SHEET, name).number();
        if number("c1") == 0 && number("c2") == 0 {
            return Err(SetupError("c1 and c2 cannot both be 0: nobody could be first".into()));
        }
        setup.need(&SHEET, 1, &["interval"])
    }
}
