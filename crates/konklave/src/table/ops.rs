//! Operations and what becomes of them.

use std::fmt;
use std::sync::Arc;

use konklave_algorithms::group::Member;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::barriers::Meeting;
use super::{Circle, Lock, Name, Place};
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
pub(crate) enum Hold {
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
pub(crate) struct Claim {
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
        claim: Claim,
        key: Key,
        hold: Hold,
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
    Release { claim: Claim, key: Key },
    /// I have let it go, and given it to the next in the queue, who is at my place, too.
    Pass { key: Key, from: Claim, to: Claim, token: Token },
    /// I want it no more.
    Cancel { claim: Claim, key: Key },
    /// I hold it, and who asked does not wait.
    Deny { claim: Claim, key: Key },
    /// What this member held is free: it must know by now.
    Thaw { member: Member },
    /// An operator takes it from its holder.
    Revoke { claim: Claim, key: Key, token: Option<Token> },
    /// I am at the barrier, which opens for so many.
    Arrive { claim: Claim, name: Name, of: u32 },
    /// I do not wait at the barrier any more.
    Depart { claim: Claim, name: Name },
    /// I join a group.
    Enter { group: Name, claim: Claim, label: Arc<str> },
    /// I leave it.
    Exit { group: Name, claim: Claim },
    /// A message to a group.
    Say { group: Name, claim: Claim, payload: Payload },
    /// The state of a group for one who joined, from one who was asked.
    Give { group: Name, to: Claim, by: Claim, parts: Payload },
    /// A part of a table.
    Part(Part),
    /// What a member says at the end of a view of the locks that no table serves.
    Summary(Summary),
    /// I have waited long for a state from this one: someone else shall give it.
    AskAnother { group: Name, to: Claim, instead_of: Claim },
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
            Self::Thaw { .. } | Self::Part(_) | Self::Summary(_) => 0,
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
    pub(crate) meetings: Vec<(Name, Meeting)>,
    pub(crate) circles: Vec<(Name, Circle)>,
}

/// What became of an operation, for whomever it concerns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// It has it.
    Granted { claim: Claim, key: Key, token: Token },
    /// It cannot have it.
    Refused { claim: Claim, key: Key, why: Refusal },
    /// It was taken away.
    Taken { claim: Claim, key: Key, token: Token },
    /// Someone else wants it: to whoever holds it.
    Wanted { key: Key },
    /// Holders or their order changed.
    Changed { key: Key },
    /// Someone was silent: what it held is frozen until the leader says that it must know.
    Frozen { member: Member },
    /// Whether there was someone to take it from.
    Revoked { claim: Claim, held: bool },
    /// The barrier opened for these.
    Opened { claims: Vec<Claim> },
    /// The barrier is one for another number.
    Mismatch { claim: Claim, of: u32 },
    /// The members of a group, after a change.
    Circle { group: Name, places: Vec<Place> },
    /// A message of a group.
    Said { group: Name, from: Claim, payload: Payload },
    /// This member of the group shall give its state as of now.
    Ask { group: Name, donor: Claim, to: Claim },
    /// The state for this one, as of when it was asked for.
    Given { group: Name, to: Claim, payload: Payload },
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
