//! Requests and grants of local sessions, and the cache of locks granted to this node.
//!
//! The group grants a lock to a node, not to a session. When a session releases it and no request is queued,
//! the node keeps it cached: its next local request is granted without a message, with a token one higher. A
//! request of another node reaches this node through the table, and makes it release the cached lock.

mod releasing;
mod requests;
mod revoking;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use rustc_hash::FxHashMap;
use tokio::sync::{Notify, oneshot};

use super::{Core, Output};
use crate::error::Error;
use crate::status::Loss;
use crate::table::{ClaimId, Key, LockMode};
use crate::token::{LOCAL_GRANT_BITS, Token};

/// A lease as the table has it: in milliseconds, rounded up.
fn in_millis(lease: Duration) -> u32 {
    u32::try_from(lease.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX)
}

/// A request of a local session for a lock, a semaphore or a campaign.
pub(crate) struct LocalRequest {
    pub(crate) session: u32,
    pub(crate) key: Key,
    pub(crate) mode: LockMode,
    pub(crate) wait: bool,
    pub(crate) safe: bool,
    pub(crate) lease: Duration,
    pub(crate) priority: i32,
    pub(crate) label: Arc<str>,
    /// Takes over the grant with this token, which an earlier incarnation of this node had.
    pub(crate) adopt: Option<Token>,
    /// The timeout of the request.
    pub(crate) patience: Option<Duration>,
    pub(crate) reply: oneshot::Sender<Result<Granted, Error>>,
}

/// The answer to a granted request.
#[derive(Debug)]
pub(crate) struct Granted {
    pub(crate) number: u64,
    pub(crate) token: Token,
    pub(crate) flag: Arc<LossFlag>,
    pub(crate) lease: Duration,
}

/// Tells a guard that its grant is lost.
#[derive(Debug, Default)]
pub(crate) struct LossFlag {
    /// The code of the [`Loss`]; zero while the grant is not lost.
    lost: AtomicU8,
    changed: Notify,
}

impl LossFlag {
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire) != 0
    }

    /// Why the grant is lost; `None` while it is not.
    pub(crate) fn loss(&self) -> Option<Loss> {
        Loss::of(self.lost.load(Ordering::Acquire))
    }

    pub(crate) fn lose(&self, why: Loss) {
        self.lost.store(why.code(), Ordering::Release);
        self.changed.notify_waiters();
    }

    /// Returns when the grant is lost.
    pub(crate) async fn lost(&self) {
        loop {
            let changed = self.changed.notified();
            if self.is_lost() {
                return;
            }
            changed.await;
        }
    }
}

pub(super) struct PendingRequest {
    request: LocalRequest,
    deadline: Option<Duration>,
    /// Set while a grant is held back: granted by the group, but not delivered to the session, because this
    /// node has no lease yet or a record is not on disk.
    token: Option<(ClaimId, Token)>,
}

impl PendingRequest {
    pub(super) fn refuse_busy(self) {
        let name = self.request.key.name.to_string();
        let _ = self.request.reply.send(Err(Error::Busy(name)));
    }

    /// The request, and its deadline.
    pub(super) fn into_request(self) -> (LocalRequest, Option<Duration>) {
        (self.request, self.deadline)
    }
}

/// A grant that was delivered to a local session.
pub(super) struct LocalGrant {
    pub(super) session: u32,
    key: Key,
    /// The claim under which the table knows the grant.
    claim: ClaimId,
    flag: Arc<LossFlag>,
    /// The holder's label, for `status` and `why`.
    pub(super) label: Arc<str>,
    pub(super) since: Duration,
    pub(super) lease: Duration,
}

/// A lock that the group granted to this node: used by a local session, or idle.
struct CachedLock {
    /// The claim under which the table knows the grant.
    claim: ClaimId,
    token: Token,
    safe: bool,
    /// For how long the group fences it. Its users have at most this lease.
    lease: Duration,
    /// The number of the local request that uses the lock; `None` while it is idle.
    user: Option<u64>,
    /// When its last user released it.
    idle_since: Duration,
    /// The last claim this node denied because the lock is in use and the claim does not wait.
    denied: Option<ClaimId>,
}

impl CachedLock {
    fn next_token(&self) -> Option<Token> {
        let mask = (1 << LOCAL_GRANT_BITS) - 1;
        (self.token.k & mask < mask).then_some(Token { k: self.token.k + 1, ..self.token })
    }
}

#[derive(Default)]
pub(super) struct LocalClaims {
    pending: FxHashMap<u64, PendingRequest>,
    deadlines: BTreeSet<(Duration, u64)>,
    held: FxHashMap<u64, LocalGrant>,
    cached: FxHashMap<Key, CachedLock>,
    /// Revoked grants that their holders have not released, and when the node releases them anyway.
    revoked: BTreeMap<u64, (Duration, LocalGrant)>,
    revoking: BTreeMap<u64, (Key, oneshot::Sender<Result<(), Error>>)>,
    /// For each holder of a lock: when this node first saw it in the table.
    since: FxHashMap<Key, Vec<(ClaimId, Duration)>>,
    /// How many grants in `held` and `cached` have each lease.
    leases: BTreeMap<Duration, usize>,
    /// Whether a grant may be held back until the lease is renewed.
    awaits_renewal: bool,
    last: u64,
}

impl LocalClaims {
    pub(super) fn next_number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// The shortest lease of a grant to this node, and the longest one.
    pub(super) fn shortest_lease(&self) -> Option<Duration> {
        self.leases.first_key_value().map(|(lease, _)| *lease)
    }

    pub(super) fn longest_lease(&self) -> Option<Duration> {
        let revoked = self.revoked.values().map(|(_, held)| held.lease).max();
        self.leases.last_key_value().map(|(lease, _)| *lease).max(revoked)
    }

    fn count_lease(&mut self, lease: Duration) {
        *self.leases.entry(lease).or_default() += 1;
    }

    fn discount_lease(&mut self, lease: Duration) {
        if let Some(count) = self.leases.get_mut(&lease) {
            *count -= 1;
            if *count == 0 {
                self.leases.remove(&lease);
            }
        }
    }

    fn remove_held(&mut self, number: u64) -> Option<LocalGrant> {
        let held = self.held.remove(&number)?;
        self.discount_lease(held.lease);
        Some(held)
    }

    fn remove_cached(&mut self, key: &Key) -> Option<CachedLock> {
        let cached = self.cached.remove(key)?;
        self.discount_lease(cached.lease);
        Some(cached)
    }

    /// Whether a grant may be held back until the lease is renewed.
    pub(super) fn awaits_renewal(&self) -> bool {
        self.awaits_renewal
    }

    /// Whether a grant, revoked or not, or a request has a longer lease than this.
    fn any_longer(&self, lease: Duration) -> bool {
        self.longest_lease().is_some_and(|longest| longest > lease)
            || self.pending.values().any(|pending| pending.request.lease > lease)
    }

    pub(super) fn first_deadline(&self) -> Option<Duration> {
        self.deadlines.first().map(|(due, _)| *due)
    }

    /// Drops what the group knew: revocations in progress, and when others became holders.
    pub(super) fn forget_others(&mut self) {
        self.revoked.clear();
        self.since.clear();
    }

    pub(super) fn since(&self, key: &Key, claim: ClaimId) -> Option<Duration> {
        self.since.get(key)?.iter().find(|(c, _)| *c == claim).map(|(_, since)| *since)
    }

    /// For a grant to this node: its highest token, whether a local session uses it, and that session's grant
    /// once it is delivered.
    pub(super) fn cached(
        &self,
        key: &Key,
        claim: ClaimId,
    ) -> Option<(Token, bool, Option<&LocalGrant>)> {
        let cached = self.cached.get(key).filter(|cached| cached.claim == claim)?;
        let held = cached.user.and_then(|number| self.held.get(&number));
        Some((cached.token, cached.user.is_some(), held))
    }

    /// A request that waits for its grant or for its delivery.
    pub(super) fn request(&self, number: u64) -> Option<&LocalRequest> {
        self.pending.get(&number).map(|pending| &pending.request)
    }

    /// A request that has not been granted: a held-back grant does not count.
    pub(super) fn ungranted_request(&self, number: u64) -> Option<&LocalRequest> {
        let pending = self.pending.get(&number).filter(|pending| pending.token.is_none());
        pending.map(|pending| &pending.request)
    }

    /// Withdraws a held-back grant; returns whether there was one.
    pub(super) fn cancel_undelivered(&mut self, number: u64) -> bool {
        self.pending.get_mut(&number).is_some_and(|pending| pending.token.take().is_some())
    }

    /// The numbers of the pending requests that match, oldest first.
    fn pending_where(&self, matches: impl Fn(&PendingRequest) -> bool) -> Vec<u64> {
        let pending = self.pending.iter().filter(|(_, pending)| matches(pending));
        let mut numbers: Vec<u64> = pending.map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        numbers
    }

    pub(super) fn remove_pending(&mut self, number: u64) -> Option<PendingRequest> {
        let pending = self.pending.remove(&number)?;
        if let Some(due) = pending.deadline {
            self.deadlines.remove(&(due, number));
        }
        Some(pending)
    }
}

impl Core {
    pub(super) fn on_changed(&mut self, key: &Key) {
        let holders = self.table.lock(key).map_or(&[][..], |lock| &lock.holders);
        let holders = holders.iter().map(|g| g.claim);
        let known = self.claims.since.get(key).map_or(&[][..], Vec::as_slice);
        if holders.clone().eq(known.iter().map(|(claim, _)| *claim)) {
            return self.notify_observers(key);
        }
        let holders: Vec<ClaimId> = holders.collect();
        let now = self.now;
        let since = self.claims.since.entry(key.clone()).or_default();
        let gone = since.iter().filter(|(claim, _)| !holders.contains(claim));
        let gone: Vec<_> = gone.map(|(claim, _)| claim.member.id).collect();
        since.retain(|(claim, _)| holders.contains(claim));
        let mut new = holders;
        new.retain(|claim| since.iter().all(|(known, _)| known != claim));
        since.extend(new.iter().map(|claim| (*claim, now)));
        if since.is_empty() {
            self.claims.since.remove(key);
        }
        self.publish_changes(key, &gone, &new);
        self.notify_observers(key);
    }
}
