//! Who may hold a lock safely: if it falls silent, nobody enters before it must know that.
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
use crate::lifted::Say;
use crate::table::Name;

/// What is known of one lock.
#[derive(Default)]
pub(super) struct Safety {
    /// Who else may hold it safely.
    others: BTreeSet<Member>,
    /// Who knows that of us, ourselves included; nobody before we want it so.
    known: ProcessSet,
    /// To whom the algorithm's messages have said it, and whom we have asked to confirm it.
    told: ProcessSet,
    asked: ProcessSet,
}

impl Safety {
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

    /// This one may hold it safely.
    pub(super) fn note(&mut self, other: Member) {
        self.others.insert(other);
    }

    /// Who else may.
    pub(super) fn others(&self) -> &BTreeSet<Member> {
        &self.others
    }
}

impl Core {
    /// What a message of the algorithm to this one says besides: that we may hold the lock safely, if it
    /// does not know, and that we know that of it.
    pub(super) fn safety_for(&mut self, name: &Name, to: ProcessId) -> (bool, bool) {
        let Some(lock) = self.lifted.names.get_mut(name) else { return (false, false) };
        let safety = &mut lock.safety;
        let says = safety.is_wanted() && !safety.known.contains(to);
        if says {
            safety.told.insert(to);
        }
        (says, safety.others.iter().any(|member| member.id == to))
    }

    /// Asks as many to confirm as will be missing when the lock comes: it comes from one who knows,
    /// if the algorithm has asked anyone.
    pub(super) fn spread_word(&mut self, name: &Name) {
        let view = self.below.view();
        let Some(lock) = self.lifted.names.get(name) else { return };
        let safety = &lock.safety;
        if !self.runs() || !safety.is_wanted() || safety.is_known(view) {
            return;
        }
        let missing = (view.members.len() / 2).saturating_sub(usize::from(!safety.told.is_empty()));
        let missing = missing.saturating_sub(safety.asked.len());
        let mut others = view.others(self.me);
        others.retain(|id| view.has_member(*id) && !safety.asked.contains(*id));
        // First those who hear nothing of it otherwise.
        others.sort_by_key(|id| safety.told.contains(*id));
        others.truncate(missing);
        self.ask_to_confirm(name, others);
    }

    /// The lock is here, and too few know: asks all others who have not confirmed.
    pub(super) fn ask_the_rest(&mut self, name: &Name) {
        let view = self.below.view();
        let Some(lock) = self.lifted.names.get(name) else { return };
        let safety = &lock.safety;
        let mut others = view.others(self.me);
        others.retain(|id| {
            view.has_member(*id) && !safety.known.contains(*id) && !safety.asked.contains(*id)
        });
        self.ask_to_confirm(name, others);
    }

    fn ask_to_confirm(&mut self, name: &Name, others: Vec<ProcessId>) {
        for to in others {
            if let Some(lock) = self.lifted.names.get_mut(name) {
                lock.safety.asked.insert(to);
            }
            self.send_inside(to, name, Say::Safe);
        }
    }
}
