//! The gate: a process that waits for the word to become the command.
//!
//! It is started before the lock is there, so that the watchdog knows its process group before the
//! command does anything: whenever the wrapper is killed, no command is left that nobody watches.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::unistd::Pid;

use super::GRANT;
use super::group::{Group, pid_of, self_command};
use crate::failure::{Failure, NOT_EXECUTABLE, NOT_FOUND};

/// The name of the hidden command.
pub(crate) const COMMAND: &str = "lock-gate";

/// The wrapper's end.
#[derive(Debug)]
pub(super) struct Gate {
    process: Child,
    pipe: io::PipeWriter,
}

impl Gate {
    /// Starts a gate for `command`, in a process group of its own, with our stdin, stdout and stderr.
    pub(super) fn start(command: &[OsString]) -> Result<Self, Failure> {
        let start = || {
            let (reader, pipe) = io::pipe()?;
            // Only this child is to have it.
            fcntl(&reader, FcntlArg::F_SETFD(FdFlag::empty()))?;
            let process = self_command(COMMAND)?
                .arg(reader.as_raw_fd().to_string())
                .arg(std::process::id().to_string())
                .arg("--")
                .args(command)
                .process_group(0)
                .spawn()?;
            Ok(Self { process, pipe })
        };
        start().map_err(Failure::system("cannot start a process"))
    }

    pub(super) fn pid(&self) -> Pid {
        pid_of(&self.process)
    }

    /// The process group of the command.
    pub(super) fn group(&self) -> Group {
        Group(self.pid().as_raw())
    }

    /// Gives the word: become the command, with `variables` added to the environment.
    pub(super) fn open(mut self, variables: &BTreeMap<&str, String>) -> Result<(), Failure> {
        let mut word = || {
            serde_json::to_writer(&self.pipe, variables)?;
            self.pipe.write_all(b"\n")
        };
        word().map_err(Failure::system("cannot start the command"))
    }
}

/// The hidden command: waits for the word on descriptor `pipe`, and becomes `command`.
pub(crate) fn main(pipe: i32, wrapper: i32, command: &[OsString]) -> u8 {
    // Whatever happens to the wrapper and the watchdog, this process does not outlive the wrapper.
    #[cfg(target_os = "linux")]
    {
        let _ = nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL);
        if nix::unistd::getppid() != Pid::from_raw(wrapper) {
            return 0;
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = wrapper;
    let mut word = String::new();
    let read = File::open(format!("/dev/fd/{pipe}")).and_then(|file| {
        // The command gets nothing of ours.
        nix::unistd::close(pipe)?;
        BufReader::new(file).read_line(&mut word)
    });
    if let Err(error) = read {
        eprintln!("konklave: cannot wait for the lock: {error}");
        return 71;
    }
    let Some(word) = word.strip_suffix('\n') else {
        // The wrapper gave up, or is dead.
        return 0;
    };
    let variables: BTreeMap<String, String> = match serde_json::from_str(word) {
        Ok(variables) => variables,
        Err(error) => {
            eprintln!("konklave: not the word that was awaited: {error}");
            return 70;
        }
    };
    let Some((program, arguments)) = command.split_first() else { return 64 };
    let mut command = Command::new(program);
    command.args(arguments);
    // What the lock around us told is not of our lock.
    for name in GRANT {
        command.env_remove(name);
    }
    let error = command.envs(variables).exec();
    eprintln!("konklave: cannot run {}: {error}", program.display());
    if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE }
}
