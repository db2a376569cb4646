//! One state of the whole group, as values: the state of the plain rules.

use std::hash::Hash;
#[cfg(test)]
use std::hash::Hasher;

use konklave_process::{
    AnyApplication, AnyData, AnyMonitor, AnyProcess, AnyTag, AnyTimer, Ledger, ProcessId,
};

#[cfg(test)]
use crate::fingerprint::fingerprint;

/// Clients and judges.
pub(crate) type AnyLedger = Ledger<AnyProcess, AnyApplication, AnyMonitor>;

/// The time given to clients and judges: a state has none.
pub(crate) const NO_TIME: u64 = 0;

/// Everything that decides how the run may go on.
pub(crate) struct State {
    pub(crate) processes: Vec<AnyProcess>,
    /// The messages in flight, ordered by channel, within a channel in the order sent.
    pub(crate) flight: Vec<Flight>,
    /// The running timers, in order.
    pub(crate) timers: Vec<Running>,
    pub(crate) ledger: AnyLedger,
    /// The places of the processes that are down, as a bit set.
    pub(crate) down: u64,
    pub(crate) saved: Vec<Option<AnyData>>,
    /// News on their way: (receiver, peer, whether the peer is up). News of one peer keep their order.
    pub(crate) news: Vec<(u32, ProcessId, bool)>,
    pub(crate) spent: Spent,
    /// The channels that are cut, as a bit set of from · n + to.
    pub(crate) cut: u64,
    /// The cut channels whose link broke.
    pub(crate) broken: u64,
    /// How many messages were sent; 0 if they are not counted.
    pub(crate) sent: u32,
}

/// A running timer: its place, its value, and its remaining steps of time (0 without a clock).
pub(crate) type Running = (u32, AnyTimer, u32);

/// How much of the budgets is used up.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Spent {
    pub(crate) crashes: u8,
    pub(crate) restarts: u8,
    pub(crate) losses: u8,
    pub(crate) duplicates: u8,
    pub(crate) app_messages: u8,
    pub(crate) cuts: u8,
    pub(crate) breaks: u8,
    pub(crate) early: u8,
    /// How many steps of time have passed; 0 if there is no limit.
    pub(crate) time: u16,
}

impl Spent {
    /// Whether a fault happened. Early timers do not count.
    pub(crate) fn is_faulty(self) -> bool {
        let Self { crashes, losses, duplicates, cuts, breaks, .. } = self;
        [crashes, losses, duplicates, cuts, breaks].iter().any(|spent| *spent > 0)
    }
}

/// A message in flight.
pub(crate) struct Flight {
    /// The channel, by places: from, to.
    pub(crate) channel: (u32, u32),
    pub(crate) content: Content,
    pub(crate) tag: AnyTag,
    /// The number of the message in a witness; not part of the state.
    pub(crate) id: u64,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Content {
    Message(AnyData),
    /// A message of the application past the algorithm, with the sender's logical clock.
    Stamp(u64),
}

impl Clone for Flight {
    fn clone(&self) -> Self {
        Self {
            channel: self.channel,
            content: self.content.clone(),
            tag: self.tag.clone(),
            id: self.id,
        }
    }
}

#[cfg(test)]
impl Hash for Flight {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.channel.hash(state);
        self.content.hash(state);
        self.tag.hash(state);
    }
}

impl Flight {
    pub(crate) fn equals(&self, other: &Self) -> bool {
        self.channel == other.channel && self.content == other.content && self.tag == other.tag
    }
}

impl Clone for State {
    fn clone(&self) -> Self {
        Self {
            processes: self.processes.clone(),
            flight: self.flight.clone(),
            timers: self.timers.clone(),
            ledger: self.ledger.clone(),
            down: self.down,
            saved: self.saved.clone(),
            news: self.news.clone(),
            spent: self.spent,
            cut: self.cut,
            broken: self.broken,
            sent: self.sent,
        }
    }
}

impl State {
    pub(crate) fn is_up(&self, place: u32) -> bool {
        self.down >> place & 1 == 0
    }

    /// The news on their way to `place`.
    pub(crate) fn news_of(&self, place: u32) -> Vec<(ProcessId, bool)> {
        let news = self.news.iter().filter(|(to, ..)| *to == place);
        news.map(|(_, peer, up)| (*peer, *up)).collect()
    }

    /// A fingerprint of this state. Without FIFO the messages in flight are a multiset, not a sequence.
    #[cfg(test)]
    pub(crate) fn fingerprint(&self, fifo: bool) -> u128 {
        let rest = (
            &self.processes,
            &self.timers,
            &self.ledger,
            (self.down, &self.saved, &self.news, self.spent, self.cut, self.broken, self.sent),
        );
        if fifo {
            fingerprint(&(rest, &self.flight))
        } else {
            let bag = self.flight.iter().fold(0u128, |sum, f| sum.wrapping_add(fingerprint(f)));
            fingerprint(&(rest, bag))
        }
    }
}
