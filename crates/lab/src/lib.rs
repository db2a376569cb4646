//! The laboratory: the whole command line of `konklave`, with algorithms of your own in it.
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! use konklave_lab::Catalog;
//!
//! fn main() -> ExitCode {
//!     konklave_lab::main(Catalog::builtin()) // .with::<Mine>()
//! }
//! ```
//!
//! An algorithm is one type that implements [`Process`](konklave_process::Process) and
//! [`Algorithm`](konklave_algorithms::Algorithm); `list`, `run`, `check`, `compare`, `sweep`, `draw`, `export` and
//! `ui` then know it beside the built-in ones. `konklave new NAME` writes a crate to begin with.

/// Prints a line to stderr, after the name of this program. A closed stderr is ignored.
macro_rules! tell {
    ($($words:tt)*) => {{
        let (program, words) = (konklave_catalog::program(), format_args!($($words)*));
        let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{program}: {words}\n"));
    }};
}

mod args;
mod commands;
mod failure;
mod formats;
mod interrupt;
mod output;

use std::ffi::OsStr;
use std::io::Write;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::process::ExitCode;

use clap::FromArgMatches;
use clap::builder::Resettable;
use clap::error::ErrorKind;

pub use konklave_catalog::{Catalog, Entry};
use konklave_catalog::{Error, name_program};
pub use {konklave_algorithms as algorithms, konklave_process as process};

use crate::args::{Cli, command_line};
use crate::failure::Failure;

/// Runs the command that the arguments of this process name, on the algorithms of `catalog`.
///
/// Messages, help and the commands in them have the name under which this program was started.
pub fn main(catalog: Catalog) -> ExitCode {
    if let Some(name) = std::env::args_os().next().as_deref().and_then(own_name) {
        name_program(name);
        #[cfg(feature = "agent")]
        konklave_agent::name_program(name);
    }
    #[cfg(feature = "agent")]
    if let Some(code) = konklave_agent::helper() {
        return ExitCode::from(code);
    }
    if let Err(error) = catalog.check() {
        return Failure::from(error).report();
    }
    // It is there until the process ends.
    let catalog: &'static Catalog = Box::leak(Box::new(catalog));
    let command = without_blanks(command_line());
    let parsed = command.try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to stdout and are no error; all else is a wrong use.
            let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            if let Some(hint) = args::lacking_command(&error) {
                return Failure::from(Error::Usage(hint)).report();
            }
            let error = args::with_owners(error, &command_line());
            if !asked {
                #[cfg(feature = "agent")]
                konklave_agent::misused(&error);
            }
            let printed = error.print().and_then(|()| std::io::stdout().flush());
            return match printed {
                Err(error) if asked => Failure::Output(error).report(),
                _ => ExitCode::from(if asked { 0 } else { 64 }),
            };
        }
    };
    match std::panic::catch_unwind(AssertUnwindSafe(|| commands::dispatch(catalog, cli))) {
        Ok(Ok(code)) => ExitCode::from(code),
        Ok(Err(failure)) => failure.report(),
        Err(_) => {
            match konklave_catalog::program() {
                "konklave" => {
                    tell!("this is a bug of konklave. Please report it with the lines above");
                }
                _ => tell!(
                    "this is a bug of an algorithm in this program, or of konklave; then please report \
                     it with the lines above"
                ),
            }
            ExitCode::from(70)
        }
    }
}

/// The name of a program that was started as `path`; none if it would need quotes on a command line.
fn own_name(path: &OsStr) -> Option<&str> {
    let file = Path::new(path).file_name()?.to_str()?;
    let name = file.strip_suffix(std::env::consts::EXE_SUFFIX).unwrap_or(file);
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
    (!name.is_empty() && name.chars().all(is_plain)).then_some(name)
}

/// Ignores environment variables that are set to the empty string.
fn without_blanks(command: clap::Command) -> clap::Command {
    let blank = |name: &OsStr| std::env::var_os(name).is_some_and(|v| v.is_empty());
    command
        .mut_args(|arg| match arg.get_env().is_some_and(blank) {
            true => arg.env(Resettable::Reset),
            false => arg,
        })
        .mut_subcommands(without_blanks)
}

/// The result of a command: an exit code or a failure.
type Done = Result<u8, Failure>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_name_is_the_file_name_it_was_started_as() {
        for (path, name) in [
            ("konklave", Some("konklave")),
            ("target/debug/my-lock", Some("my-lock")),
            ("/opt/x y/my_lock2", Some("my_lock2")),
            ("/opt/my lock", None),
            ("..", None),
            ("", None),
        ] {
            assert_eq!(own_name(OsStr::new(path)), name, "{path}");
        }
    }
}
