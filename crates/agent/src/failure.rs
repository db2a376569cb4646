//! Why a command failed, and its exit code.

use std::io;
use std::path::Path;

/// Not obtained: another client holds the lock, or the wait timed out.
pub const NOT_OBTAINED: u8 = 75;
/// The lock was lost while the command ran.
pub const LOST: u8 = 76;
/// The command exists but cannot be run.
pub const NOT_EXECUTABLE: u8 = 126;
/// There is no such command.
pub const NOT_FOUND: u8 = 127;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The command line, or a request to the agent, is invalid.
    #[error("{0}")]
    Usage(String),
    /// A file, or a reply of the agent, has invalid content.
    #[error("{0}")]
    Data(String),
    /// A file cannot be opened or read.
    #[error("{0}")]
    Unreadable(String),
    /// A file or a folder cannot be created or written.
    #[error("{0}")]
    Unwritable(String),
    /// The configuration is invalid.
    #[error("{0}")]
    Config(String),
    /// There is no agent, or it cannot serve the request now.
    #[error("{0}")]
    Unavailable(String),
    /// Another process uses the port, the data directory or the socket of this agent.
    #[error("{0}")]
    InUse(String),
    /// Another client holds the lock, or the wait timed out.
    #[error("{0}")]
    NotObtained(String),
    /// The agent does not serve this user.
    #[error("{0}")]
    Forbidden(String),
    /// A call of the operating system failed.
    #[error("{what}: {why}")]
    System {
        /// The action that failed.
        what: String,
        /// The system's error.
        why: io::Error,
    },
    /// Output could not be written.
    #[error("cannot write the output: {0}")]
    Output(io::Error),
}

impl Failure {
    /// The exit code, of the table in book/en/reference/exit-codes.md.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 64,
            Self::Data(_) => 65,
            Self::Unreadable(_) => 66,
            Self::Unavailable(_) | Self::InUse(_) => 69,
            Self::System { .. } => 71,
            Self::Unwritable(_) => 73,
            // A closed pipe (`konklave watch | head`) is not a failure.
            Self::Output(why) if why.kind() == io::ErrorKind::BrokenPipe => 0,
            Self::Output(_) => 74,
            Self::NotObtained(_) => NOT_OBTAINED,
            Self::Forbidden(_) => 77,
            Self::Config(_) => 78,
        }
    }

    /// Prints the failure on stderr, and returns the exit code.
    #[must_use]
    pub fn report(&self) -> u8 {
        let code = self.exit_code();
        if code != 0 {
            eprintln!("{}: {self}", crate::program::program());
        }
        code
    }

    pub(crate) fn unreadable(file: &Path) -> impl FnOnce(io::Error) -> Self {
        let file = file.display().to_string();
        move |why| Self::Unreadable(format!("cannot read {file}: {why}"))
    }

    pub(crate) fn unwritable(file: &Path) -> impl FnOnce(io::Error) -> Self {
        let file = file.display().to_string();
        move |why| Self::Unwritable(format!("cannot write {file}: {why}"))
    }

    /// A resource that another process uses; `way` says how to choose another resource.
    pub(crate) fn in_use(what: impl std::fmt::Display, way: &str) -> Self {
        Self::InUse(format!("{what}\n  stop the other one, or {way}"))
    }

    /// Why a socket cannot be opened: its address is in use (`way` says how to choose another one), or
    /// any other error of the system.
    pub(crate) fn bind(what: impl Into<String>, way: &str) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |why| match why.kind() {
            io::ErrorKind::AddrInUse => {
                Self::in_use(format!("{what}: another program uses this address"), way)
            }
            _ => Self::System { what, why },
        }
    }

    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |why| Self::System { what, why }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
