//! A diagram as a picture that stands alone: SVG, for light and dark pages.

mod style;

use std::fmt::{self, Write};

use crate::diagram::{
    Arrow, Bar, BarForm, Cause, Diagram, Fate, Key, Kind, Label, Lasting, Mark, Options, Point,
    Sample, layout,
};
use crate::{Run, text};

pub(crate) use style::COLOURS;

/// The picture of `run`.
pub fn draw(run: &Run, options: &Options) -> String {
    render(&layout(run, options))
}

/// The picture of `diagram`: the same bytes for the same diagram.
pub fn render(diagram: &Diagram) -> String {
    let mut svg = Svg { out: String::new(), font: diagram.font };
    svg.open(diagram.width, diagram.height, &format!("{}, {}", diagram.title, diagram.subtitle));
    svg.diagram(diagram);
    svg.out.push_str("</svg>\n");
    svg.out
}

/// Diagrams one above the other, in one picture.
pub fn stack(diagrams: &[Diagram]) -> String {
    let width = diagrams.iter().map(|diagram| diagram.width).fold(0.0, f64::max);
    let height = diagrams.iter().map(|diagram| diagram.height).sum();
    let titles: Vec<&str> = diagrams.iter().map(|diagram| diagram.title.as_str()).collect();
    let mut svg = Svg { out: String::new(), font: 11.0 };
    svg.open(width, height, &titles.join(", "));
    let mut y = 0.0;
    for (track, diagram) in diagrams.iter().enumerate() {
        svg.font = diagram.font;
        svg.put(format_args!("<g data-track=\"{track}\" transform=\"translate(0 {})\">", n(y)));
        svg.diagram(diagram);
        svg.put(format_args!("</g>"));
        y += diagram.height;
    }
    svg.out.push_str("</svg>\n");
    svg.out
}

/// The pattern of a line, where several kinds share a colour.
pub(crate) const DASHES: [&str; 5] = ["", "10 2", "6 2 2 2", "12 2 2 2 2 2", "3 2"];

struct Svg {
    out: String,
    font: f64,
}

impl Svg {
    fn put(&mut self, line: fmt::Arguments<'_>) {
        writeln!(self.out, "{line}").expect("a string takes everything");
    }

    fn open(&mut self, width: f64, height: f64, name: &str) {
        let (width, height, name) = (n(width), n(height), escape(name));
        self.put(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{name}\">"
        ));
        self.put(format_args!("<style>{}</style>", style::sheet()));
        self.put(format_args!("<rect class=\"page\" width=\"{width}\" height=\"{height}\"/>"));
    }

    fn diagram(&mut self, diagram: &Diagram) {
        let (title, subtitle) = (escape(&diagram.title), escape(&diagram.subtitle));
        self.put(format_args!("<text class=\"title\" x=\"24\" y=\"32\">{title}</text>"));
        self.put(format_args!("<text class=\"sub\" x=\"24\" y=\"52\">{subtitle}</text>"));
        self.field(diagram);
        diagram.bars.iter().for_each(|bar| self.bar(bar, diagram.lanes[bar.lane].y));
        diagram.violations.iter().for_each(|violation| self.violation(violation, diagram));
        diagram.arrows.iter().for_each(|arrow| self.arrow(arrow, &diagram.kinds[arrow.kind]));
        diagram.points.iter().for_each(|point| self.point(point));
        diagram.bars.iter().for_each(|bar| self.end_of_bar(bar, diagram.lanes[bar.lane].y));
        for arrow in &diagram.arrows {
            if let Some(label) = &arrow.label {
                let colour = diagram.kinds[arrow.kind].colour;
                self.label(label, &format!("label f{colour}"));
            }
        }
        diagram.marks.iter().for_each(|mark| self.mark(mark));
        self.axis(diagram);
        diagram.legend.iter().for_each(|key| self.key(key, &diagram.kinds));
    }

    /// The lanes and their background.
    fn field(&mut self, diagram: &Diagram) {
        let (left, top, right, bottom) = diagram.field;
        for tick in &diagram.ticks {
            if tick.to > tick.x {
                let (x, width) = (n(tick.x), n(tick.to - tick.x));
                let (y, height) = (n(top), n(bottom - top));
                self.put(format_args!(
                    "<rect class=\"moment\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
                ));
            } else {
                self.line("grid", (tick.x, top), (tick.x, bottom));
            }
        }
        for band in &diagram.bands {
            let (x, width) = (n(band.from), n(band.to - band.from));
            let (y, height) = (n(top - 4.0), n(bottom - top + 4.0));
            self.put(format_args!(
                "<rect class=\"band\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
            ));
            self.label(&band.label, "label");
        }
        for lane in &diagram.lanes {
            self.line("lane", (left, lane.y), (right, lane.y));
            let (x, y, name) = (n(left - 8.0), n(lane.y + 5.0), escape(&lane.label));
            self.put(format_args!("<text class=\"name\" x=\"{x}\" y=\"{y}\">{name}</text>"));
        }
        for gap in &diagram.gaps {
            let (from, to) = (gap.from + 12.0, gap.to - 12.0);
            let (x, width) = (n(from), n((to - from).max(1.0)));
            let (y, height) = (n(top), n(bottom - top));
            self.put(format_args!(
                "<rect class=\"gap\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
            ));
            self.line("gapside", (from, top), (from, bottom));
            self.line("gapside", (to, top), (to, bottom));
        }
    }

    fn bar(&mut self, bar: &Bar, y: f64) {
        let (class, half) = match bar.form() {
            BarForm::Box { style, half } => (style, half),
            BarForm::Line(style) => return self.line(style, (bar.from, y), (bar.to, y)),
            BarForm::Nothing => return,
        };
        let (x, width) = (n(bar.from), n(bar.to - bar.from));
        let (top, height) = (n(y - half), n(2.0 * half));
        let round = if half > 5.0 { 4 } else { 0 };
        self.put(format_args!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" \
             rx=\"{round}\"><title>{}</title></rect>",
            escape(&bar.tooltip)
        ));
    }

    fn end_of_bar(&mut self, bar: &Bar, y: f64) {
        if bar.what == Lasting::Down {
            self.cross((bar.from, y), 6.0, &bar.tooltip);
        }
        if let Some(label) = &bar.label {
            let inside = matches!(bar.what, Lasting::Inside | Lasting::Leading);
            let class = match bar.what {
                Lasting::Down => "label detect",
                _ if inside => "inbar",
                _ => "label",
            };
            self.label(label, class);
        }
    }

    fn arrow(&mut self, arrow: &Arrow, kind: &Kind) {
        let Arrow { id, from, to, fate, .. } = arrow;
        let colour = kind.colour;
        let class = match fate {
            Fate::Arrived => "",
            Fate::Again => " again",
            Fate::Lost => " lost",
            Fate::Pending => " pending",
            Fate::Beyond => "",
        };
        let dash = match fate {
            Fate::Again | Fate::Lost | Fate::Pending => String::new(),
            Fate::Arrived | Fate::Beyond => dashed(kind),
        };
        let (x0, y0, x1, y1) = (n(from.0), n(from.1), n(to.0), n(to.1));
        let own = from.1 == to.1;
        let path = if own {
            let (middle, top) = (n(f64::midpoint(from.0, to.0)), n(from.1 - 36.0));
            format!("M{x0} {y0}Q{middle} {top} {x1} {y1}")
        } else {
            format!("M{x0} {y0}L{x1} {y1}")
        };
        self.put(format_args!(
            "<g data-message=\"{id}\"><title>{}</title>",
            escape(&arrow.tooltip)
        ));
        self.put(format_args!("<path class=\"arrow k{colour}{class}\"{dash} d=\"{path}\"/>"));
        match fate {
            Fate::Lost => self.cross(*to, 5.0, ""),
            Fate::Arrived | Fate::Again => {
                let middle = (f64::midpoint(from.0, to.0), from.1 - 36.0);
                self.tip(if own { middle } else { *from }, *to, colour);
            }
            Fate::Pending | Fate::Beyond => {}
        }
        self.put(format_args!("</g>"));
    }

    /// The tip of an arrow, a little before its end, where the point is.
    fn tip(&mut self, from: (f64, f64), to: (f64, f64), colour: usize) {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length = dx.hypot(dy).max(0.001);
        let (ux, uy) = (dx / length, dy / length);
        let at = |along: f64, across: f64| {
            let (x, y) = (to.0 - ux * along - uy * across, to.1 - uy * along + ux * across);
            format!("{},{}", n(x), n(y))
        };
        let (tip, left, right) = (at(3.0, 0.0), at(12.0, 4.0), at(12.0, -4.0));
        self.put(format_args!("<polygon class=\"f{colour}\" points=\"{tip} {left} {right}\"/>"));
    }

    fn cross(&mut self, at: (f64, f64), size: f64, tooltip: &str) {
        let (x0, x1) = (n(at.0 - size), n(at.0 + size));
        let (y0, y1) = (n(at.1 - size), n(at.1 + size));
        let title = match tooltip {
            "" => String::new(),
            words => format!("<title>{}</title>", escape(words)),
        };
        self.put(format_args!(
            "<path class=\"cross\" d=\"M{x0} {y0}L{x1} {y1}M{x0} {y1}L{x1} {y0}\">{title}</path>"
        ));
    }

    fn point(&mut self, point: &Point) {
        let (x, y) = point.at;
        let (class, shape) = match point.cause {
            Cause::Message => ("point", circle(x, y, 3.2)),
            Cause::Request => {
                ("ask", polygon(&[(x, y - 6.0), (x + 5.5, y), (x, y + 6.0), (x - 5.5, y)]))
            }
            Cause::Timer => ("ask", circle(x, y, 3.6)),
            Cause::Start => ("point", square(x, y, 3.4)),
            Cause::Detector => {
                ("detect", polygon(&[(x, y - 5.0), (x + 5.0, y + 4.0), (x - 5.0, y + 4.0)]))
            }
        };
        let (entry, title) = (point.entry, escape(&point.tooltip));
        self.put(format_args!(
            "<g class=\"{class}\" data-entry=\"{entry}\"><title>{title}</title>{shape}</g>"
        ));
    }

    fn mark(&mut self, mark: &Mark) {
        self.label(&mark.label, "label mark");
    }

    fn violation(&mut self, mark: &Mark, diagram: &Diagram) {
        let (_, top, _, bottom) = diagram.field;
        let above = if mark.label.text.is_empty() { top } else { mark.label.at.1 + 4.0 };
        let (x, y0, y1) = (n(mark.x), n(above), n(bottom));
        let title = escape(&mark.tooltip);
        self.put(format_args!(
            "<path class=\"bad\" d=\"M{x} {y0}V{y1}\"><title>{title}</title></path>"
        ));
        if !mark.label.text.is_empty() {
            let (x, y) = mark.label.at;
            let words = escape(&mark.label.text);
            self.put(format_args!(
                "<text class=\"badtext\" x=\"{}\" y=\"{}\">{words}</text>",
                n(x),
                n(y)
            ));
        }
    }

    fn axis(&mut self, diagram: &Diagram) {
        let (left, _, right, bottom) = diagram.field;
        self.line("axis", (left, bottom), (right, bottom));
        for tick in &diagram.ticks {
            self.line("axis", (tick.x, bottom), (tick.x, bottom + 5.0));
            if tick.to > tick.x {
                self.line("axis", (tick.to, bottom), (tick.to, bottom + 5.0));
                self.line("wide", (tick.x, bottom), (tick.to, bottom));
            }
            let x = n(f64::midpoint(tick.x, tick.to));
            let (y, words) = (n(bottom + 18.0 + 12.0 * tick.row as f64), escape(&tick.label));
            self.put(format_args!("<text class=\"tick\" x=\"{x}\" y=\"{y}\">{words}</text>"));
        }
        for gap in &diagram.gaps {
            let (x, y) = gap.label.at;
            let words = escape(&gap.label.text);
            self.put(format_args!(
                "<text class=\"tick\" x=\"{}\" y=\"{}\">{words}</text>",
                n(x),
                n(y)
            ));
        }
        let (x, y) = (n(left - 8.0), n(bottom + 18.0));
        self.put(format_args!(
            "<text class=\"tick\" x=\"{x}\" y=\"{y}\">{}</text>",
            escape(&diagram.time)
        ));
    }

    fn key(&mut self, key: &Key, kinds: &[Kind]) {
        let (x, y) = key.at;
        match key.sample {
            Sample::Arrow(kind) => {
                let Kind { colour, .. } = kinds[kind];
                let (dash, x0, y0) = (dashed(&kinds[kind]), n(x), n(y));
                self.put(format_args!(
                    "<path class=\"arrow k{colour}\"{dash} d=\"M{x0} {y0}h26\"/>"
                ));
                self.tip((x, y), (x + 33.0, y), colour);
            }
            Sample::Moment => {
                self.line("axis", (x, y), (x, y + 5.0));
                self.line("axis", (x + 30.0, y), (x + 30.0, y + 5.0));
                self.line("wide", (x, y), (x + 30.0, y));
            }
            Sample::Gap => {
                self.line("lane", (x, y), (x + 10.0, y));
                self.line("lane", (x + 20.0, y), (x + 30.0, y));
                self.line("gapside", (x + 10.0, y - 7.0), (x + 10.0, y + 7.0));
                self.line("gapside", (x + 20.0, y - 7.0), (x + 20.0, y + 7.0));
            }
            Sample::Lost => {
                self.put(format_args!(
                    "<path class=\"arrow lost k4\" d=\"M{} {}h26\"/>",
                    n(x),
                    n(y)
                ));
                self.cross((x + 26.0, y), 4.0, "");
            }
            Sample::Bar(Lasting::Down | Lasting::Paused) => {
                self.line("lane", (x, y), (x + 30.0, y));
                let down = key.sample == Sample::Bar(Lasting::Down);
                self.line(if down { "down" } else { "paused" }, (x, y), (x + 30.0, y));
            }
            Sample::Bar(what) => {
                let (label, lane, open, tooltip) = (None, 0, false, key.text.clone());
                let bar = Bar { what, lane, from: x, to: x + 30.0, open, label, tooltip };
                self.bar(&bar, y);
            }
        }
        let (x, y, words) = (n(x + 38.0), n(y + 4.0), escape(&key.text));
        self.put(format_args!("<text class=\"key\" x=\"{x}\" y=\"{y}\">{words}</text>"));
    }

    /// A label on a ground that dims the lines behind it.
    fn label(&mut self, label: &Label, class: &str) {
        let (x, y) = label.at;
        let words = escape(&label.text);
        let size = n(self.font);
        let turn = if label.angle == 0.0 {
            String::new()
        } else {
            format!(" transform=\"rotate({} {} {})\"", n(label.angle), n(x), n(y))
        };
        let width = crate::labels::width_of(&label.text, self.font);
        if class != "inbar" {
            let (left, top) = (n(x - width / 2.0), n(y - self.font / 2.0));
            let (width, height) = (n(width), n(self.font + 1.0));
            self.put(format_args!(
                "<rect class=\"back\" x=\"{left}\" y=\"{top}\" width=\"{width}\" \
                 height=\"{height}\"{turn}/>"
            ));
        }
        let base = n(y + self.font * 0.36);
        self.put(format_args!("<text class=\"small {class}\" font-size=\"{size}\" x=\"{}\" y=\"{base}\"{turn}>{words}</text>",
            n(x)));
    }

    fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let (x0, y0, x1, y1) = (n(from.0), n(from.1), n(to.0), n(to.1));
        self.put(format_args!("<path class=\"{class}\" d=\"M{x0} {y0}L{x1} {y1}\"/>"));
    }
}

fn dashed(kind: &Kind) -> String {
    match DASHES[kind.dash % DASHES.len()] {
        "" => String::new(),
        dash => format!(" stroke-dasharray=\"{dash}\""),
    }
}

fn circle(x: f64, y: f64, r: f64) -> String {
    format!("<circle cx=\"{}\" cy=\"{}\" r=\"{}\"/>", n(x), n(y), n(r))
}

fn square(x: f64, y: f64, half: f64) -> String {
    let side = n(2.0 * half);
    format!(
        "<rect x=\"{}\" y=\"{}\" width=\"{side}\" height=\"{side}\"/>",
        n(x - half),
        n(y - half)
    )
}

fn polygon(corners: &[(f64, f64)]) -> String {
    let corners: Vec<String> =
        corners.iter().map(|(x, y)| format!("{},{}", n(*x), n(*y))).collect();
    format!("<polygon points=\"{}\"/>", corners.join(" "))
}

/// A number with at most one digit after the point.
pub(crate) fn n(number: f64) -> String {
    // Adding zero makes no minus zero.
    text::trimmed((number * 10.0).round() / 10.0 + 0.0)
}

/// `words` as they may stand in XML.
pub(crate) fn escape(words: &str) -> String {
    let mut safe = String::with_capacity(words.len());
    for c in words.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' | '\t' => safe.push(c),
            // XML has no way to write the other control characters.
            c if c.is_control() => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}
