//! Flush policy: which frames are sent immediately, and which are batched.

use std::collections::BTreeMap;

use konklave_algorithms::group::virtual_synchrony::{Entry, Message};
use konklave_process::{ProcessId, ProcessSet};

use super::Core;
use super::outgoing::{BATCH_BYTES, IN_FLIGHT};
use crate::shared::{BATCH_FRAMES, Flush};
use crate::table::{Batch, Key, Lock, Op, Outcome, Space, Tokens};
use crate::wire::Frame;

/// The most operations to examine when deciding which members a message concerns. Beyond that, it counts as
/// concerning all.
const EXAMINED_OPS: usize = 16;

/// The leader's record of the frames that it batched. The leader orders all messages.
#[derive(Debug, Default)]
pub(super) struct FlushState {
    /// For each member: the number of its own messages whose order was sent to it only batched.
    batched_orders: BTreeMap<ProcessId, usize>,
    /// For each member: the highest position acknowledged to it without batching.
    confirmed: BTreeMap<ProcessId, u64>,
    /// The members that a message concerns, by its position; cached, since each member is asked about in
    /// turn.
    concerned: Option<(u64, Option<ProcessSet>)>,
    /// Whether a local session was granted something in this step.
    pub(super) granted_locally: bool,
}

impl Core {
    /// Resets what is valid for one step only.
    pub(crate) fn end_step(&mut self) {
        self.flush_state.granted_locally = false;
        self.flush_state.concerned = None;
    }

    /// Whether operations are deferred until the local tasks have run: a session that got a lock often
    /// releases it soon, and often requests it again at once.
    pub(crate) fn has_deferred(&self) -> bool {
        self.may_defer() && self.may_send()
    }

    pub(super) fn may_defer(&self) -> bool {
        let can = |op: &Op| match op {
            Op::Pass { .. } | Op::Release { .. } => true,
            Op::Acquire { key, wait, .. } => {
                *wait && self.table.lock(key).is_some_and(|lock| !lock.queue.is_empty())
            }
            _ => false,
        };
        (1..EXAMINED_OPS).contains(&self.outgoing.len()) && self.outgoing.iter().all(can)
    }

    /// The flush policy for a frame.
    pub(crate) fn flush_policy(&mut self, to: ProcessId, frame: &Frame) -> Flush {
        let (flush, own) = match frame {
            Frame::Pong { view, .. } => (self.flush_of_pong(to, *view), false),
            Frame::Group(Message::Ack { held, .. }) => (self.flush_of_ack(to, *held), false),
            Frame::Group(Message::Order { position, entry, .. }) => {
                (self.flush_of_order(to, *position, entry), entry.sender == to)
            }
            _ => (Flush::Now, false),
        };
        match flush {
            // The batched frames to this member leave with it.
            Flush::Now => _ = self.flush_state.batched_orders.remove(&to),
            Flush::Batched if own => *self.flush_state.batched_orders.entry(to).or_default() += 1,
            Flush::Soon | Flush::Batched => {}
        }
        flush
    }

    /// With at most three members, a follower needs only the leader's acknowledgement and its own to deliver
    /// a message. Another follower's acknowledgement only lets it discard messages. The leader needs a
    /// follower's acknowledgement if one of the two sent the message, or if a local grant waits for it. A
    /// sender may have only so many undiscarded messages, so acknowledgements are never withheld for more
    /// than a few.
    fn flush_of_ack(&mut self, to: ProcessId, held: u64) -> Flush {
        let view = self.forming.group().view();
        if view.members.len() > 3 {
            return Flush::Soon;
        }
        let confirmed = self.flush_state.confirmed.get(&to).copied().unwrap_or(0);
        // Acknowledgements of several messages may be merged into this one: any of them may be awaited, also
        // that of a message which all have in the meantime.
        let of_us = |position| {
            let entry = self.forming.group().entry_at(position);
            entry.is_none_or(|entry| entry.sender == self.me || entry.sender == to)
        };
        let awaited = view.leader() == Some(to)
            && (self.flush_state.granted_locally || (confirmed..held).any(of_us));
        // An acknowledgement of an old position answers a retransmission.
        let few = confirmed < held && held - confirmed < BATCH_FRAMES;
        if !awaited && few && !self.is_heavy(confirmed, held) {
            return Flush::Batched;
        }
        self.flush_state.confirmed.insert(to, held);
        Flush::Soon
    }

    /// Whether the messages between these positions are so large that their sender may wait for the
    /// acknowledgement.
    fn is_heavy(&self, from: u64, to: u64) -> bool {
        let entries = (from..to).filter_map(|position| self.forming.group().entry_at(position));
        entries.map(|entry| entry.command.weight()).sum::<usize>()
            >= BATCH_FRAMES as usize * BATCH_BYTES
    }

    /// With at most three members, an order is sent immediately to the members it concerns. If it concerns
    /// this node, one other member (the sender of the message, say) must have it before this node may deliver
    /// it.
    fn flush_of_order(&mut self, to: ProcessId, position: u64, entry: &Entry<Batch>) -> Flush {
        let view = self.forming.group().view();
        if view.members.len() > 3 || !view.has_member(to) {
            return Flush::Now;
        }
        let witness = if entry.sender == self.me {
            view.members.iter().map(|m| m.id).find(|id| *id != self.me)
        } else {
            Some(entry.sender)
        };
        if self.flush_state.concerned.as_ref().is_none_or(|(of, _)| *of != position) {
            self.flush_state.concerned = Some((position, self.concerned_members(position, entry)));
        }
        let Some((_, Some(concerned))) = &self.flush_state.concerned else { return Flush::Now };
        let witnesses = concerned.contains(self.me) && witness == Some(to);
        // A sender with the maximum of messages in flight waits for this order before it sends the next.
        let in_flight = if entry.sender == self.me {
            self.in_flight
        } else {
            self.flush_state.batched_orders.get(&to).map_or(1, |batched_orders| batched_orders + 1)
        };
        let stuck = witness == Some(to) && in_flight >= IN_FLIGHT;
        if concerned.contains(to) || witnesses || stuck { Flush::Now } else { Flush::Batched }
    }

    /// The members that a newly ordered message concerns: those it grants or refuses a request, and holders
    /// that learn from it of a queued request. `None`: possibly all.
    fn concerned_members(&self, position: u64, entry: &Entry<Batch>) -> Option<ProcessSet> {
        let before =
            (self.applied..position).map(|p| Some(&self.forming.group().entry_at(p)?.command));
        let mut ops: Vec<&Op> = Vec::new();
        for batch in before {
            ops.extend(batch?.ops.iter().take(EXAMINED_OPS + 1));
            if ops.len() > EXAMINED_OPS {
                return None;
            }
        }
        let earlier = ops.len();
        if earlier + entry.command.ops.len() > EXAMINED_OPS {
            return None;
        }
        ops.extend(entry.command.ops.iter());
        // The table does not contain messages that wait for a majority; so these operations are applied to
        // copies of its locks.
        let mut locks: Vec<(&Key, Lock)> = Vec::new();
        let mut tokens = Tokens::default();
        let mut concerned = ProcessSet::new();
        let mut outcomes = Vec::new();
        for (i, op) in ops.into_iter().enumerate() {
            let key = op.lock_key().filter(|key| key.space != Space::Campaign)?;
            let index = locks.iter().position(|(other, _)| *other == key).unwrap_or_else(|| {
                locks.push((key, self.table.lock(key).cloned().unwrap_or_default()));
                locks.len() - 1
            });
            let lock = &mut locks[index].1;
            lock.apply(op, &mut tokens, &mut outcomes);
            for outcome in outcomes.drain(..).filter(|_| i >= earlier) {
                match outcome {
                    Outcome::Granted { claim, .. } | Outcome::Refused { claim, .. } => {
                        concerned.insert(claim.member.id);
                    }
                    Outcome::Contended { .. } => {
                        let unaware = lock.holders.iter().map(|g| g.claim.member.id);
                        concerned
                            .extend(unaware.filter(|holder| !needs_no_notice(*holder, op, lock)));
                    }
                    Outcome::Changed { .. } => {}
                    _ => return None,
                }
            }
        }
        Some(concerned)
    }
}

/// Whether a holder needs no notice of `op` to hand the lock over in time: it passed the lock itself, or it
/// already knows another queued request for which it will release the lock.
fn needs_no_notice(holder: ProcessId, op: &Op, lock: &Lock) -> bool {
    match op {
        Op::Acquire { claim, .. } => {
            lock.queue.iter().any(|w| w.claim != *claim && w.claim.member.id != holder)
        }
        op => matches!(op, Op::Pass { .. }),
    }
}
