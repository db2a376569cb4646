//! The layout of the space–time diagram of a run, as data; [`svg`](crate::svg) and others draw it.
//!
//! Time goes to the right, each node has a lane. All lengths are in points.

mod place;

use std::collections::BTreeMap;

use konklave_process::Condition;

use crate::axis::{Axis, Room, Track, label_of};
use crate::labels::{Taken, width_of};
use crate::messages::{Message, messages};
use crate::spans::spans;
use crate::svg::COLOURS;
use crate::text::time;
use crate::{Entry, Filter, Header, IncidentKind, Run, View};

use place::Layout;

pub(crate) use place::{short, words_of};

pub use crate::spans::client_events;
pub use konklave_process::Lasting;

/// The part of a run to show, and its size.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// The filter of the run; hidden nodes have no lanes.
    pub only: Filter,
    /// The nodes of the first lanes, in this order; the others follow in node order.
    pub lanes: Vec<u32>,
    /// Diagrams with more arrows have no labels: only colours distinguish the kinds of messages.
    pub most_labels: usize,
    /// Silence longer than this many typical delays is shown as a gap.
    pub quiet: f64,
    /// The diagram is pressed together to be no wider, as far as one can still see.
    pub width: f64,
    /// The conditions of clients that are shown as bars: those of the problem.
    pub conditions: &'static [Condition],
}

impl Default for Options {
    fn default() -> Self {
        Self::of(&[])
    }
}

impl Options {
    /// The whole run, with these conditions as bars.
    pub fn of(conditions: &'static [Condition]) -> Self {
        let (only, lanes) = (Filter::default(), Vec::new());
        Self { only, lanes, most_labels: 150, quiet: 3.0, width: 4500.0, conditions }
    }
}

/// A space–time diagram.
#[derive(Clone, PartialEq, Debug)]
pub struct Diagram {
    /// The algorithm and the group.
    pub title: String,
    /// The world and its settings.
    pub subtitle: String,
    /// Its width.
    pub width: f64,
    /// Its height.
    pub height: f64,
    /// One for each node that is shown, from top to bottom.
    pub lanes: Vec<Lane>,
    /// Steps.
    pub points: Vec<Point>,
    /// Messages.
    pub arrows: Vec<Arrow>,
    /// Conditions that last at one node.
    pub bars: Vec<Bar>,
    /// Cut links and partitions.
    pub bands: Vec<Band>,
    /// Words at one moment.
    pub marks: Vec<Mark>,
    /// Violated properties.
    pub violations: Vec<Mark>,
    /// Silence that was cut short.
    pub gaps: Vec<Band>,
    /// Round times.
    pub ticks: Vec<Tick>,
    /// The kinds of messages, in the order of their first.
    pub kinds: Vec<Kind>,
    /// The legend of colours.
    pub legend: Vec<Key>,
    /// The rectangle of lanes and axis: left, top, right, bottom.
    pub field: (f64, f64, f64, f64),
    /// The unit of time.
    pub time: String,
    /// The size of small words.
    pub font: f64,
    /// The place of each entry of the run, shown or not.
    pub xs: Vec<f64>,
}

/// The line of a node.
#[derive(Clone, PartialEq, Debug)]
pub struct Lane {
    /// Its node.
    pub node: u32,
    /// Its name.
    pub label: String,
    /// Its place.
    pub y: f64,
}

/// A step.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// Its index in [`Run::entries`].
    pub entry: usize,
    /// Its place.
    pub at: (f64, f64),
    /// The kind of its input.
    pub cause: Cause,
    /// Its story, for the tooltip.
    pub tooltip: String,
}

/// The kind of input of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// The process started or recovered.
    Start,
    /// A request of the application.
    Request,
    /// A message arrived.
    Message,
    /// A timer fired.
    Timer,
    /// The failure detector suspected or trusted a process.
    Detector,
}

/// A message on its way.
#[derive(Clone, PartialEq, Debug)]
pub struct Arrow {
    /// The number of the message.
    pub id: u64,
    /// The place of its sending.
    pub from: (f64, f64),
    /// The place of its receipt or loss.
    pub to: (f64, f64),
    /// Its kind, as an index in [`Diagram::kinds`].
    pub kind: usize,
    /// Whether it arrived, was lost or is still in flight.
    pub fate: Fate,
    /// Its kind and values, if there is room.
    pub label: Option<Label>,
    /// Its story, for the tooltip.
    pub tooltip: String,
}

/// The end of a message in the diagram.
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
    /// It arrives after the end of the window.
    Beyond,
}

/// A word in its place.
#[derive(Clone, PartialEq, Debug)]
pub struct Label {
    /// Its text.
    pub text: String,
    /// Its middle.
    pub at: (f64, f64),
    /// Its angle, in degrees, clockwise.
    pub angle: f64,
}

/// A condition that lasts at one node.
#[derive(Clone, PartialEq, Debug)]
pub struct Bar {
    /// The condition.
    pub what: Lasting,
    /// The index of its lane.
    pub lane: usize,
    /// Its begin.
    pub from: f64,
    /// Its end.
    pub to: f64,
    /// Whether it went on when the recording ended.
    pub open: bool,
    /// Its name, if there is room.
    pub label: Option<Label>,
    /// Its full description.
    pub tooltip: String,
}

/// The form of a bar, the same in all pictures.
pub(crate) enum BarForm {
    /// A box in this style, with half its height.
    Box { style: &'static str, half: f64 },
    /// A line in this style.
    Line(&'static str),
    /// Nothing: a cut is drawn as a band.
    Nothing,
}

impl Bar {
    pub(crate) fn form(&self) -> BarForm {
        match self.what {
            Lasting::Waiting => BarForm::Box { style: "waiting", half: 4.0 },
            Lasting::Inside => BarForm::Box { style: "inside", half: 10.0 },
            Lasting::Leading => BarForm::Box { style: "leading", half: 10.0 },
            Lasting::Following => BarForm::Box { style: "following", half: 3.0 },
            Lasting::Down => BarForm::Line("down"),
            Lasting::Paused => BarForm::Line("paused"),
            Lasting::Cut => BarForm::Nothing,
        }
    }
}

/// A stretch of time.
#[derive(Clone, PartialEq, Debug)]
pub struct Band {
    /// Its begin.
    pub from: f64,
    /// Its end.
    pub to: f64,
    /// Its name.
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
    /// Its place.
    pub x: f64,
    /// Its end: after `x` if the events of the moment take more room than its time.
    pub to: f64,
    /// The time.
    pub label: String,
    /// In which row the time is written: 1 where it would touch another, else 0.
    pub row: usize,
}

/// A kind of messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kind {
    /// Its name, with its layer if it has one.
    pub name: String,
    /// The layer below the algorithm that it belongs to.
    pub layer: Option<String>,
    /// Their number.
    pub count: usize,
    /// Its colour: one for each layer, or, if there is but one, for each kind.
    pub colour: usize,
    /// Its pattern, where another kind has its colour: 0 is a full line.
    pub dash: usize,
}

/// An entry of the legend of colours.
#[derive(Clone, PartialEq, Debug)]
pub struct Key {
    /// The place of its sample; its label follows.
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
    /// A moment that is drawn wide.
    Moment,
    /// Silence that was cut short.
    Gap,
}

/// Lays out `run`.
pub fn layout(run: &Run, options: &Options) -> Diagram {
    layout_all(&[run], options).pop().expect("one run has one diagram")
}

/// Lays out several runs on one axis of time: where one has nothing to show, it waits for the
/// others.
pub fn layout_all(runs: &[&Run], options: &Options) -> Vec<Diagram> {
    let only = &options.only;
    let messages: Vec<_> = runs.iter().map(|run| messages(run)).collect();
    let nodes: Vec<Vec<u32>> = runs.iter().map(|run| lane_order(run, options)).collect();
    let places: Vec<BTreeMap<u32, usize>> = nodes
        .iter()
        .map(|nodes| nodes.iter().enumerate().map(|(i, &p)| (p, i)).collect())
        .collect();
    let views: Vec<View<'_>> =
        (0..runs.len()).map(|t| View::new(runs[t], &messages[t], only)).collect();
    let tracks: Vec<Track<'_>> = (0..runs.len())
        .map(|t| Track {
            run: runs[t],
            messages: &messages[t],
            places: &places[t],
            view: &views[t],
        })
        .collect();
    let most_arrows = tracks.iter().map(|track| visible(*track).count()).max();
    let labelled = most_arrows.unwrap_or(0) <= options.most_labels;
    let names = runs
        .iter()
        .zip(&nodes)
        .flat_map(|(run, nodes)| nodes.iter().map(|p| width_of(&run.header.name_of(*p), 14.0)));
    let left = names.fold(0.0, f64::max) + 56.0;
    let quiet = options.quiet;
    let label = runs.iter().map(|run| widest_time(run)).fold(0.0, f64::max);
    let room = |delay: f64, step, flight| Room {
        left,
        delay,
        step,
        flight,
        quiet: delay * quiet,
        gap: 90.0,
        label,
    };
    // From roomy to tight, until it fits.
    let rooms = match labelled {
        true => [room(140.0, 16.0, 24.0), room(100.0, 16.0, 20.0), room(40.0, 8.0, 12.0)],
        false => [room(90.0, 12.0, 16.0), room(70.0, 10.0, 16.0), room(30.0, 8.0, 10.0)],
    };
    let widths = [options.width * 0.4, options.width, f64::INFINITY];
    let axes = rooms.iter().map(|room| (Axis::new(&tracks, *room, only.window), *room));
    let fits = |axes: &[Axis], width| axes.iter().all(|axis| axis.end <= width);
    let mut fitting = axes.zip(widths).filter(|((axes, _), width)| fits(axes, *width));
    let ((axes, room), _) = fitting.next().expect("everything fits into infinite width");
    let parts = tracks.iter().zip(&axes).zip(&nodes);
    parts
        .map(|((track, axis), nodes)| lay_out(*track, axis, nodes, room, labelled, options))
        .collect()
}

/// The lanes of these nodes below `top`; many lanes are closer together.
fn lanes(run: &Run, nodes: &[u32], top: f64) -> Vec<Lane> {
    let spacing = match nodes.len() {
        0..=8 => 76.0,
        9..=14 => 60.0,
        15..=24 => 48.0,
        _ => 32.0,
    };
    let lane = |(i, &node): (usize, &u32)| {
        let label = run.header.name_of(node);
        Lane { node, label, y: top + 20.0 + i as f64 * spacing }
    };
    nodes.iter().enumerate().map(lane).collect()
}

fn lay_out(
    track: Track<'_>,
    axis: &Axis,
    nodes: &[u32],
    room: Room,
    labelled: bool,
    options: &Options,
) -> Diagram {
    let Track { run, messages, places, view } = track;
    let Options { only, conditions, .. } = options;
    let spans = spans(run, conditions);
    let notes = spans.iter().any(|span| span.what == Lasting::Cut);
    let broken = run.entries.iter().filter(|e| is_violation(e) && only.shows_time(e.at()));
    let broken = broken.count().min(MOST_VIOLATIONS);
    let top = 100.0 + 18.0 * (broken + usize::from(notes)) as f64;
    let lanes = lanes(run, nodes, top);
    let bottom = lanes.last().map_or(top, |lane| lane.y) + 34.0;
    let right = axis.end + 40.0;
    let mut layout = Layout {
        run,
        messages,
        axis,
        places,
        only,
        conditions,
        view,
        taken: Taken::default(),
        diagram: Diagram {
            title: run.header.algorithm.clone(),
            subtitle: subtitle(run, only),
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
            kinds: kinds(&visible(track).collect::<Vec<_>>()),
            legend: Vec::new(),
            field: (room.left - 24.0, top, right, bottom),
            time: run.header.time.clone(),
            font: 11.0,
            xs: (0..run.entries.len()).map(|i| axis.of(i)).collect(),
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

/// The nodes that have a lane, from top to bottom.
pub(crate) fn lane_order(run: &Run, options: &Options) -> Vec<u32> {
    let nodes = &run.header.nodes;
    let first = options.lanes.iter().filter(|node| nodes.contains(node));
    let others = nodes.iter().filter(|node| !options.lanes.contains(node));
    first.chain(others).copied().filter(|node| options.only.shows_node(*node)).collect()
}

/// The messages that have an arrow, or a part of one.
fn visible<'a>(track: Track<'a>) -> impl Iterator<Item = &'a Message<'a>> {
    track.messages.values().filter(move |message| track.view.shows_message(message))
}

/// About the widest time that can stand at the axis of `run`.
fn widest_time(run: &Run) -> f64 {
    let last = run.entries.iter().map(Entry::at).max().unwrap_or(0);
    let whole = label_of(run.header.time_of(last).floor(), 0);
    width_of(&whole, 11.0) + width_of(".00", 11.0) + 8.0
}

/// The kinds of `messages` in the order of their first, those of the application last; the kinds of
/// one layer stand together.
fn kinds(messages: &[&Message<'_>]) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = Vec::new();
    for message in messages {
        let name = message.full_name();
        match kinds.iter_mut().find(|kind| kind.name == name) {
            Some(kind) => kind.count += 1,
            None => {
                let layer = message.layer().map(|(layer, _)| layer.to_owned());
                kinds.push(Kind { name, layer, count: 1, colour: 0, dash: 0 });
            }
        }
    }
    let mut layers: Vec<Option<String>> = Vec::new();
    for kind in &kinds {
        if !layers.contains(&kind.layer) {
            layers.push(kind.layer.clone());
        }
    }
    let layered = layers.len() > 1 || layers.iter().any(Option::is_some);
    // First the algorithm itself, then the layers below it.
    layers.sort_by_key(Option::is_some);
    let place = |kind: &Kind| layers.iter().position(|layer| *layer == kind.layer);
    kinds.sort_by_key(|kind| (place(kind), kind.name == "application"));
    let mut before: BTreeMap<usize, usize> = BTreeMap::new();
    for (i, kind) in kinds.iter_mut().enumerate() {
        let group = if layered { place(kind).unwrap_or(0) } else { i };
        kind.colour = group % COLOURS.len();
        let others = before.entry(kind.colour).or_default();
        (kind.dash, *others) = (*others, *others + 1);
    }
    kinds
}

/// So many violations are shown in words.
const MOST_VIOLATIONS: usize = 6;

fn is_violation(entry: &Entry) -> bool {
    matches!(entry, Entry::Incident(i) if matches!(i.kind, IncidentKind::Violation { .. }))
}

fn subtitle(run: &Run, only: &Filter) -> String {
    let Header { nodes, topology, seed, world, mistake, .. } = &run.header;
    let many = if nodes.len() == 1 { "" } else { "s" };
    let mut parts = vec![format!("{} node{many}", nodes.len())];
    parts.extend((!topology.is_empty()).then(|| topology.clone()));
    parts.extend((!world.is_empty()).then(|| world.clone()));
    parts.push(format!("seed {seed}"));
    parts.extend(mistake.as_ref().map(|mistake| format!("mistake {mistake}")));
    parts.push(run.footer.as_ref().map_or("cut off".into(), |footer| footer.verdict.clone()));
    if let Some((from, to)) = only.window {
        let last = run.entries.last().map_or(0, Entry::at);
        let (from, to) = (time(&run.header, from), time(&run.header, to.min(last)));
        parts.push(format!("only {from} to {to} {}", run.header.time));
    }
    if let Some(kinds) = &only.kinds {
        let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
        parts.push(format!("only {}", kinds.join(", ")));
    }
    parts.join(" · ")
}
