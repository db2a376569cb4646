//! Maps time to horizontal place, in proportion: two ticks suffice to read the time of an event between
//! them. There are two exceptions, and the axis marks both: silence is cut short, and events of one
//! moment are spread if they would overlap.

mod ticks;

use std::collections::BTreeMap;

use crate::filter::View;
use crate::messages::Message;
use crate::{Entry, IncidentKind, InputRecord, Run};

pub(crate) use ticks::{TimeMark, label_of};

/// Distances and widths, in points.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Room {
    /// The place of the begin of the axis.
    pub(crate) left: f64,
    /// The typical delay of a message.
    pub(crate) delay: f64,
    /// The least distance between two steps of one node.
    pub(crate) step: f64,
    /// The least distance from sending to receipt.
    pub(crate) flight: f64,
    /// The width beyond which silence is shown as a gap.
    pub(crate) quiet: f64,
    /// The width of a gap.
    pub(crate) gap: f64,
    /// The width of the label with the time of a moment.
    pub(crate) label: f64,
}

/// One run on the axis.
#[derive(Clone, Copy)]
pub(crate) struct Track<'a> {
    pub(crate) run: &'a Run,
    pub(crate) messages: &'a BTreeMap<u64, Message<'a>>,
    /// The lane of each shown node.
    pub(crate) places: &'a BTreeMap<u32, usize>,
    /// The filtered run.
    pub(crate) view: &'a View<'a>,
}

/// Events within so many typical delays may be drawn as one moment.
const MOMENT: f64 = 0.08;

/// Events at about the same time, and their place.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Moment {
    /// Its time, in ticks: from, to.
    time: (u64, u64),
    /// Its place: from, to.
    x: (f64, f64),
    /// Whether it takes more room than its time.
    wide: bool,
    /// Whether the silence before it was cut short.
    after_gap: bool,
}

/// The places of all entries on the axis.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Axis {
    /// For each entry.
    xs: Vec<f64>,
    moments: Vec<Moment>,
    /// Silences that were shortened: from, to, and how long they took in ticks.
    pub(crate) gaps: Vec<(f64, f64, u64)>,
    /// The place of the last entry.
    pub(crate) end: f64,
    /// Points for a tick.
    scale: f64,
}

/// An axis in the making.
struct Making<'a> {
    tracks: &'a [Track<'a>],
    causes: Vec<BTreeMap<usize, usize>>,
    room: Room,
    scale: f64,
    /// The place of the last step of each lane.
    last: BTreeMap<(usize, usize), f64>,
    xs: Vec<Vec<f64>>,
    moments: Vec<Moment>,
    gaps: Vec<(f64, f64, u64)>,
}

impl Axis {
    /// Places the entries of all `tracks` on one axis, which each track gets. Entries before `window` lie at
    /// its begin, entries after it at its end.
    pub(crate) fn new(tracks: &[Track<'_>], room: Room, window: Option<(u64, u64)>) -> Vec<Self> {
        let mut making = Making {
            tracks,
            causes: tracks.iter().map(|track| causes(track.messages)).collect(),
            room,
            scale: scale(tracks, room),
            last: BTreeMap::new(),
            xs: tracks.iter().map(|track| vec![room.left; track.run.entries.len()]).collect(),
            moments: Vec::new(),
            gaps: Vec::new(),
        };
        let runs: Vec<&Run> = tracks.iter().map(|track| track.run).collect();
        let (mut later, mut hidden) = (Vec::new(), Vec::new());
        for (at, track, i) in in_order(&runs) {
            match window {
                Some((from, _)) if at < from => {
                    if making.moments.is_empty() {
                        making.advance(from);
                    }
                }
                Some((_, to)) if at > to => later.push((track, i)),
                _ if tracks[track].view.shows(i) => making.place(at, track, i),
                _ => hidden.push((at, track, i)),
            }
        }
        if let (Some((_, to)), false) = (window, later.is_empty()) {
            making.advance(to);
        }
        making.close();
        let Making { mut xs, moments, gaps, scale, .. } = making;
        let end = moments.last().map_or(room.left, |moment| moment.x.1);
        let axis = |xs| Self { xs, moments: moments.clone(), gaps: gaps.clone(), end, scale };
        let empty = axis(Vec::new());
        for (at, track, i) in hidden {
            xs[track][i] = empty.at(at);
        }
        for (track, i) in later {
            xs[track][i] = end;
        }
        xs.into_iter().map(axis).collect()
    }

    /// The place of entry `i`.
    pub(crate) fn of(&self, i: usize) -> f64 {
        self.xs[i]
    }

    /// The place of time `at`: between moments in proportion.
    fn at(&self, at: u64) -> f64 {
        let next = self.moments.partition_point(|moment| moment.time.0 <= at);
        let Some(here) = next.checked_sub(1).map(|i| self.moments[i]) else {
            return self.moments.first().map_or(self.end, |moment| moment.x.0);
        };
        let between = |(t0, t1): (u64, u64), (x0, x1): (f64, f64)| {
            x0 + (x1 - x0) * (at - t0) as f64 / (t1 - t0).max(1) as f64
        };
        match self.moments.get(next) {
            _ if at <= here.time.1 => between(here.time, here.x),
            Some(next) => between((here.time.1, next.time.0), (here.x.1, next.x.0)),
            None => here.x.1,
        }
    }
}

impl Making<'_> {
    /// Advances time to `at`: a new moment, unless `at` still belongs to the last one.
    fn advance(&mut self, at: u64) {
        let moment =
            |x: f64, after_gap| Moment { time: (at, at), x: (x, x), wide: false, after_gap };
        let Some(last) = self.moments.last_mut() else {
            return self.moments.push(moment(self.room.left, false));
        };
        if (at - last.time.0) as f64 * self.scale <= self.room.delay * MOMENT {
            last.time.1 = last.time.1.max(at);
            return;
        }
        self.close();
        let Some(&Moment { time: (_, before), x: (_, from), .. }) = self.moments.last() else {
            return;
        };
        let (ticks, width) = (at - before, (at - before) as f64 * self.scale);
        let shortened = width > self.room.quiet.max(self.room.gap);
        let x = from + if shortened { self.room.gap } else { width };
        if shortened {
            self.gaps.push((from, x, ticks));
        }
        self.moments.push(moment(x, shortened));
    }

    /// Ends the last moment: its width is known now.
    fn close(&mut self) {
        let label = self.room.label;
        let Some(last) = self.moments.last_mut() else { return };
        let natural = last.x.0 + (last.time.1 - last.time.0) as f64 * self.scale;
        last.wide = last.x.1 > natural + 1.0;
        // Its time is written below it, and there must be room for that.
        last.x.1 = if last.wide { last.x.1.max(last.x.0 + label) } else { natural };
    }

    /// Places entry `i` of a track.
    fn place(&mut self, at: u64, track: usize, i: usize) {
        self.advance(at);
        let Track { run, messages, places, .. } = self.tracks[track];
        let entry = &run.entries[i];
        let Some(moment) = self.moments.last_mut() else { return };
        let mut x = moment.x.0 + (at - moment.time.0) as f64 * self.scale;
        if let Some(&lane) = shown_at(entry, messages).and_then(|node| places.get(&node)) {
            let last = self.last.get(&(track, lane));
            x = x.max(last.map_or(x, |last| last + self.room.step));
            let sent = self.causes[track].get(&i);
            x = x.max(sent.map_or(x, |&sent| self.xs[track][sent] + self.room.flight));
            self.last.insert((track, lane), x);
        }
        // A message of the application leaves right after the last step of its sender.
        if let Entry::Incident(incident) = entry
            && let IncidentKind::AppMessage { from, .. } = incident.kind
            && let Some(lane) = places.get(&from)
            && let Some(step) = self.last.get(&(track, *lane))
        {
            x = x.max(*step);
        }
        moment.x.1 = moment.x.1.max(x);
        self.xs[track][i] = x;
    }
}

/// Points for a tick.
fn scale(tracks: &[Track<'_>], room: Room) -> f64 {
    let scale = room.delay / typical_delay(tracks);
    // Steps are no time: each takes the room of a step.
    let in_steps = tracks.first().is_some_and(|track| track.run.header.time == "steps");
    if in_steps { scale.max(room.step) } else { scale }
}

/// All entries of all runs with their times, in the order of time; those of one run in their own
/// order.
pub(crate) fn in_order(runs: &[&Run]) -> Vec<(u64, usize, usize)> {
    let mut all = Vec::new();
    for (t, run) in runs.iter().enumerate() {
        let mut latest = 0;
        for (i, entry) in run.entries.iter().enumerate() {
            latest = entry.at().max(latest);
            all.push((latest, t, i));
        }
    }
    all.sort_by_key(|(at, ..)| *at);
    all
}

/// For each receipt its sending.
fn causes(messages: &BTreeMap<u64, Message<'_>>) -> BTreeMap<usize, usize> {
    let pairs = messages.values().flat_map(|message| {
        let arrivals = message.received.iter().copied().chain(message.lost);
        arrivals.map(move |arrival| (arrival, message.sent))
    });
    pairs.collect()
}

/// The node whose lane has the entry.
fn shown_at(entry: &Entry, messages: &BTreeMap<u64, Message<'_>>) -> Option<u32> {
    match entry {
        Entry::Step(step) => {
            let idle = step.input == InputRecord::Start && step.effects.is_empty();
            (!idle).then_some(step.node)
        }
        Entry::Incident(incident) => match &incident.kind {
            IncidentKind::Crash(node)
            | IncidentKind::Restart { node, .. }
            | IncidentKind::Pause(node)
            | IncidentKind::Resume(node) => Some(*node),
            // Lost on arrival: the receiver was down.
            IncidentKind::Lost(id) => messages.get(id).filter(|m| m.lost_on_arrival).map(|m| m.to),
            IncidentKind::Duplicated(_)
            | IncidentKind::AppMessage { .. }
            | IncidentKind::Cut(_)
            | IncidentKind::Heal(_)
            | IncidentKind::Violation { .. } => None,
        },
    }
}

/// The median delay of the messages that took any time, in ticks.
pub(crate) fn typical_delay(tracks: &[Track<'_>]) -> f64 {
    let mut delays: Vec<u64> = Vec::new();
    for Track { run, messages, .. } in tracks {
        let at = |i: usize| run.entries[i].at();
        let flights = messages.values().flat_map(|m| m.received.iter().map(|&r| (m.sent, r)));
        delays.extend(flights.map(|(s, r)| at(r).saturating_sub(at(s))).filter(|&d| d > 0));
    }
    if delays.is_empty() {
        let pairs = tracks.iter().flat_map(|track| track.run.entries.windows(2));
        delays = pairs.map(|w| w[1].at().saturating_sub(w[0].at())).filter(|&d| d > 0).collect();
    }
    delays.sort_unstable();
    let unit = tracks.first().map_or(1.0, |track| track.run.header.unit);
    delays.get(delays.len() / 2).map_or(unit, |&delay| delay as f64)
}
