//! What a node tells of itself and its group, to be shown or serialised.

mod wait_cycles;

pub(crate) use wait_cycles::{WaitsFor, wait_cycles};

use serde::{Deserialize, Serialize};

use crate::{NodeId, Token};

/// Everything a node knows.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Status {
    /// Its id.
    pub node: NodeId,
    /// What people call it.
    pub name: String,
    /// Which of its lives this is.
    pub incarnation: u32,
    /// Whether it takes part: it can be granted something.
    pub member: bool,
    /// What is missing for a group, in words, if anything.
    pub missing: Option<String>,
    /// What the disk says, if it refuses.
    pub trouble: Option<String>,
    /// What is wrong with the network as a whole, if anything: the NATS server is not reached.
    #[serde(default)]
    pub network: Option<String>,
    /// Generation and epoch of its view, if it is in one.
    pub view: Option<(u32, u64)>,
    /// Who leads the view: it fixes the order of everything.
    pub leader: Option<NodeId>,
    /// The members, the most senior first; then who is entering.
    pub members: Vec<MemberStatus>,
    /// How many are needed, and how many are there.
    pub quorum: Quorum,
    /// For how many milliseconds what it holds is safe; none when nobody could take it.
    pub lease_ms: Option<u64>,
    /// Everything that is held or wanted, in the order of names: locks, semaphores, campaigns.
    pub locks: Vec<LockStatus>,
}

/// One node, as another sees it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MemberStatus {
    /// Its id.
    pub node: NodeId,
    /// What people call it.
    pub name: String,
    /// Which of its lives.
    pub incarnation: u32,
    /// Whether it has a vote; not while it gets the state.
    pub votes: bool,
    /// Whether a connection to it stands; true for ourselves.
    pub connected: bool,
    /// Whether we take it for dead.
    pub suspected: bool,
    /// How many milliseconds ago it answered us; none for ourselves, or if it never did.
    pub heard_ms: Option<u64>,
}

/// The arithmetic of majorities.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Quorum {
    /// Those with a vote.
    pub of: usize,
    /// How many of them are needed.
    pub needed: usize,
    /// How many we hear, ourselves included.
    pub heard: usize,
}

/// A lock, a semaphore or a campaign that someone holds or wants.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LockStatus {
    /// `lock`, `semaphore` or `campaign`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// How many may hold it at a time, if it is a semaphore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permits: Option<u32>,
    /// Who holds it.
    pub holders: Vec<Holder>,
    /// Who waits, the next first.
    pub queue: Vec<Waiter>,
}

/// One who holds something.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Holder {
    /// Its node.
    pub node: NodeId,
    /// What people call the node.
    pub name: String,
    /// Which of the node's sessions.
    pub session: u32,
    /// What it says of itself.
    pub label: String,
    /// `exclusive`, `shared` or `permit`.
    pub mode: String,
    /// Its token. A node that kept the lock for its next user may have given higher ones since.
    pub token: Token,
    /// How many milliseconds ago this node saw it become the holder.
    pub since_ms: u64,
    /// For our own: for how many milliseconds it is safe without a sign of life of a majority.
    pub valid_for_ms: Option<u64>,
    /// For our own: whether someone uses it, or the node keeps it because nobody else wants it.
    pub used: Option<bool>,
    /// Whether its node is gone, and the lock stays taken until it must know.
    pub frozen: bool,
    /// Whether it was taken from it, and it has not let it go yet; of a lock that an algorithm serves, only its
    /// own node knows.
    #[serde(default)]
    pub revoked: bool,
}

/// One who waits for something.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Waiter {
    /// Its node.
    pub node: NodeId,
    /// What people call the node.
    pub name: String,
    /// Which of the node's sessions.
    pub session: u32,
    /// What it says of itself.
    pub label: String,
    /// `exclusive`, `shared` or `permit`.
    pub mode: String,
    /// Its priority, in campaigns.
    pub priority: i32,
}

/// Why a lock is not ours yet.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Why {
    /// The lock.
    pub name: String,
    /// In one word.
    pub state: WhyState,
    /// Who holds it and who waits, if anyone.
    pub lock: Option<LockStatus>,
    /// The nodes of those who hold it, as we see them.
    pub holders: Vec<MemberStatus>,
    /// The arithmetic of the majority we need.
    pub quorum: Quorum,
    /// Who waits for whom in a cycle, if so: each waits for a lock of the next, the last for one of
    /// the first. Each is `(node, session, the lock it waits for)`.
    pub cycle: Vec<(NodeId, u32, String)>,
    /// What is missing for a group, if anything.
    pub missing: Option<String>,
}

/// Why, in one word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhyState {
    /// Nobody holds it or wants it.
    Free,
    /// Someone holds it.
    Held,
    /// Its holder is gone, and others wait until it must know.
    Frozen,
    /// Those who hold and want it wait for each other.
    Deadlock,
    /// This node is in no group.
    NoGroup,
    /// This node hears no majority.
    NoQuorum,
}

/// Why something is held no more, though nobody gave it back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Loss {
    /// No majority answered for as long as a lease lasts.
    Lease,
    /// An operator took it.
    Revoked,
    /// The others went on without this node.
    Excluded,
    /// Too few members of the view are left in the life they had in it: the group begins anew.
    Dissolved,
    /// This node left its group, or was stopped.
    Left,
    /// The session that held it is over.
    Closed,
}

impl Loss {
    const ALL: [Self; 6] =
        [Self::Lease, Self::Revoked, Self::Excluded, Self::Dissolved, Self::Left, Self::Closed];

    /// A number that is not zero.
    pub(crate) fn code(self) -> u8 {
        self as u8 + 1
    }

    /// What a number stands for.
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

/// Something that happened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
#[non_exhaustive]
pub enum Event {
    /// A view began.
    View {
        /// Its generation.
        generation: u32,
        /// Its number.
        epoch: u64,
        /// Who has a vote, the most senior first.
        members: Vec<NodeId>,
        /// Who is entering.
        entering: Vec<NodeId>,
        /// What people call the members and those who are entering, in this order.
        #[serde(default)]
        names: Vec<String>,
    },
    /// The others went on without us: all we held is lost.
    Excluded,
    /// Too few members of the view are left in the life they had in it, so that it can decide nothing any
    /// more: all we held is lost, and the group begins anew.
    Dissolved,
    /// We left.
    Left,
    /// No majority answers.
    Blocked,
    /// A connection stands.
    Connected {
        /// To whom.
        node: NodeId,
        /// What people call it.
        #[serde(default)]
        name: String,
    },
    /// Someone's process is gone, or it does not answer.
    Suspected {
        /// Who.
        node: NodeId,
        /// What people call it.
        #[serde(default)]
        name: String,
    },
    /// A stranger was refused, or refused us, or a member cannot be understood. Told once, and
    /// every minute as long as it goes on.
    Refused {
        /// From where.
        address: String,
        /// Why.
        reason: String,
        /// How often the same has happened since it was told last.
        again: u64,
    },
    /// The network as a whole failed, or works again.
    Network {
        /// What is wrong, if anything.
        trouble: Option<String>,
    },
    /// What must survive could not be written, or can be again.
    Disk {
        /// What is wrong, if anything.
        trouble: Option<String>,
    },
    /// Someone here was granted something.
    Granted {
        /// What.
        name: String,
        /// With this token.
        token: Token,
    },
    /// Someone here lost something.
    Lost {
        /// What.
        name: String,
        /// Why.
        why: Loss,
    },
    /// Someone of the group, here or elsewhere, holds something from now on, as the table says. A lock
    /// that a node keeps for its next user changes hands there without the table ([`Event::Granted`]).
    /// Of locks that an algorithm serves ([`Mutex`](crate::LockAlgorithm)), nodes tell each other with their signs
    /// of life: who held one for less than that may not be heard of elsewhere.
    Held {
        /// `lock`, `semaphore` or `campaign`.
        kind: String,
        /// Its name.
        name: String,
        /// The holder's node.
        node: NodeId,
        /// What people call the node.
        by: String,
        /// What the holder says of itself.
        label: String,
        /// Its token.
        token: Token,
    },
    /// Someone of the group, here or elsewhere, holds something no more.
    Freed {
        /// `lock`, `semaphore` or `campaign`.
        kind: String,
        /// Its name.
        name: String,
        /// The node that held it.
        node: NodeId,
        /// What people call the node.
        by: String,
    },
    /// Events came faster than they were read.
    Missed {
        /// How many are gone.
        missed: u64,
    },
}
