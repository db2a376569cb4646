//! Agreed (non-uniform) delivery: a subscription gets a message as soon as its position in the order is
//! known, without waiting for a majority to have it. Members that continue to the next view deliver the same
//! messages in the same order. An excluded member may have delivered messages that the others never deliver.
//!
//! Whether a message counts depends on operations before it: entries to and exits from the group, and
//! requests for its state. So a subscription gets no message early that stands behind an undelivered
//! operation of this kind.

use super::Core;
use super::app_groups::{GroupOutput, Subscription};
use crate::table::Op;

/// How far a subscription is ahead of uniform delivery.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AgreedDelivery {
    /// The number of messages delivered early that the group has not delivered yet.
    ahead: u64,
    /// Deliver nothing early before the group has delivered all positions below this one.
    not_before: u64,
}

impl Core {
    /// Switches a local subscription to agreed delivery.
    pub(crate) fn deliver_agreed(&mut self, number: u64) {
        self.app_groups.scanned = self.app_groups.scanned.max(self.applied);
        self.deliver_ordered();
        let not_before = self.app_groups.scanned;
        if let Some(subscription) = self.app_groups.subscriptions.get_mut(&number) {
            subscription.agreed_delivery.get_or_insert(AgreedDelivery { ahead: 0, not_before });
        }
    }

    /// Delivers newly ordered messages to the subscriptions with agreed delivery.
    pub(super) fn deliver_ordered(&mut self) {
        let app_groups = &mut self.app_groups;
        if app_groups
            .subscriptions
            .values()
            .all(|subscription| subscription.agreed_delivery.is_none())
        {
            return;
        }
        app_groups.scanned = app_groups.scanned.max(self.applied);
        while let Some(entry) = self.forming.group().entry_at(app_groups.scanned) {
            for op in entry.command.ops.iter() {
                for subscription in app_groups.subscriptions.values_mut() {
                    subscription.scan(op, app_groups.scanned, self.applied);
                }
            }
            app_groups.scanned += 1;
        }
    }
}

impl Subscription {
    /// Examines operation `op` at position `position`; the group has delivered all positions below `applied`.
    fn scan(&mut self, op: &Op, position: u64, applied: u64) {
        let Some(agreed_delivery) = &mut self.agreed_delivery else { return };
        let (from, payload) = match op {
            Op::Say { group, claim, payload } if *group == self.group => (*claim, payload),
            Op::Enter { group, .. }
            | Op::Exit { group, .. }
            | Op::Give { group, .. }
            | Op::AskAnother { group, .. }
                if *group == self.group =>
            {
                agreed_delivery.not_before = position + 1;
                return;
            }
            _ => return,
        };
        let Some(sender) = self.members.iter().find(|p| p.claim == from) else { return };
        if !self.has_state || applied < agreed_delivery.not_before {
            agreed_delivery.not_before = position + 1;
            return;
        }
        agreed_delivery.ahead += 1;
        let (label, payload) = (sender.label.clone(), payload.0.clone());
        self.outbox.send(GroupOutput::Message { from, label, payload });
    }

    /// Called when the group delivers the next message: whether this subscription already has it.
    pub(super) fn was_delivered_early(&mut self) -> bool {
        let Some(agreed_delivery) =
            self.agreed_delivery.as_mut().filter(|agreed_delivery| agreed_delivery.ahead > 0)
        else {
            return false;
        };
        agreed_delivery.ahead -= 1;
        true
    }

    /// A new view counts positions from zero; all messages of the old view have been delivered.
    pub(super) fn begin_view(&mut self) {
        if let Some(agreed_delivery) = &mut self.agreed_delivery {
            *agreed_delivery = AgreedDelivery::default();
        }
    }
}
