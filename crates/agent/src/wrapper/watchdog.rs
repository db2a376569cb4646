//! The watchdog: a process of its own that stops a command in time even if nobody else can.
//!
//! It reads from its stdin what the wrapper says: which command to watch, and when to stop it.
//! The wrapper renews that while it lives. When it is stopped (SIGSTOP, a debugger, a frozen cgroup),
//! the time passes and the watchdog stops the command with all descendants. When it is killed, its end
//! of the pipe is closed and the watchdog kills them at once.
//!
//! Before it stops anything it says so, on the same socket: however late the wrapper comes to look at
//! its dead command, it can tell whether that ended by itself. The wrapper then says what happened; the
//! watchdog does only if there is no wrapper left to.
//!
//! Its stdout is a second handle of the session with the agent, never written to: so the session of a
//! wrapper that was killed ends only when all descendants of the command are dead, and nobody is granted
//! the lock before.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::Pid;

use super::group::{Group, self_command};
use super::plan::Plan;
use super::tree::Tree;
use crate::clock::Moment;
use crate::failure::Failure;
use crate::protocol::{Call, Request, encode};

/// The name of the hidden command.
pub(crate) const COMMAND: &str = "lock-watchdog";

/// How long the watchdog sleeps at most: timers of the kernel stand still while a machine sleeps.
const NAP: Duration = Duration::from_millis(200);
/// How often a keeper is looked at until it is gone.
const GLANCE: Duration = Duration::from_millis(1);
/// How often descendants that are still alive are looked for and killed.
const RESCAN: Duration = Duration::from_millis(10);
/// How often a session whose wrapper is dead gives a sign of life, where it must.
const SIGN: Duration = Duration::from_millis(50);

/// What it says before it stops the command.
const STOPPING: &[u8] = b"stopping\n";

/// The wrapper's end.
#[derive(Debug)]
pub(super) struct Watchdog {
    process: Child,
    line: UnixStream,
    /// Whether it said that it stops the command.
    acted: bool,
}

impl Watchdog {
    /// Starts a watchdog that holds `session` open. One that takes the place of another knows its command
    /// from the start: if we were killed before we could name it, the session would end too early.
    pub(super) fn start(session: OwnedFd, command: Option<Group>) -> Result<Self, Failure> {
        let start = || {
            let (line, theirs) = UnixStream::pair()?;
            // A watchdog that does not read must not keep us from our own work.
            line.set_nonblocking(true)?;
            let own = std::process::id().to_string();
            let process = self_command(COMMAND)?
                .args(command.iter().flat_map(|group| [group.0.to_string(), own.clone()]))
                .stdin(OwnedFd::from(theirs))
                .stdout(session)
                // Signals of the terminal are for the command.
                .process_group_of_its_own()
                .spawn()?;
            Ok(Self { process, line, acted: false })
        };
        start().map_err(Failure::system("cannot start the watchdog"))
    }

    /// Its process id.
    pub(super) fn pid(&self) -> Pid {
        super::group::pid_of(&self.process)
    }

    /// Whether it has stopped the command, or is about to. What it did before the command ended is known
    /// here when that end is: it says so first.
    pub(super) fn has_acted(&mut self) -> bool {
        let mut said = [0; STOPPING.len()];
        self.acted |= matches!(self.line.read(&mut said), Ok(read) if read > 0);
        self.acted
    }

    /// Names the command to be stopped, by its group, whose number is that of the keeper.
    pub(super) fn watch(&mut self, group: Group) -> io::Result<()> {
        writeln!(self.line, "command {} {}", group.0, std::process::id())
    }

    /// Renews the moments at which the command is asked to end, and killed.
    pub(super) fn renew(&mut self, plan: Plan) -> io::Result<()> {
        writeln!(self.line, "until {} {}", plan.second().0, plan.kill.0)
    }

    /// The wrapper asks the command to end itself; what remains is to kill it.
    pub(super) fn only_kill(&mut self, plan: Plan) -> io::Result<()> {
        writeln!(self.line, "until {} {}", plan.kill.0, plan.kill.0)
    }

    /// All is over: nothing is to be stopped any more.
    pub(super) fn dismiss(mut self) {
        let _ = writeln!(self.line, "done");
        drop(self.line);
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

/// What the watchdog knows.
#[derive(Debug, Default)]
struct Orders {
    command: Option<Tree>,
    ask: Option<Moment>,
    kill: Option<Moment>,
    done: bool,
    /// Whether the command was stopped because nobody renewed its time.
    acted: bool,
}

impl Orders {
    fn obey(&mut self, line: &str) {
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
                // Half an order must not leave the command unwatched.
                if let (Some(ask), Some(kill)) = (ask, kill) {
                    (self.ask, self.kill) = (Some(ask), Some(kill));
                }
            }
            Some("done") => self.done = true,
            _ => {}
        }
    }

    /// How long nothing is to be done.
    fn nap(&self) -> Duration {
        [self.ask, self.kill].into_iter().flatten().map(Moment::left).fold(NAP, Duration::min)
    }

    /// Stops the command if it is time to; tells the wrapper before.
    fn act(&mut self, wrapper: &mut impl Write) {
        let Some(command) = &mut self.command else { return };
        let kill = self.kill.is_some_and(Moment::passed);
        if !kill && !self.ask.is_some_and(Moment::passed) {
            return;
        }
        // If nobody is there to hear it, we will learn so soon enough. Once is enough, too: a wrapper
        // that is stopped does not read, and we must not wait for it.
        if !std::mem::replace(&mut self.acted, true) {
            let _ = wrapper.write_all(STOPPING);
        }
        self.ask = None;
        if kill {
            command.kill(None);
            // Something may have been forked meanwhile.
            self.kill = command.alive(None).then(|| Moment::now().after(RESCAN));
        } else {
            command.ask(None);
        }
    }
}

/// The command of a group, whose wrapper is our parent.
fn tree(group: u64, wrapper: u64) -> Option<Tree> {
    let (group, wrapper) = (Group::new(group)?, Group::new(wrapper)?);
    Some(Tree::of_parent(group, Pid::from_raw(wrapper.0)))
}

/// The hidden command: watches `command`, if it is known already, until the wrapper is gone or says so.
pub(crate) fn main(command: Option<(i32, i32)>) -> Result<u8, Failure> {
    // Whoever ends "all of konklave" means the commands: we go when they are gone.
    let mut deaf = SigSet::empty();
    for signal in
        [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGPIPE]
    {
        deaf.add(signal);
    }
    let _ = deaf.thread_block();
    let mut orders = Orders::default();
    if let Some((group, wrapper)) = command {
        orders.obey(&format!("command {group} {wrapper}"));
    }
    let listened = listen(&mut orders);
    if !orders.done
        && let Some(command) = orders.command
    {
        outlive(command);
        if orders.acted {
            eprintln!("konklave: the lock was not renewed in time: the command was stopped");
        }
    }
    listened.map(|()| 0).map_err(Failure::system("the watchdog cannot read"))
}

/// Kills the command with all descendants, and returns when the last one is gone: the session ends with
/// us, and not before. Whom we may not kill (`sudo`) we wait for. Meanwhile the session needs signs of
/// life, and has nobody else to give them.
fn outlive(mut command: Tree) {
    let (mut told, mut rescan, mut sign) = (false, Moment::now(), Moment::now().after(SIGN));
    while command.alive(None) {
        if rescan.passed() {
            if !command.kill(None) && !std::mem::replace(&mut told, true) {
                eprintln!(
                    "konklave: the command runs as another user and cannot be stopped; its lock stays \
                     taken until it ends"
                );
            }
            rescan = Moment::now().after(if told { SIGN } else { RESCAN });
        }
        if sign.passed() {
            let _ = live();
            sign = Moment::now().after(SIGN);
        }
        std::thread::sleep(if told { SIGN } else { GLANCE });
    }
}

/// A sign of life of the session, which has nobody else to give one. Nobody waits for the answers.
fn live() -> io::Result<()> {
    let mut session = UnixStream::from(io::stdout().as_fd().try_clone_to_owned()?);
    session.set_nonblocking(true)?;
    let mut answers = [0; 4096];
    while session.read(&mut answers).is_ok_and(|read| read > 0) {}
    let request = Request::KeepAlive { at: Moment::now() };
    let call = encode(&Call { id: u64::MAX, request }).map_err(io::Error::other)?;
    session.write_all(&call)
}

fn listen(orders: &mut Orders) -> io::Result<()> {
    // Not by the buffer of stdin: what is in there, `poll` does not see. It is a socket, for both ways.
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let (mut piece, mut line) = ([0_u8; 256], Vec::new());
    while !orders.done {
        let ready = {
            let mut polled = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
            // Rounded up, so that a moment has passed when we wake.
            let nap = u16::try_from(orders.nap().as_micros().div_ceil(1000)).unwrap_or(u16::MAX);
            match poll(&mut polled, nap) {
                Ok(ready) => ready > 0,
                Err(nix::errno::Errno::EINTR) => false,
                Err(error) => return Err(error.into()),
            }
        };
        if ready {
            let read = match input.read(&mut piece) {
                // The wrapper is gone; perhaps without having read what we said last.
                Ok(0) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(()),
                Ok(read) => read,
                Err(error) => return Err(error),
            };
            for &byte in &piece[..read] {
                if byte == b'\n' {
                    orders.obey(&String::from_utf8_lossy(&line));
                    line.clear();
                } else {
                    line.push(byte);
                }
            }
        }
        orders.act(&mut input);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_obeyed_and_nonsense_is_not() {
        let mut orders = Orders::default();
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
            orders.obey(line);
            assert!(orders.command.is_none() && orders.kill.is_none(), "{line}");
        }
        orders.obey("command 4711 7");
        assert_eq!(orders.command.as_ref().map(Tree::group), Some(Group(4711)));
        orders.obey("until 5 7");
        assert_eq!((orders.ask, orders.kill), (Some(Moment(5)), Some(Moment(7))));
        orders.obey("until 9");
        assert_eq!((orders.ask, orders.kill), (Some(Moment(5)), Some(Moment(7))));
        assert_eq!(orders.nap(), Duration::ZERO);
        orders.obey("done");
        assert!(orders.done);
    }
}
