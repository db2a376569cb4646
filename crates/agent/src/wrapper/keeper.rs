//! The keeper: the parent of the command, and a subreaper, so that no descendant of the command escapes.
//!
//! A user may kill the wrapper. Without a process between wrapper and command, init would then adopt the
//! descendants of the command, and they could not be found. So the keeper starts the gate, which becomes the
//! command, and adopts all descendants whose parents die. The keeper ends when it has no child left: then no
//! descendant of the command is left either.
//!
//! If the wrapper dies, the keeper kills all descendants. If the keeper dies, the kernel kills the
//! command, and the wrapper, a subreaper as well, adopts and kills the others.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Child;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, close, setpgid};
use tokio::net::unix::pipe;

use super::gate;
use super::process_group::{ProcessGroup, pid_of, self_command};
use super::tree::Tree;
use crate::failure::Failure;

/// The name of the hidden command.
pub(crate) const COMMAND: &str = "lock-keeper";

/// How long the keeper waits between two scans for descendants that are still alive, at first and later.
const RESCAN: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(50));
/// The exit code of a command that was ended by a signal without a name.
const UNNAMED: u8 = 255;

/// A report of the keeper to the wrapper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum KeeperReport {
    /// The command has ended with this exit code; `left` says whether it left descendants behind.
    Ended { code: u8, left: bool },
    /// The command was stopped by this signal.
    Stopped(Signal),
}

impl KeeperReport {
    fn line(self) -> String {
        match self {
            Self::Ended { code, left } => format!("ended {code} {}\n", u8::from(left)),
            Self::Stopped(signal) => format!("stopped {}\n", signal as i32),
        }
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        match (words.next()?, words.next()?, words.next()) {
            ("ended", code, Some(left)) => {
                Some(Self::Ended { code: code.parse().ok()?, left: left != "0" })
            }
            ("stopped", signal, None) => {
                let signal: i32 = signal.parse().ok()?;
                Some(Self::Stopped(signal.try_into().ok()?))
            }
            _ => None,
        }
    }
}

/// The wrapper's handle of the keeper.
#[derive(Debug)]
pub(super) struct Keeper {
    process: Child,
    /// The pipe for the variables, which start the gate. It closes when the wrapper dies, and so tells the keeper.
    start: io::PipeWriter,
    reports: pipe::Receiver,
    line: Vec<u8>,
}

impl Keeper {
    /// Starts a keeper for `command`, in a process group of its own, with our stdin, stdout and stderr.
    pub(super) fn start(command: &[OsString], watchdog: Pid) -> Result<Self, Failure> {
        let start = || {
            let (reader, start) = io::pipe()?;
            let (reports, writer) = io::pipe()?;
            // Only this child inherits these two ends.
            fcntl(&reader, FcntlArg::F_SETFD(FdFlag::empty()))?;
            fcntl(&writer, FcntlArg::F_SETFD(FdFlag::empty()))?;
            let process = self_command(COMMAND)?
                .arg(reader.as_raw_fd().to_string())
                .arg(writer.as_raw_fd().to_string())
                .arg(watchdog.to_string())
                .arg("--")
                .args(command)
                .process_group(0)
                .spawn()?;
            let reports = pipe::Receiver::from_owned_fd(OwnedFd::from(reports))?;
            Ok(Self { process, start, reports, line: Vec::new() })
        };
        start().map_err(Failure::system("cannot start the keeper process"))
    }

    /// The process group of the command. The keeper is its leader, and leaves it when the gate has started.
    pub(super) fn group(&self) -> ProcessGroup {
        ProcessGroup(pid_of(&self.process).as_raw())
    }

    /// Lets the gate become the command, with these variables added to the environment.
    pub(super) fn open(&mut self, variables: &impl serde::Serialize) -> Result<(), Failure> {
        let mut send = || {
            serde_json::to_writer(&self.start, variables)?;
            self.start.write_all(b"\n")
        };
        send().map_err(Failure::system("cannot start the command"))
    }

    /// The next report; `None` once the keeper is gone. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<KeeperReport> {
        loop {
            if let Some(end) = self.line.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.line.drain(..=end).collect();
                let report = KeeperReport::parse(&String::from_utf8_lossy(&line));
                if report.is_some() {
                    return report;
                }
            }
            self.reports.readable().await.ok()?;
            let mut piece = [0; 64];
            match self.reports.try_read(&mut piece) {
                Ok(0) => return None,
                Ok(read) => self.line.extend_from_slice(&piece[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
        }
    }

    /// The exit code of a keeper that is gone; `None` if it was killed. With 0, no descendant is left.
    pub(super) fn exit_code(&mut self) -> Option<u8> {
        self.process.wait().ok()?.code().and_then(|code| u8::try_from(code).ok())
    }
}

/// The hidden command: starts the gate for `command`, and ends when no descendant is left.
pub(crate) fn main(start: i32, reports: i32, watchdog: i32, command: &[OsString]) -> u8 {
    let failed = |error: io::Error| {
        eprintln!("konklave: the keeper process cannot start the command: {error}");
        71
    };
    // Opened again so that children do not inherit these. The gate inherits `start` itself.
    let wrapper = match File::open(format!("/dev/fd/{start}")) {
        Ok(wrapper) => wrapper,
        Err(error) => return failed(error),
    };
    let begin = || {
        let out = File::options().write(true).open(format!("/dev/fd/{reports}"))?;
        close(reports)?;
        #[cfg(target_os = "linux")]
        nix::sys::prctl::set_child_subreaper(true)?;
        let child = self_command(gate::COMMAND)?
            .arg(start.to_string())
            .arg(std::process::id().to_string())
            .arg("--")
            .args(command)
            .spawn()?;
        close(start)?;
        // Leave the process group of the command, so that SIGKILL to the group does not kill the keeper. The
        // gate waits for that.
        setpgid(Pid::from_raw(0), Pid::from_raw(watchdog))?;
        let _ = SigSet::all().thread_block();
        Ok::<_, io::Error>((out, pid_of(&child)))
    };
    let (mut out, command) = match begin() {
        Ok(started) => started,
        // The lock is taken, so the wrapper has ended the watchdog before this keeper joined its group.
        Err(_) if is_closed(&wrapper) => return 0,
        Err(error) => return failed(error),
    };
    std::thread::spawn(move || {
        await_end_of(&wrapper);
        let own = i32::try_from(std::process::id()).unwrap_or(i32::MAX);
        let mut tree = Tree::of_ours(ProcessGroup(own));
        let mut pause = RESCAN.0;
        // The other thread ends the process when no child is left.
        loop {
            tree.kill(None);
            std::thread::sleep(pause);
            pause = (pause * 5 / 4).min(RESCAN.1);
        }
    });
    tend(command, &mut out);
    0
}

/// Returns when the other end of the pipe is closed. The content of the pipe is for the gate.
fn await_end_of(pipe: &File) {
    loop {
        let mut polled = [PollFd::new(pipe.as_fd(), PollFlags::empty())];
        if !matches!(poll(&mut polled, PollTimeout::NONE), Ok(0) | Err(Errno::EINTR)) {
            return;
        }
    }
}

/// Whether the other end of the pipe is closed.
fn is_closed(pipe: &File) -> bool {
    let mut polled = [PollFd::new(pipe.as_fd(), PollFlags::empty())];
    poll(&mut polled, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}

/// Waits for all children, adopted ones included, and reports when `command` stops or ends.
fn tend(command: Pid, out: &mut impl Write) {
    let mut ended = false;
    loop {
        let code = match waitpid(None, Some(WaitPidFlag::WUNTRACED)) {
            Ok(WaitStatus::Exited(pid, status)) if pid == command => {
                u8::try_from(status & 0xff).unwrap_or(u8::MAX)
            }
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == command => 128 + signal as u8,
            Ok(WaitStatus::Stopped(pid, signal)) if pid == command => {
                // The write fails if the wrapper is dead. Then the other thread kills all descendants.
                let _ = out.write_all(KeeperReport::Stopped(signal).line().as_bytes());
                continue;
            }
            // A process was ended by a real-time signal, for which nix returns an error without the process id.
            Err(Errno::EINVAL) if !ended && kill(command, None) == Err(Errno::ESRCH) => UNNAMED,
            Err(Errno::ECHILD) => return,
            Ok(_) | Err(_) => continue,
        };
        ended = true;
        let report = KeeperReport::Ended { code, left: reap() };
        let _ = out.write_all(report.line().as_bytes());
    }
}

/// Reaps all dead children. Returns whether others are left.
fn reap() -> bool {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return true,
            Err(Errno::ECHILD) => return false,
            Ok(_) | Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_is_parsed_as_it_was_written() {
        for report in [
            KeeperReport::Ended { code: 0, left: false },
            KeeperReport::Ended { code: 137, left: true },
            KeeperReport::Stopped(Signal::SIGTSTP),
        ] {
            assert_eq!(KeeperReport::parse(&report.line()), Some(report));
        }
        for line in ["", "ended", "ended 3", "ended x 0", "stopped", "stopped 0", "hello 1 2"] {
            assert_eq!(KeeperReport::parse(line), None, "{line}");
        }
    }
}
