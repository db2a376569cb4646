//! `status`, `who`, `why` and `members`: read-only commands.

use std::io::{self, Write};

use serde::Serialize;

use super::{SAME_NAME_LIMIT, ask, print_as, print_json, print_table, span, span_or_dash};
use crate::args::{Format, MembersArgs, StatusArgs, WhoArgs, WhyArgs};
use crate::client::unexpected;
use crate::failure::Failure;
use crate::protocol::{
    AgentState, Answer, Explanation, LockReport, Request, Status, ViewReport, counted, legible,
};

fn fetch(args: &crate::args::AgentArgs, prefix: &str, limit: usize) -> Result<Status, Failure> {
    match ask(args, Request::Status { prefix: prefix.to_owned(), limit })? {
        Answer::Status(status) => Ok(*status),
        other => Err(unexpected(&other)),
    }
}

pub(crate) fn status(args: &StatusArgs) -> Result<u8, Failure> {
    if args.metrics {
        return match ask(&args.agent, Request::Metrics)? {
            Answer::Text { text } => {
                io::stdout().write_all(text.as_bytes())?;
                Ok(0)
            }
            other => Err(unexpected(&other)),
        };
    }
    let status = fetch(&args.agent, args.prefix.as_deref().unwrap_or_default(), args.limit)?;
    if args.format != Format::Text {
        return print_json(&status, args.format);
    }
    let mut out = io::stdout().lock();
    writeln!(out, "{}", legible(&headline(&status)))?;
    drop(out);
    if !status.view.members.is_empty() {
        print_members(&status.view)?;
    }
    print_claims("LOCK", &status.locks)?;
    print_claims("ELECTION", &status.elections)?;
    if status.more > 0 {
        let names = if status.more == 1 { "name is" } else { "names are" };
        eprintln!("konklave: {} more {names} not shown: use --limit N or a prefix", status.more);
    }
    Ok(0)
}

fn described(state: AgentState) -> &'static str {
    match state {
        AgentState::Forming => "looking for other agents",
        AgentState::Primary => "in the majority",
        AgentState::Blocked => "no majority: nothing is granted",
        AgentState::Out => "out of the group",
    }
}

fn headline(status: &Status) -> String {
    let view = &status.view;
    let clients = counted(status.sessions as u64, "client");
    if view.members.is_empty() {
        return format!(
            "{}: {} · no view yet · {clients}",
            status.node,
            described(status.standing)
        );
    }
    format!(
        "{}: {} · view {}.{} · hears {} of {}, needs {} · {clients}",
        status.node,
        described(status.standing),
        view.generation,
        view.epoch,
        view.heard,
        counted(view.members.iter().filter(|member| member.votes).count() as u64, "voter"),
        view.quorum,
    )
}

fn print_members(view: &ViewReport) -> Result<(), Failure> {
    let mut rows = vec![["MEMBER", "ID", "HEARD", ""].map(str::to_owned).to_vec()];
    for member in &view.members {
        let mut remarks = Vec::new();
        if member.me {
            remarks.push("this agent");
        }
        if view.coordinator.as_deref() == Some(&member.name) {
            remarks.push("coordinator");
        }
        if !member.votes {
            remarks.push("joining");
        }
        if !member.connected {
            remarks.push("no connection");
        }
        if member.suspected {
            remarks.push("suspected");
        }
        let heard = member.heard.map_or_else(|| "-".to_owned(), |s| format!("{} ago", span(s)));
        rows.push(vec![member.name.clone(), member.id.to_string(), heard, remarks.join(", ")]);
    }
    print_table(&rows)
}

fn print_claims(title: &str, claims: &[LockReport]) -> Result<(), Failure> {
    if claims.is_empty() {
        return Ok(());
    }
    let header = [title, "HOLDER", "MODE", "TOKEN", "HELD", "SAFE", "WAITING"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for claim in claims {
        let mut waiting = claim.waiters.len().to_string();
        let mut name = claim.name.clone();
        if claim.holders.is_empty() {
            let dash = || "-".to_owned();
            rows.push(vec![name, "free".into(), dash(), dash(), dash(), dash(), waiting]);
            continue;
        }
        for holder in &claim.holders {
            rows.push(vec![
                std::mem::take(&mut name),
                match &holder.remark {
                    Some(remark) => format!("{} ({}; {remark})", holder.node, holder.label),
                    None => format!("{} ({})", holder.node, holder.label),
                },
                claim.slots.map_or_else(|| holder.mode.clone(), |slots| format!("slot of {slots}")),
                holder.token.clone(),
                span(holder.held),
                span_or_dash(holder.safe),
                std::mem::take(&mut waiting),
            ]);
        }
    }
    print_table(&rows)
}

pub(crate) fn members(args: &MembersArgs) -> Result<u8, Failure> {
    let status = fetch(&args.agent, "", 0)?;
    if args.format != Format::Text {
        return print_as("konklave.members/1", &status.view, args.format);
    }
    print_members(&status.view)?;
    let known =
        status.view.members.iter().filter_map(|m| Some([m.name.clone(), m.identity.clone()?]));
    let rows: Vec<Vec<String>> = known.map(Vec::from).collect();
    if !rows.is_empty() {
        writeln!(io::stdout())?;
        print_table(&[vec![vec!["MEMBER".to_owned(), "IDENTITY".to_owned()]], rows].concat())?;
    }
    Ok(0)
}

pub(crate) fn who(args: &WhoArgs) -> Result<u8, Failure> {
    let status = fetch(&args.agent, &args.name, SAME_NAME_LIMIT)?;
    let named = |reports: Vec<LockReport>| -> Vec<LockReport> {
        reports.into_iter().filter(|report| report.name == args.name).collect()
    };
    let (locks, elections) = (named(status.locks), named(status.elections));
    let held = |reports: &[LockReport]| reports.iter().any(|report| !report.holders.is_empty());
    // A lock, a semaphore and an election may share the name; --election selects the election.
    let (mut all, meant, way) = match args.election {
        true if held(&locks) => (
            elections,
            "election",
            "\n  a lock or a semaphore of that name has holders: leave out --election",
        ),
        true => (elections, "election", ""),
        false => (locks.into_iter().chain(elections).collect(), "lock", ""),
    };
    if args.format == Format::Text {
        if !held(&all) {
            let lacking = if args.election { "has no leader" } else { "has no holder" };
            eprintln!("konklave: {} {lacking}{way}", args.name);
        }
        return all.iter().try_for_each(print_claim).map(|()| 0);
    }
    let (name, kind) = (args.name.clone(), meant.to_owned());
    let free = LockReport { kind, name, slots: None, holders: Vec::new(), waiters: Vec::new() };
    let first = if all.is_empty() { free } else { all.remove(0) };
    print_as("konklave.who/1", &Who { first, others: all }, args.format)
}

/// The JSON output of `who`: the first lock, semaphore or election of a name, and the others of that name.
#[derive(Serialize)]
struct Who {
    #[serde(flatten)]
    first: LockReport,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    others: Vec<LockReport>,
}

/// Prints the holders and the waiters.
fn print_claim(report: &LockReport) -> Result<(), Failure> {
    if !report.holders.is_empty() {
        let title = report.kind.to_uppercase();
        print_claims(&title, std::slice::from_ref(report))?;
    }
    if report.waiters.is_empty() {
        return Ok(());
    }
    let mut rows = vec![["PLACE", "WAITER", "MODE", "PRIORITY"].map(str::to_owned).to_vec()];
    for (i, waiter) in report.waiters.iter().enumerate() {
        rows.push(vec![
            (i + 1).to_string(),
            format!("{} ({})", waiter.node, waiter.label),
            waiter.mode.clone(),
            waiter.priority.to_string(),
        ]);
    }
    print_table(&rows)
}

pub(crate) fn why(args: &WhyArgs) -> Result<u8, Failure> {
    let explanation = match ask(&args.agent, Request::Why { name: args.name.clone() })? {
        Answer::Why(explanation) => *explanation,
        other => return Err(unexpected(&other)),
    };
    if args.format != Format::Text {
        return print_json(&explanation, args.format);
    }
    let Explanation { name, free, reasons, cycle, .. } = explanation;
    let mut out = io::stdout().lock();
    let verdict = if free { "is available" } else { "is not available" };
    writeln!(out, "{name} {verdict}:")?;
    for reason in reasons {
        // A remedy is on a line of its own.
        let mut lines = reason.lines().map(legible);
        writeln!(out, "  {}", lines.next().unwrap_or_default())?;
        lines.try_for_each(|line| writeln!(out, "    {}", line.trim_start()))?;
    }
    if !cycle.is_empty() {
        writeln!(out, "  deadlock: {}", legible(&cycle.join(" → ")))?;
    }
    Ok(0)
}
