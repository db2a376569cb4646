//! The time in which the command runs.

use std::io;
use std::time::Duration;

use nix::sys::signal::{Signal, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};

use super::keeper::{Keeper, News};
use super::plan::Plan;
use super::signals::Signals;
use super::terminal::Terminal;
use super::tree::Tree;
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

/// How often descendants that should be dead are looked for and killed.
const RESCAN: Duration = Duration::from_millis(5);
/// How long a keeper without children may take to end.
const ENDING: Duration = Duration::from_millis(200);
/// The exit code when the keeper was killed: as the command, which the kernel killed with it.
const KILLED: u8 = 128 + Signal::SIGKILL as u8;

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
    /// The command and what keeps it; nothing if the lock is only held.
    pub(super) command: Option<Command>,
    pub(super) terminal: Terminal,
}

/// A command, seen by its wrapper.
pub(super) struct Command {
    keeper: Keeper,
    /// All that is below us, but for the watchdog.
    tree: Tree,
    /// Whether descendants are known to be left when the command itself has ended.
    left: bool,
    /// Whether it was told that some of them cannot be killed.
    told: bool,
}

impl Command {
    pub(super) fn new(keeper: Keeper) -> Self {
        let tree = Tree::of_ours(keeper.group());
        Self { keeper, tree, left: false, told: false }
    }
}

/// The next news of a command, if there is one; nothing if its keeper is gone.
async fn news(command: &mut Option<Command>) -> Option<News> {
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
                "konklave: the command runs as another user and cannot be stopped; others may have {} \
                 while it runs",
                self.job.name
            );
        }
    }

    /// When to look again for what should be dead: whom we may not kill we only wait for.
    fn rescan(&self) -> Duration {
        if self.command.as_ref().is_some_and(|command| command.told) { NAP } else { RESCAN }
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
        // Orphans of a keeper that was killed.
        while matches!(
            waitpid(None, Some(WaitPidFlag::WNOHANG)),
            Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..))
        ) {}
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
            let nap = if self.plan.kill.passed() { self.rescan() } else { next.left().min(NAP) };
            tokio::select! {
                biased;
                signal = signals.next() => {
                    if let Some(code) = self.hear(signal)? {
                        return Ok(code);
                    }
                }
                news = news(&mut self.command) => {
                    if let Some(code) = self.follow(news) {
                        return Ok(code);
                    }
                }
                reply = self.client.next(), if self.connected => self.learn(reply),
                _ = pulse.tick(), if self.connected => self.pulse().await,
                () = tokio::time::sleep(nap) => {}
            }
            if !asked && self.plan.ask.passed() {
                asked = true;
                if self.lost.is_none() {
                    self.lose(LATE);
                }
                // Asked by the watchdog already? Programs may take a second request for an order.
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

    /// A signal: news of a child, or something to pass on. Gives the exit code if there is no command.
    fn hear(&mut self, signal: Signal) -> Result<Option<u8>, Failure> {
        match signal {
            Signal::SIGCHLD => self.bury()?,
            Signal::SIGCONT => self.resume(),
            Signal::SIGWINCH | Signal::SIGALRM if self.command.is_none() => {}
            passed if self.command.is_none() => return Ok(Some(128 + passed as u8)),
            passed => self.signal(passed),
        }
        Ok(None)
    }

    /// What the keeper reports. Gives the exit code once the command ended.
    fn follow(&mut self, news: Option<News>) -> Option<u8> {
        let (code, left) = match news {
            Some(News::Stopped(why)) => {
                self.suspend(why);
                return None;
            }
            Some(News::Ended { code, left }) => (code, left),
            None => match self.command.as_mut().and_then(|command| command.keeper.exit_code()) {
                // It has said why it could not start the command.
                Some(code) => (code, true),
                None => {
                    eprintln!(
                        "konklave: the keeper of the command was killed: the command is stopped"
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

    fn bury(&mut self) -> Result<(), Failure> {
        // Only this one: how the keeper ended is asked for later.
        match waitpid(self.watchdog.pid(), Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) => self.replace_watchdog(),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Someone killed the watchdog: there is a new one at once.
    fn replace_watchdog(&mut self) -> Result<(), Failure> {
        let session = self.client.handle().map_err(Failure::system("cannot share the session"))?;
        if self.watchdog.has_acted() {
            self.lose(LATE);
        }
        let group = self.command.as_ref().map(|command| command.tree.group());
        self.watchdog = Watchdog::start(session, group)?;
        self.tell_watchdog().map_err(Failure::system("the watchdog is gone"))
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
        if let Some(command) = &self.command {
            let group = command.tree.group();
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
        if until <= self.plan.deadline || self.plan.kill.passed() {
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

    /// The command has ended; whatever descendants it left ends, too, before the lock is given back.
    async fn clear(&mut self) {
        let ending = Moment::now().after(ENDING);
        let mut end = None;
        let mut pulse = tokio::time::interval(self.client.keep_alive);
        pulse.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let (mut pause, mut gone) = (Duration::from_millis(1), self.command.is_none());
        while !(gone && self.nothing_left()) {
            self.stop_the_rest(gone || ending.passed(), &mut end);
            // As long as someone is there, the lock is needed.
            tokio::select! {
                news = news(&mut self.command), if !gone => gone = news.is_none(),
                reply = self.client.next(), if self.connected => self.learn(reply),
                _ = pulse.tick(), if self.connected => self.pulse().await,
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(Duration::from_millis(20)),
            }
        }
    }

    /// Once the keeper is gone: whether nothing else is left either.
    fn nothing_left(&mut self) -> bool {
        let Some(command) = &mut self.command else { return true };
        let group = command.tree.group();
        if command.keeper.exit_code() == Some(0) {
            // Elsewhere than on Linux nobody is a subreaper.
            !group.alive()
        } else {
            !command.tree.alive(Some(self.watchdog.pid()))
        }
    }

    /// Asks what the command left behind to end, and kills it at `end`, or when the lock is lost. If
    /// `late`, something is there although the keeper did not know of it.
    fn stop_the_rest(&mut self, late: bool, end: &mut Option<Moment>) {
        let Some(command) = &mut self.command else { return };
        let watchdog = Some(self.watchdog.pid());
        let kill = self.plan.kill.passed();
        if end.is_none() && !kill && (command.left || late) {
            self.job.says(|| "the command has ended; stopping what it left behind".to_owned());
            command.tree.ask(watchdog);
            *end = Some(Moment::now().after(self.job.grace));
        }
        if (kill || end.is_some_and(Moment::passed))
            && !command.tree.kill(watchdog)
            && !std::mem::replace(&mut command.told, true)
        {
            eprintln!(
                "konklave: what the command left behind runs as another user and cannot be \
                 stopped; {} stays taken until it ends",
                self.job.name
            );
        }
    }
}
