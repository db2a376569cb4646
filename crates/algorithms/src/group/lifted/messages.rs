//! The messages, and the summaries that processes give at the end of a view.

use serde::{Deserialize, Serialize};

use crate::group::Token;
use crate::group::ViewId;
use crate::group::locks::Name;
use crate::group::virtual_synchrony;

/// A process's report on a lock at the end of a view.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Report {
    /// The process holds it, with this token.
    Holding(Token),
    /// The process waits for it. It asked when it knew of this many entries.
    Waiting(u64),
    /// The process has its token and does not use it.
    Parked,
}

/// A process's reports on its locks at the end of a view.
pub type Summary = Vec<(Name, Report)>;

/// A message of the lifted algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct InnerMessage<M> {
    /// The view it belongs to.
    pub view: ViewId,
    /// Its number in the channel from its sender to its receiver, from 1.
    pub seq: u32,
    /// The lock.
    pub name: Name,
    /// The highest count of entries that the sender knows.
    pub count: u64,
    /// The algorithm's own message.
    pub message: M,
}

/// The messages.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message<M> {
    /// A message of the group.
    Group(virtual_synchrony::Message<Summary>),
    /// A message about a lock.
    Inside(InnerMessage<M>),
    /// The sender has received all lifted messages of the receiver up to this number.
    Got {
        /// The view.
        view: ViewId,
        /// The number of the last one.
        upto: u32,
    },
    /// The sender asks for a lease.
    Ask {
        /// The view.
        view: ViewId,
        /// The number of this round of asking.
        round: u32,
    },
    /// The sender grants the lease.
    Yes {
        /// The view.
        view: ViewId,
        /// The round that it answers.
        round: u32,
    },
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// A timer of the group.
    Group(virtual_synchrony::Timer),
    /// It is time to ask for the next lease.
    Renew,
    /// The grants of this round, modulo 8, have run out.
    Lapse(u8),
    /// Every excluded process knows by now that its locks are lost.
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
