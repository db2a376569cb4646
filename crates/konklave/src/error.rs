//! What can go wrong, and what it leaves behind.

use std::io;
use std::path::PathBuf;

/// Why something was not done. Nothing is held after an error unless it says so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Someone else holds it, and we were not to wait.
    #[error("{0} is taken")]
    Busy(String),
    /// It was not granted in time.
    #[error("{0} was not granted in time")]
    TimedOut(String),
    /// What we had is ours no more.
    #[error("{0} is lost")]
    Lost(String),
    /// The session was closed.
    #[error("the session is closed")]
    Closed,
    /// The node has left, or is being shut down.
    #[error("the node has left its group")]
    Left,
    /// A semaphore has one number of permits.
    #[error("{name} has {of} permits, not {asked}")]
    Permits {
        /// Which.
        name: String,
        /// How many it has.
        of: u32,
        /// How many we thought.
        asked: u32,
    },
    /// A barrier is for one number of parties.
    #[error("{name} is a barrier for {of}, not {asked}")]
    Parties {
        /// Which.
        name: String,
        /// For how many it is.
        of: u32,
        /// For how many we thought.
        asked: u32,
    },
    /// An algorithm serves the locks of this group, and it knows exclusive ones only.
    #[error(
        "{name}: {mutex} serves exclusive locks only; shared ones need a group with mutex table"
    )]
    OnlyExclusive {
        /// Which lock.
        name: String,
        /// The algorithm.
        mutex: crate::LockAlgorithm,
    },
    /// Nobody holds that, or not with that token.
    #[error("{0}: nobody holds it, or not with this token")]
    NotHeld(String),
    /// This cannot be a name.
    #[error("{0:?} is no name: 1 to 255 bytes, no control characters")]
    BadName(String),
    /// A message is too long.
    #[error("{bytes} bytes are too many: {limit} at most")]
    TooLong {
        /// What it has.
        bytes: usize,
        /// What it may have.
        limit: usize,
    },
    /// The builder was told things that do not go together.
    #[error("{0}")]
    Config(String),
    /// There is no group we may enter yet; what would help.
    #[error("no group yet: {0}")]
    NoGroup(String),
    /// The data directory.
    #[error("{path}: {error}", path = .0.display(), error = .1)]
    Store(PathBuf, #[source] io::Error),
    /// The network.
    #[error(transparent)]
    Io(#[from] io::Error),
}
