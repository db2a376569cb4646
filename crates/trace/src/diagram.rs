//! The space–time diagram of a run, as data: where everything lies. Drawing it is another matter.
//!
//! Time goes to the right, each node has a lane. All lengths are in points.

mod place;

use std::collections::{BTreeMap, BTreeSet};

use crate::axis::{Axis, Room};
use crate::labels::{Taken, width_of};
use crate::messages::{Message, messages};
use crate::spans::spans;
use crate::{Entry, Header, IncidentKind, Run};

use place::Layout;

pub use crate::spans::Lasting;

/// What to show.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// Whose lanes; none: everyone's.
    pub nodes: Option<BTreeSet<u32>>,
    /// With more arrows than this, colours alone tell the kinds of messages apart.
    pub most_labels: usize,
    /// Silence longer than this many typical delays is shown as a gap.
    pub quiet: f64,
    /// The diagram is pressed together to be no wider, as far as one can still see.
    pub width: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self { nodes: None, most_labels: 150, quiet: 3.0, width: 4500.0 }
    }
}

/// A space–time diagram.
#[derive(Clone, PartialEq, Debug)]
pub struct Diagram {
    /// What was run.
    pub title: String,
    /// How.
    pub subtitle: String,
    /// How wide it is.
    pub width: f64,
    /// How high it is.
    pub height: f64,
    /// One for each node, in node order.
    pub lanes: Vec<Lane>,
    /// Steps.
    pub points: Vec<Point>,
    /// Messages.
    pub arrows: Vec<Arrow>,
    /// What lasts at one node.
    pub bars: Vec<Bar>,
    /// What is cut, all over.
    pub bands: Vec<Band>,
    /// Words at one moment.
    pub marks: Vec<Mark>,
    /// Properties that broke.
    pub violations: Vec<Mark>,
    /// Silence that was cut short.
    pub gaps: Vec<Band>,
    /// Round times.
    pub ticks: Vec<Tick>,
    /// The kinds of messages, in the order of their first.
    pub kinds: Vec<Kind>,
    /// What colours mean.
    pub legend: Vec<Key>,
    /// Where lanes and axis begin and end: left, top, right, bottom.
    pub field: (f64, f64, f64, f64),
    /// The unit of time.
    pub time: String,
    /// The size of small words.
    pub font: f64,
}

/// The line of a node.
#[derive(Clone, PartialEq, Debug)]
pub struct Lane {
    /// Whose.
    pub node: u32,
    /// Its name.
    pub label: String,
    /// Where.
    pub y: f64,
}

/// A step.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// Its index in [`Run::entries`].
    pub entry: usize,
    /// Where.
    pub at: (f64, f64),
    /// Why it happened.
    pub cause: Cause,
    /// All about it.
    pub tooltip: String,
}

/// Why a step happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// The process came up.
    Start,
    /// The application asked.
    Request,
    /// A message came.
    Message,
    /// A timer ran out.
    Timer,
    /// The failure detector spoke.
    Detector,
}

/// A message on its way.
#[derive(Clone, PartialEq, Debug)]
pub struct Arrow {
    /// The number of the message.
    pub id: u64,
    /// Where it leaves.
    pub from: (f64, f64),
    /// Where it arrives, or gets lost.
    pub to: (f64, f64),
    /// Its kind, as an index in [`Diagram::kinds`].
    pub kind: usize,
    /// What became of it.
    pub fate: Fate,
    /// What it says, where there is room.
    pub label: Option<Label>,
    /// All about it.
    pub tooltip: String,
}

/// What became of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It arrived.
    Arrived,
    /// It arrived once more.
    Again,
    /// It was lost.
    Lost,
    /// It was on its way when the recording ended.
    Pending,
}

/// A word in its place.
#[derive(Clone, PartialEq, Debug)]
pub struct Label {
    /// What it says.
    pub text: String,
    /// Its middle.
    pub at: (f64, f64),
    /// How it is turned, in degrees, clockwise.
    pub angle: f64,
}

/// Something that lasts at one node.
#[derive(Clone, PartialEq, Debug)]
pub struct Bar {
    /// What.
    pub what: Lasting,
    /// On which lane.
    pub lane: usize,
    /// Where it begins.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// Whether it went on when the recording ended.
    pub open: bool,
    /// A word, where there is room.
    pub label: Option<Label>,
    /// All about it.
    pub tooltip: String,
}

/// A stretch of time.
#[derive(Clone, PartialEq, Debug)]
pub struct Band {
    /// Where it begins.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// What it is.
    pub label: Label,
}

/// Words at one moment.
#[derive(Clone, PartialEq, Debug)]
pub struct Mark {
    /// The moment.
    pub x: f64,
    /// The words.
    pub label: Label,
    /// All of them.
    pub tooltip: String,
}

/// A round time.
#[derive(Clone, PartialEq, Debug)]
pub struct Tick {
    /// Where.
    pub x: f64,
    /// The time.
    pub label: String,
}

/// A kind of messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kind {
    /// Its name.
    pub name: String,
    /// How many there were.
    pub count: usize,
}

/// What a colour means.
#[derive(Clone, PartialEq, Debug)]
pub struct Key {
    /// Where its sample begins; its words follow.
    pub at: (f64, f64),
    /// The words.
    pub text: String,
    /// The sample.
    pub sample: Sample,
}

/// A sample of a colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sample {
    /// An arrow of this kind of messages.
    Arrow(usize),
    /// A bar.
    Bar(Lasting),
    /// A lost message.
    Lost,
}

/// Lays out `run`.
pub fn layout(run: &Run, options: &Options) -> Diagram {
    let messages = messages(run);
    let shown = |node: &u32| options.nodes.as_ref().is_none_or(|nodes| nodes.contains(node));
    let nodes: Vec<u32> = run.header.nodes.iter().copied().filter(shown).collect();
    let places: BTreeMap<u32, usize> = nodes.iter().enumerate().map(|(i, &p)| (p, i)).collect();
    let visible =
        messages.values().filter(|m| places.contains_key(&m.from) && places.contains_key(&m.to));
    let arrows = visible.clone().count();
    let labelled = arrows <= options.most_labels;
    let names: Vec<String> = nodes.iter().map(|p| format!("p{p}")).collect();
    let widest = names.iter().map(|name| width_of(name, 14.0)).fold(0.0, f64::max);
    let room = |delay: f64, step, flight| Room {
        left: widest + 56.0,
        delay,
        step,
        flight,
        quiet: delay * options.quiet,
        gap: 90.0,
    };
    // From roomy to tight, until it fits.
    let rooms = match labelled {
        true => [room(140.0, 16.0, 60.0), room(100.0, 16.0, 50.0), room(40.0, 8.0, 16.0)],
        false => [room(90.0, 12.0, 24.0), room(70.0, 10.0, 24.0), room(30.0, 8.0, 12.0)],
    };
    let widths = [options.width * 0.4, options.width];
    let place = |node: u32| places.get(&node).copied();
    let axes = rooms.map(|room| Axis::new(run, &messages, place, room));
    let fitting = axes.iter().zip(widths).position(|(axis, width)| axis.end <= width);
    let fitting = fitting.unwrap_or(2);
    let (axis, room) = (&axes[fitting], rooms[fitting]);
    let spans = spans(run);
    let kinds = kinds(visible);

    let notes = spans.iter().any(|span| span.what == Lasting::Cut);
    let broken = run.entries.iter().filter(|e| is_violation(e)).count().min(MOST_VIOLATIONS);
    let top = 100.0 + 18.0 * (broken + usize::from(notes)) as f64;
    let spacing = match nodes.len() {
        0..=8 => 76.0,
        9..=14 => 60.0,
        15..=24 => 48.0,
        _ => 32.0,
    };
    let lanes: Vec<Lane> = nodes
        .iter()
        .zip(names)
        .enumerate()
        .map(|(i, (&node, label))| Lane { node, label, y: top + 20.0 + i as f64 * spacing })
        .collect();
    let bottom = lanes.last().map_or(top, |lane| lane.y) + 34.0;
    let right = axis.end + 40.0;
    let mut layout = Layout {
        run,
        messages: &messages,
        axis,
        places: &places,
        taken: Taken::default(),
        diagram: Diagram {
            title: run.header.algorithm.clone(),
            subtitle: subtitle(run),
            width: right + 24.0,
            height: bottom + 44.0,
            lanes,
            points: Vec::new(),
            arrows: Vec::new(),
            bars: Vec::new(),
            bands: Vec::new(),
            marks: Vec::new(),
            violations: Vec::new(),
            gaps: Vec::new(),
            ticks: Vec::new(),
            kinds,
            legend: Vec::new(),
            field: (room.left - 24.0, top, right, bottom),
            time: run.header.time.clone(),
            font: 11.0,
        },
    };
    layout.place_points();
    layout.place_arrows(room.delay);
    layout.place_spans(&spans);
    layout.place_marks();
    if labelled {
        layout.label_arrows();
    }
    layout.place_violations(MOST_VIOLATIONS);
    layout.place_time();
    layout.place_legend();
    layout.diagram
}

/// The kinds of `messages` in the order of their first, those of the application last.
fn kinds<'a>(messages: impl Iterator<Item = &'a Message<'a>>) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = Vec::new();
    let mut application = 0;
    for message in messages {
        if message.body.is_none() {
            application += 1;
            continue;
        }
        match kinds.iter_mut().find(|kind| kind.name == message.kind()) {
            Some(kind) => kind.count += 1,
            None => kinds.push(Kind { name: message.kind().to_owned(), count: 1 }),
        }
    }
    if application > 0 {
        kinds.push(Kind { name: "application".into(), count: application });
    }
    kinds
}

/// So many violations are shown in words.
const MOST_VIOLATIONS: usize = 6;

fn is_violation(entry: &Entry) -> bool {
    matches!(entry, Entry::Incident(i) if matches!(i.kind, IncidentKind::Violation { .. }))
}

fn subtitle(run: &Run) -> String {
    let Header { nodes, topology, seed, world, mistake, .. } = &run.header;
    let mut parts = vec![format!("{} nodes", nodes.len())];
    parts.extend((!topology.is_empty()).then(|| topology.clone()));
    parts.extend((!world.is_empty()).then(|| world.clone()));
    parts.push(format!("seed {seed}"));
    parts.extend(mistake.as_ref().map(|mistake| format!("mistake {mistake}")));
    parts.push(run.footer.as_ref().map_or("cut off".into(), |footer| footer.verdict.clone()));
    parts.join(" · ")
}
