//! Places labels: they do not overlap, and they cross as few arrows as possible.

use std::collections::{BTreeMap, BTreeSet};

/// A rectangle, turned about its centre.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Area {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// In radians, clockwise on the page.
    pub(crate) angle: f64,
}

impl Area {
    pub(crate) fn upright(x: f64, y: f64, width: f64, height: f64) -> Self {
        Self { x, y, width, height, angle: 0.0 }
    }

    /// Half its extent along the direction (`dx`, `dy`) of length 1.
    fn reach(&self, dx: f64, dy: f64) -> f64 {
        let (sin, cos) = self.angle.sin_cos();
        let along = (dx * cos + dy * sin).abs();
        let across = (dy * cos - dx * sin).abs();
        (self.width * along + self.height * across) / 2.0
    }

    fn overlaps(&self, other: &Self) -> bool {
        // Two rectangles are apart if one of their sides is a line between them.
        let sides = [self.angle, other.angle].into_iter().flat_map(|angle| {
            let (sin, cos) = angle.sin_cos();
            [(cos, sin), (-sin, cos)]
        });
        let (dx, dy) = (other.x - self.x, other.y - self.y);
        sides
            .into_iter()
            .all(|(ux, uy)| (dx * ux + dy * uy).abs() < self.reach(ux, uy) + other.reach(ux, uy))
    }

    /// Whether the line from `a` to `b` crosses it.
    fn crossed_by(&self, a: (f64, f64), b: (f64, f64)) -> bool {
        let (dx, dy) = (b.0 - a.0, b.1 - a.1);
        let length = dx.hypot(dy);
        let (x, y) = (f64::midpoint(a.0, b.0), f64::midpoint(a.1, b.1));
        let line = Self { x, y, width: length, height: 0.0, angle: dy.atan2(dx) };
        self.overlaps(&line)
    }
}

/// The areas and lines that are placed already.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    areas: Vec<Area>,
    lines: Vec<((f64, f64), (f64, f64))>,
    /// Areas by the columns they reach into.
    columns: BTreeMap<i64, Vec<usize>>,
    /// Lines likewise.
    line_columns: BTreeMap<i64, Vec<usize>>,
}

const COLUMN: f64 = 100.0;

impl Taken {
    pub(crate) fn take(&mut self, area: Area) {
        for column in columns(&area) {
            self.columns.entry(column).or_default().push(self.areas.len());
        }
        self.areas.push(area);
    }

    pub(crate) fn take_line(&mut self, from: (f64, f64), to: (f64, f64)) {
        let (left, right) = (from.0.min(to.0), from.0.max(to.0));
        for column in column_of(left)..=column_of(right) {
            self.line_columns.entry(column).or_default().push(self.lines.len());
        }
        self.lines.push((from, to));
    }

    pub(crate) fn is_free(&self, area: &Area) -> bool {
        let near = columns(area).filter_map(|column| self.columns.get(&column)).flatten();
        !near.into_iter().any(|&i| self.areas[i].overlaps(area))
    }

    /// The number of lines that cross `area`.
    fn crossings(&self, area: &Area) -> usize {
        let near = columns(area).filter_map(|column| self.line_columns.get(&column)).flatten();
        let crossing = near.filter(|line| {
            let (from, to) = self.lines[**line];
            area.crossed_by(from, to)
        });
        crossing.collect::<BTreeSet<_>>().len()
    }

    /// Takes the free one of `choices` that crosses the fewest lines; earlier ones are better.
    pub(crate) fn take_best(&mut self, choices: impl Iterator<Item = Area>) -> Option<Area> {
        let free = choices.filter(|area| self.is_free(area));
        let best = free.min_by_key(|area| self.crossings(area))?;
        self.take(best);
        Some(best)
    }
}

fn columns(area: &Area) -> std::ops::RangeInclusive<i64> {
    let reach = area.reach(1.0, 0.0);
    column_of(area.x - reach)..=column_of(area.x + reach)
}

fn column_of(x: f64) -> i64 {
    (x / COLUMN).floor() as i64
}

/// The approximate width of `text` at `size` in a common sans-serif font.
pub(crate) fn width_of(text: &str, size: f64) -> f64 {
    let widths = text.chars().map(|c| match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' => 0.33,
        'f' | 't' | 'r' | 'I' | '(' | ')' | '[' | ']' => 0.42,
        'm' | 'w' | 'M' | 'W' | '—' | '…' => 0.92,
        'A'..='Z' => 0.7,
        _ => 0.6,
    });
    widths.sum::<f64>() * size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turned_rectangles_meet_only_where_they_do() {
        let flat = Area::upright(0.0, 0.0, 20.0, 4.0);
        let turned = |x, y| Area { x, y, width: 20.0, height: 4.0, angle: 0.8 };
        assert!(flat.overlaps(&turned(5.0, 0.0)));
        assert!(!flat.overlaps(&turned(0.0, 14.0)));
        assert!(flat.crossed_by((-5.0, -5.0), (5.0, 5.0)));
        assert!(!flat.crossed_by((-50.0, -5.0), (50.0, -5.0)));
    }

    #[test]
    fn the_best_place_is_free_and_crosses_least() {
        let mut taken = Taken::default();
        taken.take(Area::upright(0.0, 0.0, 10.0, 10.0));
        taken.take_line((-100.0, 20.0), (100.0, 20.0));
        let choices = [5.0, 20.0, 40.0].map(|y| Area::upright(0.0, y, 10.0, 10.0));
        assert_eq!(taken.take_best(choices.into_iter()).map(|area| area.y), Some(40.0));
        assert_eq!(taken.take_best(choices.into_iter()).map(|area| area.y), Some(20.0));
        assert_eq!(taken.take_best(choices.into_iter()), None);
    }
}
