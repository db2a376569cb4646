//! Operations and what becomes of them.

use std::fmt;
use std::sync::Arc;

use konklave_algorithms::group::Member;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::barriers::BarrierState;
use super::{AppGroup, AppMember, Lock, Name};
use crate::lifted::Summary;
use crate::lock::LONGEST;
use crate::token::Token;
use crate::wire::MAX_MESSAGE;

/// What kind of thing a name belongs to: a lock and a semaphore may have the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub(crate) enum Space {
    Lock,
    Semaphore,
    Campaign,
}

/// Something that can be held.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Key {
    pub(crate) space: Space,
    #[serde(deserialize_with = "text")]
    pub(crate) name: Name,
}

/// Text that lies in a frame, copied once.
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    <&str>::deserialize(deserializer).map(Arc::from)
}

/// How it is held.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub(crate) enum LockMode {
    Exclusive,
    Shared,
    /// One of so many permits.
    Permit {
        of: u32,
    },
}

/// Someone's wish, and later its possession: a member in one of its lives, one of its sessions, and
/// the number of the wish.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct ClaimId {
    pub(crate) member: Member,
    pub(crate) session: u32,
    pub(crate) number: u64,
}

/// Bytes of the application.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Payload(pub(crate) Arc<[u8]>);

/// What a member wants of the table.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub(crate) enum Op {
    /// I want this.
    Acquire {
        claim: ClaimId,
        key: Key,
        mode: LockMode,
        /// Whether I wait if I cannot have it now.
        wait: bool,
        /// Whether nobody gets it after my silence before I must know.
        safe: bool,
        /// Who has more is served first.
        priority: i32,
        /// For people.
        #[serde(deserialize_with = "text")]
        label: Arc<str>,
    },
    /// I let it go.
    Release { claim: ClaimId, key: Key },
    /// I have let it go, and given it to the next in the queue, who is at my place, too.
    Pass { key: Key, from: ClaimId, to: ClaimId, token: Token },
    /// I want it no more.
    Cancel { claim: ClaimId, key: Key },
    /// I mode it, and who asked does not wait.
    Deny { claim: ClaimId, key: Key },
    /// What this member held is free: it must know by now.
    LeaseExpired { member: Member },
    /// An operator takes it from its holder.
    Revoke { claim: ClaimId, key: Key, token: Option<Token> },
    /// I am at the barrier, which opens for so many.
    Arrive { claim: ClaimId, name: Name, of: u32 },
    /// I do not wait at the barrier any more.
    Depart { claim: ClaimId, name: Name },
    /// I join a group.
    Enter { group: Name, claim: ClaimId, label: Arc<str> },
    /// I leave it.
    Exit { group: Name, claim: ClaimId },
    /// A message to a group.
    Say { group: Name, claim: ClaimId, payload: Payload },
    /// The state of a group for one who joined, from one who was asked.
    Give { group: Name, to: ClaimId, by: ClaimId, parts: Payload },
    /// A part of a table.
    Part(Part),
    /// What a member says at the end of a view of the locks that no table serves.
    Summary(Summary),
    /// I have waited long for a state from this one: someone else shall give it.
    AskAnother { group: Name, to: ClaimId, instead_of: ClaimId },
}

impl Op {
    /// The one lock that it is about, if it is about one.
    pub(crate) fn lock_key(&self) -> Option<&Key> {
        match self {
            Self::Acquire { key, .. }
            | Self::Release { key, .. }
            | Self::Pass { key, .. }
            | Self::Cancel { key, .. }
            | Self::Deny { key, .. } => Some(key),
            _ => None,
        }
    }

    /// About how many bytes it takes.
    pub(crate) fn weight(&self) -> usize {
        let long = match self {
            Self::Acquire { key, label, .. } => key.name.len() + label.len(),
            Self::Release { key, .. }
            | Self::Pass { key, .. }
            | Self::Cancel { key, .. }
            | Self::Deny { key, .. }
            | Self::Revoke { key, .. } => key.name.len(),
            Self::Arrive { name, .. } | Self::Depart { name, .. } => name.len(),
            Self::Enter { group, label, .. } => group.len() + label.len(),
            Self::Exit { group, .. } | Self::AskAnother { group, .. } => group.len(),
            Self::Say { group, payload, .. } | Self::Give { group, parts: payload, .. } => {
                group.len() + payload.0.len()
            }
            // The last two come at the beginning and at the end of a view: they never wait to be sent.
            Self::LeaseExpired { .. } | Self::Part(_) | Self::Summary(_) => 0,
        };
        LEAST + long
    }
}

/// About how many bytes an operation takes without names, labels and messages.
const LEAST: usize = 48;
/// The heaviest operation that a member may ask for.
pub(crate) const HEAVIEST: usize = LEAST + LONGEST + MAX_MESSAGE;

/// Operations that travel together.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Deserialize)]
#[serde(from = "Vec<Op>")]
pub(crate) struct Batch {
    pub(crate) ops: Arc<Vec<Op>>,
    /// Summed up once: it is asked for again and again.
    weight: usize,
}

impl Batch {
    pub(crate) fn of(ops: Vec<Op>) -> Self {
        let weight = ops.iter().map(Op::weight).sum();
        Self { ops: Arc::new(ops), weight }
    }

    /// About how many bytes it takes.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }
}

impl From<Vec<Op>> for Batch {
    fn from(ops: Vec<Op>) -> Self {
        Self::of(ops)
    }
}

impl Serialize for Batch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.ops.serialize(serializer)
    }
}

/// A part of a table.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) count: u64,
    pub(crate) locks: Vec<(Key, Lock)>,
    pub(crate) barriers: Vec<(Name, BarrierState)>,
    pub(crate) app_groups: Vec<(Name, AppGroup)>,
}

/// What became of an operation, for whomever it concerns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// It has it.
    Granted { claim: ClaimId, key: Key, token: Token },
    /// It cannot have it.
    Refused { claim: ClaimId, key: Key, why: Refusal },
    /// It was taken away.
    GrantRevoked { claim: ClaimId, key: Key, token: Token },
    /// Someone else wants it: to whoever holds it.
    Contended { key: Key },
    /// Holders or their order changed.
    Changed { key: Key },
    /// Someone was silent: what it held is fenced until the leader says that it must know.
    Fenced { member: Member },
    /// Whether there was someone to take it from.
    RevokeDone { claim: ClaimId, held: bool },
    /// The barrier opened for these.
    Opened { claims: Vec<ClaimId> },
    /// The barrier is one for another number.
    Mismatch { claim: ClaimId, of: u32 },
    /// The members of a group, after a change.
    AppView { group: Name, members: Vec<AppMember> },
    /// A message of a group.
    AppMessage { group: Name, from: ClaimId, payload: Payload },
    /// This member of the group shall give its state as of now.
    StateRequested { group: Name, donor: ClaimId, to: ClaimId },
    /// The state for this one, as of when it was asked for.
    StateGiven { group: Name, to: ClaimId, payload: Payload },
}

/// Why someone cannot have it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    Busy,
    Permits { of: u32 },
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{} bytes]", self.0.len())
    }
}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Payload;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Payload, E> {
                Ok(Payload(bytes.into()))
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}
