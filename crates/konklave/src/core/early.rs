//! Messages for those who do not wait until a majority has them: they come when their place in the one order is
//! known. Whoever goes on to the next view has all of them, in this order; who is excluded may have
//! been told what the others never are.
//!
//! What a message is worth may depend on what comes before it: who belongs to the group, who is asked for
//! its state. So nobody is told a message before such a thing that stands before it in the order.

use super::Core;
use super::circles::{Said, Seat};
use crate::table::Op;

/// How far a seat is ahead.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Early {
    /// How many messages it was told that the group has not delivered yet.
    told: u64,
    /// What stands before this place comes when it is delivered.
    from: u64,
}

impl Core {
    /// A member of a group here wants its messages early, from now on.
    pub(crate) fn hear_early(&mut self, number: u64) {
        self.circles.looked = self.circles.looked.max(self.applied);
        self.tell_early();
        let from = self.circles.looked;
        if let Some(seat) = self.circles.seats.get_mut(&number) {
            seat.early.get_or_insert(Early { told: 0, from });
        }
    }

    /// Tells those who want to know what has got its place since we looked.
    pub(super) fn tell_early(&mut self) {
        let circles = &mut self.circles;
        if circles.seats.values().all(|seat| seat.early.is_none()) {
            return;
        }
        circles.looked = circles.looked.max(self.applied);
        while let Some(entry) = self.below.entry_at(circles.looked) {
            for op in entry.command.ops.iter() {
                for seat in circles.seats.values_mut() {
                    seat.look_at(op, circles.looked, self.applied);
                }
            }
            circles.looked += 1;
        }
    }
}

impl Seat {
    /// Operation `op` has got this place; all before place `applied` have been delivered.
    fn look_at(&mut self, op: &Op, place: u64, applied: u64) {
        let Some(early) = &mut self.early else { return };
        let (from, payload) = match op {
            Op::Say { group, claim, payload } if *group == self.group => (*claim, payload),
            Op::Enter { group, .. }
            | Op::Exit { group, .. }
            | Op::Give { group, .. }
            | Op::AskAnother { group, .. }
                if *group == self.group =>
            {
                early.from = place + 1;
                return;
            }
            _ => return,
        };
        let Some(sender) = self.places.iter().find(|p| p.claim == from) else { return };
        if !self.settled || applied < early.from {
            early.from = place + 1;
            return;
        }
        early.told += 1;
        let (label, payload) = (sender.label.clone(), payload.0.clone());
        self.ear.tell(Said::Message { from, label, payload });
    }

    /// The next message is delivered: whether it was told before.
    pub(super) fn was_told(&mut self) -> bool {
        let Some(early) = self.early.as_mut().filter(|early| early.told > 0) else { return false };
        early.told -= 1;
        true
    }

    /// A view has ended, with all that was said in it; places are counted anew.
    pub(super) fn begin_view(&mut self) {
        if let Some(early) = &mut self.early {
            *early = Early::default();
        }
    }
}
