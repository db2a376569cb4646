//! Lines, marks and words, and the two forms they are written in.

use std::fmt::Write as _;

/// Marks on a plane; y grows downwards.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Canvas {
    pub(super) width: f64,
    pub(super) height: f64,
    shapes: Vec<Shape>,
}

#[derive(Clone, PartialEq, Debug)]
enum Shape {
    Line(Vec<(f64, f64)>, Pen),
    /// A closed line, filled with the first colour.
    Area(Vec<(f64, f64)>, &'static str, &'static str),
    Text {
        at: (f64, f64),
        text: String,
        size: f64,
        anchor: Anchor,
        upwards: bool,
    },
}

/// How a line is drawn.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Pen {
    pub(super) colour: &'static str,
    pub(super) width: f64,
    pub(super) dashes: &'static [f64],
}

/// Which end of a text is at its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// The shape of a mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mark {
    Circle,
    Square,
    Triangle,
    Diamond,
    Reversed,
    Star,
}

impl Mark {
    /// All of them, neighbours as different as can be.
    pub(super) const ALL: [Self; 6] =
        [Self::Circle, Self::Square, Self::Triangle, Self::Diamond, Self::Reversed, Self::Star];

    /// The corners around 0.
    fn corners(self) -> Vec<(f64, f64)> {
        let around = |corners: usize, from: f64, radius: &dyn Fn(usize) -> f64| {
            let corner = |i: usize| {
                let angle = (from + 360.0 * i as f64 / corners as f64).to_radians();
                (radius(i) * angle.sin(), -radius(i) * angle.cos())
            };
            (0..corners).map(corner).collect()
        };
        match self {
            Self::Circle => around(16, 0.0, &|_| 2.3),
            Self::Square => around(4, 45.0, &|_| 2.9),
            Self::Triangle => around(3, 0.0, &|_| 3.1),
            Self::Diamond => around(4, 0.0, &|_| 3.1),
            Self::Reversed => around(3, 180.0, &|_| 3.1),
            Self::Star => around(10, 0.0, &|i| if i % 2 == 0 { 3.5 } else { 1.5 }),
        }
    }
}

impl Canvas {
    pub(super) fn new(width: f64, height: f64) -> Self {
        Self { width, height, shapes: Vec::new() }
    }

    pub(super) fn line(&mut self, points: &[(f64, f64)], pen: Pen) {
        if points.len() > 1 {
            self.shapes.push(Shape::Line(points.to_vec(), pen));
        }
    }

    pub(super) fn mark(
        &mut self,
        (x, y): (f64, f64),
        mark: Mark,
        hollow: bool,
        colour: &'static str,
    ) {
        let corners = mark.corners().into_iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
        let fill = if hollow { "#ffffff" } else { colour };
        self.shapes.push(Shape::Area(corners, fill, colour));
    }

    pub(super) fn text(&mut self, at: (f64, f64), text: &str, size: f64, anchor: Anchor) {
        self.shapes.push(Shape::Text { at, text: text.to_owned(), size, anchor, upwards: false });
    }

    /// Text that is read from below, with its middle at `at`.
    pub(super) fn upwards(&mut self, at: (f64, f64), text: &str, size: f64) {
        let (text, anchor) = (text.to_owned(), Anchor::Middle);
        self.shapes.push(Shape::Text { at, text, size, anchor, upwards: true });
    }
}

fn path(points: &[(f64, f64)], point: impl Fn(f64, f64) -> String, between: &str) -> String {
    let points: Vec<String> = points.iter().map(|(x, y)| point(*x, *y)).collect();
    points.join(between)
}

/// As SVG, whose size is in mm.
pub(super) fn svg(canvas: &Canvas) -> String {
    let (width, height) = (canvas.width, canvas.height);
    let mm = |points: f64| points / 72.0 * 25.4;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.2}mm\" height=\"{:.2}mm\" \
         viewBox=\"0 0 {width:.2} {height:.2}\" font-family=\"sans-serif\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        mm(width),
        mm(height)
    );
    let point = |x: f64, y: f64| format!("{x:.2},{y:.2}");
    for shape in &canvas.shapes {
        let _ = match shape {
            Shape::Line(points, pen) => {
                let dashes: Vec<String> = pen.dashes.iter().map(f64::to_string).collect();
                let dashes = match dashes.is_empty() {
                    true => String::new(),
                    false => format!(" stroke-dasharray=\"{}\"", dashes.join(" ")),
                };
                writeln!(
                    out,
                    "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{dashes}/>",
                    path(points, point, " "),
                    pen.colour,
                    pen.width
                )
            }
            Shape::Area(points, fill, colour) => writeln!(
                out,
                "<polygon points=\"{}\" fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"0.8\"/>",
                path(points, point, " ")
            ),
            Shape::Text { at: (x, y), text, size, anchor, upwards } => {
                let anchor = match anchor {
                    Anchor::Start => "start",
                    Anchor::Middle => "middle",
                    Anchor::End => "end",
                };
                let turn = match upwards {
                    true => format!(" transform=\"rotate(-90 {x:.2} {y:.2})\""),
                    false => String::new(),
                };
                let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                writeln!(
                    out,
                    "<text x=\"{x:.2}\" y=\"{y:.2}\" font-size=\"{size}\" text-anchor=\"{anchor}\"{turn}>{text}</text>"
                )
            }
        };
    }
    out.push_str("</svg>\n");
    out
}

/// As a LaTeX document whose page is the figure. For a paper, take the `tikzpicture` out.
pub(super) fn tikz(canvas: &Canvas) -> String {
    let (width, height) = (canvas.width, canvas.height);
    let mut out = format!(
        "\\documentclass{{article}}\n\\usepackage[T1]{{fontenc}}\n\\usepackage[utf8]{{inputenc}}\n\
         \\usepackage[paperwidth={width:.2}bp,paperheight={height:.2}bp,margin=0bp]{{geometry}}\n\
         \\usepackage{{tikz}}\n\\pagestyle{{empty}}\n\\parindent=0pt\n\\begin{{document}}\n\
         \\begin{{tikzpicture}}[x=1bp,y=-1bp,font=\\sffamily,inner sep=0pt]\n\
         \\useasboundingbox (0,0) rectangle ({width:.2},{height:.2});\n"
    );
    define_colours(canvas, &mut out);
    let name = |colour: &str| format!("c{}", colour.trim_start_matches('#').to_uppercase());
    let point = |x: f64, y: f64| format!("({x:.2},{y:.2})");
    for shape in &canvas.shapes {
        let _ = match shape {
            Shape::Line(points, pen) => {
                let on = |(i, d): (usize, &f64)| {
                    format!("{} {d}bp", if i % 2 == 0 { "on" } else { "off" })
                };
                let dashes: Vec<String> = pen.dashes.iter().enumerate().map(on).collect();
                let dashes = match dashes.is_empty() {
                    true => String::new(),
                    false => format!(",dash pattern={}", dashes.join(" ")),
                };
                writeln!(
                    out,
                    "\\draw[{},line width={}bp{dashes}] {};",
                    name(pen.colour),
                    pen.width,
                    path(points, point, " -- ")
                )
            }
            Shape::Area(points, fill, colour) => writeln!(
                out,
                "\\filldraw[draw={},fill={},line width=0.8bp] {} -- cycle;",
                name(colour),
                name(fill),
                path(points, point, " -- ")
            ),
            Shape::Text { at: (x, y), text, size, anchor, upwards } => {
                let anchor = match anchor {
                    Anchor::Start => "base west",
                    Anchor::Middle => "base",
                    Anchor::End => "base east",
                };
                let turn = if *upwards { ",rotate=90" } else { "" };
                writeln!(
                    out,
                    "\\node[anchor={anchor}{turn},font=\\sffamily\\fontsize{{{size}}}{{{size}}}\\selectfont] at \
                     ({x:.2},{y:.2}) {{{}}};",
                    escaped(text)
                )
            }
        };
    }
    out.push_str("\\end{tikzpicture}\n\\end{document}\n");
    out
}

/// Defines each colour of the canvas for LaTeX, once.
fn define_colours(canvas: &Canvas, out: &mut String) {
    let mut colours: Vec<&str> = Vec::new();
    for shape in &canvas.shapes {
        let used: Vec<&str> = match shape {
            Shape::Line(_, pen) => vec![pen.colour],
            Shape::Area(_, fill, colour) => vec![*fill, *colour],
            Shape::Text { .. } => Vec::new(),
        };
        for colour in used {
            if !colours.contains(&colour) {
                colours.push(colour);
                let rgb = colour.trim_start_matches('#').to_uppercase();
                let _ = writeln!(out, "\\definecolor{{c{rgb}}}{{HTML}}{{{rgb}}}");
            }
        }
    }
}

/// Text for LaTeX.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\\' => out += "\\textbackslash{}",
            '~' => out += "\\textasciitilde{}",
            '^' => out += "\\textasciicircum{}",
            '<' => out += "\\textless{}",
            '>' => out += "\\textgreater{}",
            '_' | '%' | '&' | '#' | '$' | '{' | '}' => {
                out.push('\\');
                out.push(c);
            }
            '–' => out += "--",
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_are_escaped_in_both_forms() {
        let mut canvas = Canvas::new(72.0, 36.0);
        canvas.text((1.0, 2.0), "a_b<c&d^2", 8.0, Anchor::Start);
        assert!(svg(&canvas).contains(">a_b&lt;c&amp;d^2</text>"));
        assert!(svg(&canvas).contains("width=\"25.40mm\" height=\"12.70mm\""));
        let tex = tikz(&canvas);
        assert!(tex.contains("{a\\_b\\textless{}c\\&d\\textasciicircum{}2}"), "{tex}");
    }

    #[test]
    fn dashes_and_colours_are_in_both_forms() {
        let mut canvas = Canvas::new(72.0, 36.0);
        let pen = Pen { colour: "#0072b2", width: 1.0, dashes: &[4.0, 2.0] };
        canvas.line(&[(0.0, 0.0), (9.0, 9.0)], pen);
        canvas.mark((9.0, 9.0), Mark::Square, true, "#0072b2");
        assert!(
            svg(&canvas).contains("stroke-dasharray=\"4 2\"") && svg(&canvas).contains("<polygon")
        );
        let tex = tikz(&canvas);
        assert!(tex.contains("dash pattern=on 4bp off 2bp"), "{tex}");
        assert!(
            tex.contains("\\definecolor{c0072B2}{HTML}{0072B2}") && tex.contains("fill=cFFFFFF")
        );
    }
}
