//! `race`: several algorithms in the same world, one above the other.

use std::io::{self, Write};

use konklave_catalog::{Catalog, Entry, Error, Plan, RunReport, Scenario, Verdict};
use konklave_trace::diagram::{Options, layout_all};
use konklave_trace::export::html_race;
use konklave_trace::{Run, svg};
use serde_json::json;

use super::run::{number, scenario_of, warn};
use crate::Done;
use crate::args::RaceArgs;
use crate::output::{Colour, Format, Picture, Target, paint, print_csv, print_json, stdout};

/// More diagrams in one picture could not be read.
const MOST_ENTRIES: usize = 200_000;

pub(crate) fn race(catalog: &Catalog, args: RaceArgs) -> Done {
    let scenario = scenario_of(&args.scenario, args.file.as_ref())?;
    let mut racers = Vec::new();
    for name in &args.algorithms {
        let entry = catalog.find(name)?;
        if let Some((first, _)) =
            racers.first().filter(|(f, _): &&(&Entry, Plan)| f.problem != entry.problem)
        {
            let why = format!("{} and {} solve different problems", first.name(), entry.name());
            return Err(Error::Usage(why).into());
        }
        let scenario = Scenario { algorithm: Some(entry.name()), ..scenario.clone() };
        let plan = entry.plan(scenario).map_err(|e| for_racer(&entry.name(), e))?;
        racers.push((entry, plan));
    }
    let draw_to = Picture::open_if(args.svg.as_ref())?;
    let play_to = Target::open_if(args.html.as_ref())?;
    let record = draw_to.is_some() || play_to.is_some();
    let (mut reports, mut runs): (Vec<RunReport>, Vec<Run>) = (Vec::new(), Vec::new());
    for (entry, plan) in &racers {
        warn(&entry.name(), plan);
        let outcome = entry.simulate(plan, record).map_err(|e| for_racer(&entry.name(), e))?;
        reports.push(outcome.report);
        runs.extend(outcome.run);
    }
    let entries: usize = runs.iter().map(|run| run.entries.len()).sum();
    if entries > MOST_ENTRIES {
        let message =
            format!("{entries} events are too many for a picture; reduce --entries or --nodes");
        return Err(Error::Usage(message).into());
    }
    let runs: Vec<&Run> = runs.iter().collect();
    let conditions = racers.first().map_or(&[][..], |(entry, _)| entry.problem.conditions);
    let options = Options::of(conditions);
    if let Some(target) = draw_to {
        target.finish(&svg::stack(&layout_all(&runs, &options)))?;
    }
    if let Some(target) = play_to {
        target.finish(html_race(&runs, &options).as_bytes())?;
    }
    print(&args, &reports)?;
    let codes: Vec<u8> = reports.iter().map(|report| report.verdict.exit_code()).collect();
    // A violation takes precedence over an undecided run.
    Ok([1, 2].into_iter().find(|code| codes.contains(code)).unwrap_or(0))
}

/// Adds to an error the algorithm that cannot run in this scenario.
fn for_racer(name: &str, error: Error) -> Error {
    match error {
        Error::Usage(message) => Error::Usage(format!("{name}: {message}")),
        Error::Data(message) => Error::Data(format!("{name}: {message}")),
        other => other,
    }
}

fn print(args: &RaceArgs, reports: &[RunReport]) -> io::Result<()> {
    match args.format {
        Format::Json => {
            print_json(&json!({"schema": "konklave.race/1", "runs": reports}), args.format)
        }
        Format::Jsonl => reports.iter().try_for_each(|report| print_json(report, args.format)),
        Format::Csv => print_csv(&reports.iter().map(row).collect::<Vec<_>>()),
        Format::Text => {
            let width = reports.iter().map(|report| report.algorithm.len()).max().unwrap_or(0);
            let mut out = stdout();
            writeln!(out, "{:width$}  {:>9}  {:>9}  verdict", "", "messages", "time")?;
            for report in reports {
                let colour = match report.verdict {
                    Verdict::Ok => Colour::Green,
                    Verdict::Violated | Verdict::Stuck => Colour::Red,
                    Verdict::Unfinished | Verdict::Loop => Colour::Yellow,
                };
                writeln!(
                    out,
                    "{:width$}  {:>9}  {:>7} T  {}",
                    report.algorithm,
                    report.messages.sent,
                    number(report.time),
                    paint(report.verdict.name(), colour)
                )?;
            }
            out.flush()
        }
    }
}

fn row(report: &RunReport) -> Vec<(String, String)> {
    [
        ("algorithm", report.algorithm.clone()),
        ("nodes", report.nodes.to_string()),
        ("seed", report.seed.to_string()),
        ("messages", report.messages.sent.to_string()),
        ("time", report.time.to_string()),
        ("verdict", report.verdict.name().to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}
