//! `costs`: measured against formula, over n.

mod locks;
mod rings;

use std::io::{self, Write};

use konklave_catalog::{Catalog, CostRow, Entry, Error, Verdict};

use super::run::number;
use crate::Done;
use crate::args::CostsArgs;
use crate::output::{
    Colour, TableFormat, heading, paint, print_csv, print_jsonl, print_pretty_json, stdout,
};

/// The default sizes.
const DEFAULT: [usize; 6] = [1, 2, 3, 5, 10, 20];

pub(crate) fn costs(catalog: &'static Catalog, args: &CostsArgs) -> Done {
    if let Some(n) = args.nodes.iter().find(|&&n| n == 0 || n > 1_000_000) {
        let message = format!("--nodes {n}: must be between 1 and 1000000");
        return Err(Error::Usage(message).into());
    }
    let chosen = chosen(catalog, args.what.as_deref())?;
    if args.table {
        return locks::table(&chosen, args);
    }
    if args.matrix {
        return locks::matrix(&chosen, args);
    }
    if args.enumerate {
        return rings::enumerate(&chosen, args);
    }
    let mut rows = Vec::new();
    for entry in chosen {
        rows.extend(entry.costs(&args.nodes, args.seed)?);
    }
    let holds = rows.iter().all(CostRow::holds);
    match args.format {
        TableFormat::Text => print(&rows)?,
        TableFormat::Markdown => {
            let message = "--format markdown: works only with --table, --matrix or --enumerate";
            return Err(Error::Usage(message.into()).into());
        }
        TableFormat::Json => print_pretty_json(&rows)?,
        TableFormat::Jsonl => rows.iter().try_for_each(print_jsonl)?,
        TableFormat::Csv => print_csv(&rows.iter().map(csv).collect::<Vec<_>>())?,
    }
    Ok(if holds { 0 } else { 1 })
}

pub(super) fn chosen<'a>(
    catalog: &'a Catalog,
    what: Option<&str>,
) -> Result<Vec<&'a Entry>, Error> {
    let Some(what) = what else { return Ok(catalog.entries().iter().collect()) };
    let problem = catalog.of_problem(what);
    if problem.is_empty() { Ok(vec![catalog.find(what)?]) } else { Ok(problem) }
}

fn print(rows: &[CostRow]) -> io::Result<()> {
    let mut out = stdout();
    let mut algorithm = "";
    for row in rows {
        if row.algorithm != algorithm {
            if !algorithm.is_empty() {
                writeln!(out)?;
            }
            algorithm = &row.algorithm;
            writeln!(out, "{}", heading(algorithm))?;
        }
        let mut facts = Vec::new();
        for bound in &row.bounds {
            let Some(measured) = bound.measured else { continue };
            let Some((sign, limit, word)) = bound.standing() else { continue };
            // A run that was cut off shows only the bounds that it exceeds.
            if row.cut_off_after.is_some() && sign != ">" {
                continue;
            }
            let wrong = match bound.holds {
                Some(false) => paint(&format!(" {}", word.to_uppercase()), Colour::Red),
                _ => String::new(),
            };
            facts.push(format!(
                "{} {} {sign} {}{wrong}",
                bound.name(),
                number(measured),
                number(limit)
            ));
        }
        match row.cut_off_after {
            Some(steps) => {
                facts
                    .push(paint(&format!("too long, cut off after {steps} steps"), Colour::Yellow));
            }
            None if row.verdict != Verdict::Ok => {
                facts.push(paint(row.verdict.name(), Colour::Red));
            }
            None => {}
        }
        writeln!(
            out,
            "  n = {:<7} {:<26} {:>9} messages   {}",
            row.nodes,
            row.case,
            row.messages,
            facts.join(" · ")
        )?;
    }
    out.flush()
}

fn csv(row: &CostRow) -> Vec<(String, String)> {
    let optional = |x: Option<f64>| x.map_or(String::new(), number);
    let unknown = row.cut_off_after.is_some() && row.holds();
    let tightest = row.bounds.iter().find(|b| b.limit.is_some());
    [
        ("algorithm", row.algorithm.clone()),
        ("nodes", row.nodes.to_string()),
        ("case", row.case.to_owned()),
        ("verdict", row.verdict.name().to_owned()),
        ("messages", row.messages.to_string()),
        ("entries", row.entries.map_or(String::new(), |e| e.to_string())),
        ("sync_delay", optional(row.sync_delay)),
        ("wait", optional(row.wait)),
        ("response", optional(row.response)),
        ("time", number(row.time)),
        ("formula", tightest.map_or(String::new(), |b| b.formula.clone())),
        ("limit", optional(tightest.and_then(|b| b.limit))),
        ("holds", if unknown { String::new() } else { row.holds().to_string() }),
        ("cut_off_after", row.cut_off_after.map_or(String::new(), |steps| steps.to_string())),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}
