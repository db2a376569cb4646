//! What has to leave at once, and what may wait for company.

use konklave_algorithms::group::virtual_synchrony::{Entry, Message};
use konklave_process::ProcessId;

use super::Core;
use crate::shared::Hurry;
use crate::table::{Batch, Hold, Op, Space};
use crate::wire::Frame;

impl Core {
    /// How much of a hurry a frame is in. Among three, who follows delivers what the leader and it
    /// itself have: what another follower has matters only for what may be forgotten. And the leader
    /// delivers what a follower sent when that one has it: it will say so.
    pub(crate) fn hurry(&self, to: ProcessId, frame: &Frame) -> Hurry {
        let view = self.below.view();
        let held = match frame {
            Frame::Group(Message::Ack { held, .. }) => held,
            Frame::Group(Message::Order { position, entry, .. }) => {
                let third = view.members.len() == 3 && view.has_member(to) && entry.sender != to;
                let lazy = third && self.applied == *position && self.concerns_sender(entry);
                return if lazy { Hurry::Lazy } else { Hurry::Now };
            }
            _ => return Hurry::Now,
        };
        if view.members.len() > 3 {
            return Hurry::Soon;
        }
        let sender = held.checked_sub(1).and_then(|last| self.below.sender_of(last));
        let another = |sender: ProcessId| sender != self.me && sender != to;
        match view.leader() == Some(to) {
            true if sender.is_some_and(another) => Hurry::Lazy,
            true => Hurry::Soon,
            false => Hurry::Lazy,
        }
    }

    /// Whether a message that has just got its place concerns nobody but its sender: it asks for locks
    /// that nobody has or wants. To know that, the table must have taken in all that came before.
    fn concerns_sender(&self, entry: &Entry<Batch>) -> bool {
        entry.sender != self.me
            && entry.command.0.iter().all(|op| match op {
                Op::Acquire { key, hold: Hold::Exclusive, .. } => {
                    key.space == Space::Lock && self.table.lock(key).is_none()
                }
                _ => false,
            })
    }
}
