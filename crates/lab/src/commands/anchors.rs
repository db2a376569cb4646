//! `anchors`: figures of the theory of group communication beside measured ones.

mod groups;
mod loss;
mod orders;
mod suppression;

use std::io::{self, IsTerminal, Write};

use indicatif::{ProgressBar, ProgressStyle};
use konklave_catalog::{Catalog, Error, RunReport, Scenario, Verdict};
use serde::Serialize;

use super::run::number;
use crate::Done;
use crate::args::AnchorsArgs;
use crate::output::{
    Colour, TableFormat, paint, print_csv, print_jsonl, print_pretty_json, stdout,
};

/// One figure of the theory, measured.
#[derive(Clone, Debug, Serialize)]
struct Anchor {
    /// The subject.
    chapter: &'static str,
    /// The measure and its case.
    case: String,
    /// The formula.
    formula: &'static str,
    /// Its value.
    theory: f64,
    /// How close the measured value must come.
    relation: Relation,
    /// The measured value.
    measured: f64,
    /// Whether it came so close.
    holds: bool,
    /// The command that repeats the run, or the last of several runs.
    command: String,
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Relation {
    /// No more and no less.
    Exactly,
    /// No more.
    AtMost,
    /// No further away than this.
    Within(f64),
}

impl Anchor {
    fn new(
        chapter: &'static str,
        case: String,
        formula: &'static str,
        (relation, theory): (Relation, f64),
        measured: f64,
        command: &str,
    ) -> Self {
        let holds = match relation {
            Relation::Exactly => (measured - theory).abs() < 1e-6,
            Relation::AtMost => measured <= theory + 1e-6,
            Relation::Within(slack) => (measured - theory).abs() <= slack,
        };
        let command = command.to_owned();
        Self { chapter, case, formula, theory, relation, measured, holds, command }
    }

    fn bound(&self) -> String {
        match self.relation {
            Relation::Exactly => format!("= {}", short(self.theory)),
            Relation::AtMost => format!("≤ {}", short(self.theory)),
            Relation::Within(slack) => format!("{} ± {}", short(self.theory), short(slack)),
        }
    }
}

/// The accepted distance of a mean from its expectation, in standard errors.
const ERRORS: f64 = 4.0;

/// The size of the samples.
#[derive(Clone, Copy, Debug)]
struct Sampling {
    seed: u64,
    /// Ten times as much as usual.
    long: bool,
}

impl Sampling {
    /// Ten times as many repetitions with `--long`.
    fn times(self, usually: u32) -> u32 {
        if self.long { 10 * usually } else { usually }
    }
}

/// All that was measured so far.
struct Anchors {
    catalog: &'static Catalog,
    sampling: Sampling,
    rows: Vec<Anchor>,
    bar: ProgressBar,
}

impl Anchors {
    fn new(catalog: &'static Catalog, sampling: Sampling) -> Self {
        let bar = if io::stderr().is_terminal() {
            ProgressBar::new_spinner()
        } else {
            ProgressBar::hidden()
        };
        if let Ok(style) = ProgressStyle::with_template("{spinner} {pos} measured, the last: {msg}")
        {
            bar.set_style(style);
        }
        Self { catalog, sampling, rows: Vec::new(), bar }
    }

    fn push(&mut self, anchor: Anchor) {
        self.bar.set_message(anchor.case.clone());
        self.bar.inc(1);
        self.rows.push(anchor);
    }
}

/// At most three decimals.
fn short(x: f64) -> String {
    number((x * 1000.0).round() / 1000.0)
}

pub(crate) fn anchors(catalog: &'static Catalog, args: &AnchorsArgs) -> Done {
    let mut all = Anchors::new(catalog, Sampling { seed: args.seed, long: args.long });
    loss::measure(&mut all)?;
    suppression::measure(&mut all)?;
    orders::measure(&mut all)?;
    groups::measure(&mut all)?;
    all.bar.finish_and_clear();
    let all = all.rows;
    match args.format {
        TableFormat::Text => text(&all)?,
        TableFormat::Markdown => markdown(&all)?,
        TableFormat::Json => print_pretty_json(&all)?,
        TableFormat::Jsonl => all.iter().try_for_each(print_jsonl)?,
        TableFormat::Csv => print_csv(&all.iter().map(csv).collect::<Vec<_>>())?,
    }
    Ok(if all.iter().all(|anchor| anchor.holds) { 0 } else { 1 })
}

/// Runs `scenario`. A run whose verdict is not `ok` is an error: its figures would mean nothing.
fn run(catalog: &Catalog, algorithm: &str, scenario: Scenario) -> Result<RunReport, Error> {
    let entry = catalog.find(algorithm)?;
    let report = entry.simulate(&entry.plan(scenario)?, false)?.report;
    if report.verdict == Verdict::Ok {
        return Ok(report);
    }
    let message = format!("{}: {}", report.verdict.name(), report.command);
    Err(Error::Unavailable(message))
}

/// A measure of the run: `name`, or a part of it as in `latency.mean`.
fn measure(report: &RunReport, name: &str) -> Result<f64, Error> {
    let mut path = name.split('.');
    let first = path.next().unwrap_or_default();
    let found = report.problem.values().find_map(|measures| measures.get(first));
    let found = path.try_fold(found, |value, part| value.map(|value| value.get(part)));
    found
        .flatten()
        .and_then(serde_json::Value::as_f64)
        .ok_or_else(|| Error::Unavailable(format!("no {name} was measured: {}", report.command)))
}

/// `n` nodes, of which only the node at `place` makes requests, `often` times.
fn only(n: usize, place: usize, times: u32, seed: u64) -> Scenario {
    let requests: Vec<String> =
        (0..n).map(|p| if p == place { times } else { 0 }.to_string()).collect();
    Scenario {
        nodes: Some(n),
        requests: Some(requests.join(",")),
        seed: Some(seed),
        ..Scenario::default()
    }
}

/// `NAME=VALUE` for each.
fn chosen(pairs: &[(&str, &str)]) -> Vec<String> {
    pairs.iter().map(|(name, value)| format!("{name}={value}")).collect()
}

fn text(all: &[Anchor]) -> io::Result<()> {
    let mut out = stdout();
    let mut chapter = "";
    for anchor in all {
        if anchor.chapter != chapter {
            let gap = if chapter.is_empty() { "" } else { "\n" };
            chapter = anchor.chapter;
            writeln!(out, "{gap}{chapter}")?;
        }
        let wrong =
            if anchor.holds { String::new() } else { paint("  DOES NOT HOLD", Colour::Red) };
        writeln!(
            out,
            "  {:<52} {:>9}  {:<17} {}{wrong}",
            anchor.case,
            short(anchor.measured),
            anchor.bound(),
            anchor.formula
        )?;
    }
    let held = all.iter().filter(|anchor| anchor.holds).count();
    writeln!(out, "\n{held} of {} hold. Times are in T, the delay of a message.", all.len())?;
    out.flush()
}

fn markdown(all: &[Anchor]) -> io::Result<()> {
    let mut out = stdout();
    writeln!(out, "| | case | formula | theory | measured | |")?;
    writeln!(out, "|---|---|---|---:|---:|---|")?;
    let mut chapter = "";
    for anchor in all {
        let name = if anchor.chapter == chapter { "" } else { anchor.chapter };
        chapter = anchor.chapter;
        let Anchor { case, formula, .. } = anchor;
        let verdict = if anchor.holds { "holds" } else { "**does not hold**" };
        let (bound, measured) = (anchor.bound(), short(anchor.measured));
        writeln!(out, "| {name} | {case} | {formula} | {bound} | {measured} | {verdict} |")?;
    }
    out.flush()
}

fn csv(anchor: &Anchor) -> Vec<(String, String)> {
    [
        ("chapter", anchor.chapter.to_owned()),
        ("case", anchor.case.clone()),
        ("formula", anchor.formula.to_owned()),
        ("theory", anchor.bound()),
        ("measured", short(anchor.measured)),
        ("holds", anchor.holds.to_string()),
        ("command", anchor.command.clone()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}
