//! Results: one JSON object a line, in the order of the cases, each with a check sum.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, Write};

use konklave_catalog::RunReport;
use konklave_tables::Table;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::StudyError;
use crate::seal;
use crate::study::{Case, Shard};

const SCHEMA: &str = "konklave.sweep/2";

/// The first line of a results file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Heading {
    /// `konklave.sweep/2`.
    pub schema: String,
    /// The hash of the study.
    pub study: String,
    /// How many cases the study has.
    pub cases: u64,
    /// Which shard this is, from 0.
    pub shard: u64,
    /// Of how many.
    pub shards: u64,
}

impl Heading {
    /// The heading of a shard of a study.
    pub fn new(study: String, cases: u64, shard: Shard) -> Self {
        Self { schema: SCHEMA.to_owned(), study, cases, shard: shard.index, shards: shard.of }
    }

    /// Writes it, as the first line of a results file.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        seal::write(out, "", self)
    }
}

/// The result of one run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The number of the case.
    pub case: u64,
    /// The algorithm.
    pub algorithm: String,
    /// The varied parameters.
    pub parameters: BTreeMap<String, Value>,
    /// The seed.
    pub seed: u64,
    /// ok, violated, stuck or unfinished.
    pub verdict: String,
    /// The measured values, by name.
    pub measures: BTreeMap<String, f64>,
    /// The value of each formula, by metric.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub formulas: BTreeMap<String, (String, f64)>,
}

impl Row {
    /// The row of a case that was run.
    pub fn new(case: &Case, report: &RunReport) -> Self {
        let mut measures = BTreeMap::from([
            ("messages".to_owned(), report.messages.sent as f64),
            ("lost".to_owned(), report.messages.lost as f64),
            ("time".to_owned(), report.time),
            ("violations".to_owned(), report.violations.len() as f64),
        ]);
        for (_, values) in &report.problem {
            for (name, value) in values.as_object().into_iter().flatten() {
                match value {
                    Value::Number(x) => {
                        measures.insert(name.clone(), x.as_f64().unwrap_or(f64::NAN));
                    }
                    Value::Object(spread) => {
                        for (part, value) in spread {
                            if let Some(x) = value.as_f64() {
                                measures.insert(format!("{name}.{part}"), x);
                            }
                        }
                    }
                    Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) => {}
                }
            }
        }
        let mut formulas = BTreeMap::new();
        for bound in report.bounds.iter().rev() {
            if let (Some(limit), Ok(Value::String(metric))) =
                (bound.limit, serde_json::to_value(bound.metric))
            {
                formulas.insert(metric, (bound.formula.clone(), limit));
            }
        }
        Self {
            case: case.number,
            algorithm: case.entry.name(),
            parameters: case.parameters.clone(),
            seed: report.seed,
            verdict: report.verdict.name().to_owned(),
            measures,
            formulas,
        }
    }
}

/// A results file, as far as it goes.
#[derive(Clone, PartialEq, Debug)]
pub struct Results {
    /// Its first line.
    pub heading: Heading,
    /// Its rows.
    pub rows: Vec<Row>,
    /// Whether its last line was cut off, and so left out.
    pub cut: bool,
}

impl Results {
    /// Reads results; a last line that was cut off is left out, and that is said. A line that is
    /// whole, but not as it was written, is an error.
    pub fn read(source: impl BufRead, file: &str) -> Result<Self, StudyError> {
        let wrong = |line: usize, why: String| StudyError::Data(format!("{file}:{line}: {why}"));
        let mut lines = source.split(b'\n').enumerate().peekable();
        let first = lines.next().map(|(_, line)| line);
        let first = first
            .transpose()
            .map_err(|e| wrong(1, e.to_string()))?
            .ok_or_else(|| wrong(1, "the file is empty".into()))?;
        let heading: Heading = serde_json::from_slice(&first)
            .map_err(|e| wrong(1, format!("not the heading of a result file: {e}")))?;
        if heading.schema != SCHEMA {
            return Err(wrong(1, format!("schema {} is not {SCHEMA}", heading.schema)));
        }
        if !seal::is_whole(&first, "") {
            let why = "the heading was altered: its check sum differs";
            return Err(wrong(1, why.into()));
        }
        let (mut rows, mut cut) = (Vec::new(), false);
        while let Some((i, line)) = lines.next() {
            let line = line.map_err(|e| wrong(i + 1, e.to_string()))?;
            if line.is_empty() {
                continue;
            }
            match serde_json::from_slice::<Row>(&line) {
                Ok(row) if seal::is_whole(&line, &heading.study) => rows.push(row),
                Ok(row) => {
                    return Err(wrong(
                        i + 1,
                        format!(
                            "case {} was altered: its check sum differs; \
                             delete the line, and --resume runs the case again",
                            row.case
                        ),
                    ));
                }
                Err(_) if lines.peek().is_none() => cut = true,
                Err(e) => return Err(wrong(i + 1, format!("not a row of results: {e}"))),
            }
        }
        Ok(Self { heading, rows, cut })
    }

    /// The rows as columns, for DuckDB, Polars, pandas or R: one for each parameter and each measure
    /// that any row has.
    pub fn table(&self) -> Table {
        let mut table = Table::default();
        table.about.push(("study".to_owned(), self.heading.study.clone()));
        table.ints("case", self.rows.iter().map(|row| Some(row.case as i64)));
        table.texts("algorithm", self.rows.iter().map(|row| Some(row.algorithm.clone())));
        let keys: BTreeSet<&String> = self.rows.iter().flat_map(|r| r.parameters.keys()).collect();
        for key in keys {
            let values = || self.rows.iter().map(|row| row.parameters.get(key));
            if values().flatten().all(Value::is_number) {
                table.floats(key, values().map(|v| v.and_then(Value::as_f64)));
            } else {
                let word = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
                table.texts(key, values().map(|v| v.map(word)));
            }
        }
        table.ints("seed", self.rows.iter().map(|row| Some(row.seed as i64)));
        table.texts("verdict", self.rows.iter().map(|row| Some(row.verdict.clone())));
        let names: BTreeSet<&String> = self.rows.iter().flat_map(|r| r.measures.keys()).collect();
        for name in names {
            table.floats(name, self.rows.iter().map(|row| row.measures.get(name).copied()));
        }
        let metrics: BTreeSet<&String> = self.rows.iter().flat_map(|r| r.formulas.keys()).collect();
        for metric in metrics {
            let limit = |row: &Row| row.formulas.get(metric).map(|(_, limit)| *limit);
            table.floats(&format!("formula.{metric}"), self.rows.iter().map(limit));
        }
        table
    }

    /// Writes them.
    pub fn write(&self, mut out: impl Write) -> io::Result<()> {
        self.heading.write(&mut out)?;
        let study = &self.heading.study;
        self.rows.iter().try_for_each(|row| seal::write(&mut out, study, row))
    }
}

/// Puts shards of one study together: the same bytes as if it had been run in one piece.
pub fn merge(parts: Vec<(String, Results)>) -> Result<Results, StudyError> {
    let Some((_, first)) = parts.first() else {
        return Err(StudyError::Usage("no results to merge".into()));
    };
    let (study, cases) = (first.heading.study.clone(), first.heading.cases);
    let mut rows: BTreeMap<u64, Row> = BTreeMap::new();
    for (file, part) in &parts {
        if part.heading.study != study {
            let why = "belongs to another study than the first file";
            return Err(StudyError::Data(format!("{file}: {why}")));
        }
        for row in &part.rows {
            if let Some(other) = rows.insert(row.case, row.clone())
                && other != *row
            {
                let why = format!("case {} differs from that in another file", row.case);
                return Err(StudyError::Data(format!("{file}: {why}")));
            }
        }
    }
    if rows.len() as u64 != cases {
        let missing = (0..cases).find(|case| !rows.contains_key(case)).unwrap_or(0);
        return Err(StudyError::Data(format!(
            "only {} of {cases} cases are present; case {missing} is missing: run or resume its shard",
            rows.len()
        )));
    }
    let heading = Heading::new(study, cases, Shard::ALL);
    Ok(Results { heading, rows: rows.into_values().collect(), cut: false })
}
