//! The gate: a process that waits for the word to become the command.
//!
//! It is started before the lock is there, so that the watchdog knows its process group before the
//! command does anything: whenever the wrapper is killed, no command is left that nobody watches. Its
//! parent is the keeper.

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

/// How often the gate looks whether the keeper has left the group.
const GLANCE: Duration = Duration::from_micros(100);

/// The hidden command: waits for the word on descriptor `pipe`, and becomes `command`.
pub(crate) fn main(pipe: i32, keeper: i32, command: &[OsString]) -> u8 {
    // Whatever happens to the other processes, this one does not outlive the keeper.
    #[cfg(target_os = "linux")]
    {
        let _ = nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL);
        if nix::unistd::getppid() != Pid::from_raw(keeper) {
            return 0;
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = keeper;
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
    // A keeper that is still in the group of the command would be killed with it, and nobody would have
    // its orphans.
    while getpgid(Some(Pid::from_raw(keeper))) == Ok(getpgrp()) {
        std::thread::sleep(GLANCE);
    }
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
