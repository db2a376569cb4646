//! Who holds what, and who waits for it.

use konklave_algorithms::group::Member;
use konklave_process::ProcessSet;

use super::lock::{Grant, Lock, tell_changed};
use super::{ClaimId, Key, Op, Outcome, Table};
use crate::token::Token;

impl Table {
    /// What is held or wanted under `key`.
    pub(crate) fn lock(&self, key: &Key) -> Option<&Lock> {
        self.locks.get(key)
    }

    /// Everything that is held or wanted, in no order.
    pub(crate) fn locks(&self) -> impl Iterator<Item = (&Key, &Lock)> {
        self.locks.iter()
    }

    /// Members that are gone and may not know: their locks are fenced.
    pub(crate) fn fenced(&self) -> Vec<Member> {
        let grants = self.locks.values().flat_map(|lock| &lock.holders);
        let mut members: Vec<Member> =
            grants.filter(|g| g.fenced).map(|g| g.claim.member).collect();
        members.sort_unstable();
        members.dedup();
        members
    }

    /// An operation on one lock. Nothing is kept of what is free and empty.
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
        // A kept lock has higher tokens than the one it was granted with.
        let meant = |g: &Grant| token.is_none_or(|t| t >= g.token && Self::of_grant(t, g.token));
        let gone: Vec<ClaimId> = holders.iter().filter(|g| meant(g)).map(|g| g.claim).collect();
        for grant in holders.iter().filter(|g| gone.contains(&g.claim)) {
            let (claim, token) = (grant.claim, grant.token);
            out.push(Outcome::GrantRevoked { claim, key: key.clone(), token });
        }
        // Nobody gets it before its holder's node has let it go: it may have passed it on meanwhile.
        for grant in self.locks.get_mut(key).into_iter().flat_map(|lock| &mut lock.holders) {
            grant.revoked |= gone.contains(&grant.claim);
        }
        !gone.is_empty()
    }

    /// Whether `token` is that of a grant, or of one of the times that its holder kept it.
    fn of_grant(token: Token, granted: Token) -> bool {
        let base = |t: Token| t.to_u128() >> crate::token::KEPT_BITS;
        base(token) == base(granted)
    }

    pub(super) fn expire_lease(&mut self, member: Member, out: &mut Vec<Outcome>) {
        for key in self.keys_of(|claim| claim.member == member) {
            let Some(lock) = self.locks.get_mut(&key) else { continue };
            let gone = |g: &Grant| g.fenced && g.claim.member == member;
            lock.drop_holders(&key, gone, &mut self.tokens, out);
            if lock.is_free() {
                self.locks.remove(&key);
            }
        }
    }

    /// What concerns these claims, by name.
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
        // Who comes again in another life says nothing of what it began in the one before.
        let knows = |m: Member| left.contains(m.id);
        let mut fenced = Vec::new();
        for key in self.keys_of(gone) {
            let Some(lock) = self.locks.get_mut(&key) else { continue };
            lock.queue.retain(|w| !gone(w.claim));
            for grant in lock.holders.iter_mut().filter(|g| gone(g.claim)) {
                // What is fenced was an earlier life's: a later one that leaves says nothing of it.
                grant.fenced |= grant.safe && !knows(grant.claim.member);
                if grant.fenced {
                    fenced.push(grant.claim.member);
                }
            }
            let before = lock.holders.len();
            lock.holders.retain(|g| !gone(g.claim) || g.fenced);
            if lock.holders.len() < before {
                tell_changed(&key, out);
            }
            lock.serve(&key, &mut self.tokens, out);
            if lock.is_free() {
                self.locks.remove(&key);
            }
        }
        fenced.sort_unstable();
        fenced.dedup();
        out.extend(fenced.into_iter().map(|member| Outcome::Fenced { member }));
    }
}

#[cfg(test)]
mod tests;
