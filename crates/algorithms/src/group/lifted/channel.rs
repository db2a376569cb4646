//! The channels of the algorithm within: numbered, so that every network looks to it like the one
//! that its book assumes.
//!
//! Messages are handed over in the order in which they were sent and each of them once; where there
//! are heartbeats, what nobody has confirmed for a while is sent again. Channels last as long as
//! their view.

use std::collections::{BTreeMap, VecDeque};

use konklave_process::{Context, ProcessId};
use serde::Serialize;

use super::{AHEAD, Inner, Inside, Lifted, Message};

/// What is not confirmed after so many heartbeats is sent again: a confirmation waits for the next
/// heartbeat of the other side, and then has a way to go.
const PATIENCE: u32 = 2;
/// So many messages are sent again at a time.
const AGAIN: usize = 64;

/// Our side of the channel to and from one other member.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub(super) struct Channel<M> {
    /// How many messages we have sent.
    sent: u32,
    /// Those that are not confirmed, where they can be sent again.
    open: VecDeque<Inside<M>>,
    /// For how many heartbeats the first of them has waited.
    waits: u32,
    /// How many messages we have handed over.
    got: u32,
    /// What came too early.
    early: BTreeMap<u32, Inside<M>>,
    /// Whether something has come that we have not confirmed.
    owes: bool,
}

impl<M> Channel<M> {
    fn new() -> Self {
        let (open, early) = (VecDeque::new(), BTreeMap::new());
        Self { sent: 0, open, waits: 0, got: 0, early, owes: false }
    }

    /// Takes in a message that arrives: all that can be handed over now, in order.
    fn take(&mut self, inside: Inside<M>) -> Vec<Inside<M>> {
        self.owes = true;
        if inside.seq > self.got && self.early.len() < AHEAD {
            self.early.insert(inside.seq, inside);
        }
        let mut ready = Vec::new();
        while let Some(entry) = self.early.first_entry()
            && *entry.key() == self.got.saturating_add(1)
        {
            self.got += 1;
            ready.push(entry.remove());
        }
        ready
    }

    /// The other side has all up to `upto`.
    fn confirm(&mut self, upto: u32) {
        let open = self.open.len();
        self.open.retain(|inside| inside.seq > upto);
        if self.open.len() < open {
            self.waits = 0;
        }
    }
}

impl<A: Inner> Lifted<A> {
    /// Sends a message of the algorithm within.
    pub(super) fn say(
        &mut self,
        to: ProcessId,
        mut inside: Inside<A::Message>,
        ctx: &mut Context<'_, Self>,
    ) {
        let channel = self.channels.entry(to).or_insert_with(Channel::new);
        channel.sent += 1;
        inside.seq = channel.sent;
        if self.settings.repeats {
            channel.open.push_back(inside.clone());
        }
        ctx.send(to, Message::Inside(inside));
    }

    /// A message of our view arrives: what it makes ready, in order.
    pub(super) fn in_order(
        &mut self,
        from: ProcessId,
        inside: Inside<A::Message>,
    ) -> Vec<Inside<A::Message>> {
        let channel = self.channels.entry(from).or_insert_with(Channel::new);
        let ready = channel.take(inside);
        channel.owes &= self.settings.repeats;
        ready
    }

    pub(super) fn on_confirmed(&mut self, from: ProcessId, upto: u32) {
        if let Some(channel) = self.channels.get_mut(&from) {
            channel.confirm(upto);
        }
    }

    /// At each heartbeat: confirms what has come, and repeats what was not confirmed.
    pub(super) fn tend(&mut self, ctx: &mut Context<'_, Self>) {
        if self.frozen {
            return;
        }
        let view = self.view().id;
        for (&to, channel) in &mut self.channels {
            if std::mem::take(&mut channel.owes) {
                ctx.send(to, Message::Got { view, upto: channel.got });
            }
            if channel.open.is_empty() {
                continue;
            }
            channel.waits += 1;
            if channel.waits > PATIENCE {
                channel.waits = 0;
                for inside in channel.open.iter().take(AGAIN) {
                    ctx.send(to, Message::Inside(inside.clone()));
                }
            }
        }
    }

    /// Whether nothing waits for what came before it.
    pub(super) fn is_in_order(&self) -> bool {
        self.channels.values().all(|channel| channel.early.is_empty())
    }
}
