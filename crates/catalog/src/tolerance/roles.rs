//! The roles of processes during a run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use konklave_process::topology::Shape;
use konklave_process::{ClientEvent, Condition, Lasting, ProcessId};
use konklave_trace::{EffectRecord, Entry as RunEntry, InputRecord, Run, Step, kind_of};
use serde::Serialize;

use crate::{Entry, Error, Plan, Scenario};

/// The role of a process at a moment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Its client is idle, and no waiting client depends on it.
    Idle,
    /// Every message goes from it or to it, though the topology would allow others.
    Coordinator,
    /// Its client is idle, but it will reply to a waiting process.
    Arbiter,
    /// Its client is idle, but it will forward a message of or to a waiting process.
    OnPath,
    /// Its client is idle, but it has the token.
    #[serde(rename = "keeper")]
    IdleTokenHolder,
    /// Its client waits.
    Waiting,
    /// Its client holds the lock.
    Holder,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Idle => "idle",
            Self::Coordinator => "coordinator",
            Self::Arbiter => "arbiter",
            Self::OnPath => "on the path",
            Self::IdleTokenHolder => "idle, with the token",
            Self::Waiting => "waiting",
            Self::Holder => "holder",
        })
    }
}

/// The phase of a client.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    Waiting,
    Inside,
}

/// For each role, the nodes that have it and after which steps, in the first third of the run: later, many
/// clients are done.
pub(super) fn moments(
    run: &Run,
    coordinator: Option<ProcessId>,
    conditions: &[Condition],
) -> BTreeMap<Role, Vec<(u32, usize)>> {
    let steps: Vec<&Step> = steps(run).collect();
    let nodes = &run.header.nodes;
    let coordinator = coordinator.map(|p| p.0);
    let helps = helps(&steps, conditions);
    let last = steps.iter().rposition(|step| grants(step)).unwrap_or(0);
    let mut phases: BTreeMap<u32, Phase> = nodes.iter().map(|&p| (p, Phase::Idle)).collect();
    let mut token =
        steps.iter().any(|s| carries_token(s)).then(|| nodes.first().copied()).flatten();
    let mut moments: BTreeMap<Role, Vec<(u32, usize)>> = BTreeMap::new();
    for (i, step) in steps.iter().enumerate().take(last / 3) {
        phases.insert(step.node, phase_after(step, phases[&step.node], conditions));
        token = token_after(step, token);
        // The world begins when all have started.
        if i + 1 < nodes.len() {
            continue;
        }
        for (&node, &phase) in &phases {
            let help = helps.get(&node).and_then(|helps| {
                let will = |help: &&Help| (help.begins..help.at).contains(&i);
                helps.iter().find(will).map(|help| help.role)
            });
            let role = match phase {
                _ if coordinator == Some(node) => Role::Coordinator,
                Phase::Waiting => Role::Waiting,
                Phase::Inside => Role::Holder,
                Phase::Idle if token == Some(node) => Role::IdleTokenHolder,
                Phase::Idle => help.unwrap_or(Role::Idle),
            };
            moments.entry(role).or_default().push((node, i + 1));
        }
    }
    moments
}

fn steps(run: &Run) -> impl Iterator<Item = &Step> {
    run.entries.iter().filter_map(|entry| match entry {
        RunEntry::Step(step) => Some(step),
        RunEntry::Incident(_) => None,
    })
}

impl Entry {
    /// The coordinator of the lock in the group of `plan`: when all clients ask, every message goes from it or
    /// to it, and it answers with other kinds of messages than it gets. In a group of two, or in a topology
    /// such as a star, this would say nothing.
    pub(crate) fn coordinator(&self, plan: &Plan) -> Result<Option<ProcessId>, Error> {
        if plan.setup.group.len() < 3 || !plan.setup.topology.fits(Shape::Complete) {
            return Ok(None);
        }
        let Some(run) = self.all_ask(plan)? else { return Ok(None) };
        let sent =
            || steps(&run).flat_map(|step| sends(step).map(|(to, kind)| (step.node, to, kind)));
        let is_it = |p: &&u32| {
            let answers: BTreeSet<&str> =
                sent().filter(|(from, ..)| from == *p).map(|(.., kind)| kind).collect();
            sent().all(|(from, to, kind)| from == **p || to == **p && !answers.contains(kind))
        };
        Ok(run.header.nodes.iter().find(is_it).map(|p| ProcessId(*p)))
    }

    /// Whether the lock of `plan` has a token.
    pub(crate) fn has_token(&self, plan: &Plan) -> Result<bool, Error> {
        let run = self.all_ask(plan)?;
        Ok(run.is_some_and(|run| steps(&run).any(carries_token)))
    }

    /// A run of the lock in the group of `plan` in which all clients ask; none for another problem.
    fn all_ask(&self, plan: &Plan) -> Result<Option<Run>, Error> {
        let nodes = plan.setup.group.len();
        if !self.problem.takes_turns {
            return Ok(None);
        }
        let Scenario { ids, topology, set, mistake, .. } = plan.scenario.clone();
        let scenario = Scenario {
            nodes: Some(nodes),
            ids,
            topology,
            set,
            mistake,
            entries: Some(2),
            time_limit: Some(100.0 * nodes as f64),
            ..Scenario::default()
        };
        Ok(self.simulate(&self.plan(scenario)?, true)?.run)
    }
}

/// The role of an idle process for a waiting one.
struct Help {
    /// The step since which it is idle and the other waits.
    begins: usize,
    /// The step in which it helps.
    at: usize,
    role: Role,
}

/// For each process, the moments at which it helps another: it is idle and sends because a message arrives while
/// a process waits.
fn helps(steps: &[&Step], conditions: &[Condition]) -> BTreeMap<u32, Vec<Help>> {
    let mut helps: BTreeMap<u32, Vec<Help>> = BTreeMap::new();
    let mut waiting: BTreeMap<u32, usize> = BTreeMap::new();
    let mut phases: BTreeMap<u32, (Phase, usize)> = BTreeMap::new();
    for (at, step) in steps.iter().enumerate() {
        let (before, since) = phases.get(&step.node).copied().unwrap_or((Phase::Idle, 0));
        let after = phase_after(step, before, conditions);
        phases.insert(step.node, (after, if after == before { since } else { at }));
        match after {
            Phase::Waiting => {
                waiting.entry(step.node).or_insert(at);
            }
            Phase::Idle | Phase::Inside => {
                waiting.remove(&step.node);
            }
        }
        let InputRecord::Message { body, .. } = &step.input else { continue };
        let mut sent = sends(step).map(|(_, kind)| kind).peekable();
        if (before, after) != (Phase::Idle, Phase::Idle) || sent.peek().is_none() {
            continue;
        }
        let passes_on = sent.any(|kind| kind == kind_of(body));
        let role = if passes_on { Role::OnPath } else { Role::Arbiter };
        let Some(&asked) = waiting.values().min() else { continue };
        let begins = asked.max(since);
        helps.entry(step.node).or_default().push(Help { begins, at, role });
    }
    helps
}

/// The messages that a step sends: destination and kind.
fn sends(step: &Step) -> impl Iterator<Item = (u32, &str)> {
    step.effects.iter().filter_map(|effect| match effect {
        EffectRecord::Send { to, body, .. } => Some((*to, kind_of(body))),
        EffectRecord::SetTimer { .. }
        | EffectRecord::Cancel { .. }
        | EffectRecord::Indicate(_)
        | EffectRecord::Save(_)
        | EffectRecord::Unexpected(_) => None,
    })
}

fn is_token(kind: &str) -> bool {
    kind.eq_ignore_ascii_case("token")
}

fn carries_token(step: &Step) -> bool {
    sends(step).any(|(_, kind)| is_token(kind))
}

/// The owner of the token after a step; none while the token is in flight.
fn token_after(step: &Step, before: Option<u32>) -> Option<u32> {
    let arrives =
        matches!(&step.input, InputRecord::Message { body, .. } if is_token(kind_of(body)));
    if carries_token(step) {
        None
    } else if arrives {
        Some(step.node)
    } else {
        before
    }
}

fn grants(step: &Step) -> bool {
    step.effects.iter().any(|effect| matches!(effect, EffectRecord::Indicate(_)))
}

fn phase_after(step: &Step, before: Phase, conditions: &[Condition]) -> Phase {
    let waits = |request| {
        let waiting = conditions.iter().filter(|condition| condition.what == Lasting::Waiting);
        waiting
            .flat_map(|condition| condition.begins)
            .any(|event| *event == ClientEvent::Request(request))
    };
    let phase = match &step.input {
        InputRecord::Request(body) if waits(kind_of(body)) => Phase::Waiting,
        InputRecord::Request(_) => Phase::Idle,
        InputRecord::Start
        | InputRecord::Recover { .. }
        | InputRecord::Message { .. }
        | InputRecord::Timer(_)
        | InputRecord::Suspect(_)
        | InputRecord::Trust(_)
        | InputRecord::Stamp { .. } => before,
    };
    if grants(step) { Phase::Inside } else { phase }
}
