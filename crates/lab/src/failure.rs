//! Failures of commands: message and exit code.

use std::io;
use std::process::ExitCode;

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error in options or files.
    Catalog(konklave_catalog::Error),
    /// A message and an exit code.
    Other(String, u8),
    /// Output could not be written.
    Output(io::Error),
}

impl Failure {
    /// Prints the message to stderr. A closed stdout is no failure.
    pub(crate) fn report(self) -> ExitCode {
        let (message, code) = match self {
            Self::Catalog(error) => (error.to_string(), error.exit_code()),
            Self::Other(message, code) => (message, code),
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                return ExitCode::SUCCESS;
            }
            Self::Output(error) => (format!("cannot write the output: {error}"), 74),
        };
        tell!("{message}");
        ExitCode::from(code)
    }
}

impl From<konklave_catalog::Error> for Failure {
    fn from(error: konklave_catalog::Error) -> Self {
        Self::Catalog(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
