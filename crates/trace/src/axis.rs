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

impl Axis {
    /// Places the entries of `run`; `lane` says where a node is shown, if at all.
    pub(crate) fn new(
        run: &Run,
        messages: &BTreeMap<u64, Message<'_>>,
        lane: impl Fn(u32) -> Option<usize>,
        room: Room,
    ) -> Self {
        let causes = causes(messages);
        let scale = room.delay / typical_delay(run, messages);
        let mut last: BTreeMap<usize, f64> = BTreeMap::new();
        let mut axis =
            Self { xs: Vec::new(), moments: Vec::new(), gaps: Vec::new(), end: room.left };
        let mut base = room.left;
        for (i, entry) in run.entries.iter().enumerate() {
            let at = entry.at();
            match axis.moments.last() {
                Some(&(before, _)) if at > before => {
                    let ticks = at - before;
                    let width = ticks as f64 * scale;
                    let shortened = width > room.quiet;
                    let from = base.max(axis.end);
                    base = (base + if shortened { room.gap } else { width }).max(axis.end + 1.0);
                    if shortened {
                        base = base.max(from + room.gap);
                        axis.gaps.push((from, base, ticks));
                    }
                    axis.moments.push((at, base));
                }
                Some(_) => {}
                None => axis.moments.push((at, base)),
            }
            let mut x = base;
            if let Some(lane) = shown_at(entry, messages).and_then(&lane) {
                x = x.max(last.get(&lane).map_or(x, |last| last + room.step));
                x = x.max(causes.get(&i).map_or(x, |&sent| axis.xs[sent] + room.flight));
                last.insert(lane, x);
            }
            // What the application says, it says right after the step it belongs to.
            if let Entry::Incident(incident) = entry
                && let IncidentKind::AppMessage { from, .. } = incident.kind
                && let Some(step) = lane(from).and_then(|lane| last.get(&lane))
            {
                x = x.max(*step);
            }
            axis.end = axis.end.max(x);
            axis.xs.push(x);
        }
        axis
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
fn typical_delay(run: &Run, messages: &BTreeMap<u64, Message<'_>>) -> f64 {
    let at = |i: usize| run.entries[i].at();
    let flights = messages.values().flat_map(|m| m.received.iter().map(|&r| (m.sent, r)));
    let mut delays: Vec<u64> = flights.map(|(s, r)| at(r).saturating_sub(at(s))).collect();
    delays.retain(|&delay| delay > 0);
    if delays.is_empty() {
        let pairs = run.entries.windows(2);
        delays = pairs.map(|w| w[1].at().saturating_sub(w[0].at())).filter(|&d| d > 0).collect();
    }
    delays.sort_unstable();
    delays.get(delays.len() / 2).map_or(run.header.unit, |&delay| delay as f64)
}
