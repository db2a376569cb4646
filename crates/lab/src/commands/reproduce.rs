//! `reproduce`: measures the figures of the sources again.
//!
//! Each statement names the command that measures it. This program runs the command, and a reader can
//! repeat it.

mod statements;

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use indicatif::ProgressBar;
use konklave_catalog::{Error, program};
use serde::Serialize;
use serde_json::Value;

use self::statements::{chapters, statements};
use crate::Done;
use crate::args::ReproduceArgs;
use crate::output::{
    Colour, TableFormat, heading, paint, print_csv, print_jsonl, print_pretty_json, stdout,
};

/// A statement of the sources, and the measurement that confirms or refutes it.
struct Statement {
    /// The chapter or algorithm.
    chapter: &'static str,
    /// A short name, for files.
    name: &'static str,
    /// The statement.
    says: &'static str,
    /// The command that measures it.
    command: &'static str,
    /// The JSON pointer of the figure in the report.
    reads: &'static str,
    /// The figure on which the verdict rests.
    finds: &'static str,
    /// Whether the statement is right.
    verdict: Verdict,
    /// A correction or an explanation.
    remark: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    /// The statement is right.
    Holds,
    /// The statement is right only under conditions that it does not name.
    Imprecise,
    /// The statement is wrong.
    Wrong,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Imprecise => "imprecise",
            Self::Wrong => "wrong",
        }
    }
}

/// A measured statement.
#[derive(Serialize)]
struct Row {
    chapter: &'static str,
    name: &'static str,
    says: &'static str,
    measured: String,
    verdict: Verdict,
    /// Whether the figure is the one that the verdict rests on.
    confirmed: bool,
    remark: &'static str,
    command: String,
}

pub(crate) fn reproduce(args: &ReproduceArgs) -> Done {
    let word = args.what.as_deref().unwrap_or_default().to_lowercase();
    let fits = |statement: &&Statement| {
        statement.name.contains(&word) || statement.chapter.to_lowercase().contains(&word)
    };
    let chosen: Vec<&'static Statement> = statements().into_iter().filter(fits).collect();
    if chosen.is_empty() {
        let known = chapters().join(", ");
        let what = args.what.as_deref().unwrap_or_default();
        return Err(Error::Usage(format!(
            "no statement matches `{what}`; the chapters are {known}"
        ))
        .into());
    }
    if let Some(folder) = &args.output {
        let fail = |why| Error::Unwritable { file: folder.display().to_string(), why };
        fs::create_dir_all(folder).map_err(fail)?;
        let probe = folder.join(".konklave.part");
        fs::write(&probe, b"").and_then(|()| fs::remove_file(&probe)).map_err(fail)?;
    }
    let rows = measure(&chosen, args.output.as_deref())?;
    match args.format {
        TableFormat::Text => print(&rows)?,
        TableFormat::Markdown => print_markdown(&rows)?,
        TableFormat::Json => print_pretty_json(&rows)?,
        TableFormat::Jsonl => rows.iter().try_for_each(print_jsonl)?,
        TableFormat::Csv => print_csv(&rows.iter().map(csv).collect::<Vec<_>>())?,
    }
    if let Some(folder) = &args.output {
        tell!("wrote recordings and pictures to {}", folder.display());
    }
    Ok(if rows.iter().all(|row| row.confirmed) { 0 } else { 1 })
}

/// Runs all commands on all cores; rows stand in the order of the statements.
fn measure(statements: &[&'static Statement], folder: Option<&Path>) -> Result<Vec<Row>, Error> {
    let bar = if io::stderr().is_terminal() {
        ProgressBar::new(statements.len() as u64)
    } else {
        ProgressBar::hidden()
    };
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(statement) = statements.get(i) else { break };
                    let row = measure_one(statement, folder);
                    bar.inc(1);
                    rows.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((i, row));
                }
            });
        }
    });
    bar.finish_and_clear();
    let mut rows = rows.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    rows.sort_by_key(|(i, _)| *i);
    rows.into_iter().map(|(_, row)| row).collect()
}

fn measure_one(statement: &'static Statement, folder: Option<&Path>) -> Result<Row, Error> {
    let failed =
        |why: String| Error::Unavailable(format!("{} {}: {why}", program(), statement.command));
    let executable = std::env::current_exe().map_err(|e| failed(e.to_string()))?;
    let mut command = Command::new(executable);
    command.args(statement.command.split_whitespace()).args(["--format", "json"]);
    let is_drawn = matches!(statement.command.split_whitespace().next(), Some("run" | "check"));
    if let Some(folder) = folder.filter(|_| is_drawn) {
        command.arg("--svg").arg(folder.join(format!("{}.svg", statement.name)));
        command.arg("--record").arg(folder.join(format!("{}.run", statement.name)));
    }
    let output = command.output().map_err(|e| failed(e.to_string()))?;
    let report: Value = serde_json::from_slice(&output.stdout)
        .map_err(|_| failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))?;
    let measured = match report.pointer(statement.reads) {
        None | Some(Value::Null) => "none".to_owned(),
        Some(Value::String(word)) => word.clone(),
        Some(Value::Number(x)) => x.as_f64().map_or(x.to_string(), super::run::number),
        Some(other) => other.to_string(),
    };
    Ok(Row {
        chapter: statement.chapter,
        name: statement.name,
        says: statement.says,
        confirmed: measured == statement.finds,
        measured,
        verdict: statement.verdict,
        remark: statement.remark,
        command: format!("{} {}", program(), typed(statement.command)),
    })
}

/// A command for a shell, with special characters in quotes.
fn typed(command: &str) -> String {
    let word = |word: &str| match word.contains(['>', '#', '|', ';']) {
        true => format!("'{word}'"),
        false => word.to_owned(),
    };
    command.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

/// The measured value for a table.
fn shown(row: &Row) -> String {
    match row.command.split_whitespace().nth(1) {
        Some("check") if row.measured != "exhausted" && row.measured.parse::<f64>().is_err() => {
            format!("violated: {}", row.measured)
        }
        _ => row.measured.clone(),
    }
}

fn print(rows: &[Row]) -> io::Result<()> {
    let mut out = stdout();
    let mut chapter = "";
    for row in rows {
        if row.chapter != chapter {
            chapter = row.chapter;
            let gap = if row.name == rows[0].name { "" } else { "\n" };
            writeln!(out, "{gap}{}", heading(chapter))?;
        }
        let verdict = match row.verdict {
            Verdict::Holds => paint("holds", Colour::Green),
            Verdict::Imprecise => paint("imprecise", Colour::Yellow),
            Verdict::Wrong => paint("wrong", Colour::Red),
        };
        writeln!(out, "  {} → {} → {verdict}", row.says, shown(row))?;
        if !row.confirmed {
            let changed = "the measured figure differs from the one that the verdict rests on";
            writeln!(out, "      {}", paint(changed, Colour::Red))?;
        }
        if !row.remark.is_empty() {
            writeln!(out, "      {}", row.remark)?;
        }
        writeln!(out, "      {}", row.command)?;
    }
    let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    writeln!(
        out,
        "\n{} statements: {} hold, {} are imprecise, {} are wrong",
        rows.len(),
        count(Verdict::Holds),
        count(Verdict::Imprecise),
        count(Verdict::Wrong)
    )?;
    out.flush()
}

fn print_markdown(rows: &[Row]) -> io::Result<()> {
    let mut out = stdout();
    writeln!(
        out,
        "| of | the sources say | measured | verdict | confirmed | by |\n|---|---|---|---|---|---|"
    )?;
    for row in rows {
        let remark =
            if row.remark.is_empty() { String::new() } else { format!(": {}", row.remark) };
        writeln!(
            out,
            "| {} | {} | {} | {}{remark} | {} | `{}` |",
            row.chapter,
            cell(row.says),
            cell(&shown(row)),
            row.verdict.name(),
            if row.confirmed { "yes" } else { "no" },
            cell(&row.command)
        )?;
    }
    out.flush()
}

/// A text for a cell of a Markdown table.
fn cell(words: &str) -> String {
    words.replace('|', "\\|")
}

fn csv(row: &Row) -> Vec<(String, String)> {
    [
        ("chapter", row.chapter.to_owned()),
        ("name", row.name.to_owned()),
        ("says", row.says.to_owned()),
        ("measured", row.measured.clone()),
        ("verdict", row.verdict.name().to_owned()),
        ("confirmed", row.confirmed.to_string()),
        ("remark", row.remark.to_owned()),
        ("command", row.command.clone()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_can_name_files() {
        let mut names: Vec<&str> = statements().iter().map(|statement| statement.name).collect();
        names.sort_unstable();
        let before = names.len();
        names.dedup();
        assert_eq!(names.len(), before);
        assert!(names.iter().all(|n| n.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')));
    }
}
