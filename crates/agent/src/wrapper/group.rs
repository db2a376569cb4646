//! Process groups: signalled as one, and looked at until the last member is gone.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

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
        let Ok(processes) = fs::read_dir("/proc") else { return true };
        let (mut seen, mut dead) = (false, false);
        for process in processes.flatten() {
            let name = process.file_name();
            if !name.as_encoded_bytes().first().is_some_and(u8::is_ascii_digit) {
                continue;
            }
            let Ok(stat) = fs::read_to_string(process.path().join("stat")) else { continue };
            seen = true;
            match group_of(&stat) {
                Some((group, true)) if group == self.0 => return true,
                Some((group, false)) if group == self.0 => dead = true,
                _ => {}
            }
        }
        // Without a readable /proc the kernel's first word counts; and whom we may not signal we may
        // not see there either (`hidepid`).
        !seen || !reached && !dead
    }
}

/// The process group of a process, by its line in /proc, and whether it runs.
fn group_of(stat: &str) -> Option<(i32, bool)> {
    // The name may contain anything, also brackets: the last one ends it.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let group = fields.nth(1)?.parse().ok()?;
    Some((group, !matches!(state, "Z" | "X" | "x")))
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
    fn the_dead_do_not_count() {
        assert_eq!(group_of("12 (a) b) S 1 77 77 0"), Some((77, true)));
        assert_eq!(group_of("12 (x) Z 1 77 77 0"), Some((77, false)));
        assert_eq!(group_of("12 (x"), None);
        assert_eq!(group_of("12 (x) S 1"), None);
    }

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
