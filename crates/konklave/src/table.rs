//! What every member knows: locks, semaphores, campaigns, barriers and groups.
//!
//! A deterministic machine without a clock. It is fed the operations of all members in the one order
//! that the group agreed on, so that it is the same everywhere.

mod barriers;
mod groups;
mod locks;
mod ops;
mod parts;

pub(crate) use groups::{Circle, Place};
pub(crate) use locks::{Grant, Lock, Waiting};
pub(crate) use ops::{
    Batch, Claim, HEAVIEST, Hold, Key, Op, Outcome, Part, Payload, Refusal, Space, text,
};

use std::collections::BTreeMap;
use std::sync::Arc;

use konklave_algorithms::group::{Member, ViewId};
use konklave_process::ProcessSet;
use rustc_hash::FxHashMap;

use crate::token::{KEPT_BITS, Token};
use barriers::Meeting;

/// A name that someone gave a lock, a campaign, a barrier or a group.
pub(crate) type Name = Arc<str>;

/// The table.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Table {
    generation: u32,
    epoch: u32,
    /// How many tokens this view has given.
    count: u64,
    /// By name only where the order matters: it must be the same everywhere.
    locks: FxHashMap<Key, Lock>,
    meetings: BTreeMap<Name, Meeting>,
    circles: BTreeMap<Name, Circle>,
}

impl Table {
    /// Carries out one operation.
    pub(crate) fn apply(&mut self, op: Op, out: &mut Vec<Outcome>) {
        match op {
            Op::Acquire { claim, key, hold, wait, safe, priority, label } => {
                let waiting = Waiting { claim, hold, wait, safe, priority, label };
                self.acquire(key, waiting, out);
            }
            Op::Release { claim, key } => self.release(&key, claim, out),
            Op::Pass { key, from, to, token } => self.pass(&key, from, to, token, out),
            Op::Cancel { claim, key } => self.cancel(&key, claim, out),
            Op::Deny { claim, key } => self.deny(&key, claim, out),
            Op::Thaw { member } => self.thaw(member, out),
            Op::Revoke { claim, key, token } => {
                let held = self.revoke(&key, token, out);
                out.push(Outcome::Revoked { claim, held });
            }
            Op::Arrive { claim, name, of } => self.arrive(name, of, claim, out),
            Op::Depart { claim, name } => self.depart(&name, claim),
            Op::Enter { group, claim, label } => self.enter(group, claim, label, out),
            Op::Exit { group, claim } => self.exit(&group, |place| place.claim == claim, out),
            Op::Say { group, claim, payload } => self.say(group, claim, payload, out),
            Op::Give { group, to, by, parts } => self.give(&group, to, by, parts, out),
            Op::AskAnother { group, to, instead_of } => {
                self.ask_another(&group, to, instead_of, out);
            }
            Op::Part(part) => self.take_part(part),
            // Said at the end of a view only.
            Op::Summary(_) => {}
        }
    }

    /// A view begins. Those who left with our consent, and all that is not `safe`, are free at once;
    /// what others hold safely stays frozen until they must know.
    pub(crate) fn install(
        &mut self,
        view: ViewId,
        members: &[Member],
        left: &ProcessSet,
        out: &mut Vec<Outcome>,
    ) {
        self.set_view(view);
        self.depart_locks(members, left, out);
        self.depart_meetings(members);
        self.depart_circles(members, out);
    }

    /// The view whose tokens are given from now on.
    pub(crate) fn set_view(&mut self, view: ViewId) {
        self.generation = view.generation;
        self.epoch = u32::try_from(view.epoch).unwrap_or(u32::MAX);
        self.count = 0;
    }

    /// The next token: higher than all before it.
    fn next_token(&mut self) -> Token {
        self.count += 1;
        Token { generation: self.generation, epoch: self.epoch, k: self.count << KEPT_BITS }
    }

    /// How many locks, barriers and groups it has: what is free and empty is not kept.
    #[cfg(test)]
    pub(crate) fn len(&self) -> (usize, usize, usize) {
        (self.locks.len(), self.meetings.len(), self.circles.len())
    }
}
