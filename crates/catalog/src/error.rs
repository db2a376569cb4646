//! Errors of scenarios, files and worlds.

use thiserror::Error;

/// Why a command cannot run.
#[derive(Debug, Error)]
pub enum Error {
    /// An option or argument is wrong.
    #[error("{0}")]
    Usage(String),
    /// The content of a file is wrong.
    #[error("{0}")]
    Data(String),
    /// A file that cannot be read.
    #[error("cannot read {file}: {why}")]
    Unreadable {
        /// The name of the file.
        file: String,
        /// The error of the operating system.
        why: std::io::Error,
    },
    /// A file that cannot be written.
    #[error("cannot write {file}: {why}")]
    Unwritable {
        /// The name of the file.
        file: String,
        /// The error of the operating system.
        why: std::io::Error,
    },
    /// A needed resource of the system is not available.
    #[error("{0}")]
    Unavailable(String),
}

impl Error {
    /// The exit code of the command.
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
