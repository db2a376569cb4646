//! `reproduce`: every number of the sources, measured again.
//!
//! Each claim names the command that shows it. It is run by this very program, so whoever doubts a
//! line can type it.

mod claims;

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use indicatif::ProgressBar;
use konklave_catalog::Error;
use serde::Serialize;
use serde_json::Value;

use self::claims::{chapters, claims};
use crate::Done;
use crate::args::ReproduceArgs;
use crate::output::{
    Colour, TableFormat, paint, print_csv, print_jsonl, print_pretty_json, stdout,
};

/// Something that the sources say.
struct Claim {
    /// Of which algorithm they speak.
    chapter: &'static str,
    /// A short name, for files.
    name: &'static str,
    /// What they say.
    says: &'static str,
    /// The command that shows whether it is so.
    command: &'static str,
    /// Where its report has the figure.
    reads: &'static str,
    /// The figure, as it was when the verdict was given.
    finds: &'static str,
    /// Whether they are right.
    verdict: Verdict,
    /// What should be said instead, or besides.
    remark: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    /// It is so.
    Holds,
    /// It is so under conditions that they do not say.
    Imprecise,
    /// It is not so.
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

/// A claim that was looked at.
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
    let fits =
        |claim: &&Claim| claim.name.contains(&word) || claim.chapter.to_lowercase().contains(&word);
    let chosen: Vec<&'static Claim> = claims().into_iter().filter(fits).collect();
    if chosen.is_empty() {
        let known = chapters().join(", ");
        let what = args.what.as_deref().unwrap_or_default();
        return Err(Error::Usage(format!("nothing in the sources fits `{what}`: {known}")).into());
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
        tell!("konklave: recordings and pictures are in {}", folder.display());
    }
    Ok(if rows.iter().all(|row| row.confirmed) { 0 } else { 1 })
}

/// Runs all commands, on all cores, in order.
fn measure(claims: &[&'static Claim], folder: Option<&Path>) -> Result<Vec<Row>, Error> {
    let bar = if io::stderr().is_terminal() {
        ProgressBar::new(claims.len() as u64)
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
                    let Some(claim) = claims.get(i) else { break };
                    let row = look(claim, folder);
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

fn look(claim: &'static Claim, folder: Option<&Path>) -> Result<Row, Error> {
    let failed = |why: String| Error::Unavailable(format!("konklave {}: {why}", claim.command));
    let program = std::env::current_exe().map_err(|e| failed(e.to_string()))?;
    let mut command = Command::new(program);
    command.args(claim.command.split_whitespace()).args(["--format", "json"]);
    let is_drawn = matches!(claim.command.split_whitespace().next(), Some("run" | "check"));
    if let Some(folder) = folder.filter(|_| is_drawn) {
        command.arg("--svg").arg(folder.join(format!("{}.svg", claim.name)));
        command.arg("--record").arg(folder.join(format!("{}.run", claim.name)));
    }
    let output = command.output().map_err(|e| failed(e.to_string()))?;
    let report: Value = serde_json::from_slice(&output.stdout)
        .map_err(|_| failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))?;
    let measured = match report.pointer(claim.reads) {
        None | Some(Value::Null) => "none".to_owned(),
        Some(Value::String(word)) => word.clone(),
        Some(Value::Number(x)) => x.as_f64().map_or(x.to_string(), super::run::number),
        Some(other) => other.to_string(),
    };
    Ok(Row {
        chapter: claim.chapter,
        name: claim.name,
        says: claim.says,
        confirmed: measured == claim.finds,
        measured,
        verdict: claim.verdict,
        remark: claim.remark,
        command: format!("konklave {}", typed(claim.command)),
    })
}

/// A command as one types it: `>` and `#` mean something to a shell.
fn typed(command: &str) -> String {
    let word = |word: &str| match word.contains(['>', '#', '|', ';']) {
        true => format!("'{word}'"),
        false => word.to_owned(),
    };
    command.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

/// What the command showed, in words.
fn shown(row: &Row) -> String {
    match row.command.split_whitespace().nth(1) {
        Some("check") if row.measured != "exhausted" && row.measured.parse::<f64>().is_err() => {
            format!("broken: {}", row.measured)
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
            writeln!(out, "{}{chapter}", if row.name == rows[0].name { "" } else { "\n" })?;
        }
        let verdict = match row.verdict {
            Verdict::Holds => paint("holds", Colour::Green),
            Verdict::Imprecise => paint("imprecise", Colour::Yellow),
            Verdict::Wrong => paint("wrong", Colour::Red),
        };
        writeln!(out, "  {} → {} → {verdict}", row.says, shown(row))?;
        if !row.confirmed {
            let changed = "the verdict rests on another figure";
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
        "\n{} claims: {} hold, {} are imprecise, {} are wrong",
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

/// What may stand in a cell of a table.
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
    fn names_are_unique_and_fit_for_files() {
        let mut names: Vec<&str> = claims().iter().map(|claim| claim.name).collect();
        names.sort_unstable();
        let before = names.len();
        names.dedup();
        assert_eq!(names.len(), before);
        assert!(names.iter().all(|n| n.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')));
    }
}
