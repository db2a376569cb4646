//! Who holds what, and who waits for it.

use std::collections::VecDeque;
use std::sync::Arc;

use konklave_algorithms::group::Member;
use konklave_process::ProcessSet;
use serde::{Deserialize, Serialize};

use super::{Claim, Hold, Key, Outcome, Refusal, Space, Table};
use crate::token::Token;

/// Something held or wanted.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Lock {
    pub(crate) holders: Vec<Grant>,
    /// Who is served next is first.
    pub(crate) queue: VecDeque<Waiting>,
}

/// One who holds it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Grant {
    pub(crate) claim: Claim,
    pub(crate) hold: Hold,
    pub(crate) token: Token,
    pub(crate) safe: bool,
    /// Whether the holder is gone and may not know.
    pub(crate) frozen: bool,
    /// Whether it was taken from its holder, who has not let it go yet.
    pub(crate) revoked: bool,
    pub(crate) label: Arc<str>,
}

/// One who wants it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Waiting {
    pub(crate) claim: Claim,
    pub(crate) hold: Hold,
    /// Whether it waits while someone uses it.
    pub(crate) wait: bool,
    pub(crate) safe: bool,
    pub(crate) priority: i32,
    pub(crate) label: Arc<str>,
}

impl Lock {
    /// Whether one more may hold it so.
    fn admits(&self, hold: Hold) -> bool {
        let alike = |g: &Grant| g.hold == hold;
        match hold {
            Hold::Exclusive => self.holders.is_empty(),
            Hold::Shared => self.holders.iter().all(alike),
            Hold::Permit { of } => {
                self.holders.iter().all(alike) && self.holders.len() < of as usize
            }
        }
    }

    /// The number of permits that those who hold or want it speak of.
    fn permits(&self) -> Option<u32> {
        let holds = self.holders.iter().map(|g| g.hold).chain(self.queue.iter().map(|w| w.hold));
        holds.into_iter().find_map(|hold| match hold {
            Hold::Permit { of } => Some(of),
            Hold::Exclusive | Hold::Shared => None,
        })
    }

    /// Whether its holder may have kept it without using it.
    fn may_be_kept(&self, key: &Key) -> bool {
        key.space == Space::Lock && self.holders.iter().all(|g| g.hold == Hold::Exclusive)
    }
}

impl Table {
    /// What is held or wanted under `key`.
    pub(crate) fn lock(&self, key: &Key) -> Option<&Lock> {
        self.locks.get(key)
    }

    /// Takes over what another table knows of one lock.
    pub(crate) fn borrow(&mut self, from: &Self, key: &Key) {
        if let Some(lock) = from.locks.get(key)
            && !self.locks.contains_key(key)
        {
            self.locks.insert(key.clone(), lock.clone());
        }
    }

    /// Everything that is held or wanted, in no order.
    pub(crate) fn locks(&self) -> impl Iterator<Item = (&Key, &Lock)> {
        self.locks.iter()
    }

    /// Members that are gone and may not know: their locks are frozen.
    pub(crate) fn frozen(&self) -> Vec<Member> {
        let grants = self.locks.values().flat_map(|lock| &lock.holders);
        let mut members: Vec<Member> =
            grants.filter(|g| g.frozen).map(|g| g.claim.member).collect();
        members.sort_unstable();
        members.dedup();
        members
    }

    pub(super) fn acquire(&mut self, key: Key, waiting: Waiting, out: &mut Vec<Outcome>) {
        let lock = self.locks.entry(key.clone()).or_default();
        let claim = waiting.claim;
        if let (Hold::Permit { of: asked }, Some(of)) = (waiting.hold, lock.permits())
            && of != asked
        {
            return out.push(Outcome::Refused { claim, key, why: Refusal::Permits { of } });
        }
        if lock.queue.is_empty() && lock.admits(waiting.hold) {
            return self.grant(&key, waiting, out);
        }
        // Whoever has kept it for nobody gives it back; whoever uses it says so.
        let may_be_had = lock.queue.is_empty() && lock.may_be_kept(&key);
        if !waiting.wait && !may_be_had {
            return out.push(Outcome::Refused { claim, key, why: Refusal::Busy });
        }
        let place = lock.queue.iter().position(|w| w.priority < waiting.priority);
        lock.queue.insert(place.unwrap_or(lock.queue.len()), waiting);
        out.push(Outcome::Wanted { key });
    }

    fn grant(&mut self, key: &Key, waiting: Waiting, out: &mut Vec<Outcome>) {
        let token = self.next_token();
        let Waiting { claim, hold, safe, label, .. } = waiting;
        let Some(lock) = self.locks.get_mut(key) else { return };
        let (frozen, revoked) = (false, false);
        lock.holders.push(Grant { claim, hold, token, safe, frozen, revoked, label });
        out.push(Outcome::Granted { claim, key: key.clone(), token });
        out.push(Outcome::Changed { key: key.clone() });
    }

    /// Serves those at the head of the queue who can have it.
    fn serve(&mut self, key: &Key, out: &mut Vec<Outcome>) {
        while let Some(lock) = self.locks.get_mut(key) {
            let admitted = lock.queue.front().is_some_and(|w| lock.admits(w.hold));
            let Some(next) = admitted.then(|| lock.queue.pop_front()).flatten() else { break };
            self.grant(key, next, out);
        }
        match self.locks.get(key) {
            Some(lock) if lock.holders.is_empty() && lock.queue.is_empty() => {
                self.locks.remove(key);
            }
            // Whoever holds it now has someone behind it, perhaps one who does not wait.
            Some(lock) if !lock.queue.is_empty() => out.push(Outcome::Wanted { key: key.clone() }),
            Some(_) | None => {}
        }
    }

    pub(super) fn release(&mut self, key: &Key, claim: Claim, out: &mut Vec<Outcome>) {
        self.drop_holders(key, |g| g.claim == claim, out);
    }

    fn drop_holders(&mut self, key: &Key, gone: impl Fn(&Grant) -> bool, out: &mut Vec<Outcome>) {
        let Some(lock) = self.locks.get_mut(key) else { return };
        let before = lock.holders.len();
        lock.holders.retain(|g| !gone(g));
        if lock.holders.len() < before {
            out.push(Outcome::Changed { key: key.clone() });
            self.serve(key, out);
        }
    }

    pub(super) fn pass(
        &mut self,
        key: &Key,
        from: Claim,
        to: Claim,
        token: Token,
        out: &mut Vec<Outcome>,
    ) {
        let Some(lock) = self.locks.get_mut(key) else { return };
        let Some(grant) = lock.holders.iter_mut().find(|g| g.claim == from) else { return };
        (grant.claim, grant.token) = (to, token);
        if grant.revoked {
            // It was taken from the one before: who has it now hears that, too.
            out.push(Outcome::Taken { claim: to, key: key.clone(), token });
        }
        let place = lock.queue.iter().position(|w| w.claim == to);
        if let Some(next) = place.and_then(|place| lock.queue.remove(place)) {
            (grant.safe, grant.label) = (next.safe, next.label);
        }
        out.push(Outcome::Changed { key: key.clone() });
        if !lock.queue.is_empty() {
            out.push(Outcome::Wanted { key: key.clone() });
        }
    }

    pub(super) fn cancel(&mut self, key: &Key, claim: Claim, out: &mut Vec<Outcome>) {
        let Some(lock) = self.locks.get_mut(key) else { return };
        let before = lock.queue.len();
        lock.queue.retain(|w| w.claim != claim);
        if lock.queue.len() < before {
            out.push(Outcome::Changed { key: key.clone() });
            // Whoever stood behind it may be next.
            self.serve(key, out);
        }
    }

    pub(super) fn deny(&mut self, key: &Key, claim: Claim, out: &mut Vec<Outcome>) {
        let waits = |lock: &Lock| lock.queue.iter().any(|w| w.claim == claim);
        if self.locks.get(key).is_some_and(waits) {
            self.cancel(key, claim, out);
            out.push(Outcome::Refused { claim, key: key.clone(), why: Refusal::Busy });
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
        let gone: Vec<Claim> = holders.iter().filter(|g| meant(g)).map(|g| g.claim).collect();
        for grant in holders.iter().filter(|g| gone.contains(&g.claim)) {
            let (claim, token) = (grant.claim, grant.token);
            out.push(Outcome::Taken { claim, key: key.clone(), token });
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

    pub(super) fn thaw(&mut self, member: Member, out: &mut Vec<Outcome>) {
        for key in self.keys_of(|claim| claim.member == member) {
            self.drop_holders(&key, |g| g.frozen && g.claim.member == member, out);
        }
    }

    /// What concerns these claims, by name.
    fn keys_of(&self, concerns: impl Fn(Claim) -> bool) -> Vec<Key> {
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
        let gone = |claim: Claim| !members.contains(&claim.member);
        // Who comes again in another life says nothing of what it began in the one before.
        let knows = |m: Member| left.contains(m.id);
        let mut frozen = Vec::new();
        for key in self.keys_of(gone) {
            let Some(lock) = self.locks.get_mut(&key) else { continue };
            lock.queue.retain(|w| !gone(w.claim));
            for grant in lock.holders.iter_mut().filter(|g| gone(g.claim)) {
                // What is frozen was an earlier life's: a later one that leaves says nothing of it.
                grant.frozen |= grant.safe && !knows(grant.claim.member);
                if grant.frozen {
                    frozen.push(grant.claim.member);
                }
            }
            let before = lock.holders.len();
            lock.holders.retain(|g| !gone(g.claim) || g.frozen);
            if lock.holders.len() < before {
                out.push(Outcome::Changed { key: key.clone() });
            }
            self.serve(&key, out);
        }
        frozen.sort_unstable();
        frozen.dedup();
        out.extend(frozen.into_iter().map(|member| Outcome::Frozen { member }));
    }
}

#[cfg(test)]
mod tests;
