//! The watchdog: a process of its own that stops the command in time when the wrapper cannot.
//!
//! On stdin it reads from the wrapper which command to watch, and when to stop it. The wrapper sends later
//! times while it runs. If the wrapper is stopped (SIGSTOP, a debugger, a frozen cgroup), the time passes, and
//! the watchdog stops the command with all descendants. If the wrapper is killed, its end of the socket closes,
//! and the watchdog kills them at once.
//!
//! Before the watchdog stops the command, it reports that on the same socket. So a wrapper that continues later
//! knows whether the command ended by itself. The wrapper then prints the reason; the watchdog prints it only if
//! there is no wrapper left.
//!
//! Its stdout is a second handle of the session with the agent. So the session of a killed wrapper ends only
//! when all descendants of the command are dead, and no other client gets the lock before.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::Pid;

use super::plan::Plan;
use super::process_group::{ProcessGroup, self_command};
use super::tree::Tree;
use crate::clock::Moment;
use crate::failure::Failure;
use crate::protocol::{Call, Request, encode};

/// The name of the hidden command.
pub(crate) const COMMAND: &str = "lock-watchdog";

/// The longest sleep. Timers do not count the time a machine sleeps.
const NAP: Duration = Duration::from_millis(200);
/// How often the watchdog checks whether the command is gone.
const GLANCE: Duration = Duration::from_millis(1);
/// How often descendants that are still alive are searched for and killed.
const RESCAN: Duration = Duration::from_millis(10);
/// How often the watchdog sends a keep-alive for a dead wrapper.
const KEEP_ALIVE: Duration = Duration::from_millis(50);

/// The line that the watchdog writes before it stops the command.
const STOPPING: &[u8] = b"stopping\n";

/// The wrapper's handle of the watchdog.
#[derive(Debug)]
pub(super) struct Watchdog {
    process: Child,
    line: UnixStream,
    /// Whether the watchdog has reported that it stops the command.
    acted: bool,
}

impl Watchdog {
    /// Starts a watchdog that holds `session` open. A replacement gets the running `command` as an argument: if
    /// the wrapper were killed before it could send it, the session would end while the command runs.
    pub(super) fn start(session: OwnedFd, command: Option<ProcessGroup>) -> Result<Self, Failure> {
        let start = || {
            let (line, theirs) = UnixStream::pair()?;
            // A stopped watchdog that does not read must not block the wrapper.
            line.set_nonblocking(true)?;
            let own = std::process::id().to_string();
            let process = self_command(COMMAND)?
                .args(command.iter().flat_map(|group| [group.0.to_string(), own.clone()]))
                .stdin(OwnedFd::from(theirs))
                .stdout(session)
                // So that signals of the terminal go to the command only.
                .process_group_of_its_own()
                .spawn()?;
            Ok(Self { process, line, acted: false })
        };
        start().map_err(Failure::system("cannot start the watchdog"))
    }

    /// Its process id.
    pub(super) fn pid(&self) -> Pid {
        super::process_group::pid_of(&self.process)
    }

    /// Whether the watchdog has stopped the command, or is about to. The report precedes the stop, so it is here
    /// when the wrapper sees the end of the command.
    pub(super) fn has_acted(&mut self) -> bool {
        let mut said = [0; STOPPING.len()];
        self.acted |= matches!(self.line.read(&mut said), Ok(read) if read > 0);
        self.acted
    }

    /// Sends the command to watch. Its process group has the number of the keeper.
    pub(super) fn watch(&mut self, group: ProcessGroup) -> io::Result<()> {
        writeln!(self.line, "command {} {}", group.0, std::process::id())
    }

    /// Sends the times of SIGTERM and SIGKILL.
    pub(super) fn renew(&mut self, plan: Plan) -> io::Result<()> {
        writeln!(self.line, "until {} {}", plan.second().0, plan.kill.0)
    }

    /// Sends the time of SIGKILL. The wrapper has sent SIGTERM itself.
    pub(super) fn only_kill(&mut self, plan: Plan) -> io::Result<()> {
        writeln!(self.line, "until {} {}", plan.kill.0, plan.kill.0)
    }

    /// Ends the watchdog: the command has ended, or another watchdog watches it. Also one that is stopped (SIGSTOP),
    /// which would not read an order.
    pub(super) fn dismiss(mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

trait OwnGroup {
    fn process_group_of_its_own(&mut self) -> &mut Self;
}

impl OwnGroup for Command {
    fn process_group_of_its_own(&mut self) -> &mut Self {
        use std::os::unix::process::CommandExt;
        self.process_group(0).stderr(Stdio::inherit())
    }
}

/// The state of the watchdog process.
#[derive(Debug, Default)]
struct WatchdogState {
    command: Option<Tree>,
    ask: Option<Moment>,
    kill: Option<Moment>,
    /// Whether the watchdog has stopped the command, because its time was not renewed.
    acted: bool,
}

impl WatchdogState {
    fn apply(&mut self, line: &str) {
        let mut words = line.split_ascii_whitespace();
        let order = words.next();
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
        match order {
            Some("command") => {
                if let (Some(group), Some(wrapper)) = (number(), number()) {
                    self.command = tree(group, wrapper);
                }
            }
            Some("until") => {
                let (ask, kill) = (number().map(Moment), number().map(Moment));
                // An incomplete line must not replace valid times.
                if let (Some(ask), Some(kill)) = (ask, kill) {
                    (self.ask, self.kill) = (Some(ask), Some(kill));
                }
            }
            _ => {}
        }
    }

    /// The time until the next action.
    fn nap(&self) -> Duration {
        [self.ask, self.kill].into_iter().flatten().map(Moment::left).fold(NAP, Duration::min)
    }

    /// Stops the command if its time has come. Reports that to the wrapper first.
    fn act(&mut self, wrapper: &mut impl Write) {
        let Some(command) = &mut self.command else { return };
        let kill = self.kill.is_some_and(Moment::passed);
        if !kill && !self.ask.is_some_and(Moment::passed) {
            return;
        }
        // Written once, because a stopped wrapper does not read, and a full socket would block. A dead wrapper
        // is noticed by the next read.
        if !std::mem::replace(&mut self.acted, true) {
            let _ = wrapper.write_all(STOPPING);
        }
        self.ask = None;
        if kill {
            command.kill(None);
            // A process may have been forked during the scan.
            self.kill = command.alive(None).then(|| Moment::now().after(RESCAN));
        } else {
            command.ask(None);
        }
    }
}

/// The tree of a command with this process group, whose wrapper is the parent of the watchdog.
fn tree(group: u64, wrapper: u64) -> Option<Tree> {
    let (group, wrapper) = (ProcessGroup::new(group)?, ProcessGroup::new(wrapper)?);
    Some(Tree::of_parent(group, Pid::from_raw(wrapper.0)))
}

/// The hidden command: watches `command`, or the one that the wrapper names, until the wrapper dies.
pub(crate) fn main(command: Option<(i32, i32)>) -> Result<u8, Failure> {
    // A signal to all processes named konklave must not end the watchdog before the command is dead.
    let mut blocked = SigSet::empty();
    for signal in
        [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGPIPE]
    {
        blocked.add(signal);
    }
    let _ = blocked.thread_block();
    let mut state = WatchdogState::default();
    if let Some((group, wrapper)) = command {
        state.apply(&format!("command {group} {wrapper}"));
    }
    let listened = listen(&mut state);
    if let Some(command) = state.command {
        kill_and_wait(command);
        if state.acted {
            eprintln!(
                "konklave: the lock was lost, and the command stopped: it was not renewed in time"
            );
        }
    }
    listened.map(|()| 0).map_err(Failure::system("the watchdog cannot read"))
}

/// Kills the command with all descendants, and returns when the last one is gone. Then the session ends with
/// the watchdog. A process of another user (`sudo`) cannot be killed, so the watchdog waits for it. Meanwhile
/// it sends the keep-alives of the session.
fn kill_and_wait(mut command: Tree) {
    let (mut told, mut rescan) = (false, Moment::now());
    let mut keep_alive = Moment::now().after(KEEP_ALIVE);
    while command.alive(None) {
        if rescan.passed() {
            if !command.kill(None) && !std::mem::replace(&mut told, true) {
                eprintln!(
                    "konklave: cannot stop the command, which runs as another user; its lock stays taken \
                     until it ends"
                );
            }
            rescan = Moment::now().after(if told { KEEP_ALIVE } else { RESCAN });
        }
        if keep_alive.passed() {
            let _ = send_keep_alive();
            keep_alive = Moment::now().after(KEEP_ALIVE);
        }
        std::thread::sleep(if told { KEEP_ALIVE } else { GLANCE });
    }
}

/// Sends a keep-alive for the session, and discards the answers.
fn send_keep_alive() -> io::Result<()> {
    let mut session = UnixStream::from(io::stdout().as_fd().try_clone_to_owned()?);
    session.set_nonblocking(true)?;
    let mut answers = [0; 4096];
    while session.read(&mut answers).is_ok_and(|read| read > 0) {}
    let request = Request::KeepAlive { at: Moment::now() };
    let call = encode(&Call { id: u64::MAX, request }).map_err(io::Error::other)?;
    session.write_all(&call)
}

fn listen(state: &mut WatchdogState) -> io::Result<()> {
    // Read without the buffer of stdin, whose content `poll` would not see. Stdin is a socket, written to, too.
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let (mut piece, mut line) = ([0_u8; 256], Vec::new());
    loop {
        let ready = {
            let mut polled = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
            // Rounded up, so that the moment has passed after the sleep.
            let nap = u16::try_from(state.nap().as_micros().div_ceil(1000)).unwrap_or(u16::MAX);
            match poll(&mut polled, nap) {
                Ok(ready) => ready > 0,
                Err(nix::errno::Errno::EINTR) => false,
                Err(error) => return Err(error.into()),
            }
        };
        if ready {
            let read = match input.read(&mut piece) {
                // The wrapper is gone. A reset means that it had not read the last report.
                Ok(0) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(()),
                Ok(read) => read,
                Err(error) => return Err(error),
            };
            for &byte in &piece[..read] {
                if byte == b'\n' {
                    state.apply(&String::from_utf8_lossy(&line));
                    line.clear();
                } else {
                    line.push(byte);
                }
            }
        }
        state.act(&mut input);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_lines_are_applied_and_invalid_ones_ignored() {
        let mut state = WatchdogState::default();
        for line in [
            "command 0 7",
            "command 1 7",
            "command x 7",
            "command 4711",
            "command 4711 1",
            "until 5",
            "until 5 x",
            "",
            "hello 5",
        ] {
            state.apply(line);
            assert!(state.command.is_none() && state.kill.is_none(), "{line}");
        }
        state.apply("command 4711 7");
        assert_eq!(state.command.as_ref().map(Tree::group), Some(ProcessGroup(4711)));
        state.apply("until 5 7");
        assert_eq!((state.ask, state.kill), (Some(Moment(5)), Some(Moment(7))));
        state.apply("until 9");
        assert_eq!((state.ask, state.kill), (Some(Moment(5)), Some(Moment(7))));
        assert_eq!(state.nap(), Duration::ZERO);
    }
}
