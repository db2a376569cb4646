//! Release and loss of local grants, and the queue of a lock that this node has.

use std::time::Duration;

use konklave_algorithms::group::Member;

use super::{CachedLock, Core, LocalGrant, PendingRequest, in_millis};
use crate::error::Error;
use crate::status::{Event, Loss};
use crate::table::{ClaimId, Key, LockMode, Op, QueuedRequest};

impl Core {
    /// Notifies the local holder that its grant is lost; does not update the replicated table.
    pub(in crate::core) fn lose(&mut self, number: u64, why: Loss) -> Option<LocalGrant> {
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

    pub(super) fn give_back(&mut self, number: u64, key: Key, claim: ClaimId) {
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

    /// The next queued request that has been neither denied nor withdrawn.
    pub(super) fn next_in_queue(&self, key: &Key, me: Member) -> Option<&QueuedRequest> {
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
    pub(in crate::core) fn serve_queue(&mut self, key: &Key) {
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
    pub(in crate::core) fn drop_idle(&mut self) {
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
    pub(in crate::core) fn lose_all_grants(&mut self, why: Loss) {
        self.lose_grants(why, |_| true);
    }

    /// Marks the local grants as lost whose leases have run out, and releases them.
    pub(in crate::core) fn lose_expired_grants(&mut self) {
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
    pub(in crate::core) fn end_claims(&mut self, session: u32) {
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
}
