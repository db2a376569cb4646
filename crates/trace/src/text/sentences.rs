//! The story in sentences.

use std::collections::BTreeMap;

use serde_json::Value;

use super::span;
use super::values::{Named, Values};
use crate::messages::Message;
use crate::{EffectRecord, Header, Incident, IncidentKind, InputRecord, Memory, Step, View};

/// More receivers than these are `all others`, if they are.
const NAMED: usize = 3;

/// One step: its input, then its effects, whose subject is the process of the step.
pub(super) fn step_lines(step: &Step, header: &Header, states: bool) -> Vec<String> {
    let mut lines = vec![input_line(step, header)];
    lines.extend(draws_line(step));
    lines.extend(effect_lines(step.node, step.effects.iter(), header));
    if states && let Some(state) = &step.state {
        lines.push(format!("state: {}", Values { header }.whole(state)));
    }
    lines
}

/// The part of a step that `view` shows: all but hidden messages, or, without `all`, only messages.
pub(super) fn shown_lines(step: &Step, view: &View<'_>, all: bool) -> Vec<String> {
    let is_message = matches!(step.input, InputRecord::Message { .. } | InputRecord::Stamp { .. });
    let input = view.shows_input(step) && (all || is_message);
    let effects = step.effects.iter().filter(|effect| match effect {
        EffectRecord::Send { id, .. } => view.shows_id(*id),
        _ => all,
    });
    let mut lines: Vec<String> =
        input.then(|| input_line(step, view.header())).into_iter().collect();
    lines.extend(draws_line(step).filter(|_| all));
    lines.extend(effect_lines(step.node, effects, view.header()));
    if let Some(first) = lines.first_mut().filter(|_| !input) {
        *first = format!("{} {first}", view.header().name_of(step.node));
    }
    lines
}

fn input_line(step: &Step, header: &Header) -> String {
    let (node, name) = (header.name_of(step.node), |id: &u32| header.name_of(*id));
    let values = Values { header };
    match &step.input {
        InputRecord::Start => format!("{node} starts"),
        InputRecord::Recover { saved: None } => format!("{node} recovers without a saved record"),
        InputRecord::Recover { saved: Some(saved) } => {
            format!("{node} recovers with {}", record(values, saved))
        }
        InputRecord::Request(Value::Null) => format!("{node} makes a request"),
        InputRecord::Request(request) => {
            format!("{node} requests: {}", phrase(values, request))
        }
        InputRecord::Message { from, body, .. } => {
            let message = message(values, body);
            format!(
                "{node} receives {} from {}{}",
                message.name,
                name(from),
                message.in_parentheses()
            )
        }
        InputRecord::Timer(timer) => {
            let timer = values.named(timer);
            format!("{node}'s {} fires{}", a_timer(&timer), timer.in_parentheses())
        }
        InputRecord::Suspect(peer) => format!("{node} suspects {}", name(peer)),
        InputRecord::Trust(peer) => format!("{node} trusts {} again", name(peer)),
        InputRecord::Stamp { from, stamp, .. } => {
            format!("{node} receives an application message from {}, clock {stamp}", name(from))
        }
    }
}

fn draws_line(step: &Step) -> Option<String> {
    let draws: Vec<String> = step.draws.iter().map(u32::to_string).collect();
    (!draws.is_empty()).then(|| format!("draws {}", list(&draws)))
}

/// One line for each effect of `node`; consecutive sends of the same message share one.
fn effect_lines<'a>(
    node: u32,
    effects: impl Iterator<Item = &'a EffectRecord>,
    header: &Header,
) -> Vec<String> {
    let (mut lines, mut effects) = (Vec::new(), effects.peekable());
    let values = Values { header };
    while let Some(effect) = effects.next() {
        lines.push(match effect {
            EffectRecord::Send { to, body, .. } => {
                let mut receivers = vec![*to];
                while let Some(EffectRecord::Send { to, .. }) = effects
                    .next_if(|e| matches!(e, EffectRecord::Send { body: next, .. } if next == body))
                {
                    receivers.push(*to);
                }
                let receivers = named_receivers(node, &receivers, header);
                let message = message(values, body);
                format!("sends {} to {receivers}{}", message.name, message.in_parentheses())
            }
            EffectRecord::SetTimer { timer, after_ns } => {
                let (timer, span) = (values.named(timer), span(header, *after_ns));
                format!("sets {} for {span}{}", its_timer(&timer), timer.in_parentheses())
            }
            EffectRecord::Cancel { timer } => {
                let timer = values.named(timer);
                format!("cancels {}{}", its_timer(&timer), timer.in_parentheses())
            }
            EffectRecord::Indicate(indication) => indicated(values, indication),
            EffectRecord::Save(saved) => format!("saves {}", record(values, saved)),
            EffectRecord::Unexpected(what) => format!("meets an unexpected input: {what}"),
        });
    }
    lines
}

fn named_receivers(node: u32, receivers: &[u32], header: &Header) -> String {
    let is_other = |id: &&u32| **id != node;
    let others = header.nodes.iter().filter(is_other).count();
    let all = receivers.len() == others
        && header.nodes.iter().filter(is_other).all(|id| receivers.contains(id));
    if all && others > NAMED {
        return "all others".into();
    }
    let names: Vec<String> = receivers.iter().map(|id| header.name_of(*id)).collect();
    list(&names)
}

/// `p0`, `p0 and p1`, `p0, p1 and p2`.
fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

fn message(values: Values<'_>, body: &Value) -> Named {
    let named = values.named(body);
    if named.name.is_empty() { Named { name: "a message".into(), ..named } } else { named }
}

fn a_timer(timer: &Named) -> String {
    if timer.name.is_empty() { "timer".into() } else { format!("timer {}", timer.name) }
}

fn its_timer(timer: &Named) -> String {
    if timer.name.is_empty() { "its timer".into() } else { format!("timer {}", timer.name) }
}

/// The content of stable storage.
fn record(values: Values<'_>, saved: &Value) -> String {
    if saved.is_null() { "an empty record".into() } else { values.whole(saved) }
}

/// A request or an indication, its name in small letters: `acquire, name a`, `multicast 1`.
fn phrase(values: Values<'_>, value: &Value) -> String {
    let Named { name, fields } = values.named(value);
    let (name, inner) = match name.split_once('(') {
        Some((name, inner)) if inner.contains(',') => (name, format!(" ({inner}")),
        Some((name, inner)) => (name, format!(" {}", inner.strip_suffix(')').unwrap_or(inner))),
        None => (&*name, String::new()),
    };
    let fields = match fields {
        Some(fields) if name.is_empty() => fields,
        Some(fields) => format!(", {fields}"),
        None => String::new(),
    };
    format!("{}{inner}{fields}", in_small(name))
}

/// `note held` for `Note/Held`, `step down` for `StepDown`.
fn in_small(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        if letter == '/' {
            words.push(' ');
        } else if letter.is_uppercase() {
            if words.ends_with(|before: char| before.is_alphanumeric()) {
                words.push(' ');
            }
            words.extend(letter.to_lowercase());
        } else {
            words.push(letter);
        }
    }
    words
}

/// An indication. Problems share a few of them, which have a verb.
fn indicated(values: Values<'_>, indication: &Value) -> String {
    let kind = crate::kind_of(indication);
    let inner = indication.get(kind);
    let fields = || match inner {
        None => String::new(),
        Some(_) => {
            let Named { name, fields } = values.named(indication);
            let inner = name.strip_prefix(kind).unwrap_or_default();
            match fields {
                Some(fields) => format!("{inner}, {fields}"),
                None => inner.to_owned(),
            }
        }
    };
    match (kind, inner) {
        ("Granted", _) => format!("is granted{}", fields()),
        ("Leading", _) => format!("leads{}", fields()),
        ("Deposed", None) => "is deposed".into(),
        ("Candidate", None) => "is a candidate".into(),
        ("Following", Some(Value::Object(following))) => {
            let leader = following.get("leader").and_then(|leader| values.process(leader));
            let epoch = following.get("epoch").map_or(String::new(), |n| format!(", epoch {n}"));
            match leader {
                Some(leader) => format!("follows {leader}{epoch}"),
                None => format!("follows a leader it does not know{epoch}"),
            }
        }
        ("Delivered", Some(_)) => {
            let fields = fields();
            match fields.trim_start_matches(", ") {
                unit if unit.starts_with("message ") && !unit.contains(',') => {
                    format!("delivers {unit}")
                }
                others => format!("delivers a message ({others})"),
            }
        }
        ("Installed", Some(_)) => {
            format!("installs {}", fields().trim_start_matches(", "))
        }
        ("Suspect" | "Suspected", Some(peer)) => match values.process(peer) {
            Some(peer) => format!("suspects {peer}"),
            None => format!("indicates: {}", phrase(values, indication)),
        },
        ("Trust" | "Trusted", Some(peer)) => match values.process(peer) {
            Some(peer) => format!("trusts {peer} again"),
            None => format!("indicates: {}", phrase(values, indication)),
        },
        _ => format!("indicates: {}", phrase(values, indication)),
    }
}

/// One incident.
pub(super) fn incident_line(
    incident: &Incident,
    header: &Header,
    messages: &BTreeMap<u64, Message<'_>>,
) -> String {
    let (values, name) = (Values { header }, |id: &u32| header.name_of(*id));
    let fate = |id, fate: &str| match messages.get(id) {
        Some(Message { from, to, body, .. }) => {
            let message = match body {
                Some(body) => message(values, body),
                None => Named { name: "application message".into(), fields: None },
            };
            let (from, to) = (name(from), name(to));
            format!(
                "{} from {from} to {to} {fate}{}",
                capital(&message.name),
                message.in_parentheses()
            )
        }
        None => format!("message {id} {fate}"),
    };
    match &incident.kind {
        IncidentKind::Lost(id) => fate(id, "is lost"),
        IncidentKind::Duplicated(id) => fate(id, "is duplicated"),
        IncidentKind::Crash(node) => format!("{} crashes", name(node)),
        IncidentKind::Restart { node, memory } => {
            let memory = match memory {
                Memory::Saved => "with what it saved",
                Memory::Nothing => "with nothing saved",
                Memory::Everything => "with its whole memory",
            };
            format!("{} restarts {memory}", name(node))
        }
        IncidentKind::Pause(node) => format!("{} pauses", name(node)),
        IncidentKind::Resume(node) => format!("{} resumes", name(node)),
        IncidentKind::Cut(what) if what.starts_with("partition") => {
            format!("network {}", cut(what))
        }
        IncidentKind::Cut(what) => format!("link {what} is cut"),
        IncidentKind::Heal(what) if what.starts_with("partition") => {
            "network partition ends".into()
        }
        IncidentKind::Heal(what) => format!("link {what} is restored"),
        IncidentKind::AppMessage { from, to, .. } => {
            format!("{} sends an application message to {}", name(from), name(to))
        }
        IncidentKind::Violation { property, detail } if detail.is_empty() => {
            format!("✗ {property} violated")
        }
        IncidentKind::Violation { property, detail } => {
            format!("✗ {property}: {}", violation(detail))
        }
    }
}

/// Kinds of messages keep their names; a phrase begins with a noun.
fn capital(name: &str) -> &str {
    name.strip_prefix("a ").unwrap_or(name)
}

/// The label of a cut: `partition: p0 | p1, p2` for `partition [[p0], [p1, p2]]`, else `cut: p0 → p1`.
pub(crate) fn cut(what: &str) -> String {
    let Some(sides) = what.strip_prefix("partition ") else { return format!("cut: {what}") };
    let sides = sides.trim_start_matches('[').trim_end_matches(']');
    format!("partition: {}", sides.replace("], [", " | "))
}

/// The detail of a violation in words. Recordings keep it as judges write it, with lists of processes:
/// `[p0, p1] wait for ever`. A sentence has `p0 and p1 wait for ever`.
pub fn violation(detail: &str) -> String {
    let (mut sentence, mut rest) = (String::new(), detail);
    while let Some(begin) = rest.find(['[', '{'])
        && let Some(length) = rest[begin..].find([']', '}'])
    {
        let items: Vec<&str> = rest[begin + 1..begin + length].split(", ").collect();
        sentence += &rest[..begin];
        let after = &rest[begin + length + 1..];
        rest = after;
        if let Some(parents) = parents(&items) {
            sentence += &list(&parents);
        } else if items.iter().all(|item| is_process(item)) {
            let names: Vec<String> = items.iter().map(|name| (*name).to_owned()).collect();
            sentence += &list(&names);
            if let ([_], Some(verb)) = (&items[..], plural_verb(after)) {
                sentence += &format!(" {verb}s");
                rest = &after[1 + verb.len()..];
            }
        } else {
            sentence +=
                &detail[detail.len() - after.len() - length - 1..detail.len() - after.len()];
        }
    }
    sentence + rest
}

/// The verb after a list of processes, which has another form after a single process.
fn plural_verb(after: &str) -> Option<&'static str> {
    let is_next = |verb: &&str| after.strip_prefix(' ').is_some_and(|rest| rest.starts_with(*verb));
    ["wait", "hold"].into_iter().find(is_next)
}

/// The pointers of a map from processes to their parents: `p1 → p0` for `p1: Some(p0)`.
fn parents(items: &[&str]) -> Option<Vec<String>> {
    let mut pointers = Vec::new();
    for item in items {
        let (child, parent) = item.split_once(": ").filter(|(child, _)| is_process(child))?;
        match parent.strip_prefix("Some(").and_then(|parent| parent.strip_suffix(')')) {
            Some(parent) if is_process(parent) => pointers.push(format!("{child} → {parent}")),
            None if parent == "None" => {}
            _ => return None,
        }
    }
    Some(pointers)
}

fn is_process(name: &str) -> bool {
    name.strip_prefix('p')
        .is_some_and(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn violation_names_processes_in_words() {
        for (detail, words) in [
            ("[p0] wait for ever", "p0 waits for ever"),
            ("[p0, p1] wait for ever", "p0 and p1 wait for ever"),
            ("{p0, p1, p12} lead at the same time", "p0, p1 and p12 lead at the same time"),
            ("2 tokens: {p1} hold one, 1 on the way", "2 tokens: p1 holds one, 1 on the way"),
            (
                "p1 took its own descendant for its parent: {p0: None, p1: Some(p2), p2: Some(p1)}",
                "p1 took its own descendant for its parent: p1 → p2 and p2 → p1",
            ),
            ("p0 received [1, 2]", "p0 received [1, 2]"),
            ("p0 received {a: p1}, then [", "p0 received {a: p1}, then ["),
            ("no list", "no list"),
        ] {
            assert_eq!(violation(detail), words);
        }
    }

    #[test]
    fn partition_has_its_sides_in_words() {
        assert_eq!(cut("partition [[p0], [p1, p2]]"), "partition: p0 | p1, p2");
        assert_eq!(cut("p0 → p1"), "cut: p0 → p1");
    }
}
