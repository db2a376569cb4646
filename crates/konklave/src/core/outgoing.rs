//! Outgoing operations, and flow control.
//!
//! Every member keeps the messages that some member may lack. When a view ends, they travel again: a promise
//! carries all that its sender keeps, a proposal all that any of its promisers keeps.
//!
//! Hazard: if these frames became longer than [`MAX_FRAME`], no view could end any more. So a member sends
//! only its share of bytes before all members have them. Members may disagree on what all have; so each also
//! bounds the bytes it keeps, and drops what exceeds the bound (the sender retransmits it). With these
//! bounds, promises and proposals stay below `MAX_FRAME` in views of up to 48 members that all send the
//! longest messages at once.

use std::collections::VecDeque;

use konklave_algorithms::group::Request;
use konklave_algorithms::group::virtual_synchrony::{Entry, Message};

use super::Core;
use crate::lock::LONGEST;
use crate::table::{Batch, LEAST, Op};
use crate::wire::{MAX_FRAME, MAX_MESSAGE};

/// The most own batches in flight. More would only make each batch smaller.
pub(super) const IN_FLIGHT: usize = 4;
/// The most operations, and bytes of messages, in one batch.
const BATCH_OPS: usize = 1024;
pub(super) const BATCH_BYTES: usize = 64 << 10;
/// From this number of operations, or of their bytes, group messages of the application have to wait.
const BACKLOG: usize = 16 * BATCH_OPS;
const BACKLOG_BYTES: usize = 16 << 20;
/// The longest operation of an application.
const HEAVIEST: usize = LEAST + LONGEST + MAX_MESSAGE;
/// The bytes that all members together may send before every member has them.
const UNSTABLE: usize = MAX_FRAME / 16;
/// From this number of bytes on, a member accepts no further messages in order. Out of order, it accepts
/// fewer, so that there is always room for the missing ones.
const BUFFERED: usize = 2 * UNSTABLE;
const BUFFERED_OUT_OF_ORDER: usize = UNSTABLE / 2;

/// Operations that wait to be sent.
#[derive(Default)]
pub(super) struct OutgoingOps {
    ops: VecDeque<Op>,
    bytes: usize,
}

impl OutgoingOps {
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

    /// The next operations: as many as one batch may have and as fit into `room` bytes.
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
    /// Whether group messages of the application have to wait.
    pub(crate) fn is_full(&self) -> bool {
        self.outgoing.is_full()
    }

    /// Queues an operation for the table of every member; ignored while this node is not a member.
    pub(super) fn submit(&mut self, op: Op) {
        if self.is_member() {
            self.outgoing.push(op);
        }
    }

    /// Sends queued operations, unless they are deferred until local tasks have run.
    pub(crate) fn pump(&mut self) {
        if !self.may_defer() {
            self.pump_all();
        }
    }

    /// Sends queued operations, as many per batch as possible.
    pub(crate) fn pump_all(&mut self) {
        while self.may_send() {
            let batch = Batch::of(self.outgoing.batch(self.free_bytes()));
            self.in_flight += 1;
            self.request(Request::Multicast(batch));
        }
    }

    /// Whether an operation is queued and may be sent now.
    pub(super) fn may_send(&self) -> bool {
        let Some(next) = self.outgoing.ops.front() else { return false };
        self.in_flight < IN_FLIGHT
            && self.is_member()
            && next.weight() <= self.free_bytes()
            && (!self.is_leader() || self.may_buffer_more())
    }

    /// The bytes this node may send before all members have its earlier ones. One message may always be in
    /// flight, however small the share.
    fn free_bytes(&self) -> usize {
        let members = self.forming.group().view().members.len().max(1);
        let part = (UNSTABLE / members).max(IN_FLIGHT * BATCH_BYTES);
        match self.forming.group().own_unstable(self.me).map(Batch::weight).sum() {
            0 => part.max(HEAVIEST),
            under_way => part.saturating_sub(under_way),
        }
    }

    /// Whether this node may keep more messages in order.
    fn may_buffer_more(&self) -> bool {
        // So few messages cannot exceed the bound; skip weighing them.
        self.forming.group().buffered() < BUFFERED / (BATCH_BYTES + HEAVIEST)
            || weight(self.forming.group().unstable().0) < BUFFERED
    }

    /// Whether keeping this message would exceed the bound. Its sender retransmits it later.
    pub(super) fn exceeds_buffer(&self, message: &Message<Batch>) -> bool {
        match message {
            Message::Data { .. } => !self.may_buffer_more(),
            Message::Order { position, .. } if *position > self.forming.group().end() => {
                !self.may_buffer_more()
                    || weight(self.forming.group().unstable().1) >= BUFFERED_OUT_OF_ORDER
            }
            Message::Order { position, .. } if *position == self.forming.group().end() => {
                !self.may_buffer_more()
            }
            _ => false,
        }
    }
}

fn weight<'a>(entries: impl Iterator<Item = &'a Entry<Batch>>) -> usize {
    entries.map(|entry| entry.command.weight()).sum()
}
