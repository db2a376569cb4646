//! `compare`: algorithms side by side.

use std::io::{self, IsTerminal, Write};

use indicatif::ProgressBar;
use konklave_catalog::{Catalog, Entry, Error, Load, Scenario};
use konklave_sweep::{Against, Comparison, Contest, Line, Spread, compare as run, html, svg};

use super::run::{number, warn};
use crate::Done;
use crate::args::{CompareArgs, Loads};
use crate::output::{
    Colour, Picture, TableFormat, Target, paint, print_csv, print_jsonl, print_pretty_json, stdout,
};

pub(crate) fn compare(catalog: &'static Catalog, args: CompareArgs) -> Done {
    if args.seeds == 0 {
        return Err(Error::Usage("--seeds 0: at least one seed is needed".into()).into());
    }
    let entries = chosen(catalog, &args)?;
    let problem = entries[0].problem;
    let against = against(catalog, &args, &entries)?;
    let svg_target = Picture::open_if(args.svg.as_ref())?;
    let html_target = Target::open_if(args.html.as_ref())?;
    let contest = Contest {
        problem,
        entries,
        loads: match (args.scenario.load, args.loads) {
            (Some(load), _) => vec![load],
            (None, Loads::Both) => vec![Load::Low, Load::High],
            (None, Loads::Low) => vec![Load::Low],
            (None, Loads::High) => vec![Load::High],
        },
        base: args.scenario,
        seeds: args.seeds,
        endurance: !args.no_faults,
        against,
    };
    let bar = if io::stderr().is_terminal() {
        ProgressBar::new(contest.entries.len() as u64)
    } else {
        ProgressBar::hidden()
    };
    let all = run(&contest, |name| {
        bar.set_message(name.to_owned());
        bar.inc(1);
    })?;
    bar.finish_and_clear();
    for why in &all.left_out {
        tell!("combination left out: {why}");
    }
    for entry in &contest.entries {
        let scenario = Scenario { algorithm: Some(entry.name()), ..contest.base.clone() };
        if let Ok(plan) = entry.plan(scenario) {
            warn(&entry.name(), &plan);
        }
    }
    if all.lines.is_empty() {
        return Err(Error::Usage("no algorithm can take part".into()).into());
    }
    if let Some(target) = svg_target {
        target.finish(&svg(&all))?;
    }
    if let Some(target) = html_target {
        target.finish(html(&all).as_bytes())?;
    }
    match args.format {
        TableFormat::Text => print(&all, against.is_some())?,
        TableFormat::Markdown => print_markdown(&all, against.is_some())?,
        TableFormat::Json => print_pretty_json(&all)?,
        TableFormat::Jsonl => print_jsonl(&all)?,
        TableFormat::Csv => {
            print_csv(&all.lines.iter().map(|line| csv(&all, line)).collect::<Vec<_>>())?;
        }
    }
    Ok(if all.lines.iter().all(|line| line.fine == line.runs) { 0 } else { 1 })
}

/// The named algorithms, or all of the problem.
fn chosen<'a>(catalog: &'a Catalog, args: &CompareArgs) -> Result<Vec<&'a Entry>, Error> {
    let of_problem = catalog.of_problem(&args.problem);
    let Some(first) = of_problem.first() else {
        let known: Vec<&str> = catalog.problems().iter().map(|problem| problem.name).collect();
        let known = known.join(", ");
        return Err(Error::Usage(format!(
            "there is no problem `{}`; problems are {known}",
            args.problem
        )));
    };
    if args.algorithms.is_empty() {
        return Ok(of_problem);
    }
    let mut entries = Vec::new();
    for name in &args.algorithms {
        let entry = catalog.find(name)?;
        if entry.problem != first.problem {
            let why = format!("{} solves {}, not {}", name, entry.problem, first.problem);
            return Err(Error::Usage(why));
        }
        if entries.iter().any(|known: &&Entry| known.name() == entry.name()) {
            return Err(Error::Usage(format!("{name} is named twice; name each algorithm once")));
        }
        entries.push(entry);
    }
    Ok(entries)
}

/// The algorithm that all others are compared with.
fn against(
    catalog: &'static Catalog,
    args: &CompareArgs,
    entries: &[&'static Entry],
) -> Result<Option<&'static Entry>, Error> {
    let Some(name) = &args.against else { return Ok(None) };
    let entry = catalog.find(name)?;
    if !entries.iter().any(|known| known.name() == entry.name()) {
        let known: Vec<String> = entries.iter().map(|entry| entry.name()).collect();
        let why =
            format!("--against {name}: it is not compared; compared are {}", known.join(", "));
        return Err(Error::Usage(why));
    }
    if args.seeds < 2 {
        return Err(Error::Usage("--against: a difference needs at least two --seeds".into()));
    }
    Ok(Some(entry))
}

fn short(name: &str) -> &str {
    name.split_once('/').map_or(name, |(_, name)| name)
}

/// A table of some lines.
struct Shown<'a> {
    all: &'a Comparison,
    lines: Vec<&'a Line>,
}

impl<'a> Shown<'a> {
    /// The lines of one case.
    fn of(all: &'a Comparison, case: &str) -> Self {
        Self { all, lines: all.lines.iter().filter(|line| line.case == case).collect() }
    }

    /// Whether a formula bounds the column for at least one of the lines.
    fn is_bounded(&self, column: usize) -> bool {
        self.lines.iter().any(|line| line.formulas[column].is_some())
    }

    /// Whether a run failed: only then the table has a column for failed runs.
    fn is_failing(&self) -> bool {
        self.all.lines.iter().any(|line| line.fine < line.runs)
    }

    /// The cells of a line: name, a cell for each column, its count and its formula, endurance, runs
    /// that failed.
    fn cells(&self, line: &Line, mark: &str) -> Vec<String> {
        let mut cells = vec![short(&line.algorithm).to_owned()];
        for (i, (measured, column)) in line.measured.iter().zip(&self.all.columns).enumerate() {
            let star = if line.best[i] { mark } else { "" };
            let value = |s: &Spread| format!("{}{}{star}", number(round(s.mean)), interval(s));
            cells.push(measured.as_ref().map_or_else(|| column.without_any(), value));
            if !column.of.is_empty() {
                cells.push(line.samples[i].map_or("–".into(), |count| count.to_string()));
            }
            if self.is_bounded(i) {
                let formula = line.formulas[i].as_ref();
                cells.push(formula.map_or("–".into(), |(_, x)| number(round(*x))));
            }
        }
        if let Some(e) = &line.endurance {
            cells.push(format!("{}/{}", e.crashes, e.crashes_tried));
            cells.push(format!("{}/{}", e.losses, e.losses_tried));
        }
        if self.is_failing() {
            cells.push(match line.runs - line.fine {
                0 => String::new(),
                failed => format!("{failed} of {} not ok", line.runs),
            });
        }
        cells
    }

    /// The names of the columns, and their units.
    fn heads(&self) -> [Vec<String>; 2] {
        let (mut names, mut units) = (vec![String::new()], vec![String::new()]);
        for (i, column) in self.all.columns.iter().enumerate() {
            names.push(column.name.to_owned());
            units.push(column.unit.to_owned());
            if !column.of.is_empty() {
                names.push("of".into());
                units.push(column.of.into());
            }
            if self.is_bounded(i) {
                names.push(column.limit.into());
                units.push("formula".into());
            }
        }
        if self.all.lines.iter().any(|line| line.endurance.is_some()) {
            names.extend(["crashes".into(), "losses".into()]);
            units.extend(["survived".into(), "survived".into()]);
        }
        if self.is_failing() {
            names.push("failed".into());
            units.push("runs".into());
        }
        [names, units]
    }
}

/// The reasons why a formula is missing where other algorithms have one: column, reason, algorithms.
fn without(all: &Comparison) -> Vec<(String, Vec<&str>)> {
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for case in cases(all) {
        let shown = Shown::of(all, case);
        for (i, column) in all.columns.iter().enumerate().filter(|(i, _)| shown.is_bounded(*i)) {
            let unbounded = |l: &&&Line| l.formulas[i].is_none() && l.measured[i].is_some();
            for line in shown.lines.iter().filter(unbounded) {
                let Some(why) = &line.without[i] else { continue };
                let reason = format!("{case}, {}: {why}", column.name);
                let name = short(&line.algorithm);
                match reasons.iter_mut().find(|(known, _)| *known == reason) {
                    Some((_, names)) => names.push(name),
                    None => reasons.push((reason, vec![name])),
                }
            }
        }
    }
    reasons
}

/// Half the width of the interval, with the digits of the mean; nothing for a single run.
fn interval(s: &Spread) -> String {
    if s.runs < 2 {
        return String::new();
    }
    let scale = scale(s.mean);
    format!("±{}", number((s.confidence * scale).round() / scale))
}

/// The power of ten that keeps three digits of `x`.
fn scale(x: f64) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return 1000.0;
    }
    10_f64.powf(2.0 - x.abs().log10().floor()).clamp(1.0, 1000.0)
}

/// A number with three significant digits.
fn round(x: f64) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    let scale = 10_f64.powf(2.0 - x.abs().log10().floor()).max(1.0);
    (x * scale).round() / scale
}

/// The cases, in the order of their first line.
fn cases(all: &Comparison) -> Vec<&'static str> {
    let mut cases = Vec::new();
    for line in &all.lines {
        if !cases.contains(&line.case) {
            cases.push(line.case);
        }
    }
    cases
}

/// The meaning of the figures: intervals, stars, and which part of the runs was measured.
fn legend(all: &Comparison) -> Vec<String> {
    let mut legend = Vec::new();
    if all.seeds > 1 {
        legend.push("±: 95 % confidence interval of the mean over the seeds".to_owned());
    }
    if all.lines.iter().any(|line| line.best.contains(&true)) {
        let star = "*: best; its interval is apart from all others (equal values share the star)";
        legend.push(star.into());
    }
    for steady in &all.steady {
        legend.push(format!(
            "{}: steady state of {} requests of each node, without the first {} of each (warm-up, on average) and \
             without what comes after a node made its last",
            steady.case, steady.entries, steady.warm_up
        ));
    }
    legend
}

/// The differences from one algorithm, a line for each.
fn print_differences(all: &Comparison, out: &mut impl Write) -> io::Result<()> {
    let Some(first) = all.differences.first() else { return Ok(()) };
    let name = short(&first.against);
    writeln!(
        out,
        "\ndifference from {name}, pair by pair; p by the paired t test, adjusted by Holm"
    )?;
    let cells = |a: &Against| {
        let (d, scale) = (&a.difference, scale(a.difference.mean));
        let confidence = number((d.confidence * scale).round() / scale);
        [
            format!("{}, {}", a.case, a.column),
            short(&a.algorithm).to_owned(),
            format!("{}±{confidence}", number(round(d.mean))),
            if d.p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {:.3}", d.p) },
        ]
    };
    let rows: Vec<[String; 4]> = all.differences.iter().map(cells).collect();
    let width = |i: usize| rows.iter().map(|row| row[i].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2)];
    for row in &rows {
        let [what, who, value, p] = row;
        let [a, b, c] = widths;
        writeln!(out, "  {what:<a$}  {who:<b$}  {value:>c$}  {p}")?;
    }
    Ok(())
}

fn print(all: &Comparison, differences: bool) -> io::Result<()> {
    let mut out = stdout();
    let nodes = if all.nodes == 1 { "node" } else { "nodes" };
    let seeds = if all.seeds == 1 { "seed" } else { "seeds" };
    let (problem, n, k) = (&all.problem, all.nodes, all.seeds);
    writeln!(out, "{problem}: {n} {nodes}, {k} {seeds} each")?;
    for line in legend(all) {
        writeln!(out, "{line}")?;
    }
    for case in cases(all) {
        let shown = Shown::of(all, case);
        let mut rows = shown.heads().to_vec();
        rows[0][0] = case.to_owned();
        rows.extend(shown.lines.iter().map(|line| shown.cells(line, "*")));
        let widths: Vec<usize> = (0..rows[0].len())
            .map(|c| rows.iter().map(|row| row[c].chars().count()).max().unwrap_or(0))
            .collect();
        writeln!(out)?;
        for (r, row) in rows.iter().enumerate() {
            let mut text = String::new();
            for (c, cell) in row.iter().enumerate() {
                let gap = " ".repeat(widths[c] - cell.chars().count());
                let last = shown.is_failing() && c + 1 == row.len();
                let cell = match (r, cell.ends_with('*'), last) {
                    (0 | 1, ..) => cell.clone(),
                    (_, true, _) => paint(cell, Colour::Green),
                    (_, _, true) if !cell.is_empty() => paint(cell, Colour::Red),
                    _ => cell.clone(),
                };
                text += &if c == 0 { format!("{cell}{gap}  ") } else { format!("{gap}{cell}  ") };
            }
            writeln!(out, "{}", text.trim_end())?;
        }
    }
    let explained: Vec<_> = all.columns.iter().filter(|c| !c.means.is_empty()).collect();
    if !explained.is_empty() {
        writeln!(out)?;
    }
    for column in explained {
        writeln!(out, "{} – {}", column.name, column.means)?;
    }
    let reasons = without(all);
    if !reasons.is_empty() {
        writeln!(out, "\nno formula")?;
    }
    for (reason, names) in reasons {
        writeln!(out, "  {}\n    {reason}", names.join(", "))?;
    }
    if differences {
        print_differences(all, &mut out)?;
    }
    if all.lines.iter().any(|line| line.endurance.is_some()) {
        writeln!(out, "\nkinds of faults that never did harm, tried one at a time")?;
        for (name, what) in endured(all) {
            writeln!(out, "  {name:<28} {what}")?;
        }
    }
    out.flush()
}

/// The faults that each line survives. The faults of a lock do not depend on the case.
fn endured(all: &Comparison) -> Vec<(String, String)> {
    let mut endured: Vec<(String, String)> = Vec::new();
    for line in &all.lines {
        let Some(endurance) = &line.endurance else { continue };
        let what = endurance.words();
        let of_it = || all.lines.iter().filter(|other| other.algorithm == line.algorithm);
        let everywhere = of_it().all(|other| other.endurance == line.endurance);
        let name = short(&line.algorithm);
        let name = if everywhere { name.to_owned() } else { format!("{name}, {}", line.case) };
        if !endured.iter().any(|(known, _)| *known == name) {
            endured.push((name, what));
        }
    }
    endured
}

fn print_markdown(all: &Comparison, differences: bool) -> io::Result<()> {
    let mut out = stdout();
    for case in cases(all) {
        let shown = Shown::of(all, case);
        let [names, units] = shown.heads();
        let head = |(name, unit): (&String, &String)| format!("{name} {unit}").trim().to_owned();
        let mut heads: Vec<String> = names.iter().zip(&units).map(head).collect();
        heads[0] = case.to_owned();
        writeln!(out, "| {} |", heads.join(" | "))?;
        writeln!(out, "|{}", "---|".repeat(heads.len()))?;
        for line in &shown.lines {
            writeln!(out, "| {} |", shown.cells(line, " ★").join(" | "))?;
        }
        writeln!(out)?;
    }
    for line in legend(all) {
        writeln!(out, "{}\n", line.replace('*', "★"))?;
    }
    if differences {
        print_differences(all, &mut out)?;
    }
    out.flush()
}

fn csv(all: &Comparison, line: &Line) -> Vec<(String, String)> {
    let mut row = vec![
        ("algorithm".to_owned(), line.algorithm.clone()),
        ("case".to_owned(), line.case.to_owned()),
        ("runs".to_owned(), line.runs.to_string()),
        ("fine".to_owned(), line.fine.to_string()),
    ];
    for (i, (column, measured)) in all.columns.iter().zip(&line.measured).enumerate() {
        let name = column.name.replace(' ', "_");
        let value =
            |f: fn(&Spread) -> f64| measured.as_ref().map_or(String::new(), |s| f(s).to_string());
        row.push((name.clone(), value(|s| s.mean)));
        row.push((format!("{name}_confidence"), value(|s| s.confidence)));
        if !column.of.is_empty() {
            let count = line.samples[i].map_or(String::new(), |count| count.to_string());
            row.push((format!("{name}_samples"), count));
        }
    }
    for (column, formula) in all.columns.iter().zip(&line.formulas) {
        let name = column.name.replace(' ', "_");
        let formula = formula.as_ref();
        let text = formula.map_or(String::new(), |(text, _)| text.clone());
        row.push((format!("{name}_formula"), text));
        row.push((format!("{name}_limit"), formula.map_or(String::new(), |(_, x)| x.to_string())));
    }
    let endurance = line.endurance.clone().unwrap_or_default();
    row.push(("crashes_survived".to_owned(), endurance.crashes.to_string()));
    row.push(("crashes_tried".to_owned(), endurance.crashes_tried.to_string()));
    row.push(("losses_survived".to_owned(), endurance.losses.to_string()));
    row.push(("losses_tried".to_owned(), endurance.losses_tried.to_string()));
    row
}
