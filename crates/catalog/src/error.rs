//! What can be wrong with what a user wants.

use thiserror::Error;

/// Why something cannot be run.
#[derive(Debug, Error)]
pub enum Error {
    /// A wish that makes no sense.
    #[error("{0}")]
    Usage(String),
    /// A file that says nothing sensible.
    #[error("{0}")]
    Data(String),
    /// A file that cannot be read.
    #[error("cannot read {file}: {why}")]
    Unreadable {
        /// Which.
        file: String,
        /// Why not.
        why: std::io::Error,
    },
    /// A file that cannot be written.
    #[error("cannot write {file}: {why}")]
    Unwritable {
        /// Which.
        file: String,
        /// Why not.
        why: std::io::Error,
    },
    /// The world that was asked for cannot be had.
    #[error("{0}")]
    Unavailable(String),
}

impl Error {
    /// The exit code that says so.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 64,
            Self::Data(_) => 65,
            Self::Unreadable { .. } => 66,
            Self::Unavailable(_) => 69,
            Self::Unwritable { .. } => 73,
        }
    }
}
