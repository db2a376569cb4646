//! The locks of the table: operations, revocations and view changes.

use konklave_process::ProcessSet;

use super::lock::{Grant, Lock, report_changed};
use super::{ClaimId, Key, Op, Outcome, Table};
use crate::group::{Member, Token};

impl Table {
    /// The lock under `key`, if it is held or wanted.
    pub fn lock(&self, key: &Key) -> Option<&Lock> {
        self.locks.get(key)
    }

    /// All locks that are held or wanted, in no order.
    pub fn locks(&self) -> impl Iterator<Item = (&Key, &Lock)> {
        self.locks.iter()
    }

    /// The excluded members with fenced locks, and the leases of these locks.
    pub fn fenced(&self) -> Vec<(Member, u32)> {
        let grants = self.locks.values().flat_map(|lock| &lock.holders);
        let mut leases: Vec<(Member, u32)> =
            grants.filter(|g| g.fenced).map(|g| (g.claim.member, g.lease)).collect();
        leases.sort_unstable();
        leases.dedup();
        leases
    }

    /// Applies an operation on one lock. A free lock is not stored.
    pub(super) fn apply_to_lock(&mut self, key: &Key, op: &Op, out: &mut Vec<Outcome>) {
        if let Some(lock) = self.locks.get_mut(key) {
            lock.apply(op, &mut self.tokens, out);
            if lock.is_free() {
                self.locks.remove(key);
            }
        } else {
            let mut lock = Lock::default();
            lock.apply(op, &mut self.tokens, out);
            if !lock.is_free() {
                self.locks.insert(key.clone(), lock);
            }
        }
    }

    pub(super) fn revoke(
        &mut self,
        key: &Key,
        token: Option<Token>,
        out: &mut Vec<Outcome>,
    ) -> bool {
        let holders = self.locks.get(key).map_or(&[][..], |lock| &lock.holders);
        // Local grants of a cached lock have higher tokens than the grant in the table.
        let matches = |g: &Grant| token.is_none_or(|t| t.derives_from(g.token));
        let gone: Vec<ClaimId> = holders.iter().filter(|g| matches(g)).map(|g| g.claim).collect();
        for grant in holders.iter().filter(|g| gone.contains(&g.claim)) {
            let (claim, token) = (grant.claim, grant.token);
            out.push(Outcome::GrantRevoked { claim, key: key.clone(), token });
        }
        // The lock is not released here, but by the holder's node: that may have passed it to another session
        // in the meantime.
        for grant in self.locks.get_mut(key).into_iter().flat_map(|lock| &mut lock.holders) {
            grant.revoked |= gone.contains(&grant.claim);
        }
        !gone.is_empty()
    }

    pub(super) fn expire_lease(&mut self, member: Member, lease: u32, out: &mut Vec<Outcome>) {
        for key in self.keys_of(|claim| claim.member == member) {
            let Some(lock) = self.locks.get_mut(&key) else { continue };
            let gone = |g: &Grant| g.fenced && g.claim.member == member && g.lease <= lease;
            lock.drop_holders(&key, gone, &mut self.tokens, out);
            if lock.is_free() {
                self.locks.remove(&key);
            }
        }
    }

    /// The keys of all locks with matching claims, sorted.
    fn keys_of(&self, concerns: impl Fn(ClaimId) -> bool) -> Vec<Key> {
        let touches = |lock: &Lock| {
            lock.holders.iter().any(|g| concerns(g.claim))
                || lock.queue.iter().any(|w| concerns(w.claim))
        };
        let keys = self.locks.iter().filter(|(_, l)| touches(l)).map(|(key, _)| key.clone());
        let mut keys: Vec<Key> = keys.collect();
        keys.sort_unstable();
        keys
    }

    pub(super) fn depart_locks(
        &mut self,
        members: &[Member],
        left: &ProcessSet,
        out: &mut Vec<Outcome>,
    ) {
        let gone = |claim: ClaimId| !members.contains(&claim.member);
        // A restarted process knows nothing of the grants of its earlier incarnation.
        let knows = |m: Member| left.contains(m.id);
        let mut fenced = Vec::new();
        for key in self.keys_of(gone) {
            let Some(lock) = self.locks.get_mut(&key) else { continue };
            lock.queue.retain(|w| !gone(w.claim));
            for grant in lock.holders.iter_mut().filter(|g| gone(g.claim)) {
                // An already fenced grant belongs to an earlier incarnation: that the later one leaves in
                // order does not release it.
                grant.fenced |= grant.safe && !knows(grant.claim.member);
                if grant.fenced {
                    fenced.push((grant.claim.member, grant.lease));
                }
            }
            let before = lock.holders.len();
            lock.holders.retain(|g| !gone(g.claim) || g.fenced);
            if lock.holders.len() < before {
                report_changed(&key, out);
            }
            lock.serve(&key, &mut self.tokens, out);
            if lock.is_free() {
                self.locks.remove(&key);
            }
        }
        fenced.sort_unstable();
        fenced.dedup();
        out.extend(fenced.into_iter().map(|(member, lease)| Outcome::Fenced { member, lease }));
    }
}

#[cfg(test)]
mod tests;
