//! Agreeing on the first view, where more may be there than are needed for one.
//!
//! Whoever sees enough founders may propose a first view, and two who see different ones may propose
//! different views. If everyone entered the first it heard of, each could get a majority: two groups.
//! So a view is entered when *all* its members have promised to enter no other, and each promises
//! itself to one proposal at a time. Two sets of founders that share a member found one group at
//! most; they do as long as fewer than twice as many are there as found a group.
//!
//! A promise is free again when the proposer withdraws: because a lower one proposes, too, or a member
//! is gone or in a group already; and when the proposer itself has begun another life.

use std::collections::BTreeSet;
use std::time::Duration;

use konklave_algorithms::group::{Member, View};
use konklave_process::ProcessId;
use serde::{Deserialize, Serialize};

use super::Core;
use crate::wire::Frame;

/// How many heartbeats one who was refused leaves to the lower one.
const ABSTAIN: u32 = 10;

/// What is said about first views before there is one.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) enum FoundingMessage {
    /// Shall this be the first view? The number tells proposals of one proposer apart.
    Propose { number: u64, view: View },
    /// I enter none but that.
    Promise { number: u64 },
    /// I have promised myself to another one.
    Refuse { number: u64, to: u32 },
    /// Nothing came of it.
    Withdraw { number: u64 },
}

/// What we have promised, and who has promised us.
#[derive(Default)]
pub(super) struct Promises {
    /// The view that we enter, if any; and the number of the proposal.
    given: Option<(u64, View)>,
    /// Who else enters it, if it is ours.
    got: BTreeSet<ProcessId>,
    /// What we had promised to one who has begun another life since: others may have entered it.
    past: Option<View>,
    last: u64,
    /// Until when we propose nothing.
    abstain: Duration,
}

impl Promises {
    /// Where we have promised ourselves to another: to whom.
    pub(super) fn bound_to(&self, me: ProcessId) -> Option<ProcessId> {
        let to = self.given.as_ref().map(|(_, view)| view.id.coordinator);
        to.filter(|to| *to != me)
    }

    /// Whether this is what we have promised to enter.
    pub(super) fn covers(&self, view: &View) -> bool {
        let given = self.given.as_ref().map(|(_, given)| given);
        given.or(self.past.as_ref()) == Some(view)
    }

    /// We are inside, or nothing came of it.
    pub(super) fn clear(&mut self) {
        (self.given, self.got, self.past) = (None, BTreeSet::new(), None);
    }

    fn ours(&self, me: ProcessId) -> Option<&(u64, View)> {
        self.given.as_ref().filter(|(_, view)| view.id.coordinator == me)
    }
}

impl Core {
    /// Someone says something about a first view.
    pub(super) fn on_founding(&mut self, from: ProcessId, said: FoundingMessage) {
        if self.is_inside() || self.leaving {
            return;
        }
        match said {
            FoundingMessage::Propose { number, view } => self.on_proposal(from, number, view),
            FoundingMessage::Promise { number } => {
                if self.promises.ours(self.me).is_some_and(|(ours, _)| *ours == number) {
                    self.promises.got.insert(from);
                    self.found_if_all_agree();
                }
            }
            FoundingMessage::Refuse { number, to } => {
                let ours = self.promises.ours(self.me).is_some_and(|(ours, _)| *ours == number);
                if ours && ProcessId(to) < self.me {
                    self.withdraw_proposal();
                    self.promises.abstain = self.now + self.config.timings.heartbeat * ABSTAIN;
                }
            }
            FoundingMessage::Withdraw { number } => {
                let given = self.promises.given.as_ref();
                if given.is_some_and(|(n, view)| view.id.coordinator == from && *n == number) {
                    self.promises.clear();
                }
            }
        }
    }

    /// Someone has told in which life it is: what its earlier ones proposed is over.
    pub(super) fn check_promise(&mut self, member: Member) {
        let theirs = |(_, view): &(u64, View)| {
            let then = view.find(member.id).filter(|m| view.id.coordinator == m.id);
            then.is_some_and(|then| then.incarnation != member.incarnation)
        };
        if member.id != self.me && self.promises.given.as_ref().is_some_and(theirs) {
            self.promises.past = self.promises.given.take().map(|(_, view)| view);
        }
    }

    fn on_proposal(&mut self, from: ProcessId, number: u64, view: View) {
        let us = Member { id: self.me, incarnation: self.record.incarnation };
        let newer = view.id.generation > self.record.generation && view.id.epoch == 0;
        // Who was in our last view may have gone on without us: as much as we ask for what we propose ourselves.
        let free = self.is_last_view_over();
        if view.id.coordinator != from || !newer || !free || !view.members.contains(&us) {
            return;
        }
        let held = self.promises.given.as_ref().map(|(_, held)| held.id.coordinator);
        let answer = match held {
            Some(held) if held == self.me && from < self.me => {
                self.withdraw_proposal();
                FoundingMessage::Promise { number }
            }
            Some(held) if held != from => FoundingMessage::Refuse { number, to: held.0 },
            // A new one of the same proposer: nothing came of the last.
            Some(_) | None => FoundingMessage::Promise { number },
        };
        if matches!(answer, FoundingMessage::Promise { .. }) {
            (self.promises.given, self.promises.past) = (Some((number, view)), None);
        }
        self.send(from, Frame::Founding(answer));
    }

    /// Proposes a first view, or says once more what was proposed.
    pub(super) fn propose(&mut self) {
        if self.promises.ours(self.me).is_some_and(|(_, view)| !self.can_still_be(view)) {
            self.withdraw_proposal();
        }
        if self.promises.given.is_none() && self.promises.abstain <= self.now {
            let Some(view) = self.first_view() else { return };
            self.promises.last += 1;
            (self.promises.given, self.promises.past) = (Some((self.promises.last, view)), None);
        }
        let Some((number, view)) = self.promises.ours(self.me).cloned() else { return };
        for to in self.not_yet_promised() {
            let proposal = FoundingMessage::Propose { number, view: view.clone() };
            self.send(to, Frame::Founding(proposal));
        }
        self.found_if_all_agree();
    }

    /// Who has not answered what we propose.
    pub(super) fn not_yet_promised(&self) -> Vec<ProcessId> {
        let ours = self.promises.ours(self.me).map(|(_, view)| view);
        let others = ours.map(|view| view.others(self.me)).into_iter().flatten();
        others.filter(|id| !self.promises.got.contains(id)).collect()
    }

    /// Whether all whom a proposal names are there, as it names them, and in no group.
    fn can_still_be(&self, view: &View) -> bool {
        view.members.iter().filter(|m| m.id != self.me).all(|m| {
            let peer = self.peers.get(&m.id).filter(|peer| peer.connected);
            let peer_status = peer.and_then(|peer| peer.peer_status.as_ref());
            peer_status.is_some_and(|s| s.view.is_none() && s.incarnation == m.incarnation)
        })
    }

    /// Our proposal is over, if there is one: whoever promised is free.
    pub(super) fn withdraw_proposal(&mut self) {
        let Some((number, view)) = self.promises.ours(self.me).cloned() else { return };
        self.promises.clear();
        for to in view.others(self.me) {
            self.send(to, Frame::Founding(FoundingMessage::Withdraw { number }));
        }
    }

    fn found_if_all_agree(&mut self) {
        let Some((_, view)) = self.promises.ours(self.me) else { return };
        let agrees = |m: &Member| m.id == self.me || self.promises.got.contains(&m.id);
        if !view.members.iter().all(agrees) {
            return;
        }
        let view = view.clone();
        for to in view.others(self.me) {
            self.send(to, Frame::Found(view.clone()));
        }
        self.on_found(&view);
    }
}

#[cfg(test)]
mod tests;
