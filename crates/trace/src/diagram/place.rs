//! Places each part of a diagram in turn: first parts with a fixed place, then labels.

use std::collections::BTreeMap;

use konklave_process::{ClientEvent, Condition};
use serde_json::Value;

use super::{
    Arrow, Band, Bar, Cause, Diagram, Fate, Key, Label, Lasting, Mark, Point, Sample, Tick,
};
use crate::axis::{Axis, TimeMark};
use crate::labels::{Area, Taken, width_of};
use crate::messages::Message;
use crate::spans::Span;
use crate::text::{cut, incident_line, render, step_lines, time, trimmed};
use crate::{EffectRecord, Entry, Filter, IncidentKind, InputRecord, Run, View, kind_of};

/// A diagram in the making.
pub(super) struct Layout<'a> {
    pub(super) run: &'a Run,
    pub(super) messages: &'a BTreeMap<u64, Message<'a>>,
    pub(super) axis: &'a Axis,
    pub(super) places: &'a BTreeMap<u32, usize>,
    pub(super) only: &'a Filter,
    pub(super) conditions: &'a [Condition],
    pub(super) view: &'a View<'a>,
    pub(super) taken: Taken,
    pub(super) diagram: Diagram,
}

/// The end of a message, and the two ends of its arrow.
type Flight = (Fate, (f64, f64), (f64, f64));

/// Half the height of a thick bar.
const THICK: f64 = 10.0;

/// So much of the way at least is drawn of a message that crosses an edge of the window.
const LEAST_SHARE: f64 = 0.25;

impl Layout<'_> {
    fn lane(&self, node: u32) -> Option<(usize, f64)> {
        let place = *self.places.get(&node)?;
        Some((place, self.diagram.lanes[place].y))
    }

    fn time(&self, i: usize) -> String {
        let header = &self.run.header;
        format!("{} {}", time(header, self.run.entries[i].at()), header.time)
    }

    pub(super) fn place_points(&mut self) {
        for (entry, step) in self.run.entries.iter().enumerate() {
            let Some(step) = step.step() else { continue };
            if !self.only.shows_time(step.at) {
                continue;
            }
            let Some((_, y)) = self.lane(step.node) else { continue };
            if step.input == InputRecord::Start && step.effects.is_empty() {
                continue;
            }
            let at = (self.axis.of(entry), y);
            let cause = match &step.input {
                InputRecord::Start | InputRecord::Recover { .. } => Cause::Start,
                InputRecord::Request(_) => Cause::Request,
                InputRecord::Message { .. } | InputRecord::Stamp { .. } => Cause::Message,
                InputRecord::Timer(_) => Cause::Timer,
                InputRecord::Suspect(_) | InputRecord::Trust(_) => Cause::Detector,
            };
            let told = step_lines(step, &self.run.header, true).join("\n");
            let tooltip = format!("{} {told}", self.time(entry));
            self.taken.take(Area::upright(at.0, at.1, 9.0, 9.0));
            self.diagram.points.push(Point { entry, at, cause, tooltip });
        }
    }

    pub(super) fn place_arrows(&mut self, delay: f64) {
        for message in self.messages.values().filter(|m| self.view.shows_message(m)) {
            let (Some((_, y)), Some((_, end))) = (self.lane(message.from), self.lane(message.to))
            else {
                continue;
            };
            let from = (self.axis.of(message.sent), y);
            let part = |share: f64| (from.0 + delay * share, from.1 + (end - y) * share);
            let arrivals = message.received.iter().enumerate().map(|(i, &received)| {
                let fate = if i == 0 { Fate::Arrived } else { Fate::Again };
                (fate, (self.axis.of(received), end), Some(received))
            });
            let mut ends: Vec<_> = arrivals.collect();
            match message.lost {
                Some(lost) if message.lost_on_arrival => {
                    ends.push((Fate::Lost, (self.axis.of(lost), end), Some(lost)));
                }
                Some(lost) => ends.push((Fate::Lost, part(0.5), Some(lost))),
                None if ends.is_empty() => ends.push((Fate::Pending, part(0.3), None)),
                None => {}
            }
            let name = message.full_name();
            let kind = self.diagram.kinds.iter().position(|kind| kind.name == name);
            for (fate, to, entry) in ends {
                let Some((fate, from, to)) = self.clip(message.sent, entry, (fate, from, to))
                else {
                    continue;
                };
                let kind = kind.expect("every kind was counted");
                let tooltip = self.arrow_tooltip(message, fate, entry);
                self.taken.take_line(from, to);
                let (id, label) = (message.id, None);
                self.diagram.arrows.push(Arrow { id, from, to, kind, fate, label, tooltip });
            }
        }
    }

    /// The part of an arrow that lies in the window, if any does.
    fn clip(&self, sent: usize, end: Option<usize>, arrow: Flight) -> Option<Flight> {
        let (mut fate, mut from, mut to) = arrow;
        let Some((first, last)) = self.only.window else { return Some(arrow) };
        let at = |i: usize| self.run.entries[i].at();
        let (leaves, arrives) = (at(sent), end.map_or(at(sent), at));
        if arrives < first || leaves > last {
            return None;
        }
        let (rise, took) = (to.1 - from.1, (arrives - leaves).max(1) as f64);
        let share = |ticks: u64| (ticks as f64 / took).max(LEAST_SHARE);
        let (start, end) = (from, to);
        if leaves < first {
            from.1 = end.1 - rise * share(arrives - first);
        }
        if arrives > last {
            fate = Fate::Beyond;
            to = (end.0.max(start.0 + 20.0), start.1 + rise * share(last.saturating_sub(leaves)));
            // Through the window from edge to edge.
            if leaves < first {
                let height = |time: u64| start.1 + rise * (time - leaves) as f64 / took;
                (from.1, to.1) = (height(first), height(last));
            }
        }
        Some((fate, from, to))
    }

    fn arrow_tooltip(&self, message: &Message<'_>, fate: Fate, entry: Option<usize>) -> String {
        let said = message.body.map_or("message of the application".into(), render);
        let (id, header) = (message.id, &self.run.header);
        let (from, to) = (header.name_of(message.from), header.name_of(message.to));
        let sent = self.time(message.sent);
        let end = entry.map_or(String::new(), |entry| self.time(entry));
        let fate = match fate {
            Fate::Arrived | Fate::Beyond => format!("{sent} to {end}"),
            Fate::Again => format!("{sent} to {end}, once more"),
            Fate::Lost => format!("{sent}, lost at {end}"),
            Fate::Pending => format!("{sent}, still on its way"),
        };
        format!("{from} → {to} {said}\n{fate}\nmessage {id}")
    }

    pub(super) fn place_spans(&mut self, spans: &[Span]) {
        let right = self.diagram.field.2;
        let at = |i: usize| self.run.entries[i].at();
        let run_end = self.run.entries.last().map_or(0, Entry::at);
        for span in spans {
            let ends = span.end.map_or(run_end, at);
            let outside = |(first, last)| at(span.begin) > last || ends < first;
            if self.only.window.is_some_and(outside) {
                continue;
            }
            let from = self.axis.of(span.begin);
            let to = span.end.map_or(right, |end| self.axis.of(end));
            let until = span.end.map_or("the end".into(), |end| self.time(end));
            let words = format!("{} to {until}", self.time(span.begin));
            let Some(node) = span.node else {
                let text = cut(&span.label);
                let (width, y) = (width_of(&text, self.diagram.font), self.diagram.field.1 - 12.0);
                let free = (0..8).map(|i| from + 6.0 + width / 2.0 + f64::from(i) * 40.0);
                let choices = free.map(|x| Area::upright(x, y, width + 6.0, 14.0));
                let x = self.taken.take_best(choices).map_or(from + width / 2.0, |area| area.x);
                let label = Label { text, at: (x, y), angle: 0.0 };
                self.diagram.bands.push(Band { from, to: to.max(from + 4.0), label });
                continue;
            };
            let Some((lane, y)) = self.lane(node) else { continue };
            let to = to.max(from + 3.0);
            let label = self.bar_label(span, from, to, y);
            if matches!(span.what, Lasting::Inside | Lasting::Leading) {
                let middle = f64::midpoint(from, to);
                self.taken.take(Area::upright(middle, y, to - from, 2.0 * THICK));
            }
            let name = self.run.header.name_of(node);
            let tooltip = format!("{name} {}: {words}", span.label);
            let (what, open) = (span.what, span.end.is_none());
            self.diagram.bars.push(Bar { what, lane, from, to, open, label, tooltip });
        }
    }

    fn bar_label(&mut self, span: &Span, from: f64, to: f64, y: f64) -> Option<Label> {
        let font = self.diagram.font;
        let rise = match span.what {
            Lasting::Waiting | Lasting::Cut => return None,
            Lasting::Inside | Lasting::Leading => 0.0,
            Lasting::Following | Lasting::Paused => -11.0,
            Lasting::Down => -14.0,
        };
        let words = [span.label.as_str(), span.short];
        words.iter().filter(|text| !text.is_empty()).find_map(|text| {
            let width = width_of(text, font);
            let spare = to - from - width - 8.0;
            // The label of a wait may stick out of its bar; a label inside a bar may not.
            let spare = if rise == 0.0 { spare } else { spare.max(0.0) };
            if spare < 0.0 {
                return None;
            }
            let inside = [0.5, 0.0, 0.25, 0.75, 1.0];
            let shares = if rise == 0.0 { inside } else { [0.0, 0.05, 0.1, 0.2, 0.4] };
            let choices = shares.into_iter().map(|share| {
                Area::upright(from + 4.0 + width / 2.0 + spare * share, y + rise, width, 12.0)
            });
            let area = self.taken.take_best(choices)?;
            Some(Label { text: (*text).to_owned(), at: (area.x, area.y), angle: 0.0 })
        })
    }

    /// Whether the bar of a condition begins with this event.
    fn begins(&self, event: ClientEvent<'_>) -> bool {
        self.conditions.iter().any(|condition| condition.begins.contains(&event))
    }

    /// Whether the bar of a condition ends with this event.
    fn ends(&self, event: ClientEvent<'_>) -> bool {
        self.conditions.iter().any(|condition| condition.ends.contains(&event))
    }

    pub(super) fn place_marks(&mut self) {
        for (i, entry) in self.run.entries.iter().enumerate() {
            let Entry::Step(step) = entry else { continue };
            let Some((_, y)) = self.lane(step.node) else { continue };
            if !self.only.shows_time(step.at) {
                continue;
            }
            let mut words = Vec::new();
            match &step.input {
                InputRecord::Request(request) => {
                    let event = ClientEvent::Request(kind_of(request));
                    if !self.begins(event) && !self.ends(event) {
                        words.push(short(request));
                    }
                }
                InputRecord::Suspect(peer) => words.push(format!("suspects {peer}")),
                InputRecord::Trust(peer) => words.push(format!("trusts {peer}")),
                InputRecord::Recover { .. } => words.push("recovers".into()),
                InputRecord::Start
                | InputRecord::Message { .. }
                | InputRecord::Timer(_)
                | InputRecord::Stamp { .. } => {}
            }
            for effect in &step.effects {
                match effect {
                    EffectRecord::Indicate(indication) => {
                        if !self.begins(ClientEvent::Indication(kind_of(indication))) {
                            words.push(short(indication));
                        }
                    }
                    EffectRecord::Unexpected(what) => words.push(format!("met {what}")),
                    EffectRecord::Send { .. }
                    | EffectRecord::SetTimer { .. }
                    | EffectRecord::Cancel { .. }
                    | EffectRecord::Save(_) => {}
                }
            }
            for text in words {
                let x = self.axis.of(i);
                let width = width_of(&text, self.diagram.font);
                let right = (x + width / 2.0 - 3.0, x);
                let choices = [(right, -14.0), (right, 15.0), ((x, x), -26.0), ((x, x), 27.0)];
                let choices = choices.map(|((x, _), dy)| Area::upright(x, y + dy, width, 12.0));
                let Some(area) = self.taken.take_best(choices.into_iter()) else { continue };
                let label = Label { text: text.clone(), at: (area.x, area.y), angle: 0.0 };
                let tooltip = format!("{} p{} {text}", self.time(i), step.node);
                self.diagram.marks.push(Mark { x, label, tooltip });
            }
        }
    }

    pub(super) fn label_arrows(&mut self) {
        let font = self.diagram.font;
        for i in 0..self.diagram.arrows.len() {
            let Arrow { id, from, to, .. } = self.diagram.arrows[i];
            let text = words_of(&self.messages[&id]);
            let width = width_of(&text, font);
            let (dx, dy) = (to.0 - from.0, to.1 - from.1);
            let length = dx.hypot(dy);
            if length < width + 24.0 {
                continue;
            }
            let angle = dy.atan2(dx);
            let (up, across) = (-8.0 * angle.cos(), 8.0 * angle.sin());
            let shares = [0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.18, 0.82];
            let room = (width / 2.0 + 10.0) / length;
            let shares = shares.into_iter().filter(|s| *s > room && *s < 1.0 - room);
            let choices = shares.flat_map(|share| {
                [1.0, -1.0].map(|side| Area {
                    x: from.0 + dx * share + across * side,
                    y: from.1 + dy * share + up * side,
                    width,
                    height: 12.0,
                    angle,
                })
            });
            if let Some(area) = self.taken.take_best(choices) {
                let at = (area.x, area.y);
                let label = Label { text, at, angle: angle.to_degrees() };
                self.diagram.arrows[i].label = Some(label);
            }
        }
    }

    pub(super) fn place_violations(&mut self, most: usize) {
        let (left, _, right, _) = self.diagram.field;
        for (i, entry) in self.run.entries.iter().enumerate() {
            let Entry::Incident(incident) = entry else { continue };
            let IncidentKind::Violation { property, detail } = &incident.kind else { continue };
            if !self.only.shows_time(incident.at) {
                continue;
            }
            let x = self.axis.of(i);
            let row = self.diagram.violations.len();
            let words =
                if row < most { format!("✗ {property}: {detail}") } else { String::new() };
            let text = cut_to(&words, 110);
            let width = width_of(&text, 12.0);
            // It begins at its moment, unless it would leave the picture.
            let start = x.min(right - width).max(left - 20.0);
            self.diagram.width = self.diagram.width.max(start + width + 24.0);
            let at = (start + width / 2.0, 100.0 + 18.0 * row.min(most) as f64);
            let label = Label { text, at, angle: 0.0 };
            let told = incident_line(incident, &self.run.header, self.messages);
            let tooltip = format!("{} {told}", self.time(i));
            self.diagram.violations.push(Mark { x, label, tooltip });
        }
    }

    pub(super) fn place_time(&mut self) {
        let header = &self.run.header;
        let bottom = self.diagram.field.3;
        for &(from, to, ticks) in &self.axis.gaps {
            let length = (header.time_of(ticks) * 100.0).round() / 100.0;
            let text = format!("{} {}", trimmed(length), header.time);
            let label = Label { text, at: (f64::midpoint(from, to), bottom - 10.0), angle: 0.0 };
            self.diagram.gaps.push(Band { from, to, label });
        }
        let tick = |TimeMark { label, x: (x, to), row }| Tick { x, to, label, row };
        self.diagram.ticks = self.axis.ticks(header.unit, 70.0).into_iter().map(tick).collect();
    }

    pub(super) fn place_legend(&mut self) {
        let diagram = &mut self.diagram;
        let mut keys: Vec<(Sample, String)> = Vec::new();
        for (i, kind) in diagram.kinds.iter().enumerate() {
            keys.push((Sample::Arrow(i), format!("{} ({})", kind.name, kind.count)));
        }
        let lost = diagram.arrows.iter().filter(|arrow| arrow.fate == Fate::Lost).count();
        keys.extend((lost > 0).then(|| (Sample::Lost, format!("lost ({lost})"))));
        let clients = self.conditions.iter().map(|c| (c.what, c.plain_name()));
        let faults = [(Lasting::Paused, "asleep"), (Lasting::Down, "down")];
        for (what, text) in clients.chain(faults) {
            if diagram.bars.iter().any(|bar| bar.what == what) {
                keys.push((Sample::Bar(what), text.to_owned()));
            }
        }
        let wide = diagram.ticks.iter().any(|tick| tick.to > tick.x);
        keys.extend(wide.then(|| (Sample::Moment, "one moment, drawn wide".to_owned())));
        let quiet = !diagram.gaps.is_empty();
        keys.extend(quiet.then(|| (Sample::Gap, "silence, cut short".to_owned())));
        let mut x = 24.0;
        for (sample, text) in keys {
            let end = x + 40.0 + width_of(&text, 12.0) + 22.0;
            diagram.legend.push(Key { at: (x, 72.0), text, sample });
            x = end;
        }
        let head = width_of(&diagram.title, 19.0).max(width_of(&diagram.subtitle, 13.0)) + 48.0;
        diagram.width = diagram.width.max(x).max(head);
    }
}

/// A message in one or two words; of one of a layer below, its kind there.
pub(crate) fn words_of(message: &Message<'_>) -> String {
    match message.layer() {
        Some((_, kind)) => cut_to(kind, 24),
        None => message.body.map_or("application".into(), short),
    }
}

/// `body` in one or two words: `Request 1` for `Request { timestamp: 1 }`.
pub(crate) fn short(body: &Value) -> String {
    let kind = kind_of(body);
    let inner = match body {
        Value::Object(fields) if fields.len() == 1 => &body[kind],
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => body,
        Value::String(_) | Value::Object(_) => return cut_to(kind, 24),
    };
    let plain = |value: &Value| match value {
        Value::Null | Value::Array(_) | Value::Object(_) => None,
        Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(render(value)),
    };
    let values: Vec<Option<String>> = match inner {
        Value::Object(fields) => fields.values().map(plain).collect(),
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => vec![plain(inner)],
    };
    let values: Option<Vec<String>> = values.into_iter().collect();
    let text = values.map(|values| format!("{kind} {}", values.join(",")));
    text.filter(|text| text.chars().count() <= 20).unwrap_or_else(|| cut_to(kind, 24))
}

fn cut_to(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
