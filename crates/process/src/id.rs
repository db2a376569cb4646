//! Ids of processes and numbers of their ports.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The largest id a process may have: sets of processes are bit sets.
pub const MAX_ID: u32 = (1 << 24) - 1;

/// The id of a process, given by the user. Elections compare ids.
///
/// Ids need not be dense: [`Group`](crate::Group) knows the place of each id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProcessId(pub u32);

impl fmt::Debug for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}", self.0)
    }
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}", self.0)
    }
}

/// One end of a channel, as its process numbers them. An anonymous process knows its ports only.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Port(pub u32);

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}
