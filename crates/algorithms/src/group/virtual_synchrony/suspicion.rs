//! Suspicions: heartbeats find silent processes, and members report the processes that they suspect.

use konklave_process::{Context, ProcessId, ProcessSet};

use super::{Membership, Message, Timer, VirtualSynchrony};
use crate::group::Data;

impl<C: Data> VirtualSynchrony<C> {
    pub(super) fn start_heartbeat(&mut self, ctx: &mut Context<'_, Self>) {
        if let Some(period) = self.settings.heartbeat {
            ctx.set_timer(Timer::Heartbeat, period);
        }
    }

    /// Sends a heartbeat to every process of the view, and suspects the silent ones.
    pub(super) fn on_heartbeat_timer(&mut self, ctx: &mut Context<'_, Self>) {
        self.start_heartbeat(ctx);
        if self.membership != Membership::Inside {
            return;
        }
        let (view, held) = (self.view.id, self.ordering.end());
        for to in self.view.others(ctx.me()) {
            let suspects = self.suspects.clone();
            ctx.send(to, Message::Heartbeat { view, held, suspects });
            let silent = self.silent_periods.entry(to).or_insert(0);
            *silent += 1;
            if *silent > self.settings.misses && !self.suspects.contains(to) {
                self.suspect(to, ctx);
            }
        }
        self.resend_unplaced(ctx);
        self.resend_state(ctx);
        self.repeat_announcements(ctx);
    }

    pub(super) fn suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.suspects.insert(peer);
        if self.membership != Membership::Inside {
            return;
        }
        // An attempt that waits for the promise of `peer` may be complete without it.
        self.try_propose(ctx);
        self.consider_view_change(ctx);
        if self.view.find(peer).is_some() && !self.change.wedged {
            self.report(ctx);
        }
    }

    /// Tells the candidate which processes we suspect. Their messages may still reach the candidate.
    pub(super) fn report(&mut self, ctx: &mut Context<'_, Self>) {
        if let Some(candidate) = self.candidate().filter(|c| *c != ctx.me()) {
            let (view, suspects) = (self.view.id, self.suspects.clone());
            ctx.send(candidate, Message::Suspect { view, suspects });
        }
    }

    pub(super) fn on_suspicion(
        &mut self,
        from: ProcessId,
        of: ProcessSet,
        ctx: &mut Context<'_, Self>,
    ) {
        let everyone: ProcessSet = self.view.everyone().map(|m| m.id).collect();
        let of = of.intersection(&everyone);
        if of.is_empty() {
            self.reports.remove(&from);
            return;
        }
        if of.contains(from) {
            // A later incarnation of `from` reports that the one in our view is over.
            return self.suspect(from, ctx);
        }
        if self.reports.get(&from) == Some(&of) {
            return;
        }
        // A report about us counts, too: `from` may not receive our messages. We do not pass it on.
        let of_us = of.contains(ctx.me());
        self.reports.insert(from, of.clone());
        self.reported = true;
        self.consider_view_change(ctx);
        // The report may have come from a process that takes us for the candidate: pass it on.
        if !self.change.wedged
            && !of_us
            && let Some(candidate) = self.candidate().filter(|c| *c != ctx.me() && *c != from)
        {
            ctx.send(candidate, Message::Suspect { view: self.view.id, suspects: of });
        }
    }
}
