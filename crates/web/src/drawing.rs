//! A run as the page draws it: events, their positions on the axis, links between processes.
//!
//! Each text is written once and named by its number. Entries and messages are lists, as short as JSON
//! can be. The page's `model.js` reads them.

use std::collections::BTreeMap;

use konklave_catalog::{Plan, Scenario};
use konklave_process::Condition;
use konklave_trace::causality::causes;
use konklave_trace::diagram::{Band, Bar, Diagram, Lasting, Tick, client_events};
use konklave_trace::messages::{Message, messages};
use konklave_trace::text::{incident_line, render, step_lines};
use konklave_trace::{EffectRecord, Entry, Header, IncidentKind, InputRecord, Run, Step};
use serde::Serialize;
use serde_json::Value;

/// The scenario and the report of a run.
pub(crate) struct World {
    scenario: Scenario,
    /// The report of a run or of a check.
    report: Value,
    /// Links between ids; none for a complete graph, which needs no list.
    edges: Option<Vec<(u32, u32)>>,
    directed: bool,
}

impl World {
    /// The world of `plan`.
    pub(crate) fn of(plan: &Plan, report: Value) -> Self {
        let (topology, members) = (&plan.setup.topology, plan.setup.group.members());
        let complete = topology.is_complete() && topology.len() > 2;
        let ids = |(a, b): (usize, usize)| (members[a].0, members[b].0);
        let directed = topology.name == "directed-ring";
        let edges = match topology.len() {
            // Each arrow leads to the next node, that of the last node back to the first.
            n if directed && n > 1 => {
                Some((0..n).map(|u| ids((u, topology.successor(u)))).collect())
            }
            _ if complete => None,
            _ => Some(topology.edge_list().map(ids).collect()),
        };
        Self { scenario: plan.scenario.clone(), report, edges, directed }
    }
}

/// A run, for the page.
#[derive(Serialize)]
pub(crate) struct Track<'a> {
    name: &'a str,
    nodes: &'a [u32],
    /// The name of the unit of time, and how many ticks make one.
    time: &'a str,
    unit: f64,
    world: &'a str,
    topology: &'a str,
    edges: &'a Option<Vec<(u32, u32)>>,
    directed: bool,
    verdict: &'a str,
    command: &'a str,
    scenario: &'a Scenario,
    /// The scenario as a file.
    toml: String,
    report: &'a Value,
    width: f64,
    /// Where it begins, the time, where it ends.
    ticks: Vec<(f64, &'a str, f64)>,
    /// Silence cut short: from, to, what it says.
    gaps: Vec<(f64, f64, &'a str)>,
    /// Cuts of links: from, to, description.
    bands: Vec<(f64, f64, &'a str)>,
    /// Lasting situations of a node: kind, node, from, to, words.
    bars: Vec<(&'static str, u32, f64, f64, &'a str)>,
    kinds: Vec<&'a str>,
    words: Vec<String>,
    entries: Vec<EntryData>,
    messages: Vec<MessageData>,
}

/// An entry: tick, place, node or -1, cause, words, new state as pairs of words or 0, the entry that
/// sent what this one received or -1, what it changed (see [`change`]).
type EntryData = (u64, f64, i64, u8, Vec<usize>, Fields, i64, &'static str);

/// A message: number, from, to, kind, words, sent, received, lost or -1, whether it was doubled.
type MessageData = (u64, u32, u32, usize, usize, usize, Vec<usize>, i64, u8);

#[derive(Serialize)]
#[serde(untagged)]
enum Fields {
    Same(u8),
    New(Vec<usize>),
}

impl<'a> Track<'a> {
    /// `run` as `diagram` lays it out.
    pub(crate) fn of(
        run: &'a Run,
        diagram: &'a Diagram,
        world: &'a World,
        conditions: &[Condition],
    ) -> Self {
        let sent = messages(run);
        let causes = causes(run);
        let mut words = Words::default();
        let place = |x: f64| (x * 10.0).round() / 10.0;
        let entry = |(i, entry): (usize, &Entry)| {
            let (node, cause, lines, state) = told(entry, &run.header, &sent);
            let state = state.map_or(Fields::Same(0), |state| Fields::New(words.fields(state)));
            let lines = lines.iter().map(|line| words.number(line)).collect();
            let by = causes.get(&i).map_or(-1, |&by| by as i64);
            let x = place(diagram.xs[i]);
            (
                entry.at(),
                x,
                node.map_or(-1, i64::from),
                cause,
                lines,
                state,
                by,
                change(entry, conditions),
            )
        };
        let entries: Vec<EntryData> = run.entries.iter().enumerate().map(entry).collect();
        let mut kinds: Vec<&str> = diagram.kinds.iter().map(|kind| kind.name.as_str()).collect();
        kinds.dedup();
        let message = |m: &Message<'_>| {
            let said = m.body.map_or("message of the application".into(), render);
            let name = m.full_name();
            let kind = kinds.iter().position(|kind| *kind == name).unwrap_or(0);
            let lost = m.lost.map_or(-1, |lost| lost as i64);
            let doubled = u8::from(m.duplicated.is_some());
            let said = words.number(&said);
            (m.id, m.from, m.to, kind, said, m.sent, m.received.clone(), lost, doubled)
        };
        let messages = sent.values().map(message).collect();
        let tick = |t: &'a Tick| (place(t.x), &*t.label, place(t.to));
        let band = |b: &'a Band| (place(b.from), place(b.to), &*b.label.text);
        let node = |b: &Bar| diagram.lanes[b.lane].node;
        let bar = |b: &'a Bar| (lasting(b.what), node(b), place(b.from), place(b.to), &*b.tooltip);
        Self {
            name: &run.header.algorithm,
            nodes: &run.header.nodes,
            time: &run.header.time,
            unit: run.header.unit,
            world: &run.header.world,
            topology: &run.header.topology,
            edges: &world.edges,
            directed: world.directed,
            verdict: run.footer.as_ref().map_or("cut off", |footer| &footer.verdict),
            command: &run.header.command,
            scenario: &world.scenario,
            toml: toml::to_string(&world.scenario).unwrap_or_default(),
            report: &world.report,
            width: diagram.width,
            ticks: diagram.ticks.iter().map(tick).collect(),
            gaps: diagram.gaps.iter().map(band).collect(),
            bands: diagram.bands.iter().map(band).collect(),
            bars: diagram.bars.iter().map(bar).collect(),
            kinds,
            words: words.words,
            entries,
            messages,
        }
    }
}

/// An entry in words: its node, its cause, and the state after it.
fn told<'a>(
    entry: &'a Entry,
    header: &Header,
    messages: &BTreeMap<u64, Message<'_>>,
) -> (Option<u32>, u8, Vec<String>, Option<&'a Value>) {
    match entry {
        Entry::Step(step) => {
            (Some(step.node), cause(step), step_lines(step, header, false), step.state.as_ref())
        }
        Entry::Incident(incident) => {
            let (node, cause) = match &incident.kind {
                IncidentKind::Lost(_) => (None, 10),
                IncidentKind::Duplicated(_) => (None, 11),
                IncidentKind::Crash(node) => (Some(*node), 12),
                IncidentKind::Restart { node, .. } => (Some(*node), 13),
                IncidentKind::Pause(node) => (Some(*node), 14),
                IncidentKind::Resume(node) => (Some(*node), 15),
                IncidentKind::Cut(_) => (None, 16),
                IncidentKind::Heal(_) => (None, 17),
                IncidentKind::AppMessage { .. } => (None, 18),
                IncidentKind::Violation { .. } => (None, 19),
            };
            (node, cause, vec![incident_line(incident, header, messages)], None)
        }
    }
}

fn cause(step: &Step) -> u8 {
    match step.input {
        // A start without effects is not shown.
        InputRecord::Start if step.effects.is_empty() => 0,
        InputRecord::Start | InputRecord::Recover { .. } => 1,
        InputRecord::Request(_) => 2,
        InputRecord::Message { .. } | InputRecord::Stamp { .. } => 3,
        InputRecord::Timer(_) => 4,
        InputRecord::Suspect(_) | InputRecord::Trust(_) => 5,
    }
}

/// The change of an entry's node, one letter each: `w`aits, is `i`nside, is `o`ut again,
/// `l`eads, `f`ollows, is `n`o leader any more; is `d`own, `u`p, `s`leeps, is awa`k`e; `!` for an
/// input that its assumptions rule out.
fn change(entry: &Entry, conditions: &[Condition]) -> &'static str {
    let Entry::Step(step) = entry else {
        let Entry::Incident(incident) = entry else { return "" };
        return match incident.kind {
            IncidentKind::Crash(_) => "d",
            IncidentKind::Restart { .. } => "u",
            IncidentKind::Pause(_) => "s",
            IncidentKind::Resume(_) => "k",
            IncidentKind::Lost(_)
            | IncidentKind::Duplicated(_)
            | IncidentKind::Cut(_)
            | IncidentKind::Heal(_)
            | IncidentKind::AppMessage { .. }
            | IncidentKind::Violation { .. } => "",
        };
    };
    if step.effects.iter().any(|effect| matches!(effect, EffectRecord::Unexpected(_))) {
        return "!";
    }
    client_events(step).fold("", |changed, (event, _)| {
        let begun = conditions.iter().find(|condition| condition.begins.contains(&event));
        let ended = conditions.iter().find(|condition| condition.ends.contains(&event));
        match (begun.map(|condition| condition.what), ended.map(|condition| condition.what)) {
            (Some(Lasting::Waiting), _) => "w",
            (Some(Lasting::Inside), _) => "i",
            (Some(Lasting::Leading), _) => "l",
            (Some(Lasting::Following), _) => "f",
            (None, Some(Lasting::Waiting | Lasting::Inside)) => "o",
            (None, Some(Lasting::Leading | Lasting::Following)) => "n",
            _ => changed,
        }
    })
}

fn lasting(what: Lasting) -> &'static str {
    match what {
        Lasting::Waiting => "waiting",
        Lasting::Inside => "inside",
        Lasting::Leading => "leading",
        Lasting::Following => "following",
        Lasting::Down => "down",
        Lasting::Paused => "paused",
        Lasting::Cut => "cut",
    }
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
        self.words.push(word.to_owned());
        self.numbers.insert(word.to_owned(), self.words.len() - 1);
        self.words.len() - 1
    }

    /// The fields of a state, in pairs of name and value.
    fn fields(&mut self, state: &Value) -> Vec<usize> {
        match state {
            Value::Object(fields) if fields.len() != 1 => {
                let pairs = fields.iter();
                pairs.flat_map(|(n, v)| [self.number(n), self.number(&render(v))]).collect()
            }
            other => vec![self.number(""), self.number(&render(other))],
        }
    }
}
