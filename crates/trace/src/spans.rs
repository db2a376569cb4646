//! Conditions that last: a process waits, is inside, leads, is down; a link is cut. The problem says which
//! requests and indications begin and end those of clients.

use std::collections::BTreeMap;

use konklave_process::{ClientEvent, Condition, Lasting};
use serde_json::Value;

use crate::{EffectRecord, Entry, IncidentKind, InputRecord, Run, Step, kind_of, text};

/// A condition that lasts from one entry to another, at one node or in the whole network.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Span {
    pub(crate) what: Lasting,
    /// The node; none for the whole network.
    pub(crate) node: Option<u32>,
    pub(crate) label: String,
    /// A shorter label; empty if there is none.
    pub(crate) short: &'static str,
    pub(crate) begin: usize,
    /// The entry that ends it; none if it lasts until the end of the run.
    pub(crate) end: Option<usize>,
}

/// The conditions of `run`, ordered by their begin; `conditions` are those of clients.
pub(crate) fn spans(run: &Run, conditions: &[Condition]) -> Vec<Span> {
    let mut open = Spans::default();
    for (i, entry) in run.entries.iter().enumerate() {
        match entry {
            Entry::Step(step) => {
                let node = step.node;
                for (event, body) in client_events(step) {
                    open.client(conditions, node, (event, body), i);
                }
            }
            Entry::Incident(incident) => open.met(&incident.kind, i),
        }
    }
    open.all
}

/// The events between client and process in a step, with their values.
pub fn client_events(step: &Step) -> impl Iterator<Item = (ClientEvent<'_>, &Value)> {
    let request = match &step.input {
        InputRecord::Request(body) => Some((ClientEvent::Request(kind_of(body)), body)),
        _ => None,
    };
    let indications = step.effects.iter().filter_map(|effect| match effect {
        EffectRecord::Indicate(body) => Some((ClientEvent::Indication(kind_of(body)), body)),
        _ => None,
    });
    request.into_iter().chain(indications)
}

#[derive(Default)]
struct Spans {
    all: Vec<Span>,
    /// The indices of open conditions, by node and kind.
    open: BTreeMap<(Option<u32>, Lasting), Vec<usize>>,
}

const STATES: [Lasting; 4] =
    [Lasting::Waiting, Lasting::Inside, Lasting::Leading, Lasting::Following];

impl Spans {
    fn begin(&mut self, what: Lasting, node: u32, label: &str, i: usize) {
        self.end(&[what], node, i);
        self.push(what, Some(node), (label.to_owned(), ""), i);
    }

    fn push(
        &mut self,
        what: Lasting,
        node: Option<u32>,
        (label, short): (String, &'static str),
        i: usize,
    ) {
        self.open.entry((node, what)).or_default().push(self.all.len());
        self.all.push(Span { what, node, label, short, begin: i, end: None });
    }

    fn end(&mut self, whats: &[Lasting], node: u32, i: usize) {
        for what in whats {
            for span in self.open.remove(&(Some(node), *what)).unwrap_or_default() {
                self.all[span].end = Some(i);
            }
        }
    }

    /// An event between the client and the process `node`.
    fn client(
        &mut self,
        conditions: &[Condition],
        node: u32,
        (event, body): (ClientEvent<'_>, &Value),
        i: usize,
    ) {
        for condition in conditions.iter().filter(|condition| condition.ends.contains(&event)) {
            self.end(&[condition.what], node, i);
        }
        for condition in conditions.iter().filter(|condition| condition.begins.contains(&event)) {
            let value = condition.field().map_or(&Value::Null, |field| &body[kind_of(body)][field]);
            let label = match value {
                Value::Null => condition.plain_name().to_owned(),
                value => format!("{} {}", condition.plain_name(), text::render(value)),
            };
            self.end(&[condition.what], node, i);
            self.push(condition.what, Some(node), (label, condition.short), i);
        }
    }

    fn met(&mut self, kind: &IncidentKind, i: usize) {
        match kind {
            IncidentKind::Crash(node) => {
                self.end(&STATES, *node, i);
                self.end(&[Lasting::Paused], *node, i);
                self.begin(Lasting::Down, *node, "crashed", i);
            }
            IncidentKind::Restart { node, .. } => self.end(&[Lasting::Down], *node, i),
            IncidentKind::Pause(node) => self.begin(Lasting::Paused, *node, "asleep", i),
            IncidentKind::Resume(node) => self.end(&[Lasting::Paused], *node, i),
            IncidentKind::Cut(what) => self.push(Lasting::Cut, None, (what.clone(), ""), i),
            IncidentKind::Heal(what) => {
                let cuts = self.open.entry((None, Lasting::Cut)).or_default();
                let healed = cuts.iter().rposition(|&c| self.all[c].label.starts_with(what));
                if let Some(cut) = healed {
                    let span = cuts.remove(cut);
                    self.all[span].end = Some(i);
                }
            }
            IncidentKind::Lost(_)
            | IncidentKind::Duplicated(_)
            | IncidentKind::AppMessage { .. }
            | IncidentKind::Violation { .. } => {}
        }
    }
}
