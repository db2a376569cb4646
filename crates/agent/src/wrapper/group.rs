//! Process groups: signalled as one, and looked at until the last member is gone.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::tree::processes;

/// A process group that is not ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Group(pub(super) i32);

impl Group {
    /// The group of a number; 0 would be our own, and 1 that of everything.
    pub(super) fn new(number: u64) -> Option<Self> {
        i32::try_from(number).ok().filter(|&number| number > 1).map(Self)
    }

    /// Signals all of the group; false if someone is there whom we may not signal.
    pub(super) fn signal(self, signal: Signal) -> bool {
        !matches!(killpg(Pid::from_raw(self.0), signal), Err(Errno::EPERM))
    }

    /// Whether someone of the group still runs. Those that are dead and not yet buried do not.
    pub(super) fn alive(self) -> bool {
        let reached = match killpg(Pid::from_raw(self.0), None) {
            Err(Errno::ESRCH) => return false,
            // Someone of another user (`sudo`) is there: not ours to signal, and yet alive.
            Err(_) => false,
            Ok(()) => true,
        };
        let Some(processes) = processes() else { return true };
        let mut members =
            processes.into_iter().filter(|process| process.group == self.0).peekable();
        // Whom we may not signal we may not see there either (`hidepid`).
        let hidden = !reached && members.peek().is_none();
        hidden || members.any(|process| process.running)
    }
}

/// A command that runs this very program, as the hidden command `name`.
pub(super) fn self_command(name: &str) -> io::Result<Command> {
    // By the kernel's link: also when the file was replaced by a newer one.
    let program = match fs::metadata("/proc/self/exe") {
        Ok(_) => "/proc/self/exe".into(),
        Err(_) => std::env::current_exe()?,
    };
    let mut command = Command::new(program);
    command.arg0("konklave").arg(name);
    Ok(command)
}

/// The id of a child.
pub(super) fn pid_of(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_signals_everything() {
        assert_eq!(Group::new(0), None);
        assert_eq!(Group::new(1), None);
        assert_eq!(Group::new(u64::MAX), None);
        assert_eq!(Group::new(2), Some(Group(2)));
        // No process has so high a number.
        assert!(!Group(i32::MAX).alive());
    }
}
