//! What leaves here for everyone, and how much of it may be under way.
//!
//! What some member may lack is kept by all, and goes into what they say to each other when the view
//! ends: a promise carries all that its sender keeps, a proposal all that anyone of them keeps. These must be
//! far below what a connection carries, for nothing goes on without them. So a member sends no more
//! than its part before everyone has it; and as one may have heard less than another of who has what,
//! nobody takes in more than it may keep: what it passes over is sent again. By these bounds a promise,
//! and the proposal in it, take less than [`MAX_FRAME`] in views of up to 48 members who all send the
//! largest messages at once.

use std::collections::VecDeque;

use konklave_algorithms::group::Request;
use konklave_algorithms::group::virtual_synchrony::{Entry, Message};
use konklave_process::Process;

use super::Core;
use crate::table::{Batch, HEAVIEST, Op};
use crate::wire::MAX_FRAME;

/// How many of our own batches may be on their way: more would only be smaller.
pub(super) const IN_FLIGHT: usize = 4;
/// How many operations, and bytes of messages, travel in one batch.
const BATCH_OPS: usize = 1024;
pub(super) const BATCH_BYTES: usize = 64 << 10;
/// How many operations, and bytes of them, may wait before messages have to.
const BACKLOG: usize = 16 * BATCH_OPS;
const BACKLOG_BYTES: usize = 16 << 20;
/// How many bytes all members together send before everyone has them.
const UNSTABLE: usize = MAX_FRAME / 16;
/// From how many bytes on, in order, a member takes in no more; and from how many on none that are out
/// of order, so that there is always room for what is missing.
const KEPT: usize = 2 * UNSTABLE;
const KEPT_EARLY: usize = UNSTABLE / 2;

/// Operations that wait to be sent.
#[derive(Default)]
pub(super) struct Pending {
    ops: VecDeque<Op>,
    bytes: usize,
}

impl Pending {
    fn push(&mut self, op: Op) {
        self.bytes += op.weight();
        self.ops.push_back(op);
    }

    fn pop(&mut self) -> Option<Op> {
        let op = self.ops.pop_front()?;
        self.bytes -= op.weight();
        Some(op)
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn len(&self) -> usize {
        self.ops.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Op> {
        self.ops.iter()
    }

    fn is_full(&self) -> bool {
        self.ops.len() >= BACKLOG || self.bytes >= BACKLOG_BYTES
    }

    /// The next operations, as many as travel together and fit into `room`.
    fn batch(&mut self, room: usize) -> Vec<Op> {
        let (mut ops, mut bytes) = (Vec::new(), 0);
        while ops.len() < BATCH_OPS
            && bytes < BATCH_BYTES
            && self.ops.front().is_some_and(|op| bytes + op.weight() <= room)
            && let Some(op) = self.pop()
        {
            bytes += op.weight();
            ops.push(op);
        }
        ops
    }
}

impl Core {
    /// Whether messages have to wait: more is on its way than is good.
    pub(crate) fn is_full(&self) -> bool {
        self.pending.is_full()
    }

    /// Has an operation carried out everywhere, unless we are no member.
    pub(super) fn submit(&mut self, op: Op) {
        if self.is_member() {
            self.pending.push(op);
        }
    }

    /// Sends our operations, unless they can wait for others.
    pub(crate) fn pump(&mut self) {
        if !self.may_defer() {
            self.pump_all();
        }
    }

    /// Sends our operations, as many together as have come since the last were sent.
    pub(crate) fn pump_all(&mut self) {
        while self.may_send() {
            let batch = Batch::of(self.pending.batch(self.room()));
            self.in_flight += 1;
            self.step(|group, ctx| group.on_request(Request::Multicast(batch), ctx));
        }
    }

    /// Whether something of ours waits and may leave.
    pub(super) fn may_send(&self) -> bool {
        let Some(next) = self.pending.ops.front() else { return false };
        self.in_flight < IN_FLIGHT
            && self.is_member()
            && next.weight() <= self.room()
            && (!self.is_leader() || self.has_room_for_more())
    }

    /// How many bytes we may send before everyone has more of what we sent. One message may always be under
    /// way, however many share what there is.
    fn room(&self) -> usize {
        let members = self.group.view().members.len().max(1);
        let part = (UNSTABLE / members).max(IN_FLIGHT * BATCH_BYTES);
        match self.group.own_unstable(self.me).map(Batch::weight).sum() {
            0 => part.max(HEAVIEST),
            under_way => part.saturating_sub(under_way),
        }
    }

    /// Whether we may keep more messages in order.
    fn has_room_for_more(&self) -> bool {
        // So few cannot be too much: they need not be weighed.
        self.group.buffered() < KEPT / (BATCH_BYTES + HEAVIEST)
            || weight(self.group.unstable().0) < KEPT
    }

    /// Whether this would be more to keep than we may: it will be sent again.
    pub(super) fn is_too_much(&self, message: &Message<Batch>) -> bool {
        match message {
            Message::Data { .. } => !self.has_room_for_more(),
            Message::Order { position, .. } if *position > self.group.end() => {
                !self.has_room_for_more() || weight(self.group.unstable().1) >= KEPT_EARLY
            }
            Message::Order { position, .. } if *position == self.group.end() => {
                !self.has_room_for_more()
            }
            _ => false,
        }
    }
}

fn weight<'a>(entries: impl Iterator<Item = &'a Entry<Batch>>) -> usize {
    entries.map(|entry| entry.command.weight()).sum()
}
