//! One lock: who modes it, and who waits for it.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{ClaimId, Key, LockMode, Op, Outcome, Refusal, Space, Tokens};
use crate::token::Token;

/// Something held or wanted.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Lock {
    pub(crate) holders: Vec<Grant>,
    /// Who is served next is first.
    pub(crate) queue: VecDeque<QueuedRequest>,
}

/// One who modes it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Grant {
    pub(crate) claim: ClaimId,
    pub(crate) mode: LockMode,
    pub(crate) token: Token,
    pub(crate) safe: bool,
    /// Whether the holder is gone and may not know.
    pub(crate) fenced: bool,
    /// Whether it was taken from its holder, who has not let it go yet.
    pub(crate) revoked: bool,
    pub(crate) label: Arc<str>,
}

/// One who wants it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct QueuedRequest {
    pub(crate) claim: ClaimId,
    pub(crate) mode: LockMode,
    /// Whether it waits while someone uses it.
    pub(crate) wait: bool,
    pub(crate) safe: bool,
    pub(crate) priority: i32,
    pub(crate) label: Arc<str>,
}

impl Lock {
    /// Whether one more may mode it so.
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

    /// The number of permits that those who mode or want it speak of.
    fn permits(&self) -> Option<u32> {
        let modes = self.holders.iter().map(|g| g.mode).chain(self.queue.iter().map(|w| w.mode));
        modes.into_iter().find_map(|mode| match mode {
            LockMode::Permit { of } => Some(of),
            LockMode::Exclusive | LockMode::Shared => None,
        })
    }

    /// Carries out an operation on this lock.
    pub(crate) fn apply(&mut self, op: &Op, tokens: &mut Tokens, out: &mut Vec<Outcome>) {
        match *op {
            Op::Acquire { claim, ref key, mode, wait, safe, priority, ref label } => {
                let label = label.clone();
                let request = QueuedRequest { claim, mode, wait, safe, priority, label };
                self.acquire(key, request, tokens, out);
            }
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
        // Whoever has kept it for nobody gives it back; whoever uses it says so.
        let may_be_had = self.queue.is_empty() && self.may_be_kept(key);
        if !request.wait && !may_be_had {
            let (key, why) = (key.clone(), Refusal::Busy);
            return out.push(Outcome::Refused { claim, key, why });
        }
        let place = self.queue.iter().position(|w| w.priority < request.priority);
        self.queue.insert(place.unwrap_or(self.queue.len()), request);
        tell_contended(key, out);
    }

    /// Those who are `gone` mode it no more.
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
            tell_changed(key, out);
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
            // It was taken from the one before: who has it now hears that, too.
            out.push(Outcome::GrantRevoked { claim: to, key: key.clone(), token });
        }
        let place = self.queue.iter().position(|w| w.claim == to);
        if let Some(next) = place.and_then(|place| self.queue.remove(place)) {
            (grant.safe, grant.label) = (next.safe, next.label);
        }
        tell_changed(key, out);
        if !self.queue.is_empty() {
            tell_contended(key, out);
        }
    }

    /// This one waits no more: whether it did.
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
            tell_changed(key, out);
            // Whoever stood behind it may be next.
            self.serve(key, tokens, out);
        }
        waited
    }

    /// The holder uses it, and this one does not wait for that.
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
        let QueuedRequest { claim, mode, safe, label, .. } = request;
        let (fenced, revoked) = (false, false);
        self.holders.push(Grant { claim, mode, token, safe, fenced, revoked, label });
        out.push(Outcome::Granted { claim, key: key.clone(), token });
        tell_changed(key, out);
    }

    /// Serves those at the head of the queue who can have it.
    pub(super) fn serve(&mut self, key: &Key, tokens: &mut Tokens, out: &mut Vec<Outcome>) {
        while self.queue.front().is_some_and(|w| self.admits(w.mode))
            && let Some(next) = self.queue.pop_front()
        {
            self.grant(key, next, tokens, out);
        }
        if !self.queue.is_empty() {
            // Whoever modes it now has someone behind it, perhaps one who does not wait.
            tell_contended(key, out);
        }
    }

    /// Whether its holder may have kept it without using it.
    fn may_be_kept(&self, key: &Key) -> bool {
        key.space == Space::Lock && self.holders.iter().all(|g| g.mode == LockMode::Exclusive)
    }
}

/// How far back is looked whether the same was told.
const LOOKED_BACK: usize = 8;

/// Holders or their order changed.
pub(super) fn tell_changed(key: &Key, out: &mut Vec<Outcome>) {
    if !lately(out).any(|told| matches!(told, Outcome::Changed { key: k } if k == key)) {
        out.push(Outcome::Changed { key: key.clone() });
    }
}

/// Someone waits behind a holder.
fn tell_contended(key: &Key, out: &mut Vec<Outcome>) {
    if !lately(out).any(|told| matches!(told, Outcome::Contended { key: k } if k == key)) {
        out.push(Outcome::Contended { key: key.clone() });
    }
}

/// What was told since something happened to someone. Several operations are carried out before anyone acts on
/// what became of them: to be told the same twice in a row is as good as once.
fn lately(out: &[Outcome]) -> impl Iterator<Item = &Outcome> {
    let of_nobody =
        |told: &&Outcome| matches!(told, Outcome::Changed { .. } | Outcome::Contended { .. });
    out.iter().rev().take(LOOKED_BACK).take_while(of_nobody)
}
