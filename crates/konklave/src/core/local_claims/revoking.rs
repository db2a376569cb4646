//! What an operator takes from its holder, who has as long as it was promised to let it go.

use std::time::Duration;

use tokio::sync::oneshot;

use super::{Core, LocalClaims, LocalGrant};
use crate::error::Error;
use crate::status::Loss;
use crate::table::{ClaimId, Key, Op};
use crate::token::Token;

impl LocalClaims {
    /// When the first must have let go of what was revoked from it.
    pub(in crate::core) fn first_revoked_due(&self) -> Option<Duration> {
        self.revoked.values().map(|(due, _)| *due).min()
    }

    /// Whether it was revoked from who had it, who has not let it go yet.
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

    /// Whether it was held; none: nobody can tell any more.
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
    /// An operator takes something from whoever holds it.
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

    /// An operator took it.
    pub(in crate::core) fn on_grant_revoked(&mut self, claim: ClaimId, key: &Key) {
        if claim.member != self.own_member() {
            return;
        }
        // Nobody here has it, though the last who did may just have passed it on: it goes back. Who has it lets
        // it go itself.
        if let Some(cached) = self.claims.cached.remove(key)
            && cached.user.is_none()
        {
            self.submit(Op::Release { claim: cached.claim, key: key.clone() });
        }
        // What waits to be told is known to the table by the number of the request.
        let undelivered = self.claims.cancel_undelivered(claim.number);
        let mut numbers: Vec<u64> =
            self.claims.held.iter().filter(|(_, h)| h.claim == claim).map(|(n, _)| *n).collect();
        numbers.sort_unstable();
        if undelivered {
            // Nobody has been told. Once: it is asked for again by the same claim.
            self.submit(Op::Release { claim, key: key.clone() });
        }
        let safe = self.table.lock(key).is_some_and(|lock| {
            lock.holders.iter().any(|grant| grant.claim == claim && grant.safe)
        });
        for number in numbers {
            self.revoke_local_grant(number);
            if !safe {
                // Nobody was promised that the next one waits.
                self.release_revoked(number);
            }
        }
        if undelivered {
            self.ask(claim.number);
        }
    }

    /// Who here has it is told that it has lost it, and gets as long as it was promised to let it go.
    pub(in crate::core) fn revoke_local_grant(&mut self, number: u64) {
        let due = self.now + self.config.timings.held_for();
        if let Some(held) = self.lose(number, Loss::Revoked) {
            self.claims.revoked.insert(number, (due, held));
        }
    }

    /// Who here had it revoked away has let it go, or must have.
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
