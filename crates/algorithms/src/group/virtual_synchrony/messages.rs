//! What the processes say to each other.

use std::sync::Arc;

use konklave_process::{ProcessId, ProcessSet};
use serde::{Deserialize, Serialize};

use crate::group::{Member, View, ViewId};

/// An attempt to end a view. Any two can be compared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Ballot {
    /// Later attempts are higher.
    pub round: u32,
    /// Whose attempt it is.
    pub by: ProcessId,
}

/// A message of the application, as its view numbers it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Entry<C> {
    /// Who sent it.
    pub sender: ProcessId,
    /// The sender's number for it.
    pub seq: u32,
    /// What it says.
    pub command: C,
}

/// What ends a view: the next one, and the messages before it. This is what a view agrees on.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Next<C> {
    /// The next view.
    pub view: View,
    /// Everyone has all messages before this place.
    pub from: u64,
    /// The messages from there to the end.
    pub cut: Vec<Entry<C>>,
    /// Who leaves because it wants to.
    pub left: ProcessSet,
    /// What those who stopped had to say, be it that they go on or not.
    pub summaries: Vec<(Member, C)>,
}

/// What someone who stops for a ballot knows.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Promise<C> {
    /// What it accepted last in this view, if anything.
    pub accepted: Option<(Ballot, Arc<Next<C>>)>,
    /// Everyone has all messages before this place.
    pub base: u64,
    /// The messages from there on, without a gap.
    pub order: Vec<Entry<C>>,
    /// The number of the last of these, or of those before, for each sender.
    pub last: Vec<(ProcessId, u32)>,
    /// Messages whose predecessors are missing, with their places.
    pub early: Vec<(u64, Entry<C>)>,
    /// Its own messages that have no place yet as far as it knows.
    pub own: Vec<Entry<C>>,
    /// Who wants to join, as far as it knows.
    pub joins: Vec<Member>,
    /// Who wants to leave.
    pub leaves: ProcessSet,
    /// Which observers have the state.
    pub synced: ProcessSet,
    /// Whom it does not hear.
    pub suspects: ProcessSet,
    /// What the layer above has to say.
    pub summary: Option<C>,
}

/// What the processes say; all but the first three within a view.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message<C> {
    /// I want to become a member.
    Join {
        /// In which life.
        member: Member,
        /// Whom I hear: empty at first.
        heard: ProcessSet,
    },
    /// I hear you.
    Welcome,
    /// You are not in our view.
    NotMember {
        /// Its name.
        view: ViewId,
    },
    /// Put this in order.
    Data {
        /// The view it is sent in.
        view: ViewId,
        /// My number for it.
        seq: u32,
        /// What it says.
        command: C,
    },
    /// This is its place. I have everything up to it.
    Order {
        /// The view.
        view: ViewId,
        /// The place.
        position: u64,
        /// The message.
        entry: Entry<C>,
    },
    /// I have everything before this place.
    Ack {
        /// The view.
        view: ViewId,
        /// The place.
        held: u64,
    },
    /// I am alive.
    Heartbeat {
        /// The view.
        view: ViewId,
        /// I have everything before this place.
        held: u64,
        /// Whom I do not hear.
        suspects: ProcessSet,
    },
    /// I do not hear these.
    Suspect {
        /// The view.
        view: ViewId,
        /// Whom.
        suspects: ProcessSet,
    },
    /// I want to leave.
    Leave {
        /// The view.
        view: ViewId,
    },
    /// I, an observer, have the state.
    Synced {
        /// The view.
        view: ViewId,
    },
    /// Stop, and tell me what you know.
    Prepare {
        /// The view that shall end.
        view: ViewId,
        /// My attempt.
        ballot: Ballot,
    },
    /// I have stopped.
    Promise {
        /// The view.
        view: ViewId,
        /// For this attempt.
        ballot: Ballot,
        /// What I know.
        promise: Arc<Promise<C>>,
    },
    /// This shall be the end. I have accepted it.
    Accept {
        /// The view.
        view: ViewId,
        /// The attempt.
        ballot: Ballot,
        /// The end.
        next: Arc<Next<C>>,
    },
    /// I have accepted the end that this attempt proposes.
    Accepted {
        /// The view.
        view: ViewId,
        /// The attempt.
        ballot: Ballot,
    },
    /// It seems decided. What is it?
    Ask {
        /// The view.
        view: ViewId,
    },
    /// This was decided.
    Install {
        /// The view that ended.
        view: ViewId,
        /// Its end.
        next: Arc<Next<C>>,
    },
    /// A part of the application's state.
    State {
        /// The view.
        view: ViewId,
        /// It includes all deliveries before this place.
        position: u64,
        /// Which part, from 0.
        index: u32,
        /// How many there are.
        count: u32,
        /// The part; none if there are none.
        part: Option<C>,
    },
    /// So many parts have arrived.
    StateAck {
        /// The view.
        view: ViewId,
        /// How many.
        parts: u32,
    },
}

impl<C> Message<C> {
    /// The view in which it is said, if that matters.
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

    /// Whether who says this in a view that is over needs to be told so: the others will learn it
    /// from what is on its way to them.
    pub(super) fn calls_for_help(&self) -> bool {
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
    /// The end of a heartbeat's period.
    Heartbeat,
    /// Who has not answered our attempt by now does not belong to the next view.
    Collect,
    /// The attempt to end the view, ours or another's, has come to nothing.
    Retry,
    /// Nobody has taken us in yet.
    Join,
    /// Those who want in have had time to say so.
    Batch,
}

/// What survives a crash.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Record {
    /// Which of our lives this is.
    pub incarnation: u32,
    /// The highest generation we have seen.
    pub generation: u32,
}
