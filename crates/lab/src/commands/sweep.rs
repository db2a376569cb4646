//! `sweep`: parameter studies.

mod differences;
mod plotting;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressStyle};
use konklave_catalog::{Catalog, Error, did_you_mean};
use konklave_sweep::{
    Case, Combination, Finding, Fit, Heading, Impossible, LEAST_R2, LEVEL, Progress, Results, Row,
    SIZES, Shard, Study, StudyError, combinations, fit, merge, work,
};
use serde::Serialize;
use serde_json::Value;

use self::differences::{Against, differences};
use super::run::{line_of, number, warn_of_broken};
use crate::Done;
use crate::args::{MergeArgs, SweepArgs, SweepCommand};
use crate::failure::Failure;
use crate::formats;
use crate::output::{
    Colour, Format, Target, has_room, open_input, paint, print_csv, print_json, read_text, stdout,
};

pub(crate) fn sweep(catalog: &'static Catalog, args: SweepArgs) -> Done {
    if let Some(SweepCommand::Merge(args)) = &args.command {
        return put_together(args);
    }
    let study = study(&args)?;
    let (cases, left_out) = study.cases(catalog).map_err(|error| match &args.file {
        Some(file) => in_file(error, file),
        None => StudyError::Usage(error.to_string()),
    })?;
    for why in &left_out {
        tell!("combination left out: {why}");
    }
    if cases.is_empty() {
        return Err(Error::Usage("no combination of this study can run".into()).into());
    }
    warn(&cases);
    let shard = shard(&args)?;
    let heading = Heading::new(study.hash(), cases.len() as u64, shard);
    let ours: Vec<Case> = cases.into_iter().filter(|c| shard.has(c.number)).collect();
    known_measure(&args, &ours)?;
    let against = differences::against(catalog, &args, &study)?;
    let plot = plotting::target(&args)?;
    let table = table_target(&args)?;
    let (mut rows, ours, mut out) = begin(&args, &heading, ours)?;
    let stop = super::check::interrupt()?;
    let kept = rows.len();
    rows.extend(run(&args, &ours, &heading.study, &stop, &mut out)?);
    if kept > 0 && !rows.is_sorted_by_key(|row| row.case) {
        // A row in the middle was missing: put all in order.
        rows.sort_by_key(|row| row.case);
        if let Some(path) = &args.output {
            let mut whole = Vec::new();
            Results { heading: heading.clone(), rows: rows.clone(), cut: false }
                .write(&mut whole)?;
            Target::open(path)?.finish(&whole)?;
        }
    }
    let interrupted = stop.load(Ordering::Relaxed) && rows.len() - kept < ours.len();
    if let (Some(target), false) = (plot, interrupted) {
        plotting::finish(target, &args, &rows)?;
    }
    if let (Some((target, parquet)), false) = (table, interrupted) {
        let results = Results { heading, rows: rows.clone(), cut: false };
        let table = results.table(&study.base);
        let bytes = if parquet { formats::parquet(&table)? } else { table.to_csv().into_bytes() };
        target.finish(&bytes)?;
    }
    report(&args, &rows, against.as_deref())?;
    if interrupted {
        let fate = match &args.output {
            Some(_) => "are kept; continue with `--resume`",
            None => "were made and are lost; `--output FILE` keeps them",
        };
        tell!("interrupted, {} runs {fate}", rows.len());
        return Ok(130);
    }
    Ok(if rows.iter().all(|row| ["ok", "loop"].contains(&&*row.verdict)) { 0 } else { 1 })
}

/// Warns once for each algorithm of assumptions that some runs break.
fn warn(cases: &[Case]) {
    let (mut seen, mut warned) = (BTreeSet::new(), BTreeSet::new());
    for case in cases {
        let name = case.entry.name();
        if !seen.insert((name.clone(), format!("{:?}", case.parameters))) {
            continue;
        }
        let Ok(plan) = case.entry.plan(case.scenario.clone()) else { continue };
        for (assumption, by) in &plan.broken {
            if warned.insert((name.clone(), assumption.clause(), by.clone())) {
                warn_of_broken(&name, *assumption, by);
            }
        }
    }
}

/// Refuses an unknown measure before the work starts, by means of one run of each algorithm.
fn known_measure(args: &SweepArgs, cases: &[Case]) -> Result<(), Failure> {
    let (mut tried, mut known) = (BTreeSet::new(), BTreeSet::new());
    // Some measures exist only if an event occurred; then the name must be one of the problem.
    let begins = args.measure.split('.').next().unwrap_or_default();
    for case in cases.iter().filter(|case| tried.insert(case.entry.name())) {
        let plan = case.entry.plan(case.scenario.clone())?;
        let report = case.entry.simulate(&plan, false)?.report;
        let problem = report.problem.get(case.entry.problem.name);
        let row = Row::new(case, &report);
        let by_kind = args.measure.starts_with("messages.by_kind.");
        if by_kind
            || row.measures.contains_key(&args.measure)
            || problem.is_some_and(|p| p.get(begins).is_some())
        {
            return Ok(());
        }
        known.extend(row.measures.into_keys());
    }
    if known.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    let near = did_you_mean(&args.measure, names.iter().copied());
    let why = format!("--measure {}{near}: known measures are {}", args.measure, names.join(", "));
    Err(Error::Usage(why).into())
}

/// Where the table goes, and whether it is Parquet.
fn table_target(args: &SweepArgs) -> Result<Option<(Target, bool)>, Error> {
    let Some(path) = &args.table else { return Ok(None) };
    let parquet = match path.extension().and_then(|e| e.to_str()) {
        Some("parquet") => true,
        Some("csv") => false,
        _ => {
            let file = path.display();
            let why = format!("--table {file}: the name must end in .csv or .parquet");
            return Err(Error::Usage(why));
        }
    };
    Ok(Some((Target::open(path)?, parquet)))
}

/// Adds file and line to an error about a study from a file.
fn in_file(error: StudyError, path: &Path) -> StudyError {
    let message = error.to_string();
    let quoted = || message.split('`').nth(1);
    let key = if message.starts_with("there is no algorithm") {
        Some("algorithms")
    } else if message.contains("unknown field") {
        quoted()
    } else {
        let rest = message.strip_prefix("the study: ").unwrap_or(&message);
        rest.split(|c: char| !c.is_ascii_alphabetic() && c != '-').next()
    };
    let line = key.and_then(|key| line_of(if key == "fault" { "faults" } else { key }, path));
    match line {
        Some(line) => StudyError::Data(format!("{}:{line}: {message}", path.display())),
        None => error,
    }
}

/// The study of the file; options of the command line take precedence.
fn study(args: &SweepArgs) -> Result<Study, Failure> {
    let mut study = match &args.file {
        Some(path) => {
            let file = path.display().to_string();
            Study::parse(&read_text(path)?, &file)?
        }
        None => Study { nodes: vec![5], seeds: 10, first_seed: 1, ..Study::default() },
    };
    if !args.algorithms.is_empty() {
        study.algorithms.clone_from(&args.algorithms);
    }
    if !args.nodes.is_empty() {
        study.nodes.clone_from(&args.nodes);
    }
    if args.skip_impossible {
        study.impossible = Impossible::Skip;
    }
    if let Some(seeds) = args.seeds {
        study.seeds = seeds;
    }
    for word in &args.vary {
        let wrong = || Error::Usage(format!("--vary {word}: expected KEY=VALUE,VALUE,…"));
        let (key, values) = word.split_once('=').ok_or_else(wrong)?;
        let value = |v: &str| serde_json::from_str(v).unwrap_or_else(|_| Value::from(v));
        if matches!(key, "nodes" | "seed" | "algorithm") {
            let instead = if key == "algorithm" { "algorithms" } else { key };
            let instead = if key == "seed" { "seeds" } else { instead };
            let why = format!("--vary {word}: use --{instead} instead");
            return Err(Error::Usage(why).into());
        }
        study.vary.insert(key.to_owned(), values.split(',').map(value).collect());
    }
    for word in &args.set {
        with(&mut study.base, word)?;
    }
    Ok(study)
}

/// Adds `word`, KEY=VALUE, to the common keys of a study.
fn with(base: &mut BTreeMap<String, Value>, word: &str) -> Result<(), Error> {
    let Some((key, value)) = word.split_once('=') else {
        return Err(Error::Usage(format!("--with {word}: expected KEY=VALUE")));
    };
    if matches!(key, "nodes" | "seed" | "algorithm") {
        let why = format!("--with {word}: use --nodes, --seeds or --algorithms instead");
        return Err(Error::Usage(why));
    }
    let value = match serde_json::from_str(value) {
        Ok(number @ (Value::Number(_) | Value::Bool(_))) => number,
        _ => Value::from(value),
    };
    if matches!(key, "set" | "faults") {
        // These options are repeatable.
        let said = base.entry(key.to_owned()).or_insert_with(|| Value::from(Vec::<Value>::new()));
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        said.as_array_mut().into_iter().for_each(|list| list.push(text.clone().into()));
        return Ok(());
    }
    // A wrong key is told now, and a value when the number of nodes is known.
    let mut fields = serde_json::Map::new();
    fields.insert(key.to_owned(), Value::Null);
    if let Err(e) = serde_json::from_value::<konklave_catalog::Scenario>(Value::Object(fields))
        && e.to_string().contains("unknown field")
    {
        return Err(Error::Usage(format!("--with {word}: {e}")));
    }
    base.insert(key.to_owned(), value);
    Ok(())
}

fn shard(args: &SweepArgs) -> Result<Shard, Failure> {
    if let Some(text) = &args.shard {
        return Ok(Shard::parse(text)?);
    }
    let set = |name| std::env::var_os(name).is_some();
    if set("SLURM_ARRAY_TASK_ID") && !set("SLURM_ARRAY_TASK_COUNT") {
        return Err(Error::Usage(
            "SLURM_ARRAY_TASK_ID says which shard this is, but SLURM_ARRAY_TASK_COUNT not of how \
             many: give --shard i/n"
                .into(),
        )
        .into());
    }
    if set("KONKLAVE_SHARDS") && !set("JOB_COMPLETION_INDEX") {
        return Err(Error::Usage(
            "KONKLAVE_SHARDS says how many shards there are, but nothing says which this is: \
             JOB_COMPLETION_INDEX does in a Kubernetes job, --shard i/n elsewhere"
                .into(),
        )
        .into());
    }
    if set("JOB_COMPLETION_INDEX") && !set("KONKLAVE_SHARDS") {
        return Err(Error::Usage(
            "JOB_COMPLETION_INDEX says which shard this is, but not of how many: set KONKLAVE_SHARDS \
             to the job's completions, or give --shard i/n"
                .into(),
        )
        .into());
    }
    let given = Shard::from_environment(|name| std::env::var(name).ok());
    if let Some(shard) = given {
        tell!("shard {}/{}, from the variables of the batch system", shard.index + 1, shard.of);
    }
    Ok(given.unwrap_or(Shard::ALL))
}

type Begun = (Vec<Row>, Vec<Case>, Box<dyn Write>);

/// Opens the results file. With `--resume`, existing results stay and their runs are not repeated.
fn begin(args: &SweepArgs, heading: &Heading, ours: Vec<Case>) -> Result<Begun, Failure> {
    let Some(path) = &args.output else {
        return Ok((Vec::new(), ours, Box::new(io::sink())));
    };
    let file = path.display().to_string();
    let unwritable = |why| Error::Unwritable { file: file.clone(), why };
    let is_new = !path.exists();
    if !is_new && !path.is_file() {
        let why = "results need a regular file, so that they can be resumed";
        return Err(unwritable(io::Error::new(io::ErrorKind::InvalidInput, why)).into());
    }
    let mut line = Vec::new();
    heading.write(&mut line)?;
    // Not even the heading was written whole: nothing is lost by beginning anew.
    let hardly = |text: Vec<u8>| line.starts_with(&text);
    let begun = args.resume && path.exists() && !std::fs::read(path).is_ok_and(hardly);
    if begun {
        let source = open_input(path)?;
        let there = Results::read(BufReader::new(source), &file)?;
        if there.heading != *heading {
            return Err(Error::Data(format!(
                "{file}:1: holds results of another study or shard; name another --output"
            ))
            .into());
        }
        if there.cut {
            tell!("{file}: the last line is cut off; its run is repeated");
        }
        let mut seen = BTreeSet::new();
        if let Some(row) = there.rows.iter().find(|row| !seen.insert(row.case)) {
            return Err(Error::Data(format!("{file}: case {} occurs twice", row.case)).into());
        }
        // Written anew without the cut line, then appended to.
        let mut whole = Vec::new();
        there.write(&mut whole)?;
        Target::open(path)?.finish(&whole)?;
        let done: BTreeSet<u64> = there.rows.iter().map(|row| row.case).collect();
        let left = ours.into_iter().filter(|c| !done.contains(&c.number)).collect();
        let out = OpenOptions::new().append(true).open(path).map_err(unwritable)?;
        has_room(&out).map_err(unwritable)?;
        return Ok((there.rows, left, Box::new(BufWriter::new(out))));
    }
    if path.exists() && !args.overwrite && !args.resume {
        return Err(Error::Usage(format!(
            "{file} exists already; --resume adds missing runs, --overwrite replaces it"
        ))
        .into());
    }
    let out = File::create(path).map_err(unwritable)?;
    if let Err(why) = has_room(&out) {
        if is_new {
            let _ = std::fs::remove_file(path);
        }
        return Err(unwritable(why).into());
    }
    let mut out = BufWriter::new(out);
    out.write_all(&line)?;
    out.flush()?;
    Ok((Vec::new(), ours, Box::new(out)))
}

fn run(
    args: &SweepArgs,
    cases: &[Case],
    study: &str,
    stop: &Arc<AtomicBool>,
    out: &mut Box<dyn Write>,
) -> Result<Vec<Row>, Failure> {
    let threads = args
        .jobs
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
    let bar = if io::stderr().is_terminal() && args.format == Format::Text {
        ProgressBar::new(cases.len() as u64)
    } else {
        ProgressBar::hidden()
    };
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} runs, {eta} left") {
        bar.set_style(style);
    }
    let done = |progress: Progress| bar.set_position(progress.done as u64);
    let rows = work(cases, study, threads, stop, out, done);
    bar.finish_and_clear();
    let file = args.output.as_ref().map_or("the results".into(), |p| p.display().to_string());
    Ok(rows.map_err(|why| match why.kind() {
        io::ErrorKind::InvalidInput => Error::Data(format!("the study: {why}")),
        _ => Error::Unwritable { file, why },
    })?)
}

/// The growth of one measure of one algorithm over n.
#[derive(Serialize)]
struct Growth {
    algorithm: String,
    parameters: BTreeMap<String, Value>,
    measure: String,
    /// The law; none if none fits.
    fit: Option<Fit>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// The law that comes nearest, where none fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    nearest: Option<Fit>,
    formula: Option<String>,
}

#[derive(Serialize)]
struct Report {
    schema: &'static str,
    runs: usize,
    groups: Vec<Combination>,
    growth: Vec<Growth>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    differences: Vec<Against>,
}

fn report(args: &SweepArgs, rows: &[Row], against: Option<&str>) -> io::Result<()> {
    let groups = combinations(rows);
    let differences = against.map_or(Vec::new(), |name| differences(rows, &args.measure, name));
    let growth = growth(&groups, &args.measure);
    match args.format {
        Format::Text => print(args, &groups, &growth, &differences),
        Format::Json | Format::Jsonl => {
            let schema = "konklave.sweep-report/1";
            let runs = rows.len();
            print_json(&Report { schema, runs, groups, growth, differences }, args.format)
        }
        Format::Csv => print_csv(&groups.iter().flat_map(csv).collect::<Vec<_>>()),
    }
}

/// The law of each algorithm and combination over n.
fn growth(groups: &[Combination], measure: &str) -> Vec<Growth> {
    let mut curves: BTreeMap<(String, String), Vec<&Combination>> = BTreeMap::new();
    for group in groups {
        let mut rest = group.parameters.clone();
        rest.remove("nodes");
        let rest = serde_json::to_string(&rest).unwrap_or_default();
        curves.entry((group.algorithm.clone(), rest)).or_default().push(group);
    }
    let mut growth = Vec::new();
    for ((algorithm, _), groups) in curves {
        let point = |g: &&Combination| {
            let n = g.parameters.get("nodes")?.as_f64()?;
            Some((n, g.measures.get(measure)?.mean))
        };
        let points: Vec<(f64, f64)> = groups.iter().filter_map(point).collect();
        let (fit, nearest, why) = match fit(&points) {
            Finding::Follows(fit) => (Some(fit), None, None),
            Finding::NoneFits(nearest) => (None, Some(nearest), Some(none_fits(&nearest))),
            Finding::TooFew(sizes) => (None, None, Some(too_few(sizes))),
        };
        let mut parameters = groups[0].parameters.clone();
        parameters.remove("nodes");
        let formula = formula_of(groups[0], measure).map(|(formula, _)| formula);
        let measure = measure.to_owned();
        growth.push(Growth { algorithm, parameters, measure, fit, why, nearest, formula });
    }
    growth
}

fn none_fits(nearest: &Fit) -> String {
    format!(
        "the nearest, {}, has R² = {:.4} and is off by {:.0} %; a law needs R² ≥ {LEAST_R2}, a constant \
         at most {:.0} %",
        nearest.law,
        nearest.r2,
        100.0 * nearest.error,
        100.0 * LEVEL
    )
}

fn too_few(sizes: usize) -> String {
    format!("a law needs {SIZES} different n, but only {sizes} were measured")
}

/// The formula that bounds a measure. The formula for the longest time bounds every time of the kind; the formula
/// for all messages, divided by the entries, bounds the messages of one entry.
fn formula_of(group: &Combination, measure: &str) -> Option<(String, f64)> {
    let metric = match measure.split_once('.').map_or(measure, |(name, _)| name) {
        "time_to_all" => "time",
        name => name,
    };
    let known = group.formulas.get(metric).cloned();
    known.or_else(|| {
        let per_entry = group.formulas.get("messages_per_entry").filter(|_| metric == "messages");
        let ((formula, limit), entries) = (per_entry?, group.measures.get("entries")?);
        Some((format!("{formula} for each entry"), limit * entries.mean))
    })
}

fn shown(parameters: &BTreeMap<String, Value>) -> String {
    let word = |value: &Value| value.as_str().map_or(value.to_string(), str::to_owned);
    let words: Vec<_> = parameters.iter().map(|(k, v)| format!("{k}={}", word(v))).collect();
    words.join(" ")
}

fn print(
    args: &SweepArgs,
    groups: &[Combination],
    growth: &[Growth],
    differences: &[Against],
) -> io::Result<()> {
    let mut out = stdout();
    let width = groups.iter().map(|g| g.algorithm.len()).max().unwrap_or(0);
    for group in groups {
        write!(out, "{:width$}  {:<28} ", group.algorithm, shown(&group.parameters))?;
        match group.measures.get(&args.measure) {
            Some(s) => write!(
                out,
                "{} {} ± {}, deviation {}  ({} … {}, p95 {}){}",
                args.measure,
                number(s.mean),
                number(s.confidence),
                number(s.deviation),
                number(s.min),
                number(s.max),
                number(s.p95),
                rests_on(group, &args.measure),
            )?,
            None => write!(out, "{} {}", args.measure, nothing(&args.measure))?,
        }
        if let Some((_, limit)) = formula_of(group, &args.measure) {
            write!(out, "  formula {}", number(limit))?;
        }
        match group.failed {
            0 => writeln!(out)?,
            k => {
                let failed = format!("  {k} of {} not ok", group.runs);
                writeln!(out, "{}", paint(&failed, Colour::Red))?;
            }
        }
    }
    for g in growth {
        write!(out, "{:width$}  {:<28} {} ", g.algorithm, shown(&g.parameters), g.measure)?;
        match (&g.fit, &g.why) {
            (Some(fit), _) => write!(
                out,
                "grows like {} ({} · {} {} {}, R² = {:.4})",
                fit.law,
                number(fit.a),
                fit.law,
                if fit.b < 0.0 { '−' } else { '+' },
                number(fit.b.abs()),
                fit.r2
            )?,
            (None, Some(why)) => write!(out, "fits no law: {why}")?,
            (None, None) => write!(out, "fits no law")?,
        }
        let formula = g.formula.as_ref().map_or(String::new(), |f| format!("; the formula: {f}"));
        writeln!(out, "{formula}")?;
    }
    differences::print(&mut out, differences, width)?;
    out.flush()
}

/// The number of single times behind a figure, and the number of runs that had any.
fn rests_on(group: &Combination, measure: &str) -> String {
    let name = measure.split_once('.').map_or(measure, |(name, _)| name);
    let runs = group.measures.get(measure).map_or(0, |s| s.runs);
    let counted = match group.measures.get(&format!("{name}.count")) {
        Some(count) if measure != name => {
            let all = count.mean * count.runs as f64;
            format!("  of {}", number(all))
        }
        Some(_) | None => String::new(),
    };
    match runs < group.runs {
        true => format!("{counted}  in {runs} of {} runs", group.runs),
        false => counted,
    }
}

/// The text where no run has the measure.
fn nothing(measure: &str) -> &'static str {
    match measure.split('.').next() {
        Some("sync_delay" | "hand_over_max" | "hand_over_mean") => "—(no hand-over)",
        _ => "—(in no run)",
    }
}

fn csv(group: &Combination) -> Vec<Vec<(String, String)>> {
    let parameters = serde_json::to_string(&group.parameters).unwrap_or_default();
    group
        .measures
        .iter()
        .map(|(measure, s)| {
            [
                ("algorithm", group.algorithm.clone()),
                ("parameters", parameters.clone()),
                ("nodes", group.parameters.get("nodes").map_or(String::new(), Value::to_string)),
                ("measure", measure.clone()),
                ("runs", group.runs.to_string()),
                ("measured_in", s.runs.to_string()),
                ("failed", group.failed.to_string()),
                ("mean", s.mean.to_string()),
                ("deviation", s.deviation.to_string()),
                ("confidence", s.confidence.to_string()),
                ("min", s.min.to_string()),
                ("p50", s.p50.to_string()),
                ("p95", s.p95.to_string()),
                ("p99", s.p99.to_string()),
                ("max", s.max.to_string()),
            ]
            .map(|(name, value)| (name.to_owned(), value))
            .to_vec()
        })
        .collect()
}

fn put_together(args: &MergeArgs) -> Done {
    let mut parts = Vec::new();
    for path in &args.files {
        let file = path.display().to_string();
        let source = open_input(path)?;
        let results = Results::read(BufReader::new(source), &file)?;
        if results.cut {
            let why = "the last line is cut off; resume that shard first";
            return Err(Error::Data(format!("{file}: {why}")).into());
        }
        parts.push((file, results));
    }
    let same = |path: &PathBuf| {
        path == &args.output
            || path.canonicalize().is_ok_and(|p| args.output.canonicalize().is_ok_and(|o| o == p))
    };
    if let Some(path) = args.files.iter().find(|path| same(path)) {
        let why =
            format!("--output {} is one of the shards and would be overwritten", path.display());
        return Err(Error::Usage(why).into());
    }
    if args.output.is_file() && !args.overwrite {
        let file = args.output.display();
        let why = format!("{file} exists already; --overwrite replaces it");
        return Err(Error::Usage(why).into());
    }
    let target = Target::open(&args.output)?;
    let mut whole = Vec::new();
    merge(parts)?.write(&mut whole)?;
    target.finish(&whole)?;
    if args.output != Path::new("-") {
        tell!("merged {} files into {}", args.files.len(), args.output.display());
    }
    Ok(0)
}

impl From<StudyError> for Failure {
    fn from(error: StudyError) -> Self {
        match error {
            StudyError::Data(message) => Error::Data(message).into(),
            StudyError::Usage(message) => Error::Usage(message).into(),
        }
    }
}
