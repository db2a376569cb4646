//! Views: which processes form the group, from which moment on.

use std::fmt;

use konklave_process::{ProcessId, ProcessSet};
use serde::{Deserialize, Serialize};

/// The name of a view. Names grow from view to view, also over a total failure.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
pub struct ViewId {
    /// An operator raises it after a majority was lost for good.
    pub generation: u32,
    /// Counts the views of a generation.
    pub epoch: u64,
    /// The candidate that proposed it.
    pub coordinator: ProcessId,
}

impl fmt::Display for ViewId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "view {} of {}", self.epoch, self.coordinator)?;
        match self.generation {
            0 => Ok(()),
            generation => write!(f, " in generation {generation}"),
        }
    }
}

/// A process in one of its incarnations: after a restart it is another member.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Member {
    /// The process.
    pub id: ProcessId,
    /// Its incarnation.
    pub incarnation: u32,
}

/// The processes that act together until the next view.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct View {
    /// Its name.
    pub id: ViewId,
    /// The members, which vote: the most senior first.
    pub members: Vec<Member>,
    /// The observers, which are about to become members: they receive every message and do not vote.
    pub observers: Vec<Member>,
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |members: &[Member]| {
            let names = members.iter().map(|m| match m.incarnation {
                0 => m.id.to_string(),
                life => format!("{} in life {life}", m.id),
            });
            names.collect::<Vec<_>>().join(", ")
        };
        write!(f, "{} with {}", self.id, names(&self.members))?;
        match &self.observers[..] {
            [] => Ok(()),
            observers => write!(f, " and, without a vote, {}", names(observers)),
        }
    }
}

impl View {
    /// The leader, which also orders the messages: the most senior member.
    pub fn leader(&self) -> Option<ProcessId> {
        self.members.first().map(|m| m.id)
    }

    /// Whether `id` is a member.
    pub fn has_member(&self, id: ProcessId) -> bool {
        self.members.iter().any(|m| m.id == id)
    }

    /// Whether this incarnation of a process is a member or an observer.
    pub fn includes(&self, member: Member) -> bool {
        self.everyone().any(|m| m == member)
    }

    /// The incarnation of `id` that is a member or an observer, if any.
    pub fn find(&self, id: ProcessId) -> Option<Member> {
        self.everyone().find(|m| m.id == id)
    }

    /// Members and observers.
    pub fn everyone(&self) -> impl Iterator<Item = Member> + '_ {
        self.members.iter().chain(&self.observers).copied()
    }

    /// Members and observers without `me`.
    pub fn others(&self, me: ProcessId) -> Vec<ProcessId> {
        self.everyone().map(|m| m.id).filter(|id| *id != me).collect()
    }

    /// The seniority of a member: 0 is the leader.
    pub fn rank(&self, id: ProcessId) -> Option<usize> {
        self.members.iter().position(|m| m.id == id)
    }

    /// The members as a set.
    pub fn voters(&self) -> ProcessSet {
        self.members.iter().map(|m| m.id).collect()
    }

    /// Whether `set` is a quorum of this view: a majority of its members. With `tie_break`, half of
    /// the members suffice if the most senior is among them. Any two quorums share a member.
    pub fn is_quorum(&self, set: &ProcessSet, tie_break: bool) -> bool {
        let yes = self.members.iter().filter(|m| set.contains(m.id)).count();
        let n = self.members.len();
        let half = tie_break && 2 * yes == n && self.leader().is_some_and(|l| set.contains(l));
        2 * yes > n || half
    }
}
