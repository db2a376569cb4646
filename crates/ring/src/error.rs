//! Errors of the ring.

use std::io;
use std::path::Path;

use thiserror::Error;

/// An error that keeps the program from running to its end.
#[derive(Debug, Error)]
pub enum RingError {
    /// An option is missing or wrong. Nothing was started.
    #[error("{0}")]
    Usage(String),
    /// A line of the config file is wrong. Nothing was started.
    #[error("{}:{line}: {what}", .file.display())]
    Config {
        /// The config file.
        file: Box<Path>,
        /// The line, from 1.
        line: usize,
        /// The mistake in the configuration.
        what: String,
    },
    /// The config file cannot be read. Nothing was started.
    #[error("--config {}: cannot read it: {reason}", .file.display())]
    Unreadable {
        /// The config file.
        file: Box<Path>,
        /// The error of the operating system.
        reason: io::Error,
    },
    /// The log file cannot be written. Nothing was started.
    #[error("--log-file {}: cannot write it: {reason}", .path.display())]
    LogFile {
        /// The log file.
        path: Box<Path>,
        /// The error of the operating system.
        reason: io::Error,
    },
    /// There are too few threads for the ring. Those that ran were stopped.
    #[error("SIZE {size}: the system cannot create more threads: {reason}")]
    Threads {
        /// How many workers were wanted.
        size: usize,
        /// The error of the operating system.
        reason: io::Error,
    },
    /// The results cannot be written. The ring was stopped.
    #[error("cannot write the results: {0}")]
    Output(io::Error),
    /// A second signal came. The ring was left as it was.
    #[error("interrupted")]
    Interrupted,
}

impl RingError {
    /// The status to end the program with.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 64,
            Self::Config { .. } => 65,
            Self::Unreadable { .. } => 66,
            Self::Threads { .. } => 69,
            Self::LogFile { .. } => 73,
            Self::Output(_) => 74,
            Self::Interrupted => 130,
        }
    }
}
