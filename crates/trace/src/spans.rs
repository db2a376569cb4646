//! Conditions that last: a process waits, is inside, leads, is down; a link is cut.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{EffectRecord, Entry, IncidentKind, InputRecord, Run, kind_of, text};

/// A condition that lasts from one entry to another, at one node or in the whole network.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Span {
    pub(crate) what: Lasting,
    /// The node; none for the whole network.
    pub(crate) node: Option<u32>,
    pub(crate) label: String,
    pub(crate) begin: usize,
    /// The entry that ends it; none if it lasts until the end of the run.
    pub(crate) end: Option<usize>,
}

/// A kind of condition.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Lasting {
    /// The process has requested the critical section and has no grant yet.
    Waiting,
    /// The process is in the critical section.
    Inside,
    /// The process leads.
    Leading,
    /// The process follows a leader.
    Following,
    /// The process is down after a crash.
    Down,
    /// The process is paused.
    Paused,
    /// A link or a part of the network is cut off.
    Cut,
}

/// The conditions of `run`, ordered by their begin.
pub(crate) fn spans(run: &Run) -> Vec<Span> {
    let mut open = Spans::default();
    for (i, entry) in run.entries.iter().enumerate() {
        match entry {
            Entry::Step(step) => {
                let node = step.node;
                if let InputRecord::Request(request) = &step.input {
                    match kind_of(request) {
                        "Acquire" => open.begin(Lasting::Waiting, node, "waits", i),
                        "Release" => open.end(&[Lasting::Inside], node, i),
                        _ => {}
                    }
                }
                for effect in &step.effects {
                    if let EffectRecord::Indicate(indication) = effect {
                        open.told(node, indication, i);
                    }
                }
            }
            Entry::Incident(incident) => open.met(&incident.kind, i),
        }
    }
    open.all
}

#[derive(Default)]
struct Spans {
    all: Vec<Span>,
    /// The indices of open conditions, by node and kind.
    open: BTreeMap<(Option<u32>, Lasting), Vec<usize>>,
}

const STATES: [Lasting; 4] =
    [Lasting::Waiting, Lasting::Inside, Lasting::Leading, Lasting::Following];
const OFFICES: [Lasting; 2] = [Lasting::Leading, Lasting::Following];

impl Spans {
    fn begin(&mut self, what: Lasting, node: u32, label: &str, i: usize) {
        self.end(&[what], node, i);
        self.push(what, Some(node), label.to_owned(), i);
    }

    fn push(&mut self, what: Lasting, node: Option<u32>, label: String, i: usize) {
        self.open.entry((node, what)).or_default().push(self.all.len());
        self.all.push(Span { what, node, label, begin: i, end: None });
    }

    fn end(&mut self, whats: &[Lasting], node: u32, i: usize) {
        for what in whats {
            for span in self.open.remove(&(Some(node), *what)).unwrap_or_default() {
                self.all[span].end = Some(i);
            }
        }
    }

    fn told(&mut self, node: u32, indication: &Value, i: usize) {
        match kind_of(indication) {
            "Granted" => {
                self.end(&[Lasting::Waiting], node, i);
                self.begin(Lasting::Inside, node, "critical section", i);
            }
            "Leading" => {
                self.end(&OFFICES, node, i);
                self.begin(Lasting::Leading, node, "leader", i);
            }
            "Following" => {
                self.end(&OFFICES, node, i);
                let leader = &indication["Following"]["leader"];
                let label = match leader {
                    Value::Null => "follows".to_owned(),
                    leader => format!("follows {}", text::render(leader)),
                };
                self.begin(Lasting::Following, node, &label, i);
            }
            "Deposed" => self.end(&OFFICES, node, i),
            _ => {}
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
            IncidentKind::Cut(what) => self.push(Lasting::Cut, None, what.clone(), i),
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
