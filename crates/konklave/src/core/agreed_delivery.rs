//! Messages for those who do not wait until a majority has them: they come when their place in the one order is
//! known. Whoever goes on to the next view has all of them, in this order; who is excluded may have
//! been told what the others never are.
//!
//! What a message is worth may depend on what comes before it: who belongs to the group, who is asked for
//! its state. So nobody is told a message before such a thing that stands before it in the order.

use super::Core;
use super::app_groups::{GroupOutput, Subscription};
use crate::table::Op;

/// How far a subscription is ahead.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AgreedDelivery {
    /// How many messages it was told that the group has not delivered yet.
    told: u64,
    /// What stands before this place comes when it is delivered.
    from: u64,
}

impl Core {
    /// A member of a group here wants its messages agreed_delivery, from now on.
    pub(crate) fn deliver_agreed(&mut self, number: u64) {
        self.app_groups.scanned = self.app_groups.scanned.max(self.applied);
        self.deliver_ordered();
        let from = self.app_groups.scanned;
        if let Some(subscription) = self.app_groups.subscriptions.get_mut(&number) {
            subscription.agreed_delivery.get_or_insert(AgreedDelivery { told: 0, from });
        }
    }

    /// Tells those who want to know what has got its place since we scanned.
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
        while let Some(entry) = self.group.entry_at(app_groups.scanned) {
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
    /// Operation `op` has got this place; all before place `applied` have been delivered.
    fn scan(&mut self, op: &Op, place: u64, applied: u64) {
        let Some(agreed_delivery) = &mut self.agreed_delivery else { return };
        let (from, payload) = match op {
            Op::Say { group, claim, payload } if *group == self.group => (*claim, payload),
            Op::Enter { group, .. }
            | Op::Exit { group, .. }
            | Op::Give { group, .. }
            | Op::AskAnother { group, .. }
                if *group == self.group =>
            {
                agreed_delivery.from = place + 1;
                return;
            }
            _ => return,
        };
        let Some(sender) = self.members.iter().find(|p| p.claim == from) else { return };
        if !self.has_state || applied < agreed_delivery.from {
            agreed_delivery.from = place + 1;
            return;
        }
        agreed_delivery.told += 1;
        let (label, payload) = (sender.label.clone(), payload.0.clone());
        self.outbox.tell(GroupOutput::Message { from, label, payload });
    }

    /// The next message is delivered: whether it was told before.
    pub(super) fn was_delivered_early(&mut self) -> bool {
        let Some(agreed_delivery) =
            self.agreed_delivery.as_mut().filter(|agreed_delivery| agreed_delivery.told > 0)
        else {
            return false;
        };
        agreed_delivery.told -= 1;
        true
    }

    /// A view has ended, with all that was said in it; members are counted anew.
    pub(super) fn begin_view(&mut self) {
        if let Some(agreed_delivery) = &mut self.agreed_delivery {
            *agreed_delivery = AgreedDelivery::default();
        }
    }
}
