//! Scalable reliable multicast (Floyd et al.): requests and repairs go to the whole group.
//!
//! - A member that lacks a message requests it from all, and any member that has it can repair it,
//!   even after a crash of the source.
//! - Many members would request or repair the same message. So each waits on a timer that grows with
//!   the distance, plus a random time. A member that receives another's request or repair meanwhile
//!   suppresses its own.
//! - Session messages carry the last number of each source, until all members agree on it.
//!
//! Messages are delivered in no particular order.

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
    /// The received messages, by source.
    held: SenderMap<Numbers>,
    /// The highest known number of each source.
    high: SenderMap<u32>,
    /// The missing messages.
    #[serde(rename = "asking")]
    missing: UnitMap<Recovery>,
    /// The messages that this process is about to repair.
    #[serde(rename = "repairing")]
    pending_repairs: UnitMap<PendingRepair>,
    /// Messages repaired a moment ago: requests for them are ignored.
    #[serde(rename = "resting", serialize_with = "super::unit_map::units")]
    held_down: UnitMap<()>,
    tuning: Tuning,
    /// How many session messages this process has sent since it last learned of a message.
    sessions: u32,
    /// The members whose last session message agrees with what this process knows.
    agreed: ProcessSet,
    /// The suspected processes.
    suspected: ProcessSet,
    /// Where session messages end with agreement: whether the next one is due.
    #[serde(rename = "talking")]
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
    /// The number of session messages otherwise.
    sessions: u32,
    interval: u32,
    scope: u32,
    members: u32,
    /// The mistake: a request is not repeated.
    one_round: bool,
}

/// The messages.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// The application's message of this number.
    Data(u32),
    /// The sender lacks this message.
    Request {
        /// The message.
        unit: Unit,
        /// The distance from the sender to the source of the message.
        distance: u32,
        /// How far the request is sent, in links.
        radius: u32,
    },
    /// The message again.
    Repair {
        /// The message.
        unit: Unit,
        /// The member that requested it.
        asker: ProcessId,
        /// The distance from the sender to that member.
        distance: u32,
    },
    /// The highest number of each source that the sender knows.
    Session {
        /// The last number of each source.
        high: Vec<(ProcessId, u32)>,
        /// Whether all other members have sent the same numbers to the sender.
        settled: bool,
    },
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// The request for this message is due.
    Ask(Unit),
    /// From now on, another member's request delays this process's own again.
    Listen(Unit),
    /// The repair of this message is due.
    Repair(Unit),
    /// Requests for this message count again.
    Rest(Unit),
    /// A session message is due.
    Session,
}

/// A radius that reaches all.
const EVERYWHERE: u32 = u32::MAX;

impl Srm {
    /// The distance to `p` in links, at least 1. With distance 0, all timers would fire at once.
    fn distance(&self, me: ProcessId, p: ProcessId) -> u32 {
        self.settings.hops.between(me, p).max(1)
    }

    fn has(&self, unit: Unit) -> bool {
        self.held.get(unit.from).is_some_and(|numbers| numbers.contains(unit.number))
    }

    /// The delay of `links` links, times `part`/256.
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
