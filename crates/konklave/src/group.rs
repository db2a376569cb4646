//! Groups of the application: members that get the same messages in the same order.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use crate::core::{GroupOutput, Outbox};
use crate::lock::check_name;
use crate::status::Loss;
use crate::table::{AppMember, ClaimId};
use crate::wire::MAX_MESSAGE;
use crate::{Error, NodeId, Session};

/// A member of a group.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct GroupMember {
    /// Its node.
    pub node: NodeId,
    /// Its session at that node.
    pub session: u32,
    /// Distinguishes it from all other members, also those of earlier incarnations of its node.
    pub id: String,
    /// Its label.
    pub label: String,
}

impl GroupMember {
    fn of(claim: ClaimId, label: &str) -> Self {
        let ClaimId { member, session, number } = claim;
        let id = format!("{}.{}.{number}", member.id.0, member.incarnation);
        Self { node: member.id.0, session, id, label: label.into() }
    }
}

/// The members of a group until the next view, the most senior first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GroupView {
    /// Grows when the nodes found their group anew, after all were down. Messages of earlier generations may be
    /// lost.
    pub generation: u32,
    /// The members.
    pub members: Vec<GroupMember>,
}

/// An event of a group, in the same order for all members.
#[derive(Debug)]
#[non_exhaustive]
pub enum GroupEvent {
    /// The first event, if no other member has the state of the group: this member begins with its own. A
    /// survivor of an earlier group may continue with what it has.
    First,
    /// The first event, if every member with the state [declined](Snapshot::decline) to give it.
    NoState,
    /// The first event otherwise: the state of the group before this member joined, as another member
    /// [gave](Snapshot::give) it.
    State(Arc<[u8]>),
    /// The members from here on.
    View(GroupView),
    /// A message; the sender gets its own ones, too.
    Message {
        /// The sender.
        from: GroupMember,
        /// The content.
        bytes: Arc<[u8]>,
    },
    /// A new member needs the state after all events so far.
    Snapshot(Snapshot),
    /// This member no longer belongs to the group. Join again to come back.
    Lost(GroupLoss),
}

/// Why a member no longer belongs to a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum GroupLoss {
    /// Its node or its session was lost, for this reason.
    Node(Loss),
    /// It read too slowly: 64 MiB of events were waiting.
    TooSlow,
}

impl std::fmt::Display for GroupLoss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Node(loss) => loss.fmt(f),
            Self::TooSlow => f.write_str("it read too slowly"),
        }
    }
}

/// The longest state that a member can [give](Snapshot::give) to a new one, in bytes.
pub const MAX_STATE: usize = 32 << 20;

struct ExitOnDrop {
    session: Session,
    number: Option<u64>,
}

impl ExitOnDrop {
    fn done(mut self) -> Session {
        self.number = None;
        self.session.clone()
    }
}

impl Drop for ExitOnDrop {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.session.shared().with(|core, _| core.exit_group(number));
        }
    }
}

/// A membership in a group, until it is dropped.
#[derive(Debug)]
pub struct Group {
    session: Session,
    number: u64,
    me: GroupMember,
    events: mpsc::UnboundedReceiver<GroupOutput>,
    waiting: Arc<AtomicUsize>,
}

impl Group {
    pub(crate) async fn enter(session: Session, name: &str) -> Result<Self, Error> {
        let name = check_name(name)?;
        let (to, events) = mpsc::unbounded_channel();
        let (entered, answer) = oneshot::channel();
        let (shared, waiting) = (session.shared().clone(), Arc::<AtomicUsize>::default());
        let (number, label) = shared.with(|core, _| {
            let label = core.label(session.number());
            let label = if label.is_empty() { shared.name.clone() } else { label };
            let outbox = Outbox { to, waiting: waiting.clone() };
            (core.enter_group(session.number(), name, label.clone(), outbox, entered), label)
        });
        // Withdraws the entry if this future is dropped.
        let exit = ExitOnDrop { session, number: Some(number) };
        let (_, claim) = answer.await.map_err(|_| Error::Left)??;
        let me = GroupMember::of(claim, &label);
        Ok(Self { session: exit.done(), number, me, events, waiting })
    }

    /// Delivers messages as soon as their position in the order is known (*agreed* delivery), without waiting
    /// for a majority to have them (*uniform* delivery): sooner where the majority is slower than the leader.
    /// Each member chooses for itself.
    ///
    /// Order and completeness are the same for all members that stay together. But an excluded node may have
    /// delivered a last message that the others never get; so use this for messages that may be lost with
    /// their node.
    pub fn agreed(self) -> Self {
        self.session.shared().with(|core, _| core.deliver_agreed(self.number));
        self
    }

    /// This member.
    pub fn me(&self) -> &GroupMember {
        &self.me
    }

    /// Sends a message to all members, this one included. Returns when it is queued; it is delivered when
    /// [`next`](Self::next) returns it. Waits while too many messages are queued.
    pub async fn send(&self, bytes: impl Into<Arc<[u8]>>) -> Result<(), Error> {
        let bytes = bytes.into();
        if bytes.len() > MAX_MESSAGE {
            return Err(Error::TooLong { bytes: bytes.len(), limit: MAX_MESSAGE });
        }
        let shared = self.session.shared();
        loop {
            let room = shared.room.notified();
            if shared.with(|core, _| core.send_to_group(self.number, &bytes))? {
                return Ok(());
            }
            room.await;
        }
    }

    /// The next event; `None` when the node has ended. Cancel safe.
    pub async fn next(&mut self) -> Option<GroupEvent> {
        let output = self.events.recv().await?;
        Some(self.event(output))
    }

    /// The next event, if there is one already.
    pub fn try_next(&mut self) -> Option<GroupEvent> {
        let output = self.events.try_recv().ok()?;
        Some(self.event(output))
    }

    fn event(&self, output: GroupOutput) -> GroupEvent {
        self.waiting.fetch_sub(output.weight(), Ordering::Relaxed);
        match output {
            GroupOutput::First => GroupEvent::First,
            GroupOutput::NoState => GroupEvent::NoState,
            GroupOutput::State(state) => GroupEvent::State(state),
            GroupOutput::View { generation, members } => {
                let member = |p: &AppMember| GroupMember::of(p.claim, &p.label);
                let members = members.iter().map(member).collect();
                GroupEvent::View(GroupView { generation, members })
            }
            GroupOutput::Message { from, label, payload } => {
                GroupEvent::Message { from: GroupMember::of(from, &label), bytes: payload }
            }
            GroupOutput::Ask { to, by } => {
                let (session, number) = (self.session.clone(), self.number);
                GroupEvent::Snapshot(Snapshot { session, number, to, by, answered: false })
            }
            GroupOutput::Lost(why) => GroupEvent::Lost(why),
        }
    }
}

impl Stream for Group {
    type Item = GroupEvent;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<GroupEvent>> {
        let output = ready!(self.events.poll_recv(task));
        Poll::Ready(output.map(|output| self.event(output)))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.session.shared().with(|core, _| core.exit_group(self.number));
    }
}

/// A request of a new member for this member's state. Dropped without an answer, also by a panic, it
/// [declines](Self::decline).
#[derive(Debug)]
#[must_use = "a new member waits for this state"]
pub struct Snapshot {
    session: Session,
    number: u64,
    to: ClaimId,
    by: ClaimId,
    answered: bool,
}

impl Snapshot {
    /// Gives the state, at most [`MAX_STATE`] bytes. A longer one is not given: this member declines.
    pub fn give(mut self, state: impl AsRef<[u8]>) -> Result<(), Error> {
        let state = state.as_ref();
        if state.len() > MAX_STATE {
            return Err(Error::TooLong { bytes: state.len(), limit: MAX_STATE });
        }
        self.answered = true;
        let (number, to, by) = (self.number, self.to, self.by);
        self.session.shared().with(|core, _| core.give_state(number, to, by, state));
        Ok(())
    }

    /// Gives nothing: the new member asks another one. If all decline, it gets [`GroupEvent::NoState`].
    pub fn decline(self) {
        drop(self);
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        if !self.answered {
            let (number, to, by) = (self.number, self.to, self.by);
            self.session.shared().with(|core, _| core.decline_state(number, to, by));
        }
    }
}
