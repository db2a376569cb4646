//! Revocation by an operator. The holder of a revoked grant keeps it for the promised time, then the node
//! releases it.

use std::time::Duration;

use tokio::sync::oneshot;

use super::{Core, LocalClaims, LocalGrant};
use crate::builder::held_for;
use crate::error::Error;
use crate::status::Loss;
use crate::table::{ClaimId, Key, Op};
use crate::token::Token;

impl LocalClaims {
    /// When the next revoked grant is released without its holder.
    pub(in crate::core) fn first_revoked_due(&self) -> Option<Duration> {
        self.revoked.values().map(|(due, _)| *due).min()
    }

    /// Whether a grant was revoked and its holder has not released it yet.
    pub(in crate::core) fn is_revoked(&self, number: u64) -> bool {
        self.revoked.contains_key(&number)
    }

    pub(in crate::core) fn expect_revocation(
        &mut self,
        number: u64,
        key: Key,
        reply: oneshot::Sender<Result<(), Error>>,
    ) {
        self.revoking.insert(number, (key, reply));
    }

    /// Answers the operator: `held` says whether there was a grant to revoke; `None` if that is unknown.
    pub(in crate::core) fn end_revocation(&mut self, number: u64, held: Option<bool>) {
        if let Some((key, reply)) = self.revoking.remove(&number) {
            let name = key.name.to_string();
            let _ = reply.send(match held {
                Some(true) => Ok(()),
                Some(false) => Err(Error::NotHeld(name)),
                None => Err(Error::Lost(name)),
            });
        }
    }
}

impl Core {
    /// Revokes the grants of a lock, semaphore or campaign; with a token, only that grant.
    pub(crate) fn revoke(
        &mut self,
        key: Key,
        token: Option<Token>,
        reply: oneshot::Sender<Result<(), Error>>,
    ) {
        if !self.is_member() || self.leaving {
            let gone = self.left || self.leaving;
            let missing = || Error::NoGroup(self.what_is_missing());
            let _ = reply.send(Err(if gone { Error::Left } else { missing() }));
            return;
        }
        if self.lifts(&key) {
            return self.revoke_lifted(key, token, reply);
        }
        let number = self.claims.next_number();
        let claim = ClaimId { member: self.own_member(), session: 0, number };
        self.claims.expect_revocation(number, key.clone(), reply);
        self.submit(Op::Revoke { claim, key, token });
        self.pump();
    }

    pub(in crate::core) fn on_revoke_done(&mut self, claim: ClaimId, held: bool) {
        if claim.member != self.own_member() {
            return;
        }
        self.claims.end_revocation(claim.number, Some(held));
    }

    pub(in crate::core) fn end_revocations(&mut self) {
        let numbers: Vec<u64> = self.claims.revoking.keys().copied().collect();
        numbers.into_iter().for_each(|number| self.claims.end_revocation(number, None));
    }

    /// The table reports that a grant was revoked.
    pub(in crate::core) fn on_grant_revoked(&mut self, claim: ClaimId, key: &Key) {
        if claim.member != self.own_member() {
            return;
        }
        // An idle lock is released at once. A lock in use is released by its user, who may have got it from
        // the revoked holder without a message.
        if let Some(cached) = self.claims.remove_cached(key)
            && cached.user.is_none()
        {
            self.submit(Op::Release { claim: cached.claim, key: key.clone() });
        }
        // The table knows a held-back grant by the number of its request.
        let undelivered = self.claims.cancel_undelivered(claim.number);
        let mut numbers: Vec<u64> =
            self.claims.held.iter().filter(|(_, h)| h.claim == claim).map(|(n, _)| *n).collect();
        numbers.sort_unstable();
        if undelivered {
            // The session never learned of the grant. The release precedes the new request, which has the
            // same claim; so the grant is withdrawn above, and a second revocation finds nothing to release.
            self.submit(Op::Release { claim, key: key.clone() });
        }
        let safe = self.table.lock(key).is_some_and(|lock| {
            lock.holders.iter().any(|grant| grant.claim == claim && grant.safe)
        });
        for number in numbers {
            self.revoke_local_grant(number);
            if !safe {
                // `Handover::Fast` does not promise the holder any time.
                self.release_revoked(number);
            }
        }
        if undelivered {
            self.ask(claim.number);
        }
    }

    /// Tells the local holder that its grant is revoked, and gives it the promised time to release it.
    pub(in crate::core) fn revoke_local_grant(&mut self, number: u64) {
        if let Some(held) = self.lose(number, Loss::Revoked) {
            let due = self.now + held_for(held.lease);
            self.claims.revoked.insert(number, (due, held));
        }
    }

    /// Releases a revoked grant: its holder did so, or its time is over.
    pub(super) fn release_revoked(&mut self, number: u64) -> bool {
        let Some((_, held)) = self.claims.revoked.remove(&number) else { return false };
        if self.lifts(&held.key) {
            self.release_lifted(number, &held.key.name, true);
        } else {
            self.submit(Op::Release { claim: held.claim, key: held.key });
        }
        self.pump();
        true
    }

    pub(in crate::core) fn expire_revoked(&mut self) {
        let due = |(n, (due, _)): (&u64, &(Duration, LocalGrant))| (*due <= self.now).then_some(*n);
        let due: Vec<u64> = self.claims.revoked.iter().filter_map(due).collect();
        due.into_iter().for_each(|number| _ = self.release_revoked(number));
    }
}
