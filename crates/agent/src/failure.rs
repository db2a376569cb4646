//! Why a command failed, and the exit code that says so.

use std::io;
use std::path::Path;

/// Not obtained: someone else has it, or the time was over.
pub const NOT_OBTAINED: u8 = 75;
/// Lost while the command ran.
pub const LOST: u8 = 76;
/// The command is there, but cannot be run.
pub const NOT_EXECUTABLE: u8 = 126;
/// There is no such command.
pub const NOT_FOUND: u8 = 127;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// Something was asked in a wrong way.
    #[error("{0}")]
    Usage(String),
    /// A file of ours, or what the other side sent, is not what it should be.
    #[error("{0}")]
    Data(String),
    /// A file cannot be opened or read.
    #[error("{0}")]
    Unreadable(String),
    /// A file or a folder cannot be made or written.
    #[error("{0}")]
    Unwritable(String),
    /// The configuration is wrong.
    #[error("{0}")]
    Config(String),
    /// No agent, or one that cannot do it now.
    #[error("{0}")]
    Unavailable(String),
    /// What an agent needs, another one has: a port, the data directory, the socket.
    #[error("{0}")]
    InUse(String),
    /// Someone else has it, or the time was over.
    #[error("{0}")]
    NotObtained(String),
    /// Not allowed.
    #[error("{0}")]
    Forbidden(String),
    /// The operating system refused something.
    #[error("{what}: {why}")]
    System {
        /// What was tried.
        what: String,
        /// What the system said.
        why: io::Error,
    },
    /// Output could not be written.
    #[error("cannot write the output: {0}")]
    Output(io::Error),
}

impl Failure {
    /// The exit code, of the table in book/en/operate/agents.md.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 64,
            Self::Data(_) => 65,
            Self::Unreadable(_) => 66,
            Self::Unavailable(_) | Self::InUse(_) => 69,
            Self::System { .. } => 71,
            Self::Unwritable(_) => 73,
            // A reader who went away is no failure.
            Self::Output(why) if why.kind() == io::ErrorKind::BrokenPipe => 0,
            Self::Output(_) => 74,
            Self::NotObtained(_) => NOT_OBTAINED,
            Self::Forbidden(_) => 77,
            Self::Config(_) => 78,
        }
    }

    /// Says so on stderr, and gives the exit code.
    #[must_use]
    pub fn report(&self) -> u8 {
        let code = self.exit_code();
        if code != 0 {
            eprintln!("konklave: {self}");
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

    /// What another one has, and how to name something else.
    pub(crate) fn in_use(what: impl std::fmt::Display, way: &str) -> Self {
        Self::InUse(format!("{what}\n  stop it, or {way}"))
    }

    /// Why nothing can be opened at an address: another one is there (`way` names another address), or
    /// whatever else the system says.
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
