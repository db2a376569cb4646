//! From one view to the next: every process summarises its locks when a view ends, and the algorithm
//! starts anew in the next view from the summaries of its members.

use std::collections::BTreeMap;

use konklave_process::{Context, Input, ProcessId, ProcessSet};

use super::requests::RequestState;
use super::{Inner, Instance, Lifted, Report, Summary, Timer};
use crate::group::View;
use crate::group::locks::{Indication, Name};
use crate::mutex;

/// The decided facts about a lock: the member that goes on holding it, and the members that wait.
#[derive(Default)]
struct Facts {
    holder: Option<ProcessId>,
    /// Each waiter with the count of entries when it asked.
    waiters: Vec<(u64, ProcessId)>,
}

impl Facts {
    /// The facts of all locks that a member of `view` holds or waits for.
    fn of(summaries: &[(ProcessId, Summary)], view: &View) -> BTreeMap<Name, Self> {
        let mut names: BTreeMap<Name, Self> = BTreeMap::new();
        for (id, summary) in summaries.iter().filter(|(id, _)| view.has_member(*id)) {
            for (name, report) in summary {
                match report {
                    Report::Holding(_) => names.entry(name.clone()).or_default().holder = Some(*id),
                    Report::Waiting(since) => {
                        names.entry(name.clone()).or_default().waiters.push((*since, *id));
                    }
                    Report::Parked => {}
                }
            }
        }
        names
    }
}

impl<A: Inner> Lifted<A> {
    /// The summary that this process gives when the view ends.
    pub(super) fn summary(&self) -> Summary {
        let mut summary = Summary::new();
        for (name, state) in &self.requests {
            match state {
                RequestState::Held(token) => summary.push((name.clone(), Report::Holding(*token))),
                RequestState::Wanted(since) => {
                    summary.push((name.clone(), Report::Waiting(*since)))
                }
                RequestState::Ready(_) | RequestState::Cancelled => {}
            }
        }
        // The last holder of a lock may be excluded and not know it. The token of that lock here was
        // made anew, so it is no proof that the lock is free: such a token is not reported.
        let parked = |(name, lock): &(&Name, &Instance<A>)| {
            let sure = !self.excluded_may_hold || self.accounted_for.contains(*name);
            sure && lock.has_token() && !self.requests.contains_key(*name)
        };
        let parked = self.locks.iter().filter(parked);
        summary.extend(parked.map(|(name, _)| (name.clone(), Report::Parked)));
        summary.sort_unstable();
        summary
    }

    /// The next view begins: the algorithm of each lock starts anew from the decided summaries.
    pub(super) fn on_view(
        &mut self,
        view: View,
        left: &ProcessSet,
        summaries: &[(ProcessId, Summary)],
        ctx: &mut Context<'_, Self>,
    ) {
        let me = ctx.me();
        let own = [(me, std::mem::take(&mut self.own_summary))];
        let facts = if self.starts_from_decision() { summaries } else { &own[..] };
        self.wedged = false;
        self.locks.clear();
        self.channels.clear();
        self.note_exclusions(&view, left, facts, ctx);
        ctx.indicate(Indication::Installed(view.clone()));
        if !view.has_member(me) {
            return;
        }
        for (name, Facts { holder, mut waiters }) in Facts::of(facts, &view) {
            waiters.sort_unstable();
            let waiters: Vec<ProcessId> = waiters.into_iter().map(|(_, id)| id).collect();
            let setup = &self.settings.setup;
            let lock = Instance::resumed(me, holder, &waiters, &view, setup);
            self.locks.extend(lock.map(|lock| (name.clone(), lock)));
            if holder == Some(me) || waiters.contains(&me) {
                let first = holder.is_none() && waiters.first() == Some(&me);
                self.resume(&name, holder == Some(me), first, ctx);
            }
        }
        self.request_unreported(facts, ctx);
        self.want_lease(ctx);
        let later = std::mem::take(&mut self.later);
        for (from, inside) in later {
            self.on_inside(from, inside, ctx);
        }
    }

    /// Notes whether the new view excludes a process, which may hold a lock without knowing of its
    /// loss. With leases, no member enters such a lock before a lease has passed.
    fn note_exclusions(
        &mut self,
        view: &View,
        left: &ProcessSet,
        facts: &[(ProcessId, Summary)],
        ctx: &mut Context<'_, Self>,
    ) {
        let now: ProcessSet = view.everyone().map(|m| m.id).collect();
        let last = std::mem::replace(&mut self.last_view, now.clone());
        let gone = !last.difference(&now).difference(left).is_empty();
        // A new member does not know which processes were in the last view.
        let newcomer = last.is_empty() && view.id.epoch > 0;
        let Some(lasts) = self.settings.lease else { return };
        if (gone || newcomer || self.excluded_may_hold) && self.waits_for_excluded_holders() {
            self.excluded_may_hold = true;
            ctx.set_timer(Timer::Caution, lasts);
        }
        let sure = |report: &Report| match report {
            Report::Holding(_) | Report::Parked => true,
            Report::Waiting(_) => false,
        };
        let reports = facts.iter().flat_map(|(_, summary)| summary);
        self.accounted_for =
            reports.filter(|(_, r)| sure(r)).map(|(name, _)| name.clone()).collect();
    }

    /// Matches the application's request with the restarted algorithm. `held`: this process held the
    /// lock when the view ended; `first`: it is the first waiter, and has the lock now. The application
    /// may have released the lock, or asked again, since the summary.
    fn resume(&mut self, name: &Name, held: bool, first: bool, ctx: &mut Context<'_, Self>) {
        match self.requests.get(name).copied() {
            Some(RequestState::Held(_) | RequestState::Ready(_)) => {}
            Some(RequestState::Wanted(_)) if first => self.admit(name.clone(), 1, ctx),
            Some(RequestState::Wanted(_)) if held => {
                self.step_lock(name, Input::Request(mutex::Request::Release), ctx);
                self.step_lock(name, Input::Request(mutex::Request::Acquire), ctx);
            }
            Some(RequestState::Wanted(_) | RequestState::Cancelled) => {}
            None if held || first => {
                self.step_lock(name, Input::Request(mutex::Request::Release), ctx);
            }
            None => {
                self.requests.insert(name.clone(), RequestState::Cancelled);
            }
        }
    }

    /// Asks for the locks that the application wanted only after the summary.
    fn request_unreported(&mut self, facts: &[(ProcessId, Summary)], ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        let reported = facts.iter().find(|(id, _)| *id == me);
        let reported = reported.map_or(&[][..], |(_, summary)| summary.as_slice());
        let fresh: Vec<Name> = self
            .requests
            .iter()
            .filter(|(name, state)| {
                let is_same = |(n, r): &(Name, Report)| n == *name && *r != Report::Parked;
                let told = reported.iter().any(is_same);
                matches!(state, RequestState::Wanted(_)) && !told
            })
            .map(|(name, _)| name.clone())
            .collect();
        for name in fresh {
            self.step_lock(&name, Input::Request(mutex::Request::Acquire), ctx);
        }
    }
}
