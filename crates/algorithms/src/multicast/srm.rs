//! Scalable reliable multicast: everyone asks everyone, and anyone who has it answers.
//!
//! Requests and repairs go to the whole group. Timers that grow with the distance, and chance where
//! distances are equal, let one member speak for many: who hears a request for what it lacks waits
//! instead of missing, who hears a repair does not send its own. Messages have lasting names, so any
//! member can repair, even when the source is gone. There is no order; session messages tell how far
//! each source has come, and go on until all agree on it.

mod adapt;
mod recovery;
mod sessions;
mod sheet;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use konklave_process::topology::Hops;
use konklave_process::{Context, Fixed, NoRecord, Process, ProcessId, ProcessSet};
use serde::{Deserialize, Serialize};

pub use self::adapt::{Side, Tuning};
pub use self::recovery::{PendingRepair, Recovery};
use super::sender_map::SenderMap;
use super::unit_map::UnitMap;
use super::{Indication, Numbers, Request, Unit};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Srm {
    /// What we have, by source.
    held: SenderMap<Numbers>,
    /// How far each source has come, as far as we know.
    high: SenderMap<u32>,
    /// What we lack.
    missing: UnitMap<Recovery>,
    /// What we are about to repair, and for whom.
    pending_repairs: UnitMap<PendingRepair>,
    /// What was repaired a moment ago.
    #[serde(serialize_with = "super::unit_map::units")]
    held_down: UnitMap<()>,
    tuning: Tuning,
    /// How many session messages we have sent since the last news.
    sessions: u32,
    /// Who has told the same as we know, since our last news.
    agreed: ProcessSet,
    /// Whom the detector takes for crashed.
    suspected: ProcessSet,
    /// Whether we are going to send a session message, where they end with agreement.
    session_pending: bool,
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
        self.receive(unit, ctx);
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Data(number) => {
                self.receive(Unit { from, number }, ctx);
                self.on_highest(from, number, ctx);
            }
            Message::Request { unit, distance, radius } => {
                self.on_repair_request(from, unit, distance, radius, ctx);
            }
            Message::Repair { unit, asker, distance } => {
                self.on_repair(unit, asker, distance, ctx);
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
                self.held_down.remove(unit);
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
}
