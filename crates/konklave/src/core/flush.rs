//! What has to leave at once, and what may wait for company.

use std::collections::BTreeMap;

use konklave_algorithms::group::virtual_synchrony::{Entry, Message};
use konklave_process::{ProcessId, ProcessSet};

use super::Core;
use super::outgoing::{BATCH_BYTES, IN_FLIGHT};
use crate::shared::{BATCH_FRAMES, Flush};
use crate::table::{Batch, Key, Lock, Op, Outcome, Space, Tokens};
use crate::wire::Frame;

/// How many operations are looked at to find out whom they concern.
const LOOKED_AT: usize = 16;

/// What the one who gives places remembers of what it let wait.
#[derive(Debug, Default)]
pub(super) struct FlushState {
    /// How many of their own messages members have not been told the places of.
    owed: BTreeMap<ProcessId, usize>,
    /// How much we last told whom at once that we have.
    confirmed: BTreeMap<ProcessId, u64>,
    /// Whom a message concerns, by its place: asked once for each member.
    concern: Option<(u64, Option<ProcessSet>)>,
    /// Whether someone here was given something in this step.
    pub(super) served: bool,
}

impl Core {
    /// A step is over.
    pub(crate) fn end_step(&mut self) {
        self.flush_state.served = false;
        self.flush_state.concern = None;
    }

    /// Whether there is something to say that is to wait for what those here say next: what is passed on
    /// here is soon let go, and who lets it go often wants it again.
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
        (1..LOOKED_AT).contains(&self.pending.len()) && self.pending.iter().all(can)
    }

    /// How much of a flush a frame is in.
    pub(crate) fn flush(&mut self, to: ProcessId, frame: &Frame) -> Flush {
        let (flush, own) = match frame {
            Frame::Pong { view, .. } => (self.flush_of_pong(to, *view), false),
            Frame::Group(Message::Ack { held, .. }) => (self.flush_of_ack(to, *held), false),
            Frame::Group(Message::Order { position, entry, .. }) => {
                (self.flush_of_order(to, *position, entry), entry.sender == to)
            }
            _ => (Flush::Now, false),
        };
        match flush {
            // What waits leaves with it.
            Flush::Now => _ = self.flush_state.owed.remove(&to),
            Flush::Batched if own => *self.flush_state.owed.entry(to).or_default() += 1,
            Flush::Soon | Flush::Batched => {}
        }
        flush
    }

    /// Among three, who follows delivers what the leader and it itself have: what another follower has
    /// matters only for what may be forgotten. And the leader delivers what a follower has: the one
    /// that sent it, or that it serves. What all have may be forgotten, and only so many messages of one
    /// sender may not be: so nobody is left in the dark about more than a few.
    fn flush_of_ack(&mut self, to: ProcessId, held: u64) -> Flush {
        let view = self.group.view();
        if view.members.len() > 3 {
            return Flush::Soon;
        }
        let confirmed = self.flush_state.confirmed.get(&to).copied().unwrap_or(0);
        // Several may have come together: someone may wait for any of them, also for one that all have by now.
        let of_us = |position| {
            let entry = self.group.entry_at(position);
            entry.is_none_or(|entry| entry.sender == self.me || entry.sender == to)
        };
        let awaited =
            view.leader() == Some(to) && (self.flush_state.served || (confirmed..held).any(of_us));
        // What was said before is asked for again.
        let few = confirmed < held && held - confirmed < BATCH_FRAMES;
        if !awaited && few && !self.are_heavy(confirmed, held) {
            return Flush::Batched;
        }
        self.flush_state.confirmed.insert(to, held);
        Flush::Soon
    }

    /// Whether the messages between these places are so many bytes that who sent them may wait for us to
    /// have them.
    fn are_heavy(&self, from: u64, to: u64) -> bool {
        let entries = (from..to).filter_map(|position| self.group.entry_at(position));
        entries.map(|entry| entry.command.weight()).sum::<usize>()
            >= BATCH_FRAMES as usize * BATCH_BYTES
    }

    /// Among three, an order leaves at once for those whom it concerns. If it concerns us, one other
    /// has to have it before we may act on it: who sent it, for instance.
    fn flush_of_order(&mut self, to: ProcessId, position: u64, entry: &Entry<Batch>) -> Flush {
        let view = self.group.view();
        if view.members.len() > 3 || !view.has_member(to) {
            return Flush::Now;
        }
        let witness = if entry.sender == self.me {
            view.members.iter().map(|m| m.id).find(|id| *id != self.me)
        } else {
            Some(entry.sender)
        };
        if self.flush_state.concern.as_ref().is_none_or(|(of, _)| *of != position) {
            self.flush_state.concern = Some((position, self.concerned(position, entry)));
        }
        let Some((_, Some(concerned))) = &self.flush_state.concern else { return Flush::Now };
        let witnesses = concerned.contains(self.me) && witness == Some(to);
        // Who has too many on the way sends no more, be it another or we.
        let on_the_way = if entry.sender == self.me {
            self.in_flight
        } else {
            self.flush_state.owed.get(&to).map_or(1, |owed| owed + 1)
        };
        let stuck = witness == Some(to) && on_the_way >= IN_FLIGHT;
        if concerned.contains(to) || witnesses || stuck { Flush::Now } else { Flush::Batched }
    }

    /// Whose turn it is with a message that has just got its place: who is granted something by it, is
    /// refused it, or learns that someone waits for what it has. None: it may be anyone.
    fn concerned(&self, position: u64, entry: &Entry<Batch>) -> Option<ProcessSet> {
        let before = (self.applied..position).map(|p| Some(&self.group.entry_at(p)?.command));
        let mut ops: Vec<&Op> = Vec::new();
        for batch in before {
            ops.extend(batch?.ops.iter().take(LOOKED_AT + 1));
            if ops.len() > LOOKED_AT {
                return None;
            }
        }
        let earlier = ops.len();
        if earlier + entry.command.ops.len() > LOOKED_AT {
            return None;
        }
        ops.extend(entry.command.ops.iter());
        // The table has not taken in what waits for a majority: copies of its locks do.
        let mut locks: Vec<(&Key, Lock)> = Vec::new();
        let mut tokens = Tokens::default();
        let mut concerned = ProcessSet::new();
        let mut outcomes = Vec::new();
        for (i, op) in ops.into_iter().enumerate() {
            let key = op.lock_key().filter(|key| key.space != Space::Campaign)?;
            let place = locks.iter().position(|(other, _)| *other == key).unwrap_or_else(|| {
                locks.push((key, self.table.lock(key).cloned().unwrap_or_default()));
                locks.len() - 1
            });
            let lock = &mut locks[place].1;
            lock.apply(op, &mut tokens, &mut outcomes);
            for outcome in outcomes.drain(..).filter(|_| i >= earlier) {
                match outcome {
                    Outcome::Granted { claim, .. } | Outcome::Refused { claim, .. } => {
                        concerned.insert(claim.member.id);
                    }
                    Outcome::Contended { .. } => {
                        let unaware = lock.holders.iter().map(|g| g.claim.member.id);
                        concerned.extend(unaware.filter(|holder| !knows(*holder, op, lock)));
                    }
                    Outcome::Changed { .. } => {}
                    _ => return None,
                }
            }
        }
        Some(concerned)
    }
}

/// Whether who has a lock need not be told of an operation to give it to others in time: it has passed
/// it on itself, or someone else waits already for whom it will let it go.
fn knows(holder: ProcessId, op: &Op, lock: &Lock) -> bool {
    match op {
        Op::Acquire { claim, .. } => {
            lock.queue.iter().any(|w| w.claim != *claim && w.claim.member.id != holder)
        }
        op => matches!(op, Op::Pass { .. }),
    }
}
