//! The story with raw values: `--debug`.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;

use super::{is_name, is_variant, span};
use crate::messages::Message;
use crate::{EffectRecord, Header, Incident, IncidentKind, InputRecord, Memory, Step};

/// One step: its input, then its effects.
pub(super) fn step_lines(step: &Step, header: &Header, states: bool) -> Vec<String> {
    let mut lines = vec![input_line(step, header)];
    lines.extend(draws_line(step));
    lines.extend(effect_lines(step.effects.iter(), header));
    if states && let Some(state) = &step.state {
        lines.push(format!("== {}", render(state)));
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

/// One line for each effect; consecutive sends of the same message share one.
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

/// One incident.
pub(super) fn incident_line(incident: &Incident, messages: &BTreeMap<u64, Message<'_>>) -> String {
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
