//! The properties: one group at a time, and generations that grow.

use std::collections::{BTreeMap, BTreeSet};

use konklave_process::{
    End, Fixed, Monitor, Process, ProcessId, ProcessMap, ProcessSet, Verdict, Violation,
};

use super::{Indication, Request};
use crate::Setup;
use crate::group::{self, Bytes, Member, View, ViewId};

/// The monitor of a forming group.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Properties {
    /// The view of each process that is in one.
    views: ProcessMap<Option<View>>,
    /// The names of all views that any process was in.
    seen: BTreeSet<ViewId>,
    /// The processes that may still act on grants of a view that they are not in any more.
    grants: ProcessSet,
    /// Whether grants of a process that crashed may be in use.
    grants_outlive: Fixed<bool>,
}

fn broken(property: &'static str, detail: String) -> Verdict {
    Err(Violation::new(property, detail))
}

impl Properties {
    /// Nothing has happened yet.
    pub fn new(setup: &Setup) -> Self {
        let outlive = setup.chosen.get("grants").is_some_and(|chosen| chosen == "outlive");
        Self {
            views: ProcessMap::new(&setup.group, None),
            seen: BTreeSet::new(),
            grants: ProcessSet::new(),
            grants_outlive: Fixed(outlive),
        }
    }

    fn entered(&mut self, at: ProcessId, view: &View) -> Verdict {
        if view.find(at).is_none() {
            return broken("self-inclusion", format!("{at} installed {view} without itself"));
        }
        let number = |id: ViewId| (id.generation, id.epoch);
        if let Some(other) =
            self.seen.iter().find(|o| number(**o) == number(view.id) && **o != view.id)
        {
            return broken("view agreement", format!("{at} installed {view}, another {other}"));
        }
        let differs = |other: &&View| other.id == view.id && *other != view;
        if let Some(other) = self.views.values().flatten().find(differs) {
            return broken("view agreement", format!("{at} installed {view}, another {other}"));
        }
        let is_new = self.seen.insert(view.id);
        let last = self.seen.last().copied().unwrap_or_default();
        if is_new && last != view.id {
            return broken("growing views", format!("{at} is the first in {view}, after {last}"));
        }
        // A group that is founded knows no earlier grants, not even those of processes outside.
        let unknown = |holder: &ProcessId| view.id.epoch == 0 || *holder == at;
        let generation = |id: &&ViewId| id.generation == view.id.generation;
        let founded = is_new && self.seen.iter().filter(generation).count() == 1;
        if let Some(holder) = self.grants.iter().find(unknown).filter(|_| founded) {
            let detail = format!("{at} enters {view} while grants of {holder} may be in use");
            return broken("grants before founding", detail);
        }
        self.views[at] = Some(view.clone());
        self.one_at_a_time()
    }

    /// Two views of different generations could decide something now.
    fn one_at_a_time(&self) -> Verdict {
        let mut latest: BTreeMap<u32, &View> = BTreeMap::new();
        for view in self.views.values().flatten() {
            let known = latest.entry(view.id.generation).or_insert(view);
            if known.id < view.id {
                *known = view;
            }
        }
        let there = |view: &View| {
            let same =
                |theirs: &View, m| theirs.id.generation == view.id.generation && theirs.includes(m);
            let is_there = |m: &&Member| self.views[m.id].as_ref().is_some_and(|v| same(v, **m));
            view.members.iter().filter(is_there).count()
        };
        let mut able = latest.values().filter(|view| 2 * there(view) > view.members.len());
        if let (Some(one), Some(other)) = (able.next(), able.next()) {
            return broken("one group at a time", format!("both {one} and {other} can decide"));
        }
        Ok(())
    }

    fn left(&mut self, at: ProcessId) {
        if self.views[at].take().is_some() {
            self.grants.insert(at);
        }
    }
}

impl<P> Monitor<P> for Properties
where
    P: Process<Request = Request<Bytes>, Indication = Indication<Bytes>>,
{
    type Tag = ();

    fn on_indication(&mut self, at: ProcessId, indication: &Indication<Bytes>) -> Verdict {
        match indication {
            Indication::Group(group::Indication::Installed { view, .. }) => self.entered(at, view),
            Indication::Group(group::Indication::Excluded | group::Indication::Left)
            | Indication::Dissolved => {
                self.left(at);
                Ok(())
            }
            Indication::GrantsOver => {
                self.grants.remove(at);
                Ok(())
            }
            Indication::Group(_)
            | Indication::Founded
            | Indication::InOtherGroup(_)
            | Indication::JoinsInstead(_) => Ok(()),
        }
    }

    fn on_crash(&mut self, at: ProcessId) {
        self.left(at);
        if !*self.grants_outlive {
            self.grants.remove(at);
        }
    }

    /// If all processes are up, all are members of one view in the end.
    fn at_end(&self, end: &End) -> Verdict {
        if !end.quiet || self.views.iter().any(|(p, _)| !end.alive.contains(p)) {
            return Ok(());
        }
        let newest = self.views.values().flatten().max_by_key(|view| view.id);
        for (p, view) in self.views.iter() {
            if view.as_ref() != newest || view.as_ref().is_none_or(|v| !v.has_member(p)) {
                return broken("view progress", format!("{p} is no member of the last view"));
            }
        }
        Ok(())
    }
}
