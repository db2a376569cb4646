//! `lock` and `elect`: run a command while holding a lock or leadership.
//!
//! There are four processes. The *wrapper* (this one) talks to the agent. The *watchdog* stops the command in
//! time when the wrapper cannot. The *keeper* adopts all descendants of the command. The *gate*, a child of the
//! keeper, becomes the command when the lock is granted. If one of them is killed or stopped, the command and
//! all its descendants are dead before the deadline.

pub(crate) mod gate;
pub(crate) mod keeper;
mod plan;
mod process_group;
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
use crate::program::program;
use crate::protocol::{Answer, ClaimKind, Event, Refusal, Reply, Request, millis};
use konklave::RateLimiter;

/// The pause before `elect --again` connects again to an agent that is gone.
const RETRY: Duration = Duration::from_secs(1);
/// How often `elect --again` prints the same reason for waiting.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);
/// How long the agent may take to answer `hello`, beyond `--timeout`.
const GREETING: Duration = Duration::from_secs(1);
/// How long the agent may take to refuse a request that timed out, beyond `--timeout`.
const ANSWER: Duration = Duration::from_secs(4);
/// The signals that end the wait: they would end the process if they were not handled.
const ENDING: [Signal; 7] = [
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGALRM,
];

/// A command to run under a lock or as a leader.
#[derive(Clone, Debug)]
pub struct Job {
    /// The name of the lock or the election.
    pub name: String,
    /// Exclusive, shared, a slot or leadership.
    pub claim: ClaimKind,
    /// How long to wait; `None` waits for ever.
    pub wait: Option<Duration>,
    /// The exit code if the lock is not obtained.
    pub conflict: u8,
    /// The command. If it is empty, the token is printed and the lock held until a signal.
    pub command: Vec<OsString>,
    /// The text that `status` shows, if not the program's name.
    pub label: Option<String>,
    /// How long the session lives without a keep-alive.
    pub ttl: Duration,
    /// The time between SIGTERM and SIGKILL for the command.
    pub grace: Duration,
    /// Whether to request it again when it is lost.
    pub again: bool,
    /// Whether to report each step on stderr.
    pub verbose: bool,
    /// The socket of the agent.
    pub socket: PathBuf,
}

impl Job {
    /// Prints a step on stderr, if `--verbose` is set.
    fn report(&self, what: impl FnOnce() -> String) {
        if self.verbose {
            eprintln!("konklave: {}", what());
        }
    }

    /// The label that the whole group sees. It has no arguments of the command, which may be secret.
    fn label(&self) -> String {
        let program = self.command.first().map(|word| Path::new(word).file_name().unwrap_or(word));
        let program = program.map_or_else(|| "nothing".into(), OsStr::to_string_lossy);
        let what = self.label.as_deref().unwrap_or(&program);
        format!("pid {}: {what}", std::process::id())
    }
}

/// If this process is a watchdog, keeper or gate, does its work and returns its exit code.
///
/// Call it first in `main`: each lock starts three such processes, and parsing the whole command line would
/// take longer than their own work.
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
        (keeper::COMMAND, &[start, reports, watchdog]) => {
            Some(keeper::main(start, reports, watchdog, command))
        }
        (gate::COMMAND, &[pipe, keeper]) => Some(gate::main(pipe, keeper, command)),
        _ => None,
    }
}

fn reported(result: Result<u8, Failure>) -> u8 {
    result.unwrap_or_else(|failure| failure.report())
}

/// Runs the command under the lock, and returns the exit code.
pub fn run(job: &Job) -> Result<u8, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::system("cannot start the runtime"))?;
    // If the keeper is killed, the wrapper adopts the keeper's descendants instead of init. If this call fails,
    // only the process group of the command can be found.
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_child_subreaper(true);
    runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let (mut reports, mut warned) = (RateLimiter::new(REPORT_INTERVAL, 1), false);
        loop {
            match attempt(job, &mut signals, &mut warned).await {
                Ok(Ended::Lost) if job.again => {
                    job.report(|| format!("requesting {} again", job.name));
                }
                Ok(Ended::Lost) => return Ok(LOST),
                // This may be 76, too: then it is the command's own exit code.
                Ok(Ended::Code(code)) => return Ok(code),
                // The agent may be started again.
                Err(Failure::Unavailable(why)) if job.again => {
                    if reports.count(why.clone(), 1, Instant::now().into_std()).is_some() {
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

/// How an attempt ended.
enum Ended {
    /// With an exit code.
    Code(u8),
    /// The lock or leadership was lost.
    Lost,
}

/// Handles a signal while the wrapper waits. Returns the exit code if the signal ends the wait.
fn on_signal_while_waiting(signal: Signal) -> Option<u8> {
    if signal == Signal::SIGTSTP {
        let _ = raise(Signal::SIGSTOP);
    }
    ENDING.contains(&signal).then_some(128 + signal as u8)
}

/// Waits before the next try. Returns the exit code if a signal ends the wait.
async fn pause(signals: &mut Signals) -> Option<u8> {
    let end = tokio::time::sleep(RETRY);
    tokio::pin!(end);
    loop {
        tokio::select! {
            () = &mut end => return None,
            signal = signals.next() => {
                if let Some(code) = on_signal_while_waiting(signal) {
                    return Some(code);
                }
            }
        }
    }
}

/// Connects to the agent. Returns the exit code instead if a signal ends the wait. If the agent hangs, the
/// wait ends with `--timeout`.
async fn connect(job: &Job, signals: &mut Signals) -> Result<Result<Client, u8>, Failure> {
    // If this wrapper runs under another lock, waiters for that lock wait for this one, too.
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
                if let Some(code) = on_signal_while_waiting(signal) {
                    return Ok(Err(code));
                }
            }
        }
    }
}

/// Returns after `time`; never, if there is none.
async fn late(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

fn silent() -> Failure {
    Failure::Unavailable(format!(
        "the agent does not answer: it may hang or be stopped; try `{} doctor`",
        program()
    ))
}

/// How the wait for a grant ended: with a grant, or with an exit code.
enum Obtained {
    Yes { token: String, until: Moment },
    No(u8),
}

/// Obtains the lock once and runs the command. `warned` is set when the user has been warned of a changed
/// `--ttl`.
async fn attempt(job: &Job, signals: &mut Signals, warned: &mut bool) -> Result<Ended, Failure> {
    let start = Instant::now();
    let mut client = match connect(job, signals).await? {
        Ok(client) => client,
        Err(code) => return Ok(Ended::Code(code)),
    };
    if millis(client.ttl) != millis(job.ttl) && !std::mem::replace(warned, true) {
        let limit = if client.ttl > job.ttl { "minimum" } else { "maximum" };
        let (asked, ttl) = (job.ttl.as_secs_f64(), client.ttl.as_secs_f64());
        eprintln!("konklave: --ttl is {ttl} s instead of {asked} s, the agent's {limit}");
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
            // The time until the agent answered `hello` counts, too.
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
    job.report(|| format!("obtained {}, token {token}", job.name));
    let plan = Plan::new(Moment::now(), until, job.grace);
    if watchdog.renew(plan).is_err() {
        // The watchdog was killed during the wait, when it had nothing to watch. Start another one.
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
        end_by: None,
        connected: true,
        command: keeper.map(Command::new),
        terminal,
    };
    running.run(signals).await
}

/// Starts the command with these variables. Without a command, prints the token.
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

/// The rest of `wait` in ms. It is 0 only if `wait` is, because 0 means not to wait at all.
fn left(wait: Duration, gone: Duration) -> u64 {
    if wait.is_zero() { 0 } else { millis(wait.saturating_sub(gone)).max(1) }
}

/// The variables that describe a grant to the command.
pub(super) const GRANT: [&str; 5] =
    ["KONKLAVE_LOCK", "KONKLAVE_ELECTION", "KONKLAVE_TOKEN", "KONKLAVE_DEADLINE", "KONKLAVE_NODE"];

/// The variables set for the command.
fn variables(job: &Job, node: &str, token: &str, until: Moment) -> BTreeMap<&'static str, String> {
    let name = match job.claim {
        ClaimKind::Leadership { .. } => "KONKLAVE_ELECTION",
        ClaimKind::Exclusive | ClaimKind::Shared | ClaimKind::Slot { .. } => "KONKLAVE_LOCK",
    };
    BTreeMap::from([
        (name, job.name.clone()),
        ("KONKLAVE_TOKEN", token.to_owned()),
        ("KONKLAVE_DEADLINE", format!("{:.3}", until.on_the_wall())),
        ("KONKLAVE_NODE", node.to_owned()),
        ("KONKLAVE_SOCKET", job.socket.display().to_string()),
    ])
}

/// Waits until the request is granted or refused, or a signal ends the wait.
async fn obtain(
    job: &Job,
    signals: &mut Signals,
    client: &mut Client,
    claim: u64,
) -> Result<Obtained, Failure> {
    // The agent measures `--timeout`. This timer is for an agent that hangs.
    let late = late(job.wait.map(|wait| wait + ANSWER));
    tokio::pin!(late);
    let mut pulse = tokio::time::interval(client.keep_alive);
    loop {
        tokio::select! {
            signal = signals.next() => {
                if let Some(code) = on_signal_while_waiting(signal) {
                    job.report(|| format!("stopped waiting for {}: {signal}", job.name));
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
                    return Err(Failure::Unavailable("the agent is leaving the group".into()));
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
        // Silent without --verbose, as flock -n is. The message names the lock.
        (Refusal::Busy, _) => job.report(|| message.to_owned()),
        (Refusal::Timeout, Some(wait)) => {
            let wait = wait.as_secs_f64();
            eprintln!(
                "konklave: {} was not obtained within {wait} s (--timeout); `{} why {}` explains why",
                job.name,
                program(),
                job.name
            );
        }
        _ => eprintln!("konklave: {} was not obtained: {message}", job.name),
    }
    job.conflict
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_an_outer_grant_are_removed() {
        let claims = [ClaimKind::Exclusive, ClaimKind::Leadership { priority: 0 }];
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
