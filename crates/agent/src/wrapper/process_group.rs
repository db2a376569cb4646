//! Process groups: signalled as a whole, and checked until the last process is gone.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::tree::processes;

/// A process group, not that of this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ProcessGroup(pub(super) i32);

impl ProcessGroup {
    /// The group with this number. 0 would mean the own group, and 1 all processes.
    pub(super) fn new(number: u64) -> Option<Self> {
        i32::try_from(number).ok().filter(|&number| number > 1).map(Self)
    }

    /// Signals the whole group. Returns false if this user may signal none of its processes.
    pub(super) fn signal(self, signal: Signal) -> bool {
        !matches!(killpg(Pid::from_raw(self.0), signal), Err(Errno::EPERM))
    }

    /// Whether a process of the group still runs. Zombies do not.
    pub(super) fn alive(self) -> bool {
        let reached = match killpg(Pid::from_raw(self.0), None) {
            Err(Errno::ESRCH) => return false,
            // A process of another user (`sudo`), which this user may not signal.
            Err(_) => false,
            Ok(()) => true,
        };
        let Some(processes) = processes() else { return true };
        let mut members =
            processes.into_iter().filter(|process| process.group == self.0).peekable();
        // With `hidepid`, /proc does not show processes of another user either.
        let hidden = !reached && members.peek().is_none();
        hidden || members.any(|process| process.running)
    }
}

/// A command that runs this program as the hidden command `name`.
pub(super) fn self_command(name: &str) -> io::Result<Command> {
    // The kernel's link is right even if the program file has been replaced.
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
    fn group_of_all_processes_is_refused() {
        assert_eq!(ProcessGroup::new(0), None);
        assert_eq!(ProcessGroup::new(1), None);
        assert_eq!(ProcessGroup::new(u64::MAX), None);
        assert_eq!(ProcessGroup::new(2), Some(ProcessGroup(2)));
        // No process has so high a number.
        assert!(!ProcessGroup(i32::MAX).alive());
    }
}
