//! Requests and grants of local sessions, and the cache of locks granted to this node.
//!
//! The group grants a lock to a node, not to a session. When a session releases it and no request is queued,
//! the node keeps it cached: its next local request is granted without a message, with a token one higher. A
//! request of another node reaches this node through the table, and makes it release the cached lock.

mod revoking;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use konklave_algorithms::group::Member;
use rustc_hash::FxHashMap;
use tokio::sync::{Notify, oneshot};

use super::{Core, Output};
use crate::error::Error;
use crate::status::{Event, Loss};
use crate::table::{ClaimId, Key, LockMode, Op, QueuedRequest, Refusal, Space};
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
    /// Handles a request of a local session. If no message is needed, the answer is sent before this returns.
    pub(crate) fn acquire(&mut self, request: LocalRequest, now: Duration) -> u64 {
        self.now = self.now.max(now);
        let number = self.claims.next_number();
        let supported = self.unsupported(&request).map_or(Ok(()), Err);
        if let Err(error) = self.is_usable(request.session).and(supported) {
            let _ = request.reply.send(Err(error));
            return number;
        }
        self.note_lease(request.lease);
        if let Some(request) = self.grant_from_cache(number, request) {
            let deadline = request.patience.map(|patience| self.now.saturating_add(patience));
            if let Some(due) = deadline {
                self.claims.deadlines.insert((due, number));
            }
            self.claims.pending.insert(number, PendingRequest { request, deadline, token: None });
            self.ask(number);
            self.pump();
        }
        number
    }

    /// Serves a request from the cache, without a message. Returns the request if that is impossible.
    fn grant_from_cache(&mut self, number: u64, request: LocalRequest) -> Option<LocalRequest> {
        let cacheable = request.mode == LockMode::Exclusive && request.key.space == Space::Lock;
        if !cacheable || request.adopt.is_some() {
            return Some(request);
        }
        if self.lifts(&request.key) {
            return self.grant_idle(number, request);
        }
        if !self.claims.cached.contains_key(&request.key) {
            return Some(request);
        }
        let me = self.own_member();
        let someone_waits = self.next_in_queue(&request.key, me).is_some();
        let leased = self.lease.holds(request.lease, self.now) && !self.unsaved;
        let Some(cached) = self.claims.cached.get_mut(&request.key) else { return Some(request) };
        if cached.user.is_some() && !request.wait {
            let _ = request.reply.send(Err(Error::Busy(request.key.name.to_string())));
            return None;
        }
        let fits = cached.safe == request.safe && request.lease <= cached.lease;
        let token = cached.next_token().filter(|_| cached.user.is_none() && fits);
        let Some(token) = token.filter(|_| leased && !someone_waits) else { return Some(request) };
        cached.token = token;
        cached.user = Some(number);
        let claim = cached.claim;
        self.deliver_grant(number, (request, None), claim, token);
        None
    }

    /// Sends a request to the group, or to the lifted algorithm.
    pub(super) fn ask(&mut self, number: u64) {
        let Some(pending) = self.claims.pending.get(&number) else { return };
        let LocalRequest { session, ref key, mode, wait, safe, priority, ref label, .. } =
            pending.request;
        if self.lifts(key) {
            let name = key.name.clone();
            return self.request_lifted(number, &name, wait, safe);
        }
        let claim = ClaimId { member: self.own_member(), session, number };
        let (lease, adopt) = (in_millis(pending.request.lease), pending.request.adopt);
        let (key, label) = (key.clone(), label.clone());
        self.submit(match adopt {
            Some(token) => Op::Adopt { claim, key, token },
            None => Op::Acquire { claim, key, mode, wait, safe, lease, priority, label },
        });
    }

    /// Why this group cannot serve a request, if it cannot.
    fn unsupported(&self, request: &LocalRequest) -> Option<Error> {
        let timings = &self.config.timings;
        let name = || request.key.name.to_string();
        if self.lifts(&request.key) && request.adopt.is_some() {
            return Some(Error::Lost(name()));
        }
        if self.lifts(&request.key) && request.lease != timings.lease {
            return Some(Error::OnlyGroupLease {
                name: name(),
                algorithm: self.config.lock_algorithm,
            });
        }
        let lease = timings.check_lease(request.lease).err();
        lease.or_else(|| self.unsupported_mode(&request.key, request.mode))
    }

    /// Notes a lease that is longer than the group's, on disk before it is used: after all members were down, a
    /// group is founded only when its holders are gone. The note is removed when none has it any more.
    fn note_lease(&mut self, lease: Duration) {
        let lease = in_millis(lease);
        let longer = lease > self.record.longest_lease.max(in_millis(self.config.timings.lease));
        if longer && self.config.holders_outlive {
            self.record.longest_lease = lease;
            self.unsaved = true;
            self.out.push(Output::Save(self.record.clone()));
        }
    }

    /// Removes the note of a longer lease when no holder can have it any more.
    pub(super) fn forget_longer_leases(&mut self) {
        let over = self.forming.are_grants_over();
        if self.record.longest_lease > 0
            && over
            && !self.claims.any_longer(self.config.timings.lease)
        {
            self.record.longest_lease = 0;
            self.out.push(Output::Note(self.record.clone()));
        }
    }

    /// Submits all pending requests again after this node rejoined the group: the group dropped the old ones.
    pub(super) fn resubmit_requests(&mut self) {
        for number in self.claims.pending_where(|_| true) {
            if let Some(pending) = self.claims.pending.get_mut(&number) {
                pending.token = None;
            }
            self.ask(number);
        }
    }

    pub(super) fn on_granted(&mut self, claim: ClaimId, key: Key, token: Token) {
        if claim.member != self.own_member() {
            return;
        }
        let holders = self.table.lock(&key).map_or(&[][..], |lock| &lock.holders);
        let grant = holders.iter().find(|g| g.claim == claim);
        let exclusive = grant.is_some_and(|g| g.mode == LockMode::Exclusive);
        let safe = grant.is_some_and(|g| g.safe);
        let lease = Duration::from_millis(grant.map_or(0, |g| g.lease).into());
        let keeps = key.space == Space::Lock && exclusive;
        let mut pending = self.claims.remove_pending(claim.number);
        if let Some(PendingRequest { request, .. }) = &mut pending {
            // A client that takes over a grant may not remember its lease: the lease in the table counts.
            request.lease = request.lease.min(lease);
        }
        if keeps {
            let user = pending.as_ref().map(|_| claim.number);
            let idle_since = self.now;
            let cached = CachedLock { claim, token, safe, lease, user, idle_since, denied: None };
            self.claims.remove_cached(&key);
            self.claims.count_lease(lease);
            self.claims.cached.insert(key.clone(), cached);
        }
        match pending {
            Some(pending) => self.deliver_grant(claim.number, pending.into_request(), claim, token),
            // The request was withdrawn in the meantime.
            None if keeps => self.serve_queue(&key),
            None => self.submit(Op::Release { claim, key }),
        }
    }

    /// Delivers a grant to the session that requested it, or holds it back until there is a lease and the
    /// disk has caught up.
    pub(super) fn deliver_grant(
        &mut self,
        number: u64,
        (request, deadline): (LocalRequest, Option<Duration>),
        claim: ClaimId,
        token: Token,
    ) {
        if !self.lease.holds(request.lease, self.now) || self.unsaved {
            self.claims.awaits_renewal = true;
            self.claims.deadlines.extend(deadline.map(|due| (due, number)));
            let waits = PendingRequest { request, deadline, token: Some((claim, token)) };
            self.claims.pending.insert(number, waits);
            return;
        }
        self.grant_budget.spend();
        self.flush_state.granted_locally = true;
        let flag = Arc::new(LossFlag::default());
        if !self.has_no_receivers() {
            self.publish(Event::Granted { name: request.key.name.to_string(), token });
        }
        let LocalRequest { session, key, label, lease, reply, .. } = request;
        let (since, own) = (self.now, flag.clone());
        let held = LocalGrant { session, key, claim, flag: own, label, since, lease };
        self.claims.count_lease(lease);
        self.claims.held.insert(number, held);
        if reply.send(Ok(Granted { number, token, flag, lease })).is_err() {
            self.release(number);
        }
    }

    /// Delivers held-back grants: a lease has begun, or the disk has caught up.
    pub(super) fn deliver_held_back_grants(&mut self) {
        self.claims.awaits_renewal = false;
        for number in self.claims.pending_where(|pending| pending.token.is_some()) {
            if let Some((claim, token)) = self.claims.pending.get(&number).and_then(|w| w.token)
                && let Some(pending) = self.claims.remove_pending(number)
            {
                self.deliver_grant(number, pending.into_request(), claim, token);
            }
        }
        self.advance_all();
    }

    pub(super) fn on_refused(&mut self, claim: ClaimId, key: &Key, why: Refusal) {
        if claim.member != self.own_member() {
            return;
        }
        let Some(pending) = self.claims.remove_pending(claim.number) else { return };
        let name = key.name.to_string();
        let error = match (why, pending.request.mode) {
            (Refusal::Permits { of }, LockMode::Permit { of: asked }) => {
                Error::Permits { name, of, asked }
            }
            (Refusal::Permits { .. } | Refusal::Busy, _) => Error::Busy(name),
            (Refusal::Gone, _) => Error::Lost(name),
        };
        let _ = pending.request.reply.send(Err(error));
    }

    /// The disk has caught up: held-back grants may be delivered.
    pub(crate) fn saved(&mut self) {
        self.unsaved = false;
        if self.is_leased() || self.claims.awaits_renewal() {
            self.deliver_held_back_grants();
            self.pump();
        }
    }

    /// Notifies the local holder that its grant is lost; does not update the replicated table.
    pub(super) fn lose(&mut self, number: u64, why: Loss) -> Option<LocalGrant> {
        let held = self.claims.remove_held(number)?;
        held.flag.lose(why);
        self.publish(Event::Lost { name: held.key.name.to_string(), why });
        Some(held)
    }

    /// Releases a grant of a local session.
    pub(crate) fn release(&mut self, number: u64) -> bool {
        let Some(held) = self.claims.remove_held(number) else {
            return self.release_revoked(number);
        };
        self.give_back(number, held.key, held.claim);
        true
    }

    fn give_back(&mut self, number: u64, key: Key, claim: ClaimId) {
        if self.lifts(&key) {
            return self.release_lifted(number, &key.name, false);
        }
        match self.claims.cached.get_mut(&key) {
            Some(cached) if cached.user == Some(number) => {
                (cached.user, cached.idle_since) = (None, self.now);
                self.serve_queue(&key);
            }
            Some(_) | None => self.submit(Op::Release { claim, key }),
        }
        self.pump();
    }

    /// Withdraws a request whose future was dropped. If it has been granted in the meantime, releases it.
    pub(crate) fn abandon(&mut self, number: u64) {
        if self.release(number) {
            return;
        }
        let Some(pending) = self.claims.remove_pending(number) else { return };
        self.withdraw(number, &pending);
        self.pump();
    }

    fn withdraw(&mut self, number: u64, pending: &PendingRequest) {
        let name = &pending.request.key.name;
        if self.lifts(&pending.request.key) {
            return match pending.token {
                Some(_) => self.release_lifted(number, name, false),
                None => self.drop_queued(number, name),
            };
        }
        let (key, session) = (pending.request.key.clone(), pending.request.session);
        match pending.token {
            Some((claim, _)) => self.give_back(number, key, claim),
            None => {
                let claim = ClaimId { member: self.own_member(), session, number };
                self.submit(Op::Cancel { claim, key });
            }
        }
    }

    pub(super) fn expire_requests(&mut self) {
        while let Some((due, number)) = self.claims.deadlines.first().copied()
            && due <= self.now
        {
            self.claims.deadlines.remove(&(due, number));
            let Some(pending) = self.claims.pending.remove(&number) else { continue };
            self.withdraw(number, &pending);
            let name = pending.request.key.name.to_string();
            let _ = pending.request.reply.send(Err(Error::TimedOut(name)));
        }
    }

    /// The node has left for good: fails all pending requests.
    pub(super) fn fail_requests(&mut self) {
        self.claims.deadlines.clear();
        for number in self.claims.pending_where(|_| true) {
            if let Some(pending) = self.claims.pending.remove(&number) {
                let _ = pending.request.reply.send(Err(Error::Left));
            }
        }
    }

    /// The next queued request that has been neither denied nor withdrawn.
    fn next_in_queue(&self, key: &Key, me: Member) -> Option<&QueuedRequest> {
        let denied = self.claims.cached.get(key).and_then(|cached| cached.denied);
        let still = |w: &&QueuedRequest| {
            let given_up =
                w.claim.member == me && !self.claims.pending.contains_key(&w.claim.number);
            !given_up && denied != Some(w.claim)
        };
        self.table.lock(key)?.queue.iter().find(still)
    }

    /// Serves the queue of a lock granted to this node: passes it to a local request, releases it to another
    /// node, or denies a request that does not wait while the lock is in use.
    pub(super) fn serve_queue(&mut self, key: &Key) {
        if !self.claims.cached.contains_key(key) {
            return;
        }
        let me = self.own_member();
        let next = self.next_in_queue(key, me).cloned();
        let Some(cached) = self.claims.cached.get_mut(key) else { return };
        let Some(next) = next else { return };
        if cached.user.is_some() {
            if !next.wait {
                cached.denied = Some(next.claim);
                self.submit(Op::Deny { claim: next.claim, key: key.clone() });
            }
            return;
        }
        // Earlier local users had the lock with `Handover::Fast`, which the group did not record. So a
        // lease-safe request goes through the group, unless the grant itself is lease-safe.
        let local = next.claim.member == me
            && next.mode == LockMode::Exclusive
            && (cached.safe || !next.safe)
            && next.lease <= in_millis(cached.lease);
        if let Some(token) = cached.next_token().filter(|_| local) {
            let from = std::mem::replace(&mut cached.claim, next.claim);
            (cached.token, cached.safe, cached.user) = (token, next.safe, Some(next.claim.number));
            let lease = Duration::from_millis(next.lease.into());
            let former = std::mem::replace(&mut cached.lease, lease);
            self.claims.discount_lease(former);
            self.claims.count_lease(lease);
            self.submit(Op::Pass { key: key.clone(), from, to: next.claim, token });
            if let Some(pending) = self.claims.remove_pending(next.claim.number) {
                self.deliver_grant(next.claim.number, pending.into_request(), next.claim, token);
            }
        } else {
            let claim = cached.claim;
            self.claims.remove_cached(key);
            self.submit(Op::Release { claim, key: key.clone() });
        }
    }

    /// Releases cached locks that have been idle for `Timings::keep`.
    pub(super) fn drop_idle(&mut self) {
        let (now, keep) = (self.now, self.config.timings.keep);
        let idle = |k: &CachedLock| k.user.is_none() && k.idle_since.saturating_add(keep) <= now;
        let mut old: Vec<(Key, ClaimId)> = self
            .claims
            .cached
            .iter()
            .filter(|(_, k)| idle(k))
            .map(|(key, k)| (key.clone(), k.claim))
            .collect();
        old.sort_unstable();
        for (key, claim) in old {
            self.claims.remove_cached(&key);
            self.submit(Op::Release { claim, key });
        }
    }

    /// Marks all local grants as lost and releases them: other members may have gone on without this node.
    pub(super) fn lose_all_grants(&mut self, why: Loss) {
        self.lose_grants(why, |_| true);
    }

    /// Marks the local grants as lost whose leases have run out, and releases them.
    pub(super) fn lose_expired_grants(&mut self) {
        let leases: Vec<Duration> = self.claims.leases.keys().copied().collect();
        let ended = leases.into_iter().filter(|lease| !self.lease.holds(*lease, self.now)).max();
        if let Some(longest) = ended {
            self.lose_grants(Loss::Lease, |lease| lease <= longest);
        }
    }

    /// Marks the local grants with matching leases as lost, and releases them. The user of a cached lock may have
    /// a shorter lease than the group grants for it: the lock then stays cached until that one is over, too.
    fn lose_grants(&mut self, why: Loss, matches: impl Fn(Duration) -> bool) {
        let undelivered = self.cancel_undelivered_with(&matches);
        let held = self.claims.held.iter().filter(|(_, held)| matches(held.lease));
        let mut numbers: Vec<u64> = held.map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        for number in numbers {
            let Some(held) = self.lose(number, why) else { continue };
            if self.lifts(&held.key) {
                self.release_lifted(number, &held.key.name, true);
            } else if let Some(cached) = self.claims.cached.get_mut(&held.key) {
                if !matches(cached.lease) {
                    (cached.user, cached.idle_since) = (None, self.now);
                    self.serve_queue(&held.key);
                }
            } else {
                self.submit(Op::Release { claim: held.claim, key: held.key });
            }
        }
        let cached = self.claims.cached.iter().filter(|(_, cached)| matches(cached.lease));
        let mut cached: Vec<(Key, ClaimId)> =
            cached.map(|(key, cached)| (key.clone(), cached.claim)).collect();
        cached.sort_unstable();
        for (key, claim) in cached {
            self.claims.remove_cached(&key);
            self.submit(Op::Release { claim, key });
        }
        undelivered.into_iter().for_each(|number| self.ask(number));
    }

    /// Withdraws the held-back grants with matching leases and releases them; returns their requests, to be
    /// submitted again.
    fn cancel_undelivered_with(&mut self, matches: impl Fn(Duration) -> bool) -> Vec<u64> {
        let held_back = |p: &PendingRequest| p.token.is_some() && matches(p.request.lease);
        let numbers = self.claims.pending_where(held_back);
        for number in &numbers {
            let Some(pending) = self.claims.pending.get_mut(number) else { continue };
            let key = pending.request.key.clone();
            let Some((claim, _)) = pending.token.take() else { continue };
            if self.lifts(&key) {
                self.release_lifted(*number, &key.name, true);
            } else if !self.claims.cached.contains_key(&key) {
                self.submit(Op::Release { claim, key });
            }
        }
        numbers
    }

    /// Withdraws the pending requests of a session that ends, and releases its grants.
    pub(super) fn end_claims(&mut self, session: u32) {
        for number in self.claims.pending_where(|pending| pending.request.session == session) {
            if let Some(pending) = self.claims.remove_pending(number) {
                self.withdraw(number, &pending);
                let _ = pending.request.reply.send(Err(Error::Closed));
            }
        }
        let held = |(n, h): (&u64, &LocalGrant)| (h.session == session).then_some(*n);
        let mut held: Vec<u64> = self.claims.held.iter().filter_map(held).collect();
        held.sort_unstable();
        for number in held {
            if let Some(held) = self.lose(number, Loss::Closed) {
                self.give_back(number, held.key, held.claim);
            }
        }
        let revoked =
            |(n, (_, h)): (&u64, &(Duration, LocalGrant))| (h.session == session).then_some(*n);
        let revoked: Vec<u64> = self.claims.revoked.iter().filter_map(revoked).collect();
        revoked.into_iter().for_each(|number| _ = self.release_revoked(number));
    }

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
