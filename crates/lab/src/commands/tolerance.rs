//! `tolerance`: the effect of a crash or a lost message on a lock.

use std::io::{self, Write};

use konklave_catalog::tolerance::{Row, markdown, table, tolerance};
use konklave_catalog::{Catalog, Entry, Error, program};

use crate::Done;
use crate::args::ToleranceArgs;
use crate::output::{TableFormat, print_csv, print_jsonl, print_pretty_json, stdout};

pub(crate) fn tolerate(catalog: &'static Catalog, args: &ToleranceArgs) -> Done {
    if !(1..=64).contains(&args.nodes) {
        let message = format!("--nodes {}: must be between 1 and 64", args.nodes);
        return Err(Error::Usage(message).into());
    }
    let locks = chosen(catalog, args.what.as_deref())?;
    if !args.set.is_empty() && locks.len() > 1 {
        return Err(Error::Usage("--set: name the lock whose variant is meant".into()).into());
    }
    let mut rows = Vec::new();
    for entry in locks {
        rows.extend(tolerance(entry, args.nodes, &args.set)?);
    }
    match args.format {
        TableFormat::Text => say(&text(&rows))?,
        TableFormat::Markdown => say(&markdown(&rows))?,
        TableFormat::Json => print_pretty_json(&rows)?,
        TableFormat::Jsonl => rows.iter().try_for_each(print_jsonl)?,
        TableFormat::Csv => print_csv(&rows.iter().map(csv).collect::<Vec<_>>())?,
    }
    Ok(0)
}

fn say(text: &str) -> io::Result<()> {
    let mut out = stdout();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// The chosen locks: all, or one.
fn chosen<'a>(catalog: &'a Catalog, what: Option<&str>) -> Result<Vec<&'a Entry>, Error> {
    match what {
        None => Ok(catalog.entries().iter().filter(|entry| entry.problem.takes_turns).collect()),
        Some(name) if catalog.problems().iter().any(|p| p.name == name && p.takes_turns) => {
            Ok(catalog.of_problem(name))
        }
        Some(name) => match catalog.find(name)? {
            lock if lock.problem.takes_turns => Ok(vec![lock]),
            other => Err(Error::Usage(format!(
                "{} is not a lock; `{} list mutex` shows the locks",
                other.name(),
                program()
            ))),
        },
    }
}

/// The table, and the command that repeats the worst run of each fault.
fn text(rows: &[Row]) -> String {
    let mut text = table(rows);
    let examples = rows.iter().filter_map(|row| {
        row.example
            .as_ref()
            .map(|command| format!("  {}: {}\n    {command}\n", row.fault, row.served))
    });
    let examples: String = examples.collect();
    let one = rows.windows(2).all(|pair| pair[0].algorithm == pair[1].algorithm);
    if one && !examples.is_empty() {
        text += "\nThe worst runs:\n";
        text += &examples;
    }
    text
}

fn csv(row: &Row) -> Vec<(String, String)> {
    [
        ("algorithm", row.algorithm.clone()),
        ("fault", row.fault.to_string()),
        ("served", row.served.to_string()),
        ("waiting", row.waiting.to_string()),
        ("survivors", row.survivors.to_string()),
        ("harmless", row.harmless.to_string()),
        ("tried", row.tried.to_string()),
        ("safe", row.safe.to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}
