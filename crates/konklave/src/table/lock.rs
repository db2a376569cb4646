//! One lock: who holds it, and who waits for it.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Claim, Hold, Key, Op, Outcome, Refusal, Space, Tokens};
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

    /// Carries out an operation on this lock.
    pub(crate) fn apply(&mut self, op: &Op, tokens: &mut Tokens, out: &mut Vec<Outcome>) {
        match *op {
            Op::Acquire { claim, ref key, hold, wait, safe, priority, ref label } => {
                let label = label.clone();
                let waiting = Waiting { claim, hold, wait, safe, priority, label };
                self.acquire(key, waiting, tokens, out);
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
        waiting: Waiting,
        tokens: &mut Tokens,
        out: &mut Vec<Outcome>,
    ) {
        let claim = waiting.claim;
        if let (Hold::Permit { of: asked }, Some(of)) = (waiting.hold, self.permits())
            && of != asked
        {
            let (key, why) = (key.clone(), Refusal::Permits { of });
            return out.push(Outcome::Refused { claim, key, why });
        }
        if self.queue.is_empty() && self.admits(waiting.hold) {
            return self.grant(key, waiting, tokens, out);
        }
        // Whoever has kept it for nobody gives it back; whoever uses it says so.
        let may_be_had = self.queue.is_empty() && self.may_be_kept(key);
        if !waiting.wait && !may_be_had {
            let (key, why) = (key.clone(), Refusal::Busy);
            return out.push(Outcome::Refused { claim, key, why });
        }
        let place = self.queue.iter().position(|w| w.priority < waiting.priority);
        self.queue.insert(place.unwrap_or(self.queue.len()), waiting);
        tell_wanted(key, out);
    }

    /// Those who are `gone` hold it no more.
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
        (from, to): (Claim, Claim),
        token: Token,
        out: &mut Vec<Outcome>,
    ) {
        let Some(grant) = self.holders.iter_mut().find(|g| g.claim == from) else { return };
        (grant.claim, grant.token) = (to, token);
        if grant.revoked {
            // It was taken from the one before: who has it now hears that, too.
            out.push(Outcome::Taken { claim: to, key: key.clone(), token });
        }
        let place = self.queue.iter().position(|w| w.claim == to);
        if let Some(next) = place.and_then(|place| self.queue.remove(place)) {
            (grant.safe, grant.label) = (next.safe, next.label);
        }
        tell_changed(key, out);
        if !self.queue.is_empty() {
            tell_wanted(key, out);
        }
    }

    /// This one waits no more: whether it did.
    fn cancel(
        &mut self,
        key: &Key,
        claim: Claim,
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
    fn deny(&mut self, key: &Key, claim: Claim, tokens: &mut Tokens, out: &mut Vec<Outcome>) {
        if self.cancel(key, claim, tokens, out) {
            out.push(Outcome::Refused { claim, key: key.clone(), why: Refusal::Busy });
        }
    }

    pub(super) fn is_free(&self) -> bool {
        self.holders.is_empty() && self.queue.is_empty()
    }

    fn grant(&mut self, key: &Key, waiting: Waiting, tokens: &mut Tokens, out: &mut Vec<Outcome>) {
        let token = tokens.next();
        let Waiting { claim, hold, safe, label, .. } = waiting;
        let (frozen, revoked) = (false, false);
        self.holders.push(Grant { claim, hold, token, safe, frozen, revoked, label });
        out.push(Outcome::Granted { claim, key: key.clone(), token });
        tell_changed(key, out);
    }

    /// Serves those at the head of the queue who can have it.
    pub(super) fn serve(&mut self, key: &Key, tokens: &mut Tokens, out: &mut Vec<Outcome>) {
        while self.queue.front().is_some_and(|w| self.admits(w.hold))
            && let Some(next) = self.queue.pop_front()
        {
            self.grant(key, next, tokens, out);
        }
        if !self.queue.is_empty() {
            // Whoever holds it now has someone behind it, perhaps one who does not wait.
            tell_wanted(key, out);
        }
    }

    /// Whether its holder may have kept it without using it.
    fn may_be_kept(&self, key: &Key) -> bool {
        key.space == Space::Lock && self.holders.iter().all(|g| g.hold == Hold::Exclusive)
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
fn tell_wanted(key: &Key, out: &mut Vec<Outcome>) {
    if !lately(out).any(|told| matches!(told, Outcome::Wanted { key: k } if k == key)) {
        out.push(Outcome::Wanted { key: key.clone() });
    }
}

/// What was told since something happened to someone. Several operations are carried out before anyone acts on
/// what became of them: to be told the same twice in a row is as good as once.
fn lately(out: &[Outcome]) -> impl Iterator<Item = &Outcome> {
    let of_nobody =
        |told: &&Outcome| matches!(told, Outcome::Changed { .. } | Outcome::Wanted { .. });
    out.iter().rev().take(LOOKED_BACK).take_while(of_nobody)
}
