//! Groups of the application: the subscriptions of local sessions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::Core;
use super::agreed_delivery::AgreedDelivery;
use crate::error::Error;
use crate::group::GroupLoss;
use crate::status::Loss;
use crate::table::{AppMember, ClaimId, GivenState, Name, Op, Payload};
use crate::wire::MAX_MESSAGE;

/// An event for a member of a group.
#[derive(Debug)]
pub(crate) enum GroupOutput {
    First,
    NoState,
    State(Arc<[u8]>),
    View {
        generation: u32,
        members: Vec<AppMember>,
    },
    Message {
        from: ClaimId,
        label: Arc<str>,
        payload: Arc<[u8]>,
    },
    /// Give your state to this member.
    Ask {
        to: ClaimId,
        by: ClaimId,
    },
    /// This member no longer belongs to the group.
    Lost(GroupLoss),
}

/// The most bytes that may wait for a slow reader. Beyond that it is removed from the group, so that it costs
/// the others nothing and this node no more memory.
const MAX_WAITING: usize = 64 << 20;

impl GroupOutput {
    /// About how many bytes of memory it takes.
    pub(crate) fn weight(&self) -> usize {
        let more = match self {
            Self::Message { payload, .. } => payload.len(),
            Self::State(state) => state.len(),
            Self::View { members, .. } => members.len() * size_of::<AppMember>(),
            Self::First | Self::NoState | Self::Ask { .. } | Self::Lost(_) => 0,
        };
        size_of::<Self>() + more
    }
}

/// The queue of events for a local member, and the bytes that wait in it.
pub(crate) struct Outbox {
    pub(crate) to: mpsc::UnboundedSender<GroupOutput>,
    pub(crate) waiting: Arc<AtomicUsize>,
}

impl Outbox {
    pub(super) fn send(&self, event: GroupOutput) {
        self.waiting.fetch_add(event.weight(), Ordering::Relaxed);
        let _ = self.to.send(event);
    }

    fn is_full(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > MAX_WAITING
    }
}

/// Answers the session that joins.
pub(crate) type Entered = oneshot::Sender<Result<(u64, ClaimId), Error>>;

pub(super) struct Subscription {
    pub(super) group: Name,
    session: u32,
    label: Arc<str>,
    claim: Option<ClaimId>,
    pub(super) outbox: Outbox,
    entered: Option<Entered>,
    /// Whether it has the state of the group; until then its events are buffered.
    pub(super) has_state: bool,
    /// Events since the state was requested, and about how many bytes of memory they take.
    buffer: Vec<GroupOutput>,
    buffered: usize,
    pub(super) members: Vec<AppMember>,
    /// With agreed delivery: how far it is ahead of the group.
    pub(super) agreed_delivery: Option<AgreedDelivery>,
    /// The member that was asked for the state, and when it was asked, or gave the last piece.
    donor_asked: Option<(ClaimId, Duration)>,
    /// The pieces of the state so far.
    pieces: Vec<u8>,
}

#[derive(Default)]
pub(super) struct AppGroups {
    pub(super) subscriptions: BTreeMap<u64, Subscription>,
    /// All positions below this one have been scanned for agreed delivery.
    pub(super) scanned: u64,
}

impl AppGroups {
    /// A new view begins: positions are counted from zero.
    pub(super) fn begin_view(&mut self) {
        self.scanned = 0;
        self.subscriptions.values_mut().for_each(Subscription::begin_view);
    }

    /// This node is outside the group: all subscriptions are lost.
    pub(super) fn end(&mut self, why: Loss) {
        // Subscriptions whose entry was never confirmed are submitted again later.
        self.subscriptions.retain(|_, subscription| {
            if subscription.entered.is_none() {
                subscription.outbox.send(GroupOutput::Lost(GroupLoss::Node(why)));
            }
            (subscription.claim, subscription.donor_asked) = (None, None);
            (subscription.buffer, subscription.buffered) = (Vec::new(), 0);
            subscription.pieces = Vec::new();
            subscription.entered.is_some()
        });
    }

    /// The node has left for good.
    pub(super) fn close(&mut self) {
        self.end(Loss::Left);
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
            donor_asked: None,
            pieces: Vec::new(),
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
                subscription.outbox.send(GroupOutput::Lost(GroupLoss::Node(Loss::Closed)));
            }
            self.exit_group(number);
        }
    }

    /// Sends a message to a group. Returns `false` if too many operations are queued; try again later.
    pub(crate) fn send_to_group(
        &mut self,
        number: u64,
        payload: &Arc<[u8]>,
    ) -> Result<bool, Error> {
        let subscription = self.app_groups.subscriptions.get(&number);
        let Some((claim, group)) = subscription.and_then(|s| Some((s.claim?, s.group.clone())))
        else {
            return Err(Error::Lost("the group".into()));
        };
        if self.is_full() {
            return Ok(false);
        }
        self.submit(Op::Say { group, claim, payload: Payload(payload.clone()) });
        // Batched with messages of the same moment, see `pump`.
        self.pump();
        Ok(true)
    }

    /// Gives the state of a member to a new one, in pieces no longer than a message.
    pub(crate) fn give_state(&mut self, number: u64, to: ClaimId, by: ClaimId, state: &[u8]) {
        let Some(subscription) = self.app_groups.subscriptions.get(&number) else { return };
        let group = subscription.group.clone();
        // An empty state has one piece, too.
        let mut rest = state;
        loop {
            let (piece, after) = rest.split_at(rest.len().min(MAX_MESSAGE));
            let (piece, more) = (Payload(piece.into()), !after.is_empty());
            self.submit(Op::Give { group: group.clone(), to, by, piece, more });
            if !more {
                break;
            }
            rest = after;
        }
        self.pump();
    }

    /// This member has no state to give: another one is asked.
    pub(crate) fn decline_state(&mut self, number: u64, to: ClaimId, by: ClaimId) {
        if let Some(subscription) = self.app_groups.subscriptions.get(&number) {
            let group = subscription.group.clone();
            self.submit(Op::AskAnother { group, to, instead_of: by, declined: true });
            self.pump();
        }
    }

    fn subscriptions_of(&mut self, group: &Name) -> impl Iterator<Item = &mut Subscription> {
        self.app_groups.subscriptions.values_mut().filter(move |s| s.group == *group)
    }

    pub(super) fn on_app_view(&mut self, group: &Name, members: &[AppMember]) {
        let generation = self.forming.group().view().id.generation;
        for subscription in self.subscriptions_of(group) {
            subscription.members = members.to_vec();
            subscription.confirm_entry();
            subscription.deliver(GroupOutput::View { generation, members: members.to_vec() });
        }
    }

    pub(super) fn on_app_message(&mut self, group: &Name, from: ClaimId, payload: &Payload) {
        for subscription in self.subscriptions_of(group) {
            if subscription.was_delivered_early() {
                continue;
            }
            let member = subscription.members.iter().find(|p| p.claim == from);
            let label = member.map_or_else(|| "".into(), |p| p.label.clone());
            subscription.deliver(GroupOutput::Message { from, label, payload: payload.0.clone() });
        }
        self.drop_slow_readers();
    }

    /// Removes local members that do not read their events.
    fn drop_slow_readers(&mut self) {
        let full = |s: &Subscription| s.outbox.is_full() || s.buffered > MAX_WAITING;
        let slow = |(n, s): (&u64, &Subscription)| full(s).then_some(*n);
        let slow: Vec<u64> = self.app_groups.subscriptions.iter().filter_map(slow).collect();
        for number in slow {
            let Some(subscription) = self.app_groups.subscriptions.remove(&number) else {
                continue;
            };
            subscription.outbox.send(GroupOutput::Lost(GroupLoss::TooSlow));
            if let Some(claim) = subscription.claim {
                self.submit(Op::Exit { group: subscription.group.clone(), claim });
            }
            subscription.refuse(Error::Lost("the group".into()));
        }
    }

    /// A donor that has not given the state for a while is replaced by another one.
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
                (subscription.claim, &mut subscription.donor_asked)
                && *at + patience <= now
            {
                *at = now;
                let (group, instead_of) = (subscription.group.clone(), *instead_of);
                ops.push(Op::AskAnother { group, to, instead_of, declined: false });
            }
        }
        ops.into_iter().for_each(|op| self.submit(op));
    }

    pub(super) fn on_state_requested(&mut self, group: &Name, donor: ClaimId, to: ClaimId) {
        let now = self.now;
        for subscription in self.subscriptions_of(group) {
            if subscription.claim == Some(to) {
                subscription.donor_asked = Some((donor, now));
                subscription.pieces = Vec::new();
                // The state will include all earlier messages.
                subscription.buffer.retain(|event| matches!(event, GroupOutput::View { .. }));
                subscription.buffered = subscription.buffer.iter().map(GroupOutput::weight).sum();
            }
            if subscription.claim == Some(donor) {
                subscription.deliver(GroupOutput::Ask { to, by: donor });
            }
        }
    }

    pub(super) fn on_state_given(&mut self, group: &Name, to: ClaimId, state: GivenState) {
        let now = self.now;
        for subscription in self.subscriptions_of(group).filter(|s| s.claim == Some(to)) {
            if subscription.has_state {
                continue;
            }
            let state = match &state {
                GivenState::First => GroupOutput::First,
                GivenState::Declined => GroupOutput::NoState,
                GivenState::Piece { bytes, more: true } => {
                    subscription.pieces.extend_from_slice(&bytes.0);
                    subscription.donor_asked.iter_mut().for_each(|(_, last)| *last = now);
                    continue;
                }
                GivenState::Piece { bytes, more: false } if subscription.pieces.is_empty() => {
                    GroupOutput::State(bytes.0.clone())
                }
                GivenState::Piece { bytes, more: false } => {
                    subscription.pieces.extend_from_slice(&bytes.0);
                    GroupOutput::State(std::mem::take(&mut subscription.pieces).into())
                }
            };
            subscription.has_state = true;
            subscription.outbox.send(state);
            for event in std::mem::take(&mut subscription.buffer) {
                subscription.outbox.send(event);
            }
            subscription.buffered = 0;
        }
    }
}

impl Subscription {
    fn deliver(&mut self, event: GroupOutput) {
        // The state includes all messages before the entry.
        if self.claim.is_none() || self.entered.is_some() {
            return;
        }
        if self.has_state {
            self.outbox.send(event);
        } else {
            self.buffered += event.weight();
            self.buffer.push(event);
        }
    }

    /// Confirms the entry as soon as the group knows the member. Its state follows when the donor gives it.
    fn confirm_entry(&mut self) {
        let Some(claim) = self.claim.filter(|c| self.members.iter().any(|p| p.claim == *c)) else {
            return;
        };
        if let Some(entered) = self.entered.take() {
            let _ = entered.send(Ok((claim.number, claim)));
        }
    }

    /// Fails an entry that was not confirmed.
    fn refuse(self, error: Error) {
        if let Some(entered) = self.entered {
            let _ = entered.send(Err(error));
        }
    }
}
