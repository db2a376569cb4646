//! Reliable FIFO channels for the lifted algorithm: classic algorithms assume them.
//!
//! A channel delivers each message once, in the order of sending. With heartbeats, a message that
//! stays unconfirmed is sent again. A channel lasts as long as its view.

use std::collections::{BTreeMap, VecDeque};

use konklave_process::{Context, ProcessId};
use serde::Serialize;

use super::{Inner, InnerMessage, LATER, Lifted, Message};

/// A message that stays unconfirmed for this many heartbeats is sent again. A confirmation waits for
/// the receiver's next heartbeat, and then travels.
const PATIENCE: u32 = 2;
/// How many messages are sent again at a time.
const RESENT: usize = 64;

/// This process's side of the channel to and from another member.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub(super) struct Channel<M> {
    /// How many messages were sent.
    sent: u32,
    /// With heartbeats: the messages that the other side has not confirmed.
    #[serde(rename = "open")]
    unconfirmed: VecDeque<InnerMessage<M>>,
    /// For how many heartbeats no confirmation has arrived.
    waits: u32,
    /// How many messages were delivered.
    #[serde(rename = "got")]
    received: u32,
    /// Messages that arrived before one of their predecessors, by number.
    #[serde(rename = "early")]
    out_of_order: BTreeMap<u32, InnerMessage<M>>,
    /// Whether a message has arrived since the last confirmation.
    #[serde(rename = "owes")]
    owes_confirmation: bool,
}

impl<M> Channel<M> {
    fn new() -> Self {
        let (unconfirmed, out_of_order) = (VecDeque::new(), BTreeMap::new());
        Self { sent: 0, unconfirmed, waits: 0, received: 0, out_of_order, owes_confirmation: false }
    }

    /// Takes in a message. The result is all messages that can be delivered now, in order.
    fn take(&mut self, inside: InnerMessage<M>) -> Vec<InnerMessage<M>> {
        self.owes_confirmation = true;
        if inside.seq > self.received && self.out_of_order.len() < LATER {
            self.out_of_order.insert(inside.seq, inside);
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
        self.unconfirmed.retain(|inside| inside.seq > upto);
        if self.unconfirmed.len() < open {
            self.waits = 0;
        }
    }
}

impl<A: Inner> Lifted<A> {
    /// Sends a message of the lifted algorithm.
    pub(super) fn send_inner(
        &mut self,
        to: ProcessId,
        mut inside: InnerMessage<A::Message>,
        ctx: &mut Context<'_, Self>,
    ) {
        let channel = self.channels.entry(to).or_insert_with(Channel::new);
        channel.sent += 1;
        inside.seq = channel.sent;
        if self.settings.repeats {
            channel.unconfirmed.push_back(inside.clone());
        }
        ctx.send(to, Message::Inside(inside));
    }

    /// Takes in a message of the present view. The result is all messages that are due now, in order.
    pub(super) fn in_order(
        &mut self,
        from: ProcessId,
        inside: InnerMessage<A::Message>,
    ) -> Vec<InnerMessage<A::Message>> {
        let channel = self.channels.entry(from).or_insert_with(Channel::new);
        let ready = channel.take(inside);
        channel.owes_confirmation &= self.settings.repeats;
        ready
    }

    pub(super) fn on_confirmed(&mut self, from: ProcessId, upto: u32) {
        if let Some(channel) = self.channels.get_mut(&from) {
            channel.confirm(upto);
        }
    }

    /// At each heartbeat: confirms received messages, and sends unconfirmed ones again.
    pub(super) fn confirm_and_resend(&mut self, ctx: &mut Context<'_, Self>) {
        if self.wedged {
            return;
        }
        let view = self.view().id;
        for (&to, channel) in &mut self.channels {
            if std::mem::take(&mut channel.owes_confirmation) {
                ctx.send(to, Message::Got { view, upto: channel.received });
            }
            if channel.unconfirmed.is_empty() {
                continue;
            }
            channel.waits += 1;
            if channel.waits > PATIENCE {
                channel.waits = 0;
                for inside in channel.unconfirmed.iter().take(RESENT) {
                    ctx.send(to, Message::Inside(inside.clone()));
                }
            }
        }
    }

    /// Whether no received message waits for a predecessor.
    pub(super) fn is_in_order(&self) -> bool {
        self.channels.values().all(|channel| channel.out_of_order.is_empty())
    }
}
