//! Lays a figure out: panels, axes, curves and a legend, in points of 1/72 inch.

use super::canvas::{Anchor, Canvas, Mark, Pen};
use super::{Axis, Figure, Panel, Point, axis};

const MM: f64 = 72.0 / 25.4;
/// Sizes of text, as papers have them in figures.
const TEXT: f64 = 8.0;
const SMALL: f64 = 7.0;
/// A panel is so high for its width.
const HEIGHT: f64 = 0.62;
/// No panel is narrower, so wide figures have several in a row.
const NARROWEST: f64 = 60.0 * MM;

/// Colours of Okabe and Ito without yellow, which readers with any colour vision can tell apart; none is told by its
/// colour alone.
const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#404040"];
const DASHES: [&[f64]; 4] = [&[], &[4.0, 2.0], &[1.0, 1.5], &[5.0, 1.5, 1.0, 1.5]];

/// The look of series `i`. No two of the first 28 share two of colour, mark and dashes with each other; 12 marks
/// differ by themselves, so that a print in black shows them as well.
fn look(i: usize) -> (&'static str, Mark, bool, &'static [f64]) {
    let mark = Mark::ALL[i % Mark::ALL.len()];
    let hollow = (i / Mark::ALL.len()) % 2 == 1;
    (COLOURS[i % COLOURS.len()], mark, hollow, DASHES[(i / COLOURS.len() + i) % DASHES.len()])
}

/// About the width of `text`: DejaVu Sans, the widest of the usual fonts.
fn width_of(text: &str, size: f64) -> f64 {
    0.6 * size * text.chars().count() as f64
}

/// The place of a panel's frame.
#[derive(Clone, Copy)]
struct Frame {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

impl Frame {
    fn x(&self, axis: &Axis, x: f64) -> f64 {
        self.left + axis.place(x) * self.width
    }

    fn y(&self, axis: &Axis, y: f64) -> f64 {
        self.top + (1.0 - axis.place(y)) * self.height
    }

    fn bottom(&self) -> f64 {
        self.top + self.height
    }
}

/// The figure as marks on a canvas.
pub(super) fn draw(figure: &Figure) -> Canvas {
    let width = figure.plot.width * MM;
    let per_row = ((width / NARROWEST) as usize).clamp(1, figure.panels.len().max(1));
    let rows = figure.panels.len().div_ceil(per_row);
    let panel_width = width / per_row as f64;
    let title = if figure.plot.facet.is_some() { TEXT + 5.0 } else { 4.0 };
    let panel_height = panel_width * HEIGHT;
    let ticks = figure.y.ticks(6);
    let widest = ticks.iter().map(|t| width_of(&axis::label(*t), SMALL)).fold(0.0, f64::max);
    let left = widest + TEXT + 12.0;
    let mut canvas = Canvas::new(width, rows as f64 * panel_height);
    for (i, panel) in figure.panels.iter().enumerate() {
        let (row, column) = (i / per_row, i % per_row);
        let frame = Frame {
            left: column as f64 * panel_width + left,
            top: row as f64 * panel_height + title,
            width: panel_width - left - 6.0,
            height: panel_height - title - SMALL - TEXT - 10.0,
        };
        draw_axes(&mut canvas, figure, frame, (column as f64 * panel_width, &ticks[..]));
        if !panel.title.is_empty() {
            let at = (frame.left + frame.width / 2.0, frame.top - 4.0);
            canvas.text(at, &panel.title, TEXT, Anchor::Middle);
        }
        draw_panel(&mut canvas, figure, frame, panel);
    }
    draw_legend(&mut canvas, figure, rows as f64 * panel_height);
    canvas
}

fn draw_axes(canvas: &mut Canvas, figure: &Figure, frame: Frame, (edge, ticks): (f64, &[f64])) {
    let grid = Pen { colour: "#dddddd", width: 0.4, dashes: &[] };
    let line = Pen { colour: "#000000", width: 0.6, dashes: &[] };
    let (right, bottom) = (frame.left + frame.width, frame.bottom());
    for tick in ticks {
        let y = frame.y(&figure.y, *tick);
        canvas.line(&[(frame.left, y), (right, y)], grid);
        canvas.line(&[(frame.left - 2.5, y), (frame.left, y)], line);
        let at = (frame.left - 4.0, y + 0.35 * SMALL);
        canvas.text(at, &axis::label(*tick), SMALL, Anchor::End);
    }
    let most = (frame.width / 28.0) as usize;
    for tick in figure.x.ticks(most.max(2)) {
        let x = frame.x(&figure.x, tick);
        canvas.line(&[(x, bottom), (x, bottom + 2.5)], line);
        canvas.text((x, bottom + SMALL + 3.0), &axis::label(tick), SMALL, Anchor::Middle);
    }
    canvas.line(&[(frame.left, frame.top), (frame.left, bottom), (right, bottom)], line);
    let middle = frame.left + frame.width / 2.0;
    canvas.text((middle, bottom + SMALL + TEXT + 5.0), &figure.plot.x, TEXT, Anchor::Middle);
    canvas.upwards((edge + TEXT, frame.top + frame.height / 2.0), &figure.plot.measure, TEXT);
}

fn draw_panel(canvas: &mut Canvas, figure: &Figure, frame: Frame, panel: &Panel) {
    for (&i, points) in &panel.series {
        let (colour, mark, hollow, dashes) = look(i);
        let at = |p: &Point| (frame.x(&figure.x, p.x), frame.y(&figure.y, p.y));
        let path: Vec<(f64, f64)> = points.iter().map(at).collect();
        canvas.line(&path, Pen { colour, width: 1.0, dashes });
        for p in points {
            let (x, y) = at(p);
            if p.confidence > 0.0 {
                let low = frame.y(&figure.y, p.y - p.confidence);
                let high = frame.y(&figure.y, p.y + p.confidence);
                let pen = Pen { colour, width: 0.7, dashes: &[] };
                canvas.line(&[(x, low), (x, high)], pen);
                canvas.line(&[(x - 2.0, low), (x + 2.0, low)], pen);
                canvas.line(&[(x - 2.0, high), (x + 2.0, high)], pen);
            }
            canvas.mark((x, y), mark, hollow, colour);
        }
    }
}

/// The names of the series, below the panels, in as many columns as fit.
fn draw_legend(canvas: &mut Canvas, figure: &Figure, top: f64) {
    let sample = 22.0;
    let widest = figure.names.iter().map(|name| width_of(name, SMALL)).fold(0.0, f64::max);
    let columns = ((canvas.width / (widest + sample + 10.0)) as usize).clamp(1, figure.names.len());
    let rows = figure.names.len().div_ceil(columns);
    let each = canvas.width / columns as f64;
    for (i, name) in figure.names.iter().enumerate() {
        // Down the columns, as one reads a list.
        let (column, row) = (i / rows, i % rows);
        let (x, y) = (column as f64 * each + 4.0, top + 8.0 + row as f64 * (SMALL + 4.0));
        let (colour, mark, hollow, dashes) = look(i);
        canvas.line(&[(x, y), (x + sample - 4.0, y)], Pen { colour, width: 1.0, dashes });
        canvas.mark((x + sample / 2.0 - 2.0, y), mark, hollow, colour);
        canvas.text((x + sample, y + 0.35 * SMALL), name, SMALL, Anchor::Start);
    }
    canvas.height = top + rows as f64 * (SMALL + 4.0) + 10.0;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn twelve_series_differ_in_black_and_twenty_eight_in_colour() {
        let all: Vec<_> = (0..28).map(look).collect();
        let black: BTreeSet<String> =
            all[..12].iter().map(|l| format!("{:?}{}", l.1, l.2)).collect();
        assert_eq!(black.len(), 12);
        let colour: BTreeSet<String> = all.iter().map(|l| format!("{l:?}")).collect();
        assert_eq!(colour.len(), 28);
        // Neighbours in the legend differ in everything that is to tell them apart.
        for pair in all.windows(2) {
            assert!(pair[0].0 != pair[1].0 && pair[0].1 != pair[1].1 && pair[0].3 != pair[1].3);
        }
    }
}
