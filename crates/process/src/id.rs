//! Names of processes and of their ports.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The largest id a process may have: sets of processes are bit sets.
pub const MAX_ID: u32 = (1 << 24) - 1;

/// A process, by the id that its user gave it. Elections compare these.
///
/// Ids need not be dense: [`Group`](crate::Group) knows where in the group an id stands.
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

/// One end of a channel, as its process numbers them: all that an anonymous process knows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Port(pub u32);

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}
