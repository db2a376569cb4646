//! The keeper: the parent of the command, and a subreaper, so that no descendant of the command escapes.
//!
//! The wrapper is the process that a user may kill. Without a process between wrapper and command, the
//! descendants of a killed wrapper would be children of init, and nobody could tell them from others. So
//! the keeper starts the gate, which becomes the command, and adopts all descendants whose parents die.
//! It ends when it has no child left: then no descendant of the command is left either.
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
use super::group::{Group, pid_of, self_command};
use super::tree::Tree;
use crate::failure::Failure;

/// The name of the hidden command.
pub(crate) const COMMAND: &str = "lock-keeper";

/// How long the keeper waits between two scans for descendants that are still alive, at first and later.
const RESCAN: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(50));
/// The exit code of a command that was ended by a signal without a name.
const UNNAMED: u8 = 255;

/// What the keeper reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum News {
    /// The command has ended with this exit code; `left` says whether it left descendants behind.
    Ended { code: u8, left: bool },
    /// The command was stopped by this signal.
    Stopped(Signal),
}

impl News {
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

/// The wrapper's end.
#[derive(Debug)]
pub(super) struct Keeper {
    process: Child,
    /// Open as long as the wrapper lives: its end tells the keeper that the wrapper is dead.
    word: io::PipeWriter,
    news: pipe::Receiver,
    line: Vec<u8>,
}

impl Keeper {
    /// Starts a keeper for `command`, in a process group of its own, with our stdin, stdout and stderr.
    pub(super) fn start(command: &[OsString], watchdog: Pid) -> Result<Self, Failure> {
        let start = || {
            let (reader, word) = io::pipe()?;
            let (news, writer) = io::pipe()?;
            // Only this child is to have them.
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
            let news = pipe::Receiver::from_owned_fd(OwnedFd::from(news))?;
            Ok(Self { process, word, news, line: Vec::new() })
        };
        start().map_err(Failure::system("cannot start a process"))
    }

    /// The process group of the command: the keeper leads it until the gate is there.
    pub(super) fn group(&self) -> Group {
        Group(pid_of(&self.process).as_raw())
    }

    /// Gives the word to the gate: become the command, with these variables added to the environment.
    pub(super) fn open(&mut self, variables: &impl serde::Serialize) -> Result<(), Failure> {
        let mut word = || {
            serde_json::to_writer(&self.word, variables)?;
            self.word.write_all(b"\n")
        };
        word().map_err(Failure::system("cannot start the command"))
    }

    /// The next news; nothing once the keeper is gone. Nothing is lost when this is dropped before.
    pub(super) async fn next(&mut self) -> Option<News> {
        loop {
            if let Some(end) = self.line.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.line.drain(..=end).collect();
                let news = News::parse(&String::from_utf8_lossy(&line));
                if news.is_some() {
                    return news;
                }
            }
            self.news.readable().await.ok()?;
            let mut piece = [0; 64];
            match self.news.try_read(&mut piece) {
                Ok(0) => return None,
                Ok(read) => self.line.extend_from_slice(&piece[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
        }
    }

    /// Once the keeper is gone: its exit code, unless it was killed. With 0, no descendant is left.
    pub(super) fn exit_code(&mut self) -> Option<u8> {
        self.process.wait().ok()?.code().and_then(|code| u8::try_from(code).ok())
    }
}

/// The hidden command: starts the gate for `command`, and ends when no descendant is left.
pub(crate) fn main(word: i32, news: i32, watchdog: i32, command: &[OsString]) -> u8 {
    let start = || {
        // Of our own, and not for children; the gate inherits `word` itself.
        let wrapper = File::open(format!("/dev/fd/{word}"))?;
        let out = File::options().write(true).open(format!("/dev/fd/{news}"))?;
        close(news)?;
        #[cfg(target_os = "linux")]
        nix::sys::prctl::set_child_subreaper(true)?;
        let child = self_command(gate::COMMAND)?
            .arg(word.to_string())
            .arg(std::process::id().to_string())
            .arg("--")
            .args(command)
            .spawn()?;
        close(word)?;
        // Signals for the group of the command, and SIGKILL above all, are not for us. The gate waits
        // until we have left.
        setpgid(Pid::from_raw(0), Pid::from_raw(watchdog))?;
        let _ = SigSet::all().thread_block();
        Ok::<_, io::Error>((wrapper, out, pid_of(&child)))
    };
    let (wrapper, mut out, command) = match start() {
        Ok(started) => started,
        Err(error) => {
            eprintln!("konklave: cannot wait for the lock: {error}");
            return 71;
        }
    };
    std::thread::spawn(move || {
        await_end_of(&wrapper);
        let own = i32::try_from(std::process::id()).unwrap_or(i32::MAX);
        let mut tree = Tree::of_ours(Group(own));
        let mut pause = RESCAN.0;
        // Until the other thread finds no child, and ends the process.
        loop {
            tree.kill(None);
            std::thread::sleep(pause);
            pause = (pause * 5 / 4).min(RESCAN.1);
        }
    });
    tend(command, &mut out);
    0
}

/// Returns when nobody has the other end of the pipe any more. What is in it is for the gate.
fn await_end_of(pipe: &File) {
    loop {
        let mut polled = [PollFd::new(pipe.as_fd(), PollFlags::empty())];
        if !matches!(poll(&mut polled, PollTimeout::NONE), Ok(0) | Err(Errno::EINTR)) {
            return;
        }
    }
}

/// Waits for all children, those adopted included, and reports what happens to `command`.
fn tend(command: Pid, out: &mut impl Write) {
    let mut ended = false;
    loop {
        let code = match waitpid(None, Some(WaitPidFlag::WUNTRACED)) {
            Ok(WaitStatus::Exited(pid, status)) if pid == command => {
                u8::try_from(status & 0xff).unwrap_or(u8::MAX)
            }
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == command => 128 + signal as u8,
            Ok(WaitStatus::Stopped(pid, signal)) if pid == command => {
                // If nobody reads it, the wrapper is dead, and the other thread acts.
                let _ = out.write_all(News::Stopped(signal).line().as_bytes());
                continue;
            }
            // A real-time signal has no name here, and which process it ended is not told either.
            Err(Errno::EINVAL) if !ended && kill(command, None) == Err(Errno::ESRCH) => UNNAMED,
            Err(Errno::ECHILD) => return,
            Ok(_) | Err(_) => continue,
        };
        ended = true;
        let news = News::Ended { code, left: bury() };
        let _ = out.write_all(news.line().as_bytes());
    }
}

/// Reaps all children that are dead; whether others are left.
fn bury() -> bool {
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
    fn news_are_read_as_they_were_written() {
        for news in [
            News::Ended { code: 0, left: false },
            News::Ended { code: 137, left: true },
            News::Stopped(Signal::SIGTSTP),
        ] {
            assert_eq!(News::parse(&news.line()), Some(news));
        }
        for line in ["", "ended", "ended 3", "ended x 0", "stopped", "stopped 0", "hello 1 2"] {
            assert_eq!(News::parse(line), None, "{line}");
        }
    }
}
