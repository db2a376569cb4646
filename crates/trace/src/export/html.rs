//! A player: one HTML file that needs no network, with the diagram, the story and the states, to
//! be gone through forwards and backwards.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use crate::axis::in_order;
use crate::causality::causes;
use crate::diagram::{Diagram, Options, layout_all};
use crate::messages::messages;
use crate::svg::{escape, stack};
use crate::text::{render, time};
use crate::{Entry, IncidentKind, InputRecord, Run, View};

const SCRIPT: &str = include_str!("player.js");
const STYLE: &str = include_str!("player.css");

/// The player of `run`.
pub fn html(run: &Run, options: &Options) -> String {
    html_race(&[run], options)
}

/// The player of several runs, one above the other on one axis of time.
pub fn html_race(runs: &[&Run], options: &Options) -> String {
    let diagrams = layout_all(runs, options);
    let titles: Vec<&str> = runs.iter().map(|run| run.header.algorithm.as_str()).collect();
    let title = escape(&titles.join(" · "));
    let data = serde_json::to_string(&Data::new(runs, &diagrams, options));
    // In a script, only `<` could end it.
    let data = data.unwrap_or_default().replace('<', "\\u003c");
    let picture = stack(&diagrams);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header id=\"kp-head\"></header>\n<main>\n<div id=\"kp-picture\" tabindex=\"0\">\n\
         {picture}</div>\n<div id=\"kp-panes\">\n<ol id=\"kp-story\"></ol>\n\
         <div id=\"kp-side\"><div id=\"kp-message\" hidden></div><div id=\"kp-states\"></div></div>\n\
         </div>\n</main>\n<script type=\"application/json\" id=\"kp-data\">{data}</script>\n\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n"
    )
}

/// The data of the script. Each text is stored once; other fields refer to it by its number.
#[derive(Serialize, Default)]
struct Data {
    tracks: Vec<TrackData>,
    words: Vec<String>,
    /// In the order of time.
    steps: Vec<StepData>,
    messages: Vec<MessageData>,
    /// States before the first step: track, node, fields.
    initial: Vec<(usize, u32, Vec<usize>)>,
}

#[derive(Serialize)]
struct TrackData {
    name: String,
    verdict: String,
    time: String,
    nodes: Vec<u32>,
}

/// One entry of a run.
#[derive(Serialize)]
struct StepData {
    /// Track.
    t: usize,
    /// Entry in its run.
    e: usize,
    /// Place on the axis.
    x: f64,
    /// Time, a word.
    at: usize,
    /// Node, where it is at one.
    #[serde(skip_serializing_if = "Option::is_none")]
    n: Option<u32>,
    /// Whether it is a step of a process, and no incident.
    #[serde(skip_serializing_if = "is_zero")]
    p: u8,
    /// The story of the step, as numbers of texts; empty if it is filtered out.
    w: Vec<usize>,
    /// The new state: name, value, name, value …
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<Vec<usize>>,
    /// The step that sent the received message.
    #[serde(skip_serializing_if = "Option::is_none")]
    c: Option<usize>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_zero(number: &u8) -> bool {
    *number == 0
}

/// A message: entries are named by their place in `steps`.
#[derive(Serialize)]
struct MessageData {
    t: usize,
    id: u64,
    from: u32,
    to: u32,
    /// Its body, as the number of a text.
    w: usize,
    sent: Option<usize>,
    received: Vec<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<usize>,
}

#[derive(Default)]
struct Words {
    words: Vec<String>,
    numbers: BTreeMap<String, usize>,
}

impl Words {
    fn number(&mut self, word: &str) -> usize {
        if let Some(&number) = self.numbers.get(word) {
            return number;
        }
        let number = self.words.len();
        self.words.push(word.to_owned());
        self.numbers.insert(word.to_owned(), number);
        number
    }

    /// The fields of a state, in pairs of name and value.
    fn fields(&mut self, state: &Value) -> Vec<usize> {
        match state {
            Value::Object(fields) if fields.len() != 1 => fields
                .iter()
                .flat_map(|(name, value)| [self.number(name), self.number(&render(value))])
                .collect(),
            other => vec![self.number(""), self.number(&render(other))],
        }
    }
}

impl Data {
    fn new(runs: &[&Run], diagrams: &[Diagram], options: &Options) -> Self {
        let mut data = Self::default();
        let mut words = Words::default();
        let all_messages: Vec<_> = runs.iter().map(|run| messages(run)).collect();
        let views: Vec<_> = (runs.iter().zip(&all_messages))
            .map(|(run, messages)| View::new(run, messages, &options.only))
            .collect();
        let all_causes: Vec<_> = runs.iter().map(|run| causes(run)).collect();
        let mut numbers: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        let mut started = BTreeSet::new();
        for (_, t, e) in in_order(runs) {
            let (run, entry) = (runs[t], &runs[t].entries[e]);
            let told = match entry {
                Entry::Step(step) => {
                    let fields = step.state.as_ref().map(|state| words.fields(state));
                    let idle = step.input == InputRecord::Start && step.effects.is_empty();
                    if idle && started.insert((t, step.node)) {
                        data.initial.extend(fields.map(|fields| (t, step.node, fields)));
                        continue;
                    }
                    (Some(step.node), 1, fields)
                }
                Entry::Incident(incident) => (node_of(&incident.kind), 0, None),
            };
            let (n, p, s) = told;
            let lines = views[t].lines(e);
            numbers.insert((t, e), data.steps.len());
            data.steps.push(StepData {
                t,
                e,
                x: (diagrams[t].xs[e] * 10.0).round() / 10.0,
                at: words.number(&time(&run.header, entry.at())),
                n,
                p,
                w: lines.iter().map(|line| words.number(line)).collect(),
                s,
                c: all_causes[t].get(&e).and_then(|cause| numbers.get(&(t, *cause))).copied(),
            });
        }
        for (t, messages) in all_messages.iter().enumerate() {
            for message in messages.values().filter(|m| views[t].shows_message(m)) {
                let number = |e: &usize| numbers.get(&(t, *e)).copied();
                let said = message.body.map_or("message of the application".into(), render);
                data.messages.push(MessageData {
                    t,
                    id: message.id,
                    from: message.from,
                    to: message.to,
                    w: words.number(&said),
                    sent: number(&message.sent),
                    received: message.received.iter().filter_map(number).collect(),
                    lost: message.lost.as_ref().and_then(number),
                });
            }
        }
        data.tracks = runs
            .iter()
            .zip(diagrams)
            .map(|(run, diagram)| TrackData {
                name: run.header.algorithm.clone(),
                verdict: run.footer.as_ref().map_or("cut off".into(), |f| f.verdict.clone()),
                time: run.header.time.clone(),
                nodes: diagram.lanes.iter().map(|lane| lane.node).collect(),
            })
            .collect();
        data.words = words.words;
        data
    }
}

/// The node that an incident befalls; none if it befalls a message, a link or the whole group.
fn node_of(kind: &IncidentKind) -> Option<u32> {
    match kind {
        IncidentKind::Crash(node)
        | IncidentKind::Restart { node, .. }
        | IncidentKind::Pause(node)
        | IncidentKind::Resume(node) => Some(*node),
        IncidentKind::Lost(_)
        | IncidentKind::Duplicated(_)
        | IncidentKind::Cut(_)
        | IncidentKind::Heal(_)
        | IncidentKind::AppMessage { .. }
        | IncidentKind::Violation { .. } => None,
    }
}
