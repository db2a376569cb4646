//! Leases: how long the grants of an excluded member stay fenced, and how long its application relies on them.

use std::collections::BTreeSet;
use std::time::Duration;

use konklave_process::Context;

use super::{LockTable, Member, Op, Timer};

impl LockTable {
    /// Whether grants are lease-safe, and their lease in milliseconds.
    pub(super) fn safety(&self) -> (bool, u32) {
        let lease = self.settings.lease.map(|lease| u32::try_from(lease.as_millis()));
        (lease.is_some(), lease.map_or(0, |millis| millis.unwrap_or(u32::MAX)))
    }

    /// The others may install a view without this process soon. Its locks are fenced there for a lease, so its
    /// application gives them up in less: each clock may differ by up to a tenth.
    pub(super) fn start_lapse(&self, ctx: &mut Context<'_, Self>) {
        if let Some(lease) = self.settings.lease {
            ctx.set_timer(Timer::Lapse, lease * 8 / 10);
        }
    }

    pub(super) fn stop_lapse(&self, ctx: &mut Context<'_, Self>) {
        if self.settings.lease.is_some() {
            ctx.cancel_timer(Timer::Lapse);
        }
    }

    /// A view begins: the leader measures the time of fenced grants and of sessions. A new leader does not
    /// know when they were last renewed, so it waits their full time. If a leader that goes on did so, too,
    /// no lease would run out where views follow each other fast; so it keeps the old timers.
    pub(super) fn watch(&mut self, ctx: &mut Context<'_, Self>) {
        let leads = self.leads(ctx.me());
        let fenced = if leads { self.table.fenced() } else { Vec::new() };
        let timers = std::mem::take(&mut self.expiries).into_iter();
        let (kept, over): (BTreeSet<_>, BTreeSet<_>) =
            timers.partition(|fence| fenced.contains(fence));
        self.expiries = kept;
        for (member, lease) in over {
            ctx.cancel_timer(Timer::LeaseExpired(member, lease));
        }
        for (member, lease) in fenced {
            if self.expiries.insert((member, lease)) {
                let after = Duration::from_millis(lease.into());
                ctx.set_timer(Timer::LeaseExpired(member, lease), after);
            }
        }
        if !std::mem::replace(&mut self.watching, leads) {
            self.sessions().map(|(s, _)| *s).for_each(|session| self.arm(session, ctx));
        }
    }

    pub(super) fn on_expiry(&mut self, member: Member, lease: u32) {
        // If a view change drops the proposal, the next view has the grants still fenced.
        if self.expiries.remove(&(member, lease)) {
            self.submit(Op::LeaseExpired { member, lease });
        }
    }
}
