//! Replay: fresh processes, the recorded inputs, and a comparison at every step.

use std::collections::BTreeMap;

use konklave_process::{AnyProcess, Context, Effect, Group, Host, Inspect, ProcessId};
use serde_json::Value;
use thiserror::Error;

use crate::record::json;
use crate::{EffectRecord, Entry, IncidentKind, InputRecord, Memory, Run, Step};

/// A replay that found no difference.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Replayed {
    /// The number of compared steps.
    pub steps: usize,
    /// The number of compared effects.
    pub effects: usize,
    /// The number of compared states.
    pub states: usize,
}

/// The first difference between a recording and its replay.
#[derive(Clone, PartialEq, Debug, Error)]
#[error(
    "line {line}, step {step} at p{node}: {what}\n  recorded: {recorded}\n  replayed: {replayed}"
)]
pub struct ReplayError {
    /// The step, counted from 1.
    pub step: usize,
    /// Its line in the file, if that has no blank lines.
    pub line: usize,
    /// The process of the step.
    pub node: u32,
    /// The field that differs.
    pub what: String,
    /// The recorded value.
    pub recorded: String,
    /// The value of the replay.
    pub replayed: String,
}

/// Feeds every recorded input to `processes`, newly built and in node order, and compares their effects
/// and states with the recorded ones.
pub fn replay(
    run: &Run,
    processes: Vec<AnyProcess>,
    group: &Group,
) -> Result<Replayed, ReplayError> {
    let mut replayer = Replayer::new(processes, group);
    run.entries.iter().try_for_each(|entry| replayer.entry(entry))?;
    Ok(replayer.replayed)
}

/// A replay under way, for runs that are read entry by entry.
#[derive(Debug)]
pub struct Replayer {
    group: Group,
    newborn: Vec<AnyProcess>,
    processes: Vec<AnyProcess>,
    /// The state after each process's last step.
    last: Vec<Option<AnyProcess>>,
    /// The effects of the last step.
    effects: Vec<Effect<AnyProcess>>,
    /// The clock that each message of the application took along, by its number.
    stamps: BTreeMap<u64, u64>,
    line: usize,
    replayed: Replayed,
}

impl Replayer {
    /// A replay by `processes`, newly built and in node order.
    pub fn new(processes: Vec<AnyProcess>, group: &Group) -> Self {
        assert_eq!(group.len(), processes.len(), "every member has a process");
        Self {
            group: group.clone(),
            newborn: processes.clone(),
            last: vec![None; processes.len()],
            processes,
            effects: Vec::new(),
            stamps: BTreeMap::new(),
            line: 1,
            replayed: Replayed::default(),
        }
    }

    /// Replays one entry.
    pub fn entry(&mut self, entry: &Entry) -> Result<(), ReplayError> {
        self.line += 1;
        match entry {
            Entry::Step(step) => self.step(step),
            Entry::Incident(incident) => {
                if let IncidentKind::Restart { node, memory } = incident.kind
                    && memory != Memory::Everything
                    && let Some(place) = self.group.place(ProcessId(node))
                {
                    self.processes[place] = self.newborn[place].clone();
                }
                if let IncidentKind::AppMessage { from, id, .. } = incident.kind
                    && let Some(place) = self.group.place(ProcessId(from))
                {
                    self.stamps.insert(id, self.processes[place].stamp());
                }
                Ok(())
            }
        }
    }

    /// The counts of what was compared so far.
    pub fn replayed(&self) -> Replayed {
        self.replayed
    }

    /// The group.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// The effects of the last step, in order.
    pub fn effects(&self) -> &[Effect<AnyProcess>] {
        &self.effects
    }

    /// The processes as they are now, in node order.
    pub fn processes(&self) -> &[AnyProcess] {
        &self.processes
    }

    /// The members, for messages.
    fn members(&self) -> String {
        let members = self.group.members().iter().map(ProcessId::to_string);
        members.collect::<Vec<_>>().join(", ")
    }

    fn step(&mut self, step: &Step) -> Result<(), ReplayError> {
        self.replayed.steps += 1;
        let me = ProcessId(step.node);
        let Some(place) = self.group.place(me) else {
            return Err(self.differs(step, "no such member", me.to_string(), self.members()));
        };
        if let Some(stranger) = step.input.peer().filter(|p| !self.group.contains(ProcessId(*p))) {
            return Err(self.differs(step, "no such peer", format!("p{stranger}"), self.members()));
        }
        let input = step.input.to_input(&self.processes[place]).map_err(|e| {
            let recorded = text(&json(&step.input));
            self.differs(step, "the input is none of this algorithm", recorded, e.to_string())
        })?;
        if let InputRecord::Stamp { id, stamp, .. } = &step.input
            && let Some(sent) = self.stamps.get(id)
            && sent != stamp
        {
            let (recorded, sent) = (stamp.to_string(), sent.to_string());
            return Err(self.differs(step, "it was sent at another clock", recorded, sent));
        }
        let mut host = Notes { draws: &step.draws, drawn: 0, outside: None, effects: Vec::new() };
        let process = &mut self.processes[place];
        process.handle(input, &mut Context::new(me, &self.group, &mut host));
        let Notes { drawn, outside, effects, .. } = host;
        if let Some(bound) = outside {
            let replayed = format!("draw {drawn} must be below {bound}");
            return Err(self.differs(step, "chance differs", draws(step), replayed));
        }
        if drawn != step.draws.len() {
            let replayed = format!("{drawn} draws");
            return Err(self.differs(step, "draws differ", draws(step), replayed));
        }
        self.compare_effects(step, &effects)?;
        self.effects = effects;
        self.compare_state(step, place)
    }

    fn compare_effects(
        &mut self,
        step: &Step,
        found: &[Effect<AnyProcess>],
    ) -> Result<(), ReplayError> {
        let most = step.effects.len().max(found.len());
        for i in 0..most {
            let recorded = step.effects.get(i);
            // Numbers of messages belong to the recording, not to the process.
            let id = match recorded {
                Some(EffectRecord::Send { id, .. }) => *id,
                _ => 0,
            };
            let replayed = found.get(i).map(|effect| EffectRecord::new(effect.view(), id));
            if recorded != replayed.as_ref() {
                let show =
                    |e: Option<&EffectRecord>| e.map_or("nothing".into(), |e| text(&json(e)));
                let what = format!("effect {} differs", i + 1);
                return Err(self.differs(step, &what, show(recorded), show(replayed.as_ref())));
            }
            self.replayed.effects += 1;
        }
        Ok(())
    }

    fn compare_state(&mut self, step: &Step, place: usize) -> Result<(), ReplayError> {
        let process = &self.processes[place];
        let unchanged = self.last[place].as_ref() == Some(process);
        let replayed = || text(&json(process));
        match &step.state {
            Some(recorded) if unchanged => {
                return Err(self.differs(step, "the state differs", text(recorded), replayed()));
            }
            Some(recorded) => {
                if *recorded != json(process) {
                    return Err(self.differs(
                        step,
                        "the state differs",
                        text(recorded),
                        replayed(),
                    ));
                }
                self.replayed.states += 1;
            }
            None if unchanged => return Ok(()),
            None => {
                let recorded = "no change".into();
                return Err(self.differs(step, "the state differs", recorded, replayed()));
            }
        }
        self.last[place] = Some(process.clone());
        Ok(())
    }

    fn differs(&self, step: &Step, what: &str, recorded: String, replayed: String) -> ReplayError {
        ReplayError {
            step: self.replayed.steps,
            line: self.line,
            node: step.node,
            what: what.to_owned(),
            recorded,
            replayed,
        }
    }
}

/// The recorded random draws of a step, for messages.
fn draws(step: &Step) -> String {
    match &step.draws[..] {
        [] => "no draws".to_owned(),
        draws => draws.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
    }
}

fn text(value: &Value) -> String {
    value.to_string()
}

/// The host of a replay: `choose` answers as recorded.
struct Notes<'a> {
    draws: &'a [u32],
    drawn: usize,
    /// The bound that a recorded draw did not keep.
    outside: Option<u32>,
    effects: Vec<Effect<AnyProcess>>,
}

impl Host<AnyProcess> for Notes<'_> {
    fn perform(&mut self, effect: Effect<AnyProcess>) {
        self.effects.push(effect);
    }

    fn choose(&mut self, bound: u32) -> u32 {
        let drawn = self.draws.get(self.drawn).copied().unwrap_or(0);
        self.drawn += 1;
        if drawn >= bound.max(1) && self.outside.is_none() {
            self.outside = Some(bound);
        }
        drawn.min(bound.saturating_sub(1))
    }
}
