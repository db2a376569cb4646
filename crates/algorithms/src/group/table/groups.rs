//! Groups of the application: their members, and the transfer of their state to new ones.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{ClaimId, GivenState, Name, Outcome, Payload, Table};
use crate::group::Member;

/// A group of the application.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct AppGroup {
    /// Most senior first.
    pub members: Vec<AppMember>,
}

/// A member.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct AppMember {
    /// The claim.
    pub claim: ClaimId,
    /// For people.
    pub label: Arc<str>,
    /// While it has no state: the donor that was asked for it.
    pub waits_for: Option<ClaimId>,
    /// While it has no state: the donors that have declined to give it.
    pub declined: Vec<ClaimId>,
}

impl Table {
    pub(super) fn enter(
        &mut self,
        group: Name,
        claim: ClaimId,
        label: Arc<str>,
        out: &mut Vec<Outcome>,
    ) {
        let app_group = self.app_groups.entry(group.clone()).or_default();
        if app_group.members.iter().any(|p| p.claim == claim) {
            return;
        }
        app_group.members.push(AppMember { claim, label, waits_for: None, declined: Vec::new() });
        out.push(Outcome::AppView { group: group.clone(), members: app_group.members.clone() });
        if let Some(donor) = app_group.donor(claim) {
            app_group.ask(&group, claim, donor, out);
        } else {
            out.push(Outcome::StateGiven { group, to: claim, state: GivenState::First });
        }
    }

    pub(super) fn exit(
        &mut self,
        group: &Name,
        gone: impl Fn(&AppMember) -> bool,
        out: &mut Vec<Outcome>,
    ) {
        let Some(app_group) = self.app_groups.get_mut(group) else { return };
        let before = app_group.members.len();
        app_group.members.retain(|p| !gone(p));
        if app_group.members.len() == before {
            return;
        }
        if app_group.members.is_empty() {
            self.app_groups.remove(group);
            return;
        }
        out.push(Outcome::AppView { group: group.clone(), members: app_group.members.clone() });
        let present: Vec<ClaimId> = app_group.members.iter().map(|p| p.claim).collect();
        let orphan = |p: &&AppMember| p.waits_for.is_some_and(|donor| !present.contains(&donor));
        let orphans: Vec<ClaimId> =
            app_group.members.iter().filter(orphan).map(|p| p.claim).collect();
        for claim in orphans {
            match app_group.donor(claim) {
                Some(donor) => app_group.ask(group, claim, donor, out),
                None => app_group.without_donor(group, claim, out),
            }
        }
    }

    /// A donor may have the state and never give it, or decline to give it: asks another one.
    pub(super) fn ask_another(
        &mut self,
        group: &Name,
        to: ClaimId,
        (instead_of, declined): (ClaimId, bool),
        out: &mut Vec<Outcome>,
    ) {
        let Some(app_group) = self.app_groups.get_mut(group) else { return };
        let waits = |p: &&mut AppMember| p.claim == to && p.waits_for == Some(instead_of);
        let Some(member) = app_group.members.iter_mut().find(waits) else { return };
        if declined {
            member.declined.push(instead_of);
        }
        match app_group.donor_after(to, instead_of) {
            Some(donor) => app_group.ask(group, to, donor, out),
            None => app_group.without_donor(group, to, out),
        }
    }

    pub(super) fn depart_app_groups(&mut self, members: &[Member], out: &mut Vec<Outcome>) {
        let groups: Vec<Name> = self.app_groups.keys().cloned().collect();
        for group in groups {
            self.exit(&group, |p| !members.contains(&p.claim.member), out);
        }
    }

    pub(super) fn say(
        &mut self,
        group: Name,
        from: ClaimId,
        payload: Payload,
        out: &mut Vec<Outcome>,
    ) {
        let belongs = |c: &AppGroup| c.members.iter().any(|p| p.claim == from);
        if self.app_groups.get(&group).is_some_and(belongs) {
            out.push(Outcome::AppMessage { group, from, payload });
        }
    }

    pub(super) fn give(
        &mut self,
        group: &Name,
        (to, by): (ClaimId, ClaimId),
        (bytes, more): (Payload, bool),
        out: &mut Vec<Outcome>,
    ) {
        let Some(app_group) = self.app_groups.get_mut(group) else { return };
        let waits = |p: &AppMember| p.claim == to && p.waits_for == Some(by);
        // Another donor may have been asked in the meantime.
        if app_group.members.iter().any(waits) {
            if !more {
                app_group.has_state(to);
            }
            let state = GivenState::Piece { bytes, more };
            out.push(Outcome::StateGiven { group: group.clone(), to, state });
        }
    }
}

impl AppGroup {
    /// The donor for `to`: the most junior member with the state.
    fn donor(&self, to: ClaimId) -> Option<ClaimId> {
        self.donors(to).next()
    }

    /// The donor after `asked`: the next more senior one; after the most senior, the first one again.
    fn donor_after(&self, to: ClaimId, asked: ClaimId) -> Option<ClaimId> {
        let declined = self.declined(to);
        let mut after = self.holders(to).skip_while(|donor| *donor != asked).skip(1);
        after.find(|donor| !declined.contains(donor)).or_else(|| self.donor(to))
    }

    /// The members that may give `to` the state, most junior first.
    fn donors(&self, to: ClaimId) -> impl Iterator<Item = ClaimId> {
        let declined = self.declined(to);
        self.holders(to).filter(move |donor| !declined.contains(donor))
    }

    /// The other members that have the state, most junior first.
    fn holders(&self, to: ClaimId) -> impl Iterator<Item = ClaimId> {
        let has = move |p: &&AppMember| p.claim != to && p.waits_for.is_none();
        self.members.iter().rev().filter(has).map(|p| p.claim)
    }

    /// The members that have declined to give `to` the state.
    fn declined(&self, to: ClaimId) -> &[ClaimId] {
        self.members.iter().find(|p| p.claim == to).map_or(&[], |p| &p.declined)
    }

    /// No member gives `to` the state: it goes on without.
    fn without_donor(&mut self, group: &Name, to: ClaimId, out: &mut Vec<Outcome>) {
        let state = match self.holders(to).next() {
            Some(_) => GivenState::Declined,
            None => GivenState::First,
        };
        self.has_state(to);
        out.push(Outcome::StateGiven { group: group.clone(), to, state });
    }

    fn ask(&mut self, group: &Name, to: ClaimId, donor: ClaimId, out: &mut Vec<Outcome>) {
        if let Some(place) = self.members.iter_mut().find(|p| p.claim == to) {
            place.waits_for = Some(donor);
        }
        out.push(Outcome::StateRequested { group: group.clone(), donor, to });
    }

    fn has_state(&mut self, claim: ClaimId) {
        if let Some(place) = self.members.iter_mut().find(|p| p.claim == claim) {
            (place.waits_for, place.declined) = (None, Vec::new());
        }
    }
}
