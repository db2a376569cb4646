//! `konklave`: elect a leader, take a lock, speak as a group — and see why it works.

/// Says something on stderr; who has closed that does not want to know.
macro_rules! tell {
    ($($words:tt)*) => {{
        let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{}\n", format_args!($($words)*)));
    }};
}

mod args;
mod commands;
mod failure;
mod interrupt;
mod output;

use std::ffi::OsStr;
use std::io::Write;
use std::process::ExitCode;

use clap::builder::Resettable;
use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};

use crate::args::Cli;
use crate::failure::Failure;

fn main() -> ExitCode {
    let command = without_blanks(Cli::command());
    let parsed = command.try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to stdout and are no error; all else is a wrong use.
            let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            if !asked {
                konklave_agent::misused(&error);
            }
            let printed = error.print().and_then(|()| std::io::stdout().flush());
            return match printed {
                Err(error) if asked => Failure::Output(error).report(),
                _ => ExitCode::from(if asked { 0 } else { 64 }),
            };
        }
    };
    match std::panic::catch_unwind(|| commands::dispatch(cli)) {
        Ok(Ok(code)) => ExitCode::from(code),
        Ok(Err(failure)) => failure.report(),
        Err(_) => {
            tell!("konklave: this is a bug of ours, sorry: please report it with the lines above");
            ExitCode::from(70)
        }
    }
}

/// Who sets a variable to nothing means to leave it open.
fn without_blanks(command: clap::Command) -> clap::Command {
    let blank = |name: &OsStr| std::env::var_os(name).is_some_and(|v| v.is_empty());
    command
        .mut_args(|arg| match arg.get_env().is_some_and(blank) {
            true => arg.env(Resettable::Reset),
            false => arg,
        })
        .mut_subcommands(without_blanks)
}

/// What a command returns: an exit code, or why it failed.
type Done = Result<u8, Failure>;
