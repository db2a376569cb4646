//! The gate: a process that becomes the command when the lock is granted.
//!
//! A wrapper that started the command after the grant could be killed before the watchdog knows the command.
//! So the gate, a child of the keeper, is started before the grant, and the watchdog knows its process group
//! before the command runs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use nix::unistd::{Pid, getpgid, getpgrp};

use super::GRANT;
use crate::failure::{NOT_EXECUTABLE, NOT_FOUND};

/// The name of the hidden command.
pub(crate) const COMMAND: &str = "lock-gate";

/// How often the gate checks whether the keeper has left the process group.
const GLANCE: Duration = Duration::from_micros(100);

/// The hidden command: waits for the variables on descriptor `pipe`, and becomes `command`.
pub(crate) fn main(pipe: i32, keeper: i32, command: &[OsString]) -> u8 {
    // The kernel kills the gate, and later the command, if the keeper dies.
    #[cfg(target_os = "linux")]
    {
        let _ = nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL);
        if nix::unistd::getppid() != Pid::from_raw(keeper) {
            return 0;
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = keeper;
    let mut line = String::new();
    let read = File::open(format!("/dev/fd/{pipe}")).and_then(|file| {
        // The command must not inherit the pipe.
        nix::unistd::close(pipe)?;
        BufReader::new(file).read_line(&mut line)
    });
    if let Err(error) = read {
        eprintln!(
            "konklave: cannot start the command: the pipe of the wrapper cannot be read: {error}"
        );
        return 71;
    }
    let Some(line) = line.strip_suffix('\n') else {
        // The wrapper has stopped waiting, or is dead.
        return 0;
    };
    let variables: BTreeMap<String, String> = match serde_json::from_str(line) {
        Ok(variables) => variables,
        Err(error) => {
            eprintln!(
                "konklave: cannot start the command: the wrapper sent invalid variables: {error}"
            );
            return 70;
        }
    };
    // A keeper in the process group of the command would be killed with it, and could not adopt descendants.
    while getpgid(Some(Pid::from_raw(keeper))) == Ok(getpgrp()) {
        std::thread::sleep(GLANCE);
    }
    let Some((program, arguments)) = command.split_first() else { return 64 };
    let mut command = Command::new(program);
    command.args(arguments);
    // Variables of an outer lock do not describe this lock.
    for name in GRANT {
        command.env_remove(name);
    }
    let error = command.envs(variables).exec();
    eprintln!("konklave: cannot run {}: {error}", program.display());
    if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE }
}
