//! The groups of the application that sessions here belong to.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::Core;
use super::agreed_delivery::AgreedDelivery;
use crate::error::Error;
use crate::table::{AppMember, ClaimId, Name, Op, Payload};

/// What a member of a group is told.
#[derive(Debug)]
pub(crate) enum GroupOutput {
    State(Arc<[u8]>),
    View(Vec<AppMember>),
    Message {
        from: ClaimId,
        label: Arc<str>,
        payload: Arc<[u8]>,
    },
    /// Give your state to this one.
    Ask {
        to: ClaimId,
        by: ClaimId,
    },
    /// We are not part of it any more.
    Lost,
}

/// How much may wait for a member that does not read: it is taken out then, so that it costs
/// the others nothing, and us no more memory.
const WAITING: usize = 64 << 20;

impl GroupOutput {
    /// About how many bytes of memory it takes.
    pub(crate) fn weight(&self) -> usize {
        let more = match self {
            Self::Message { payload, .. } => payload.len(),
            Self::State(state) => state.len(),
            Self::View(members) => members.len() * size_of::<AppMember>(),
            Self::Ask { .. } | Self::Lost => 0,
        };
        size_of::<Self>() + more
    }
}

/// Where a member of a group is told what happens, and how much of it waits there.
pub(crate) struct Outbox {
    pub(crate) to: mpsc::UnboundedSender<GroupOutput>,
    pub(crate) waiting: Arc<AtomicUsize>,
}

impl Outbox {
    pub(super) fn tell(&self, said: GroupOutput) {
        self.waiting.fetch_add(said.weight(), Ordering::Relaxed);
        let _ = self.to.send(said);
    }

    fn is_full(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > WAITING
    }
}

/// Answers someone who joins.
pub(crate) type Entered = oneshot::Sender<Result<(u64, ClaimId), Error>>;

pub(super) struct Subscription {
    pub(super) group: Name,
    session: u32,
    label: Arc<str>,
    claim: Option<ClaimId>,
    pub(super) outbox: Outbox,
    entered: Option<Entered>,
    /// Whether it has the state; before, what comes has to wait for that.
    pub(super) has_state: bool,
    /// What has come since the state was asked for, and about how many bytes of memory it takes.
    buffer: Vec<GroupOutput>,
    buffered: usize,
    pub(super) members: Vec<AppMember>,
    /// How far it is ahead of the group, if it wants its messages agreed_delivery.
    pub(super) agreed_delivery: Option<AgreedDelivery>,
    /// Who was asked for the state, and when.
    asked: Option<(ClaimId, Duration)>,
}

#[derive(Default)]
pub(super) struct AppGroups {
    pub(super) subscriptions: BTreeMap<u64, Subscription>,
    /// Up to which place of the order we have scanned for messages that someone wants agreed_delivery.
    pub(super) scanned: u64,
}

impl AppGroups {
    /// A new view begins, and members of messages are counted anew.
    pub(super) fn begin_view(&mut self) {
        self.scanned = 0;
        self.subscriptions.values_mut().for_each(Subscription::begin_view);
    }

    /// We are outside: no group here goes on.
    pub(super) fn end(&mut self) {
        // Who has not been let in yet asks again.
        self.subscriptions.retain(|_, subscription| {
            if subscription.entered.is_none() {
                subscription.outbox.tell(GroupOutput::Lost);
            }
            (subscription.claim, subscription.asked) = (None, None);
            (subscription.buffer, subscription.buffered) = (Vec::new(), 0);
            subscription.entered.is_some()
        });
    }

    /// We are gone for good.
    pub(super) fn close(&mut self) {
        self.end();
        for (_, subscription) in std::mem::take(&mut self.subscriptions) {
            subscription.refuse(Error::Left);
        }
    }
}

impl Core {
    pub(crate) fn enter_group(
        &mut self,
        session: u32,
        group: Name,
        label: Arc<str>,
        outbox: Outbox,
        entered: Entered,
    ) -> u64 {
        let number = self.claims.next_number();
        if let Err(error) = self.is_usable(session) {
            let _ = entered.send(Err(error));
            return number;
        }
        let subscription = Subscription {
            group,
            session,
            label,
            claim: None,
            outbox,
            entered: Some(entered),
            has_state: false,
            buffer: Vec::new(),
            buffered: 0,
            members: Vec::new(),
            agreed_delivery: None,
            asked: None,
        };
        self.app_groups.subscriptions.insert(number, subscription);
        self.ask_entry(number);
        self.pump();
        number
    }

    fn ask_entry(&mut self, number: u64) {
        if !self.is_member() {
            return;
        }
        let member = self.own_member();
        let Some(subscription) = self.app_groups.subscriptions.get_mut(&number) else { return };
        let claim = ClaimId { member, session: subscription.session, number };
        subscription.claim = Some(claim);
        let (group, label) = (subscription.group.clone(), subscription.label.clone());
        self.submit(Op::Enter { group, claim, label });
    }

    pub(super) fn reenter_groups(&mut self) {
        let numbers: Vec<u64> = self.app_groups.subscriptions.keys().copied().collect();
        numbers.into_iter().for_each(|number| self.ask_entry(number));
    }

    pub(crate) fn exit_group(&mut self, number: u64) {
        let Some(subscription) = self.app_groups.subscriptions.remove(&number) else { return };
        if let Some(claim) = subscription.claim {
            self.submit(Op::Exit { group: subscription.group.clone(), claim });
            self.pump();
        }
        subscription.refuse(Error::Closed);
    }

    pub(super) fn end_subscriptions(&mut self, session: u32) {
        let of = |(n, s): (&u64, &Subscription)| (s.session == session).then_some(*n);
        let numbers: Vec<u64> = self.app_groups.subscriptions.iter().filter_map(of).collect();
        for number in numbers {
            if let Some(subscription) = self.app_groups.subscriptions.get(&number) {
                subscription.outbox.tell(GroupOutput::Lost);
            }
            self.exit_group(number);
        }
    }

    /// Sends a message to a group. False: not now, too much waits.
    pub(crate) fn say(&mut self, number: u64, payload: &Arc<[u8]>) -> Result<bool, Error> {
        let subscription = self.app_groups.subscriptions.get(&number);
        let Some((claim, group)) = subscription.and_then(|s| Some((s.claim?, s.group.clone())))
        else {
            return Err(Error::Lost("the group".into()));
        };
        if self.is_full() {
            return Ok(false);
        }
        self.submit(Op::Say { group, claim, payload: Payload(payload.clone()) });
        // Together with those that come in the same moment: see `pump`.
        self.pump();
        Ok(true)
    }

    pub(crate) fn give_state(&mut self, number: u64, to: ClaimId, by: ClaimId, state: Arc<[u8]>) {
        if let Some(subscription) = self.app_groups.subscriptions.get(&number) {
            let (group, parts) = (subscription.group.clone(), Payload(state));
            self.submit(Op::Give { group, to, by, parts });
            self.pump();
        }
    }

    fn subscriptions_of(&mut self, group: &Name) -> impl Iterator<Item = &mut Subscription> {
        self.app_groups.subscriptions.values_mut().filter(move |s| s.group == *group)
    }

    pub(super) fn on_app_view(&mut self, group: &Name, members: &[AppMember]) {
        for subscription in self.subscriptions_of(group) {
            subscription.members = members.to_vec();
            subscription.confirm_entry();
            subscription.hear(GroupOutput::View(members.to_vec()));
        }
    }

    pub(super) fn on_app_message(&mut self, group: &Name, from: ClaimId, payload: &Payload) {
        for subscription in self.subscriptions_of(group) {
            if subscription.was_delivered_early() {
                continue;
            }
            let place = subscription.members.iter().find(|p| p.claim == from);
            let label = place.map_or_else(|| "".into(), |p| p.label.clone());
            subscription.hear(GroupOutput::Message { from, label, payload: payload.0.clone() });
        }
        self.drop_slow_readers();
    }

    /// Who does not read what it is told is a member no more.
    fn drop_slow_readers(&mut self) {
        let full = |s: &Subscription| s.outbox.is_full() || s.buffered > WAITING;
        let slow = |(n, s): (&u64, &Subscription)| full(s).then_some(*n);
        let slow: Vec<u64> = self.app_groups.subscriptions.iter().filter_map(slow).collect();
        for number in slow {
            let Some(subscription) = self.app_groups.subscriptions.remove(&number) else {
                continue;
            };
            subscription.outbox.tell(GroupOutput::Lost);
            if let Some(claim) = subscription.claim {
                self.submit(Op::Exit { group: subscription.group.clone(), claim });
            }
            subscription.refuse(Error::Lost("the group".into()));
        }
    }

    /// Who was asked for a state and has not given it for so long gives it no more: someone else shall.
    pub(super) fn ask_other_donors(&mut self) {
        let (now, patience) = (self.now, self.config.timings.silence * 2);
        let mut ops = Vec::new();
        for subscription in self
            .app_groups
            .subscriptions
            .values_mut()
            .filter(|subscription| !subscription.has_state)
        {
            if let (Some(to), Some((instead_of, at))) =
                (subscription.claim, &mut subscription.asked)
                && *at + patience <= now
            {
                *at = now;
                let (group, instead_of) = (subscription.group.clone(), *instead_of);
                ops.push(Op::AskAnother { group, to, instead_of });
            }
        }
        ops.into_iter().for_each(|op| self.submit(op));
    }

    pub(super) fn on_state_requested(&mut self, group: &Name, donor: ClaimId, to: ClaimId) {
        let now = self.now;
        for subscription in self.subscriptions_of(group) {
            if subscription.claim == Some(to) {
                subscription.asked = Some((donor, now));
                // The state will include all before this.
                subscription.buffer.retain(|said| matches!(said, GroupOutput::View(_)));
                subscription.buffered = subscription.buffer.iter().map(GroupOutput::weight).sum();
            }
            if subscription.claim == Some(donor) {
                subscription.hear(GroupOutput::Ask { to, by: donor });
            }
        }
    }

    pub(super) fn on_state_given(&mut self, group: &Name, to: ClaimId, state: &Payload) {
        for subscription in self.subscriptions_of(group).filter(|s| s.claim == Some(to)) {
            if std::mem::replace(&mut subscription.has_state, true) {
                continue;
            }
            subscription.outbox.tell(GroupOutput::State(state.0.clone()));
            for said in std::mem::take(&mut subscription.buffer) {
                subscription.outbox.tell(said);
            }
            subscription.buffered = 0;
        }
    }
}

impl Subscription {
    fn hear(&mut self, said: GroupOutput) {
        // What was before we belong to it is part of the state.
        if self.claim.is_none() || self.entered.is_some() {
            return;
        }
        if self.has_state {
            self.outbox.tell(said);
        } else {
            self.buffered += said.weight();
            self.buffer.push(said);
        }
    }

    /// It belongs to the group as soon as the group says so: the state comes when someone gives it.
    fn confirm_entry(&mut self) {
        let Some(claim) = self.claim.filter(|c| self.members.iter().any(|p| p.claim == *c)) else {
            return;
        };
        if let Some(entered) = self.entered.take() {
            let _ = entered.send(Ok((claim.number, claim)));
        }
    }

    /// Who still waits to be let in will not be.
    fn refuse(self, error: Error) {
        if let Some(entered) = self.entered {
            let _ = entered.send(Err(error));
        }
    }
}
