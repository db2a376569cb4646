//! The messages, timers and records of virtual synchrony.

use std::sync::Arc;

use konklave_process::{ProcessId, ProcessSet};
use serde::{Deserialize, Serialize};

use crate::group::{Member, View, ViewId};

/// The number of an attempt to end a view. Ballots are totally ordered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Ballot {
    /// Each attempt has a higher round than all attempts that its candidate knows.
    pub round: u32,
    /// The candidate that makes the attempt.
    pub by: ProcessId,
}

/// A message of the application, with the number that its sender gave it in this view.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Entry<C> {
    /// The member that multicast it.
    pub sender: ProcessId,
    /// The sender's number for it, from 1.
    pub seq: u32,
    /// The command that it carries.
    pub command: C,
}

/// The value that the members of a view agree on to end it: the next view, and the messages
/// before it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Proposal<C> {
    /// The next view.
    pub view: View,
    /// Every process of the old view has all messages before this place.
    pub from: u64,
    /// The messages from that place to the end of the old view.
    pub cut: Vec<Entry<C>>,
    /// The processes that leave at their own request.
    pub left: ProcessSet,
    /// The summaries of all processes that promised, including those that leave.
    pub summaries: Vec<(Member, C)>,
}

/// The knowledge of a wedged process about its view, for the candidate of a ballot.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Promise<C> {
    /// The last ballot whose proposal it accepted in this view, and that proposal.
    pub accepted: Option<(Ballot, Arc<Proposal<C>>)>,
    /// Every process of the view has all messages before this place.
    pub base: u64,
    /// The messages from `base` on, without a gap.
    pub order: Vec<Entry<C>>,
    /// For each sender, the number of its last message before the end of `order`.
    pub last: Vec<(ProcessId, u32)>,
    /// Messages that arrived before one of their predecessors, with their places.
    #[serde(rename = "early")]
    pub out_of_order: Vec<(u64, Entry<C>)>,
    /// Its own messages whose place it does not know.
    #[serde(rename = "own")]
    pub unplaced: Vec<Entry<C>>,
    /// The processes whose wish to join it knows.
    pub joins: Vec<Member>,
    /// The processes whose wish to leave it knows.
    pub leaves: ProcessSet,
    /// The observers that have the application's state.
    pub synced: ProcessSet,
    /// The processes that it suspects.
    pub suspects: ProcessSet,
    /// The summary of the layer above, if that layer gives one.
    pub summary: Option<C>,
}

/// The messages. All but the first three belong to a view.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message<C> {
    /// The sender wants to become a member.
    Join {
        /// The sender in its present incarnation.
        member: Member,
        /// The members whose `Welcome` the sender received: none at first.
        heard: ProcessSet,
    },
    /// A member answers a `Join`.
    Welcome,
    /// The receiver is not in the sender's view.
    NotMember {
        /// The sender's view.
        view: ViewId,
    },
    /// A member asks the leader to give its message a place.
    Data {
        /// The view in which the message was multicast.
        view: ViewId,
        /// The sender's number for it.
        seq: u32,
        /// The command.
        command: C,
    },
    /// The leader gave this message this place, and has every message before it.
    Order {
        /// The view.
        view: ViewId,
        /// The place, from 0.
        position: u64,
        /// The message.
        entry: Entry<C>,
    },
    /// The sender has every message before this place.
    Ack {
        /// The view.
        view: ViewId,
        /// The place.
        held: u64,
    },
    /// The sender is alive.
    Heartbeat {
        /// The view.
        view: ViewId,
        /// The sender has every message before this place.
        held: u64,
        /// The processes that the sender suspects.
        suspects: ProcessSet,
    },
    /// The sender suspects these processes. If it names itself, its incarnation in the view is over.
    Suspect {
        /// The view.
        view: ViewId,
        /// The suspected processes.
        suspects: ProcessSet,
    },
    /// The sender wants to leave.
    Leave {
        /// The view.
        view: ViewId,
    },
    /// The sender, an observer, has the application's state.
    Synced {
        /// The view.
        view: ViewId,
    },
    /// A candidate asks the receiver to stop, and to report what it knows (phase 1).
    Prepare {
        /// The view that is to end.
        view: ViewId,
        /// The candidate's ballot.
        ballot: Ballot,
    },
    /// The sender has stopped, and follows no lower ballot.
    Promise {
        /// The view.
        view: ViewId,
        /// The ballot that it follows.
        ballot: Ballot,
        /// The knowledge of the sender.
        promise: Arc<Promise<C>>,
    },
    /// The sender has accepted this proposal, and asks the receiver to accept it (phase 2).
    Accept {
        /// The view.
        view: ViewId,
        /// The ballot.
        ballot: Ballot,
        /// The proposal.
        next: Arc<Proposal<C>>,
    },
    /// The sender has accepted the proposal of this ballot.
    Accepted {
        /// The view.
        view: ViewId,
        /// The ballot.
        ballot: Ballot,
    },
    /// The sender knows that a majority accepted a proposal that it has not received.
    Ask {
        /// The view.
        view: ViewId,
    },
    /// This proposal was decided.
    Install {
        /// The view that ended.
        view: ViewId,
        /// The proposal.
        next: Arc<Proposal<C>>,
    },
    /// A part of the application's state.
    State {
        /// The view.
        view: ViewId,
        /// The state includes all deliveries before this place.
        position: u64,
        /// The number of this part, from 0.
        index: u32,
        /// How many parts the state has.
        count: u32,
        /// The part; none if the state has no parts.
        part: Option<C>,
    },
    /// The observer has received this many parts.
    StateAck {
        /// The view.
        view: ViewId,
        /// How many.
        parts: u32,
    },
}

impl<C> Message<C> {
    /// The view that the message belongs to; none for a message between views.
    pub(super) fn view(&self) -> Option<ViewId> {
        match *self {
            Self::Join { .. } | Self::Welcome | Self::NotMember { .. } => None,
            Self::Data { view, .. }
            | Self::Order { view, .. }
            | Self::Ack { view, .. }
            | Self::Heartbeat { view, .. }
            | Self::Suspect { view, .. }
            | Self::Leave { view }
            | Self::Synced { view }
            | Self::Prepare { view, .. }
            | Self::Promise { view, .. }
            | Self::Accept { view, .. }
            | Self::Accepted { view, .. }
            | Self::Ask { view }
            | Self::Install { view, .. }
            | Self::State { view, .. }
            | Self::StateAck { view, .. } => Some(view),
        }
    }

    /// Whether a receiver in a later view reports the successor of the sender's view. Senders of all
    /// other messages learn of it from messages that are under way to them.
    pub(super) fn needs_successor(&self) -> bool {
        match self {
            Self::Heartbeat { .. }
            | Self::Suspect { .. }
            | Self::Leave { .. }
            | Self::Prepare { .. }
            | Self::Ask { .. } => true,
            Self::Join { .. }
            | Self::Welcome
            | Self::NotMember { .. }
            | Self::Data { .. }
            | Self::Order { .. }
            | Self::Ack { .. }
            | Self::Synced { .. }
            | Self::Promise { .. }
            | Self::Accept { .. }
            | Self::Accepted { .. }
            | Self::Install { .. }
            | Self::State { .. }
            | Self::StateAck { .. } => false,
        }
    }
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// A heartbeat's period is over.
    Heartbeat,
    /// The candidate waits no longer for processes that have not promised.
    Collect,
    /// The present attempt to end the view has taken too long.
    Retry,
    /// No member has taken this joining process in yet.
    Join,
    /// Processes that want to join have had time to ask: one view change serves all of them.
    Batch,
}

/// The part of a process that survives a crash.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The last incarnation of this process.
    pub incarnation: u32,
    /// The highest generation that it has seen.
    pub generation: u32,
}
