//! `reproduce`: measures the claims of the sources.
//!
//! Each statement has cases, and each case names the commands that measure it, so that a reader can repeat them.
//! The verdict follows from the reports of these commands.

mod claims;
mod found;
mod measure;
mod statements;

use std::fs;
use std::io::{self, Write};

use konklave_catalog::Error;
use serde::Serialize;

use self::claims::PLACES;
use self::found::Found;
use self::measure::{Case, Row, measure};
use self::statements::{chapters, statements};
use crate::Done;
use crate::args::ReproduceArgs;
use crate::output::{
    Colour, TableFormat, heading, paint, print_csv, print_jsonl, print_pretty_json, stdout,
};

/// A statement of the sources, and the measurements that confirm or refute it. A statement from elsewhere
/// stands in parentheses.
struct Statement {
    /// The chapter or algorithm.
    chapter: &'static str,
    /// A short name, for files.
    name: &'static str,
    /// The statement.
    says: &'static str,
    /// The cases in which it is measured.
    shown: &'static [Shown],
    /// A correction or an explanation.
    remark: &'static str,
}

/// One case of a statement.
struct Shown {
    /// The case, and what is measured. In parentheses, it is for comparison and does not count.
    case: &'static str,
    /// The commands, and what is read from the report of each.
    asks: &'static [(&'static str, &'static str)],
    /// Whether the statement is right in this case.
    holds: fn(&Found) -> bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    /// The statement is right in every case.
    Confirmed,
    /// The statement is right in some cases: under conditions that it does not name.
    Qualified,
    /// The statement is right in no case.
    Refuted,
}

impl Verdict {
    fn of(cases: impl Iterator<Item = bool>) -> Self {
        let (right, wrong): (Vec<bool>, Vec<bool>) = cases.partition(|holds| *holds);
        match (right.is_empty(), wrong.is_empty()) {
            (false, true) => Self::Confirmed,
            (false, false) => Self::Qualified,
            (true, _) => Self::Refuted,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Qualified => "qualified",
            Self::Refuted => "refuted",
        }
    }

    fn painted(self) -> String {
        let colour = match self {
            Self::Confirmed => Colour::Green,
            Self::Qualified => Colour::Yellow,
            Self::Refuted => Colour::Red,
        };
        paint(self.name(), colour)
    }
}

pub(crate) fn reproduce(args: &ReproduceArgs) -> Done {
    let word = args.what.as_deref().unwrap_or_default().to_lowercase();
    let fits = |statement: &&Statement| {
        statement.name.contains(&word) || statement.chapter.to_lowercase().contains(&word)
    };
    let chosen: Vec<&'static Statement> = statements().filter(fits).collect();
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
        TableFormat::Text => print(&rows, args.what.is_none())?,
        TableFormat::Markdown => print_markdown(&rows)?,
        TableFormat::Json => print_pretty_json(&rows)?,
        TableFormat::Jsonl => rows.iter().try_for_each(print_jsonl)?,
        TableFormat::Csv => {
            let cases = rows.iter().flat_map(|row| row.cases.iter().map(|case| csv(row, case)));
            print_csv(&cases.collect::<Vec<_>>())?;
        }
    }
    if let Some(folder) = &args.output {
        tell!("wrote recordings and pictures to {}", folder.display());
    }
    Ok(0)
}

fn print(rows: &[Row], whole: bool) -> io::Result<()> {
    let mut out = stdout();
    let mut chapter = "";
    for row in rows {
        if row.chapter != chapter {
            chapter = row.chapter;
            let gap = if row.name == rows[0].name { "" } else { "\n" };
            writeln!(out, "{gap}{}", heading(chapter))?;
        }
        writeln!(out, "  {} → {}", row.says, row.verdict.painted())?;
        for case in &row.cases {
            writeln!(out, "      {}", case.sentence())?;
            for command in &case.commands {
                writeln!(out, "        {command}")?;
            }
        }
        if !row.remark.is_empty() {
            writeln!(out, "      {}", row.remark)?;
        }
    }
    writeln!(out, "\n{}", count(rows))?;
    if whole {
        writeln!(out, "{}", coverage())?;
    }
    out.flush()
}

/// How many statements of the sources have each verdict; those in parentheses are counted apart.
fn count(rows: &[Row]) -> String {
    let (ours, theirs): (Vec<&Row>, Vec<&Row>) =
        rows.iter().partition(|row| row.says.starts_with('('));
    let with = |verdict| theirs.iter().filter(|row| row.verdict == verdict).count();
    let [confirmed, qualified, refuted] =
        [Verdict::Confirmed, Verdict::Qualified, Verdict::Refuted].map(with);
    let statements = if theirs.len() == 1 { "statement" } else { "statements" };
    let beside = match ours.len() {
        0 => String::new(),
        k => format!("; in parentheses, {k} more from other literature"),
    };
    format!(
        "{} {statements} of the sources: {confirmed} confirmed, {qualified} qualified, {refuted} refuted{beside}",
        theirs.len()
    )
}

/// The number of claims of the sources, and the claims that no statement measures.
fn coverage() -> String {
    let claims = || PLACES.iter().flat_map(|place| place.claims.iter().map(|c| (place.at, c)));
    let gaps: Vec<String> = claims()
        .filter(|(_, (_, by))| by.is_empty())
        .map(|(at, (says, _))| format!("\n  {at}: {says}"))
        .collect();
    let (count, places) = (claims().count(), PLACES.len());
    let all = format!("{count} claims at {places} places of the five sources");
    match gaps.len() {
        0 => format!("{all}, none without a statement"),
        k => format!("{all}, {k} without a statement:{}", gaps.concat()),
    }
}

fn print_markdown(rows: &[Row]) -> io::Result<()> {
    let mut out = stdout();
    writeln!(out, "| of | the sources say | verdict | measured | by |\n|---|---|---|---|---|")?;
    for row in rows {
        let remark =
            if row.remark.is_empty() { String::new() } else { format!(". {}", row.remark) };
        let measured = row.cases.iter().map(|case| cell(&case.sentence()));
        let mut commands: Vec<&str> = Vec::new();
        for command in row.cases.iter().flat_map(|case| &case.commands) {
            if !commands.contains(&command.as_str()) {
                commands.push(command);
            }
        }
        let commands = commands.iter().map(|command| format!("`{}`", cell(command)));
        writeln!(
            out,
            "| {} | {} | {}{} | {} | {} |",
            row.chapter,
            cell(row.says),
            row.verdict.name(),
            cell(&remark),
            measured.collect::<Vec<_>>().join("<br>"),
            commands.collect::<Vec<_>>().join("<br>")
        )?;
    }
    out.flush()
}

/// A text for a cell of a Markdown table.
fn cell(words: &str) -> String {
    words.replace('|', "\\|")
}

fn csv(row: &Row, case: &Case) -> Vec<(String, String)> {
    [
        ("chapter", row.chapter.to_owned()),
        ("name", row.name.to_owned()),
        ("says", row.says.to_owned()),
        ("places", row.places.join("; ")),
        ("verdict", row.verdict.name().to_owned()),
        ("case", case.case.to_owned()),
        ("measured", case.measured.clone()),
        ("holds", case.holds.to_string()),
        ("remark", row.remark.to_owned()),
        ("commands", case.commands.join("; ")),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<&'static str> {
        statements().map(|statement| statement.name).collect()
    }

    #[test]
    fn names_are_unique_and_can_name_files() {
        let mut names = names();
        names.sort_unstable();
        let before = names.len();
        names.dedup();
        assert_eq!(names.len(), before);
        assert!(names.iter().all(|n| n.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')));
    }

    #[test]
    fn every_claim_has_statements_that_exist_and_every_statement_a_claim() {
        let names = names();
        let claims = || PLACES.iter().flat_map(|place| place.claims.iter().map(|c| (place.at, c)));
        for (at, (says, by)) in claims() {
            assert!(!by.is_empty(), "{at}: {says} has no statement");
            for by in *by {
                assert!(names.contains(by), "{at}: there is no statement `{by}`");
            }
        }
        for statement in statements().filter(|statement| !statement.says.starts_with('(')) {
            let is_cited = claims().any(|(_, (_, by))| by.contains(&statement.name));
            assert!(is_cited, "{}: no place of the sources says it", statement.name);
            let counts = statement.shown.iter().any(|shown| !shown.case.starts_with('('));
            assert!(counts, "{}: no case counts", statement.name);
            let is_named = |shown: &Shown| !shown.case.is_empty();
            assert!(statement.shown.iter().all(is_named), "{}: a case has no name", statement.name);
        }
    }

    #[test]
    fn verdict_is_qualified_if_cases_differ() {
        let verdict = |cases: &[bool]| Verdict::of(cases.iter().copied());
        assert_eq!(verdict(&[true, true]), Verdict::Confirmed);
        assert_eq!(verdict(&[true, false]), Verdict::Qualified);
        assert_eq!(verdict(&[false]), Verdict::Refuted);
    }
}
