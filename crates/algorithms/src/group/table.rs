//! The replicated table: locks, semaphores, campaigns, barriers and groups of the application.
//!
//! A deterministic state machine without a clock. All members apply the same operations in the same order, so
//! their tables are equal. The library's node applies this table, and so does the process that the checker
//! explores ([`lock_table`](super::lock_table)).

mod barriers;
mod groups;
mod lock;
mod locks;
mod ops;
mod parts;

pub use barriers::BarrierState;
pub use groups::{AppGroup, AppMember};
pub use lock::{Grant, Lock, QueuedRequest};
pub use ops::{
    Batch, ClaimId, GivenState, Key, LEAST, LockMode, Op, Outcome, Part, Payload, Refusal, Report,
    Space, Summary, text,
};

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use konklave_process::ProcessSet;
use rustc_hash::FxHashMap;
use serde::{Serialize, Serializer};

use super::{Member, Token, ViewId};
use crate::group::token::LOCAL_GRANT_BITS;

/// The name of a lock, semaphore, campaign, barrier or group.
pub type Name = Arc<str>;

/// The replicated table.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Table {
    tokens: Tokens,
    /// Sorted by name only where the order matters: it must be the same at all members.
    #[serde(serialize_with = "as_sorted_list")]
    locks: FxHashMap<Key, Lock>,
    barriers: BTreeMap<Name, BarrierState>,
    app_groups: BTreeMap<Name, AppGroup>,
}

/// The parts of the next token.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize)]
pub struct Tokens {
    generation: u32,
    epoch: u32,
    /// The number of tokens given in this view.
    count: u64,
}

impl Tokens {
    /// The next token, higher than all before.
    fn next(&mut self) -> Token {
        self.count += 1;
        Token { generation: self.generation, epoch: self.epoch, k: self.count << LOCAL_GRANT_BITS }
    }
}

/// For the checker only: the node hashes no table.
impl Hash for Table {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { tokens, locks, barriers, app_groups } = self;
        (tokens, sorted(locks), barriers, app_groups).hash(state);
    }
}

fn sorted(locks: &FxHashMap<Key, Lock>) -> BTreeMap<&Key, &Lock> {
    locks.iter().collect()
}

fn as_sorted_list<S: Serializer>(
    locks: &FxHashMap<Key, Lock>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(sorted(locks))
}

impl Table {
    /// Applies one operation.
    pub fn apply(&mut self, op: &Op, out: &mut Vec<Outcome>) {
        match *op {
            Op::Acquire { ref key, .. }
            | Op::Adopt { ref key, .. }
            | Op::Release { ref key, .. }
            | Op::Pass { ref key, .. }
            | Op::Cancel { ref key, .. }
            | Op::Deny { ref key, .. } => self.apply_to_lock(key, op, out),
            Op::LeaseExpired { member, lease } => self.expire_lease(member, lease, out),
            Op::Revoke { claim, ref key, token } => {
                let held = self.revoke(key, token, out);
                out.push(Outcome::RevokeDone { claim, held });
            }
            Op::Arrive { claim, ref name, of } => self.arrive(name.clone(), of, claim, out),
            Op::Depart { claim, ref name } => self.depart(name, claim, out),
            Op::Enter { ref group, claim, ref label } => {
                self.enter(group.clone(), claim, label.clone(), out);
            }
            Op::Exit { ref group, claim } => self.exit(group, |place| place.claim == claim, out),
            Op::Say { ref group, claim, ref payload } => {
                self.say(group.clone(), claim, payload.clone(), out);
            }
            Op::Give { ref group, to, by, ref piece, more } => {
                self.give(group, (to, by), (piece.clone(), more), out);
            }
            Op::AskAnother { ref group, to, instead_of, declined } => {
                self.ask_another(group, to, (instead_of, declined), out);
            }
            Op::Part(ref part) => self.take_part(part.clone()),
            // Summaries are not ordered: they travel in view changes only.
            Op::Summary(_) => {}
        }
    }

    /// A view begins. Grants of members that left in order, and grants with fast handover, are released at
    /// once. Lease-safe grants of excluded members stay fenced until their leases have expired.
    pub fn install(
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

    /// Sets the view whose tokens are given from now on.
    pub fn set_view(&mut self, view: ViewId) {
        let Token { generation, epoch, .. } = Token::of(view, 0);
        self.tokens = Tokens { generation, epoch, count: 0 };
    }

    /// The number of locks, barriers and groups: free or empty ones are not stored.
    pub fn len(&self) -> (usize, usize, usize) {
        (self.locks.len(), self.barriers.len(), self.app_groups.len())
    }
}
