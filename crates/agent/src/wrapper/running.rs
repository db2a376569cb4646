//! The wrapper while the command runs, until the lock is released.

use std::io;
use std::pin::Pin;
use std::time::Duration;

use nix::sys::signal::{Signal, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};

use super::keeper::{Keeper, KeeperReport};
use super::plan::Plan;
use super::signals::Signals;
use super::terminal::Terminal;
use super::tree::Tree;
use super::watchdog::Watchdog;
use super::{Ended, Job};
use crate::client::{Client, accept, unexpected};
use crate::clock::Moment;
use crate::failure::{Failure, LOST};
use crate::protocol::{Answer, Event, Reply, Request, millis};

/// The longest sleep. Timers do not count the time a machine sleeps, so deadlines are checked this often.
const NAP: Duration = Duration::from_millis(200);
/// How long the agent may take to confirm the release.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// The signals that end a command.
const ENDING: [Signal; 4] = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT];
/// How often descendants that should be dead are searched for and killed.
const RESCAN: Duration = Duration::from_millis(5);
/// How long a keeper without children may take to end.
const KEEPER_END: Duration = Duration::from_millis(200);
/// The exit code when the keeper was killed: that of the command, which the kernel killed with it.
const KILLED: u8 = 128 + Signal::SIGKILL as u8;

/// How often a wrapper looks for an agent that is gone, and how long the agent may take to greet it.
const RECONNECT: Duration = Duration::from_millis(100);
const GREETING: Duration = Duration::from_secs(2);

/// The reason for a loss when nothing else is known.
const LATE: &str = "it was not renewed in time";

/// The wrapper's state while the command runs.
pub(super) struct Running<'a> {
    pub(super) job: &'a Job,
    pub(super) client: Client,
    pub(super) watchdog: Watchdog,
    pub(super) claim: u64,
    pub(super) token: String,
    pub(super) plan: Plan,
    /// Why the lock is lost, or is about to be released.
    pub(super) lost: Option<String>,
    /// Set while the agent leaves: the lock is still held and renewed, but the command must end by then.
    pub(super) end_by: Option<Moment>,
    pub(super) connected: bool,
    /// A new connection in the making, after the agent is gone. Until the lock would be lost, it may be resumed.
    pub(super) reconnecting: Option<Connecting>,
    /// Why the agent is gone, until the lock is resumed.
    pub(super) gone: Option<String>,
    /// Whether the agent has been asked to resume the lock, and has not answered.
    pub(super) resuming: bool,
    /// The command; `None` if the lock is held without one.
    pub(super) command: Option<Command>,
    pub(super) terminal: Terminal,
}

/// A connection in the making.
pub(super) type Connecting = Pin<Box<dyn Future<Output = Client>>>;

/// Connects to the agent as soon as it is there.
fn reconnect(job: &Job) -> Connecting {
    let mut next: Pin<Box<dyn Future<Output = _>>> = Box::pin(job.connect());
    let job = job.clone();
    Box::pin(async move {
        loop {
            match tokio::time::timeout(GREETING, next).await {
                Ok(Ok(client)) => return client,
                Ok(Err(_)) | Err(_) => tokio::time::sleep(RECONNECT).await,
            }
            next = Box::pin(job.connect());
        }
    })
}

/// The new connection. Never returns without one in the making.
async fn reconnected(connecting: &mut Option<Connecting>) -> Client {
    match connecting {
        Some(connecting) => connecting.await,
        None => std::future::pending().await,
    }
}

/// A running command, as its wrapper knows it.
pub(super) struct Command {
    keeper: Keeper,
    /// All descendants of the wrapper, except the watchdog.
    tree: Tree,
    /// Whether the command left descendants running when it ended.
    left: bool,
    /// Whether the user has been told that a process cannot be killed.
    told: bool,
}

impl Command {
    pub(super) fn new(keeper: Keeper) -> Self {
        let tree = Tree::of_ours(keeper.group());
        Self { keeper, tree, left: false, told: false }
    }
}

/// The next report of the keeper; `None` if the keeper is gone. Never returns without a command.
async fn keeper_report(command: &mut Option<Command>) -> Option<KeeperReport> {
    match command {
        Some(command) => command.keeper.next().await,
        None => std::future::pending().await,
    }
}

impl Running<'_> {
    fn signal(&self, signal: Signal) {
        if let Some(command) = &self.command {
            command.tree.group().signal(signal);
        }
    }

    fn kill(&mut self) {
        let Some(command) = &mut self.command else { return };
        if !command.tree.kill(Some(self.watchdog.pid()))
            && !std::mem::replace(&mut command.told, true)
        {
            eprintln!(
                "konklave: cannot stop the command, which runs as another user; another process may get \
                 {} while it runs",
                self.job.name
            );
        }
    }

    /// The interval of scans for processes that should be dead. It is longer once a process is known that this
    /// user may not kill.
    fn rescan(&self) -> Duration {
        if self.command.as_ref().is_some_and(|command| command.told) { NAP } else { RESCAN }
    }

    /// Runs until the command has ended and the lock is released.
    pub(super) async fn run(mut self, signals: &mut Signals) -> Result<Ended, Failure> {
        let code = self.watch(signals).await?;
        // The wrapper may have been stopped, and see the end of the command after the deadline. Or the watchdog
        // has ended the command. Both count as a loss.
        if self.lost.is_none() && self.too_late() {
            self.lose_late();
        }
        self.stop_descendants().await;
        self.terminal.take();
        self.watchdog.dismiss();
        super::reap();
        if self.connected {
            let release = self.client.call(Request::Release { claim: self.claim });
            // If the agent does not answer, the end of the session releases the lock.
            let released = tokio::time::timeout(RELEASE_TIMEOUT, release).await;
            if self.lost.is_none() && !matches!(released, Ok(Ok(Answer::Done))) {
                eprintln!(
                    "konklave: the agent did not confirm the release of {}; others may wait for the lease",
                    self.job.name
                );
            }
        }
        if self.lost.is_none() && !self.connected {
            eprintln!(
                "konklave: the agent is gone, so {} was not released: others wait for the lease",
                self.job.name
            );
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
        // After a pause, send one keep-alive, not one for each that was missed.
        pulse.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut asked = false;
        loop {
            let next = if asked { self.plan.kill } else { self.plan.ask };
            let nap = if self.plan.kill.passed() { self.rescan() } else { next.left().min(NAP) };
            tokio::select! {
                biased;
                signal = signals.next() => {
                    if let Some(code) = self.on_signal(signal)? {
                        return Ok(code);
                    }
                }
                report = keeper_report(&mut self.command) => {
                    if let Some(code) = self.on_keeper_report(report) {
                        return Ok(code);
                    }
                }
                reply = self.client.next(), if self.connected => self.on_reply(reply),
                _ = pulse.tick(), if self.connected => self.keep_alive().await,
                client = reconnected(&mut self.reconnecting) => self.resume_lock(client).await?,
                () = tokio::time::sleep(nap) => {}
            }
            if !asked && self.plan.ask.passed() {
                asked = true;
                if self.lost.is_none() {
                    self.lose_late();
                }
                // Not if the watchdog has sent SIGTERM: programs may quit at once on a second one.
                if !self.watchdog.has_acted()
                    && let Some(command) = &self.command
                {
                    command.tree.ask(Some(self.watchdog.pid()));
                }
            }
            if self.plan.kill.passed() {
                self.kill();
            }
            if asked && self.command.is_none() {
                return Ok(LOST);
            }
        }
    }

    /// Handles a signal of a child, or passes a signal on to the command. Returns the exit code if the lock is
    /// held without a command and the signal ends that.
    fn on_signal(&mut self, signal: Signal) -> Result<Option<u8>, Failure> {
        match signal {
            Signal::SIGCHLD => self.reap_watchdog()?,
            Signal::SIGCONT => self.resume(),
            Signal::SIGWINCH | Signal::SIGALRM if self.command.is_none() => {}
            passed if self.command.is_none() => return Ok(Some(128 + passed as u8)),
            passed => {
                self.signal(passed);
                // A stopped command would handle these only when it continues.
                if ENDING.contains(&passed) {
                    self.signal(Signal::SIGCONT);
                }
            }
        }
        Ok(None)
    }

    /// Handles a report of the keeper. Returns the exit code once the command has ended.
    fn on_keeper_report(&mut self, report: Option<KeeperReport>) -> Option<u8> {
        let (code, left) = match report {
            Some(KeeperReport::Stopped(why)) => {
                self.suspend(why);
                return None;
            }
            Some(KeeperReport::Ended { code, left }) => (code, left),
            None => match self.command.as_mut().and_then(|command| command.keeper.exit_code()) {
                // The keeper has printed why it could not start the command.
                Some(code) => (code, true),
                None => {
                    eprintln!(
                        "konklave: the keeper process (lock-keeper) was killed, so the command is killed, \
                         too"
                    );
                    (KILLED, true)
                }
            },
        };
        if let Some(command) = &mut self.command {
            command.left = left;
        }
        Some(code)
    }

    fn reap_watchdog(&mut self) -> Result<(), Failure> {
        // Only the watchdog: the exit code of the keeper is read elsewhere.
        match waitpid(self.watchdog.pid(), Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) => self.replace_watchdog(),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Starts another watchdog: the old one was killed, or holds a session that is over.
    fn replace_watchdog(&mut self) -> Result<(), Failure> {
        let session = self.client.handle().map_err(Failure::system("cannot share the session"))?;
        if self.watchdog.has_acted() {
            self.lose(LATE);
        }
        let group = self.command.as_ref().map(|command| command.tree.group());
        let old = std::mem::replace(&mut self.watchdog, Watchdog::start(session, group)?);
        let updated = self.update_watchdog().map_err(Failure::system("the watchdog is gone"));
        // Only now: the command is never without a watchdog that knows the deadline.
        old.dismiss();
        updated
    }

    /// The agent is there again: asks it to go on with the lock. From now on the session lives with the new
    /// connection, so the watchdog must hold that one before the agent may grant anything.
    async fn resume_lock(&mut self, client: Client) -> Result<(), Failure> {
        self.reconnecting = None;
        if self.lost.is_some() || self.too_late() {
            return Ok(());
        }
        (self.client, self.connected) = (client, true);
        self.replace_watchdog()?;
        let request = Request::Resume {
            name: self.job.name.clone(),
            claim: self.job.claim.clone(),
            token: self.token.clone(),
            until: self.plan.deadline,
            lease: self.job.lease.map(millis),
        };
        match self.client.send(request).await {
            Ok(number) => (self.claim, self.resuming) = (number, true),
            Err(failure) => self.disconnected(&failure.to_string()),
        }
        Ok(())
    }

    /// Handles the answer to the request to resume the lock.
    fn on_resumed(&mut self, answer: Answer) {
        self.resuming = false;
        match accept(answer) {
            Ok(Answer::Granted { token, until }) if token == self.token => {
                self.gone = None;
                self.job.report(|| format!("the agent is back; {} goes on", self.job.name));
                self.renew(until);
            }
            // The agent may be unable to answer yet.
            Err(Failure::Unavailable(why)) => self.disconnected(&why),
            Ok(Answer::Refused { message, .. }) => self.lose(&message),
            Ok(other) => self.lose(&unexpected(&other).to_string()),
            Err(failure) => self.lose(&failure.to_string()),
        }
    }

    /// Sends the current plan to the watchdog.
    fn update_watchdog(&mut self) -> io::Result<()> {
        match self.lost {
            Some(_) => self.watchdog.only_kill(self.plan),
            None => self.watchdog.renew(self.plan),
        }
    }

    /// Stops the wrapper after the terminal has stopped the command, so that the shell sees a stopped job.
    fn suspend(&mut self, why: Signal) {
        if !self.terminal.is_ours() {
            if matches!(why, Signal::SIGTTIN | Signal::SIGTTOU) {
                eprintln!(
                    "konklave: the command is stopped, because it uses the terminal from the background"
                );
            }
            return;
        }
        self.terminal.take();
        eprintln!(
            "konklave: suspended; {} will be lost in {:.1} s unless the job is resumed (fg, bg)",
            self.job.name,
            self.plan.second().left().as_secs_f64()
        );
        let _ = raise(Signal::SIGSTOP);
        self.resume();
    }

    fn resume(&mut self) {
        if let Some(command) = &self.command {
            let group = command.tree.group();
            if self.terminal.in_front() {
                self.terminal.give(group);
            }
            group.signal(Signal::SIGCONT);
        }
    }

    /// Handles a reply or event of the agent, or the end of the connection.
    fn on_reply(&mut self, reply: Result<Reply, Failure>) {
        match reply {
            Ok(Reply::Answer { id, answer }) if self.resuming && id == self.claim => {
                self.on_resumed(answer);
            }
            Ok(Reply::Answer { answer: Answer::Alive { until }, .. }) => {
                let mine = until.into_iter().find(|(claim, _)| *claim == self.claim);
                if let Some((_, until)) = mine {
                    self.renew(until);
                }
            }
            Ok(Reply::Event(Event::Lost { claim, why })) if claim == self.claim => {
                self.lose(&why);
            }
            Ok(Reply::Event(Event::Leaving)) => {
                self.begin_release("the agent is leaving the group")
            }
            Ok(Reply::Answer { .. } | Reply::Event(_) | Reply::Unaddressed(_)) => {}
            Err(failure) => self.disconnected(&failure.to_string()),
        }
    }

    fn renew(&mut self, until: Moment) {
        // An older answer may arrive late and must not shorten the plan. After the kill it is too late to renew.
        if until <= self.plan.deadline || self.plan.kill.passed() {
            return;
        }
        let plan = Plan::new(Moment::now(), until, self.job.grace);
        self.plan = match (self.lost.is_some(), self.end_by) {
            // The watchdog may have sent SIGTERM to the command, so a renewal now is too late.
            (false, _) if self.too_late() => return self.lose_late(),
            (false, _) => plan,
            (true, Some(end)) if !self.watchdog.has_acted() => {
                Plan { ask: self.plan.ask, ..plan.ending(end) }
            }
            // A lost lock is not renewed.
            (true, _) => return,
        };
        // If the watchdog is gone, SIGCHLD arrives, and a new watchdog gets the plan.
        let _ = self.update_watchdog();
    }

    /// Whether the plan's time to ask has passed without a renewal, or the watchdog has acted.
    fn too_late(&mut self) -> bool {
        self.plan.ask.passed() || self.watchdog.has_acted()
    }

    /// Notes that the lock was not renewed in time.
    fn lose_late(&mut self) {
        let why = self.gone.take().unwrap_or_else(|| LATE.to_owned());
        self.lose(&why);
    }

    /// Notes the loss of the lock. The command must end before the last known deadline.
    fn lose(&mut self, why: &str) {
        self.end_by = None;
        if self.lost.is_none() {
            self.lost = Some(why.to_owned());
            self.plan = self.plan.ask_now(Moment::now(), self.job.grace);
            let _ = self.update_watchdog();
        }
    }

    /// Ends the command, because the agent is leaving. The lock stays held meanwhile: the command has its whole
    /// grace, as long as the agent renews the lock.
    fn begin_release(&mut self, why: &str) {
        if self.lost.is_none() {
            self.lose(why);
            self.end_by = Some(self.plan.ask.after(self.job.grace));
        }
    }

    async fn keep_alive(&mut self) {
        if let Err(failure) = self.client.live().await {
            self.disconnected(&failure.to_string());
        }
    }

    /// The agent is gone. It may be back before the lock has to be given up.
    fn disconnected(&mut self, why: &str) {
        (self.connected, self.resuming) = (false, false);
        if self.lost.is_some() {
            return;
        }
        // If this wrapper was stopped for too long, the agent closed the connection for that reason. Then the
        // cause is the late renewal, not the connection.
        if self.too_late() {
            return self.lose(LATE);
        }
        self.job.report(|| format!("{why}; the command goes on meanwhile"));
        self.gone = Some(why.to_owned());
        self.reconnecting = Some(reconnect(self.job));
    }

    /// Ends the descendants that the command has left running. Until then the lock is kept.
    async fn stop_descendants(&mut self) {
        let ending = Moment::now().after(KEEPER_END);
        let mut end = None;
        let mut pulse = tokio::time::interval(self.client.keep_alive);
        pulse.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let (mut pause, mut gone) = (Duration::from_millis(1), self.command.is_none());
        while !(gone && self.nothing_left()) {
            self.stop_the_rest(gone || ending.passed(), &mut end);
            // Keep renewing the lock meanwhile.
            tokio::select! {
                report = keeper_report(&mut self.command), if !gone => gone = report.is_none(),
                reply = self.client.next(), if self.connected => self.on_reply(reply),
                _ = pulse.tick(), if self.connected => self.keep_alive().await,
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(Duration::from_millis(20)),
            }
        }
    }

    /// Whether no descendant is left, once the keeper is gone.
    fn nothing_left(&mut self) -> bool {
        let Some(command) = &mut self.command else { return true };
        let group = command.tree.group();
        if command.keeper.exit_code() == Some(0) {
            // The keeper has adopted and outlived all descendants. Other systems than Linux have no
            // subreapers, so the process group is checked as well.
            !group.alive()
        } else {
            !command.tree.alive(Some(self.watchdog.pid()))
        }
    }

    /// Sends SIGTERM to the descendants that the command has left, and SIGKILL at `end` or when the lock is lost.
    /// If `late`, processes are left that the keeper has not reported.
    fn stop_the_rest(&mut self, late: bool, end: &mut Option<Moment>) {
        let Some(command) = &mut self.command else { return };
        let watchdog = Some(self.watchdog.pid());
        let kill = self.plan.kill.passed();
        if end.is_none() && !kill && (command.left || late) {
            self.job.report(|| {
                "the command has ended; stopping the processes that it left running".to_owned()
            });
            command.tree.ask(watchdog);
            *end = Some(Moment::now().after(self.job.grace));
        }
        if (kill || end.is_some_and(Moment::passed))
            && !command.tree.kill(watchdog)
            && !std::mem::replace(&mut command.told, true)
        {
            eprintln!(
                "konklave: cannot stop a process that the command left running as another user; {} stays \
                 taken until it ends",
                self.job.name
            );
        }
    }
}
