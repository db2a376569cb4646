//! From time to place: proportional, but never closer than one can see, and without long silence.

use std::collections::BTreeMap;

use crate::messages::Message;
use crate::{Entry, IncidentKind, InputRecord, Run};

/// How much room things take, in points.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Room {
    /// Where time begins.
    pub(crate) left: f64,
    /// The typical delay of a message.
    pub(crate) delay: f64,
    /// Between two steps of one node, at least.
    pub(crate) step: f64,
    /// From sending to receipt, at least.
    pub(crate) flight: f64,
    /// Silence that would take more is shown as a gap.
    pub(crate) quiet: f64,
    /// The width of a gap.
    pub(crate) gap: f64,
}

/// One run on the axis.
#[derive(Clone, Copy)]
pub(crate) struct Track<'a> {
    pub(crate) run: &'a Run,
    pub(crate) messages: &'a BTreeMap<u64, Message<'a>>,
    /// On which lane each node is, if it is shown.
    pub(crate) places: &'a BTreeMap<u32, usize>,
}

/// Where each entry lies in time.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Axis {
    /// For each entry.
    xs: Vec<f64>,
    /// For each moment: its time and its place.
    moments: Vec<(u64, f64)>,
    /// Silences that were shortened: from, to, and how long they took in ticks.
    pub(crate) gaps: Vec<(f64, f64, u64)>,
    /// The place of the last entry.
    pub(crate) end: f64,
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
    base: f64,
    moments: Vec<(u64, f64)>,
    gaps: Vec<(f64, f64, u64)>,
    end: f64,
}

impl Axis {
    /// Places the entries of all `tracks` on one axis, and gives it to each of them. What lies
    /// before `window` is placed at its begin, what lies after it at its end.
    pub(crate) fn new(tracks: &[Track<'_>], room: Room, window: Option<(u64, u64)>) -> Vec<Self> {
        let mut making = Making {
            tracks,
            causes: tracks.iter().map(|track| causes(track.messages)).collect(),
            room,
            scale: room.delay / typical_delay(tracks),
            last: BTreeMap::new(),
            xs: tracks.iter().map(|track| vec![room.left; track.run.entries.len()]).collect(),
            base: room.left,
            moments: Vec::new(),
            gaps: Vec::new(),
            end: room.left,
        };
        let mut later = Vec::new();
        let mut earlier = false;
        let runs: Vec<&Run> = tracks.iter().map(|track| track.run).collect();
        for (track, i) in in_order(&runs) {
            let at = tracks[track].run.entries[i].at();
            match window {
                Some((from, _)) if at < from => earlier = true,
                Some((_, to)) if at > to => later.push((track, i)),
                Some((from, _)) => {
                    if std::mem::take(&mut earlier) {
                        making.advance(from);
                    }
                    making.place(track, i);
                }
                None => making.place(track, i),
            }
        }
        if let (Some((_, to)), false) = (window, later.is_empty()) {
            making.advance(to);
            making.end = making.end.max(making.base);
        }
        for (track, i) in later {
            making.xs[track][i] = making.end;
        }
        let Making { xs, moments, gaps, end, .. } = making;
        let axis = |xs| Self { xs, moments: moments.clone(), gaps: gaps.clone(), end };
        xs.into_iter().map(axis).collect()
    }

    /// Where entry `i` lies.
    pub(crate) fn of(&self, i: usize) -> f64 {
        self.xs[i]
    }

    /// Where time `at` lies, unless its silence was cut short.
    pub(crate) fn at(&self, at: f64) -> Option<f64> {
        let next = self.moments.partition_point(|(t, _)| *t as f64 <= at);
        let (t0, x0) = *self.moments.get(next.checked_sub(1)?)?;
        if at == t0 as f64 {
            return Some(x0);
        }
        let (t1, x1) = *self.moments.get(next)?;
        let x = x0 + (x1 - x0) * (at - t0 as f64) / (t1 - t0) as f64;
        self.gaps.iter().all(|(from, to, _)| x <= *from || x >= *to).then_some(x)
    }

    /// Round times and their places, in ticks of `unit`, not closer than `apart` points.
    pub(crate) fn ticks(&self, unit: f64, apart: f64) -> Vec<(f64, f64)> {
        let (Some(first), Some(last)) = (self.moments.first(), self.moments.last()) else {
            return Vec::new();
        };
        let gaps: f64 = self.gaps.iter().map(|(from, to, _)| to - from).sum();
        let silence: u64 = self.gaps.iter().map(|(.., ticks)| ticks).sum();
        let shown = (last.0 - first.0).saturating_sub(silence) as f64 / unit;
        let width = (self.end - first.1 - gaps).max(1.0);
        let step = round_step(shown * apart / width);
        let begin = (first.0 as f64 / unit / step).ceil() as u64;
        let mut ticks: Vec<(f64, f64)> = Vec::new();
        let count = ((last.0 - first.0) as f64 / unit / step) as u64 + 1;
        for k in begin..begin + count.min(100_000) {
            let time = k as f64 * step;
            let Some(x) = self.at((time * unit).round()) else { continue };
            if ticks.last().is_none_or(|(_, last)| x - last >= apart * 0.6) {
                ticks.push((time, x));
            }
        }
        ticks
    }
}

impl Making<'_> {
    /// Time goes on to `at`.
    fn advance(&mut self, at: u64) {
        match self.moments.last() {
            Some(&(before, _)) if at > before => {
                let ticks = at - before;
                let width = ticks as f64 * self.scale;
                let shortened = width > self.room.quiet;
                let from = self.base.max(self.end);
                let next = self.base + if shortened { self.room.gap } else { width };
                self.base = next.max(self.end + 1.0);
                if shortened {
                    self.base = self.base.max(from + self.room.gap);
                    self.gaps.push((from, self.base, ticks));
                }
                self.moments.push((at, self.base));
            }
            Some(_) => {}
            None => self.moments.push((at, self.base)),
        }
    }

    /// Places entry `i` of a track.
    fn place(&mut self, track: usize, i: usize) {
        let Track { run, messages, places } = self.tracks[track];
        let entry = &run.entries[i];
        self.advance(entry.at());
        let mut x = self.base;
        if let Some(&lane) = shown_at(entry, messages).and_then(|node| places.get(&node)) {
            let last = self.last.get(&(track, lane));
            x = x.max(last.map_or(x, |last| last + self.room.step));
            let sent = self.causes[track].get(&i);
            x = x.max(sent.map_or(x, |&sent| self.xs[track][sent] + self.room.flight));
            self.last.insert((track, lane), x);
        }
        // What the application says, it says right after the step it belongs to.
        if let Entry::Incident(incident) = entry
            && let IncidentKind::AppMessage { from, .. } = incident.kind
            && let Some(lane) = places.get(&from)
            && let Some(step) = self.last.get(&(track, *lane))
        {
            x = x.max(*step);
        }
        self.end = self.end.max(x);
        self.xs[track][i] = x;
    }
}

/// All entries of all runs, in the order of time; those of one run in their own order.
pub(crate) fn in_order(runs: &[&Run]) -> Vec<(usize, usize)> {
    let mut all = Vec::new();
    for (t, run) in runs.iter().enumerate() {
        let mut latest = 0;
        for (i, entry) in run.entries.iter().enumerate() {
            latest = entry.at().max(latest);
            all.push((latest, t, i));
        }
    }
    all.sort_by_key(|(at, ..)| *at);
    all.into_iter().map(|(_, track, i)| (track, i)).collect()
}

/// The next of 1, 2, 5, 10 … that is not less.
fn round_step(least: f64) -> f64 {
    if !least.is_finite() || least <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(least.log10().floor());
    let digit = [1.0, 2.0, 5.0].into_iter().find(|digit| digit * power >= least * 0.999);
    digit.unwrap_or(10.0) * power
}

/// For each receipt its sending.
fn causes(messages: &BTreeMap<u64, Message<'_>>) -> BTreeMap<usize, usize> {
    let pairs = messages.values().flat_map(|message| {
        let arrivals = message.received.iter().copied().chain(message.lost);
        arrivals.map(move |arrival| (arrival, message.sent))
    });
    pairs.collect()
}

/// At which node an entry takes room.
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
            // Lost on arrival: someone was down.
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
