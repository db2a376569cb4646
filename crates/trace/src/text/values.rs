//! Recorded values in words: `served (p0: 1, p1: 1), queue empty` for `{"served":{"0":1,"1":1},"queue":[]}`.
//!
//! A recording has no types. So the words depend on the form of a value and on the names of its
//! fields, never on the algorithm.

use serde_json::{Map, Value};

use super::{is_name, is_variant};
use crate::Header;

/// A longer description leaves out parts of nested values; `--debug` prints them.
const LONGEST: usize = 150;

/// Fields with these names hold the id of a process.
const PROCESS: [&str; 17] = [
    "arbiter",
    "asker",
    "by",
    "child",
    "coordinator",
    "halted_by",
    "holder",
    "initiator",
    "leader",
    "origin",
    "owner",
    "parent",
    "peer",
    "process",
    "sender",
    "sequencer",
    "voted_for",
];

/// Lists with these names hold ids of processes.
const PROCESSES: [&str; 10] = [
    "awaited",
    "awaiting",
    "candidates",
    "crashed",
    "joiners",
    "leavers",
    "observers",
    "suspected",
    "suspects",
    "synced",
];

/// A value that has a name: the name, and what it holds.
#[derive(Debug)]
pub(super) struct Named {
    /// The name with what stands behind it: `Request(1)`, `Group/Prepare`; empty if it has none.
    pub(super) name: String,
    /// Its fields, if it has any: `round 1, by p1`.
    pub(super) fields: Option<String>,
}

impl Named {
    /// The fields as they follow a noun: ` (round 1, by p1)`.
    pub(super) fn in_parentheses(&self) -> String {
        self.fields.as_ref().map_or(String::new(), |fields| format!(" ({fields})"))
    }
}

/// How much of a value is written.
#[derive(Clone, Copy)]
struct Extent {
    /// Records deeper than this are `…`.
    depth: usize,
    /// Whether nested fields that hold nothing are left out.
    sparse: bool,
}

const ALL: Extent = Extent { depth: usize::MAX, sparse: false };

/// Writes values for the readers of one run.
#[derive(Clone, Copy)]
pub(super) struct Values<'a> {
    pub(super) header: &'a Header,
}

impl Values<'_> {
    /// A message, timer, request or indication.
    pub(super) fn named(self, value: &Value) -> Named {
        let (name, inner) = path(value);
        match inner {
            None => Named { name, fields: None },
            Some(Value::Object(fields)) if !fields.is_empty() => {
                Named { name, fields: Some(self.short(|extent| self.fields(fields, extent, 0))) }
            }
            Some(inner) => {
                let inner = self.short(|extent| self.value(inner, "", extent, 0));
                match (name.is_empty(), inner.starts_with('(')) {
                    (true, _) => Named { name, fields: Some(inner) },
                    (false, true) => Named { name: format!("{name}{inner}"), fields: None },
                    (false, false) => Named { name: format!("{name}({inner})"), fields: None },
                }
            }
        }
    }

    /// A saved record, a state: its fields, or what it is instead.
    pub(super) fn whole(self, value: &Value) -> String {
        match value {
            Value::Object(fields) if is_record(value) => self.fields(fields, ALL, 0),
            other => self.value(other, "", ALL, 0),
        }
    }

    /// A process.
    pub(super) fn process(self, value: &Value) -> Option<String> {
        let id = u32::try_from(value.as_u64()?).ok()?;
        self.header.nodes.contains(&id).then(|| self.header.name_of(id))
    }

    /// As much as fits: first all, then without nested fields that hold nothing, then without the
    /// deepest records.
    fn short(self, write: impl Fn(Extent) -> String) -> String {
        let extents = [usize::MAX, 3, 2, 1].map(|depth| Extent { depth, sparse: true });
        let mut written = String::new();
        for extent in extents {
            written = write(extent);
            if written.chars().count() <= LONGEST {
                break;
            }
        }
        written
    }

    fn fields(self, fields: &Map<String, Value>, extent: Extent, depth: usize) -> String {
        if is_map(fields) {
            return self.entries(fields, extent, depth);
        }
        if let Some(known) = self.known(fields) {
            return known;
        }
        if let Some((view, others)) = self.of_view(fields) {
            let others = self.fields(&others, extent, depth);
            return if others == "empty" { view } else { format!("{view}, {others}") };
        }
        let leaves_out = extent.sparse && (depth > 0 || fields.len() > 2);
        let holds = |value: &Value| !leaves_out || !is_nothing(value);
        let numbered = fields.contains_key("number") || fields.contains_key("seq");
        let field = |(name, value): (&String, &Value)| {
            let words = name.replace('_', " ");
            let value = match value {
                Value::Bool(true) => return words,
                Value::Bool(false) => return format!("not {words}"),
                _ if name == "from" && numbered => {
                    self.process(value).unwrap_or_else(|| self.value(value, name, extent, depth))
                }
                _ => self.value(value, name, extent, depth),
            };
            // `view 0 of p1`, not `view view 0 of p1`; `message 2 of p1`, not `unit message 2 of p1`.
            match value.strip_prefix(&words) {
                Some(rest) if rest.starts_with(' ') => value,
                _ if words == "unit" && value.starts_with("message ") => value,
                _ => format!("{words} {value}"),
            }
        };
        let written: Vec<String> =
            fields.iter().filter(|(_, value)| holds(value)).map(field).collect();
        if written.is_empty() { "empty".into() } else { written.join(", ") }
    }

    /// Phrases for values with known fields: `message 2 of p1`, `view 0 of p1`, `p1 incarnation 2`.
    fn known(self, fields: &Map<String, Value>) -> Option<String> {
        let number = |name: &str| fields.get(name).and_then(Value::as_u64);
        let process = |name: &str| fields.get(name).and_then(|id| self.process(id));
        let has = |number| fields.len() == number;
        if has(2)
            && let (Some(from), Some(number)) = (process("from"), number("number"))
        {
            return Some(format!("message {number} of {from}"));
        }
        if has(2)
            && let (Some(id), Some(life)) = (process("id"), number("incarnation"))
        {
            return Some(format!("{id} incarnation {life}"));
        }
        if has(3)
            && let (Some(generation), Some(epoch), Some(coordinator)) =
                (number("generation"), number("epoch"), process("coordinator"))
        {
            return Some(match generation {
                0 => format!("view {epoch} of {coordinator}"),
                _ => format!("view {epoch} of {coordinator} in generation {generation}"),
            });
        }
        None
    }

    /// A view that has an id: the id, and the other fields.
    fn of_view(self, fields: &Map<String, Value>) -> Option<(String, Map<String, Value>)> {
        let view = self.known(fields.get("id")?.as_object()?)?;
        let others = fields.iter().filter(|(name, _)| *name != "id");
        let others = others.map(|(name, value)| (name.clone(), value.clone()));
        view.starts_with("view ").then(|| (view, others.collect()))
    }

    /// A map from numbers; from processes, if each of them has an entry.
    fn entries(self, map: &Map<String, Value>, extent: Extent, depth: usize) -> String {
        let id = |key: &String| key.parse().ok().filter(|id| self.header.nodes.contains(id));
        let of_processes =
            map.len() == self.header.nodes.len() && map.keys().all(|k| id(k).is_some());
        let entry = |(key, value): (&String, &Value)| {
            let key = match id(key) {
                Some(id) if of_processes => self.header.name_of(id),
                _ => key.clone(),
            };
            format!("{key}: {}", self.value(value, "", extent, depth))
        };
        map.iter().map(entry).collect::<Vec<_>>().join(", ")
    }

    fn value(self, value: &Value, name: &str, extent: Extent, depth: usize) -> String {
        match value {
            Value::Null => "none".into(),
            Value::Bool(_) => value.to_string(),
            Value::Number(_) => {
                let process = PROCESS.contains(&name).then(|| self.process(value)).flatten();
                process.unwrap_or_else(|| value.to_string())
            }
            Value::String(text) if is_name(text) => text.clone(),
            Value::String(_) => value.to_string(),
            Value::Array(items) if items.is_empty() => "empty".into(),
            Value::Array(items) if depth + 1 >= extent.depth && items.iter().any(is_compound) => {
                match items.len() {
                    1 => "(1 entry)".into(),
                    several => format!("({several} entries)"),
                }
            }
            Value::Array(items) => {
                let name = if PROCESSES.contains(&name) { "process" } else { "" };
                let item = |item| self.value(item, name, extent, depth + 1);
                format!("({})", items.iter().map(item).collect::<Vec<_>>().join(", "))
            }
            Value::Object(fields) if fields.is_empty() => "empty".into(),
            Value::Object(fields) if is_record(value) => match self.known(fields) {
                Some(known) => known,
                None if depth >= extent.depth => "(…)".into(),
                None => match self.of_view(fields) {
                    Some((view, others)) => {
                        format!("{view} ({})", self.fields(&others, extent, depth + 1))
                    }
                    None => format!("({})", self.fields(fields, extent, depth + 1)),
                },
            },
            Value::Object(_) => {
                let (name, inner) = path(value);
                let inner = inner.map(|inner| self.value(inner, "", extent, depth));
                match inner {
                    None => name,
                    Some(inner) if inner.starts_with("(") => format!("{name} {inner}"),
                    Some(inner) => format!("{name}({inner})"),
                }
            }
        }
    }
}

/// The names of the variants in which a value stands, and the value: `Group/Prepare` for
/// `{"Group":{"Prepare":…}}`.
fn path(value: &Value) -> (String, Option<&Value>) {
    let (mut names, mut value) = (Vec::new(), value);
    while let Value::Object(fields) = value
        && !is_record(value)
        && let Some((name, inner)) = fields.iter().next()
    {
        names.push(name.as_str());
        value = inner;
    }
    match value {
        Value::Null if names.is_empty() => (String::new(), None),
        Value::String(name) if is_name(name) && names.is_empty() => (name.clone(), None),
        _ => (names.join("/"), Some(value)),
    }
}

/// Whether it has fields: it is neither a variant nor empty.
fn is_record(value: &Value) -> bool {
    let Value::Object(fields) = value else { return false };
    !(fields.len() == 1 && fields.keys().all(|name| is_variant(name)))
}

fn is_map(fields: &Map<String, Value>) -> bool {
    fields.keys().all(|key| key.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_compound(value: &Value) -> bool {
    matches!(value, Value::Array(_) | Value::Object(_))
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
