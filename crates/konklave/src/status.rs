//! Status of a node and its group, and events, to show or serialise.

mod wait_cycles;

pub(crate) use wait_cycles::{WaitsFor, wait_cycles};

use serde::{Deserialize, Serialize};

use crate::{NodeId, Token};

/// The status of a node.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Status {
    /// Its id.
    pub node: NodeId,
    /// Its name.
    pub name: String,
    /// The number of its present incarnation.
    pub incarnation: u32,
    /// Whether it is a member: its requests can be granted.
    pub member: bool,
    /// The reason, in words, why there is no group yet.
    pub missing: Option<String>,
    /// The remedy, if something is missing.
    #[serde(default)]
    pub remedy: Option<Remedy>,
    /// The connections of the last minute that this node or its peer refused, the latest first.
    #[serde(default)]
    pub refusals: Vec<Refused>,
    /// The connected peers that are not in the view of this member.
    #[serde(default)]
    pub outsiders: Vec<Outsider>,
    /// The error of the disk, if it fails.
    pub trouble: Option<String>,
    /// The error of the network as a whole: the NATS server is unreachable.
    #[serde(default)]
    pub network: Option<String>,
    /// Generation and epoch of its view.
    pub view: Option<(u32, u64)>,
    /// The leader of the view, which orders all operations.
    pub leader: Option<NodeId>,
    /// The members, most senior first; then those that are entering.
    pub members: Vec<MemberStatus>,
    /// The majority the view needs, and how many members answer.
    pub quorum: Quorum,
    /// For how many milliseconds this node's grants are certain; none if they cannot expire.
    pub lease_ms: Option<u64>,
    /// All locks, semaphores and campaigns that are held or wanted, ordered by name.
    pub locks: Vec<LockStatus>,
}

/// The remedy for a node that is in no group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Remedy {
    /// Start the other founders, or open the way to them.
    StartFounders,
    /// Start the other members of the last view, or open the way to them.
    StartMembers,
    /// Give the number of founders.
    NameFounders,
    /// Open the way to the members of the group that do not answer.
    Reconnect,
}

/// A refused connection.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Refused {
    /// The address or name of the other side.
    pub address: String,
    /// The reason.
    pub reason: String,
    /// Whether the other side called: then it need not be a member at all.
    pub caller: bool,
}

/// A connected peer that is not in the view.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Outsider {
    /// Its id.
    pub node: NodeId,
    /// Its name.
    pub name: String,
    /// If it is in a view of its own: the generation of that one. Then there are two groups, unless it is just being
    /// excluded.
    pub generation: Option<u32>,
}

/// A member, as this node sees it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MemberStatus {
    /// Its id.
    pub node: NodeId,
    /// Its name.
    pub name: String,
    /// The number of its incarnation.
    pub incarnation: u32,
    /// Whether it has a vote; not while it receives the state.
    pub votes: bool,
    /// Whether a connection to it is established; true for this node itself.
    pub connected: bool,
    /// Whether this node suspects that it has crashed.
    pub suspected: bool,
    /// How many milliseconds ago it sent what it answered last: none for this node itself, or without an
    /// answer.
    pub heard_ms: Option<u64>,
    /// The identity that it has proved: with a shared key the identity of its data directory, with TLS the own name
    /// in its certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
}

/// The majority of a view.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Quorum {
    /// The number of members with a vote.
    pub of: usize,
    /// How many of them are needed.
    pub needed: usize,
    /// How many answer, this node included.
    pub heard: usize,
}

/// A lock, a semaphore or a campaign that is held or wanted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LockStatus {
    /// `lock`, `semaphore` or `campaign`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The number of permits of a semaphore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permits: Option<u32>,
    /// The holders.
    pub holders: Vec<Holder>,
    /// The waiting requests, the next one first.
    pub queue: Vec<Waiter>,
}

/// A holder.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Holder {
    /// Its node.
    pub node: NodeId,
    /// The node's name.
    pub name: String,
    /// Its session at the node.
    pub session: u32,
    /// Its label.
    pub label: String,
    /// `exclusive`, `shared` or `permit`.
    pub mode: String,
    /// Its token. If another node cached the lock, it may have granted higher ones locally since.
    pub token: Token,
    /// How many milliseconds ago this node saw it become the holder.
    pub since_ms: u64,
    /// At its own node only: for how many milliseconds the grant is certain without a further answer of a
    /// majority.
    pub valid_for_ms: Option<u64>,
    /// At its own node only: whether a session uses it, or the node keeps it cached.
    pub used: Option<bool>,
    /// Whether the lock is fenced: its holder's node is excluded, and nobody else gets the lock before its
    /// lease has expired.
    pub frozen: bool,
    /// Whether it is revoked and the holder has not released it yet. For a lifted lock, only the holder's
    /// node knows.
    #[serde(default)]
    pub revoked: bool,
}

/// A waiting request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Waiter {
    /// Its node.
    pub node: NodeId,
    /// The node's name.
    pub name: String,
    /// Its session at the node.
    pub session: u32,
    /// Its label.
    pub label: String,
    /// `exclusive`, `shared` or `permit`.
    pub mode: String,
    /// Its priority, in campaigns.
    pub priority: i32,
}

/// Why a lock is not free.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Why {
    /// The lock.
    pub name: String,
    /// The reason in one word.
    pub state: WhyState,
    /// Its holders and waiting requests.
    pub lock: Option<LockStatus>,
    /// The holders' nodes, as this node sees them.
    pub holders: Vec<MemberStatus>,
    /// The majority of the view.
    pub quorum: Quorum,
    /// A cycle of sessions that wait for each other: each waits for a lock of the next, the last for one of
    /// the first. Each entry is `(node, session, the lock it waits for)`.
    pub cycle: Vec<(NodeId, u32, String)>,
    /// The reason, in words, why there is no group yet.
    pub missing: Option<String>,
}

/// Why a lock is not free, in one word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhyState {
    /// It is free.
    Free,
    /// It is held.
    Held,
    /// It is fenced: its holder is excluded, and its lease may not have expired.
    Frozen,
    /// Its holders and waiters wait for each other.
    Deadlock,
    /// This node is in no group.
    NoGroup,
    /// No majority answers this node.
    NoQuorum,
}

/// Why a grant is lost without having been released.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Loss {
    /// No majority answered during a lease.
    Lease,
    /// An operator revoked it.
    Revoked,
    /// The other members excluded this node.
    Excluded,
    /// Too few members of the view still run in the incarnation they had in it: the group is founded anew.
    Dissolved,
    /// This node left its group, or was stopped.
    Left,
    /// The holder's session has ended.
    Closed,
}

impl Loss {
    const ALL: [Self; 6] =
        [Self::Lease, Self::Revoked, Self::Excluded, Self::Dissolved, Self::Left, Self::Closed];

    /// A number other than zero.
    pub(crate) fn code(self) -> u8 {
        self as u8 + 1
    }

    /// The loss with this number.
    pub(crate) fn of(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|loss| loss.code() == code)
    }
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Lease => "the lease ran out: no majority answered in time",
            Self::Revoked => "an operator took it",
            Self::Excluded => "the others went on without this node",
            Self::Dissolved => "too many members began another life: the group begins anew",
            Self::Left => "this node left the group",
            Self::Closed => "its session is over",
        })
    }
}

/// An event at a node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
#[non_exhaustive]
pub enum Event {
    /// A view was installed.
    View {
        /// Its generation.
        generation: u32,
        /// Its number.
        epoch: u64,
        /// The members with a vote, most senior first.
        members: Vec<NodeId>,
        /// The members that are entering.
        entering: Vec<NodeId>,
        /// The names of both, in this order.
        #[serde(default)]
        names: Vec<String>,
    },
    /// The other members excluded this node: all its grants are lost.
    Excluded,
    /// Too few members of the view still run in the incarnation they had in it, so that it cannot decide
    /// anything: all grants of this node are lost, and the group is founded anew.
    Dissolved,
    /// This node left.
    Left,
    /// No majority answers.
    Blocked,
    /// A connection was established.
    Connected {
        /// To this node.
        node: NodeId,
        /// Its name.
        #[serde(default)]
        name: String,
    },
    /// A process ended, or does not answer.
    Suspected {
        /// Its node.
        node: NodeId,
        /// The node's name.
        #[serde(default)]
        name: String,
    },
    /// A process refused this node or was refused, or a member's frames make no sense. Repetitions are
    /// reported once per minute.
    Refused {
        /// Its address.
        address: String,
        /// The reason.
        reason: String,
        /// How often the same happened since the last report.
        again: u64,
    },
    /// The network as a whole failed, or works again.
    Network {
        /// The error; none if it works again.
        trouble: Option<String>,
    },
    /// The disk failed, or works again.
    Disk {
        /// The error; none if it works again.
        trouble: Option<String>,
    },
    /// A session of this node was granted something.
    Granted {
        /// The name of the lock, semaphore or campaign.
        name: String,
        /// The token of the grant.
        token: Token,
    },
    /// A session of this node lost a grant.
    Lost {
        /// The name of the lock, semaphore or campaign.
        name: String,
        /// The reason.
        why: Loss,
    },
    /// There is a new holder in the group, according to the table. Local grants of a cached lock are not
    /// reported, except at their node ([`Event::Granted`]). Holders of lifted locks
    /// ([`LockAlgorithm`](crate::LockAlgorithm)) are reported with heartbeats: other nodes may miss a shorter
    /// grant.
    Held {
        /// `lock`, `semaphore` or `campaign`.
        kind: String,
        /// Its name.
        name: String,
        /// The holder's node.
        node: NodeId,
        /// The node's name.
        by: String,
        /// The holder's label.
        label: String,
        /// Its token.
        token: Token,
    },
    /// A holder in the group is one no more.
    Freed {
        /// `lock`, `semaphore` or `campaign`.
        kind: String,
        /// Its name.
        name: String,
        /// The former holder's node.
        node: NodeId,
        /// The node's name.
        by: String,
    },
    /// The reader was too slow: events are missing.
    Missed {
        /// The number of missing events.
        missed: u64,
    },
}
