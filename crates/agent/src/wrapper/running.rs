//! The time in which the command runs.

use std::io;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::group::Group;
use super::plan::Plan;
use super::signals::Signals;
use super::terminal::Terminal;
use super::watchdog::Watchdog;
use super::{Ended, Job};
use crate::client::Client;
use crate::clock::Moment;
use crate::failure::{Failure, LOST};
use crate::protocol::{Answer, Event, Reply, Request};

/// We sleep no longer than this: timers of the kernel stand still while a machine sleeps.
const NAP: Duration = Duration::from_millis(200);
/// How long the agent may take to say that the lock is given back.
const FAREWELL: Duration = Duration::from_secs(2);

/// The moment of a kill that is done.
const NEVER: Moment = Moment(u64::MAX);

/// Why a lock is lost that nothing else is known of.
const LATE: &str = "it was not renewed in time";

/// A command that runs.
pub(super) struct Running<'a> {
    pub(super) job: &'a Job,
    pub(super) client: Client,
    pub(super) watchdog: Watchdog,
    pub(super) claim: u64,
    pub(super) plan: Plan,
    /// Why the lock is no longer ours, or soon will not be.
    pub(super) lost: Option<String>,
    /// The lock is still ours and renewed, but the command is to end by then.
    pub(super) farewell: Option<Moment>,
    pub(super) connected: bool,
    /// The command, which leads its process group.
    pub(super) command: Option<Pid>,
    pub(super) terminal: Terminal,
}

impl Running<'_> {
    fn group(&self) -> Option<Group> {
        self.command.map(|pid| Group(pid.as_raw()))
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group() {
            group.signal(signal);
        }
    }

    fn kill(&self) {
        if self.group().is_some_and(|group| !group.signal(Signal::SIGKILL)) {
            eprintln!(
                "konklave: the command runs as another user and cannot be stopped; others may have {} \
                 while it runs",
                self.job.name
            );
        }
    }

    /// Runs until the command has ended and the lock is given back; says how it ended.
    pub(super) async fn run(mut self, signals: &mut Signals) -> Result<Ended, Failure> {
        let code = self.watch(signals).await?;
        // Stopped meanwhile, we cannot tell when it ended; and where the watchdog was faster, it is
        // the watchdog that ended it.
        if self.lost.is_none() && self.too_late() {
            self.lose(LATE);
        }
        self.clear().await;
        self.terminal.take();
        self.watchdog.dismiss();
        if self.connected {
            let release = self.client.call(Request::Release { claim: self.claim });
            // If the agent does not answer, the end of the session says it.
            let released = tokio::time::timeout(FAREWELL, release).await;
            if self.lost.is_none() && !matches!(released, Ok(Ok(Answer::Done))) {
                eprintln!("konklave: the agent did not confirm the release of {}", self.job.name);
            }
        }
        match self.lost {
            Some(why) => {
                eprintln!("konklave: {} was lost while the command ran: {why}", self.job.name);
                Ok(Ended::Lost)
            }
            None => Ok(Ended::Code(code)),
        }
    }

    async fn watch(&mut self, signals: &mut Signals) -> Result<u8, Failure> {
        let mut pulse = tokio::time::interval(self.client.keep_alive);
        // A pulse that was missed is made up for once, not as often as it was missed.
        pulse.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut asked = false;
        loop {
            let next = if asked { self.plan.kill } else { self.plan.ask };
            tokio::select! {
                biased;
                signal = signals.next() => {
                    if let Some(code) = self.hear(signal)? {
                        return Ok(code);
                    }
                }
                reply = self.client.next(), if self.connected => self.learn(reply),
                _ = pulse.tick(), if self.connected => self.pulse().await,
                () = tokio::time::sleep(next.left().min(NAP)) => {}
            }
            if !asked && self.plan.ask.passed() {
                asked = true;
                if self.lost.is_none() {
                    self.lose(LATE);
                }
                // Asked by the watchdog already? Programs may take a second request for an order.
                if !self.watchdog.has_acted() {
                    self.signal(Signal::SIGTERM);
                    // One that is stopped hears of it only when it runs.
                    self.signal(Signal::SIGCONT);
                }
            }
            if self.plan.kill.passed() {
                self.kill();
                self.plan.kill = NEVER;
            }
            if asked && self.command.is_none() {
                return Ok(LOST);
            }
        }
    }

    /// A signal: news of a child, or something to pass on. Gives the exit code once the command ended.
    fn hear(&mut self, signal: Signal) -> Result<Option<u8>, Failure> {
        match signal {
            Signal::SIGCHLD => return self.bury(),
            Signal::SIGCONT => self.resume(),
            Signal::SIGWINCH | Signal::SIGALRM if self.command.is_none() => {}
            passed if self.command.is_none() => return Ok(Some(128 + passed as u8)),
            passed => self.signal(passed),
        }
        Ok(None)
    }

    fn bury(&mut self) -> Result<Option<u8>, Failure> {
        let mut code = None;
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED)) {
                Ok(WaitStatus::Exited(pid, status)) if Some(pid) == self.command => {
                    code = Some(u8::try_from(status & 0xff).unwrap_or(u8::MAX));
                }
                Ok(WaitStatus::Signaled(pid, signal, _)) if Some(pid) == self.command => {
                    code = Some(128 + signal as u8);
                }
                Ok(WaitStatus::Stopped(pid, why)) if Some(pid) == self.command => {
                    self.suspend(why);
                }
                Ok(WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, ..))
                    if pid == self.watchdog.pid() && code.is_none() =>
                {
                    self.replace_watchdog()?;
                }
                Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return Ok(code),
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => {
                    return Err(Failure::System {
                        what: "cannot wait for the command".into(),
                        why: error.into(),
                    });
                }
            }
        }
    }

    /// Someone killed the watchdog: there is a new one at once.
    fn replace_watchdog(&mut self) -> Result<(), Failure> {
        let session = self.client.handle().map_err(Failure::system("cannot share the session"))?;
        if self.watchdog.has_acted() {
            self.lose(LATE);
        }
        self.watchdog = Watchdog::start(session)?;
        let fail = "the watchdog is gone";
        if let Some(group) = self.group() {
            self.watchdog.watch(group).map_err(Failure::system(fail))?;
        }
        self.tell_watchdog().map_err(Failure::system(fail))
    }

    fn tell_watchdog(&mut self) -> io::Result<()> {
        match self.lost {
            Some(_) => self.watchdog.only_kill(self.plan),
            None => self.watchdog.renew(self.plan),
        }
    }

    /// The command was stopped from the terminal: so are we, and the shell sees a stopped job.
    fn suspend(&mut self, why: Signal) {
        if !self.terminal.is_ours() {
            if matches!(why, Signal::SIGTTIN | Signal::SIGTTOU) {
                eprintln!("konklave: the command is stopped: it wants a terminal it does not have");
            }
            return;
        }
        self.terminal.take();
        eprintln!(
            "konklave: suspended; {} is lost in {:.1} s unless it goes on",
            self.job.name,
            self.plan.ask.left().as_secs_f64()
        );
        let _ = raise(Signal::SIGSTOP);
        self.resume();
    }

    fn resume(&mut self) {
        if let Some(group) = self.group() {
            if self.terminal.in_front() {
                self.terminal.give(group);
            }
            group.signal(Signal::SIGCONT);
        }
    }

    /// Something the agent said, or its silence.
    fn learn(&mut self, reply: Result<Reply, Failure>) {
        match reply {
            Ok(Reply::Answer { answer: Answer::Alive { until }, .. }) => {
                let mine = until.into_iter().find(|(claim, _)| *claim == self.claim);
                if let Some((_, until)) = mine {
                    self.renew(until);
                }
            }
            Ok(Reply::Event(Event::Lost { claim, why })) if claim == self.claim => {
                self.lose(&why);
            }
            Ok(Reply::Event(Event::Leaving)) => self.retire("the agent leaves the group"),
            Ok(Reply::Answer { .. } | Reply::Event(_) | Reply::Unaddressed(_)) => {}
            Err(failure) => self.part(&failure.to_string()),
        }
    }

    fn renew(&mut self, until: Moment) {
        // A deadline never comes nearer by an answer that was overtaken; and dead is dead.
        if until <= self.plan.deadline || self.plan.kill == NEVER || self.plan.kill.passed() {
            return;
        }
        let plan = Plan::new(Moment::now(), until, self.job.grace);
        self.plan = match (self.lost.is_some(), self.farewell) {
            // Nor does a command live on that the watchdog may have asked to end.
            (false, _) if self.too_late() => return self.lose(LATE),
            (false, _) => plan,
            (true, Some(end)) if !self.watchdog.has_acted() => {
                Plan { ask: self.plan.ask, ..plan.ending(end) }
            }
            // What is lost stays lost.
            (true, _) => return,
        };
        // If the watchdog is gone, its end is told by a signal, and a new one learns the new plan.
        let _ = self.tell_watchdog();
    }

    /// Whether it was to end before it was renewed, be it that nobody has said so yet.
    fn too_late(&mut self) -> bool {
        self.plan.ask.passed() || self.watchdog.has_acted()
    }

    /// It is not ours any more: what was promised last is what is left.
    fn lose(&mut self, why: &str) {
        self.farewell = None;
        if self.lost.is_none() {
            self.lost = Some(why.to_owned());
            self.plan = self.plan.hurry(Moment::now(), self.job.grace);
            let _ = self.tell_watchdog();
        }
    }

    /// It is to be given back, but is ours until then: the command has its whole grace, as long as the
    /// agent renews what it promised.
    fn retire(&mut self, why: &str) {
        if self.lost.is_none() {
            self.lose(why);
            self.farewell = Some(self.plan.ask.after(self.job.grace));
        }
    }

    async fn pulse(&mut self) {
        if let Err(failure) = self.client.live().await {
            self.part(&failure.to_string());
        }
    }

    fn part(&mut self, why: &str) {
        self.connected = false;
        // Stopped for so long that the agent gave us up, we find its door closed: not its fault.
        let late = self.lost.is_none() && self.too_late();
        self.lose(if late { LATE } else { why });
    }

    /// The command has ended; whatever it left running in its group ends, too, before the lock is
    /// given back.
    async fn clear(&mut self) {
        let Some(group) = self.group() else { return };
        if !group.alive() {
            return;
        }
        self.job.says(|| "the command has ended; stopping what it left behind".to_owned());
        group.signal(Signal::SIGTERM);
        group.signal(Signal::SIGCONT);
        let end = Moment::now().after(self.job.grace);
        let mut told = false;
        let mut pulse = tokio::time::interval(self.client.keep_alive);
        pulse.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut pause = Duration::from_millis(1);
        while group.alive() {
            if self.plan.kill.min(end).passed() && !group.signal(Signal::SIGKILL) && !told {
                told = true;
                eprintln!(
                    "konklave: what the command left behind runs as another user and cannot be \
                     stopped; {} stays taken until it ends",
                    self.job.name
                );
            }
            // As long as someone is there, the lock is needed.
            tokio::select! {
                reply = self.client.next(), if self.connected => self.learn(reply),
                _ = pulse.tick(), if self.connected => self.pulse().await,
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(Duration::from_millis(20)),
            }
        }
    }
}
