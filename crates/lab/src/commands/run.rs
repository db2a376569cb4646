//! `run`: one run, judged and measured.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use konklave_algorithms::Assumption;
use konklave_catalog::{
    Catalog, Entry, Error, Outcome, Plan, RealWorld, RunReport, Scenario, Transport, Verdict,
    did_you_mean, program,
};
use konklave_sim::{Selector, What};
use konklave_trace::{Run, diagram, svg, text};
use serde_json::Value;

use crate::Done;
use crate::args::{RunArgs, World};
use crate::output::{
    Colour, Format, Picture, Target, paint, print_csv, print_json, read_text, stdout,
};

/// Runs of up to this many entries are printed step by step without `--story`.
const SHORT: usize = 60;
/// Runs in real worlds of up to this many requests are recorded without `--story`.
const RECORD_UP_TO: u64 = 400;

/// How long T is in the real worlds, in ms.
const UNIT: f64 = 5.0;

pub(crate) fn run(catalog: &Catalog, args: RunArgs) -> Done {
    let (entry, plan) = plan(catalog, &args)?;
    let mut record_to = Target::open_if(args.record.as_ref())?;
    let draw_to = Picture::open_if(args.svg.as_ref())?;
    warn(&entry.name(), &plan);
    let unrecorded = unrecorded(entry, &plan, &args)?;
    let is_short = match &unrecorded {
        Some(outcome) => outcome.report.steps <= SHORT as u64,
        None => args.world != World::Sim && is_small(&plan),
    };
    let told = args.format == Format::Text && (asks_for_story(&args) || is_short);
    let record = told || record_to.is_some() || draw_to.is_some();
    // A run that is only recorded is written while it goes on, so that it needs no memory.
    if let Some(target) = record_to.take_if(|_| {
        args.world == World::Sim && !told && draw_to.is_none() && is_compact(args.record.as_deref())
    }) {
        let report = target.stream(|out| entry.record(&plan, out))?;
        let outcome = Outcome { report, run: None };
        warn_of_idle_faults(&plan, &outcome.report);
        print(&args, &outcome, entry.remark(&plan))?;
        return Ok(outcome.report.verdict.exit_code());
    }
    let unit = Duration::from_secs_f64(args.unit.unwrap_or(UNIT) / 1e3);
    let real = |transport| RealWorld { transport, unit };
    let outcome = match args.world {
        World::Sim => match unrecorded {
            Some(outcome) if !record => outcome,
            _ => entry.simulate(&plan, record)?,
        },
        World::Threads => entry.run_on_network(&plan, real(Transport::Threads), record)?,
        World::Tcp => entry.run_on_network(&plan, real(Transport::Tcp), record)?,
        World::Udp => entry.run_on_network(&plan, real(Transport::Udp), record)?,
        World::Multicast => entry.run_on_network(&plan, real(Transport::Multicast), record)?,
    };
    if let (Some(target), Some(run)) = (record_to, &outcome.run) {
        target.finish(&recording(run, args.record.as_deref())?)?;
    }
    // Only now is it known whether the run can be drawn; the report is printed in either case.
    let drawn = match (draw_to, &outcome.run) {
        (Some(target), Some(run)) => drawable(run).and_then(|run| {
            target.finish(&svg::draw(run, &diagram::Options::of(entry.problem.conditions)))
        }),
        _ => Ok(()),
    };
    warn_of_idle_faults(&plan, &outcome.report);
    print(&args, &outcome, entry.remark(&plan))?;
    drawn?;
    Ok(outcome.report.verdict.exit_code())
}

/// Whether a run in a real world is so small that it may be short, and so is recorded.
fn is_small(plan: &Plan) -> bool {
    let requests: u64 = plan.workload.requests.iter().map(|k| u64::from(*k)).sum();
    requests.saturating_mul(plan.setup.group.len() as u64) <= RECORD_UP_TO
}

/// The simulated run without its recording, if that says whether the run is short enough to be printed step by step.
/// The recording of a long run would need gigabytes.
fn unrecorded(entry: &Entry, plan: &Plan, args: &RunArgs) -> Result<Option<Outcome>, Error> {
    let is_asked = args.format == Format::Text && args.world == World::Sim && !asks_for_story(args);
    is_asked.then(|| entry.simulate(plan, false)).transpose()
}

/// Warns of faults that changed nothing; a kind of message that was never sent is most often a typing error.
fn warn_of_idle_faults(plan: &Plan, report: &RunReport) {
    for idle in &report.faults_without_effect {
        let Some((fault, why)) = idle.split_once(": ") else { continue };
        let given = plan.config.faults.iter().find(|given| given.to_string() == fault);
        let kinds = &report.messages.by_kind;
        let kind = given.and_then(|given| match &given.what {
            What::Message(Selector { kind: Some(kind), .. }, _) => Some(kind.as_str()),
            _ => None,
        });
        match kind.filter(|kind| !kinds.keys().any(|sent| sent.eq_ignore_ascii_case(kind))) {
            Some(kind) => {
                let near = did_you_mean(kind, kinds.keys().map(|k| &**k));
                let sent: Vec<&str> = kinds.keys().map(|k| &**k).collect();
                tell!(
                    "`--fault {fault}` had no effect: no {kind} was sent{near}; kinds sent: {}",
                    if sent.is_empty() { "none".into() } else { sent.join(", ") }
                );
            }
            None => tell!("`--fault {fault}` had no effect: {why}"),
        }
    }
}

/// The most steps that a picture can show.
const DRAWABLE: usize = 100_000;

/// The run, if it can be drawn whole.
fn drawable(run: &Run) -> Result<&Run, Error> {
    match run.entries.len() {
        steps if steps <= DRAWABLE => Ok(run),
        steps => Err(Error::Usage(format!(
            "{steps} steps are too many for one picture (at most {DRAWABLE}); record the run and draw a part of it with `{} draw FILE --only …`",
            program()
        ))),
    }
}

/// Whether a recording of this name is to be in the compact form.
fn is_compact(path: Option<&Path>) -> bool {
    path.and_then(Path::extension).is_some_and(|ending| ending == "runz")
}

/// The bytes of a recording: JSON lines, or the compact form where the name ends in `.runz`.
pub(crate) fn recording(run: &Run, path: Option<&Path>) -> io::Result<Vec<u8>> {
    if is_compact(path) {
        konklave_trace::compact::write(run, Vec::new())
    } else {
        Ok(run.to_text().into_bytes())
    }
}

/// The options of the command line; the scenario file fills in missing ones.
pub(crate) fn scenario_of(line: &Scenario, file: Option<&PathBuf>) -> Result<Scenario, Error> {
    let Some(path) = file else { return Ok(line.clone().or(Scenario::default())) };
    let file = path.display().to_string();
    Ok(line.clone().or(Scenario::parse(&read_text(path)?, &file)?))
}

fn plan<'a>(catalog: &'a Catalog, args: &RunArgs) -> Result<(&'a Entry, Plan), Error> {
    let scenario = scenario_of(&args.scenario, args.file.as_ref())?;
    let Some(name) = args.algorithm.as_deref().or(scenario.algorithm.as_deref()) else {
        return Err(Error::Usage(
            "no algorithm given: name one, or give a scenario file with `algorithm = …`".into(),
        ));
    };
    let entry = catalog.find(name).map_err(|error| match (&args.file, &args.algorithm) {
        (Some(file), None) => at_key(error.to_string(), "algorithm", file),
        _ => error,
    })?;
    match args.unit {
        Some(unit) if unit.is_nan() || unit <= 0.0 || unit > 60_000.0 => {
            return Err(Error::Usage(format!(
                "--unit {unit}: T must be a positive number of ms, at most 60000"
            )));
        }
        Some(_) if args.world == World::Sim => {
            tell!("`--unit` has no effect with `--world sim`: simulated time is counted in T")
        }
        Some(_) | None => {}
    }
    let usual = entry.usual(Scenario { algorithm: Some(entry.name()), ..scenario });
    let plan = usual.and_then(|scenario| entry.plan(scenario));
    let plan = plan.map_err(|e| match &args.file {
        Some(file) => in_file(e, &args.scenario, file),
        None => e,
    })?;
    Ok((entry, plan))
}

/// Adds file and line to an error about a value from a scenario file.
fn in_file(error: Error, given: &Scenario, path: &Path) -> Error {
    let Error::Usage(message) = &error else { return error };
    let Some(rest) = message.strip_prefix("--") else { return error };
    let end = rest.find(|c: char| !c.is_ascii_alphabetic() && c != '-').unwrap_or(rest.len());
    let key = if &rest[..end] == "fault" { "faults" } else { &rest[..end] };
    let given = serde_json::to_value(given).unwrap_or_default();
    if given.get(key).is_some() || line_of(key, path).is_none() {
        return error;
    }
    at_key(rest.to_owned(), key, path)
}

/// An error about a key of a scenario file.
fn at_key(message: String, key: &str, path: &Path) -> Error {
    let line = line_of(key, path).map_or(String::new(), |line| format!("{line}:"));
    Error::Data(format!("{}:{line} {message}", path.display()))
}

/// The line of a file that gives `key` a value.
pub(super) fn line_of(key: &str, path: &Path) -> Option<usize> {
    let text = std::fs::read_to_string(path).ok()?;
    let names = |line: &str| {
        line.trim_start().strip_prefix(key).is_some_and(|l| l.trim_start().starts_with('='))
    };
    text.lines().position(names).map(|line| line + 1)
}

/// Warns of options without effect, and of assumptions of `algorithm` that the run breaks.
pub(crate) fn warn(algorithm: &str, plan: &Plan) {
    for (option, why) in &plan.idle {
        warn_without_effect(option, why);
    }
    for (assumption, by) in &plan.broken {
        warn_of_broken(algorithm, *assumption, by);
    }
}

/// Warns of an option without effect.
pub(crate) fn warn_without_effect(option: &str, why: &str) {
    tell!("`--{option}` has no effect: {why}");
}

/// Warns of an assumption that `by`, a clause or a fault, breaks.
pub(crate) fn warn_of_broken(algorithm: &str, assumption: Assumption, by: &str) {
    let by = if by.contains(' ') { by.to_owned() } else { format!("`--fault {by}` is given") };
    tell!(
        "{algorithm} assumes that {}; here {by}, so {}",
        assumption.clause(),
        assumption.consequence()
    );
}

fn print(args: &RunArgs, outcome: &Outcome, remark: Option<&str>) -> io::Result<()> {
    let report = &outcome.report;
    match args.format {
        Format::Json | Format::Jsonl => print_json(report, args.format),
        Format::Csv => print_csv(&[row(report)]),
        Format::Text => {
            let mut out = stdout();
            if let Some(run) = &outcome.run {
                tell(args, run, &mut out)?;
            }
            summarise(report, &mut out)?;
            if let Some(remark) = remark {
                writeln!(out, "note        {remark}")?;
            }
            out.flush()
        }
    }
}

fn asks_for_story(args: &RunArgs) -> bool {
    args.story || args.states || args.debug
}

fn tell(args: &RunArgs, run: &Run, out: &mut impl Write) -> io::Result<()> {
    if !asks_for_story(args) && run.entries.len() > SHORT {
        return Ok(());
    }
    let options =
        text::Options { states: args.states, debug: args.debug, ..text::Options::default() };
    writeln!(out, "{}", text::transcript(run, &options))
}

/// The summary for people.
pub(crate) fn summarise(report: &RunReport, out: &mut impl Write) -> io::Result<()> {
    let mistake = report.mistake.as_ref().map_or(String::new(), |m| format!(", mistake {m}"));
    writeln!(
        out,
        "{} · {} nodes, {}, seed {}{mistake}",
        report.algorithm, report.nodes, report.topology, report.seed
    )?;
    let verdict = match report.verdict {
        Verdict::Ok => paint("ok", Colour::Green),
        Verdict::Loop => {
            format!(
                "{}: a process takes the links for a loop, so it knows no leader",
                paint("loop", Colour::Yellow)
            )
        }
        Verdict::Violated => paint("violated", Colour::Red),
        Verdict::Stuck => paint("stuck", Colour::Red),
        Verdict::Unfinished => paint("unfinished", Colour::Yellow),
    };
    let despite = match &report.broken_assumptions[..] {
        [] => String::new(),
        broken => {
            let what = broken.iter().map(|b| b.split(':').next().unwrap_or_default());
            format!(", although it assumes {}", what.collect::<Vec<_>>().join(", "))
        }
    };
    writeln!(out, "verdict     {verdict}{}{despite}", waiting(report))?;
    if let Some(why) = &report.unfinished {
        writeln!(out, "            {why}")?;
    }
    for violation in report.violations.iter().take(5) {
        writeln!(
            out,
            "            {} at {:.3}: {}",
            violation.property,
            violation.at,
            text::violation(&violation.detail)
        )?;
    }
    if report.violations.len() > 5 {
        writeln!(out, "            … and {} more", report.violations.len() - 5)?;
    }
    let messages = &report.messages;
    let kinds: Vec<String> = messages.by_kind.iter().map(|(k, n)| format!("{n} {k}")).collect();
    let kinds = if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
    let mishaps = match (messages.lost, messages.duplicated) {
        (0, 0) => String::new(),
        (lost, doubled) => format!(", {lost} lost, {doubled} duplicated"),
    };
    writeln!(out, "messages    {}{kinds}{mishaps}", messages.sent)?;
    writeln!(out, "time        {} T", number(report.time))?;
    for (problem, measures) in &report.problem {
        measured(problem, measures, out)?;
    }
    meter(report, out)?;
    writeln!(out, "again       {}", report.command)
}

fn waiting(report: &RunReport) -> String {
    if report.waiting.is_empty() {
        return String::new();
    }
    let waiting: Vec<String> = report.waiting.iter().take(10).map(|p| format!("p{p}")).collect();
    let more = if report.waiting.len() > 10 { ", …" } else { "" };
    let verb = match (report.verdict, report.waiting.len()) {
        (Verdict::Unfinished, 1) => "still waits",
        (Verdict::Unfinished, _) => "still wait",
        (_, 1) => "waits for ever",
        (_, _) => "wait for ever",
    };
    format!(": {}{more} {verb}", waiting.join(", "))
}

/// Prints the measures of the problem, one line each, without lists.
fn measured(_problem: &str, measures: &Value, out: &mut impl Write) -> io::Result<()> {
    for (name, value) in measures.as_object().into_iter().flatten() {
        let value = match value {
            Value::Array(leaders) if name == "leaders" => {
                let ids = leaders.iter().map(|p| format!("p{p}"));
                ids.collect::<Vec<_>>().join(", ")
            }
            Value::Null | Value::Array(_) => continue,
            Value::Object(spread) => {
                let part = |key: &str| spread.get(key).and_then(Value::as_f64).map(number);
                match (part("mean"), part("min"), part("max"), spread.get("words")) {
                    (_, _, _, Some(Value::String(words))) => words.clone(),
                    (Some(mean), Some(min), Some(max), _) => format!("{mean} T ({min} … {max})"),
                    _ => continue,
                }
            }
            Value::Number(n) => n.as_f64().map_or_else(|| n.to_string(), number),
            Value::String(word) => word.clone(),
            Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        };
        writeln!(out, "{:<11} {value}", name.replace('_', " "))?;
    }
    Ok(())
}

/// Prints the measured costs beside their formulas.
fn meter(report: &RunReport, out: &mut impl Write) -> io::Result<()> {
    for bound in &report.bounds {
        let metric = bound.name();
        let (Some((sign, limit, word)), Some(measured)) = (bound.standing(), bound.measured) else {
            let why = bound.why.as_deref().unwrap_or_default();
            writeln!(out, "bound       {metric}: not applicable, {} ({why})", bound.formula)?;
            continue;
        };
        let colour = if bound.holds == Some(true) { Colour::Green } else { Colour::Red };
        writeln!(
            out,
            "bound       {metric}: {} {sign} {} ({}): {}",
            number(measured),
            number(limit),
            bound.formula,
            paint(word, colour)
        )?;
    }
    Ok(())
}

/// A number with at most three decimals.
pub(crate) fn number(x: f64) -> String {
    let text = format!("{:.3}", x + 0.0);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// The figures of a run as one row.
fn row(report: &RunReport) -> Vec<(String, String)> {
    let mut row = vec![
        ("algorithm".to_owned(), report.algorithm.clone()),
        ("nodes".into(), report.nodes.to_string()),
        ("topology".into(), report.topology.clone()),
        ("seed".into(), report.seed.to_string()),
        ("verdict".into(), report.verdict.name().into()),
        ("time".into(), report.time.to_string()),
        ("messages".into(), report.messages.sent.to_string()),
        ("delivered".into(), report.messages.delivered.to_string()),
        ("lost".into(), report.messages.lost.to_string()),
        ("duplicated".into(), report.messages.duplicated.to_string()),
    ];
    for (_, measures) in &report.problem {
        for (name, value) in measures.as_object().into_iter().flatten() {
            match value {
                Value::Array(_) => {}
                Value::Object(spread) => {
                    for (part, value) in spread {
                        row.push((format!("{name}_{part}"), value.to_string()));
                    }
                }
                Value::Null => row.push((name.clone(), String::new())),
                Value::String(word) => row.push((name.clone(), word.clone())),
                other => row.push((name.clone(), other.to_string())),
            }
        }
    }
    row
}
