//! The story of a run, for people.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde_json::Value;

use crate::View;
use crate::messages::{Message, messages};
use crate::{EffectRecord, Entry, Header, Incident, IncidentKind, InputRecord, Memory, Run, Step};

/// How many nanoseconds of a process's timers T has in the simulator and the checker.
const SIMULATED_T: f64 = 1e6;

/// What to tell.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Whether to tell states where they change.
    pub states: bool,
    /// Whose story; none: everyone's.
    pub nodes: Option<BTreeSet<u32>>,
    /// How many lines at most.
    pub most_lines: Option<usize>,
}

/// The story of `run`: what happened to whom, and what they did about it.
pub fn transcript(run: &Run, options: &Options) -> String {
    let messages = messages(run);
    let times: Vec<String> = run.entries.iter().map(|e| time(&run.header, e.at())).collect();
    let width = times.iter().map(String::len).max().unwrap_or(0).max(4);
    let mut lines = Vec::new();
    let mut more = 0;
    for (entry, time) in run.entries.iter().zip(&times) {
        let told = match entry {
            Entry::Step(step) => told_step(step, &run.header, options),
            Entry::Incident(incident) => told_incident(incident, &messages, options),
        };
        for (i, line) in told.into_iter().enumerate() {
            if options.most_lines.is_some_and(|most| lines.len() >= most) {
                more += 1;
            } else if i == 0 {
                lines.push(format!("{time:>width$} {line}"));
            } else {
                lines.push(format!("{:width$}    {line}", ""));
            }
        }
    }
    if more > 0 {
        lines.push(format!("… {more} more"));
    }
    lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
}

/// One step: first what happened to the process, then what it did.
pub fn step_lines(step: &Step, header: &Header, states: bool) -> Vec<String> {
    let mut lines = vec![input_line(step, header)];
    lines.extend(draws_line(step));
    lines.extend(effect_lines(step.effects.iter(), header));
    if states && let Some(state) = &step.state {
        lines.push(format!("== {}", render(state)));
    }
    lines
}

/// One step as `view` shows it: without messages that are not shown; or, unless `all` of it is
/// shown, with nothing else.
pub(crate) fn shown_lines(step: &Step, view: &View<'_>, all: bool) -> Vec<String> {
    let is_message = matches!(step.input, InputRecord::Message { .. } | InputRecord::Stamp { .. });
    let input = view.shows_input(step) && (all || is_message);
    let effects = step.effects.iter().filter(|effect| match effect {
        EffectRecord::Send { id, .. } => view.shows_id(*id),
        _ => all,
    });
    let mut lines: Vec<String> =
        input.then(|| input_line(step, view.header())).into_iter().collect();
    lines.extend(draws_line(step).filter(|_| all));
    lines.extend(effect_lines(effects, view.header()));
    if let Some(first) = lines.first_mut().filter(|_| !input) {
        *first = format!("{} {first}", view.header().name_of(step.node));
    }
    lines
}

fn input_line(step: &Step, header: &Header) -> String {
    let (node, name) = (header.name_of(step.node), |id: &u32| header.name_of(*id));
    match &step.input {
        InputRecord::Start => format!("{node} starts"),
        InputRecord::Recover { saved: None } => format!("{node} recovers"),
        InputRecord::Recover { saved: Some(saved) } => {
            format!("{node} recovers with {}", render(saved))
        }
        InputRecord::Request(request) => format!("{node} asked {}", render(request)),
        InputRecord::Message { from, body, .. } => {
            format!("{node} <- {} {}", name(from), render(body))
        }
        InputRecord::Timer(timer) => format!("{node} timer {}", render(timer)),
        InputRecord::Suspect(peer) => format!("{node} suspects {}", name(peer)),
        InputRecord::Trust(peer) => format!("{node} trusts {}", name(peer)),
        InputRecord::Stamp { from, stamp, .. } => {
            format!("{node} <- {} message of the application at clock {stamp}", name(from))
        }
    }
}

fn draws_line(step: &Step) -> Option<String> {
    let draws: Vec<String> = step.draws.iter().map(u32::to_string).collect();
    (!draws.is_empty()).then(|| format!("?? drew {}", draws.join(", ")))
}

/// What a process does, a line each; what it says to many in one line.
fn effect_lines<'a>(
    effects: impl Iterator<Item = &'a EffectRecord>,
    header: &Header,
) -> Vec<String> {
    let (mut lines, mut effects) = (Vec::new(), effects.peekable());
    while let Some(effect) = effects.next() {
        lines.push(match effect {
            EffectRecord::Send { to, body, .. } => {
                let mut whom = header.name_of(*to);
                while let Some(EffectRecord::Send { to, .. }) = effects
                    .next_if(|e| matches!(e, EffectRecord::Send { body: next, .. } if next == body))
                {
                    write!(whom, " {}", header.name_of(*to)).expect("a string takes everything");
                }
                format!("-> {whom} {}", render(body))
            }
            EffectRecord::SetTimer { timer, after_ns } => {
                format!(".. timer {} in {}", render(timer), span(header, *after_ns))
            }
            EffectRecord::Cancel { timer } => format!(".. cancels timer {}", render(timer)),
            EffectRecord::Indicate(indication) => format!("** {}", render(indication)),
            EffectRecord::Save(record) => format!(".. saves {}", render(record)),
            EffectRecord::Unexpected(what) => format!("!! met {what}"),
        });
    }
    lines
}

fn told_step(step: &Step, header: &Header, options: &Options) -> Vec<String> {
    if options.nodes.as_ref().is_some_and(|nodes| !nodes.contains(&step.node)) {
        return Vec::new();
    }
    let lines = step_lines(step, header, options.states);
    // That all come up and do nothing is no news.
    if lines.len() == 1 && step.input == InputRecord::Start { Vec::new() } else { lines }
}

/// A span of time as the rest of the run is timed: in T, where there is such a unit.
fn span(header: &Header, nanos: u64) -> String {
    let unit = match &*header.world {
        "sim" | "check" => SIMULATED_T,
        _ => header.unit,
    };
    if header.time == "T" || header.world == "check" {
        format!("{} T", trimmed(nanos as f64 / unit))
    } else {
        format!("{:?}", std::time::Duration::from_nanos(nanos))
    }
}

fn told_incident(
    incident: &Incident,
    messages: &BTreeMap<u64, Message<'_>>,
    options: &Options,
) -> Vec<String> {
    let told = |node: &u32| options.nodes.as_ref().is_none_or(|nodes| nodes.contains(node));
    let concerned = match &incident.kind {
        IncidentKind::Lost(id) | IncidentKind::Duplicated(id) => {
            messages.get(id).is_none_or(|m| told(&m.from) || told(&m.to))
        }
        IncidentKind::Crash(node)
        | IncidentKind::Restart { node, .. }
        | IncidentKind::Pause(node)
        | IncidentKind::Resume(node) => told(node),
        IncidentKind::AppMessage { from, to, .. } => told(from) || told(to),
        IncidentKind::Cut(_) | IncidentKind::Heal(_) | IncidentKind::Violation { .. } => true,
    };
    if concerned { vec![incident_line(incident, messages)] } else { Vec::new() }
}

/// One incident.
pub fn incident_line(incident: &Incident, messages: &BTreeMap<u64, Message<'_>>) -> String {
    let message = |id| match messages.get(id) {
        Some(Message { from, to, body: Some(body), .. }) => {
            format!("p{from} -> p{to} {}", render(body))
        }
        Some(Message { from, to, body: None, .. }) => {
            format!("p{from} -> p{to} message of the application")
        }
        None => format!("message {id}"),
    };
    match &incident.kind {
        IncidentKind::Lost(id) => format!("xx lost: {}", message(id)),
        IncidentKind::Duplicated(id) => format!("xx doubled: {}", message(id)),
        IncidentKind::Crash(node) => format!("xx p{node} crashes"),
        IncidentKind::Restart { node, memory } => {
            let memory = match memory {
                Memory::Saved => "what it saved",
                Memory::Nothing => "nothing",
                Memory::Everything => "everything",
            };
            format!("xx p{node} restarts and remembers {memory}")
        }
        IncidentKind::Pause(node) => format!("xx p{node} sleeps"),
        IncidentKind::Resume(node) => format!("xx p{node} wakes"),
        IncidentKind::Cut(what) => format!("xx cut: {what}"),
        IncidentKind::Heal(what) => format!("xx healed: {what}"),
        IncidentKind::AppMessage { id, .. } => message(id),
        IncidentKind::Violation { property, detail } if detail.is_empty() => {
            format!("!! {property} violated")
        }
        IncidentKind::Violation { property, detail } => {
            format!("!! {property}: {detail}")
        }
    }
}

/// The time `at` in the header's unit, with no more digits than needed.
pub fn time(header: &Header, at: u64) -> String {
    trimmed(header.time_of(at))
}

/// `number` with at most six digits after the point, and no zeros at its end.
pub(crate) fn trimmed(number: f64) -> String {
    let text = format!("{number:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// `value` as Rust would print it: `Request { timestamp: 1 }` for `{"Request":{"timestamp":1}}`.
pub fn render(value: &Value) -> String {
    match value {
        Value::Null => "None".into(),
        Value::String(text) if is_name(text) => text.clone(),
        Value::Array(items) => format!("[{}]", list(items)),
        Value::Object(fields) => match fields.iter().next() {
            Some((name, inner)) if fields.len() == 1 && is_variant(name) => match inner {
                Value::Object(_) => format!("{name} {}", render(inner)),
                Value::Array(items) => format!("{name}({})", list(items)),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                    format!("{name}({})", render(inner))
                }
            },
            Some(_) => {
                let fields: Vec<String> = fields
                    .iter()
                    .map(|(name, value)| format!("{name}: {}", render(value)))
                    .collect();
                format!("{{ {} }}", fields.join(", "))
            }
            None => "{}".into(),
        },
        Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

fn list(items: &[Value]) -> String {
    items.iter().map(render).collect::<Vec<_>>().join(", ")
}

fn is_variant(name: &str) -> bool {
    is_name(name) && name.starts_with(|c: char| c.is_uppercase())
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}
