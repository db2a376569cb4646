//! Derived from a violating run: a test, an explanation in one line, and the
//! fewest steps that still break it.

use std::fmt::Write as _;

use konklave_algorithms::problem::{ProblemSheet, Property};
use konklave_algorithms::{Watch, Workload};
use konklave_check::{Options, ScheduleRecorder, ScheduleStep, Witness, WorldEvent};
use konklave_process::{AnyProcess, ProcessId, Topology, Violation};
use konklave_trace::{EffectRecord, Entry as RunEntry, IncidentKind, Memory, Run, text};

use crate::checking::{model, record};
use crate::{Entry, Error, Plan};

/// A run with the fewest steps that were needed.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The property that breaks, as before.
    pub property: String,
    /// How many steps, faults and requests the run had, and has now, not counting that everyone
    /// comes up.
    pub steps: (usize, usize),
    /// How many requests all clients made, and make now.
    pub requests: (u32, u32),
    /// The explanation in one line.
    pub explanation: String,
    /// The run that is left.
    pub run: Run,
}

/// Names the violated property, and the step of the run that violates it.
pub(crate) fn explain(problem: &ProblemSheet, violation: &Violation, told: &[String]) -> String {
    let broken = |property: &&Property| property.broken_by.contains(&violation.property);
    let broken = problem.all_properties().find(broken);
    let rule = broken.map_or(String::new(), |property| format!(" ({})", property.meaning));
    let when = if problem.is_seen_at_end(violation.property) {
        "is violated for good after"
    } else {
        "is violated at"
    };
    let (property, detail) = (violation.property, text::violation(&violation.detail));
    // The last line is the violation itself.
    match told.len().checked_sub(2).map(|last| (last + 1, &told[last])) {
        Some((number, step)) => {
            format!("{property}{rule} {when} step {number}, `{step}`: {detail}")
        }
        None => format!("{property}{rule} is violated from the start: {detail}"),
    }
}

/// A test that plays the schedule of `witness`; none if it never ends.
pub(crate) fn emit(
    entry: &Entry,
    plan: &Plan,
    watch: &Watch,
    options: &Options,
    witness: &Witness,
    command: &str,
) -> Option<String> {
    if witness.loops_from.is_some() {
        return None;
    }
    let (setup, property) = (&plan.setup, witness.violation.property);
    let words = |text: &str| text.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    let ids = |ids: &[ProcessId]| format!("{:?}", ids.iter().map(|p| p.0).collect::<Vec<_>>());
    let mut test = format!(
        "/// Found by `{command}`.\n#[test]\nfn {}_breaks_{}() {{\n",
        words(entry.sheet.name),
        words(property)
    );
    let _ = writeln!(test, "    let topology = {};", topology_in_rust(&setup.topology));
    let _ = writeln!(
        test,
        "    let mut case = konklave_testkit::Case::<{}>::on(topology)\n        .ids(&{})",
        entry.algorithm.type_name(),
        ids(setup.group.members())
    );
    let Workload { initiators, requests } = &plan.workload;
    let _ = writeln!(test, "        .initiators(&{})", ids(initiators));
    let _ = writeln!(test, "        .requests(&{requests:?})");
    if let Some(mistake) = setup.mistake {
        let _ = writeln!(test, "        .mistake({mistake:?})");
    }
    for (name, value) in &setup.chosen {
        let _ = writeln!(test, "        .set({name:?}, {value:?})");
    }
    if !setup.down.is_empty() {
        let _ = writeln!(test, "        .down(&{})", ids(&setup.down));
    }
    if let Some(clock) = options.clock {
        let _ = writeln!(test, "        .clock({})", clock.step.as_micros());
    }
    let changes = [(!options.fifo, "no_fifo()"), (watch.fence, "fenced()")];
    for (_, call) in changes.iter().filter(|(on, _)| *on) {
        let _ = writeln!(test, "        .{call}");
    }
    let _ = writeln!(test, "        .judge(&[{property:?}]);");
    let _ = writeln!(test, "    case.watch.bypass = {:?};", watch.bypass);
    let _ = writeln!(test, "    case.watch.overtaking = {:?};", watch.overtaking);
    let _ = writeln!(test, "    case.watch.slips = {:?};", watch.slips);
    let _ = writeln!(test, "    case.watch.stability = {:?};", watch.stability);
    for (word, number) in &watch.numbers {
        let _ = writeln!(test, "    case.watch.numbers.insert({word:?}, {number});");
    }
    let _ = writeln!(test, "    case.options.most_messages = {:?};", options.most_messages);
    let _ = writeln!(test, "    case.options.detector = {};", options.detector);
    let _ = writeln!(test, "    case.options.stable_storage = {};", options.stable_storage);
    let _ = writeln!(test, "    let schedule = [");
    for step in witness.schedule() {
        let _ = writeln!(test, "        {:?},", step.to_string());
    }
    let _ = writeln!(test, "    ];\n    assert_eq!(case.play(&schedule), Some({property:?}));\n}}");
    Some(test)
}

/// A Rust expression that builds the topology.
fn topology_in_rust(topology: &Topology) -> String {
    let name = match &*topology.name {
        "complete" => Some("complete"),
        "ring" => Some("ring"),
        "directed-ring" => Some("directed_ring"),
        _ => None,
    };
    let n = topology.len();
    let place = "konklave_testkit::Topology";
    name.map_or_else(
        || {
            let edges: Vec<_> = topology.edge_list().collect();
            format!("{place}::from_edges({:?}, {n}, {edges:?}).expect(\"a graph\")", topology.name)
        },
        |name| format!("{place}::{name}({n})"),
    )
}

/// The schedule of a recorded run.
fn schedule_of(process: &AnyProcess, run: &Run) -> Result<Vec<ScheduleStep>, Error> {
    let mut recorder = ScheduleRecorder::default();
    for entry in &run.entries {
        match entry {
            RunEntry::Step(step) => {
                let input = step.input.to_input(process);
                let input = input.map_err(|e| Error::Data(format!("an input of the run: {e}")))?;
                let id = match &step.input {
                    konklave_trace::InputRecord::Message { id, .. }
                    | konklave_trace::InputRecord::Stamp { id, .. } => *id,
                    _ => 0,
                };
                let me = ProcessId(step.node);
                recorder.step(me, &input, id, &step.draws);
                for effect in &step.effects {
                    if let EffectRecord::Send { to, id, .. } = effect {
                        recorder.sent(me, ProcessId(*to), *id);
                    }
                }
            }
            RunEntry::Incident(incident) => match &incident.kind {
                IncidentKind::Lost(id) => recorder.lost(*id),
                IncidentKind::Duplicated(id) => recorder.duplicated(*id),
                IncidentKind::Crash(p) => recorder.happened(WorldEvent::Crash(ProcessId(*p)), 0),
                IncidentKind::Restart { node, .. } => {
                    recorder.happened(WorldEvent::Restart(ProcessId(*node)), 0);
                }
                IncidentKind::AppMessage { from, to, id } => {
                    recorder
                        .happened(WorldEvent::AppMessage(ProcessId(*from), ProcessId(*to)), *id);
                }
                // A process learns of a broken link by a report that was sent when the link broke.
                IncidentKind::Cut(what) => {
                    if let Some((one, other)) = link_of(what) {
                        recorder.happened(WorldEvent::Break(one, other), 0);
                    }
                }
                // The effects of these faults on messages and steps are entries of the run.
                IncidentKind::Pause(_)
                | IncidentKind::Resume(_)
                | IncidentKind::Heal(_)
                | IncidentKind::Violation { .. } => {}
            },
        }
    }
    Ok(recorder.finish())
}

/// The two ends of a link that broke; none if it was a cut one way, or a partition.
fn link_of(what: &str) -> Option<(ProcessId, ProcessId)> {
    let (one, other) = what.split_once(" – ")?;
    let id = |text: &str| Some(ProcessId(text.strip_prefix('p')?.parse().ok()?));
    Some((id(one)?, id(other)?))
}

/// The property that broke in `run`, if the checker knows it.
fn broken_in(run: &Run) -> Option<&str> {
    run.entries.iter().find_map(|entry| match entry {
        RunEntry::Incident(incident) => match &incident.kind {
            IncidentKind::Violation { property, .. } => Some(&**property),
            _ => None,
        },
        RunEntry::Step(_) => None,
    })
}

/// Leaves out of `run` all that its violation does not need: first whole requests, then steps.
pub(crate) fn shrink(entry: &Entry, plan: &Plan, run: &Run) -> Result<Shrunk, Error> {
    let Some(property) = broken_in(run) else {
        return Err(Error::Data("this run violates no property, so it cannot be shrunk".into()));
    };
    let options = Options {
        down: plan.setup.down.clone(),
        fifo: plan.config.fifo,
        properties: vec![property.to_owned()],
        stable_storage: !forgets(run),
        ..Options::default()
    };
    let sample = entry.algorithm.process(plan.setup.group.id(0), &plan.setup);
    let schedule = schedule_of(&sample, run)?;
    let least = |workload: &Workload, schedule: &[ScheduleStep]| {
        model(entry, plan, workload, &plan.watch, options.clone()).shrink(schedule, property)
    };
    let mut workload = plan.workload.clone();
    let Some(mut left) = least(&workload, &schedule) else {
        return Err(Error::Data(format!(
            "{property} does not break when the steps of the run are made one after the other by the \
             rules of the checker; pauses and wrong suspicions are beyond them"
        )));
    };
    let before = (steps(&schedule), asked(&workload));
    // From the last client to the first, as often as one request fewer will do.
    for place in (0..workload.requests.len()).rev() {
        while workload.requests[place] > 0 {
            let mut fewer = workload.clone();
            fewer.requests[place] -= 1;
            let Some(found) = least(&fewer, &left) else { break };
            (workload, left) = (fewer, found);
        }
    }
    let played = model(entry, plan, &workload, &plan.watch, options).play(&left);
    let Some((violation, _)) = played.broken else {
        return Err(Error::Data(format!(
            "the violation of {property} did not occur again in a second run"
        )));
    };
    let memory = if forgets(run) { Memory::Nothing } else { Memory::Saved };
    let (moments, starts) = (played.moments, played.starts);
    let witness = Witness { violation, moments, starts, loops_from: None };
    let mut plan = plan.clone();
    if !workload.requests.is_empty() && workload != plan.workload {
        let requests: Vec<String> = workload.requests.iter().map(u32::to_string).collect();
        plan.scenario.requests = Some(requests.join(","));
        (plan.scenario.entries, plan.scenario.script) = (None, None);
    }
    let run = record(entry, &plan, &witness, &run.header.command, memory);
    Ok(Shrunk {
        property: property.to_owned(),
        steps: (before.0, steps(&left)),
        requests: (before.1, asked(&workload)),
        explanation: explain(
            entry.problem,
            &witness.violation,
            &crate::checking::told(&run, starts),
        ),
        run,
    })
}

/// Whether the restarted process had lost its state.
fn forgets(run: &Run) -> bool {
    let forgot =
        |kind: &IncidentKind| matches!(kind, IncidentKind::Restart { memory: Memory::Nothing, .. });
    run.entries.iter().any(|entry| matches!(entry, RunEntry::Incident(i) if forgot(&i.kind)))
}

fn asked(workload: &Workload) -> u32 {
    workload.requests.iter().fold(0, |sum: u32, k| sum.saturating_add(*k))
}

fn steps(schedule: &[ScheduleStep]) -> usize {
    schedule.iter().filter(|step| !step.to_string().starts_with("start ")).count()
}
