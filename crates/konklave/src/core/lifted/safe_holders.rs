//! Who may mode a lock safely: if it falls silent, nobody enters before it must know that.
//!
//! Only the node of a holder knows that it holds. So a node that wants a lock safely has it noted by others,
//! and enters when a majority of the view knows, itself included: a view cannot end without one of
//! these, and what they have noted goes into the next one. The algorithm's own messages carry that
//! along, there and back, so that whoever gets the lock from another member need not ask anyone
//! besides in a view of three.

use std::collections::BTreeSet;

use konklave_algorithms::group::{Member, View};
use konklave_process::{ProcessId, ProcessSet};

use super::Core;
use super::locks::LockIndex;
use crate::lifted::LockMessage;

/// What is known of one lock.
#[derive(Default)]
pub(super) struct SafeHolders {
    /// Who else may mode it safely.
    others: BTreeSet<Member>,
    /// Who knows that of us, ourselves included; nobody before we want it so.
    known: ProcessSet,
    /// To whom the algorithm's messages have said it, and whom we have asked to confirm it.
    told: ProcessSet,
    asked: ProcessSet,
}

impl SafeHolders {
    /// Someone here wants it so.
    pub(super) fn want(&mut self, me: ProcessId) {
        self.known.insert(me);
    }

    fn is_wanted(&self) -> bool {
        !self.known.is_empty()
    }

    /// Whether enough know of us to enter.
    pub(super) fn is_known(&self, view: &View) -> bool {
        view.is_quorum(&self.known, false)
    }

    /// This one knows of us.
    pub(super) fn confirmed(&mut self, by: ProcessId) {
        if self.is_wanted() {
            self.known.insert(by);
        }
    }

    /// Everyone knows: it was decided.
    pub(super) fn decided(&mut self, view: &View) {
        self.known = view.voters();
    }

    /// This one may mode it safely.
    pub(super) fn note(&mut self, other: Member) {
        self.others.insert(other);
    }

    /// Who else may.
    pub(super) fn others(&self) -> &BTreeSet<Member> {
        &self.others
    }

    /// What a message of the algorithm to this one says besides: that we may mode the lock safely, if it
    /// does not know, and that we know that of it.
    pub(super) fn piggyback_for(&mut self, to: ProcessId) -> (bool, bool) {
        let says = self.is_wanted() && !self.known.contains(to);
        if says {
            self.told.insert(to);
        }
        (says, self.others.iter().any(|member| member.id == to))
    }

    /// The other voters whom we have not asked yet.
    fn unasked(&self, view: &View, me: ProcessId) -> impl Iterator<Item = ProcessId> {
        let others = view.members.iter().map(|m| m.id).filter(move |id| *id != me);
        others.filter(|id| !self.asked.contains(*id))
    }
}

impl Core {
    /// Asks as many to confirm as will be missing when the lock comes: it comes from one who knows,
    /// if the algorithm has asked anyone.
    pub(super) fn announce_safe(&mut self, index: LockIndex) {
        let view = self.group.view();
        let safe_holders = &self.lifted.locks[index].safe_holders;
        if !self.runs() || !safe_holders.is_wanted() || safe_holders.is_known(view) {
            return;
        }
        let missing =
            (view.members.len() / 2).saturating_sub(usize::from(!safe_holders.told.is_empty()));
        let missing = missing.saturating_sub(safe_holders.asked.len());
        if missing == 0 {
            return;
        }
        let mut others: Vec<ProcessId> = safe_holders.unasked(view, self.me).collect();
        // First those who hear nothing of it otherwise.
        others.sort_by_key(|id| safe_holders.told.contains(*id));
        others.truncate(missing);
        self.ask_to_confirm(index, others);
    }

    /// The lock is here, and too few know: asks all others who have not confirmed.
    pub(super) fn ask_the_rest(&mut self, index: LockIndex) {
        let safe_holders = &self.lifted.locks[index].safe_holders;
        let others = safe_holders.unasked(self.group.view(), self.me);
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
