//! `replay`: a recorded run once more.

use std::io::Write;

use konklave_agent::recorder::{Verdict, judge};
use konklave_trace::{Run, text};
use serde_json::json;

use super::{plan_of, read_run};
use crate::Done;
use crate::args::ReplayArgs;
use crate::output::{Colour, Format, paint, print_csv, print_json, stdout};

pub(crate) fn replay(args: &ReplayArgs) -> Done {
    let run = read_run(&args.file)?;
    if run.header.algorithm == konklave_agent::recorder::ALGORITHM {
        return incident(args, &run);
    }
    let (entry, plan) = plan_of(&run, &args.file)?;
    let replayed = entry.replay(&plan, &run);
    let recorded = run.footer.as_ref().and_then(|footer| footer.summary.get("steps")?.as_u64());
    let (same, steps, difference) = match &replayed {
        Ok(replayed) if recorded.is_some_and(|steps| steps != replayed.steps as u64) => {
            let (had, steps) = (recorded.unwrap_or_default(), replayed.steps as u64);
            (false, steps, Some(format!("{steps} steps are there, but the run had {had}")))
        }
        Ok(replayed) => (true, replayed.steps as u64, None),
        Err(error) => (false, 0, Some(error.to_string())),
    };
    match args.format {
        Format::Text => {
            let mut out = stdout();
            if args.story || args.states || args.only.is_some() {
                let nodes = args.only.as_ref().map(|nodes| nodes.iter().copied().collect());
                let options = text::Options { states: args.states, nodes, most_lines: None };
                writeln!(out, "{}", text::transcript(&run, &options))?;
            }
            let header = &run.header;
            writeln!(out, "{} · {} nodes, {}", header.algorithm, header.nodes.len(), header.world)?;
            match difference {
                None => {
                    let same = paint("the same", Colour::Green);
                    writeln!(out, "replayed    {steps} steps: {same}, effect by effect")?;
                }
                Some(difference) => {
                    let differs = paint("different", Colour::Red);
                    writeln!(out, "replayed    {differs}: {difference}")?;
                }
            }
            if let Some(footer) = &run.footer {
                writeln!(out, "verdict     {} when it was recorded", footer.verdict)?;
            }
            out.flush()?;
        }
        Format::Json | Format::Jsonl => {
            let report = json!({
                "schema": "konklave.replay/1",
                "algorithm": run.header.algorithm,
                "nodes": run.header.nodes.len(),
                "world": run.header.world,
                "same": same,
                "steps": steps,
                "difference": difference,
                "recorded_verdict": run.footer.as_ref().map(|f| f.verdict.clone()),
            });
            print_json(&report, args.format)?;
        }
        Format::Csv => print_csv(&[vec![
            ("algorithm".into(), run.header.algorithm.clone()),
            ("same".into(), same.to_string()),
            ("steps".into(), steps.to_string()),
            ("difference".into(), difference.unwrap_or_default()),
        ]])?,
    }
    Ok(if same { 0 } else { 1 })
}

/// A recording of real agents: there is no algorithm to replay, but its tokens tell whether what they
/// promise was kept.
fn incident(args: &ReplayArgs, run: &Run) -> Done {
    let steps = run.entries.iter().filter_map(|entry| serde_json::to_value(entry).ok());
    let Verdict { grants, names, open, violations } = judge(steps);
    match args.format {
        Format::Text => {
            let mut out = stdout();
            if args.story || args.states || args.only.is_some() {
                let nodes = args.only.as_ref().map(|nodes| nodes.iter().copied().collect());
                let options = text::Options { states: args.states, nodes, most_lines: None };
                writeln!(out, "{}", text::transcript(run, &options))?;
            }
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
                "violations": violations,
            });
            print_json(&report, args.format)?;
        }
        Format::Csv => print_csv(&[vec![
            ("grants".into(), grants.to_string()),
            ("names".into(), names.to_string()),
            ("open".into(), open.to_string()),
            ("violations".into(), violations.len().to_string()),
        ]])?,
    }
    Ok(if violations.is_empty() { 0 } else { 1 })
}
