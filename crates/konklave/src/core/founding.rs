//! Agreement on the first view, where more founders may be present than a group needs.
//!
//! Scenario: two founders each see enough processes, but different ones, and propose different first views.
//! Hazard: if each process entered the first view it hears of, both views could get a majority: two groups.
//! Rule: a process promises itself to one proposal at a time, and a view is entered when *all* its members
//! have promised it. Two sets of founders that share a member then found at most one group; they share one as
//! long as fewer than twice the needed founders are present.
//!
//! A promise ends when the proposer withdraws (because a lower id proposes, too, or because a member is gone
//! or in a group), and when the proposer restarts.

use std::collections::BTreeSet;
use std::time::Duration;

use konklave_algorithms::group::{Member, View};
use konklave_process::ProcessId;
use serde::{Deserialize, Serialize};

use super::Core;
use crate::wire::Frame;

/// For how many heartbeats a refused proposer leaves the field to the lower id.
const ABSTAIN: u32 = 10;

/// Messages about first views, before there is one.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) enum FoundingMessage {
    /// Proposes this first view. The number tells the proposals of one proposer apart.
    Propose { number: u64, view: View },
    /// The sender enters no other first view.
    Promise { number: u64 },
    /// The sender has promised itself to a proposal of `to`.
    Refuse { number: u64, to: u32 },
    /// The proposal is withdrawn; promises to it end.
    Withdraw { number: u64 },
}

/// The promise given to a proposer, and the promises received for an own proposal.
#[derive(Default)]
pub(super) struct Promises {
    /// The proposal this node has promised to enter, with its number.
    given: Option<(u64, View)>,
    /// If it is an own proposal: the members that have promised it.
    received: BTreeSet<ProcessId>,
    /// A view promised to a proposer that has restarted since: other members may have entered it.
    past: Option<View>,
    last: u64,
    /// Propose nothing before this time.
    abstain: Duration,
}

impl Promises {
    /// The other process to which this node has promised itself, if any.
    pub(super) fn promised_to(&self, me: ProcessId) -> Option<ProcessId> {
        let to = self.given.as_ref().map(|(_, view)| view.id.coordinator);
        to.filter(|to| *to != me)
    }

    /// Whether this is the view this node has promised to enter.
    pub(super) fn covers(&self, view: &View) -> bool {
        let given = self.given.as_ref().map(|(_, given)| given);
        given.or(self.past.as_ref()) == Some(view)
    }

    /// This node has entered a view, or the proposal failed.
    pub(super) fn clear(&mut self) {
        (self.given, self.received, self.past) = (None, BTreeSet::new(), None);
    }

    fn ours(&self, me: ProcessId) -> Option<&(u64, View)> {
        self.given.as_ref().filter(|(_, view)| view.id.coordinator == me)
    }
}

impl Core {
    /// Handles a founding message.
    pub(super) fn on_founding(&mut self, from: ProcessId, message: FoundingMessage) {
        if self.is_inside() || self.leaving {
            return;
        }
        match message {
            FoundingMessage::Propose { number, view } => self.on_proposal(from, number, view),
            FoundingMessage::Promise { number } => {
                if self.promises.ours(self.me).is_some_and(|(ours, _)| *ours == number) {
                    self.promises.received.insert(from);
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

    /// A peer reports its incarnation. If it has restarted, its earlier proposals are over.
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
        // Members of the last view may have gone on without this node: promise only under the conditions for
        // an own proposal.
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
            // A new proposal of the same proposer replaces its last one.
            Some(_) | None => FoundingMessage::Promise { number },
        };
        if matches!(answer, FoundingMessage::Promise { .. }) {
            (self.promises.given, self.promises.past) = (Some((number, view)), None);
        }
        self.send(from, Frame::Founding(answer));
    }

    /// Proposes a first view, or repeats the present proposal to the members that have not promised.
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

    /// The members that have not promised the own proposal.
    pub(super) fn not_yet_promised(&self) -> Vec<ProcessId> {
        let ours = self.promises.ours(self.me).map(|(_, view)| view);
        let others = ours.map(|view| view.others(self.me)).into_iter().flatten();
        others.filter(|id| !self.promises.received.contains(id)).collect()
    }

    /// Whether all members of a proposal are connected, in the proposed incarnation and in no view.
    fn can_still_be(&self, view: &View) -> bool {
        view.members.iter().filter(|m| m.id != self.me).all(|m| {
            let peer = self.peers.get(&m.id).filter(|peer| peer.connected);
            let peer_status = peer.and_then(|peer| peer.peer_status.as_ref());
            peer_status.is_some_and(|s| s.view.is_none() && s.incarnation == m.incarnation)
        })
    }

    /// Withdraws the own proposal, if there is one, and so releases the promises to it.
    pub(super) fn withdraw_proposal(&mut self) {
        let Some((number, view)) = self.promises.ours(self.me).cloned() else { return };
        self.promises.clear();
        for to in view.others(self.me) {
            self.send(to, Frame::Founding(FoundingMessage::Withdraw { number }));
        }
    }

    fn found_if_all_agree(&mut self) {
        let Some((_, view)) = self.promises.ours(self.me) else { return };
        let agrees = |m: &Member| m.id == self.me || self.promises.received.contains(&m.id);
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
