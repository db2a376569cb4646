//! The agent and its client commands: locks, elections and groups for programs of one machine or many.
//!
//! [`Command`] is the part of the command line that operates a group, and [`run`] performs it. The tools
//! for studying algorithms are elsewhere.

pub mod args;
pub mod client;
pub mod clock;
mod commands;
pub mod config;
mod daemon;
mod descriptors;
pub mod failure;
mod keys;
mod newcomers;
mod program;
pub mod protocol;
pub mod recorder;
pub mod server;
pub mod service;
pub mod wrapper;

use std::ffi::OsString;
use std::time::Duration;

pub use args::Command;
pub use failure::Failure;
pub use program::name_program;
pub use wrapper::helper;

use args::{ElectArgs, JsonLayout, LockArgs, RunArgs};
use protocol::{ClaimKind, check_name};
use wrapper::Job;

/// Performs `command` and returns the exit code. If JSON output was asked for, a failure is printed as a
/// JSON object, too.
pub fn run(command: Command) -> Result<u8, Failure> {
    let layout = command.json_layout();
    let result = perform(command);
    if let (Some(layout), Err(failure)) = (layout, &result) {
        commands::print_failure(failure, layout);
    }
    result
}

/// Prints the error of an invalid command line as a JSON object, if the command line asks one of these
/// commands for JSON.
pub fn misused(error: &clap::Error) {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some(layout) =
        JsonLayout::asked_for(&words, std::env::var_os("KONKLAVE_FORMAT").as_deref())
    {
        let message = error.to_string();
        let message = message.trim_end().trim_start_matches("error: ").to_owned();
        commands::print_failure(&Failure::Usage(message), layout);
    }
}

fn perform(command: Command) -> Result<u8, Failure> {
    match command {
        Command::Agent(args) => daemon::run(&args),
        Command::Lock(args) => lock(args),
        Command::Elect(args) => elect(args),
        Command::Status(args) => commands::status(&args),
        Command::Who(args) => commands::who(&args),
        Command::Why(args) => commands::why(&args),
        Command::Members(args) => commands::members(&args),
        Command::Watch(args) => commands::watch(&args),
        Command::Revoke(args) => commands::revoke(&args),
        Command::StepDown(args) => commands::step_down(&args),
        Command::Send(args) => commands::send(&args),
        Command::Recv(args) => commands::recv(&args),
        Command::Record(args) => commands::record(&args),
        Command::Fence(args) => commands::fence(&args),
        Command::Doctor(args) => commands::doctor(&args),
        Command::Keys(args) => keys::keys(&args),
    }
}

fn lock(args: LockArgs) -> Result<u8, Failure> {
    let claim = match (args.slots, args.shared) {
        (Some(of), _) => ClaimKind::Slot { of },
        (None, true) => ClaimKind::Shared,
        (None, false) => ClaimKind::Exclusive,
    };
    wrapper::run(&job(args.name, claim, args.run, false)?)
}

fn elect(args: ElectArgs) -> Result<u8, Failure> {
    let claim = ClaimKind::Leadership { priority: args.priority };
    wrapper::run(&job(args.name, claim, args.run, args.again)?)
}

fn job(name: String, claim: ClaimKind, args: RunArgs, again: bool) -> Result<Job, Failure> {
    check_name(&name).map_err(Failure::Usage)?;
    let command = match args.shell {
        Some(string) => {
            let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
            vec![shell.unwrap_or_else(|| OsString::from("/bin/sh")), "-c".into(), string]
        }
        None => args.words,
    };
    Ok(Job {
        name,
        claim,
        wait: if args.nonblock { Some(Duration::ZERO) } else { args.timeout },
        conflict: args.conflict_exit_code,
        command,
        label: args.label,
        lease: args.lease,
        ttl: args.ttl,
        grace: args.grace,
        again,
        verbose: args.verbose,
        socket: args.agent.socket,
    })
}
