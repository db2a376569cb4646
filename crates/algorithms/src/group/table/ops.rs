//! Operations on the table, and their outcomes.

use std::fmt;
use std::sync::Arc;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::barriers::BarrierState;
use super::{AppGroup, AppMember, Lock, Name};
use crate::group::{Member, Token};

/// The kind of a name: a lock and a semaphore may have the same name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Space {
    /// A lock.
    Lock,
    /// A semaphore.
    Semaphore,
    /// A campaign.
    Campaign,
}

/// The key of a lock, semaphore or campaign.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Key {
    /// The kind.
    pub space: Space,
    /// The name.
    #[serde(deserialize_with = "text")]
    pub name: Name,
}

/// Deserialises text by copying it once.
pub fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    struct Text;
    impl Visitor<'_> for Text {
        type Value = Arc<str>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("text")
        }
        fn visit_str<E>(self, text: &str) -> Result<Arc<str>, E> {
            Ok(text.into())
        }
    }
    deserializer.deserialize_str(Text)
}

/// How a lock is held.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum LockMode {
    /// Alone.
    Exclusive,
    /// Together with other shared holders.
    Shared,
    /// One of `of` permits.
    Permit {
        /// The number of permits.
        of: u32,
    },
}

/// Identifies a claim: a request, and later the grant that answers it. It consists of a member's incarnation,
/// one of its sessions, and the number of the request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ClaimId {
    /// The member.
    pub member: Member,
    /// Its session.
    pub session: u32,
    /// The number of the request.
    pub number: u64,
}

/// Bytes of the application.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Payload(
    /// The bytes.
    pub Arc<[u8]>,
);

/// An operation that a member submits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields are named after what they are")]
pub enum Op {
    /// Requests a lock.
    Acquire {
        claim: ClaimId,
        key: Key,
        mode: LockMode,
        /// Whether to wait while a session uses the lock.
        wait: bool,
        /// Whether the grant is lease-safe: fenced after its holder falls silent.
        safe: bool,
        /// How long the grant is fenced then, in milliseconds.
        lease: u32,
        /// Higher priorities are served first.
        priority: i32,
        /// For people.
        #[serde(deserialize_with = "text")]
        label: Arc<str>,
    },
    /// Takes over a fenced grant of an earlier incarnation of the same process: its holder has gone on, and its
    /// deadline has not passed.
    Adopt { claim: ClaimId, key: Key, token: Token },
    /// Releases a grant, or withdraws a queued request.
    Release { claim: ClaimId, key: Key },
    /// The holder's node has passed the lock to its own queued request `to`, the next one.
    Pass { key: Key, from: ClaimId, to: ClaimId, token: Token },
    /// Withdraws a queued request.
    Cancel { claim: ClaimId, key: Key },
    /// The holder's node denies a request that does not wait: a session uses the lock.
    Deny { claim: ClaimId, key: Key },
    /// Releases the fenced grants of this member whose leases are this long, in milliseconds, or shorter: they
    /// have expired.
    LeaseExpired { member: Member, lease: u32 },
    /// Revokes the grants under a key; with a token, only that one.
    Revoke { claim: ClaimId, key: Key, token: Option<Token> },
    /// Arrives at a barrier for `of` parties.
    Arrive { claim: ClaimId, name: Name, of: u32 },
    /// Withdraws an arrival.
    Depart { claim: ClaimId, name: Name },
    /// Joins a group.
    Enter { group: Name, claim: ClaimId, label: Arc<str> },
    /// Leaves a group.
    Exit { group: Name, claim: ClaimId },
    /// Sends a message to a group.
    Say { group: Name, claim: ClaimId, payload: Payload },
    /// Gives the state of a group to a new member, or a piece of it; `more` pieces may follow.
    Give { group: Name, to: ClaimId, by: ClaimId, piece: Payload, more: bool },
    /// A part of the table, for a new member.
    Part(Part),
    /// The summary of a member's lifted locks, at the end of a view.
    Summary(Summary),
    /// The donor `instead_of` has not given its state for long: asks another one. If it has `declined` to give it,
    /// it is not asked again.
    AskAnother { group: Name, to: ClaimId, instead_of: ClaimId, declined: bool },
}

impl Op {
    /// The lock that the operation concerns, if it concerns exactly one.
    pub fn lock_key(&self) -> Option<&Key> {
        match self {
            Self::Acquire { key, .. }
            | Self::Adopt { key, .. }
            | Self::Release { key, .. }
            | Self::Pass { key, .. }
            | Self::Cancel { key, .. }
            | Self::Deny { key, .. } => Some(key),
            _ => None,
        }
    }

    /// About how many bytes it takes.
    pub fn weight(&self) -> usize {
        let long = match self {
            Self::Acquire { key, label, .. } => key.name.len() + label.len(),
            Self::Adopt { key, .. }
            | Self::Release { key, .. }
            | Self::Pass { key, .. }
            | Self::Cancel { key, .. }
            | Self::Deny { key, .. }
            | Self::Revoke { key, .. } => key.name.len(),
            Self::Arrive { name, .. } | Self::Depart { name, .. } => name.len(),
            Self::Enter { group, label, .. } => group.len() + label.len(),
            Self::Exit { group, .. } | Self::AskAnother { group, .. } => group.len(),
            Self::Say { group, payload, .. } | Self::Give { group, piece: payload, .. } => {
                group.len() + payload.0.len()
            }
            // The leader's own, or part of a view change: they never queue in large numbers.
            Self::LeaseExpired { .. } | Self::Part(_) | Self::Summary(_) => 0,
        };
        LEAST + long
    }
}

/// About how many bytes an operation takes without names, labels and messages.
pub const LEAST: usize = 48;

/// Operations that travel together.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Deserialize)]
#[serde(from = "Vec<Op>")]
pub struct Batch {
    /// The operations, in order.
    pub ops: Arc<Vec<Op>>,
    /// Computed once, because it is read often.
    weight: usize,
}

impl Batch {
    /// These operations.
    pub fn of(ops: Vec<Op>) -> Self {
        let weight = ops.iter().map(Op::weight).sum();
        Self { ops: Arc::new(ops), weight }
    }

    /// About how many bytes it takes.
    pub fn weight(&self) -> usize {
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

/// A part of the table.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Part {
    /// The number of tokens given in this view.
    pub count: u64,
    /// Locks.
    pub locks: Vec<(Key, Lock)>,
    /// Barriers.
    pub barriers: Vec<(Name, BarrierState)>,
    /// Groups of the application.
    pub app_groups: Vec<(Name, AppGroup)>,
}

/// A member's report on its lifted locks when a view ends.
pub type Summary = Vec<(Name, Report)>;

/// One fact about a lifted lock in a member's summary.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Report {
    /// A local session holds it.
    Holding {
        /// The token of the grant.
        token: Token,
        /// Whether the grant is lease-safe.
        safe: bool,
    },
    /// A local session waits. The number: the grants there had been when the view ended, as far as this node
    /// knows.
    Waiting(u64),
    /// The token is at this node, and no local session holds the lock.
    Parked,
    /// This member holds it lease-safe, or announced that it may.
    Safe(Member),
    /// This member is excluded, and its lease may not have expired.
    Fenced(Member),
}

/// The outcome of an operation.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the fields are named after what they are")]
pub enum Outcome {
    /// A claim was granted.
    Granted { claim: ClaimId, key: Key, token: Token },
    /// A request was refused.
    Refused { claim: ClaimId, key: Key, why: Refusal },
    /// A grant was revoked.
    GrantRevoked { claim: ClaimId, key: Key, token: Token },
    /// A request is queued behind the holder.
    Contended { key: Key },
    /// The holders or their order have changed.
    Changed { key: Key },
    /// Grants of an excluded member with this lease are fenced until the leader submits [`Op::LeaseExpired`].
    Fenced { member: Member, lease: u32 },
    /// The answer to [`Op::Revoke`]: whether there was a grant.
    RevokeDone { claim: ClaimId, held: bool },
    /// The barrier opened for these claims.
    Opened { claims: Vec<ClaimId> },
    /// The arrival is withdrawn.
    Departed { claim: ClaimId },
    /// The barrier has another number of parties.
    Mismatch { claim: ClaimId, of: u32 },
    /// The members of a group after a change.
    AppView { group: Name, members: Vec<AppMember> },
    /// A message to a group.
    AppMessage { group: Name, from: ClaimId, payload: Payload },
    /// Asks the member `donor` for its state as of now.
    StateRequested { group: Name, donor: ClaimId, to: ClaimId },
    /// The state for a new member, as of when it was requested.
    StateGiven { group: Name, to: ClaimId, state: GivenState },
}

/// The state that a new member gets.
#[expect(missing_docs, reason = "the fields are named after what they are")]
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GivenState {
    /// No other member has one.
    First,
    /// All members that have one have declined to give it.
    Declined,
    /// A piece of it; `more` pieces may follow.
    Piece { bytes: Payload, more: bool },
}

/// Why a request is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The lock is in use, and the request does not wait.
    Busy,
    /// There is no grant to take over: its lease has expired, or its process left in order.
    Gone,
    /// The semaphore has another number of permits.
    Permits {
        /// Its number of permits.
        of: u32,
    },
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
