//! What the processes say to each other, and at the end of a view.

use serde::{Deserialize, Serialize};

use crate::group::ViewId;
use crate::group::locks::{Name, Token};
use crate::group::virtual_synchrony;

/// What a member says of a lock at the end of a view.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Report {
    /// I hold it, with this token.
    Holding(Token),
    /// I wait for it, and asked when there had been so many entries.
    Waiting(u64),
    /// Its token is here, and nobody uses it.
    Parked,
}

/// What a member says at the end of a view: of every lock that it has something to say of.
pub type Summary = Vec<(Name, Report)>;

/// A message of the algorithm within.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Inside<M> {
    /// The view it belongs to.
    pub view: ViewId,
    /// Which of those from its sender to its receiver in this view, from 1.
    pub seq: u32,
    /// The lock.
    pub name: Name,
    /// How many entries the sender knows of.
    pub count: u64,
    /// What it says.
    pub message: M,
}

/// What the processes say.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message<M> {
    /// Something about views.
    Group(virtual_synchrony::Message<Summary>),
    /// Something about a lock.
    Inside(Inside<M>),
    /// I have all of yours up to here.
    Got {
        /// The view.
        view: ViewId,
        /// The last in a row.
        upto: u32,
    },
    /// Am I still with you?
    Ask {
        /// The view.
        view: ViewId,
        /// Which question this is.
        round: u32,
    },
    /// Yes.
    Yes {
        /// The view.
        view: ViewId,
        /// Which question this answers.
        round: u32,
    },
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// One of the group.
    Group(virtual_synchrony::Timer),
    /// It is time to ask for the next lease.
    Renew,
    /// What this question brought, counted modulo 8, counts no longer.
    Lapse(u8),
    /// Whoever is excluded knows it by now.
    Caution,
}

impl<M> From<virtual_synchrony::Message<Summary>> for Message<M> {
    fn from(message: virtual_synchrony::Message<Summary>) -> Self {
        Self::Group(message)
    }
}

impl From<virtual_synchrony::Timer> for Timer {
    fn from(timer: virtual_synchrony::Timer) -> Self {
        Self::Group(timer)
    }
}
