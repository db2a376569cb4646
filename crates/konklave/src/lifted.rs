//! What members message to each other about locks that an algorithm serves inside a view.

use std::sync::Arc;

use konklave_algorithms::group::lifted::AnyMessage;
use konklave_algorithms::group::{Member, ViewId};
use serde::{Deserialize, Serialize};

use crate::table::{Name, text};
use crate::token::Token;

/// Something about one lock, in one view.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct LiftedFrame {
    pub(crate) view: ViewId,
    /// How many there were to this receiver in this view, this one included.
    pub(crate) number: u64,
    #[serde(deserialize_with = "text")]
    pub(crate) name: Name,
    pub(crate) message: LockMessage,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) enum LockMessage {
    /// A message of the algorithm, of one who knows of so many entries; who may mode it safely, as with
    /// [`Safe`](Self::Safe), and knows that of the receiver.
    Step { count: u64, safe: bool, noted: bool, message: AnyMessage },
    /// From now on I may mode it safely: if I fall silent, wait until I must know. Confirm that.
    Safe,
    /// I know that you may.
    Noted,
    /// I want it now or not at all: who has it, or wants it, says so.
    Try { number: u64 },
    /// I do.
    Used { number: u64 },
    /// An operator takes it from whoever holds it.
    Revoke { number: u64, token: Option<Token> },
    /// Whether it was taken from someone here.
    Revoked { number: u64, held: bool },
    /// Who here has it and who here waits, for people.
    Note(LockNote),
}

/// Who at one node has a lock, and who waits for it there.
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
    /// For how many milliseconds.
    pub(crate) since: u64,
}

/// What a member says of a lock when a view ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// Someone here holds it.
    Holding { token: Token, safe: bool },
    /// Someone here waits, since there had been so many entries.
    Waiting(u64),
    /// Nobody holds it: the right to is here.
    Parked,
    /// This member holds it safely, or said that it may.
    Safe(Member),
    /// This one is gone, and may not know that yet.
    Fenced(Member),
}

/// What a member says when a view ends.
pub(crate) type Summary = Vec<(Name, Report)>;
