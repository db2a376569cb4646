//! The times that are written at the axis.

use super::{Axis, Moment};
use crate::labels::width_of;
use crate::text::trimmed;

/// A time that is written at the axis.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct TimeMark {
    pub(crate) label: String,
    /// Its place: from, to; the same unless it is a moment that is drawn wide.
    pub(crate) x: (f64, f64),
    /// In which row its label stands; the first is 0.
    pub(crate) row: usize,
}

impl TimeMark {
    fn new(label: String, x: (f64, f64)) -> Self {
        Self { label, x, row: 0 }
    }

    /// Whether their labels would touch in one row.
    fn touches(&self, other: &Self) -> bool {
        let middle = |mark: &Self| f64::midpoint(mark.x.0, mark.x.1);
        let room = (width_of(&self.label, FONT) + width_of(&other.label, FONT)) / 2.0 + 6.0;
        let within = self.x.0 >= other.x.0 - 1.0 && self.x.0 <= other.x.1 + 1.0;
        within || (middle(self) - middle(other)).abs() < room
    }
}

/// The size of the labels.
const FONT: f64 = 11.0;

impl Axis {
    /// Round times that are about `apart` points from each other, in ticks of `unit`; and where the
    /// axis is not in proportion, the times on both sides of that place.
    pub(crate) fn ticks(&self, unit: f64, apart: f64) -> Vec<TimeMark> {
        let unit = if unit > 0.0 { unit } else { 1.0 };
        let digits = digits(self.scale * unit);
        let mut marks = self.needed(|time| label_of(time as f64 / unit, digits));
        for i in 1..marks.len() {
            let crowded = marks[i - 1].row == 0 && marks[i].touches(&marks[i - 1]);
            marks[i].row = usize::from(crowded);
        }
        let step = round_step(apart / (self.scale * unit));
        let mut round: Vec<TimeMark> = Vec::new();
        for (t, x) in self.zones() {
            let first = (t.0 as f64 / unit / step).ceil() as u64;
            let last = (t.1 as f64 / unit / step).floor() as u64;
            for k in first..=last {
                let time = k as f64 * step;
                let x = x + (time * unit - t.0 as f64) * self.scale;
                let mark = TimeMark::new(trimmed(time), (x, x));
                let next = marks.partition_point(|mark| mark.x.0 < x);
                let near = &marks[next.saturating_sub(2)..marks.len().min(next + 2)];
                if !near.iter().chain(round.last()).any(|other| mark.touches(other)) {
                    round.push(mark);
                }
            }
        }
        marks.extend(round);
        marks.sort_by(|a, b| a.x.0.total_cmp(&b.x.0));
        marks
    }

    /// Without these labels some times could not be read.
    fn needed(&self, label: impl Fn(u64) -> String) -> Vec<TimeMark> {
        let mut marks: Vec<TimeMark> = Vec::new();
        let last = self.moments.len().saturating_sub(1);
        for (i, moment) in self.moments.iter().enumerate() {
            if moment.wide {
                marks.push(TimeMark::new(label(moment.time.0), moment.x));
                continue;
            }
            let ends = i == last || self.moments[i + 1].after_gap;
            let places = [
                (i == 0 || moment.after_gap, moment.time.0, moment.x.0),
                (ends, moment.time.1, moment.x.1),
            ];
            for (needed, time, x) in places {
                if needed
                    && marks.last().is_none_or(|mark| mark.x.1 < x - 1.0 || mark.x.0 != mark.x.1)
                {
                    marks.push(TimeMark::new(label(time), (x, x)));
                }
            }
        }
        marks
    }

    /// The stretches of time that are in proportion: from, to, and where they begin.
    fn zones(&self) -> Vec<((u64, u64), f64)> {
        let mut zones: Vec<((u64, u64), f64)> = Vec::new();
        let mut broken = true;
        for &Moment { time, x, wide, after_gap } in &self.moments {
            if broken || after_gap {
                zones.push((time, x.0));
            } else if let Some(zone) = zones.last_mut() {
                zone.0.1 = if wide { time.0 } else { time.1 };
            }
            if wide {
                // The next stretch begins at the other end of this moment.
                if let Some(zone) = zones.last_mut().filter(|zone| zone.0.0 == time.0) {
                    zone.0.1 = time.0;
                }
                zones.push(((time.1, time.1), x.1));
            }
            broken = false;
        }
        zones
    }
}

/// The digits after the point of a time, if one unit takes `width` points: smaller differences cannot be
/// seen.
fn digits(width: f64) -> usize {
    (width.max(1e-9) / 2.0).log10().ceil().clamp(0.0, 6.0) as usize
}

/// `time` with so many digits, and no zeros at its end.
pub(crate) fn label_of(time: f64, digits: usize) -> String {
    let power = 10f64.powi(i32::try_from(digits).unwrap_or(6));
    trimmed((time * power).round() / power)
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
