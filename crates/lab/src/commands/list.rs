//! `list`: every algorithm with its data sheet.

use std::collections::BTreeSet;
use std::io::{self, Write};

use konklave_algorithms::{Cost, DataSheet, ProcessSets};
use konklave_catalog::{Catalog, Entry, Error, Scenario, did_you_mean, program};
use serde_json::{Value, json};

use crate::Done;
use crate::args::ListArgs;
use crate::output::{Format, heading, print_csv, print_json, stdout};

/// The sets of at most so many processes are shown; more would not fit the width of a terminal.
const MOST_SHOWN: usize = 40;

pub(crate) fn list(catalog: &Catalog, args: &ListArgs) -> Done {
    let Some(what) = &args.what else {
        many(&catalog.entries().iter().collect::<Vec<_>>(), args.format)?;
        return Ok(0);
    };
    let problem = catalog.of_problem(what);
    if !problem.is_empty() {
        if args.nodes.is_some() || !args.set.is_empty() {
            let message = format!("-n and --set need an algorithm, but {what} is a problem");
            return Err(Error::Usage(message).into());
        }
        many(&problem, args.format)?;
        return Ok(0);
    }
    let entry = catalog.find(what).map_err(|e| match e {
        Error::Usage(message) => {
            let problems = catalog.problems();
            Error::Usage(format!(
                "{message}{}",
                did_you_mean(what, problems.iter().map(|p| p.name))
            ))
        }
        other => other,
    })?;
    let (nodes, set) = (args.nodes, args.set.clone());
    let scenario = Scenario { nodes, set, ..Scenario::default() };
    let quorums = entry.quorums(scenario.clone())?;
    let sets = entry.process_sets(scenario)?;
    match args.format {
        Format::Text => one(entry, quorums.as_ref(), &args.set, &sets)?,
        Format::Json | Format::Jsonl => {
            let mut sheet = as_json(entry);
            sheet["quorums"] = quorums.unwrap_or_default();
            let named = sets.iter().map(|s| (s.name.to_owned(), json!(s.sets)));
            sheet["process_sets"] = Value::Object(named.collect());
            print_json(&sheet, args.format)?;
        }
        Format::Csv => print_csv(&[row(entry)])?,
    }
    Ok(0)
}

fn many(entries: &[&Entry], format: Format) -> io::Result<()> {
    match format {
        Format::Csv => return print_csv(&entries.iter().map(|e| row(e)).collect::<Vec<_>>()),
        Format::Json => {
            let all: Vec<Value> = entries.iter().map(|e| as_json(e)).collect();
            return print_json(&all, format);
        }
        Format::Jsonl => {
            return entries.iter().try_for_each(|e| print_json(&as_json(e), format));
        }
        Format::Text => {}
    }
    let mut out = stdout();
    let width = entries.iter().map(|e| e.name().len()).max().unwrap_or(0);
    let mut problem = "";
    for entry in entries {
        if entry.problem.name != problem {
            if !problem.is_empty() {
                writeln!(out)?;
            }
            problem = entry.problem.name;
        }
        let sheet = &entry.sheet;
        writeln!(out, "{:width$}  {}", entry.name(), sheet.idea)?;
        let mut facts =
            vec![format!("on a {}", shapes(sheet)).replace("a undirected", "an undirected")];
        if !sheet.mistakes.is_empty() {
            let names: Vec<&str> = sheet.mistakes.iter().map(|m| m.name).collect();
            facts.push(format!("mistakes: {}", names.join(", ")));
        }
        writeln!(out, "{:width$}  {}", "", facts.join(" · "))?;
        for Cost { metric: measured, formula, when, .. } in sheet.costs {
            writeln!(out, "{:width$}  {}: {formula} ({when})", "", metric(*measured))?;
        }
    }
    writeln!(out)?;
    writeln!(out, "`{} list NAME` shows the whole data sheet.", program())?;
    out.flush()
}

/// The sizes and loads of quorums, and the option for the sources' example if it has as many nodes and no quorums are
/// chosen.
fn quorums_line(sheet: &DataSheet, quorums: &Value, set: &[String]) -> String {
    let words = quorums["words"].as_str().unwrap_or_default();
    let nodes = quorums["nodes"].to_string();
    let is_chosen = set.iter().any(|word| word.starts_with("quorums="));
    let mut switches = sheet.switches.iter().filter(|s| s.name == "quorums" && !is_chosen);
    let example = match switches.any(|switch| switch.values.contains(&&*nodes)) {
        true => format!("; the example of the sources: --set quorums={nodes}"),
        false => String::new(),
    };
    format!("Quorums     {words}   ({nodes} nodes{example}; others by -n, --set)")
}

fn one(
    entry: &Entry,
    quorums: Option<&Value>,
    set: &[String],
    sets: &[ProcessSets],
) -> io::Result<()> {
    let sheet = &entry.sheet;
    let mut out = stdout();
    writeln!(out, "{}", heading(&format!("{} — {}", entry.name(), sheet.title)))?;
    writeln!(out, "{}", sheet.idea)?;
    writeln!(out)?;
    writeln!(out, "Source      {}", sheet.source)?;
    writeln!(out, "Runs on     a {}", shapes(sheet))?;
    writeln!(out, "Assumes     {}", joined(sheet.assumes))?;
    writeln!(out, "Guarantees  {}", joined(sheet.guarantees))?;
    if let Some(winner) = sheet.winner {
        writeln!(out, "Winner      {winner}")?;
    }
    if let Some(fence) = sheet.fence {
        writeln!(out, "Fence       {fence}")?;
    }
    if !sheet.costs.is_empty() {
        writeln!(out, "Costs")?;
        for cost in sheet.costs {
            writeln!(out, "  {:<20} {}   ({})", metric(cost.metric), cost.formula, cost.when)?;
        }
    }
    if let Some(quorums) = quorums {
        writeln!(out, "{}", quorums_line(sheet, quorums, set))?;
    }
    sets.iter().try_for_each(|sets| write_sets(&mut out, sets))?;
    if !sheet.switches.is_empty() {
        writeln!(out, "Variants    (--set NAME=VALUE; the first value is the default)")?;
        for switch in sheet.switches {
            let values = switch.values.join(" | ");
            writeln!(out, "  {:<20} {}: {}", switch.name, values, switch.what)?;
        }
    }
    if !sheet.mistakes.is_empty() {
        writeln!(out, "Mistakes    (--mistake NAME; below each, a command that shows it)")?;
        for mistake in sheet.mistakes {
            writeln!(out, "  {:<20} {}; breaks: {}", mistake.name, mistake.what, mistake.breaks)?;
            if !mistake.caught_by.is_empty() {
                let (name, how) = (sheet.name, mistake.caught_by);
                writeln!(
                    out,
                    "  {:<20} {} check {name} --mistake {} {how}",
                    "",
                    program(),
                    mistake.name
                )?;
            } else if let Some(how) = mistake.shown_by(sheet.name) {
                let how: Vec<String> = how.split(' ').map(quoted).collect();
                let (name, how) = (sheet.name, how.join(" "));
                writeln!(
                    out,
                    "  {:<20} {} run {name} --mistake {} {how}",
                    "",
                    program(),
                    mistake.name
                )?;
            } else {
                let tests = "no command shows it in a small group; the tests of the algorithm do";
                writeln!(out, "  {:<20} ({tests})", "")?;
            }
        }
    }
    out.flush()
}

/// The set of each process on a line of its own, and each member in a column of its own: so a triangle looks like one.
fn write_sets(out: &mut impl Write, sets: &ProcessSets) -> io::Result<()> {
    let n = sets.sets.len();
    writeln!(out, "Sets {:<6} the processes that each process {}", sets.name, sets.use_of_set)?;
    if n > MOST_SHOWN {
        return writeln!(out, "  {n} sets: `--format json` lists them");
    }
    let members: BTreeSet<_> = sets.sets.iter().flatten().copied().collect();
    let width = members.iter().map(|p| p.to_string().len()).max().unwrap_or(0);
    for (place, set) in sets.sets.iter().enumerate() {
        let cells = members.iter().map(|p| match set.contains(p) {
            true => format!("{:<width$}", p.to_string()),
            false => " ".repeat(width),
        });
        let line = format!(
            "  {:<8} {}",
            format!("{}({place})", sets.name),
            cells.collect::<Vec<_>>().join(" ")
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| !">|*#".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{word}'") }
}

fn metric(metric: konklave_algorithms::Metric) -> String {
    serde_json::to_value(metric)
        .ok()
        .and_then(|v| v.as_str().map(|s| s.replace('_', " ")))
        .unwrap_or_default()
}

fn joined<T: ToString>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(ToString::to_string).collect();
    if items.is_empty() { "nothing".into() } else { items.join(", ") }
}

fn shapes(sheet: &DataSheet) -> String {
    sheet.topologies.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or a ")
}

fn as_json(entry: &Entry) -> Value {
    let sheet = &entry.sheet;
    json!({
        "schema": "konklave.sheet/1",
        "name": entry.name(),
        "problem": entry.problem.name,
        "title": sheet.title,
        "idea": sheet.idea,
        "source": sheet.source,
        "topologies": sheet.topologies.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "assumes": sheet.assumes,
        "guarantees": sheet.guarantees,
        "winner_rule": sheet.winner,
        "fence": sheet.fence,
        "costs": sheet.costs.iter().map(|c| json!({
            "metric": c.metric, "formula": c.formula, "when": c.when,
        })).collect::<Vec<_>>(),
        "switches": sheet.switches.iter().map(|s| json!({
            "name": s.name, "values": s.values, "what": s.what,
        })).collect::<Vec<_>>(),
        "mistakes": sheet.mistakes.iter().map(|m| json!({
            "name": m.name, "what": m.what, "breaks": m.breaks, "caught_by": m.caught_by,
            "shown_by": m.shown_by(sheet.name),
        })).collect::<Vec<_>>(),
    })
}

fn row(entry: &Entry) -> Vec<(String, String)> {
    let sheet = &entry.sheet;
    [
        ("name", entry.name()),
        ("title", sheet.title.to_owned()),
        ("topologies", shapes(sheet)),
        ("assumes", joined(sheet.assumes)),
        ("guarantees", joined(sheet.guarantees)),
        ("messages", sheet.costs.first().map_or(String::new(), |c| c.formula.to_owned())),
        ("source", sheet.source.to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}
