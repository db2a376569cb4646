//! One lock, semaphore or campaign: its holders and its queue.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{ClaimId, Key, LockMode, Op, Outcome, Refusal, Space, Tokens};
use crate::group::Token;

/// The state of a lock, semaphore or campaign.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Lock {
    /// The holders: one, or several that share the lock.
    pub holders: Vec<Grant>,
    /// The next request is first.
    pub queue: VecDeque<QueuedRequest>,
}

/// A holder's grant.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Grant {
    /// The claim that holds it.
    pub claim: ClaimId,
    /// How it is held.
    pub mode: LockMode,
    /// Its fencing token.
    pub token: Token,
    /// Whether it is fenced for its lease if its holder falls silent.
    pub safe: bool,
    /// Its lease in milliseconds.
    pub lease: u32,
    /// Whether the holder is excluded and its lease may not have expired.
    pub fenced: bool,
    /// Whether the grant is revoked and not released yet.
    pub revoked: bool,
    /// For people.
    pub label: Arc<str>,
}

/// A queued request.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct QueuedRequest {
    /// The claim that waits.
    pub claim: ClaimId,
    /// How it wants the lock.
    pub mode: LockMode,
    /// Whether it waits while a session uses the lock.
    pub wait: bool,
    /// Whether the grant will be lease-safe.
    pub safe: bool,
    /// The lease of the grant, in milliseconds.
    pub lease: u32,
    /// Higher priorities are served first.
    pub priority: i32,
    /// For people.
    pub label: Arc<str>,
}

impl Lock {
    /// Whether the present holders admit one more in this mode.
    fn admits(&self, mode: LockMode) -> bool {
        let alike = |g: &Grant| g.mode == mode;
        match mode {
            LockMode::Exclusive => self.holders.is_empty(),
            LockMode::Shared => self.holders.iter().all(alike),
            LockMode::Permit { of } => {
                self.holders.iter().all(alike) && self.holders.len() < of as usize
            }
        }
    }

    /// The number of permits, according to the holders and waiters.
    fn permits(&self) -> Option<u32> {
        let modes = self.holders.iter().map(|g| g.mode).chain(self.queue.iter().map(|w| w.mode));
        modes.into_iter().find_map(|mode| match mode {
            LockMode::Permit { of } => Some(of),
            LockMode::Exclusive | LockMode::Shared => None,
        })
    }

    /// Applies an operation on this lock.
    pub fn apply(&mut self, op: &Op, tokens: &mut Tokens, out: &mut Vec<Outcome>) {
        match *op {
            Op::Acquire { claim, ref key, mode, wait, safe, lease, priority, ref label } => {
                let label = label.clone();
                let request = QueuedRequest { claim, mode, wait, safe, lease, priority, label };
                self.acquire(key, request, tokens, out);
            }
            Op::Adopt { claim, ref key, token } => self.adopt(key, claim, token, out),
            Op::Release { claim, ref key } => {
                self.drop_holders(key, |g| g.claim == claim, tokens, out);
            }
            Op::Pass { ref key, from, to, token } => self.pass(key, (from, to), token, out),
            Op::Cancel { claim, ref key } => _ = self.cancel(key, claim, tokens, out),
            Op::Deny { claim, ref key } => self.deny(key, claim, tokens, out),
            _ => {}
        }
    }

    fn acquire(
        &mut self,
        key: &Key,
        request: QueuedRequest,
        tokens: &mut Tokens,
        out: &mut Vec<Outcome>,
    ) {
        let claim = request.claim;
        if let (LockMode::Permit { of: asked }, Some(of)) = (request.mode, self.permits())
            && of != asked
        {
            let (key, why) = (key.clone(), Refusal::Permits { of });
            return out.push(Outcome::Refused { claim, key, why });
        }
        if self.queue.is_empty() && self.admits(request.mode) {
            return self.grant(key, request, tokens, out);
        }
        // The holder's node may only have it cached: then it releases the lock. If a session uses it, the
        // node denies the request.
        let may_be_released = self.queue.is_empty() && self.may_be_cached(key);
        if !request.wait && !may_be_released {
            let (key, why) = (key.clone(), Refusal::Busy);
            return out.push(Outcome::Refused { claim, key, why });
        }
        let position = self.queue.iter().position(|w| w.priority < request.priority);
        self.queue.insert(position.unwrap_or(self.queue.len()), request);
        report_contended(key, out);
    }

    /// Releases the grants that are `gone`, and serves the queue.
    pub(super) fn drop_holders(
        &mut self,
        key: &Key,
        gone: impl Fn(&Grant) -> bool,
        tokens: &mut Tokens,
        out: &mut Vec<Outcome>,
    ) {
        let before = self.holders.len();
        self.holders.retain(|g| !gone(g));
        if self.holders.len() < before {
            report_changed(key, out);
            self.serve(key, tokens, out);
        }
    }

    fn pass(
        &mut self,
        key: &Key,
        (from, to): (ClaimId, ClaimId),
        token: Token,
        out: &mut Vec<Outcome>,
    ) {
        let Some(grant) = self.holders.iter_mut().find(|g| g.claim == from) else { return };
        (grant.claim, grant.token) = (to, token);
        if grant.revoked {
            // The grant was revoked from the claim before: the new holder learns that.
            out.push(Outcome::GrantRevoked { claim: to, key: key.clone(), token });
        }
        let position = self.queue.iter().position(|w| w.claim == to);
        if let Some(next) = position.and_then(|position| self.queue.remove(position)) {
            (grant.safe, grant.lease, grant.label) = (next.safe, next.lease, next.label);
        }
        report_changed(key, out);
        if !self.queue.is_empty() {
            report_contended(key, out);
        }
    }

    /// A restarted process takes over a grant of its earlier incarnation. It stays the same grant, with the same
    /// token: nobody else has had the lock in between, because it was fenced.
    fn adopt(&mut self, key: &Key, claim: ClaimId, token: Token, out: &mut Vec<Outcome>) {
        let matches = |g: &&mut Grant| {
            g.fenced && g.claim.member.id == claim.member.id && token.derives_from(g.token)
        };
        let Some(grant) = self.holders.iter_mut().find(matches) else {
            return out.push(Outcome::Refused { claim, key: key.clone(), why: Refusal::Gone });
        };
        (grant.claim, grant.token, grant.fenced) = (claim, token, false);
        let revoked = grant.revoked;
        out.push(Outcome::Granted { claim, key: key.clone(), token });
        if revoked {
            // An operator revoked it before the restart: its holder may not know.
            out.push(Outcome::GrantRevoked { claim, key: key.clone(), token });
        }
        report_changed(key, out);
        if !self.queue.is_empty() {
            report_contended(key, out);
        }
    }

    /// Withdraws a queued request; returns whether it was queued.
    fn cancel(
        &mut self,
        key: &Key,
        claim: ClaimId,
        tokens: &mut Tokens,
        out: &mut Vec<Outcome>,
    ) -> bool {
        let before = self.queue.len();
        self.queue.retain(|w| w.claim != claim);
        let waited = self.queue.len() < before;
        if waited {
            report_changed(key, out);
            // The request behind it may be served now.
            self.serve(key, tokens, out);
        }
        waited
    }

    /// A session uses the lock, and this request does not wait.
    fn deny(&mut self, key: &Key, claim: ClaimId, tokens: &mut Tokens, out: &mut Vec<Outcome>) {
        if self.cancel(key, claim, tokens, out) {
            out.push(Outcome::Refused { claim, key: key.clone(), why: Refusal::Busy });
        }
    }

    pub(super) fn is_free(&self) -> bool {
        self.holders.is_empty() && self.queue.is_empty()
    }

    fn grant(
        &mut self,
        key: &Key,
        request: QueuedRequest,
        tokens: &mut Tokens,
        out: &mut Vec<Outcome>,
    ) {
        let token = tokens.next();
        let QueuedRequest { claim, mode, safe, lease, label, .. } = request;
        let (fenced, revoked) = (false, false);
        self.holders.push(Grant { claim, mode, token, safe, lease, fenced, revoked, label });
        out.push(Outcome::Granted { claim, key: key.clone(), token });
        report_changed(key, out);
    }

    /// Grants the lock to the requests at the head of the queue that it admits.
    pub(super) fn serve(&mut self, key: &Key, tokens: &mut Tokens, out: &mut Vec<Outcome>) {
        while self.queue.front().is_some_and(|w| self.admits(w.mode))
            && let Some(next) = self.queue.pop_front()
        {
            self.grant(key, next, tokens, out);
        }
        if !self.queue.is_empty() {
            // The new holder's node must know of the queue: the next request may be one that does not wait.
            report_contended(key, out);
        }
    }

    /// Whether the holder's node may have it cached, unused.
    fn may_be_cached(&self, key: &Key) -> bool {
        key.space == Space::Lock && self.holders.iter().all(|g| g.mode == LockMode::Exclusive)
    }
}

/// How many outcomes to search for a repetition.
const MERGE_DEPTH: usize = 8;

/// Reports that the holders or their order have changed.
pub(super) fn report_changed(key: &Key, out: &mut Vec<Outcome>) {
    if !mergeable(out).any(|outcome| matches!(outcome, Outcome::Changed { key: k } if k == key)) {
        out.push(Outcome::Changed { key: key.clone() });
    }
}

/// Reports that a request is queued behind a holder.
fn report_contended(key: &Key, out: &mut Vec<Outcome>) {
    if !mergeable(out).any(|outcome| matches!(outcome, Outcome::Contended { key: k } if k == key)) {
        out.push(Outcome::Contended { key: key.clone() });
    }
}

/// The outcomes since the last one that concerns a claim. Several operations are applied before anyone acts
/// on their outcomes, so a repetition of these would have no effect.
fn mergeable(out: &[Outcome]) -> impl Iterator<Item = &Outcome> {
    let of_nobody =
        |outcome: &&Outcome| matches!(outcome, Outcome::Changed { .. } | Outcome::Contended { .. });
    out.iter().rev().take(MERGE_DEPTH).take_while(of_nobody)
}
