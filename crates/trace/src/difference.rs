//! The difference between a recording and the expected run, down to the field.

use std::fmt;

use serde_json::Value;

use crate::record::json;
use crate::{Entry, Footer, Header, ReplayError, Run, Sink};

/// A part of a recording.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Place {
    /// Its first line.
    Header,
    /// An entry, counted from 0.
    Entry(usize),
    /// Its last line.
    End,
}

impl Place {
    /// The line of the file, counted from 1, if that has no blank lines; `entries` are there.
    pub fn line(self, entries: usize) -> usize {
        match self {
            Self::Header => 1,
            Self::Entry(i) => i + 2,
            Self::End => entries + 2,
        }
    }
}

/// A difference: its place, the recorded value and the expected value.
#[derive(Clone, PartialEq, Debug)]
pub struct Difference {
    /// The place of the difference.
    pub place: Place,
    /// The field that differs.
    pub what: String,
    /// The recorded value.
    pub recorded: String,
    /// The expected value.
    pub expected: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, recorded, expected, .. } = self;
        write!(f, "{what}\n  recorded: {recorded}\n  expected: {expected}")
    }
}

impl std::error::Error for Difference {}

impl From<ReplayError> for Difference {
    fn from(error: ReplayError) -> Self {
        let ReplayError { step, line, node, what, recorded, replayed } = error;
        let what = format!("step {step} at p{node}: {what}");
        Self { place: Place::Entry(line - 2), what, recorded, expected: replayed }
    }
}

impl Difference {
    /// The first difference between the recorded and the expected value, if there is one.
    pub fn between(place: Place, recorded: &Value, expected: &Value) -> Option<Self> {
        let mut path = String::new();
        let (recorded, expected) = differing(Some(recorded), Some(expected), &mut path)?;
        let show = |value: Option<&Value>| value.map_or("nothing".into(), Value::to_string);
        let what = match path.strip_prefix('.').unwrap_or(&path) {
            "" => "the line differs".to_owned(),
            path => format!("`{path}` differs"),
        };
        Some(Self { place, what, recorded: show(recorded), expected: show(expected) })
    }

    /// The same of two headers.
    pub fn of_headers(recorded: &Header, expected: &Header) -> Option<Self> {
        Self::between(Place::Header, &json(recorded), &json(expected))
    }

    /// The same of two ends. What is computed is compared as it is written.
    pub fn of_ends(recorded: &Footer, expected: &Footer) -> Option<Self> {
        let written = json(expected).to_string();
        let expected = serde_json::from_str(&written).unwrap_or_default();
        Self::between(Place::End, &json(recorded), &expected)
    }
}

/// The innermost values that differ; `path` leads there.
fn differing<'a>(
    recorded: Option<&'a Value>,
    expected: Option<&'a Value>,
    path: &mut String,
) -> Option<(Option<&'a Value>, Option<&'a Value>)> {
    match (recorded, expected) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let known = other.keys().chain(one.keys().filter(|key| !other.contains_key(*key)));
            known.into_iter().find_map(|key| {
                let mut inner = format!("{path}.{key}");
                let found = differing(one.get(key), other.get(key), &mut inner)?;
                *path = inner;
                Some(found)
            })
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => (0..one.len().max(other.len()))
            .find_map(|i| {
                let mut inner = format!("{path}[{i}]");
                let found = differing(one.get(i), other.get(i), &mut inner)?;
                *path = inner;
                Some(found)
            }),
        (one, other) if one == other => None,
        different => Some(different),
    }
}

/// A sink that writes nothing: it compares a second run with the recording of the first.
#[derive(Debug)]
pub struct Comparison<'a> {
    recorded: &'a Run,
    next: usize,
    found: Option<Difference>,
}

impl<'a> Comparison<'a> {
    /// Compares with `recorded`, up to its last entry.
    pub fn with(recorded: &'a Run) -> Self {
        Self { recorded, next: 0, found: None }
    }
}

impl Sink for Comparison<'_> {
    /// The first difference.
    type Done = Option<Difference>;

    fn entry(&mut self, expected: Entry) {
        let at = self.next;
        self.next += 1;
        if self.found.is_some() {
            return;
        }
        self.found = match self.recorded.entries.get(at) {
            Some(recorded) if *recorded == expected => None,
            Some(recorded) => {
                Difference::between(Place::Entry(at), &json(recorded), &json(&expected))
            }
            // The recording was cut off here: there is nothing to compare with.
            None if self.recorded.footer.is_none() => None,
            None => Some(Difference {
                place: Place::End,
                what: "something is missing before the end".into(),
                recorded: format!("{} entries", self.recorded.entries.len()),
                expected: json(&expected).to_string(),
            }),
        };
    }

    fn finish(self, footer: Option<Footer>) -> Option<Difference> {
        let Self { recorded, next, found } = self;
        found.or_else(|| match recorded.entries.get(next) {
            Some(more) => Some(Difference {
                place: Place::Entry(next),
                what: "the run was over before".into(),
                recorded: json(more).to_string(),
                expected: "the end".into(),
            }),
            None => Difference::of_ends(recorded.footer.as_ref()?, footer.as_ref()?),
        })
    }
}
