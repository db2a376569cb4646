//! Runs the commands of statements, and judges their reports.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use indicatif::ProgressBar;
use konklave_catalog::{Error, program};
use serde::Serialize;
use serde_json::{Value, json};

use super::claims::{PLACES, Place};
use super::found::Found;
use super::{Shown, Statement, Verdict};

/// A measured statement.
#[derive(Serialize)]
pub(super) struct Row {
    schema: &'static str,
    pub(super) chapter: &'static str,
    pub(super) name: &'static str,
    pub(super) says: &'static str,
    /// The places of the sources with this statement.
    pub(super) places: Vec<&'static str>,
    pub(super) verdict: Verdict,
    pub(super) remark: &'static str,
    pub(super) cases: Vec<Case>,
}

/// One case of a statement, measured.
#[derive(Serialize)]
pub(super) struct Case {
    pub(super) case: &'static str,
    /// Whether the statement is right in this case.
    pub(super) holds: bool,
    /// The measured values, for people.
    pub(super) measured: String,
    pub(super) commands: Vec<String>,
}

impl Case {
    /// The case, its measured values, and whether they agree with the statement.
    pub(super) fn sentence(&self) -> String {
        let agrees = if self.holds { "agrees" } else { "disagrees" };
        format!("{}: {} → {agrees}", self.case, self.measured)
    }
}

/// Measures all statements on all cores; rows stand in the order of the statements.
pub(super) fn measure(
    statements: &[&'static Statement],
    folder: Option<&Path>,
) -> Result<Vec<Row>, Error> {
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
    let mut figures = Figures { folder, name: statement.name, drawn: 0 };
    let cases: Result<Vec<Case>, Error> =
        statement.shown.iter().map(|shown| shown.measure(&mut figures)).collect();
    let cases = cases?;
    let by_us = |case: &&Case| !case.case.starts_with('(');
    let verdict = Verdict::of(cases.iter().filter(by_us).map(|case| case.holds));
    let says = |place: &&Place| place.claims.iter().any(|(_, by)| by.contains(&statement.name));
    let places = PLACES.iter().filter(says).map(|place| place.at).collect();
    Ok(Row {
        schema: "konklave.reproduce/2",
        chapter: statement.chapter,
        name: statement.name,
        says: statement.says,
        places,
        verdict,
        remark: statement.remark,
        cases,
    })
}

/// The recordings and pictures of a statement.
struct Figures<'a> {
    folder: Option<&'a Path>,
    name: &'a str,
    drawn: usize,
}

impl Figures<'_> {
    /// The options that record and draw the next command.
    fn options(&mut self, command: &str) -> Vec<std::ffi::OsString> {
        let is_drawn = matches!(command.split_whitespace().next(), Some("run" | "check"));
        let Some(folder) = self.folder.filter(|_| is_drawn) else { return Vec::new() };
        self.drawn += 1;
        let name = match self.drawn {
            1 => self.name.to_owned(),
            k => format!("{}-{k}", self.name),
        };
        let file = |extension| folder.join(format!("{name}.{extension}")).into_os_string();
        vec!["--svg".into(), file("svg"), "--record".into(), file("run")]
    }
}

impl Shown {
    fn measure(&self, figures: &mut Figures<'_>) -> Result<Case, Error> {
        let mut found = Found { values: Vec::new(), nodes: f64::NAN };
        let (mut commands, mut measured) = (Vec::new(), Vec::new());
        for (command, reads) in self.asks {
            for command in expanded(command) {
                let report = run(&command, reads, figures)?;
                if let Some(nodes) = report.pointer("/nodes").and_then(Value::as_f64)
                    && found.nodes.is_nan()
                {
                    found.nodes = nodes;
                }
                let value = read(&report, reads);
                measured.push(shown(&value, reads));
                found.values.push(value);
            }
            let typed = format!("{} {}", program(), typed(command));
            if !commands.contains(&typed) {
                commands.push(typed);
            }
        }
        Ok(Case {
            case: self.case,
            holds: (self.holds)(&found),
            measured: joined(&measured),
            commands,
        })
    }
}

/// The command for each value of a range `{a..b}` in it, both included.
fn expanded(command: &str) -> Vec<String> {
    let range = || {
        let (before, rest) = command.split_once('{')?;
        let (range, after) = rest.split_once('}')?;
        let (first, last) = range.split_once("..")?;
        let numbers = first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?;
        Some(numbers.map(|i| format!("{before}{i}{after}")).collect())
    };
    range().unwrap_or_else(|| vec![command.to_owned()])
}

/// The report of a command, as JSON; for `exit`, its exit code alone.
fn run(line: &str, reads: &str, figures: &mut Figures<'_>) -> Result<Value, Error> {
    let failed = |why: String| Error::Unavailable(format!("{} {line}: {why}", program()));
    let program = std::env::current_exe().map_err(|e| failed(e.to_string()))?;
    let mut command = Command::new(program);
    command.args(line.split_whitespace());
    if reads != "exit" {
        command.args(["--format", "json"]).args(figures.options(line));
    }
    let output = command.output().map_err(|e| failed(e.to_string()))?;
    if reads == "exit" {
        return Ok(json!(output.status.code()));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|_| failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

/// The value that a case reads: `exit` or `all`, a JSON pointer, or faults of a table of tolerance, such as
/// `crash idle`, `loss Request` or `faults crash`.
fn read(report: &Value, reads: &str) -> Value {
    match reads.split_once(' ') {
        Some((kind, name)) => {
            let is_meant = |row: &&Value| match kind {
                "faults" => row["fault"].get(name).is_some(),
                _ => row["fault"][kind] == name,
            };
            let rows: Vec<&Value> =
                report.as_array().into_iter().flatten().filter(is_meant).collect();
            let sum = |name: &str| rows.iter().filter_map(|row| row[name].as_u64()).sum::<u64>();
            match rows.is_empty() {
                true => Value::Null,
                false => json!({ "harmless": sum("harmless"), "tried": sum("tried") }),
            }
        }
        None if reads.starts_with('/') => report.pointer(reads).cloned().unwrap_or_default(),
        None => report.clone(),
    }
}

/// A measured value for people. `reads` says which part of a report it is.
fn shown(value: &Value, reads: &str) -> String {
    match (value, reads) {
        (Value::Null, "/property") => "no violation".to_owned(),
        (Value::Null, _) => "none".to_owned(),
        (Value::String(name), "/property") => format!("violation: {name}"),
        (Value::String(word), _) => match word.as_str() {
            "exhausted" => "no violation".to_owned(),
            "violated" => "violation".to_owned(),
            other => other.to_owned(),
        },
        (Value::Number(x), _) => x.as_f64().map_or(x.to_string(), super::super::run::number),
        (Value::Array(items), _) => list(items),
        (Value::Object(fault), _) if fault.contains_key("tried") => {
            format!("{} of {}", fault["harmless"], fault["tried"])
        }
        (Value::Object(counts), _) => {
            let counts = counts.iter().map(|(kind, count)| format!("{count} {kind}"));
            counts.collect::<Vec<_>>().join(", ")
        }
        (Value::Bool(is), _) => if *is { "yes" } else { "no" }.to_owned(),
    }
}

/// A measured list for people: words, the rows of a matrix, or the size of a table.
fn list(items: &[Value]) -> String {
    if items.is_empty() {
        return "none".to_owned();
    }
    if items.iter().any(Value::is_object) {
        return format!("a table of {} rows", items.len());
    }
    let item = |item: &Value| match item {
        Value::Null => "–".to_owned(),
        other => shown(other, ""),
    };
    let separator = if items.iter().any(Value::is_array) { " / " } else { ", " };
    items.iter().map(item).collect::<Vec<_>>().join(separator)
}

/// The measured values of a case for people. A value that all commands gave stands once.
fn joined(values: &[String]) -> String {
    match values {
        [first, rest @ ..] if rest.len() > 1 && rest.iter().all(|value| value == first) => {
            format!("{first} in all {}", values.len())
        }
        _ if values.iter().any(|value| value.contains(", ")) => values.join("; "),
        _ => values.join(", "),
    }
}

/// A command for a shell, with special characters in quotes.
fn typed(command: &str) -> String {
    let word = |word: &str| match word.contains(['>', '#', '|', ';', '{']) {
        true => format!("'{word}'"),
        false => word.to_owned(),
    };
    command.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_measured_value_looks_like_json() {
        assert_eq!(shown(&json!({ "Answer": 6, "Election": 10 }), "/x"), "6 Answer, 10 Election");
        assert_eq!(shown(&json!(["reliable", "fifo"]), "/assumes"), "reliable, fifo");
        assert_eq!(shown(&json!([[null, 1.0], [2.5, null]]), "/x"), "–, 1 / 2.5, –");
        assert_eq!(shown(&json!([]), "/waiting"), "none");
        assert_eq!(shown(&json!({ "harmless": 3, "tried": 4 }), "crash idle"), "3 of 4");
        assert_eq!(shown(&json!("exhausted"), "/verdict"), "no violation");
        assert_eq!(shown(&json!("deadlock"), "/property"), "violation: deadlock");
        assert_eq!(shown(&Value::Null, "/property"), "no violation");
    }

    #[test]
    fn equal_values_stand_once_and_lists_are_told_apart() {
        let values =
            |values: &[&str]| joined(&values.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(values(&["9", "9", "9"]), "9 in all 3");
        assert_eq!(values(&["9", "9"]), "9, 9");
        assert_eq!(values(&["a, b", "c"]), "a, b; c");
    }
}
