//! Groups of the application: who belongs to them, and who gives whom the state.

use std::sync::Arc;

use konklave_algorithms::group::Member;
use serde::{Deserialize, Serialize};

use super::{Claim, Name, Outcome, Payload, Table};

/// A group of the application.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Circle {
    /// The most senior first.
    pub(crate) places: Vec<Place>,
}

/// One who belongs to it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) claim: Claim,
    pub(crate) label: Arc<str>,
    /// While it has no state: who was asked to give it.
    pub(crate) waits_for: Option<Claim>,
}

impl Table {
    pub(super) fn enter(
        &mut self,
        group: Name,
        claim: Claim,
        label: Arc<str>,
        out: &mut Vec<Outcome>,
    ) {
        let circle = self.circles.entry(group.clone()).or_default();
        if circle.places.iter().any(|p| p.claim == claim) {
            return;
        }
        circle.places.push(Place { claim, label, waits_for: None });
        out.push(Outcome::Circle { group: group.clone(), places: circle.places.clone() });
        if let Some(donor) = circle.donor(claim) {
            circle.ask(&group, claim, donor, out);
        } else {
            // Nobody has a state: this one begins with nothing.
            out.push(Outcome::Given { group, to: claim, payload: Payload([].into()) });
        }
    }

    pub(super) fn exit(
        &mut self,
        group: &Name,
        gone: impl Fn(&Place) -> bool,
        out: &mut Vec<Outcome>,
    ) {
        let Some(circle) = self.circles.get_mut(group) else { return };
        let before = circle.places.len();
        circle.places.retain(|p| !gone(p));
        if circle.places.len() == before {
            return;
        }
        if circle.places.is_empty() {
            self.circles.remove(group);
            return;
        }
        out.push(Outcome::Circle { group: group.clone(), places: circle.places.clone() });
        let present: Vec<Claim> = circle.places.iter().map(|p| p.claim).collect();
        let orphan = |p: &&Place| p.waits_for.is_some_and(|donor| !present.contains(&donor));
        let orphans: Vec<Claim> = circle.places.iter().filter(orphan).map(|p| p.claim).collect();
        for claim in orphans {
            match circle.donor(claim) {
                Some(donor) => circle.ask(group, claim, donor, out),
                None => {
                    // The last who had the state is gone: the most senior begins with nothing.
                    circle.has_state(claim);
                    let (group, payload) = (group.clone(), Payload([].into()));
                    out.push(Outcome::Given { group, to: claim, payload });
                }
            }
        }
    }

    /// Who was asked for a state may have it, and yet never give it.
    pub(super) fn ask_another(
        &mut self,
        group: &Name,
        to: Claim,
        instead_of: Claim,
        out: &mut Vec<Outcome>,
    ) {
        let Some(circle) = self.circles.get_mut(group) else { return };
        let waits = |p: &Place| p.claim == to && p.waits_for == Some(instead_of);
        if circle.places.iter().any(waits)
            && let Some(donor) = circle.donor_after(to, instead_of)
        {
            circle.ask(group, to, donor, out);
        }
    }

    pub(super) fn depart_circles(&mut self, members: &[Member], out: &mut Vec<Outcome>) {
        let groups: Vec<Name> = self.circles.keys().cloned().collect();
        for group in groups {
            self.exit(&group, |p| !members.contains(&p.claim.member), out);
        }
    }

    pub(super) fn say(
        &mut self,
        group: Name,
        from: Claim,
        payload: Payload,
        out: &mut Vec<Outcome>,
    ) {
        let belongs = |c: &Circle| c.places.iter().any(|p| p.claim == from);
        if self.circles.get(&group).is_some_and(belongs) {
            out.push(Outcome::Said { group, from, payload });
        }
    }

    pub(super) fn give(
        &mut self,
        group: &Name,
        to: Claim,
        by: Claim,
        payload: Payload,
        out: &mut Vec<Outcome>,
    ) {
        let Some(circle) = self.circles.get_mut(group) else { return };
        let waits = |p: &Place| p.claim == to && p.waits_for == Some(by);
        // Someone else may have been asked since.
        if circle.places.iter().any(waits) {
            circle.has_state(to);
            out.push(Outcome::Given { group: group.clone(), to, payload });
        }
    }
}

impl Circle {
    /// Who can give the state to `to`: the most junior who has it, who has the least to do.
    fn donor(&self, to: Claim) -> Option<Claim> {
        self.donors(to).next()
    }

    /// The same after one who has been asked: the next more senior one, in the end itself again.
    fn donor_after(&self, to: Claim, asked: Claim) -> Option<Claim> {
        let after = self.donors(to).skip_while(|donor| *donor != asked).nth(1);
        after.or_else(|| self.donor(to))
    }

    fn donors(&self, to: Claim) -> impl Iterator<Item = Claim> {
        let has = move |p: &&Place| p.claim != to && p.waits_for.is_none();
        self.places.iter().rev().filter(has).map(|p| p.claim)
    }

    fn ask(&mut self, group: &Name, to: Claim, donor: Claim, out: &mut Vec<Outcome>) {
        if let Some(place) = self.places.iter_mut().find(|p| p.claim == to) {
            place.waits_for = Some(donor);
        }
        out.push(Outcome::Ask { group: group.clone(), donor, to });
    }

    fn has_state(&mut self, claim: Claim) {
        if let Some(place) = self.places.iter_mut().find(|p| p.claim == claim) {
            place.waits_for = None;
        }
    }
}
