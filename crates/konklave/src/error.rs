//! Errors.

use std::io;
use std::path::PathBuf;

/// Why a request failed. After an error, nothing is held unless the error says so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The lock is taken, and the request does not wait.
    #[error("{0} is taken")]
    Busy(String),
    /// The request was not granted in time.
    #[error("{0} was not granted in time")]
    TimedOut(String),
    /// The grant, membership or answer is lost.
    #[error("{0} is lost")]
    Lost(String),
    /// The session was closed.
    #[error("the session is closed")]
    Closed,
    /// The node has left, or is shutting down.
    #[error("the node has left its group")]
    Left,
    /// A semaphore has a fixed number of permits.
    #[error("{name} has {of} permits, not {asked}")]
    Permits {
        /// The semaphore.
        name: String,
        /// Its number of permits.
        of: u32,
        /// The number in the request.
        asked: u32,
    },
    /// A barrier has a fixed number of parties.
    #[error("{name} is a barrier for {of} parties, not {asked}")]
    Parties {
        /// The barrier.
        name: String,
        /// Its number of parties.
        of: u32,
        /// The number in the request.
        asked: u32,
    },
    /// The group's lock algorithm serves exclusive locks only.
    #[error(
        "{name}: {algorithm} serves exclusive locks only; shared ones need a group with mutex table"
    )]
    OnlyExclusive {
        /// The lock.
        name: String,
        /// The algorithm.
        algorithm: crate::LockAlgorithm,
    },
    /// The group's lock algorithm gives all locks the group's lease.
    #[error(
        "{name}: {algorithm} gives every lock the lease of the group; a lease of its own needs a group with \
         mutex table"
    )]
    OnlyGroupLease {
        /// The lock.
        name: String,
        /// The algorithm.
        algorithm: crate::LockAlgorithm,
    },
    /// Nobody holds it, or not with this token.
    #[error("{0}: no client holds it, or none with this token")]
    NotHeld(String),
    /// The name is invalid.
    #[error("{0:?} is not a valid name: 1 to 255 bytes, without control characters")]
    BadName(String),
    /// A message is too long.
    #[error("the message has {bytes} bytes: {limit} at most")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The longest allowed.
        limit: usize,
    },
    /// The configuration is invalid or contradicts itself.
    #[error("{0}")]
    Config(String),
    /// There is no group to use yet; the text tells what is missing.
    #[error("no group yet: {0}")]
    NoGroup(String),
    /// The data directory failed.
    #[error("{path}: {error}", path = .0.display(), error = .1)]
    Store(PathBuf, #[source] io::Error),
    /// The network failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}
