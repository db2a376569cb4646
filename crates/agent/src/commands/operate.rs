//! `revoke`, `step-down`, `watch` and `record`: the commands of an operator.

use std::fs;
use std::io::{self, Write};

use konklave::Token;
use serde::Serialize;

use super::{SAME_NAME_LIMIT, ask, block_on, connect, print_json, print_line};
use crate::args::{AgentArgs, Format, RecordArgs, RevokeArgs, StepDownArgs, WatchArgs};
use crate::client::{accept, unexpected};
use crate::failure::Failure;
use crate::program::program;
use crate::protocol::{Answer, Event, Holder, Reply, Request, check_name, legible};
use crate::recorder::{self, Recording};

pub(crate) fn revoke(args: &RevokeArgs) -> Result<u8, Failure> {
    let kind = if args.slots { "semaphore" } else { "lock" };
    let order = Order { name: &args.name, kind, token: args.token, dry_run: args.dry_run };
    take(&args.agent, &order, args.format)
}

pub(crate) fn step_down(args: &StepDownArgs) -> Result<u8, Failure> {
    let order = Order { name: &args.name, kind: "election", token: None, dry_run: args.dry_run };
    take(&args.agent, &order, args.format)
}

/// The grants to revoke.
struct Order<'a> {
    name: &'a str,
    /// The kind as `status` reports it: `lock`, `semaphore` or `election`.
    kind: &'static str,
    token: Option<Token>,
    dry_run: bool,
}

/// The JSON output of `revoke` and `step-down`: the holders that lost their grants, or would.
#[derive(Serialize)]
struct Taken<'a> {
    schema: &'static str,
    kind: &'a str,
    name: &'a str,
    dry_run: bool,
    holders: Vec<Holder>,
}

fn take(agent: &AgentArgs, order: &Order<'_>, format: Format) -> Result<u8, Failure> {
    let &Order { name, kind, token, dry_run } = order;
    check_name(name).map_err(Failure::Usage)?;
    let all = match ask(agent, Request::Status { prefix: name.to_owned(), limit: SAME_NAME_LIMIT })?
    {
        Answer::Status(status) => status.locks.into_iter().chain(status.elections),
        other => return Err(unexpected(&other)),
    };
    let (same, others): (Vec<_>, Vec<_>) =
        all.filter(|report| report.name == name).partition(|report| report.kind == kind);
    let mut holders: Vec<Holder> = same.into_iter().flat_map(|report| report.holders).collect();
    if let Some(token) = token {
        holders.retain(|holder| holder.token == token.to_string());
    }
    let other = others.iter().find(|r| !r.holders.is_empty()).map(|r| r.kind.as_str());
    // Otherwise the request goes to the group: it may know a grant that this agent has not applied yet.
    if holders.is_empty() && (dry_run || other.is_some()) {
        let program = program();
        let way = match other {
            Some("semaphore") => {
                format!("\n  a semaphore of that name has holders: {program} revoke --slots {name}")
            }
            Some("election") => {
                format!("\n  an election of that name has a leader: {program} step-down {name}")
            }
            Some(_) => format!("\n  a lock of that name has holders: {program} revoke {name}"),
            None => String::new(),
        };
        let lacking = if kind == "election" { "has no leader" } else { "has no holder" };
        return Err(Failure::Unavailable(format!("the {kind} {name} {lacking}{way}")));
    }
    if !dry_run {
        let (election, slots) = (kind == "election", kind == "semaphore");
        let token = token.map(|token| token.to_string());
        match ask(agent, Request::Revoke { name: name.to_owned(), election, slots, token })? {
            Answer::Done => {}
            other => return Err(unexpected(&other)),
        }
    }
    // Printed after the request, which the group may refuse.
    for holder in &holders {
        let (took, after) = match (holder.taken, dry_run) {
            (true, _) => ("an operator already took", "; its command is still ending"),
            (false, true) => ("would take", ""),
            (false, false) => ("took", ""),
        };
        eprintln!(
            "konklave: {took} {name} from {} ({}), token {}{after}",
            legible(&holder.node),
            legible(&holder.label),
            holder.token
        );
    }
    if format != Format::Text {
        let taken = Taken { schema: "konklave.taken/1", kind, name, dry_run, holders };
        print_json(&taken, format)?;
    }
    Ok(0)
}

pub(crate) fn watch(args: &WatchArgs) -> Result<u8, Failure> {
    block_on(async {
        let mut client = connect(&args.agent).await?;
        let watching = client.send(Request::Watch).await?;
        loop {
            match client.next().await? {
                Reply::Event(event) if args.format != Format::Text => print_event(event)?,
                Reply::Event(Event::Changed { kind, name, what, .. }) => {
                    let mut out = io::stdout().lock();
                    let line = legible(&format!("{kind} {name}: {what}"));
                    writeln!(out, "{line}").and_then(|()| out.flush())?;
                }
                Reply::Event(Event::Leaving) => {
                    eprintln!("konklave: the agent is leaving the group");
                }
                Reply::Event(_) => {}
                Reply::Answer { id, answer } if id == watching => {
                    // The agent answers this request only when it ends.
                    return match accept(answer)? {
                        Answer::Done => Ok(0),
                        other => Err(unexpected(&other)),
                    };
                }
                Reply::Answer { .. } | Reply::Unaddressed(_) => {}
            }
        }
    })
}

/// Prints an event with its time: the agent's if the event has one, else the time now.
fn print_event(mut event: Event) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Timed {
        #[serde(flatten)]
        event: Event,
        at: f64,
    }
    let now = recorder::wall().as_secs_f64();
    if let Event::Changed { at, .. } = &mut event {
        at.get_or_insert(now);
        return print_line(&event);
    }
    print_line(&Timed { event, at: now })
}

pub(crate) fn record(args: &RecordArgs) -> Result<u8, Failure> {
    let mut sockets = args.also.clone();
    sockets.insert(0, args.agent.socket.clone());
    let (mut recordings, mut missing, mut failure) = (Vec::new(), Vec::new(), None);
    for socket in sockets {
        let source = socket.display().to_string();
        match ask(&AgentArgs { socket }, Request::Record) {
            Ok(Answer::Text { text }) => recordings.push(Recording { source, text }),
            Ok(other) => return Err(unexpected(&other)),
            // After an incident, some agents may not answer. The recordings of the others are written anyway.
            Err(why) => {
                let words = why.to_string();
                let words = words.lines().next().unwrap_or_default();
                missing.push(format!("{source}: no recording: {words}"));
                failure.get_or_insert(why);
            }
        }
    }
    for file in &args.merge {
        let text = fs::read_to_string(file).map_err(|why| match why.kind() {
            io::ErrorKind::InvalidData => Failure::Data(format!("{}: {why}", file.display())),
            _ => Failure::unreadable(file)(why),
        })?;
        recordings.push(Recording { source: file.display().to_string(), text });
    }
    if let Some(failure) = failure.take_if(|_| recordings.is_empty()) {
        return Err(failure);
    }
    let mut merged = recorder::merge(&recordings).map_err(Failure::Data)?;
    let run = args.output.as_ref().is_some_and(|file| file.extension().is_some_and(|e| e == "run"));
    // A single recording is usually merged with others later, so its gaps are not reported yet.
    if run || recordings.len() + missing.len() > 1 {
        missing.extend(recorder::gaps(&merged).map_err(Failure::Data)?);
    }
    for what in &missing {
        eprintln!("konklave: missing: {}", legible(what));
    }
    if run {
        merged =
            recorder::as_run(&merged, args.only.as_deref(), &missing).map_err(Failure::Data)?;
    }
    match &args.output {
        Some(file) => {
            fs::write(file, merged).map_err(Failure::unwritable(file))?;
        }
        None => io::stdout().write_all(merged.as_bytes())?,
    }
    Ok(failure.map_or(0, |failure| failure.exit_code()))
}
