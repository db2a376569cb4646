//! What every member knows: locks, semaphores, campaigns, barriers and groups.
//!
//! A deterministic machine without a clock. It is fed the operations of all members in the one order
//! that the group agreed on, so that it is the same everywhere.

mod barriers;
mod groups;
mod lock;
mod locks;
mod ops;
mod parts;

pub(crate) use groups::{AppGroup, AppMember};
pub(crate) use lock::{Grant, Lock, QueuedRequest};
pub(crate) use ops::{
    Batch, ClaimId, HEAVIEST, Key, LockMode, Op, Outcome, Part, Payload, Refusal, Space, text,
};

use std::collections::BTreeMap;
use std::sync::Arc;

use konklave_algorithms::group::{Member, ViewId};
use konklave_process::ProcessSet;
use rustc_hash::FxHashMap;

use crate::token::{KEPT_BITS, Token};
use barriers::BarrierState;

/// A name that someone gave a lock, a campaign, a barrier or a group.
pub(crate) type Name = Arc<str>;

/// The table.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Table {
    tokens: Tokens,
    /// By name only where the order matters: it must be the same everywhere.
    locks: FxHashMap<Key, Lock>,
    barriers: BTreeMap<Name, BarrierState>,
    app_groups: BTreeMap<Name, AppGroup>,
}

/// What the next token is made of.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Tokens {
    generation: u32,
    epoch: u32,
    /// How many this view has given.
    count: u64,
}

impl Tokens {
    /// The next one: higher than all before it.
    fn next(&mut self) -> Token {
        self.count += 1;
        Token { generation: self.generation, epoch: self.epoch, k: self.count << KEPT_BITS }
    }
}

impl Table {
    /// Carries out one operation.
    pub(crate) fn apply(&mut self, op: &Op, out: &mut Vec<Outcome>) {
        match *op {
            Op::Acquire { ref key, .. }
            | Op::Release { ref key, .. }
            | Op::Pass { ref key, .. }
            | Op::Cancel { ref key, .. }
            | Op::Deny { ref key, .. } => self.apply_to_lock(key, op, out),
            Op::LeaseExpired { member } => self.expire_lease(member, out),
            Op::Revoke { claim, ref key, token } => {
                let held = self.revoke(key, token, out);
                out.push(Outcome::RevokeDone { claim, held });
            }
            Op::Arrive { claim, ref name, of } => self.arrive(name.clone(), of, claim, out),
            Op::Depart { claim, ref name } => self.depart(name, claim),
            Op::Enter { ref group, claim, ref label } => {
                self.enter(group.clone(), claim, label.clone(), out);
            }
            Op::Exit { ref group, claim } => self.exit(group, |place| place.claim == claim, out),
            Op::Say { ref group, claim, ref payload } => {
                self.say(group.clone(), claim, payload.clone(), out);
            }
            Op::Give { ref group, to, by, ref parts } => {
                self.give(group, to, by, parts.clone(), out);
            }
            Op::AskAnother { ref group, to, instead_of } => {
                self.ask_another(group, to, instead_of, out);
            }
            Op::Part(ref part) => self.take_part(part.clone()),
            // Said at the end of a view only.
            Op::Summary(_) => {}
        }
    }

    /// A view begins. Those who left with our consent, and all that is not `safe`, are free at once;
    /// what others mode safely stays fenced until they must know.
    pub(crate) fn install(
        &mut self,
        view: ViewId,
        members: &[Member],
        left: &ProcessSet,
        out: &mut Vec<Outcome>,
    ) {
        self.set_view(view);
        self.depart_locks(members, left, out);
        self.depart_barriers(members);
        self.depart_app_groups(members, out);
    }

    /// The view whose tokens are given from now on.
    pub(crate) fn set_view(&mut self, view: ViewId) {
        let epoch = u32::try_from(view.epoch).unwrap_or(u32::MAX);
        self.tokens = Tokens { generation: view.generation, epoch, count: 0 };
    }

    /// How many locks, barriers and groups it has: what is free and empty is not kept.
    #[cfg(test)]
    pub(crate) fn len(&self) -> (usize, usize, usize) {
        (self.locks.len(), self.barriers.len(), self.app_groups.len())
    }
}
