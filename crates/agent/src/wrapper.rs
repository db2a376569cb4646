//! `lock` and `elect`: a command that runs while a lock, or leadership, is ours.
//!
//! Four processes: the *wrapper* (this), which speaks with the agent; the *watchdog*, which stops the
//! command in time when the wrapper cannot; the *keeper*, which adopts all descendants of the command;
//! and, as its child, the *gate*, which becomes the command when the lock is there. Whichever of them is
//! killed or stopped, the command and all its descendants are gone before the deadline.

pub(crate) mod gate;
mod group;
pub(crate) mod keeper;
mod plan;
mod running;
mod signals;
mod terminal;
mod tree;
pub(crate) mod watchdog;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::{Signal, raise};
use tokio::time::Instant;

use self::keeper::Keeper;
use self::plan::Plan;
use self::running::{Command, Running};
use self::signals::Signals;
use self::terminal::Terminal;
use self::watchdog::Watchdog;
use crate::client::{Client, accept, unexpected};
use crate::clock::Moment;
use crate::failure::{Failure, LOST};
use crate::protocol::{Answer, Claim, Event, Refusal, Reply, Request, millis};

/// How long to wait for an agent that is gone, before the next try.
const RETRY: Duration = Duration::from_secs(1);
/// How often who waits for an agent says why.
const AGAIN: Duration = Duration::from_secs(60);
/// How long the agent may take to greet us, beyond the time that we wait anyway.
const GREETING: Duration = Duration::from_secs(1);
/// How long the agent may take to say that the group has not answered, beyond that time.
const ANSWER: Duration = Duration::from_secs(4);
/// The signals that end the waiting: those that would end us if nobody listened.
const ENDING: [Signal; 7] = [
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGALRM,
];

/// What is to be done.
#[derive(Clone, Debug)]
pub struct Job {
    /// The name of the lock or the election.
    pub name: String,
    /// What of it.
    pub claim: Claim,
    /// How long to wait; nothing is for ever.
    pub wait: Option<Duration>,
    /// The exit code if it is not obtained.
    pub conflict: u8,
    /// The command; if empty, what was obtained is printed and held until a signal.
    pub command: Vec<OsString>,
    /// What status shows of it, if not the program's name.
    pub label: Option<String>,
    /// How long the session lives without a sign of life.
    pub ttl: Duration,
    /// How long the command has to end by itself.
    pub grace: Duration,
    /// Whether to claim again when it was lost.
    pub again: bool,
    /// Whether to say what happens.
    pub verbose: bool,
    /// Where the agent is.
    pub socket: PathBuf,
}

impl Job {
    fn says(&self, what: impl FnOnce() -> String) {
        if self.verbose {
            eprintln!("konklave: {}", what());
        }
    }

    /// What the whole group sees of us. Not the arguments: they may be nobody's business.
    fn label(&self) -> String {
        let program = self.command.first().map(|word| Path::new(word).file_name().unwrap_or(word));
        let program = program.map_or_else(|| "nothing".into(), OsStr::to_string_lossy);
        let what = self.label.as_deref().unwrap_or(&program);
        format!("pid {}: {what}", std::process::id())
    }
}

/// If this process is one of the helpers that `lock` starts, does its work, and gives its exit code.
///
/// To be called first in `main`: each lock starts three of them, and to build and parse the whole command
/// line would take longer than their own work does.
#[must_use]
pub fn helper() -> Option<u8> {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let (name, rest) = words.split_first()?;
    let separator = rest.iter().position(|word| word == "--").unwrap_or(rest.len());
    let (numbers, command) = rest.split_at(separator);
    let command = command.get(1..).unwrap_or_default();
    let numbers: Option<Vec<i32>> =
        numbers.iter().map(|word| word.to_str()?.parse().ok()).collect();
    match (name.to_str()?, numbers?.as_slice()) {
        (watchdog::COMMAND, []) => Some(reported(watchdog::main(None))),
        (watchdog::COMMAND, &[group, wrapper]) => {
            Some(reported(watchdog::main(Some((group, wrapper)))))
        }
        (keeper::COMMAND, &[word, news, watchdog]) => {
            Some(keeper::main(word, news, watchdog, command))
        }
        (gate::COMMAND, &[pipe, keeper]) => Some(gate::main(pipe, keeper, command)),
        _ => None,
    }
}

fn reported(result: Result<u8, Failure>) -> u8 {
    result.unwrap_or_else(|failure| failure.report())
}

/// Runs the command under the lock; gives the exit code.
pub fn run(job: &Job) -> Result<u8, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::system("cannot start"))?;
    // If the keeper is killed, what it kept is below us, and not below init. Best effort: without it
    // the process group is what is left to look at.
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_child_subreaper(true);
    runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let (mut complaint, mut warned) = (Complaint::default(), false);
        loop {
            match attempt(job, &mut signals, &mut warned).await {
                Ok(Ended::Lost) if job.again => {
                    job.says(|| format!("claiming {} again", job.name));
                }
                Ok(Ended::Lost) => return Ok(LOST),
                // Also 76, if that is the command's own.
                Ok(Ended::Code(code)) => return Ok(code),
                // The agent may come back.
                Err(Failure::Unavailable(why)) if job.again => {
                    if complaint.is_due(&why, Instant::now()) {
                        eprintln!("konklave: {why}");
                    }
                    if let Some(code) = pause(&mut signals).await {
                        return Ok(code);
                    }
                }
                Err(failure) => return Err(failure),
            }
        }
    })
}

/// What was said last of an agent that is not there: the same is said again after a while only.
#[derive(Default)]
struct Complaint(Option<(String, Instant)>);

impl Complaint {
    fn is_due(&mut self, why: &str, now: Instant) -> bool {
        let said = |(what, when): &(String, Instant)| what == why && now - *when < AGAIN;
        if self.0.as_ref().is_some_and(said) {
            return false;
        }
        self.0 = Some((why.to_owned(), now));
        true
    }
}

/// How an attempt ended.
enum Ended {
    /// With an exit code.
    Code(u8),
    /// What was obtained was lost.
    Lost,
}

/// What a signal means to one who waits: the exit code, if it ends the wait.
fn heed(signal: Signal) -> Option<u8> {
    if signal == Signal::SIGTSTP {
        let _ = raise(Signal::SIGSTOP);
    }
    ENDING.contains(&signal).then_some(128 + signal as u8)
}

/// Waits a little; the exit code if a signal says that nobody wants to wait.
async fn pause(signals: &mut Signals) -> Option<u8> {
    let end = tokio::time::sleep(RETRY);
    tokio::pin!(end);
    loop {
        tokio::select! {
            () = &mut end => return None,
            signal = signals.next() => {
                if let Some(code) = heed(signal) {
                    return Some(code);
                }
            }
        }
    }
}

/// Connects to the agent; the exit code if a signal came first. An agent that hangs keeps us no longer
/// than the lock may.
async fn connect(job: &Job, signals: &mut Signals) -> Result<Result<Client, u8>, Failure> {
    // Under another lock already: whoever waits for that one waits for us.
    let within = std::env::var("KONKLAVE_TOKEN").ok();
    let label = job.label();
    let connected = Client::connect_within(&job.socket, &label, job.ttl, within);
    let late = late(job.wait.map(|wait| wait + GREETING));
    tokio::pin!(connected, late);
    loop {
        tokio::select! {
            connected = &mut connected => return connected.map(Ok),
            () = &mut late => return Err(silent()),
            signal = signals.next() => {
                if let Some(code) = heed(signal) {
                    return Ok(Err(code));
                }
            }
        }
    }
}

/// Returns after a time, if there is one.
async fn late(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

fn silent() -> Failure {
    Failure::Unavailable("the agent does not answer: does it hang?".into())
}

/// What waiting ended with.
enum Obtained {
    Yes { token: String, until: Moment },
    No(u8),
}

/// An attempt; whoever has `warned` of a wish that is not granted need not do so again.
async fn attempt(job: &Job, signals: &mut Signals, warned: &mut bool) -> Result<Ended, Failure> {
    let start = Instant::now();
    let mut client = match connect(job, signals).await? {
        Ok(client) => client,
        Err(code) => return Ok(Ended::Code(code)),
    };
    if millis(client.ttl) != millis(job.ttl) && !std::mem::replace(warned, true) {
        let limit = if client.ttl > job.ttl { "no less" } else { "no more" };
        let (asked, ttl) = (job.ttl, client.ttl);
        eprintln!("konklave: --ttl {asked:?} becomes {ttl:?}: the agent takes {limit}");
    }
    let session =
        |client: &Client| client.handle().map_err(Failure::system("cannot share the session"));
    let mut watchdog = Watchdog::start(session(&client)?, None)?;
    let mut keeper = match job.command.is_empty() {
        true => None,
        false => Some(Keeper::start(&job.command, watchdog.pid())?),
    };
    if let Some(keeper) = &keeper {
        watchdog.watch(keeper.group()).map_err(Failure::system("the watchdog is gone"))?;
    }
    let claim = client
        .send(Request::Acquire {
            name: job.name.clone(),
            claim: job.claim.clone(),
            // What the agent took to greet us is gone.
            wait: job.wait.map(|wait| left(wait, start.elapsed())),
        })
        .await?;
    let (token, until) = match obtain(job, signals, &mut client, claim).await? {
        Obtained::Yes { token, until } => (token, until),
        Obtained::No(code) => {
            drop(keeper);
            watchdog.dismiss();
            return Ok(Ended::Code(code));
        }
    };
    job.says(|| format!("{} is ours, token {token}", job.name));
    let plan = Plan::new(Moment::now(), until, job.grace);
    if watchdog.renew(plan).is_err() {
        // Someone killed it while we waited: there was nothing to watch yet, and there is a new one.
        watchdog = Watchdog::start(session(&client)?, keeper.as_ref().map(Keeper::group))?;
        watchdog.renew(plan).map_err(Failure::system("the watchdog is gone"))?;
    }
    let terminal = Terminal::look();
    let variables = variables(job, &client.node, &token, until);
    begin(keeper.as_mut(), &terminal, &variables)?;
    let running = Running {
        job,
        client,
        watchdog,
        claim,
        plan,
        lost: None,
        farewell: None,
        connected: true,
        command: keeper.map(Command::new),
        terminal,
    };
    running.run(signals).await
}

/// Lets the command begin, with these variables; without one, prints the token.
fn begin(
    keeper: Option<&mut Keeper>,
    terminal: &Terminal,
    variables: &BTreeMap<&str, String>,
) -> Result<(), Failure> {
    match keeper {
        Some(keeper) => {
            terminal.give(keeper.group());
            keeper.open(variables)
        }
        None => {
            let token = variables.get("KONKLAVE_TOKEN").map_or("", String::as_str);
            let mut out = std::io::stdout().lock();
            Ok(writeln!(out, "{token}").and_then(|()| out.flush())?)
        }
    }
}

/// How much of `wait` is left, in ms. Only who did not want to wait does not.
fn left(wait: Duration, gone: Duration) -> u64 {
    if wait.is_zero() { 0 } else { millis(wait.saturating_sub(gone)).max(1) }
}

/// What a command that runs under a lock finds in its environment, besides where the agent is.
pub(super) const GRANT: [&str; 5] =
    ["KONKLAVE_LOCK", "KONKLAVE_ELECTION", "KONKLAVE_TOKEN", "KONKLAVE_DEADLINE", "KONKLAVE_NODE"];

/// What the command finds in its environment.
fn variables(job: &Job, node: &str, token: &str, until: Moment) -> BTreeMap<&'static str, String> {
    let name = match job.claim {
        Claim::Leadership { .. } => "KONKLAVE_ELECTION",
        Claim::Exclusive | Claim::Shared | Claim::Slot { .. } => "KONKLAVE_LOCK",
    };
    BTreeMap::from([
        (name, job.name.clone()),
        ("KONKLAVE_TOKEN", token.to_owned()),
        ("KONKLAVE_DEADLINE", format!("{:.3}", until.on_the_wall())),
        ("KONKLAVE_NODE", node.to_owned()),
        ("KONKLAVE_SOCKET", job.socket.display().to_string()),
    ])
}

/// Waits until the claim is granted or refused, or a signal says that nobody wants it any more.
async fn obtain(
    job: &Job,
    signals: &mut Signals,
    client: &mut Client,
    claim: u64,
) -> Result<Obtained, Failure> {
    // The agent keeps the time; an agent that hangs does not keep us beyond it.
    let late = late(job.wait.map(|wait| wait + ANSWER));
    tokio::pin!(late);
    let mut pulse = tokio::time::interval(client.keep_alive);
    loop {
        tokio::select! {
            signal = signals.next() => {
                if let Some(code) = heed(signal) {
                    job.says(|| format!("gave up waiting for {}: {signal}", job.name));
                    return Ok(Obtained::No(code));
                }
            }
            reply = client.next() => match reply? {
                Reply::Answer { id, answer } if id == claim => match accept(answer)? {
                    Answer::Granted { token, until } => return Ok(Obtained::Yes { token, until }),
                    Answer::Refused { why, message } => {
                        return Ok(Obtained::No(refused(job, why, &message)));
                    }
                    other => return Err(unexpected(&other)),
                },
                Reply::Event(Event::Leaving) => {
                    return Err(Failure::Unavailable("the agent leaves the group".into()));
                }
                Reply::Answer { .. } | Reply::Event(_) | Reply::Unaddressed(_) => {}
            },
            _ = pulse.tick() => client.live().await?,
            () = &mut late => return Err(silent()),
        }
    }
}

fn refused(job: &Job, why: Refusal, message: &str) -> u8 {
    match (why, job.wait) {
        // Whoever said -n knows; flock is silent, too.
        (Refusal::Busy, _) => job.says(|| format!("{} is taken: {message}", job.name)),
        (Refusal::Timeout, Some(wait)) => {
            eprintln!("konklave: {} was not free within {wait:?}", job.name);
        }
        _ => eprintln!("konklave: {} was not obtained: {message}", job.name),
    }
    job.conflict
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_complaint_is_made_once_a_minute() {
        let (mut complaint, start) = (Complaint::default(), Instant::now());
        let mut due = |why, after| complaint.is_due(why, start + Duration::from_secs(after));
        assert!(due("no agent", 0));
        assert!(!due("no agent", 1) && !due("no agent", 59));
        assert!(due("no agent", 60));
        assert!(due("another reason", 61));
        assert!(!due("another reason", 62));
    }

    #[test]
    fn all_that_a_grant_tells_is_taken_away_from_the_next_one() {
        let claims = [Claim::Exclusive, Claim::Leadership { priority: 0 }];
        for claim in claims {
            let job = Job {
                name: "a".into(),
                claim,
                wait: None,
                conflict: 75,
                command: Vec::new(),
                label: None,
                ttl: RETRY,
                grace: RETRY,
                again: false,
                verbose: false,
                socket: "s".into(),
            };
            for name in variables(&job, "n", "1", Moment::now()).keys() {
                assert!(GRANT.contains(name) || *name == "KONKLAVE_SOCKET", "{name}");
            }
        }
    }
}
