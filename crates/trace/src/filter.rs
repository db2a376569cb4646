//! What of a run to show: whose, which messages, when.

use std::collections::{BTreeMap, BTreeSet};

use crate::messages::{Message, messages};
use crate::{Entry, Header, IncidentKind, Run};

/// What of a run to show; by default all of it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Filter {
    /// Whose steps, and the messages between them; none: everyone's.
    pub nodes: Option<BTreeSet<u32>>,
    /// Which kinds of messages; none: all.
    pub kinds: Option<BTreeSet<String>>,
    /// From when to when, in ticks, both included; none: from begin to end.
    pub window: Option<(u64, u64)>,
}

impl Filter {
    /// Whether a node is shown.
    pub fn shows_node(&self, node: u32) -> bool {
        self.nodes.as_ref().is_none_or(|nodes| nodes.contains(&node))
    }

    /// Whether what happens `at` this tick is shown.
    pub fn shows_time(&self, at: u64) -> bool {
        self.window.is_none_or(|(from, to)| (from..=to).contains(&at))
    }

    /// Whether a message is shown, as far as its ends and its kind go.
    pub fn shows_message(&self, message: &Message<'_>) -> bool {
        self.shows_node(message.from)
            && self.shows_node(message.to)
            && self.kinds.as_ref().is_none_or(|kinds| kinds.contains(message.kind()))
    }

    /// Whether entry `i` is shown. A step goes with its node: what it received or sent may not be.
    pub fn shows_entry(&self, entry: &Entry, messages: &BTreeMap<u64, Message<'_>>) -> bool {
        self.shows_time(entry.at())
            && match entry {
                Entry::Step(step) => self.shows_node(step.node),
                Entry::Incident(incident) => match &incident.kind {
                    IncidentKind::Lost(id)
                    | IncidentKind::Duplicated(id)
                    | IncidentKind::AppMessage { id, .. } => {
                        messages.get(id).is_none_or(|message| self.shows_message(message))
                    }
                    IncidentKind::Crash(node)
                    | IncidentKind::Restart { node, .. }
                    | IncidentKind::Pause(node)
                    | IncidentKind::Resume(node) => self.shows_node(*node),
                    IncidentKind::Cut(_)
                    | IncidentKind::Heal(_)
                    | IncidentKind::Violation { .. } => true,
                },
            }
    }

    /// Whether `run` has what is asked for; if not, what it has instead.
    pub fn check(&self, run: &Run) -> Result<(), String> {
        for node in self.nodes.iter().flatten() {
            known_node(*node, &run.header)?;
        }
        if let Some(wanted) = &self.kinds {
            let messages = messages(run);
            let there: BTreeSet<&str> = messages.values().map(Message::kind).collect();
            if let Some(kind) = wanted.iter().find(|kind| !there.contains(kind.as_str())) {
                let there: Vec<&str> = there.into_iter().collect();
                let there =
                    if there.is_empty() { "no messages".to_owned() } else { there.join(", ") };
                return Err(format!("no message is of the kind `{kind}`: the run has {there}"));
            }
        }
        if self.window.is_some() && !run.entries.iter().any(|entry| self.shows_time(entry.at())) {
            let at = |entry: Option<&Entry>| run.header.time_of(entry.map_or(0, Entry::at));
            let (first, last) = (at(run.entries.first()), at(run.entries.last()));
            let unit = &run.header.time;
            return Err(format!(
                "nothing happens then: the run goes from {first} to {last} {unit}"
            ));
        }
        Ok(())
    }

    /// A window `FROM..TO` in the unit of `header`; either end may be left open.
    pub fn parse_window(text: &str, header: &Header) -> Result<(u64, u64), String> {
        let wrong = || {
            format!(
                "`{text}` is no window: it should be like 2.5..10, 2.5.. or ..10, in {}",
                if header.time.is_empty() { "the run's unit" } else { &header.time }
            )
        };
        let (from, to) = text.split_once("..").ok_or_else(wrong)?;
        let tick = |word: &str, open: u64, round: fn(f64) -> f64| {
            if word.trim().is_empty() {
                return Ok(open);
            }
            let time: f64 = word.trim().parse().map_err(|_| wrong())?;
            let ticks = round(time * if header.unit > 0.0 { header.unit } else { 1.0 });
            if time.is_finite() && time >= 0.0 { Ok(ticks as u64) } else { Err(wrong()) }
        };
        let (from, to) = (tick(from, 0, f64::ceil)?, tick(to, u64::MAX, f64::floor)?);
        if from > to {
            Err(format!("the window {text} ends before it begins"))
        } else {
            Ok((from, to))
        }
    }
}

/// Whether `node` is one of the run.
pub fn known_node(node: u32, header: &Header) -> Result<(), String> {
    if header.nodes.contains(&node) {
        return Ok(());
    }
    let some: Vec<String> = header.nodes.iter().take(12).map(u32::to_string).collect();
    let more = if header.nodes.len() > 12 { ", …" } else { "" };
    Err(format!("there is no node {node}: the run has {}{more}", some.join(", ")))
}
