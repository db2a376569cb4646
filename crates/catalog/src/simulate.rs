//! Runs in the simulator.

use konklave_algorithms::{Algorithm, Bound, Metric, Pause, Problem};
use konklave_process::{Effect, Input, ProcessId};
use konklave_sim::{Ending, Incident, Observer, Parts, Sim, Time, UNIT};
use konklave_trace::{Footer, IncidentKind, Recordable, Recorder, Run};
use serde_json::{Map, Value};

use crate::report::{BoundReport, Messages, RunReport, Verdict, ViolationReport};
use crate::{Error, Plan, header};

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// In figures.
    pub report: RunReport,
    /// Step by step, if it was recorded.
    pub run: Option<Run>,
}

/// Runs `plan` in the simulator.
pub(crate) fn simulate<P>(plan: &Plan, record: bool) -> Result<Outcome, Error>
where
    P: Algorithm + Recordable,
{
    P::check_setup(&plan.setup).map_err(|e| Error::Usage(e.to_string()))?;
    let recorder = record.then(|| Recorder::<P, Run>::new(header::<P>(plan, "sim")));
    let (report, Recording(recorder)) = go::<P>(plan, Recording(recorder));
    let run = recorder.map(|recorder| {
        let summary = serde_json::to_value(&report).unwrap_or_default();
        let footer = Footer { verdict: report.verdict.name().into(), summary };
        recorder.finish(Some(footer))
    });
    Ok(Outcome { report, run })
}

fn go<P>(plan: &Plan, observer: Recording<P>) -> (RunReport, Recording<P>)
where
    P: Algorithm + Recordable,
{
    let setup = &plan.setup;
    let parts = Parts {
        processes: setup.group.members().iter().map(|&p| P::new(p, setup)).collect::<Vec<P>>(),
        application: P::Problem::application(&plan.workload, setup),
        monitor: P::Problem::monitor(&plan.watch, setup),
        meter: P::Problem::meter(setup),
        observer,
    };
    let is_hold = |request: &P::Request| P::Problem::pause(request) == Pause::Hold;
    let mut sim = Sim::new(setup.group.clone(), parts, &plan.config, is_hold);
    let ending = sim.run();
    if ending == Ending::Quiet || P::Problem::ENDLESS || P::ENDLESS {
        sim.judge(ending);
    }
    let counts = sim.counts();
    let facts = RunFacts {
        world: "sim",
        unit: UNIT as f64,
        now: sim.now(),
        steps: counts.steps,
        messages: Messages {
            sent: counts.sent,
            delivered: counts.delivered,
            lost: counts.lost,
            duplicated: counts.duplicated,
            by_kind: sim.kinds().map(|(kind, count)| (kind.to_owned(), count)).collect(),
        },
        violations: sim
            .violations()
            .iter()
            .map(|(at, v)| (*at, v.property.to_owned(), v.detail.clone()))
            .collect(),
        waiting: sim.waiting(),
        cut_off: ending == Ending::CutOff,
    };
    let report = report::<P>(plan, facts, sim.meter(), sim.monitor());
    (report, sim.into_observer())
}

/// What a host knows of a run when it is over.
pub(crate) struct RunFacts {
    pub(crate) world: &'static str,
    /// Ticks in one T.
    pub(crate) unit: f64,
    pub(crate) now: u64,
    pub(crate) steps: u64,
    pub(crate) messages: Messages,
    pub(crate) violations: Vec<(u64, String, String)>,
    pub(crate) waiting: Vec<ProcessId>,
    pub(crate) cut_off: bool,
}

/// The report of a run in any world.
pub(crate) fn report<P: Algorithm>(
    plan: &Plan,
    run: RunFacts,
    meter: &<P::Problem as Problem<P>>::Meter,
    monitor: &<P::Problem as Problem<P>>::Monitor,
) -> RunReport {
    let bounds = bounds::<P>(plan, &run, meter);
    let mut violations: Vec<ViolationReport> = run
        .violations
        .into_iter()
        .map(|(at, property, detail)| ViolationReport {
            property,
            at: at as f64 / run.unit,
            detail,
        })
        .collect();
    let time = run.now as f64 / run.unit;
    if plan.broken.is_empty() && plan.setup.mistake.is_none() && !run.cut_off && run.world == "sim"
    {
        for bound in bounds.iter().filter(|b| b.holds == Some(false)) {
            let (measured, limit) = (bound.measured.unwrap_or(0.0), bound.limit.unwrap_or(0.0));
            let detail = format!(
                "{:?} should be {} = {limit}, but {measured} was measured",
                bound.metric, bound.formula
            );
            violations.push(ViolationReport { property: "bound".into(), at: time, detail });
        }
    }
    let stuck = !run.cut_off && !run.waiting.is_empty();
    let unending = run.cut_off && !P::Problem::ENDLESS && !P::ENDLESS;
    // That a stuck run does not end is said by "stuck".
    let only_ends = stuck && violations.iter().all(|v| v.property == "termination");
    let verdict = if !violations.is_empty() && !only_ends {
        Verdict::Violated
    } else if stuck {
        Verdict::Stuck
    } else if unending {
        Verdict::Unfinished
    } else {
        Verdict::Ok
    };
    let summary = P::Problem::summary(meter, monitor, run.unit);
    let mut summary = serde_json::to_value(summary).unwrap_or_default();
    if let (Value::Object(fields), Some(winner)) = (&mut summary, P::sheet(&plan.setup).winner) {
        fields.insert("winner_rule".into(), serde_json::to_value(winner).unwrap_or_default());
    }
    if let Value::Object(fields) = &mut summary
        && let Some(entries) = fields.get("entries").and_then(Value::as_u64)
    {
        let per_entry = (entries > 0).then(|| run.messages.sent as f64 / entries as f64);
        fields.insert("messages_per_entry".into(), per_entry.into());
    }
    RunReport {
        schema: "konklave.run/1",
        algorithm: crate::full_name::<P>(),
        nodes: plan.setup.group.len(),
        topology: plan.setup.topology.name.clone(),
        seed: plan.config.seed,
        world: run.world.into(),
        mistake: plan.setup.mistake.map(str::to_owned),
        verdict,
        violations,
        broken_assumptions: plan
            .broken
            .iter()
            .map(|(assumption, by)| format!("{assumption}: {by}"))
            .collect(),
        waiting: run.waiting.iter().map(|p| p.0).collect(),
        time,
        steps: run.steps,
        messages: run.messages,
        bounds,
        problem: Map::from_iter([(P::Problem::NAME.to_owned(), summary)]),
        command: crate::command::<P>("run", plan),
    }
}

fn bounds<P: Algorithm>(
    plan: &Plan,
    run: &RunFacts,
    meter: &<P::Problem as Problem<P>>::Meter,
) -> Vec<BoundReport> {
    let served = P::Problem::served(meter);
    let mut facts = plan.facts(&served);
    if run.world != "sim" {
        // Real messages take what they take: T is only a word there.
        facts.delay_max = None;
    }
    let sent = run.messages.sent as f64;
    let entries = facts.entries();
    let mut reports = Vec::new();
    for cost in P::SHEET.costs {
        let measured = match cost.metric {
            Metric::Messages => Some(sent),
            Metric::MessagesPerEntry => (entries > 0.0).then(|| sent / entries),
            Metric::SyncDelay | Metric::EntryDelay | Metric::Time => {
                P::Problem::measured(meter, cost.metric, run.unit)
            }
        };
        // Formulas speak of one election, of runs that came to their end, and of messages that
        // arrive once: what arrives twice may be answered twice.
        let once = plan.workload.requests.iter().all(|&r| r == 1) || P::Problem::NAME != "election";
        let undoubled = run.messages.duplicated == 0;
        let applies = !run.cut_off && once && undoubled && facts.assumptions_hold;
        let bound = if applies { (cost.bound)(&facts) } else { None };
        reports.push(BoundReport {
            metric: cost.metric,
            formula: cost.formula.into(),
            when: cost.when.into(),
            limit: bound.map(Bound::limit),
            exact: matches!(bound, Some(Bound::Exactly(_))),
            measured,
            holds: bound.zip(measured).map(|(bound, measured)| bound.holds(measured)),
        });
    }
    reports
}

/// Writes a simulated run down, if that is wanted. One type for both, for each algorithm is compiled
/// once with each type of observer.
struct Recording<P>(Option<Recorder<P, Run>>);

impl<P: Recordable> Observer<P> for Recording<P> {
    /// The number of the message; 0 where nobody counts.
    type Tag = u64;

    fn before_step(&mut self, now: Time, at: ProcessId, input: &Input<P>, tag: &u64) {
        if let Some(recorder) = &mut self.0 {
            recorder.begin(now, at, input, *tag);
        }
    }
    fn on_effect(&mut self, _now: Time, _at: ProcessId, effect: &Effect<P>) -> u64 {
        self.0.as_mut().map_or(0, |recorder| recorder.effect(effect))
    }
    fn on_send(&mut self, now: Time, at: ProcessId, to: ProcessId, message: &P::Message) -> u64 {
        if self.0.is_none() {
            return 0;
        }
        self.on_effect(now, at, &Effect::Send { to, message: message.clone() })
    }
    fn on_draw(&mut self, drawn: u32) {
        if let Some(recorder) = &mut self.0 {
            recorder.draw(drawn);
        }
    }
    fn after_step(&mut self, _now: Time, _at: ProcessId, process: &P) {
        if let Some(recorder) = &mut self.0 {
            recorder.end(process);
        }
    }
    fn on_lost(&mut self, now: Time, _from: ProcessId, _to: ProcessId, tag: &u64) {
        if let Some(recorder) = &mut self.0 {
            recorder.lost(now, *tag);
        }
    }
    fn on_duplicated(&mut self, now: Time, tag: &u64) {
        if let Some(recorder) = &mut self.0 {
            recorder.duplicated(now, *tag);
        }
    }
    fn on_app_message(&mut self, now: Time, from: ProcessId, to: ProcessId) -> u64 {
        self.0.as_mut().map_or(0, |recorder| recorder.app_message(now, from, to))
    }
    fn on_incident(&mut self, now: Time, incident: &Incident) {
        if let Some(recorder) = &mut self.0 {
            recorder.incident(now, incident_kind(incident));
        }
    }
}

fn incident_kind(incident: &Incident) -> IncidentKind {
    match incident {
        Incident::Crash(p) => IncidentKind::Crash(p.0),
        Incident::Restart(p, memory) => IncidentKind::Restart {
            node: p.0,
            memory: match memory {
                konklave_sim::Memory::Saved => konklave_trace::Memory::Saved,
                konklave_sim::Memory::Nothing => konklave_trace::Memory::Nothing,
                konklave_sim::Memory::Everything => konklave_trace::Memory::Everything,
            },
        },
        Incident::Pause(p) => IncidentKind::Pause(p.0),
        Incident::Resume(p) => IncidentKind::Resume(p.0),
        Incident::Cut(what) => IncidentKind::Cut(what.clone()),
        Incident::Heal(what) => IncidentKind::Heal(what.clone()),
        Incident::Violation { property, detail } => {
            IncidentKind::Violation { property: (*property).into(), detail: detail.clone() }
        }
    }
}
