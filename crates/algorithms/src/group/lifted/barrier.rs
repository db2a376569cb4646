//! Between two views: what each says when one ends, and how the algorithm starts anew in the next
//! from what all who go on have said.

use std::collections::BTreeMap;

use konklave_process::{Context, Input, ProcessId, ProcessSet};

use super::sheet::{NO_WAIT, OWN_SUMMARY};
use super::wishes::Hold;
use super::{Inner, Instance, Lifted, Report, Summary, Timer};
use crate::group::View;
use crate::group::locks::{Indication, Name};
use crate::mutex;

/// What was decided about a lock: who goes on holding it, and who waits, since when.
#[derive(Default)]
struct Facts {
    holder: Option<ProcessId>,
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
    /// What we have to say when the view ends.
    pub(super) fn summary(&self) -> Summary {
        let mut summary = Summary::new();
        for (name, hold) in &self.wishes {
            match hold {
                Hold::Held(token) => summary.push((name.clone(), Report::Holding(*token))),
                Hold::Wanted(since) => summary.push((name.clone(), Report::Waiting(*since))),
                Hold::Ready(_) | Hold::Unwanted => {}
            }
        }
        // Of a name whose last holder may still believe in it we say nothing: our token is a new one.
        let parked = |(name, lock): &(&Name, &Instance<A>)| {
            let sure = !self.cautious || self.known.contains(*name);
            sure && lock.has_token() && !self.wishes.contains_key(*name)
        };
        let parked = self.locks.iter().filter(parked);
        summary.extend(parked.map(|(name, _)| (name.clone(), Report::Parked)));
        summary.sort_unstable();
        summary
    }

    /// The next view: the algorithm starts anew, from what was decided.
    pub(super) fn on_view(
        &mut self,
        view: View,
        left: &ProcessSet,
        summaries: &[(ProcessId, Summary)],
        ctx: &mut Context<'_, Self>,
    ) {
        let me = ctx.me();
        let own = [(me, std::mem::take(&mut self.said))];
        let facts = if self.makes(&OWN_SUMMARY) { &own[..] } else { summaries };
        self.frozen = false;
        self.locks.clear();
        self.channels.clear();
        self.look_back(&view, left, facts, ctx);
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
        self.ask_for_the_rest(facts, ctx);
        self.want_lease(ctx);
        let ahead = std::mem::take(&mut self.ahead);
        for (from, inside) in ahead {
            self.on_inside(from, inside, ctx);
        }
    }

    /// Who is gone without having wished it may be inside and not know.
    fn look_back(
        &mut self,
        view: &View,
        left: &ProcessSet,
        facts: &[(ProcessId, Summary)],
        ctx: &mut Context<'_, Self>,
    ) {
        let now: ProcessSet = view.everyone().map(|m| m.id).collect();
        let last = std::mem::replace(&mut self.last, now.clone());
        let gone = !last.difference(&now).difference(left).is_empty();
        // A new member does not know who was there before.
        let newcomer = last.is_empty() && view.id.epoch > 0;
        let Some(lasts) = self.settings.lease else { return };
        if (gone || newcomer || self.cautious) && !self.makes(&NO_WAIT) {
            self.cautious = true;
            ctx.set_timer(Timer::Caution, lasts);
        }
        let sure = |report: &Report| match report {
            Report::Holding(_) | Report::Parked => true,
            Report::Waiting(_) => false,
        };
        let reports = facts.iter().flat_map(|(_, summary)| summary);
        self.known = reports.filter(|(_, r)| sure(r)).map(|(name, _)| name.clone()).collect();
    }

    /// After the start anew: `held` if we were inside when the view ended, `first` if we are the first
    /// who waited and so are inside now. Meanwhile the application may have changed its mind.
    fn resume(&mut self, name: &Name, held: bool, first: bool, ctx: &mut Context<'_, Self>) {
        match self.wishes.get(name).copied() {
            Some(Hold::Held(_) | Hold::Ready(_)) => {}
            Some(Hold::Wanted(_)) if first => self.admit(name.clone(), 1, ctx),
            Some(Hold::Wanted(_)) if held => {
                self.drive(name, Input::Request(mutex::Request::Release), ctx);
                self.drive(name, Input::Request(mutex::Request::Acquire), ctx);
            }
            Some(Hold::Wanted(_) | Hold::Unwanted) => {}
            None if held || first => {
                self.drive(name, Input::Request(mutex::Request::Release), ctx);
            }
            None => {
                self.wishes.insert(name.clone(), Hold::Unwanted);
            }
        }
    }

    /// Asks for what we wanted only after we had spoken.
    fn ask_for_the_rest(&mut self, facts: &[(ProcessId, Summary)], ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        let said = facts.iter().find(|(id, _)| *id == me).map_or(&[][..], |(_, s)| s.as_slice());
        let fresh: Vec<Name> = self
            .wishes
            .iter()
            .filter(|(name, hold)| {
                let told = said.iter().any(|(n, report)| n == *name && *report != Report::Parked);
                matches!(hold, Hold::Wanted(_)) && !told
            })
            .map(|(name, _)| name.clone())
            .collect();
        for name in fresh {
            self.drive(&name, Input::Request(mutex::Request::Acquire), ctx);
        }
    }
}
