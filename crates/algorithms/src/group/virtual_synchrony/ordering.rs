//! Inside a view: the leader gives each message its place, and a member delivers a message when a
//! majority has it.

use std::collections::{BTreeMap, VecDeque};

use konklave_process::{Context, ProcessId, ProcessSet};
use serde::Serialize;

use super::{Entry, Message, VirtualSynchrony};
use crate::group::{Data, Indication, View};

/// How many messages are sent again at a time.
const RESENT: usize = 64;

/// The messages of the present view.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(bound = "C: Serialize")]
pub(super) struct Ordering<C> {
    /// How many messages have been dropped because every process of the view has them.
    pub(super) base: u64,
    /// The messages after those, in order, without a gap.
    pub(super) order: VecDeque<Entry<C>>,
    /// Messages that arrived before one of their predecessors, by place.
    #[serde(rename = "early")]
    pub(super) out_of_order: BTreeMap<u64, Entry<C>>,
    /// At the leader: messages without a place that arrived before one of their predecessors, by
    /// sender and number.
    #[serde(rename = "early_data", serialize_with = "crate::group::as_list")]
    out_of_order_data: BTreeMap<(ProcessId, u32), C>,
    /// How many messages have been delivered.
    pub(super) delivered: u64,
    /// For each sender, the number of its last message in `order` or dropped.
    pub(super) last: BTreeMap<ProcessId, u32>,
    /// For each process of the view, how many messages it is known to have without a gap.
    pub(super) held: BTreeMap<ProcessId, u64>,
    /// How many messages of its own this process has numbered.
    pub(super) sent: u32,
    /// How many of them every process of the view has.
    pub(super) own_stable: u32,
    /// Its own messages whose place it does not know yet.
    #[serde(rename = "own")]
    pub(super) unplaced: VecDeque<C>,
}

impl<C> Ordering<C> {
    pub(super) fn new(view: &View) -> Self {
        Self {
            base: 0,
            order: VecDeque::new(),
            out_of_order: BTreeMap::new(),
            out_of_order_data: BTreeMap::new(),
            delivered: 0,
            last: BTreeMap::new(),
            held: view.everyone().map(|m| (m.id, 0)).collect(),
            sent: 0,
            own_stable: 0,
            unplaced: VecDeque::new(),
        }
    }

    /// The place after the last message without a gap.
    pub(super) fn end(&self) -> u64 {
        self.base + self.order.len() as u64
    }

    /// The number of the first message in `unplaced`.
    pub(super) fn first_unplaced(&self) -> u32 {
        self.sent.saturating_sub(self.unplaced.len() as u32) + 1
    }
}

impl<C: Data> VirtualSynchrony<C> {
    /// Numbers and sends waiting commands, as many as the window admits.
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
                self.ordering.unplaced.push_back(command.clone());
                let leader = self.view.leader().unwrap_or(ctx.me());
                ctx.send(leader, Message::Data { view: self.view.id, seq, command });
            }
        }
    }

    /// Whether a message may be sent now: its sender is a member, the view is not ending, and the
    /// window has room for one more message that another process may lack.
    fn may_send(&self, me: ProcessId) -> bool {
        let unstable = self.ordering.sent.saturating_sub(self.ordering.own_stable);
        self.is_member(me) && !self.change.wedged && unstable < self.settings.window
    }

    /// At the leader: gives places to the messages of `sender`, in the order of their numbers.
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
        self.ordering.out_of_order_data.insert((sender, seq), command);
        while let Some(command) =
            self.ordering.out_of_order_data.remove(&(sender, next(&self.ordering)))
        {
            self.place(Entry { sender, seq: next(&self.ordering), command }, ctx);
        }
    }

    /// At the leader: gives a message the next place.
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
        // A wedged process promised; a message taken in afterwards would be missing from its promise.
        if !self.may_take_in() || self.view.leader() != Some(from) {
            return;
        }
        self.note_held(from, position.saturating_add(1));
        if position >= self.ordering.end() {
            self.ordering.out_of_order.insert(position, entry);
        }
        while let Some(entry) = self.ordering.out_of_order.remove(&self.ordering.end()) {
            if entry.sender == ctx.me() {
                self.ordering.unplaced.pop_front();
            }
            self.append(entry);
        }
        let held = self.ordering.end();
        self.ordering.held.insert(ctx.me(), held);
        if self.may_acknowledge() {
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

    /// Delivers all messages that may be delivered, and drops those that every process has.
    pub(super) fn deliver(&mut self, ctx: &mut Context<'_, Self>) {
        if !self.may_deliver() || !self.has_state || self.holds_for_state() {
            return;
        }
        while self.ordering.delivered < self.ordering.end() && self.is_deliverable() {
            let place = (self.ordering.delivered - self.ordering.base) as usize;
            let entry = self.ordering.order[place].clone();
            self.deliver_entry(entry, ctx);
        }
        self.drop_stable(ctx.me());
        self.send_waiting(ctx);
    }

    /// Whether the next message may be delivered. With uniform delivery a majority has it, so that
    /// every majority of promises contains it.
    fn is_deliverable(&self) -> bool {
        if self.settings.agreed || !self.waits_for_majority() {
            return true;
        }
        let has = |p: &(&ProcessId, &u64)| *p.1 > self.ordering.delivered;
        let holders: ProcessSet = self.ordering.held.iter().filter(has).map(|(p, _)| *p).collect();
        self.is_quorum(&holders)
    }

    /// Delivers `entry`, the next message, to the application.
    pub(super) fn deliver_entry(&mut self, entry: Entry<C>, ctx: &mut Context<'_, Self>) {
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

    /// At the leader: sends the messages again that `to` lacks from place `held` on.
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

    /// Sends the messages again whose place this process does not know.
    pub(super) fn resend_unplaced(&self, ctx: &mut Context<'_, Self>) {
        let Some(leader) = self.view.leader().filter(|l| *l != ctx.me() && !self.change.wedged)
        else {
            return;
        };
        let unplaced = self.ordering.unplaced.iter().take(RESENT);
        for (seq, command) in (self.ordering.first_unplaced()..).zip(unplaced) {
            let command = command.clone();
            ctx.send(leader, Message::Data { view: self.view.id, seq, command });
        }
    }
}
