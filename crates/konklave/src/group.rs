//! Groups: members, and messages in one order that is the same for all of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use crate::core::{GroupOutput, Outbox};
use crate::lock::check_name;
use crate::table::{AppMember, ClaimId};
use crate::wire::MAX_MESSAGE;
use crate::{Error, NodeId, Session};

/// One who belongs to a group.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct GroupMember {
    /// Its node.
    pub node: NodeId,
    /// Which of the node's sessions.
    pub session: u32,
    /// What tells it from all others, earlier lives of the same node included.
    pub id: String,
    /// What people call it.
    pub label: String,
}

impl GroupMember {
    fn of(claim: ClaimId, label: &str) -> Self {
        let ClaimId { member, session, number } = claim;
        let id = format!("{}.{}.{number}", member.id.0, member.incarnation);
        Self { node: member.id.0, session, id, label: label.into() }
    }
}

/// Those who belong to a group until the next view, the most senior first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GroupView {
    /// Who.
    pub members: Vec<GroupMember>,
}

/// What a member of a group is told, in the same order as all others.
#[derive(Debug)]
#[non_exhaustive]
pub enum GroupEvent {
    /// What the members had agreed on before we came: as a member of theirs gave it. Comes first, as soon
    /// as one of them has [given](Snapshot::give) it, and is empty when we are the first.
    State(Arc<[u8]>),
    /// Who belongs to it from here on.
    View(GroupView),
    /// A message; our own come back to us, too.
    Message {
        /// Who sent it.
        from: GroupMember,
        /// What.
        bytes: Arc<[u8]>,
    },
    /// Someone joins, and needs our state as it is after all we were told so far.
    Snapshot(Snapshot),
    /// We are not part of it any more: our node was excluded, our session ended, or we did not
    /// read for so long that 64 MiB were waiting for us. To come back, join again.
    Lost,
}

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

/// A group we belong to, until this is dropped.
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
        // Dropped on the way, it leaves again.
        let exit = ExitOnDrop { session, number: Some(number) };
        let (_, claim) = answer.await.map_err(|_| Error::Left)??;
        let me = GroupMember::of(claim, &label);
        Ok(Self { session: exit.done(), number, me, events, waiting })
    }

    /// From now on our messages come as soon as their place in the order is known (*agreed* order), not only when a
    /// majority has them (*uniform* order): earlier where a majority takes longer than who leads does. Other members may do as they like.
    ///
    /// Order and completeness are the same for all who stay together. But a node that is excluded may have been told a
    /// message last that the others never get; so use this for what may be forgotten with its node.
    pub fn agreed(self) -> Self {
        self.session.shared().with(|core, _| core.deliver_agreed(self.number));
        self
    }

    /// Who we are in it.
    pub fn me(&self) -> &GroupMember {
        &self.me
    }

    /// Sends a message to all members, ourselves included. Returns when it is on its way; it has
    /// been delivered when it comes back from [`next`](Self::next). Waits while too much is on its way.
    pub async fn send(&self, bytes: impl Into<Arc<[u8]>>) -> Result<(), Error> {
        let bytes = bytes.into();
        if bytes.len() > MAX_MESSAGE {
            return Err(Error::TooLong { bytes: bytes.len(), limit: MAX_MESSAGE });
        }
        let shared = self.session.shared();
        loop {
            let room = shared.room.notified();
            if shared.with(|core, _| core.say(self.number, &bytes))? {
                return Ok(());
            }
            room.await;
        }
    }

    /// The next event; none when the node is gone. Safe to cancel.
    pub async fn next(&mut self) -> Option<GroupEvent> {
        let output = self.events.recv().await?;
        Some(self.event(output))
    }

    /// The next event if there is one already.
    pub fn try_next(&mut self) -> Option<GroupEvent> {
        let output = self.events.try_recv().ok()?;
        Some(self.event(output))
    }

    fn event(&self, output: GroupOutput) -> GroupEvent {
        self.waiting.fetch_sub(output.weight(), Ordering::Relaxed);
        match output {
            GroupOutput::State(state) => GroupEvent::State(state),
            GroupOutput::View(members) => {
                let member = |p: &AppMember| GroupMember::of(p.claim, &p.label);
                GroupEvent::View(GroupView { members: members.iter().map(member).collect() })
            }
            GroupOutput::Message { from, label, payload } => {
                GroupEvent::Message { from: GroupMember::of(from, &label), bytes: payload }
            }
            GroupOutput::Ask { to, by } => {
                let (session, number) = (self.session.clone(), self.number);
                GroupEvent::Snapshot(Snapshot { session, number, to, by, given: false })
            }
            GroupOutput::Lost => GroupEvent::Lost,
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.session.shared().with(|core, _| core.exit_group(self.number));
    }
}

/// Someone who joins waits for our state. Dropped, it gets an empty one.
#[derive(Debug)]
#[must_use = "who joins waits for this"]
pub struct Snapshot {
    session: Session,
    number: u64,
    to: ClaimId,
    by: ClaimId,
    given: bool,
}

impl Snapshot {
    /// Gives it. At most as long as a message may be; if it is too long, nobody is given anything: whoever
    /// joins asks another member after a while.
    pub fn give(mut self, state: impl Into<Arc<[u8]>>) -> Result<(), Error> {
        let state = state.into();
        if state.len() > MAX_MESSAGE {
            self.given = true;
            return Err(Error::TooLong { bytes: state.len(), limit: MAX_MESSAGE });
        }
        self.send(state);
        Ok(())
    }

    fn send(&mut self, state: Arc<[u8]>) {
        if !std::mem::replace(&mut self.given, true) {
            let (number, to, by) = (self.number, self.to, self.by);
            self.session.shared().with(|core, _| core.give_state(number, to, by, state));
        }
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.send([].into());
    }
}
