//! Results: one JSON object a line, in the order of the cases, each with a check sum.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, Write};

use konklave_catalog::RunReport;
use konklave_tables::Table;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use crate::StudyError;
use crate::seal;
use crate::study::{Case, Shard};

/// Version 3: one random stream for each purpose and node, and every number of a run.
const SCHEMA: &str = "konklave.sweep/3";

/// The first line of a results file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Heading {
    /// `konklave.sweep/3`.
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
    pub measures: BTreeMap<String, Number>,
    /// The value of each formula, by metric.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub formulas: BTreeMap<String, (String, f64)>,
}

impl Row {
    /// The row of a case that was run.
    pub fn new(case: &Case, report: &RunReport) -> Self {
        let mut measures = BTreeMap::from([
            ("messages".to_owned(), report.messages.sent.into()),
            ("lost".to_owned(), report.messages.lost.into()),
            ("steps".to_owned(), report.steps.into()),
            ("violations".to_owned(), report.violations.len().into()),
        ]);
        measures.extend(Number::from_f64(report.time).map(|time| ("time".to_owned(), time)));
        let messages = serde_json::to_value(&report.messages).unwrap_or_default();
        numbers("messages", &messages, &mut measures);
        for measured in report.problem.values() {
            numbers("", measured, &mut measures);
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

impl Row {
    /// The value of a measure.
    pub fn measure(&self, name: &str) -> Option<f64> {
        self.measures.get(name)?.as_f64()
    }
}

/// Values of single nodes are measures of their own in groups of up to this size.
const MOST_NODES: usize = 64;

/// So many moments of a time series are measures of their own.
const MOST_MOMENTS: usize = 1000;

/// Adds every number in `value`, under the names of the keys that lead to it: a list of pairs of a node and its value
/// has the number of the node as such a key, a list of moments their times, and a truth is 1 or 0.
fn numbers(name: &str, value: &Value, all: &mut BTreeMap<String, Number>) {
    let inner = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
    match value {
        Value::Number(x) => drop(all.insert(name.to_owned(), x.clone())),
        Value::Bool(yes) => drop(all.insert(name.to_owned(), u8::from(*yes).into())),
        Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| numbers(&inner(key), value, all));
        }
        Value::Array(moments) if moments.first().is_some_and(|moment| moment["time"].is_f64()) => {
            for moment in moments.iter().take(MOST_MOMENTS).filter_map(Value::as_object) {
                let at = moment.get("time").and_then(Value::as_f64).unwrap_or_default();
                for (key, value) in moment.iter().filter(|(key, _)| *key != "time") {
                    numbers(&inner(&format!("{at}.{key}")), value, all);
                }
            }
        }
        Value::Array(pairs) if pairs.len() <= MOST_NODES => {
            for pair in pairs.iter().filter_map(Value::as_array) {
                if let [node, value @ Value::Number(_)] = &pair[..]
                    && let Some(node) = node.as_u64()
                {
                    numbers(&inner(&node.to_string()), value, all);
                }
            }
        }
        Value::Null | Value::String(_) | Value::Array(_) => {}
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

    /// The rows as columns, for DuckDB, Polars, pandas or R: one for each parameter, each common value of the study
    /// (`base`) and each measure that any row has. SQL takes their names without quotes.
    pub fn table(&self, base: &BTreeMap<String, Value>) -> Table {
        let mut table = Table::default();
        let mut names = Names::default();
        table.about.push(("study".to_owned(), self.heading.study.clone()));
        let rows = &self.rows;
        table.ints(&names.of("case"), rows.iter().map(|row| Some(row.case as i64)));
        table.texts(&names.of("algorithm"), rows.iter().map(|row| Some(row.algorithm.clone())));
        let keys: BTreeSet<&String> =
            rows.iter().flat_map(|r| r.parameters.keys()).chain(base.keys()).collect();
        for key in keys {
            let value = |row: &Row| row.parameters.get(key).or_else(|| base.get(key)).cloned();
            add(&mut table, &names.of(key), rows.iter().map(value).collect());
        }
        table.ints(&names.of("seed"), rows.iter().map(|row| Some(row.seed as i64)));
        table.texts(&names.of("verdict"), rows.iter().map(|row| Some(row.verdict.clone())));
        let measures: BTreeSet<&String> = rows.iter().flat_map(|r| r.measures.keys()).collect();
        for measure in measures {
            let value = |row: &Row| row.measures.get(measure).cloned().map(Value::Number);
            add(&mut table, &names.of(measure), rows.iter().map(value).collect());
        }
        let metrics: BTreeSet<&String> = rows.iter().flat_map(|r| r.formulas.keys()).collect();
        for metric in metrics {
            let limit = |row: &Row| row.formulas.get(metric).map(|(_, limit)| *limit);
            table.floats(&names.of(&format!("formula.{metric}")), rows.iter().map(limit));
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

/// Adds a column of the narrowest type that holds all values.
fn add(table: &mut Table, name: &str, values: Vec<Option<Value>>) {
    let all = |fits: fn(&Value) -> bool| values.iter().flatten().all(fits);
    if all(Value::is_i64) {
        table.ints(name, values.iter().map(|v| v.as_ref()?.as_i64()));
    } else if all(Value::is_number) {
        table.floats(name, values.iter().map(|v| v.as_ref()?.as_f64()));
    } else if all(Value::is_boolean) {
        table.bools(name, values.iter().map(|v| v.as_ref()?.as_bool()));
    } else {
        let word = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
        table.texts(name, values.iter().map(|v| v.as_ref().map(word)));
    }
}

/// Names of columns that SQL takes without quotes: small letters, digits and `_`, and no word of the language.
#[derive(Default)]
struct Names(BTreeSet<String>);

/// Words of SQL that keys and measures are called.
const RESERVED: [&str; 12] = [
    "all", "case", "check", "end", "from", "group", "limit", "load", "order", "set", "table", "to",
];

impl Names {
    /// The name of the column for `key`, which no other column has.
    fn of(&mut self, key: &str) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
        let mut name: String = key.chars().map(plain).collect();
        if name.starts_with(|c: char| c.is_ascii_digit()) {
            name.insert(0, '_');
        }
        while RESERVED.contains(&name.as_str()) || !self.0.insert(name.clone()) {
            name.push('_');
        }
        name
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Study;

    #[test]
    fn every_number_of_a_run_is_a_measure() {
        let value = serde_json::json!({
            "entries": 3, "wait": {"mean": 1.5, "words": "x"}, "open_load": {"saturated": true},
            "entries_per_node": [[0, 2], [7, 1]], "none": null,
            "series": [{"time": 1.0, "waiting": 4}, {"time": 2.5, "waiting": 0}],
        });
        let mut all = BTreeMap::new();
        numbers("", &value, &mut all);
        let text: Vec<String> = all.iter().map(|(name, x)| format!("{name}={x}")).collect();
        assert_eq!(
            text,
            [
                "entries=3",
                "entries_per_node.0=2",
                "entries_per_node.7=1",
                "open_load.saturated=1",
                "series.1.waiting=4",
                "series.2.5.waiting=0",
                "wait.mean=1.5"
            ]
        );
    }

    #[test]
    fn sql_takes_names_of_columns_without_quotes() {
        let mut names = Names::default();
        for (key, name) in [
            ("sync_delay.mean", "sync_delay_mean"),
            ("detect-after", "detect_after"),
            ("case", "case_"),
            ("messages.by_kind.Token", "messages_by_kind_token"),
            ("messages.by_kind.TOKEN", "messages_by_kind_token_"),
            ("3x", "_3x"),
        ] {
            assert_eq!(names.of(key), name);
        }
    }

    #[test]
    fn a_table_has_whole_numbers_as_such_and_the_common_values_of_the_study() {
        let text = "algorithms = ['central']\nnodes = [2, 3]\nseeds = 1\n[base]\nentries = 2\nhold = 1.5\n";
        let study = Study::parse(text, "s").unwrap();
        let (cases, _) = study.cases(crate::builtin()).unwrap();
        let rows = cases.iter().map(|case| {
            let plan = case.entry.plan(case.scenario.clone()).unwrap();
            Row::new(case, &case.entry.simulate(&plan, false).unwrap().report)
        });
        let heading = Heading::new(study.hash(), 2, Shard::ALL);
        let results = Results { heading, rows: rows.collect(), cut: false };
        let csv = results.table(&study.base).to_csv();
        let mut lines = csv.lines();
        let names: Vec<&str> = lines.next().unwrap().split(',').collect();
        assert_eq!(names[..6], ["case_", "algorithm", "entries", "hold", "nodes", "seed"]);
        assert!(lines.next().unwrap().starts_with("0,mutex/central,2,1.5,2,1,ok,"), "{csv}");
        assert!(names.contains(&"messages_by_kind_grant") && names.contains(&"steps"), "{csv}");
    }
}
