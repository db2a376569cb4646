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
mod retry;
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

use self::keeper::Keeper;
use self::plan::Plan;
use self::retry::Retry;
use self::running::{Command, Running};
use self::signals::Signals;
use self::terminal::Terminal;
use self::watchdog::Watchdog;
use crate::client::{Client, accept, unexpected};
use crate::clock::Moment;
use crate::failure::{Failure, LOST};
use crate::program::program;
use crate::protocol::{Answer, ClaimKind, Event, Refusal, Reply, Request, millis};
use nix::sys::signal::{Signal, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};

/// The shortest time to live of a session, if only the lease of the lock is given.
const MIN_TTL: Duration = Duration::from_secs(5);
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
    /// The lease of the lock, if not the agent's.
    pub lease: Option<Duration>,
    /// How long the session lives without a keep-alive, if not as long as the lease.
    pub ttl: Option<Duration>,
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

    /// Opens a session. If this wrapper runs under another lock, waiters for that lock wait for this one, too.
    fn connect(&self) -> impl Future<Output = Result<Client, Failure>> + use<> {
        let within = std::env::var("KONKLAVE_TOKEN").ok();
        // A session lives as long as the lease of its lock.
        let of_lease = self.lease.map(|lease| lease.max(MIN_TTL));
        let (socket, label, ttl) = (self.socket.clone(), self.label(), self.ttl.or(of_lease));
        async move { Client::connect_within(&socket, &label, ttl, within).await }
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
        let (mut retry, mut warned) = (Retry::new(job), false);
        loop {
            match attempt(job, &mut signals, &mut retry, &mut warned).await {
                Ok(Ended::Lost) if job.again => {
                    job.report(|| format!("requesting {} again", job.name));
                    retry.begin_again();
                }
                Ok(Ended::Lost) => return Ok(LOST),
                // This may be 76, too: then it is the command's own exit code.
                Ok(Ended::Code(code)) => return Ok(code),
                // The agent may be started again, or find a majority.
                Err(Failure::Unavailable(why)) if retry.is_allowed() => {
                    let time = retry.after(&why);
                    if let Some(code) = pause(&mut signals, time).await {
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
async fn pause(signals: &mut Signals, time: Duration) -> Option<u8> {
    let end = tokio::time::sleep(time);
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
async fn connect(
    job: &Job,
    signals: &mut Signals,
    retry: &Retry,
) -> Result<Result<Client, u8>, Failure> {
    let connected = job.connect();
    let late = late(retry.left().map(|wait| wait + GREETING));
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
async fn attempt(
    job: &Job,
    signals: &mut Signals,
    retry: &mut Retry,
    warned: &mut bool,
) -> Result<Ended, Failure> {
    let mut client = match connect(job, signals, retry).await? {
        Ok(client) => client,
        Err(code) => return Ok(Ended::Code(code)),
    };
    retry.connected();
    warn_of_ttl(job, client.ttl, warned);
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
    let obtained = request(job, signals, &mut client, retry).await;
    let (claim, token, until) = match obtained {
        Ok((claim, Obtained::Yes { token, until })) => (claim, token, until),
        Ok((_, Obtained::No(code))) => return given_up(keeper, watchdog, Ok(Ended::Code(code))),
        Err(failure) => return given_up(keeper, watchdog, Err(failure)),
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
        token,
        plan,
        lost: None,
        end_by: None,
        connected: true,
        reconnecting: None,
        gone: None,
        resuming: false,
        command: keeper.map(Command::new),
        terminal,
    };
    running.run(signals).await
}

/// Ends the helpers of a wrapper that has not obtained its lock: now, not when they notice it. A watchdog whose
/// wrapper seems to be dead kills all its descendants, and would find those of the next try.
fn given_up(
    keeper: Option<Keeper>,
    watchdog: Watchdog,
    ended: Result<Ended, Failure>,
) -> Result<Ended, Failure> {
    drop(keeper);
    watchdog.dismiss();
    reap();
    ended
}

/// Reaps the processes that have ended: those of earlier tries, and those adopted from a keeper that was killed.
fn reap() {
    while matches!(
        waitpid(None, Some(WaitPidFlag::WNOHANG)),
        Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..))
    ) {}
}

/// Requests the lock and waits for it; the number of the claim.
async fn request(
    job: &Job,
    signals: &mut Signals,
    client: &mut Client,
    retry: &Retry,
) -> Result<(u64, Obtained), Failure> {
    let claim = client
        .send(Request::Acquire {
            name: job.name.clone(),
            claim: job.claim.clone(),
            // The time until the agent answered `hello` counts, too.
            wait: retry.left().map(millis),
            lease: job.lease.map(millis),
        })
        .await?;
    Ok((claim, obtain(job, signals, client, claim, retry).await?))
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

/// Warns the user, once, of a `--ttl` that the agent has changed.
fn warn_of_ttl(job: &Job, ttl: Duration, warned: &mut bool) {
    let Some(asked) = job.ttl.filter(|asked| millis(*asked) != millis(ttl)) else { return };
    if !std::mem::replace(warned, true) {
        let limit = if ttl > asked { "minimum" } else { "maximum" };
        let (asked, ttl) = (asked.as_secs_f64(), ttl.as_secs_f64());
        eprintln!("konklave: --ttl is {ttl} s instead of {asked} s, the agent's {limit}");
    }
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
    retry: &Retry,
) -> Result<Obtained, Failure> {
    // The agent measures `--timeout`. This timer is for an agent that hangs.
    let late = late(retry.left().map(|wait| wait + ANSWER));
    tokio::pin!(late);
    let mut pulse = tokio::time::interval(client.keep_alive);
    // After a pause, send one keep-alive, not one for each that was missed.
    pulse.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // The token of a grant whose deadline is too near: this process was stopped when it arrived.
    let mut stale: Option<String> = None;
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
                    Answer::Granted { token, until } if until.left() >= client.keep_alive => {
                        return Ok(Obtained::Yes { token, until });
                    }
                    Answer::Granted { token, .. } => {
                        stale = Some(token);
                        client.live().await?;
                    }
                    Answer::Refused { why, message } => {
                        return Ok(Obtained::No(refused(job, why, &message)));
                    }
                    other => return Err(unexpected(&other)),
                },
                Reply::Answer { answer: Answer::Alive { until }, .. } if stale.is_some() => {
                    let until = until.into_iter().find(|(id, _)| *id == claim).map(|(_, t)| t);
                    if let (Some(until), Some(token)) = (until.filter(|t| !t.passed()), &stale) {
                        return Ok(Obtained::Yes { token: token.clone(), until });
                    }
                }
                Reply::Event(Event::Lost { why, .. }) => {
                    return Err(Failure::Unavailable(format!(
                        "{} was granted and lost before the command started: {why}",
                        job.name
                    )));
                }
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
                lease: None,
                ttl: None,
                grace: Duration::ZERO,
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
