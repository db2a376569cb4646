//! Filters for a run: nodes, kinds of messages, a window of time.

use std::collections::{BTreeMap, BTreeSet};

use crate::messages::{Message, messages};
use crate::{Entry, Header, IncidentKind, InputRecord, Run, Step, kind_of, text};

/// Selects the part of a run to show; by default all of it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Filter {
    /// The nodes whose steps and mutual messages are shown; none: all nodes.
    pub nodes: Option<BTreeSet<u32>>,
    /// The kinds of messages that are shown; none: all kinds.
    pub kinds: Option<BTreeSet<String>>,
    /// The first and the last tick that are shown; none: the whole run.
    pub window: Option<(u64, u64)>,
}

impl Filter {
    /// Whether a node is shown.
    pub fn shows_node(&self, node: u32) -> bool {
        self.nodes.as_ref().is_none_or(|nodes| nodes.contains(&node))
    }

    /// Whether the events of tick `at` are shown.
    pub fn shows_time(&self, at: u64) -> bool {
        self.window.is_none_or(|(from, to)| (from..=to).contains(&at))
    }

    /// Whether nodes and kind of a message pass the filter.
    fn fits(&self, message: &Message<'_>) -> bool {
        let named = |kinds: &BTreeSet<String>| {
            kinds.contains(message.kind()) || kinds.contains(&message.full_name())
        };
        self.shows_node(message.from)
            && self.shows_node(message.to)
            && self.kinds.as_ref().is_none_or(named)
    }

    /// Checks that `run` has the selected nodes, kinds and times. The error lists those that it has.
    pub fn check(&self, run: &Run) -> Result<(), String> {
        for node in self.nodes.iter().flatten() {
            known_node(*node, &run.header)?;
        }
        if let Some(wanted) = &self.kinds {
            let messages = messages(run);
            let plain = messages.values().map(|message| message.kind().to_owned());
            let full = messages.values().map(Message::full_name);
            let there: BTreeSet<String> = plain.chain(full).collect();
            if let Some(kind) = wanted.iter().find(|kind| !there.contains(kind.as_str())) {
                let there: Vec<String> = there.into_iter().collect();
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

/// The part of an entry that is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// All of it except hidden messages.
    All,
    /// Only messages whose other end lies inside the window.
    Messages,
    /// Nothing.
    Nothing,
}

/// A run seen through a filter. A message is shown whole or not at all: a message in flight at an edge
/// of the window keeps its end outside.
pub struct View<'a> {
    only: &'a Filter,
    run: &'a Run,
    messages: &'a BTreeMap<u64, Message<'a>>,
    /// Entries outside the window that send or receive a shown message.
    ends: BTreeSet<usize>,
}

impl<'a> View<'a> {
    /// `run` and its `messages`, filtered by `only`.
    pub fn new(run: &'a Run, messages: &'a BTreeMap<u64, Message<'a>>, only: &'a Filter) -> Self {
        let mut view = Self { only, run, messages, ends: BTreeSet::new() };
        if only.window.is_some() {
            let shown = messages.values().filter(|message| view.shows_message(message));
            let ends = shown.flat_map(ends_of).filter(|&i| !only.shows_time(run.entries[i].at()));
            view.ends = ends.collect();
        }
        view
    }

    /// The header of the run.
    pub(crate) fn header(&self) -> &Header {
        &self.run.header
    }

    /// Whether a message is shown: it passes the filter, and is in flight within the window.
    pub fn shows_message(&self, message: &Message<'_>) -> bool {
        let at = |i: usize| self.run.entries[i].at();
        let last = || ends_of(message).map(at).max().unwrap_or(0);
        let on_time = |(from, to)| at(message.sent) <= to && last() >= from;
        self.only.fits(message) && self.only.window.is_none_or(on_time)
    }

    /// Whether entry `i` itself is shown, not only its messages.
    pub fn shows(&self, i: usize) -> bool {
        self.extent(i) == Extent::All
    }

    /// The part of entry `i` that is shown.
    pub fn extent(&self, i: usize) -> Extent {
        let entry = &self.run.entries[i];
        let inside = self.only.shows_time(entry.at());
        let shown = match entry {
            Entry::Step(step) => self.only.shows_node(step.node),
            Entry::Incident(incident) => match &incident.kind {
                IncidentKind::Lost(id)
                | IncidentKind::Duplicated(id)
                | IncidentKind::AppMessage { id, .. } => {
                    self.messages.get(id).is_none_or(|message| self.shows_message(message))
                }
                IncidentKind::Crash(node)
                | IncidentKind::Restart { node, .. }
                | IncidentKind::Pause(node)
                | IncidentKind::Resume(node) => self.only.shows_node(*node),
                IncidentKind::Cut(_) | IncidentKind::Heal(_) | IncidentKind::Violation { .. } => {
                    true
                }
            },
        };
        match shown {
            true if inside => Extent::All,
            true if self.ends.contains(&i) => Extent::Messages,
            _ => Extent::Nothing,
        }
    }

    /// Whether the input of `step` is shown; every input but a message is.
    pub fn shows_input(&self, step: &Step) -> bool {
        let (from, id, kind) = match &step.input {
            InputRecord::Message { from, id, body } => (*from, *id, kind_of(body)),
            InputRecord::Stamp { from, id, .. } => (*from, *id, "application"),
            _ => return true,
        };
        match self.messages.get(&id) {
            Some(message) => self.shows_message(message),
            // The recording lacks the sending: it began later, or it is the recording of one member.
            None => {
                let kinds = self.only.kinds.as_ref();
                self.only.shows_node(from) && kinds.is_none_or(|kinds| kinds.contains(kind))
            }
        }
    }

    /// Whether the message of this number is shown.
    pub fn shows_id(&self, id: u64) -> bool {
        self.messages.get(&id).is_none_or(|message| self.shows_message(message))
    }

    /// The shown part of entry `i` in sentences.
    pub fn lines(&self, i: usize) -> Vec<String> {
        let extent = self.extent(i);
        match &self.run.entries[i] {
            _ if extent == Extent::Nothing => Vec::new(),
            Entry::Step(step) => text::shown_lines(step, self, extent == Extent::All),
            Entry::Incident(incident) => {
                vec![text::incident_line(incident, self.header(), self.messages)]
            }
        }
    }
}

/// The entries that send, receive or lose a message.
fn ends_of<'a>(message: &'a Message<'_>) -> impl Iterator<Item = usize> + 'a {
    std::iter::once(message.sent).chain(message.received.iter().copied()).chain(message.lost)
}

/// Checks that the run has this node.
pub fn known_node(node: u32, header: &Header) -> Result<(), String> {
    if header.nodes.contains(&node) {
        return Ok(());
    }
    let some: Vec<String> = header.nodes.iter().take(12).map(u32::to_string).collect();
    let more = if header.nodes.len() > 12 { ", …" } else { "" };
    Err(format!("there is no node {node}: the run has {}{more}", some.join(", ")))
}
