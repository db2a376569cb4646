//! Runs in the simulator.

mod bounds;
mod recording;

use std::io::{self, Write};

use konklave_algorithms::{AnyAlgorithm, Setup, Simulation};
use konklave_process::{AnyMeter, AnyMonitor, ProcessId};
use konklave_sim::{AnyObserver, Ending, Stall, Struck, UNIT};
use konklave_trace::compact::CompactRecorder;
use konklave_trace::{Comparison, Difference, Footer, Recorder, Run};
use serde_json::{Map, Value, json};

use bounds::{bounds, broken};
use recording::{Book, Recording};

use crate::disturbances::without_effect;
use crate::report::{Messages, RunReport, Verdict, ViolationReport};
use crate::{Entry, Error, Plan, command, header, header_of_setup};

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// In figures.
    pub report: RunReport,
    /// Step by step, if it was recorded.
    pub run: Option<Run>,
}

/// Runs `plan` in the simulator.
pub(crate) fn simulate(entry: &Entry, plan: &Plan, record: bool) -> Result<Outcome, Error> {
    entry.algorithm.check_setup(&plan.setup).map_err(|e| Error::Usage(e.to_string()))?;
    let mut recording = match record {
        true => Recording::Whole(Recorder::to(Book::blank(header(entry, plan, "sim")))),
        false => Recording::Off,
    };
    let report = run(entry, plan, &mut recording);
    let run = match recording {
        Recording::Whole(recorder) => recorder.finish(Some(footer(&report))).written(),
        Recording::Off | Recording::Compact(_) => None,
    };
    Ok(Outcome { report, run })
}

/// Runs `plan` again and returns the first difference from `recorded`.
pub(crate) fn compare(entry: &Entry, plan: &Plan, recorded: &Run) -> Option<Difference> {
    let recorder = Recorder::to(Book::Compared(Comparison::with(recorded)));
    let mut recording = Recording::Whole(recorder);
    let report = run(entry, plan, &mut recording);
    match recording {
        Recording::Whole(recorder) => recorder.finish(Some(footer(&report))).difference(),
        Recording::Off | Recording::Compact(_) => None,
    }
}

/// Runs `plan` in the simulator and writes it down in the compact form while it goes on.
pub(crate) fn record(
    entry: &Entry,
    plan: &Plan,
    out: &mut dyn Write,
) -> Result<io::Result<RunReport>, Error> {
    entry.algorithm.check_setup(&plan.setup).map_err(|e| Error::Usage(e.to_string()))?;
    let recorder = CompactRecorder::new(&header(entry, plan, "sim"), out);
    let mut recording = Recording::Compact(recorder);
    let report = run(entry, plan, &mut recording);
    let written = match recording {
        Recording::Compact(recorder) => recorder.finish(Some(&footer(&report))).map(drop),
        Recording::Off | Recording::Whole(_) => Ok(()),
    };
    Ok(written.map(|()| report))
}

/// One simulated run, step by step. Its header has no scenario, so that a replay repeats each step, but not the
/// whole simulation.
pub fn simulated_run(algorithm: &'static dyn AnyAlgorithm, simulation: Simulation<'_>) -> Run {
    let (setup, seed) = (simulation.setup, simulation.config.seed);
    let header = header_of_setup(&Entry::of(algorithm), setup, seed);
    let mut recording = Recording::Whole(Recorder::to(Book::blank(header.clone())));
    let ran = algorithm.simulate(simulation, Some(&mut recording));
    let first = ran.violations.first();
    let verdict = match first {
        Some(_) => Verdict::Violated,
        None if ran.waiting.is_empty() => Verdict::Ok,
        None => Verdict::Stuck,
    };
    let summary =
        first.map_or(Value::Null, |(_, v)| json!({ "property": v.property, "detail": v.detail }));
    let footer = Footer { verdict: verdict.name().into(), summary };
    let run = match recording {
        Recording::Whole(recorder) => recorder.finish(Some(footer)).written(),
        Recording::Off | Recording::Compact(_) => None,
    };
    run.unwrap_or(Run { header, entries: Vec::new(), footer: None })
}

fn footer(report: &RunReport) -> Footer {
    let summary = serde_json::to_value(report).unwrap_or_default();
    Footer { verdict: report.verdict.name().into(), summary }
}

fn run(entry: &Entry, plan: &Plan, recording: &mut Recording<'_>) -> RunReport {
    let (setup, workload, watch, config) = (&plan.setup, &plan.workload, &plan.watch, &plan.config);
    let simulation = Simulation { setup, workload, watch, config, keep_processes: false };
    let observer = match recording {
        Recording::Off => None,
        recording => Some(recording as &mut dyn AnyObserver),
    };
    let ran = entry.algorithm.simulate(simulation, observer);
    let facts = RunFacts {
        world: "sim",
        unit: UNIT as f64,
        now: ran.now,
        steps: ran.counts.steps,
        timers: 0,
        messages: Messages {
            sent: ran.counts.sent,
            delivered: ran.counts.delivered,
            lost: ran.counts.lost,
            duplicated: ran.counts.duplicated,
            bytes: plan.config.bandwidth.map(|_| ran.counts.bytes),
            by_kind: ran.kinds.into_iter().collect(),
        },
        violations: ran
            .violations
            .into_iter()
            .map(|(at, v)| (at, v.property.to_owned(), v.detail))
            .collect(),
        waiting: ran.waiting,
        served: ran.served,
        measured_messages: ran.measured_messages,
        down: ran.down,
        struck: ran.struck,
        stall: ran.stall,
        cut_off: ran.ending == Ending::CutOff,
    };
    report(entry, plan, facts, &ran.meter, &ran.monitor)
}

/// The facts of a finished run.
pub(crate) struct RunFacts {
    pub(crate) world: &'static str,
    /// Ticks in one T.
    pub(crate) unit: f64,
    pub(crate) now: u64,
    pub(crate) steps: u64,
    /// Steps that a timer caused, in real worlds. They depend on real time.
    pub(crate) timers: u64,
    pub(crate) messages: Messages,
    pub(crate) violations: Vec<(u64, String, String)>,
    pub(crate) waiting: Vec<ProcessId>,
    /// Whether no client waits or would make a further request.
    pub(crate) served: bool,
    /// The messages of the measured part, if not all of the run is measured.
    pub(crate) measured_messages: Option<u64>,
    /// How many processes are down in the end.
    pub(crate) down: usize,
    /// The effect of each fault of the plan.
    pub(crate) struck: Vec<Struck>,
    /// The stall that ended the run, if one did.
    pub(crate) stall: Option<Stall>,
    pub(crate) cut_off: bool,
}

/// The report of a run in any world.
pub(crate) fn report(
    entry: &Entry,
    plan: &Plan,
    mut run: RunFacts,
    meter: &AnyMeter,
    monitor: &AnyMonitor,
) -> RunReport {
    let bounds = bounds(entry, plan, &run, meter);
    let unending = unending(entry, plan, &run);
    let mut violations: Vec<ViolationReport> = std::mem::take(&mut run.violations)
        .into_iter()
        .map(|(at, property, detail)| ViolationReport {
            property,
            at: at as f64 / run.unit,
            detail,
        })
        .collect();
    let time = run.now as f64 / run.unit;
    if plan.broken.is_empty() && !unending {
        violations.extend(bounds.iter().filter_map(|bound| broken(bound, time)));
    }
    let summary = entry.algorithm.summary(meter, monitor, run.unit);
    let mut summary = serde_json::to_value(summary).unwrap_or_default();
    let has_loop = (entry.problem.has_loop)(&|name| summary.get(name).and_then(Value::as_f64));
    let verdict = verdict(&run, &violations, unending, has_loop);
    if let Value::Object(fields) = &mut summary {
        complete_summary(fields, entry, plan, &run);
    }
    RunReport {
        schema: "konklave.run/1",
        algorithm: entry.name(),
        nodes: plan.setup.group.len(),
        topology: plan.setup.topology.name.clone(),
        seed: plan.config.seed,
        world: run.world.into(),
        mistake: plan.setup.mistake.map(str::to_owned),
        verdict,
        unfinished: (verdict == Verdict::Unfinished).then(|| unfinished(entry, plan, &run)),
        violations,
        broken_assumptions: plan
            .broken
            .iter()
            .map(|(assumption, by)| format!("{assumption}: {by}"))
            .collect(),
        faults_without_effect: without_effect(&plan.config, &run.struck),
        waiting: run.waiting.iter().map(|p| p.0).collect(),
        time,
        steps: run.steps,
        messages: run.messages,
        bounds,
        problem: Map::from_iter([(entry.problem.name.to_owned(), summary)]),
        command: command(entry, "run", plan),
    }
}

/// Adds to the figures of the problem: the rule by which the winner is found, messages per entry, quorums.
fn complete_summary(fields: &mut Map<String, Value>, entry: &Entry, plan: &Plan, run: &RunFacts) {
    if let Some(winner) = entry.algorithm.variant(&plan.setup).winner {
        fields.insert("winner_rule".into(), serde_json::to_value(winner).unwrap_or_default());
    }
    if let Some(entries) = fields.get("entries").and_then(Value::as_u64) {
        let (mut sent, mut entries) = (run.messages.sent, entries);
        if let (Some(messages), Some(Value::Object(measured))) =
            (run.measured_messages, fields.get_mut("measured"))
        {
            measured.insert("messages".into(), messages.into());
            sent = messages;
            entries = measured.get("entries").and_then(Value::as_u64).unwrap_or(0);
        }
        let per_entry = (entries > 0).then(|| sent as f64 / entries as f64);
        fields.insert("messages_per_entry".into(), per_entry.into());
    }
    if let Some(quorums) = quorums(entry, &plan.setup) {
        fields.insert("quorums".into(), quorums);
    }
}

/// How large quorums are and how they share the work, in figures and in words; none where there are
/// none. What is said of the first of several kinds of sets is said first, and all are listed.
pub(crate) fn quorums(entry: &Entry, setup: &Setup) -> Option<Value> {
    let all = entry.algorithm.quorums(setup);
    let (_, first) = all.first()?;
    let mut value = serde_json::to_value(first).unwrap_or_default();
    let Value::Object(fields) = &mut value else { return None };
    let named = |(name, figures): &(&str, _)| format!("{name} {figures}");
    let words: Vec<String> = match &all[..] {
        [(_, only)] => vec![only.to_string()],
        several => several.iter().map(named).collect(),
    };
    fields.insert("words".into(), words.join("; ").into());
    if all.len() > 1 {
        let sets = all.iter().map(|(name, figures)| ((*name).to_owned(), json!(figures)));
        fields.insert("sets".into(), Value::Object(sets.collect()));
    }
    Some(value)
}

fn verdict(
    run: &RunFacts,
    violations: &[ViolationReport],
    unending: bool,
    has_loop: bool,
) -> Verdict {
    let stuck = !run.cut_off && !run.waiting.is_empty();
    // The verdict `stuck` already says that a run does not end.
    let only_ends = stuck && violations.iter().all(|v| v.property == "termination");
    if !violations.is_empty() && !only_ends {
        Verdict::Violated
    } else if stuck {
        Verdict::Stuck
    } else if unending {
        Verdict::Unfinished
    } else if has_loop {
        Verdict::Loop
    } else {
        Verdict::Ok
    }
}

/// Why the run did not end, and what to give.
fn unfinished(entry: &Entry, plan: &Plan, run: &RunFacts) -> String {
    let n = plan.setup.group.len();
    let up = n - run.down;
    if entry.algorithm.needs_majority() && 2 * up <= n {
        let are = if up == 1 { "is" } else { "are" };
        return format!(
            "{up} of {n} members {are} up, and the next view needs a majority of the last one"
        );
    }
    if let Some(stall) = &run.stall {
        return stalled(stall, run.unit);
    }
    let time = run.now as f64 / run.unit;
    if run.steps >= plan.config.step_limit {
        return format!("it was cut off after {} steps; --step-limit allows for more", run.steps);
    }
    format!("it was cut off at {time} T; --time-limit allows for more")
}

/// A stall in words: how long it lasted, and the events that repeat.
fn stalled(stall: &Stall, unit: f64) -> String {
    let kinds: Vec<String> = stall.messages.iter().map(|(k, n)| format!("{n} {k}")).collect();
    let repeat = match kinds.is_empty() {
        true => "timers alone repeat".to_owned(),
        false => format!("messages repeat ({})", kinds.join(", ")),
    };
    let time = (stall.time as f64 / unit).floor();
    format!(
        "it was cut off: no client learned anything new for {time} T, while {repeat}; --time-limit allows for more"
    )
}

/// Whether the run was cut off before the end that it should have had. One that only watches over
/// its members when everyone is served has come as far as it can.
fn unending(entry: &Entry, plan: &Plan, run: &RunFacts) -> bool {
    let served = run.served && entry.algorithm.goes_on(&plan.setup);
    run.cut_off && !entry.algorithm.is_endless() && !served
}
