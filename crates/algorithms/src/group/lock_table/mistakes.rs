//! The mistake switches: each leaves out a rule. The table itself makes no mistake, since it is the one that the
//! library's node applies. So a mistake changes an operation on its way to the table.

use konklave_process::{Context, ProcessSet};

use super::sheet::{
    ADOPT_ANY, ANY_EXPIRY, ANY_TOKEN, BARE_TOKEN, FREE_REVOKED, KEPT_CANCELLED, MIXED_MODES,
    NO_MEMORY, NO_WAIT, PASSED_TOKEN, SPARE_PERMIT, TRY_REFUSED,
};
use super::{LockTable, Op, Outcome};
use crate::Mistake;
use crate::group::ViewId;
use crate::group::table::{ClaimId, Key, LockMode, Refusal};

impl LockTable {
    fn makes(&self, mistake: &Mistake) -> bool {
        self.settings.mistake == Some(mistake.name)
    }

    /// The name of the view whose tokens are given.
    pub(super) fn named(&self, view: ViewId) -> ViewId {
        if self.makes(&BARE_TOKEN) { ViewId::default() } else { view }
    }

    /// The members whose grants are released at once when a view without them begins.
    pub(super) fn departed_in_order(
        &self,
        left: &ProcessSet,
        ctx: &Context<'_, Self>,
    ) -> ProcessSet {
        let all = || ctx.group().members().iter().copied().collect();
        if self.makes(&NO_WAIT) { all() } else { left.clone() }
    }

    /// Whether an expired session ends although it gave another sign of life.
    pub(super) fn expires_any(&self) -> bool {
        self.makes(&ANY_EXPIRY)
    }

    /// Whether a client's repeated request is taken for a new one.
    pub(super) fn has_no_memory(&self) -> bool {
        self.makes(&NO_MEMORY)
    }

    /// Whether a grant that the application has cancelled is not released.
    pub(super) fn keeps_cancelled(&self) -> bool {
        self.makes(&KEPT_CANCELLED)
    }

    /// Whether a lock that is passed on keeps its token.
    pub(super) fn keeps_token(&self) -> bool {
        self.makes(&PASSED_TOKEN)
    }

    /// The operations that the table applies instead of `op`: `op` alone, except with a mistake.
    pub(super) fn distort(&self, mut op: Op, out: &mut Vec<Outcome>) -> Vec<Op> {
        match &mut op {
            Op::Release { claim, key } if self.makes(&ANY_TOKEN) => {
                let session = |c: ClaimId| (c.member, c.session);
                return self.releases(key, |c| session(c) == session(*claim));
            }
            Op::LeaseExpired { member, .. } if self.makes(&ANY_EXPIRY) => {
                let keys = self.table.locks().map(|(key, _)| key);
                let held = keys.flat_map(|key| self.releases(key, |c| c.member.id == member.id));
                return held.collect();
            }
            Op::Revoke { key, .. } if self.makes(&FREE_REVOKED) => {
                let released = self.releases(key, |_| true);
                return [op].into_iter().chain(released).collect();
            }
            Op::Adopt { claim, key, token } if self.makes(&ADOPT_ANY) => {
                out.push(Outcome::Granted { claim: *claim, key: key.clone(), token: *token });
                return Vec::new();
            }
            Op::Acquire { claim, key, wait: false, .. } if self.makes(&TRY_REFUSED) => {
                let (claim, key, why) = (*claim, key.clone(), Refusal::Busy);
                out.push(Outcome::Refused { claim, key, why });
                return Vec::new();
            }
            Op::Acquire { mode: LockMode::Permit { of }, .. } if self.makes(&SPARE_PERMIT) => {
                *of += 1;
            }
            Op::Acquire { mode, key, .. } if self.makes(&MIXED_MODES) => {
                let lock = self.table.lock(key);
                let modes = lock.into_iter().flat_map(|l| l.holders.iter().map(|g| g.mode));
                *mode = modes.last().unwrap_or(*mode);
            }
            _ => {}
        }
        vec![op]
    }

    /// Releases of the grants under `key` with these claims.
    fn releases(&self, key: &Key, of: impl Fn(ClaimId) -> bool) -> Vec<Op> {
        let lock = self.table.lock(key).into_iter();
        let claims = lock.flat_map(|lock| lock.holders.iter().map(|grant| grant.claim));
        let release = |claim| Op::Release { claim, key: key.clone() };
        claims.filter(|claim| of(*claim)).map(release).collect()
    }
}
