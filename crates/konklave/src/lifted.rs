//! Messages between members about lifted locks: those that an algorithm serves inside a view.

use std::sync::Arc;

use konklave_algorithms::group::ViewId;
use konklave_algorithms::group::lifted::AnyMessage;
use serde::{Deserialize, Serialize};

use crate::table::{Name, text};
use crate::token::Token;

/// A message about one lock, in one view.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct LiftedFrame {
    pub(crate) view: ViewId,
    /// The number of this frame among those to its receiver in this view, from 1.
    pub(crate) number: u64,
    #[serde(deserialize_with = "text")]
    pub(crate) name: Name,
    pub(crate) message: LockMessage,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) enum LockMessage {
    /// A message of the algorithm. `count`: the sender knows of this many grants. `safe`: announces the
    /// sender as a lease-safe holder, as [`Safe`](Self::Safe) does. `noted`: the sender knows the receiver as
    /// one.
    Step { count: u64, safe: bool, noted: bool, message: AnyMessage },
    /// The sender may hold the lock lease-safe from now on: if it falls silent, wait for its lease. Asks for
    /// [`Noted`](Self::Noted).
    Safe,
    /// The sender knows the receiver as a possible lease-safe holder.
    Noted,
    /// The sender wants the lock only if it is free: a node that uses or wants it answers
    /// [`InUse`](Self::InUse).
    Try { number: u64 },
    /// The sender uses the lock or wants it.
    InUse { number: u64 },
    /// An operator revokes the lock.
    Revoke { number: u64, token: Option<Token> },
    /// Whether a local grant was revoked.
    Revoked { number: u64, held: bool },
    /// The local holder and waiters, for people.
    Note(LockNote),
}

/// The holder and the waiters of a lock at one node.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub(crate) struct LockNote {
    pub(crate) holder: Option<(Token, NotedClaim)>,
    pub(crate) queue: Vec<NotedClaim>,
}

/// One of them.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct NotedClaim {
    pub(crate) session: u32,
    pub(crate) number: u64,
    pub(crate) safe: bool,
    pub(crate) label: Arc<str>,
    /// For how many milliseconds it has held or waited.
    pub(crate) since: u64,
}
