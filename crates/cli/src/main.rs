//! `konklave`: elect a leader, take a lock, speak as a group — and see why it works.

mod args;
mod commands;
mod failure;
mod interrupt;
mod output;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use crate::args::Cli;
use crate::failure::Failure;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to stdout and are no error; all else is a wrong use.
            let wrong = !matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            let _ = error.print();
            return ExitCode::from(if wrong { 64 } else { 0 });
        }
    };
    match std::panic::catch_unwind(|| commands::dispatch(cli)) {
        Ok(Ok(code)) => ExitCode::from(code),
        Ok(Err(failure)) => failure.report(),
        Err(_) => {
            eprintln!(
                "konklave: this is a bug of ours, sorry: please report it with the lines above"
            );
            ExitCode::from(70)
        }
    }
}

/// What a command returns: an exit code, or why it failed.
type Done = Result<u8, Failure>;
