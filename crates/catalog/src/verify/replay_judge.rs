//! Judges a recorded run of a real world again: clients, monitors and meters get every event once more.

use std::collections::{BTreeMap, BTreeSet};

use konklave_process::{
    AnyApplication, AnyData, AnyMeter, AnyMonitor, AnyProcess, AnyTag, Application, Effect, End,
    Input, Ledger, ProcessId, ProcessSet, Verdict, Violation,
};
use konklave_trace::{
    Audit, Difference, EffectRecord, Entry as RunEntry, Footer, IncidentKind, InputRecord, Place,
    Replayer, Run, Step,
};
use serde_json::Value;

use crate::fault_effects::FaultEffects;
use crate::real::{REAL_WORLDS, command, doubt_time_bounds};
use crate::report::Messages;
use crate::simulate::{RunFacts, report};
use crate::{Entry, Plan};

/// The state of a run besides its processes: clients, monitor, meter, messages in flight, crashed nodes.
pub(super) struct ReplayJudge<'a> {
    entry: &'a Entry,
    /// A process that decodes messages and requests of the algorithm.
    sample: AnyProcess,
    ledger: Ledger<AnyProcess, AnyApplication, AnyMonitor, AnyMeter>,
    /// The messages in flight, each with the tag that the monitor gave it when it was sent.
    flights: BTreeMap<u64, (AnyTag, AnyData)>,
    /// The messages with two copies in flight.
    doubled: BTreeSet<u64>,
    messages: Messages,
    effects: FaultEffects,
    steps: u64,
    timers: u64,
    down: ProcessSet,
    faulty: bool,
    found: Vec<Violation>,
}

impl<'a> ReplayJudge<'a> {
    pub(super) fn new(entry: &'a Entry, plan: &Plan) -> Self {
        let (algorithm, setup) = (entry.algorithm, &plan.setup);
        Self {
            entry,
            sample: algorithm.process(setup.group.id(0), setup),
            ledger: Ledger::new(
                algorithm.application(&plan.workload, setup),
                algorithm.monitor(&plan.watch, setup),
                algorithm.meter(setup),
            ),
            flights: BTreeMap::new(),
            doubled: BTreeSet::new(),
            messages: Messages::default(),
            effects: FaultEffects::new(&plan.config),
            steps: 0,
            timers: 0,
            down: ProcessSet::new(),
            faulty: false,
            found: Vec::new(),
        }
    }

    /// Whether no client waits, and no live client would make a further request.
    fn is_served(&self, plan: &Plan) -> bool {
        let members = plan.setup.group.members().iter().copied();
        self.ledger.is_served(members.filter(|p| !self.down.contains(*p)))
    }

    /// Passes an entry to clients and monitor, before the process of a step gets its input.
    pub(super) fn before(&mut self, i: usize, entry: &RunEntry) -> Result<(), Difference> {
        match entry {
            RunEntry::Step(step) => self.input(i, step),
            RunEntry::Incident(incident) => {
                match incident.kind {
                    IncidentKind::Crash(p) => {
                        let p = ProcessId(p);
                        self.faulty = true;
                        self.down.insert(p);
                        self.ledger.on_crash(incident.at, p);
                    }
                    IncidentKind::Restart { node, .. } => {
                        self.down.remove(ProcessId(node));
                        self.ledger.on_restart(ProcessId(node));
                    }
                    IncidentKind::Lost(id) => {
                        self.faulty = true;
                        self.messages.lost += 1;
                        if let Some((_, message)) = self.flights.remove(&id) {
                            self.ledger.on_lost(&message);
                        }
                    }
                    IncidentKind::Duplicated(id) => {
                        self.faulty = true;
                        self.messages.duplicated += 1;
                        if let Some((_, message)) = self.flights.get(&id) {
                            self.ledger.on_duplicated(message);
                            self.doubled.insert(id);
                        }
                    }
                    _ => {}
                }
                Ok(())
            }
        }
    }

    fn input(&mut self, i: usize, step: &Step) -> Result<(), Difference> {
        let me = ProcessId(step.node);
        self.steps += 1;
        // An input that cannot be decoded is reported by the replay.
        let Ok(input) = step.input.to_input(&self.sample) else { return Ok(()) };
        match (input, &step.input) {
            (Input::Request(request), InputRecord::Request(recorded)) => {
                if self.ledger.application.next(me).as_ref() != Some(&request) {
                    return Err(Difference {
                        place: Place::Entry(i),
                        what: format!(
                            "the client of p{} would not make this request now",
                            step.node
                        ),
                        recorded: recorded.to_string(),
                        expected: match self.ledger.application.next(me) {
                            Some(request) => serde_json::to_string(&request).unwrap_or_default(),
                            None => "nothing".into(),
                        },
                    });
                }
                let verdict = self.ledger.on_request(step.at, me, &request);
                self.note(verdict);
            }
            (Input::Message { message, .. }, InputRecord::Message { id, .. }) => {
                self.messages.delivered += 1;
                let tag = match self.doubled.remove(id) {
                    true => self.flights.get(id).map(|(tag, _)| tag.clone()),
                    false => self.flights.remove(id).map(|(tag, _)| tag),
                };
                if let Some(tag) = tag {
                    let verdict = self.ledger.on_receive(me, Some(&message), &tag);
                    self.note(verdict);
                }
            }
            (Input::Timer(_), _) => self.timers += 1,
            _ => {}
        }
        Ok(())
    }

    /// Passes the effects of a step to clients and monitor.
    pub(super) fn after(&mut self, entry: &RunEntry, replayer: &Replayer) {
        let RunEntry::Step(step) = entry else { return };
        let me = ProcessId(step.node);
        for (effect, recorded) in replayer.effects().iter().zip(&step.effects) {
            match (effect, recorded) {
                (Effect::Send { to, message }, EffectRecord::Send { id, .. }) => {
                    self.messages.sent += 1;
                    let kind = kind(message);
                    self.effects.on_send(me, *to, &kind);
                    *self.messages.by_kind.entry(kind).or_default() += 1;
                    let tag = self.ledger.on_send(me, Some(message));
                    if replayer.group().contains(*to) {
                        self.flights.insert(*id, (tag, message.clone()));
                    } else {
                        self.found.push(Violation::stranger(me, *to));
                    }
                }
                (Effect::Indicate(indication), _) => {
                    let verdict = self.ledger.on_indication(step.at, me, indication);
                    self.note(verdict);
                }
                (Effect::Unexpected(what), _) => {
                    self.found.push(Violation::unexpected(me, what));
                }
                _ => {}
            }
        }
        if let Some(place) = replayer.group().place(me) {
            let verdict = self.ledger.after_step(me, &replayer.processes()[place]);
            self.note(verdict);
        }
    }

    fn note(&mut self, verdict: Verdict) {
        self.found.extend(verdict.err());
    }

    /// Compares violations and verdict with those of the recording.
    pub(super) fn close(
        &mut self,
        plan: &Plan,
        run: &Run,
        footer: Option<&Footer>,
        audit: &Audit<'_>,
        replayer: &Replayer,
    ) -> Result<(), Difference> {
        let Some(footer) = footer else { return self.compare(run, false) };
        let up: Vec<ProcessId> = {
            let members = replayer.group().members().iter().copied();
            members.filter(|p| !self.down.contains(*p)).collect()
        };
        let busy =
            audit.is_pending() || up.iter().any(|p| self.ledger.application.next(*p).is_some());
        // A recording does not hold pending reports of the detector. So a run that looks quiet may have been
        // cut off: it must fit one of the two cases.
        let before = self.found.len();
        let mut first = None;
        for cut_off in if busy { vec![true] } else { vec![false, true] } {
            self.found.truncate(before);
            self.judge(cut_off, &up, replayer);
            let judged =
                self.compare(run, true).and_then(|()| self.end(plan, run, footer, cut_off));
            match judged {
                Ok(()) => return Ok(()),
                Err(difference) => first = first.or(Some(difference)),
            }
        }
        first.map_or(Ok(()), Err)
    }

    fn judge(&mut self, cut_off: bool, up: &[ProcessId], replayer: &Replayer) {
        let alive = up.iter().copied().collect();
        let end = End { alive, faulty: self.faulty, quiet: !cut_off };
        let members = replayer.group().members().iter().copied().zip(replayer.processes());
        let verdict = self.ledger.judge_end(&end, members);
        self.note(verdict);
    }

    /// The violations found must be those recorded, and no others.
    fn compare(&self, run: &Run, whole: bool) -> Result<(), Difference> {
        let mut found = self.found.iter();
        for (i, (_, property, detail)) in broken(run) {
            let expected = found.next();
            if expected.is_none_or(|v| (v.property, &v.detail) != (property, detail)) {
                return Err(Difference {
                    place: Place::Entry(i),
                    what: "the judges found another violation".into(),
                    recorded: format!("{property}: {detail}"),
                    expected: expected
                        .map_or("nothing".into(), |v| format!("{}: {}", v.property, v.detail)),
                });
            }
        }
        match found.next() {
            Some(v) if whole => Err(Difference {
                place: Place::End,
                what: "the judges found a violation that is not recorded".into(),
                recorded: "the end".into(),
                expected: format!("{}: {}", v.property, v.detail),
            }),
            _ => Ok(()),
        }
    }

    fn end(
        &self,
        plan: &Plan,
        run: &Run,
        footer: &Footer,
        cut_off: bool,
    ) -> Result<(), Difference> {
        let world = REAL_WORLDS.into_iter().find(|world| *world == run.header.world);
        let Some(world) = world else { return Ok(()) };
        let time = footer.summary.get("time").and_then(Value::as_f64).unwrap_or(0.0);
        let last = run.entries.last().map_or(0, RunEntry::at);
        let now = (time * run.header.unit).round() as u64;
        if now < last {
            return Err(Difference {
                place: Place::End,
                what: "`summary.time` differs".into(),
                recorded: time.to_string(),
                expected: format!("{} or more", run.header.time_of(last)),
            });
        }
        let facts = RunFacts {
            world,
            unit: run.header.unit,
            now,
            steps: self.steps,
            timers: self.timers,
            messages: self.messages.clone(),
            violations: broken(run)
                .map(|(_, (at, property, detail))| (at, property.to_owned(), detail.clone()))
                .collect(),
            waiting: self.ledger.application.waiting(),
            served: self.is_served(plan),
            measured_messages: None,
            down: self.down.len(),
            struck: self.effects.struck(now as f64 / run.header.unit),
            stall: None,
            cut_off,
        };
        let mut report =
            report(self.entry, plan, facts, self.ledger.meter(), self.ledger.monitor());
        doubt_time_bounds(&mut report, plan);
        report.command += &command(world, plan.setup.unit);
        let summary = serde_json::to_value(&report).unwrap_or_default();
        let expected = Footer { verdict: report.verdict.name().into(), summary };
        Difference::of_ends(footer, &expected).map_or(Ok(()), Err)
    }
}

/// The recorded violations, each with the index of its entry.
fn broken(run: &Run) -> impl Iterator<Item = (usize, (u64, &str, &String))> {
    run.entries.iter().enumerate().filter_map(|(i, entry)| match entry {
        RunEntry::Incident(incident) => match &incident.kind {
            IncidentKind::Violation { property, detail } => {
                Some((i, (incident.at, &**property, detail)))
            }
            _ => None,
        },
        RunEntry::Step(_) => None,
    })
}

/// The first word of a message: the name of its kind, as networks count it.
fn kind(message: &impl std::fmt::Debug) -> String {
    let text = format!("{message:?}");
    let word = text.split(|c: char| !c.is_alphanumeric() && c != '_').next();
    word.filter(|w| !w.is_empty()).unwrap_or("message").to_owned()
}
