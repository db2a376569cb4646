//! Reliable FIFO channels inside a view: classic algorithms assume them.
//!
//! A channel delivers each message once, in the order of sending. With heartbeats, a message that
//! stays unconfirmed is sent again. A channel lasts as long as its view.

use std::collections::{BTreeMap, VecDeque};

use konklave_process::ProcessId;
use serde::Serialize;

/// A message that stays unconfirmed for this many heartbeats is sent again. A confirmation waits for
/// the receiver's next heartbeat, and then travels.
const PATIENCE: u32 = 2;
/// How many messages are sent again at a time.
const RESENT: usize = 64;
/// How many messages are kept until they can be delivered: those of later views, and on each channel those that arrived
/// before one of their predecessors.
pub(super) const LATER: usize = 4096;

/// A message with its number in the channel from its sender to its receiver, from 1.
pub(super) trait Numbered: Clone {
    /// The number.
    fn seq(&self) -> u32;
    /// The same message with this number.
    fn numbered(self, seq: u32) -> Self;
}

/// The messages that are due at a heartbeat.
pub(super) struct Due<I> {
    /// The other side.
    pub(super) to: ProcessId,
    /// Confirms all messages up to this number.
    pub(super) confirms: Option<u32>,
    /// The messages to send again.
    pub(super) again: Vec<I>,
}

/// This process's side of the channels to and from all other members.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(transparent)]
pub(super) struct Channels<I>(BTreeMap<ProcessId, Channel<I>>);

/// This process's side of the channel to and from another member.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
struct Channel<I> {
    /// How many messages were sent.
    sent: u32,
    /// With heartbeats: the messages that the other side has not confirmed.
    #[serde(rename = "open")]
    unconfirmed: VecDeque<I>,
    /// For how many heartbeats no confirmation has arrived.
    waits: u32,
    /// How many messages were delivered.
    #[serde(rename = "got")]
    received: u32,
    /// Messages that arrived before one of their predecessors, by number.
    #[serde(rename = "early")]
    out_of_order: BTreeMap<u32, I>,
    /// Whether a message has arrived since the last confirmation.
    #[serde(rename = "owes")]
    owes_confirmation: bool,
}

impl<I> Channel<I> {
    fn new() -> Self {
        let (unconfirmed, out_of_order) = (VecDeque::new(), BTreeMap::new());
        Self { sent: 0, unconfirmed, waits: 0, received: 0, out_of_order, owes_confirmation: false }
    }
}

impl<I: Numbered> Channel<I> {
    /// Takes in a message. The result is all messages that can be delivered now, in order.
    fn take(&mut self, inside: I) -> Vec<I> {
        self.owes_confirmation = true;
        if inside.seq() > self.received && self.out_of_order.len() < LATER {
            self.out_of_order.insert(inside.seq(), inside);
        }
        let mut ready = Vec::new();
        while let Some(entry) = self.out_of_order.first_entry()
            && *entry.key() == self.received.saturating_add(1)
        {
            self.received += 1;
            ready.push(entry.remove());
        }
        ready
    }

    /// The other side has all messages up to `upto`.
    fn confirm(&mut self, upto: u32) {
        let open = self.unconfirmed.len();
        self.unconfirmed.retain(|inside| inside.seq() > upto);
        if self.unconfirmed.len() < open {
            self.waits = 0;
        }
    }

    /// The messages to send again at a heartbeat.
    fn overdue(&mut self) -> Vec<I> {
        if self.unconfirmed.is_empty() {
            return Vec::new();
        }
        self.waits += 1;
        if self.waits <= PATIENCE {
            return Vec::new();
        }
        self.waits = 0;
        self.unconfirmed.iter().take(RESENT).cloned().collect()
    }
}

impl<I> Channels<I> {
    /// No message was sent yet.
    pub(super) fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Begins anew.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Whether no received message waits for a predecessor.
    pub(super) fn is_in_order(&self) -> bool {
        self.0.values().all(|channel| channel.out_of_order.is_empty())
    }
}

impl<I: Numbered> Channels<I> {
    /// Numbers a message to `to`; if the channel `repeats`, it keeps the message until that confirms it.
    pub(super) fn send(&mut self, to: ProcessId, inside: I, repeats: bool) -> I {
        let channel = self.0.entry(to).or_insert_with(Channel::new);
        channel.sent += 1;
        let inside = inside.numbered(channel.sent);
        if repeats {
            channel.unconfirmed.push_back(inside.clone());
        }
        inside
    }

    /// Takes in a message of the present view. The result is all messages that are due now, in order.
    pub(super) fn in_order(&mut self, from: ProcessId, inside: I, repeats: bool) -> Vec<I> {
        let channel = self.0.entry(from).or_insert_with(Channel::new);
        let ready = channel.take(inside);
        channel.owes_confirmation &= repeats;
        ready
    }

    /// The other side has all messages up to `upto`.
    pub(super) fn confirm(&mut self, from: ProcessId, upto: u32) {
        if let Some(channel) = self.0.get_mut(&from) {
            channel.confirm(upto);
        }
    }

    /// At each heartbeat: confirms received messages, and sends unconfirmed ones again.
    pub(super) fn due(&mut self) -> Vec<Due<I>> {
        let due = |(to, channel): (&ProcessId, &mut Channel<I>)| {
            let owes = std::mem::take(&mut channel.owes_confirmation);
            let confirms = owes.then_some(channel.received);
            Due { to: *to, confirms, again: channel.overdue() }
        };
        self.0.iter_mut().map(due).collect()
    }
}
