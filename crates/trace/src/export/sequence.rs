//! A run as a sequence of arrows and notes, as sequence diagrams have them: top to bottom, and an
//! arrow takes no time.

use std::collections::BTreeMap;

use crate::axis::{Track, typical_delay};
use crate::diagram::{Fate, Lasting, Options, lane_order, short, words_of};
use crate::messages::{Message, messages};
use crate::spans::spans;
use crate::text::{incident_line, render, time, trimmed};
use crate::{EffectRecord, Entry, Extent, IncidentKind, InputRecord, Run, Step, View};

/// An item of a sequence diagram, from top to bottom.
pub(super) enum Item {
    /// A message where it arrives or gets lost.
    Arrow { from: u32, to: u32, label: String, fate: Fate },
    /// Words at a node, line by line.
    Note { node: u32, lines: Vec<String> },
    /// Words about everyone.
    Everyone(String),
    /// Nothing happens for so long.
    Quiet(String),
    /// From here the node is inside, or leads.
    Enter(u32),
    /// To here.
    Leave(u32),
}

/// The lanes from left to right, and the items from top to bottom.
pub(super) fn sequence(run: &Run, options: &Options) -> (Vec<u32>, Vec<Item>) {
    let messages = messages(run);
    let view = View::new(run, &messages, &options.only);
    let (begins, ends) = offices(run, options);
    let mut items: Vec<Item> = Vec::new();
    let places = BTreeMap::new();
    let quiet = options.quiet
        * typical_delay(&[Track { run, messages: &messages, places: &places, view: &view }]);
    let mut last: Option<u64> = None;
    for (i, entry) in run.entries.iter().enumerate() {
        let extent = view.extent(i);
        let before = items.len();
        let writer = Told { run, view: &view, messages: &messages, i };
        match entry {
            _ if extent == Extent::Nothing => continue,
            Entry::Step(step) => writer.step(step, extent == Extent::All, &mut items),
            Entry::Incident(incident) => match &incident.kind {
                IncidentKind::Lost(id) => items.extend(writer.arrow(*id, Fate::Lost)),
                IncidentKind::Crash(node)
                | IncidentKind::Restart { node, .. }
                | IncidentKind::Pause(node)
                | IncidentKind::Resume(node) => {
                    let line = incident_line(incident, &run.header, &messages);
                    let name = run.header.name_of(*node);
                    let event = line.strip_prefix(&name).unwrap_or(&line).trim_start();
                    let lines = vec![format!("{event} @{}", writer.now())];
                    items.push(Item::Note { node: *node, lines });
                }
                IncidentKind::Cut(_) | IncidentKind::Heal(_) | IncidentKind::Violation { .. } => {
                    let line = incident_line(incident, &run.header, &messages);
                    items.push(Item::Everyone(format!("{line} @{}", writer.now())));
                }
                IncidentKind::Duplicated(_) | IncidentKind::AppMessage { .. } => {}
            },
        }
        if extent == Extent::All {
            items.extend(ends.get(&i).into_iter().flatten().map(|&node| Item::Leave(node)));
            items.extend(begins.get(&i).into_iter().flatten().map(|&node| Item::Enter(node)));
        }
        if items.len() > before {
            let pause = entry.at().saturating_sub(last.unwrap_or(entry.at()));
            if pause as f64 > quiet {
                let length = trimmed((run.header.time_of(pause) * 100.0).round() / 100.0);
                items.insert(before, Item::Quiet(format!("{length} {}", run.header.time)));
            }
            last = Some(entry.at());
        }
    }
    let pending = messages.values().filter(|m| m.received.is_empty() && m.lost.is_none());
    for message in pending {
        let writer = Told { run, view: &view, messages: &messages, i: message.sent };
        items.extend(writer.arrow(message.id, Fate::Pending));
    }
    close(&mut items);
    (lane_order(run, options), items)
}

/// The processes that enter or leave the critical section or an office, by entry.
type Offices = BTreeMap<usize, Vec<u32>>;

fn offices(run: &Run, options: &Options) -> (Offices, Offices) {
    let (mut begins, mut ends) = (Offices::new(), Offices::new());
    for span in spans(run, options.conditions) {
        let Some(node) = span.node.filter(|node| options.only.shows_node(*node)) else { continue };
        if matches!(span.what, Lasting::Inside | Lasting::Leading) {
            begins.entry(span.begin).or_default().push(node);
            ends.entry(span.end.unwrap_or(usize::MAX)).or_default().push(node);
        }
    }
    (begins, ends)
}

/// Every entering has its leaving, and the other way round.
fn close(items: &mut Vec<Item>) {
    let mut open: Vec<u32> = Vec::new();
    items.retain(|item| match item {
        Item::Enter(node) => {
            open.push(*node);
            true
        }
        Item::Leave(node) => match open.iter().position(|there| there == node) {
            Some(there) => {
                open.remove(there);
                true
            }
            None => false,
        },
        Item::Arrow { .. } | Item::Note { .. } | Item::Everyone(_) | Item::Quiet(_) => true,
    });
    items.extend(open.into_iter().map(Item::Leave));
}

/// One entry with its run, filter and messages.
struct Told<'a> {
    run: &'a Run,
    view: &'a View<'a>,
    messages: &'a BTreeMap<u64, Message<'a>>,
    i: usize,
}

impl Told<'_> {
    fn now(&self) -> String {
        time(&self.run.header, self.run.entries[self.i].at())
    }

    fn arrow(&self, id: u64, fate: Fate) -> Option<Item> {
        let message = self.messages.get(&id).filter(|m| self.view.shows_message(m))?;
        let label = words_of(message);
        let fate_words = match fate {
            Fate::Arrived | Fate::Beyond => "",
            Fate::Again => " (again)",
            Fate::Lost => " (lost)",
            Fate::Pending => " (on its way)",
        };
        let label = format!("{label}{fate_words} @{}", self.now());
        Some(Item::Arrow { from: message.from, to: message.to, label, fate })
    }

    /// `all` of a step, or only its message.
    fn step(&self, step: &Step, all: bool, items: &mut Vec<Item>) {
        let mut lines = Vec::new();
        match &step.input {
            InputRecord::Start => {}
            InputRecord::Recover { .. } => lines.push("recovers".to_owned()),
            InputRecord::Request(request) => lines.push(format!("asks {}", short(request))),
            InputRecord::Message { id, .. } | InputRecord::Stamp { id, .. } => {
                let first = self.messages.get(id).and_then(|m| m.received.first());
                let fate = if first == Some(&self.i) { Fate::Arrived } else { Fate::Again };
                items.extend(self.arrow(*id, fate));
            }
            InputRecord::Timer(timer) => lines.push(format!("timer {}", render(timer))),
            InputRecord::Suspect(peer) => lines.push(format!("suspects p{peer}")),
            InputRecord::Trust(peer) => lines.push(format!("trusts p{peer}")),
        }
        for effect in &step.effects {
            match effect {
                EffectRecord::Indicate(indication) => lines.push(short(indication)),
                EffectRecord::Unexpected(what) => lines.push(format!("met {what}")),
                EffectRecord::Send { .. }
                | EffectRecord::SetTimer { .. }
                | EffectRecord::Cancel { .. }
                | EffectRecord::Save(_) => {}
            }
        }
        if let Some(line) = lines.last_mut().filter(|_| all) {
            *line = format!("{line} @{}", self.now());
            items.push(Item::Note { node: step.node, lines });
        }
    }
}
