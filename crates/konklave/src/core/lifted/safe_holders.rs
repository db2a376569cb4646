//! Lease-safe holders of lifted locks: if one falls silent, nobody else gets the lock before its lease has
//! expired.
//!
//! Hazard: only the holder's own node knows of the grant; if it is excluded, the next view would grant the
//! lock at once. Rule: a node that wants a lock lease-safe announces it, and grants it only when a majority
//! of the view, itself included, has noted that. No view ends without a member of that majority, and its
//! summary carries the note to the next view.
//!
//! The algorithm's messages carry announcements and confirmations along. So in a view of three, a lock that
//! comes from another member needs no further message.

use std::collections::BTreeSet;

use konklave_algorithms::group::{Member, View};
use konklave_process::{ProcessId, ProcessSet};

use super::Core;
use super::locks::LockIndex;
use crate::lifted::LockMessage;

/// This node's knowledge about the lease-safe holders of one lock.
#[derive(Default)]
pub(super) struct SafeHolders {
    /// The other members that may hold it lease-safe.
    others: BTreeSet<Member>,
    /// The members that know this node as such, itself included; empty before it wants the lock lease-safe.
    known: ProcessSet,
    /// Members informed by messages of the algorithm, and members asked explicitly to confirm.
    informed: ProcessSet,
    asked: ProcessSet,
}

impl SafeHolders {
    /// A local request wants the lock lease-safe.
    pub(super) fn want(&mut self, me: ProcessId) {
        self.known.insert(me);
    }

    fn is_wanted(&self) -> bool {
        !self.known.is_empty()
    }

    /// Whether a majority knows this node as a lease-safe holder.
    pub(super) fn is_known(&self, view: &View) -> bool {
        view.is_quorum(&self.known, false)
    }

    /// This member has confirmed.
    pub(super) fn confirmed(&mut self, by: ProcessId) {
        if self.is_wanted() {
            self.known.insert(by);
        }
    }

    /// All members know: the view was installed with it.
    pub(super) fn decided(&mut self, view: &View) {
        self.known = view.voters();
    }

    /// This member may hold the lock lease-safe.
    pub(super) fn note(&mut self, other: Member) {
        self.others.insert(other);
    }

    /// The other members that may hold it lease-safe.
    pub(super) fn others(&self) -> &BTreeSet<Member> {
        &self.others
    }

    /// The two flags that a message of the algorithm carries: whether this node announces itself as a lease-safe
    /// holder (if `to` has not confirmed yet), and whether it confirms `to` as one.
    pub(super) fn piggyback_for(&mut self, to: ProcessId) -> (bool, bool) {
        let announces = self.is_wanted() && !self.known.contains(to);
        if announces {
            self.informed.insert(to);
        }
        (announces, self.others.iter().any(|member| member.id == to))
    }

    /// The other voters that were not asked to confirm.
    fn unasked(&self, view: &View, me: ProcessId) -> impl Iterator<Item = ProcessId> {
        let others = view.members.iter().map(|m| m.id).filter(move |id| *id != me);
        others.filter(|id| !self.asked.contains(*id))
    }
}

impl Core {
    /// Asks for as many confirmations as will be missing when the lock comes. If the algorithm has sent a
    /// message, the member that hands the lock over counts as one.
    pub(super) fn announce_safe(&mut self, index: LockIndex) {
        let view = self.forming.group().view();
        let safe_holders = &self.lifted.locks[index].safe_holders;
        if !self.runs() || !safe_holders.is_wanted() || safe_holders.is_known(view) {
            return;
        }
        let missing =
            (view.members.len() / 2).saturating_sub(usize::from(!safe_holders.informed.is_empty()));
        let missing = missing.saturating_sub(safe_holders.asked.len());
        if missing == 0 {
            return;
        }
        let mut others: Vec<ProcessId> = safe_holders.unasked(view, self.me).collect();
        // First those that the algorithm's messages have not informed.
        others.sort_by_key(|id| safe_holders.informed.contains(*id));
        others.truncate(missing);
        self.ask_to_confirm(index, others);
    }

    /// The lock is at this node, but too few members have confirmed: asks all others.
    pub(super) fn ask_remaining(&mut self, index: LockIndex) {
        let safe_holders = &self.lifted.locks[index].safe_holders;
        let others = safe_holders.unasked(self.forming.group().view(), self.me);
        let others = others.filter(|id| !safe_holders.known.contains(*id)).collect();
        self.ask_to_confirm(index, others);
    }

    fn ask_to_confirm(&mut self, index: LockIndex, others: Vec<ProcessId>) {
        for to in others {
            let lock = &mut self.lifted.locks[index];
            lock.safe_holders.asked.insert(to);
            let name = lock.name.clone();
            self.send_lifted(to, name, LockMessage::Safe);
        }
    }
}
