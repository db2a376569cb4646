//! Messages, timers, requests, indications and the record of a forming group.

use konklave_process::ProcessId;
use serde::{Deserialize, Serialize};

use crate::group::{self, View, ViewId, virtual_synchrony};

/// The messages.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message<C> {
    /// A message of the group.
    Group(virtual_synchrony::Message<C>),
    /// The sender's own state.
    Status(PeerStatus),
    /// The first view, agreed on by all its members.
    Found(View),
    /// A message about the first view, before there is one.
    Founding(FoundingMessage),
}

/// The state of a process, as it reports it to its peers.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct PeerStatus {
    /// Its present incarnation.
    pub incarnation: u32,
    /// The highest generation that it has seen.
    pub generation: u32,
    /// The view it is in, if any.
    pub view: Option<ViewId>,
    /// Whether it has a data directory.
    pub has_data_dir: bool,
    /// Whether grants of its earlier incarnations can no longer be in use.
    pub earlier_grants_over: bool,
}

/// Messages about first views, before there is one.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum FoundingMessage {
    /// Proposes this first view.
    Propose {
        /// Tells the proposals of one proposer apart, those of its earlier incarnations included.
        number: u64,
        /// The proposed view.
        view: View,
    },
    /// The sender enters no other first view.
    Promise {
        /// The number of the proposal.
        number: u64,
    },
    /// The sender has promised itself to another proposer.
    Refuse {
        /// The number of the proposal.
        number: u64,
        /// That proposer.
        to: ProcessId,
    },
    /// The proposal is withdrawn; promises to it end.
    Withdraw {
        /// The number of the proposal.
        number: u64,
    },
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// A timer of the group.
    Group(virtual_synchrony::Timer),
    /// The period of reports is over.
    Beat,
    /// A refused proposer has left the field to the lower id for long enough.
    Abstain,
    /// The other half of the view has had time to appear.
    Stall,
    /// Members of the last view have had time to report that they are in a group.
    Alone,
    /// No grant of an earlier incarnation, or of a view this process was in, is in use any more.
    GrantsOver,
}

/// The requests.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Request<C> {
    /// A request to the group.
    Group(group::Request<C>),
    /// Found a group of one in a new generation, for the others to join: an operator's last resort.
    FoundAlone,
}

/// The indications.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Indication<C> {
    /// An indication of the group.
    Group(group::Indication<C>),
    /// This process enters a first view: there is no earlier state of the application.
    Founded,
    /// This process left a view that cannot decide anything any more.
    Dissolved,
    /// Grants from before are no longer in use.
    GrantsOver,
    /// A connected process is in another group.
    InOtherGroup(ProcessId),
    /// This process founds no group of one, because a peer is in a group to join.
    JoinsInstead(ProcessId),
}

/// The state that survives a crash.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Record {
    /// The last incarnation of this process.
    pub incarnation: u32,
    /// The highest generation that it has seen.
    pub generation: u32,
    /// The members of the last view that it was in.
    pub members: Vec<ProcessId>,
    /// The members of a first view that it has promised to enter. They count as members of its last view after a
    /// restart. A host must write them before it sends anything.
    pub promised: Vec<ProcessId>,
}
