//! Runs of the checker.

use std::collections::BTreeMap;

use konklave_algorithms::problem::{Number, Property};
use konklave_algorithms::{ProblemSheet, Setup, Watch, Workload};
use konklave_check::{
    Bounded, CheckpointError, Checkpoints, Model, Moment, Options, Outcome, Progress, Victim,
    Witness, WorldEvent,
};
use konklave_process::{AnyProcess, Group, ProcessId, Violation};
use konklave_trace::{
    EffectRecord, Entry as RunEntry, Footer, Header, Incident, IncidentKind, InputRecord, Memory,
    Run, Step,
};
use serde_json::json;

use crate::kit::{emit, explain};
use crate::report::{CheckReport, SymmetryReport};
use crate::{Entry, Error, Plan, arguments, command, header};

/// Options of a check besides its plan.
#[derive(Clone, Debug, Default)]
pub struct CheckPlan {
    /// Budgets and limits; properties by the names of the command line.
    pub options: Options,
    /// Whether a run with the most or the fewest messages is wanted, if all is well.
    pub extreme: Option<Extreme>,
    /// Words of the command line that repeat this check, besides the scenario.
    pub arguments: String,
    /// Where to write down how far the search has come, and where to go on from; what is explored is
    /// filled in here.
    pub checkpoints: Checkpoints,
}

impl CheckPlan {
    /// Refuses options that cannot be explored, before the search starts.
    pub fn refuse(&self, problem: &ProblemSheet, plan: &Plan) -> Result<(), Error> {
        let n = plan.setup.group.len();
        if n > 64 {
            return Err(Error::Usage(format!(
                "--nodes {n}: the checker explores groups of at most 64 nodes"
            )));
        }
        if n > 8 && (self.options.cuts > 0 || self.options.breaks > 0) {
            return Err(Error::Usage(format!(
                "--nodes {n}: --cut and --break work in groups of at most 8 nodes"
            )));
        }
        watched(problem, &self.options.properties).map(drop)?;
        let Some(clock) = self.options.clock else { return Ok(()) };
        let odd = |what: &str| Err(Error::Usage(format!("--clock: {what}")));
        if clock.step.is_zero() {
            return odd("--clock: a step of time must be positive");
        }
        if self.options.reduce {
            return odd("--reduce cannot be combined with --clock");
        }
        Ok(())
    }
}

/// Which end of the scale.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extreme {
    /// The fewest.
    Least,
    /// The most.
    Most,
}

/// The result of a check.
#[derive(Clone, Debug)]
pub struct Checked {
    /// In figures.
    pub report: CheckReport,
    /// The witness, if a property broke.
    pub witness: Option<Run>,
    /// A Rust test that plays the witness, if it breaks something and ends.
    pub test: Option<String>,
}

/// Explores `plan`; `watch` gets the progress and returns whether to continue.
pub(crate) fn check(
    entry: &Entry,
    plan: &Plan,
    check: &CheckPlan,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<Checked, Error> {
    check.refuse(entry.problem, plan)?;
    let setup = &plan.setup;
    let Watched { watch: judged, properties, most_messages } =
        watched(entry.problem, &check.options.properties)?;
    let (down, links) = (setup.down.clone(), links(setup));
    let fifo = plan.config.fifo;
    let mut options =
        Options { properties, most_messages, down, links, fifo, ..check.options.clone() };
    if options.crashes > 0 && options.victims != Victim::Anyone {
        options.coordinator = entry.coordinator(plan)?;
    }
    let model = model(entry, plan, &plan.workload, &judged, options);
    // A checkpoint belongs to the algorithm, whichever program has it.
    let identity = format!("konklave {}", arguments(entry, "check", plan));
    let checkpoints = Checkpoints { identity, ..check.checkpoints.clone() };
    let found = model.explore_from(&checkpoints, watch).map_err(refused)?;
    let mut report = explored(entry, plan, check, &model.options, &found);
    let memory = match model.options.stable_storage {
        true => Memory::Saved,
        false => Memory::Nothing,
    };
    let mut test = None;
    let witness = match found.outcome {
        Outcome::Exhausted => {
            extreme(check.extreme, found.costliest, found.cheapest).map(|witness| {
                let run = record(entry, plan, &witness, &report.command, memory);
                report.witness_length = Some(witness.len());
                report.witness = told(&run, witness.starts);
                run
            })
        }
        Outcome::Bounded(bound) => {
            report.verdict = "bounded";
            report.bound = Some(match bound {
                Bounded::States => "states",
                Bounded::Depth => "depth",
                Bounded::Memory => "memory",
                Bounded::Interrupted => "interrupted",
                Bounded::Compact => "compact",
                Bounded::Sample => "sample",
            });
            None
        }
        Outcome::Violated(witness) => {
            report.verdict = "violated";
            report.property = Some(witness.violation.property.to_owned());
            report.detail = Some(witness.violation.detail.clone());
            report.witness_length = Some(witness.len());
            report.witness_loops_from = witness.loops_from.map(|at| at - witness.starts);
            let run = record(entry, plan, &witness, &report.command, memory);
            report.witness = told(&run, witness.starts);
            report.explanation = Some(explain(entry.problem, &witness.violation, &report.witness));
            test = emit(entry, plan, &judged, &model.options, &witness, &report.command);
            Some(run)
        }
    };
    Ok(Checked { report, witness, test })
}

/// The report of a search, as if it had found nothing.
fn explored(
    entry: &Entry,
    plan: &Plan,
    check: &CheckPlan,
    options: &Options,
    found: &konklave_check::Report,
) -> CheckReport {
    let setup = &plan.setup;
    let seconds = found.elapsed.as_secs_f64();
    CheckReport {
        schema: "konklave.check/1",
        algorithm: entry.name(),
        nodes: setup.group.len(),
        topology: setup.topology.name.clone(),
        mistake: setup.mistake.map(str::to_owned),
        fifo: plan.config.fifo,
        budgets: budgets(plan, options),
        properties: check.options.properties.clone(),
        verdict: "exhausted",
        bound: None,
        property: None,
        detail: None,
        explanation: None,
        states: found.states,
        transitions: found.transitions,
        depth: found.depth,
        messages: found.messages,
        seconds,
        states_per_second: found.states as f64 / seconds.max(1e-9),
        peak_bytes: found.peak_bytes,
        reduction: if found.reduced { "commutation" } else { "none" },
        arrangements: None,
        symmetry: found.symmetry.as_ref().map(|found| SymmetryReport {
            permutations: found.permutations,
            interchangeable: found
                .classes
                .iter()
                .map(|c| c.iter().map(|p| p.0).collect())
                .collect(),
            refuted: found.refuted.clone(),
        }),
        missed: found.miss_probability,
        witness_length: None,
        witness_loops_from: None,
        witness: Vec::new(),
        command: [command(entry, "check", plan), check.arguments.clone()]
            .join(" ")
            .trim()
            .to_owned(),
    }
}

/// The links of the topology, whichever way they lead.
fn links(setup: &Setup) -> Vec<(ProcessId, ProcessId)> {
    let members = setup.group.members();
    let from = members.iter().enumerate();
    let links = from
        .flat_map(|(place, &one)| setup.topology.adjacent(place).map(move |to| (one, members[to])));
    links.filter(|(one, other)| one != other).collect()
}

/// Says why a checkpoint cannot be had.
fn refused(error: CheckpointError) -> Error {
    match error {
        CheckpointError::Unreadable(file, why) => {
            Error::Unreadable { file: file.display().to_string(), why }
        }
        CheckpointError::Unwritable(file, why) => {
            Error::Unwritable { file: file.display().to_string(), why }
        }
        CheckpointError::Unfit(_) => Error::Usage(error.to_string()),
        CheckpointError::Damaged(..)
        | CheckpointError::Differs { .. }
        | CheckpointError::Changed(_) => Error::Data(error.to_string()),
    }
}

/// The group of `plan`, with these clients and judges.
pub(crate) fn model(
    entry: &Entry,
    plan: &Plan,
    workload: &Workload,
    watch: &Watch,
    options: Options,
) -> Model {
    let (setup, algorithm) = (&plan.setup, entry.algorithm);
    Model {
        group: setup.group.clone(),
        processes: algorithm.processes(setup),
        application: match plan.config.script.is_empty() {
            true => algorithm.application(workload, setup),
            false => algorithm.scripted(workload, setup),
        },
        monitor: algorithm.monitor(watch, setup),
        options,
    }
}

fn extreme(
    wanted: Option<Extreme>,
    dearest: Option<Witness>,
    cheapest: Option<Witness>,
) -> Option<Witness> {
    match wanted? {
        Extreme::Least => cheapest,
        Extreme::Most => dearest,
    }
}

/// The properties that monitors and the search judge.
struct Watched {
    watch: Watch,
    properties: Vec<String>,
    most_messages: Option<u32>,
}

/// Translates property names of the command line for monitors and for the search.
fn watched(problem: &ProblemSheet, names: &[String]) -> Result<Watched, Error> {
    let mut watch = Watch::default();
    let (mut properties, mut most_messages) = (Vec::new(), None);
    for name in names {
        let (word, argument) = name.split_once(':').map_or((&**name, None), |(w, a)| (w, Some(a)));
        let Some(property) = problem.all_properties().find(|known| known.word == word) else {
            let known: Vec<&str> = problem.all_properties().map(|known| known.word).collect();
            return Err(Error::Usage(format!(
                "--property {name}: the properties of {} are {}{}",
                problem.name,
                known.join(", "),
                crate::did_you_mean(word, known.iter().copied())
            )));
        };
        let most = || {
            argument.and_then(|a| a.parse().ok()).ok_or_else(|| {
                Error::Usage(format!("--property {name}: a number is missing, as in {word}:2"))
            })
        };
        let number = match (property.number, argument) {
            (Number::None, Some(argument)) => {
                return Err(Error::Usage(format!(
                    "--property {name}: `{word}` takes no argument `{argument}`"
                )));
            }
            (Number::None | Number::Optional, None) => None,
            (Number::Optional | Number::Required, _) => Some(most()?),
        };
        if *property == Property::BOUND {
            most_messages = number;
        } else {
            watch_for(property, number, &mut watch);
        }
        properties.extend(property.broken_by.iter().map(|&p| p.to_owned()));
    }
    Ok(Watched { watch, properties, most_messages })
}

/// Lets judges watch for `property`. A number that has no place of its own stands under the property's word.
fn watch_for(property: &Property, number: Option<u32>, watch: &mut Watch) {
    (property.watch)(watch, number);
    let mut alone = Watch::default();
    (property.watch)(&mut alone, number);
    if let Some(number) = number.filter(|_| alone == Watch::default()) {
        watch.numbers.insert(property.word, number);
    }
}

fn budgets(plan: &Plan, options: &Options) -> BTreeMap<&'static str, serde_json::Value> {
    let steps = |steps: f64| steps * options.clock.map_or(0.0, |clock| clock.step.as_secs_f64());
    let unit = plan.setup.unit.as_secs_f64();
    let limit = options.clock.and_then(|clock| clock.limit);
    BTreeMap::from([
        ("early", json!(options.early)),
        ("clock", json!(options.clock.map(|_| steps(1.0) / unit))),
        ("time_limit", json!(limit.map(|limit| steps(f64::from(limit)) / unit))),
        ("requests", json!(plan.workload.requests)),
        ("initiators", json!(plan.workload.initiators)),
        ("crash", json!(options.crashes)),
        ("restart", json!(options.restarts)),
        ("loss", json!(options.losses)),
        ("duplicate", json!(options.duplicates)),
        ("cut", json!(options.cuts)),
        ("break", json!(options.breaks)),
        ("app_messages", json!(options.app_messages)),
        ("max_states", json!(options.max_states)),
    ])
}

/// The witness as a run whose clock counts steps. `memory`: the state that survives a crash.
pub(crate) fn record(
    entry: &Entry,
    plan: &Plan,
    witness: &Witness,
    command: &str,
    memory: Memory,
) -> Run {
    let entries = entries_of(witness, memory);
    let violation = &witness.violation;
    let mut header = Header { command: command.to_owned(), ..header(entry, plan, "check") };
    count_steps(&mut header);
    let verdict = if is_broken(violation) { "violated" } else { "ok" };
    let footer = Footer {
        verdict: verdict.into(),
        summary: json!({
            "property": violation.property,
            "detail": violation.detail,
        }),
    };
    Run { header, entries, footer: Some(footer) }
}

/// A witness of `group` as a run whose clock counts steps.
pub fn witness_run(group: &Group, witness: &Witness) -> Run {
    let mut header = Header::new("", group.members().iter().map(|p| p.0).collect());
    count_steps(&mut header);
    let entries = entries_of(witness, Memory::Saved);
    Run { header, entries, footer: None }
}

fn count_steps(header: &mut Header) {
    header.unit = 1.0;
    header.time = "steps".into();
}

/// Whether it is a violation, not only a figure that was asked for.
fn is_broken(violation: &Violation) -> bool {
    let figures = [konklave_check::MOST_MESSAGES, konklave_check::FEWEST_MESSAGES];
    !figures.contains(&violation.property)
}

fn entries_of(witness: &Witness, memory: Memory) -> Vec<RunEntry> {
    let mut entries = Vec::new();
    let mut states: BTreeMap<u32, Box<AnyProcess>> = BTreeMap::new();
    for (i, moment) in witness.moments.iter().enumerate() {
        // Everyone comes up at time 0; after that, one step a tick.
        let at = (i + 1).saturating_sub(witness.starts) as u64;
        entries.push(match moment {
            Moment::Step { at: node, input, message, draws, effects, process } => {
                let before = states.insert(node.0, process.clone());
                let state = (before.as_ref() != Some(process))
                    .then(|| serde_json::to_value(process).unwrap_or_default());
                RunEntry::Step(Step {
                    at,
                    node: node.0,
                    input: InputRecord::new(input.view(), *message),
                    draws: draws.clone(),
                    effects: effects
                        .iter()
                        .map(|(e, id)| EffectRecord::new(e.view(), *id))
                        .collect(),
                    state,
                })
            }
            Moment::Lost(id) => incident(at, IncidentKind::Lost(*id)),
            Moment::Duplicated(id) => incident(at, IncidentKind::Duplicated(*id)),
            Moment::World(WorldEvent::Crash(p), _) => incident(at, IncidentKind::Crash(p.0)),
            Moment::World(WorldEvent::Cut(from, to), _) => {
                incident(at, IncidentKind::Cut(format!("{from}>{to}")))
            }
            // As the simulator records it.
            Moment::World(WorldEvent::Break(one, other), _) => {
                incident(at, IncidentKind::Cut(format!("{one} – {other}")))
            }
            Moment::World(WorldEvent::Restart(p), _) => {
                incident(at, IncidentKind::Restart { node: p.0, memory })
            }
            // A passing tick is visible only as a tick in which nothing else happens.
            Moment::World(WorldEvent::Pass, _) => continue,
            Moment::World(WorldEvent::AppMessage(from, to), id) => {
                incident(at, IncidentKind::AppMessage { from: from.0, to: to.0, id: *id })
            }
        });
    }
    let last = entries.last().map_or(0, RunEntry::at);
    let violation = &witness.violation;
    if is_broken(violation) {
        entries.push(incident(
            last,
            IncidentKind::Violation {
                property: violation.property.into(),
                detail: violation.detail.clone(),
            },
        ));
    }
    entries
}

/// The entries of `run` after the first `skip`, one line each.
pub fn told(run: &Run, skip: usize) -> Vec<String> {
    let messages = konklave_trace::messages::messages(run);
    let line = |entry: &RunEntry| match entry {
        RunEntry::Step(step) => {
            konklave_trace::text::step_lines(step, &run.header, false).join("; ")
        }
        RunEntry::Incident(incident) => {
            konklave_trace::text::incident_line(incident, &run.header, &messages)
        }
    };
    run.entries.iter().skip(skip).map(line).collect()
}

fn incident(at: u64, kind: IncidentKind) -> RunEntry {
    RunEntry::Incident(Incident { at, kind })
}
