//! Inside a view: messages get their places from the most senior member, and are delivered when a
//! majority has them.

use std::collections::{BTreeMap, VecDeque};

use konklave_process::{Context, ProcessId, ProcessSet};
use serde::Serialize;

use super::{Entry, Message, VirtualSynchrony};
use crate::group::{Data, Indication, View};

/// How many messages are sent again at once.
const RESENT: usize = 64;

/// The messages of the present view.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(bound = "C: Serialize")]
pub(super) struct Ordering<C> {
    /// How many have been dropped because everyone has them.
    pub(super) base: u64,
    /// Those after them, in order, without a gap.
    pub(super) order: VecDeque<Entry<C>>,
    /// Those that came before their predecessors.
    pub(super) early: BTreeMap<u64, Entry<C>>,
    /// At the one who gives places: messages that came before their predecessors.
    #[serde(serialize_with = "crate::group::as_list")]
    early_data: BTreeMap<(ProcessId, u32), C>,
    /// How many have been delivered.
    pub(super) delivered: u64,
    /// How many of each sender have a place here.
    pub(super) last: BTreeMap<ProcessId, u32>,
    /// Up to which place everyone has them.
    pub(super) held: BTreeMap<ProcessId, u64>,
    /// How many of our own we have numbered.
    pub(super) sent: u32,
    /// How many of our own everyone has.
    pub(super) own_stable: u32,
    /// Our own that have no place yet, as far as we know.
    pub(super) own: VecDeque<C>,
}

impl<C> Ordering<C> {
    pub(super) fn new(view: &View) -> Self {
        Self {
            base: 0,
            order: VecDeque::new(),
            early: BTreeMap::new(),
            early_data: BTreeMap::new(),
            delivered: 0,
            last: BTreeMap::new(),
            held: view.everyone().map(|m| (m.id, 0)).collect(),
            sent: 0,
            own_stable: 0,
            own: VecDeque::new(),
        }
    }

    /// The place after the last message without a gap.
    pub(super) fn end(&self) -> u64 {
        self.base + self.order.len() as u64
    }

    /// The number of our first message that has no place yet.
    pub(super) fn first_own(&self) -> u32 {
        self.sent.saturating_sub(self.own.len() as u32) + 1
    }
}

impl<C: Data> VirtualSynchrony<C> {
    /// Sends what waits, as far as we may.
    pub(super) fn send_waiting(&mut self, ctx: &mut Context<'_, Self>) {
        while self.may_send(ctx.me())
            && let Some(command) = self.waiting.pop_front()
        {
            self.ordering.sent += 1;
            let seq = self.ordering.sent;
            ctx.indicate(Indication::Sent { seq });
            if self.view.leader() == Some(ctx.me()) {
                self.place(Entry { sender: ctx.me(), seq, command }, ctx);
            } else {
                self.ordering.own.push_back(command.clone());
                let leader = self.view.leader().unwrap_or(ctx.me());
                ctx.send(leader, Message::Data { view: self.view.id, seq, command });
            }
        }
    }

    /// Whether a message may leave now: within a view, and not too many that others lack.
    fn may_send(&self, me: ProcessId) -> bool {
        let unstable = self.ordering.sent.saturating_sub(self.ordering.own_stable);
        self.is_member(me) && !self.change.wedged && unstable < self.settings.window
    }

    /// At the most senior member: a message asks for its place.
    pub(super) fn on_data(
        &mut self,
        sender: ProcessId,
        seq: u32,
        command: C,
        ctx: &mut Context<'_, Self>,
    ) {
        if self.change.wedged || self.view.leader() != Some(ctx.me()) {
            return;
        }
        let next = |o: &Ordering<C>| o.last.get(&sender).copied().unwrap_or(0).saturating_add(1);
        let highest = next(&self.ordering).saturating_add(self.settings.window);
        if seq < next(&self.ordering) || seq > highest {
            return;
        }
        self.ordering.early_data.insert((sender, seq), command);
        while let Some(command) = self.ordering.early_data.remove(&(sender, next(&self.ordering))) {
            self.place(Entry { sender, seq: next(&self.ordering), command }, ctx);
        }
    }

    /// Gives a message the next place.
    fn place(&mut self, entry: Entry<C>, ctx: &mut Context<'_, Self>) {
        let position = self.ordering.end();
        for to in self.view.others(ctx.me()) {
            ctx.send(to, Message::Order { view: self.view.id, position, entry: entry.clone() });
        }
        self.append(entry);
        self.ordering.held.insert(ctx.me(), position + 1);
        self.deliver(ctx);
    }

    fn append(&mut self, entry: Entry<C>) {
        self.ordering.last.insert(entry.sender, entry.seq);
        self.ordering.order.push_back(entry);
    }

    pub(super) fn on_order(
        &mut self,
        from: ProcessId,
        position: u64,
        entry: Entry<C>,
        ctx: &mut Context<'_, Self>,
    ) {
        // Who has stopped takes nothing in: what it told the candidate must remain all it has.
        let takes = !self.change.wedged
            || self.makes(&super::sheet::KEEP_DELIVERING)
            || self.makes(&super::sheet::KEEP_ACKNOWLEDGING);
        if !takes || self.view.leader() != Some(from) {
            return;
        }
        self.note_held(from, position.saturating_add(1));
        if position >= self.ordering.end() {
            self.ordering.early.insert(position, entry);
        }
        while let Some(entry) = self.ordering.early.remove(&self.ordering.end()) {
            if entry.sender == ctx.me() {
                self.ordering.own.pop_front();
            }
            self.append(entry);
        }
        let held = self.ordering.end();
        self.ordering.held.insert(ctx.me(), held);
        if !self.change.wedged || self.makes(&super::sheet::KEEP_ACKNOWLEDGING) {
            for to in self.view.others(ctx.me()) {
                ctx.send(to, Message::Ack { view: self.view.id, held });
            }
        }
        self.deliver(ctx);
    }

    pub(super) fn on_ack(&mut self, from: ProcessId, held: u64, ctx: &mut Context<'_, Self>) {
        self.note_held(from, held);
        self.deliver(ctx);
    }

    fn note_held(&mut self, of: ProcessId, held: u64) {
        if let Some(known) = self.ordering.held.get_mut(&of) {
            *known = held.max(*known);
        }
    }

    /// Delivers what may be, in order; drops what everyone has.
    pub(super) fn deliver(&mut self, ctx: &mut Context<'_, Self>) {
        let stopped = self.change.wedged && !self.makes(&super::sheet::KEEP_DELIVERING);
        if stopped || !self.has_state || self.holds_for_state() {
            return;
        }
        while self.ordering.delivered < self.ordering.end() && self.is_deliverable() {
            let place = (self.ordering.delivered - self.ordering.base) as usize;
            let entry = self.ordering.order[place].clone();
            self.hand_over(entry, ctx);
        }
        self.drop_stable(ctx.me());
        self.send_waiting(ctx);
    }

    /// Whether the next message is safe: a majority has it, so that no view can end without it.
    fn is_deliverable(&self) -> bool {
        if self.settings.agreed || self.makes(&super::sheet::AGREED) {
            return true;
        }
        let has = |p: &(&ProcessId, &u64)| *p.1 > self.ordering.delivered;
        let holders: ProcessSet = self.ordering.held.iter().filter(has).map(|(p, _)| *p).collect();
        self.is_quorum(&holders)
    }

    /// Tells the application the next message.
    pub(super) fn hand_over(&mut self, entry: Entry<C>, ctx: &mut Context<'_, Self>) {
        let Entry { sender, seq, command } = entry;
        let position = self.ordering.delivered;
        self.ordering.delivered += 1;
        let view = self.view.id;
        ctx.indicate(Indication::Delivered { view, position, sender, seq, command });
    }

    fn drop_stable(&mut self, me: ProcessId) {
        let stable = self.ordering.held.values().min().copied().unwrap_or(0);
        while self.ordering.base < stable.min(self.ordering.delivered)
            && let Some(entry) = self.ordering.order.pop_front()
        {
            self.ordering.base += 1;
            self.ordering.own_stable += u32::from(entry.sender == me);
        }
    }

    /// Sends again what `to` lacks, or what we wait for: messages may have been lost.
    pub(super) fn repair(&mut self, to: ProcessId, held: u64, ctx: &mut Context<'_, Self>) {
        if self.view.leader() != Some(ctx.me()) || self.change.wedged {
            return;
        }
        let skipped = held.saturating_sub(self.ordering.base) as usize;
        let lacks = self.ordering.order.iter().skip(skipped).take(RESENT);
        for (position, entry) in (held.max(self.ordering.base)..).zip(lacks) {
            let entry = entry.clone();
            ctx.send(to, Message::Order { view: self.view.id, position, entry });
        }
    }

    /// Asks again for the places of our own messages.
    pub(super) fn ask_again(&self, ctx: &mut Context<'_, Self>) {
        let Some(leader) = self.view.leader().filter(|l| *l != ctx.me() && !self.change.wedged)
        else {
            return;
        };
        let own = self.ordering.own.iter().take(RESENT);
        for (seq, command) in (self.ordering.first_own()..).zip(own) {
            let command = command.clone();
            ctx.send(leader, Message::Data { view: self.view.id, seq, command });
        }
    }
}
