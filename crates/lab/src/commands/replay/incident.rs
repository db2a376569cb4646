//! Judges the recordings of agents.

use std::io::Write;

use konklave_agent::recorder::{Verdict, judge};
use konklave_trace::Run;
use serde_json::json;

use super::tell_story;
use crate::Done;
use crate::args::ReplayArgs;
use crate::output::{Colour, Format, paint, print_csv, print_json, stdout};

/// Judges a recording of real agents. There is no algorithm to replay, but its grants show whether the promises of
/// tokens and locks were kept.
pub(super) fn incident(args: &ReplayArgs, run: &Run) -> Done {
    let steps = run.entries.iter().filter_map(|entry| serde_json::to_value(entry).ok());
    let Verdict { grants, names, open, violations } = judge(&run.header.scenario["names"], steps);
    // A recording lists the data that it could not obtain. Recordings of older versions have no such list.
    let missing = run.header.scenario["missing"].as_array().into_iter().flatten();
    let missing: Vec<&str> = missing.filter_map(|what| what.as_str()).collect();
    match args.format {
        Format::Text => {
            let mut out = stdout();
            tell_story(&mut out, args, run)?;
            writeln!(
                out,
                "a recording of {} agents: judged, not run again",
                run.header.nodes.len()
            )?;
            writeln!(
                out,
                "judged      {grants} grants of {names} names ({open} without a recorded end): each \
                 token granted once, tokens only grow, one holder at a time"
            )?;
            for what in &missing {
                writeln!(out, "missing     {what}")?;
            }
            for violation in &violations {
                writeln!(out, "{}    {violation}", paint("violated", Colour::Red))?;
            }
            if violations.is_empty() {
                writeln!(out, "verdict     {}", paint("kept", Colour::Green))?;
            }
            out.flush()?;
        }
        Format::Json | Format::Jsonl => {
            let report = json!({
                "schema": "konklave.incident/1",
                "agents": run.header.nodes.len(),
                "grants": grants,
                "names": names,
                "open": open,
                "missing": missing,
                "violations": violations,
            });
            print_json(&report, args.format)?;
        }
        Format::Csv => print_csv(&[vec![
            ("grants".into(), grants.to_string()),
            ("names".into(), names.to_string()),
            ("open".into(), open.to_string()),
            ("missing".into(), missing.len().to_string()),
            ("violations".into(), violations.len().to_string()),
        ]])?,
    }
    Ok(if violations.is_empty() { 0 } else { 1 })
}
