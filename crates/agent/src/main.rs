//! The program `konklave-agent`: the agent and its client commands, without the tools for studying
//! algorithms. The tests of this crate start it, too.

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

/// Locks, leaders and groups for processes on many machines.
#[derive(Parser)]
#[command(name = "konklave", version)]
struct Cli {
    #[command(subcommand)]
    command: konklave_agent::Command,
}

fn main() -> ExitCode {
    if let Some(code) = konklave_agent::helper() {
        return ExitCode::from(code);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let wrong = !matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            let _ = error.print();
            if wrong {
                konklave_agent::misused(&error);
            }
            return ExitCode::from(if wrong { 64 } else { 0 });
        }
    };
    ExitCode::from(konklave_agent::run(cli.command).unwrap_or_else(|failure| failure.report()))
}
