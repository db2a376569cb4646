//! `lock` and `elect`: a command that runs while a lock, or leadership, is ours.
//!
//! Three processes: the *wrapper* (this), which speaks with the agent; the *gate*, which becomes the
//! command when the lock is there; and the *watchdog*, which stops the command in time when the wrapper
//! cannot. Whoever of the three is killed or stopped, the command is gone before the deadline.

pub(crate) mod gate;
mod group;
mod plan;
mod running;
mod signals;
mod terminal;
pub(crate) mod watchdog;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::{Signal, raise};
use tokio::time::Instant;

use self::gate::Gate;
use self::plan::Plan;
use self::running::Running;
use self::signals::Signals;
use self::terminal::Terminal;
use self::watchdog::Watchdog;
use crate::client::{Client, accept, unexpected};
use crate::clock::Moment;
use crate::failure::{Failure, LOST};
use crate::protocol::{Answer, Claim, Event, Refusal, Reply, Request, millis};

/// How long to wait for an agent that is gone, before the next try.
const RETRY: Duration = Duration::from_secs(1);
/// The signals that end the waiting.
const ENDING: [Signal; 4] = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT];

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

/// Runs the command under the lock; gives the exit code.
pub fn run(job: &Job) -> Result<u8, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::system("cannot start"))?;
    runtime.block_on(async {
        let mut signals = Signals::listen()?;
        loop {
            match attempt(job, &mut signals).await {
                Ok(LOST) if job.again => job.says(|| format!("claiming {} again", job.name)),
                // The agent may come back.
                Err(Failure::Unavailable(why)) if job.again => {
                    eprintln!("konklave: {why}");
                    if let Some(code) = pause(&mut signals).await {
                        return Ok(code);
                    }
                }
                other => return other,
            }
        }
    })
}

/// Waits a little; the exit code if a signal says that nobody wants to wait.
async fn pause(signals: &mut Signals) -> Option<u8> {
    let end = tokio::time::sleep(RETRY);
    tokio::pin!(end);
    loop {
        tokio::select! {
            () = &mut end => return None,
            signal = signals.next() => {
                if ENDING.contains(&signal) {
                    return Some(128 + signal as u8);
                }
            }
        }
    }
}

/// What waiting ended with.
enum Obtained {
    Yes { token: String, until: Moment },
    No(u8),
}

async fn attempt(job: &Job, signals: &mut Signals) -> Result<u8, Failure> {
    let mut client = Client::connect(&job.socket, &job.label(), job.ttl).await?;
    let session = || client.handle().map_err(Failure::system("cannot share the session"));
    let mut watchdog = Watchdog::start(session()?)?;
    let gate = match job.command.is_empty() {
        true => None,
        false => Some(Gate::start(&job.command)?),
    };
    if let Some(gate) = &gate {
        watchdog.watch(gate.group()).map_err(Failure::system("the watchdog is gone"))?;
    }
    let claim = client
        .send(Request::Acquire {
            name: job.name.clone(),
            claim: job.claim.clone(),
            wait: job.wait.map(millis),
        })
        .await?;
    let (token, until) = match obtain(job, signals, &mut client, claim).await? {
        Obtained::Yes { token, until } => (token, until),
        Obtained::No(code) => {
            drop(gate);
            watchdog.dismiss();
            return Ok(code);
        }
    };
    job.says(|| format!("{} is ours, token {token}", job.name));
    let plan = Plan::new(Moment::now(), until, job.grace);
    watchdog.renew(plan).map_err(Failure::system("the watchdog is gone"))?;
    let variables = variables(job, &client.node, &token, until);
    let running = Running {
        job,
        client,
        watchdog,
        claim,
        plan,
        lost: None,
        connected: true,
        command: gate.as_ref().map(Gate::pid),
        terminal: Terminal::look(),
    };
    match gate {
        Some(gate) => {
            running.terminal.give(gate.group());
            gate.open(&variables)?;
        }
        None => {
            let mut out = std::io::stdout().lock();
            writeln!(out, "{token}").and_then(|()| out.flush())?;
        }
    }
    running.run(signals).await
}

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
    let late = job.wait.map(|wait| Instant::now() + wait + Duration::from_secs(1));
    let late = async {
        match late {
            Some(late) => tokio::time::sleep_until(late).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(late);
    let mut pulse = tokio::time::interval(client.keep_alive);
    loop {
        tokio::select! {
            signal = signals.next() => match signal {
                signal if ENDING.contains(&signal) => {
                    job.says(|| format!("gave up waiting for {}: {signal}", job.name));
                    return Ok(Obtained::No(128 + signal as u8));
                }
                Signal::SIGTSTP => {
                    let _ = raise(Signal::SIGSTOP);
                }
                _ => {}
            },
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
                Reply::Answer { .. } | Reply::Event(_) => {}
            },
            _ = pulse.tick() => client.live().await?,
            () = &mut late => return Ok(Obtained::No(refused(job, Refusal::Timeout, "no answer"))),
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
