//! `revoke`, `step-down`, `watch`, `record`: taking away, following, remembering.

use std::fs;
use std::io::{self, Write};

use super::{ask, block_on, connect, print_line};
use crate::args::{AgentArgs, Format, RecordArgs, RevokeArgs, StepDownArgs, WatchArgs};
use crate::client::{accept, unexpected};
use crate::failure::Failure;
use crate::protocol::{Answer, Event, Reply, Request, check_name};

pub(crate) fn revoke(args: &RevokeArgs) -> Result<u8, Failure> {
    take(&args.agent, &args.name, false, args.dry_run)
}

pub(crate) fn step_down(args: &StepDownArgs) -> Result<u8, Failure> {
    take(&args.agent, &args.name, true, args.dry_run)
}

fn take(agent: &AgentArgs, name: &str, election: bool, dry_run: bool) -> Result<u8, Failure> {
    check_name(name).map_err(Failure::Usage)?;
    let holders = match ask(agent, Request::Status { prefix: name.to_owned(), limit: usize::MAX })?
    {
        Answer::Status(status) if election => status.elections,
        Answer::Status(status) => status.locks,
        other => return Err(unexpected(&other)),
    };
    let holders = holders.into_iter().find(|report| report.name == name).map(|r| r.holders);
    let holders = holders.unwrap_or_default();
    if holders.is_empty() {
        return Err(Failure::Unavailable(format!("nobody has {name}")));
    }
    for holder in &holders {
        let would = if dry_run { "would take" } else { "takes" };
        eprintln!(
            "konklave: {would} {name} from {} ({}), token {}",
            holder.node, holder.label, holder.token
        );
    }
    if dry_run {
        return Ok(0);
    }
    match ask(agent, Request::Revoke { name: name.to_owned(), election })? {
        Answer::Done => Ok(0),
        other => Err(unexpected(&other)),
    }
}

pub(crate) fn watch(args: &WatchArgs) -> Result<u8, Failure> {
    block_on(async {
        let mut client = connect(&args.agent).await?;
        let watching = client.send(Request::Watch).await?;
        loop {
            match client.next().await? {
                Reply::Event(event) if args.format == Format::Json => print_line(&event)?,
                Reply::Event(Event::Changed { kind, name, what }) => {
                    let mut out = io::stdout().lock();
                    writeln!(out, "{kind} {name}: {what}").and_then(|()| out.flush())?;
                }
                Reply::Event(Event::Leaving) => {
                    eprintln!("konklave: the agent leaves the group");
                }
                Reply::Event(_) => {}
                Reply::Answer { id, answer } if id == watching => {
                    // Watching ends only with the agent.
                    return match accept(answer)? {
                        Answer::Done => Ok(0),
                        other => Err(unexpected(&other)),
                    };
                }
                Reply::Answer { .. } => {}
            }
        }
    })
}

pub(crate) fn record(args: &RecordArgs) -> Result<u8, Failure> {
    let mut sockets = args.also.clone();
    sockets.insert(0, args.agent.socket.clone());
    let mut texts = Vec::new();
    for socket in sockets {
        match ask(&AgentArgs { socket }, Request::Record)? {
            Answer::Text { text } => texts.push(text),
            other => return Err(unexpected(&other)),
        }
    }
    for file in &args.merge {
        let what = format!("cannot read {}", file.display());
        texts.push(fs::read_to_string(file).map_err(Failure::system(what))?);
    }
    let mut merged = crate::recorder::merge(&texts).map_err(Failure::Data)?;
    if args.output.as_ref().is_some_and(|file| file.extension().is_some_and(|e| e == "run")) {
        merged = crate::recorder::as_run(&merged, args.only.as_deref()).map_err(Failure::Data)?;
    }
    match &args.output {
        Some(file) => {
            let what = format!("cannot write {}", file.display());
            fs::write(file, merged).map_err(Failure::system(what))?;
        }
        None => io::stdout().write_all(merged.as_bytes())?,
    }
    Ok(0)
}
