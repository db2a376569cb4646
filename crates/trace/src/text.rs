//! The story of a run, for people: a sentence for each event.

mod raw;
mod sentences;
mod values;

use std::collections::{BTreeMap, BTreeSet};

pub use raw::render;
pub(crate) use sentences::cut;
pub use sentences::violation;

use crate::View;
use crate::messages::{Message, messages};
use crate::{Entry, Header, Incident, IncidentKind, InputRecord, Run, Step};

/// One T in nanoseconds of a process's timers, in the simulator and the checker.
const SIMULATED_T: f64 = 1e6;

/// The form of a story.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Whether to print each new state of a process.
    pub states: bool,
    /// Whether to print raw values, as they were recorded, instead of sentences.
    pub debug: bool,
    /// The processes whose events are printed; none: all processes.
    pub nodes: Option<BTreeSet<u32>>,
    /// The most lines to print; the rest is counted.
    pub most_lines: Option<usize>,
}

/// The story of `run`: each input of a process, and below it the effects.
pub fn transcript(run: &Run, options: &Options) -> String {
    let messages = messages(run);
    let times: Vec<String> = run.entries.iter().map(|e| time(&run.header, e.at())).collect();
    let width = times.iter().map(String::len).max().unwrap_or(0).max(4);
    let mut lines = Vec::new();
    let mut more = 0;
    for (entry, time) in run.entries.iter().zip(&times) {
        let of_entry = match entry {
            Entry::Step(step) => lines_of_step(step, &run.header, options),
            Entry::Incident(incident) => {
                lines_of_incident(incident, &run.header, &messages, options)
            }
        };
        for (i, line) in of_entry.into_iter().enumerate() {
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
        lines.push(format!("… {more} more lines"));
    }
    lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
}

/// One step in sentences: its input, then its effects.
pub fn step_lines(step: &Step, header: &Header, states: bool) -> Vec<String> {
    sentences::step_lines(step, header, states)
}

/// One incident in a sentence.
pub fn incident_line(
    incident: &Incident,
    header: &Header,
    messages: &BTreeMap<u64, Message<'_>>,
) -> String {
    sentences::incident_line(incident, header, messages)
}

/// The part of a step that `view` shows: all but hidden messages, or, without `all`, only messages.
pub(crate) fn shown_lines(step: &Step, view: &View<'_>, all: bool) -> Vec<String> {
    sentences::shown_lines(step, view, all)
}

fn lines_of_step(step: &Step, header: &Header, options: &Options) -> Vec<String> {
    if options.nodes.as_ref().is_some_and(|nodes| !nodes.contains(&step.node)) {
        return Vec::new();
    }
    let lines = match options.debug {
        true => raw::step_lines(step, header, options.states),
        false => sentences::step_lines(step, header, options.states),
    };
    // A start without effects is no news.
    if lines.len() == 1 && step.input == InputRecord::Start { Vec::new() } else { lines }
}

fn lines_of_incident(
    incident: &Incident,
    header: &Header,
    messages: &BTreeMap<u64, Message<'_>>,
    options: &Options,
) -> Vec<String> {
    let shown = |node: &u32| options.nodes.as_ref().is_none_or(|nodes| nodes.contains(node));
    let concerned = match &incident.kind {
        IncidentKind::Lost(id) | IncidentKind::Duplicated(id) => {
            messages.get(id).is_none_or(|m| shown(&m.from) || shown(&m.to))
        }
        IncidentKind::Crash(node)
        | IncidentKind::Restart { node, .. }
        | IncidentKind::Pause(node)
        | IncidentKind::Resume(node) => shown(node),
        IncidentKind::AppMessage { from, to, .. } => shown(from) || shown(to),
        IncidentKind::Cut(_) | IncidentKind::Heal(_) | IncidentKind::Violation { .. } => true,
    };
    match (concerned, options.debug) {
        (false, _) => Vec::new(),
        (true, true) => vec![raw::incident_line(incident, messages)],
        (true, false) => vec![sentences::incident_line(incident, header, messages)],
    }
}

/// A span of time in the unit of the run: T, if the run counts in T.
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

/// The time `at` in the header's unit, with no more digits than needed.
pub fn time(header: &Header, at: u64) -> String {
    trimmed(header.time_of(at))
}

/// `number` with at most six digits after the point, and no zeros at its end.
pub(crate) fn trimmed(number: f64) -> String {
    let text = format!("{number:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn is_variant(name: &str) -> bool {
    is_name(name) && name.starts_with(|c: char| c.is_uppercase())
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}
