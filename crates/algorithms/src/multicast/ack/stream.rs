//! The receiver's side: the messages of one sender, and when to confirm them.

use std::collections::BTreeMap;

use konklave_process::{Context, ProcessId};
use serde::Serialize;

use super::{Ack, Message, Timer};
use crate::multicast::{Indication, Note, Numbers, Unit};

/// The stream of one sender.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize)]
pub struct Stream {
    life: u32,
    received: Numbers,
    /// Messages that arrived before one of their predecessors, by place.
    #[serde(rename = "early")]
    out_of_order: BTreeMap<u32, u32>,
    /// How many messages have arrived since the last confirmation.
    unconfirmed: u32,
    /// With a tree: the place up to which each child has confirmed.
    below: BTreeMap<ProcessId, u32>,
}

impl Stream {
    /// A stream of which only the messages after `base` are needed.
    pub(super) fn from_base(life: u32, base: u32) -> Self {
        Self { life, received: Numbers::first(base), ..Self::default() }
    }

    /// A child has restarted: its confirmations begin anew.
    pub(super) fn forget_child(&mut self, child: ProcessId) {
        self.below.remove(&child);
    }
}

impl Ack {
    pub(super) fn on_data(
        &mut self,
        from: ProcessId,
        life: u32,
        seq: u32,
        number: u32,
        ctx: &mut Context<'_, Self>,
    ) {
        if self.welcomes_missing.contains(from) {
            // The start of its stream is unknown until its `Welcome`. It repeats the messages after it.
            return;
        }
        let stream = self.streams.entry(from).or_default();
        if life < stream.life {
            return;
        }
        if life > stream.life {
            *stream = Stream { life, ..Stream::default() };
        }
        let unit = Unit { from, number };
        if !stream.received.insert(seq) {
            ctx.indicate(Indication::Note(Note::Unwanted(unit)));
            let is_older = seq < stream.received.upto();
            if !self.recognises_copy(is_older) {
                ctx.indicate(Indication::Delivered(unit));
            }
            // The confirmation may have been lost.
            if self.confirms_copies() {
                self.confirm(from, ctx);
            }
            return;
        }
        stream.out_of_order.insert(seq, number);
        while let Some(entry) = stream.out_of_order.first_entry()
            && *entry.key() <= stream.received.upto()
        {
            ctx.indicate(Indication::Delivered(Unit { from, number: entry.remove() }));
        }
        stream.unconfirmed += 1;
        if stream.unconfirmed >= self.settings.every {
            self.confirm(from, ctx);
        } else if stream.unconfirmed == 1 {
            // All receivers get the message at the same moment, and would confirm it at the same moment.
            let part = self.settings.jitter * (ctx.choose(256) + 1);
            ctx.set_timer(Timer::Confirm(from), self.settings.unit * part / 256);
        }
    }

    /// Confirms the messages of `of`: to `of` itself, or to the parent in its tree.
    pub(super) fn confirm(&mut self, of: ProcessId, ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        let Some(stream) = self.streams.get_mut(&of) else { return };
        let late = std::mem::take(&mut stream.unconfirmed);
        if self.settings.every > 1 && late > 0 {
            ctx.cancel_timer(Timer::Confirm(of));
        }
        let received = &stream.received;
        if self.settings.fanout == 0 {
            let (upto, beyond) = (received.upto(), received.beyond().to_vec());
            return ctx.send(of, Message::Ack { of, life: stream.life, upto, beyond });
        }
        let below = self.settings.children(of, me).filter(|p| !self.given_up.contains(*p));
        let below = below.map(|p| stream.below.get(&p).copied().unwrap_or(0)).min();
        let upto = below.map_or(received.upto(), |below| below.min(received.upto()));
        if let Some(parent) = self.settings.parent(of, me) {
            ctx.send(parent, Message::Ack { of, life: stream.life, upto, beyond: Vec::new() });
        }
    }

    /// A child in the tree of `of` confirms.
    pub(super) fn on_child_ack(
        &mut self,
        of: ProcessId,
        life: u32,
        child: ProcessId,
        upto: u32,
        ctx: &mut Context<'_, Self>,
    ) {
        let Some(stream) = self.streams.get_mut(&of).filter(|stream| stream.life == life) else {
            return;
        };
        let known = stream.below.entry(child).or_insert(0);
        let news = upto > *known;
        *known = upto.max(*known);
        if news {
            self.confirm(of, ctx);
        }
    }
}
