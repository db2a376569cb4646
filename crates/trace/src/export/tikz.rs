//! TikZ, for papers: a document that pdflatex, xelatex and lualatex compile as it is; the
//! `tikzpicture` in it can be taken out and put elsewhere.

use std::fmt::Write;

use crate::Run;
use crate::diagram::{
    Arrow, Bar, BarForm, Cause, Diagram, Fate, Key, Kind, Label, Lasting, Options, Point, Sample,
    layout,
};
use crate::svg::{COLOURS, DASHES, n};

/// TeX and PDF know no wider page, in big points.
const WIDEST: f64 = 14_000.0;

/// The diagram of `run`.
pub fn tikz(run: &Run, options: &Options) -> String {
    let diagram = layout(run, options);
    let mut tex = Tex { out: String::new() };
    tex.document(&diagram);
    tex.out
}

struct Tex {
    out: String,
}

impl Tex {
    fn put(&mut self, line: impl AsRef<str>) {
        self.out.push_str(line.as_ref());
        self.out.push('\n');
    }

    fn document(&mut self, diagram: &Diagram) {
        let Diagram { width, height, .. } = *diagram;
        let scale = (WIDEST / width.max(height)).min(1.0);
        self.put("\\documentclass{article}");
        let (paper_width, paper_height) = (n(width * scale + 1.0), n(height * scale + 1.0));
        self.put(format!(
            "\\usepackage[paperwidth={paper_width}bp,paperheight={paper_height}bp,margin=0bp]\
             {{geometry}}"
        ));
        // Fonts of outlines, where they are there.
        self.put("\\usepackage[T1]{fontenc}\n\\IfFileExists{lmodern.sty}{\\usepackage{lmodern}}{}");
        self.put("\\usepackage{tikz}");
        self.put("\\usetikzlibrary{arrows.meta}\n\\pagestyle{empty}\n\\parindent0pt\n\\topskip0pt");
        self.put("\\begin{document}");
        for (i, (light, _)) in COLOURS.iter().enumerate() {
            let hex = light.trim_start_matches('#').to_uppercase();
            self.put(format!("\\definecolor{{kind{i}}}{{HTML}}{{{hex}}}"));
        }
        for (name, hex) in NAMED {
            self.put(format!("\\definecolor{{{name}}}{{HTML}}{{{hex}}}"));
        }
        let scale = (scale * 1e4).floor() / 1e4;
        self.put(format!("\\begin{{tikzpicture}}[x={scale}bp,y=-{scale}bp,scale=1,{STYLES}]"));
        self.put(format!("\\useasboundingbox (0,0) rectangle ({},{});", n(width), n(height)));
        self.text("title", (24.0, 26.0), &diagram.title);
        self.text("sub", (24.0, 48.0), &diagram.subtitle);
        self.field(diagram);
        diagram.bars.iter().for_each(|bar| self.bar(bar, diagram.lanes[bar.lane].y));
        for mark in &diagram.violations {
            let (_, top, _, bottom) = diagram.field;
            self.line("bad", (mark.x, top), (mark.x, bottom));
            if !mark.label.text.is_empty() {
                let (x, y) = mark.label.at;
                self.text("badtext", (x, y - 4.0), &mark.label.text);
            }
        }
        diagram.arrows.iter().for_each(|arrow| self.arrow(arrow, &diagram.kinds[arrow.kind]));
        diagram.points.iter().for_each(|point| self.point(point));
        for bar in &diagram.bars {
            if bar.what == Lasting::Down {
                self.cross((bar.from, diagram.lanes[bar.lane].y), 6.0);
            }
            if let Some(label) = &bar.label {
                let inside = matches!(bar.what, Lasting::Inside | Lasting::Leading);
                self.label(if inside { "inbar" } else { "label" }, label);
            }
        }
        for arrow in &diagram.arrows {
            if let Some(label) = &arrow.label {
                let colour = diagram.kinds[arrow.kind].colour;
                self.label(&format!("label,text=kind{colour}"), label);
            }
        }
        diagram.marks.iter().for_each(|mark| self.label("label,font=\\itshape", &mark.label));
        self.axis(diagram);
        diagram.legend.iter().for_each(|key| self.key(key, &diagram.kinds));
        self.put("\\end{tikzpicture}\n\\end{document}");
    }

    /// The lanes and their background.
    fn field(&mut self, diagram: &Diagram) {
        let (left, top, right, bottom) = diagram.field;
        for tick in &diagram.ticks {
            if tick.to > tick.x {
                self.rect("moment", (tick.x, top), (tick.to, bottom));
            } else {
                self.line("grid", (tick.x, top), (tick.x, bottom));
            }
        }
        for band in &diagram.bands {
            self.rect("band", (band.from, top - 4.0), (band.to, bottom));
            self.label("label", &band.label);
        }
        for lane in &diagram.lanes {
            self.line("lane", (left, lane.y), (right, lane.y));
            self.text("name", (left - 8.0, lane.y), &lane.label);
        }
        for gap in &diagram.gaps {
            let (from, to) = (gap.from + 12.0, gap.to - 12.0);
            self.rect("gap", (from, top), (to.max(from + 1.0), bottom));
            self.line("gapside", (from, top), (from, bottom));
            self.line("gapside", (to, top), (to, bottom));
        }
    }

    fn bar(&mut self, bar: &Bar, y: f64) {
        match bar.form() {
            BarForm::Box { style, half } => {
                self.rect(style, (bar.from, y - half), (bar.to, y + half));
            }
            BarForm::Line(style) => self.line(style, (bar.from, y), (bar.to, y)),
            BarForm::Nothing => {}
        }
    }

    fn arrow(&mut self, arrow: &Arrow, kind: &Kind) {
        let Arrow { from, to, fate, .. } = arrow;
        let own = matches!(fate, Fate::Arrived | Fate::Beyond);
        let fate = match fate {
            Fate::Arrived => "tip",
            Fate::Again => "tip,again",
            Fate::Lost => "lost",
            Fate::Pending => "pending",
            Fate::Beyond => "",
        };
        let style = format!("arrow,kind{},{fate}", kind.colour);
        let again = if own { dashed(kind) } else { String::new() };
        if from.1 == to.1 {
            let bend = (f64::midpoint(from.0, to.0), from.1 - 24.0);
            let (from, bend, to) = (at(*from), at(bend), at(*to));
            self.put(format!("\\draw[{style}{again}] {from} .. controls {bend} .. {to};"));
        } else {
            self.put(format!("\\draw[{style}{again}] {} -- {};", at(*from), at(*to)));
        }
        if arrow.fate == Fate::Lost {
            self.cross(*to, 5.0);
        }
    }

    fn point(&mut self, point: &Point) {
        let (x, y) = point.at;
        let spot = at((x, y));
        self.put(match point.cause {
            Cause::Message => format!("\\fill[point] {spot} circle[radius=3.2bp];"),
            Cause::Timer => format!("\\filldraw[ask] {spot} circle[radius=3.6bp];"),
            Cause::Start => {
                let (from, to) = (at((x - 3.4, y - 3.4)), at((x + 3.4, y + 3.4)));
                format!("\\fill[point] {from} rectangle {to};")
            }
            Cause::Request => {
                let corners = [(0.0, -6.0), (5.5, 0.0), (0.0, 6.0), (-5.5, 0.0)];
                format!("\\filldraw[ask] {};", polygon((x, y), &corners))
            }
            Cause::Detector => {
                let corners = [(0.0, -5.0), (5.0, 4.0), (-5.0, 4.0)];
                format!("\\fill[alarm] {};", polygon((x, y), &corners))
            }
        });
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
            let x = f64::midpoint(tick.x, tick.to);
            self.text("tick", (x, bottom + 14.0 + 12.0 * tick.row as f64), &tick.label);
        }
        for gap in &diagram.gaps {
            let (x, y) = gap.label.at;
            self.text("tick", (x, y - 4.0), &gap.label.text);
        }
        self.text("tick", (left - 8.0, bottom + 14.0), &diagram.time);
    }

    fn key(&mut self, key: &Key, kinds: &[Kind]) {
        let (x, y) = key.at;
        let (from, to) = ((x, y), (x + 30.0, y));
        match key.sample {
            Sample::Arrow(kind) => {
                let style = format!("arrow,kind{},tip{}", kinds[kind].colour, dashed(&kinds[kind]));
                self.line(&style, from, to);
            }
            Sample::Moment => {
                self.line("axis", (x, y), (x, y + 5.0));
                self.line("axis", (x + 30.0, y), (x + 30.0, y + 5.0));
                self.line("wide", from, to);
            }
            Sample::Gap => {
                self.line("lane", from, (x + 10.0, y));
                self.line("lane", (x + 20.0, y), to);
                self.line("gapside", (x + 10.0, y - 7.0), (x + 10.0, y + 7.0));
                self.line("gapside", (x + 20.0, y - 7.0), (x + 20.0, y + 7.0));
            }
            Sample::Lost => {
                self.line("arrow,lost,kind4", from, (x + 26.0, y));
                self.cross((x + 26.0, y), 4.0);
            }
            Sample::Bar(what) => {
                if matches!(what, Lasting::Down | Lasting::Paused) {
                    self.line("lane", from, to);
                }
                let (label, lane, open, tooltip) = (None, 0, false, String::new());
                self.bar(&Bar { what, lane, from: x, to: x + 30.0, open, label, tooltip }, y);
            }
        }
        self.text("key", (x + 36.0, y), &key.text);
    }

    fn cross(&mut self, (x, y): (f64, f64), size: f64) {
        self.line("cross", (x - size, y - size), (x + size, y + size));
        self.line("cross", (x - size, y + size), (x + size, y - size));
    }

    fn line(&mut self, style: &str, from: (f64, f64), to: (f64, f64)) {
        self.put(format!("\\draw[{style}] {} -- {};", at(from), at(to)));
    }

    fn rect(&mut self, style: &str, from: (f64, f64), to: (f64, f64)) {
        self.put(format!("\\path[{style}] {} rectangle {};", at(from), at(to)));
    }

    fn text(&mut self, style: &str, spot: (f64, f64), words: &str) {
        self.put(format!("\\node[{style}] at {} {{{}}};", at(spot), safe(words)));
    }

    fn label(&mut self, style: &str, label: &Label) {
        // TikZ turns the other way.
        let turn = match label.angle {
            0.0 => String::new(),
            angle => format!(",rotate={}", n(-angle)),
        };
        self.text(&format!("{style}{turn}"), label.at, &label.text);
    }
}

/// The pattern of a kind that shares its colour, as TikZ writes it.
fn dashed(kind: &Kind) -> String {
    let dash = DASHES[kind.dash % DASHES.len()];
    let lengths = dash.split_whitespace().enumerate();
    let parts: Vec<String> = lengths
        .map(|(i, length)| format!("{} {length}bp", if i % 2 == 0 { "on" } else { "off" }))
        .collect();
    if parts.is_empty() { String::new() } else { format!(",dash pattern={}", parts.join(" ")) }
}

fn at((x, y): (f64, f64)) -> String {
    format!("({},{})", n(x), n(y))
}

fn polygon((x, y): (f64, f64), corners: &[(f64, f64)]) -> String {
    let corners: Vec<String> = corners.iter().map(|(dx, dy)| at((x + dx, y + dy))).collect();
    format!("{} -- cycle", corners.join(" -- "))
}

/// `words` as TeX takes them. What the usual fonts do not have becomes a question mark.
fn safe(words: &str) -> String {
    words.chars().fold(String::new(), |mut tex, c| {
        match c {
            '\\' => tex.push_str("\\textbackslash{}"),
            '{' | '}' | '$' | '&' | '#' | '%' | '_' => {
                write!(tex, "\\{c}").expect("a string takes everything");
            }
            '^' => tex.push_str("\\textasciicircum{}"),
            '~' => tex.push_str("\\textasciitilde{}"),
            '<' => tex.push_str("\\textless{}"),
            '>' => tex.push_str("\\textgreater{}"),
            '|' => tex.push_str("\\textbar{}"),
            '"' => tex.push_str("\\textquotedbl{}"),
            '→' => tex.push_str("$\\rightarrow$"),
            '←' => tex.push_str("$\\leftarrow$"),
            '↔' => tex.push_str("$\\leftrightarrow$"),
            '·' => tex.push_str("$\\cdot$"),
            '…' => tex.push_str("\\ldots{}"),
            '✗' | '×' => tex.push_str("$\\times$"),
            '≤' => tex.push_str("$\\le$"),
            '≥' => tex.push_str("$\\ge$"),
            '–' => tex.push_str("--"),
            '—' => tex.push_str("---"),
            ' '..='~' => tex.push(c),
            'À'..='ž' => tex.push(c),
            c if c.is_whitespace() => tex.push(' '),
            _ => tex.push('?'),
        }
        tex
    })
}

const NAMED: &[(&str, &str)] = &[
    ("ink", "1B1F24"),
    ("pale", "57606A"),
    ("lanegrey", "8C959F"),
    ("gridgrey", "D8DEE4"),
    ("alarm", "B3001B"),
    ("waitfill", "E69F00"),
    ("insidefill", "FFCE5C"),
    ("insideline", "A87400"),
    ("leadfill", "F0E442"),
    ("leadline", "8A8000"),
    ("followfill", "B8AE00"),
    ("inbarink", "3D2C00"),
];

/// The looks, as in the SVG.
const STYLES: &str = "
  every node/.style={font=\\sffamily\\fontsize{8.5bp}{9bp}\\selectfont,text=ink,inner sep=0.5bp},
  title/.style={anchor=west,font=\\sffamily\\bfseries\\fontsize{18bp}{20bp}\\selectfont},
  sub/.style={anchor=west,font=\\sffamily\\fontsize{12bp}{13bp}\\selectfont,text=pale},
  name/.style={anchor=east,font=\\sffamily\\bfseries\\fontsize{12bp}{13bp}\\selectfont},
  tick/.style={text=pale},
  key/.style={anchor=west,font=\\sffamily\\fontsize{10.5bp}{11bp}\\selectfont},
  label/.style={fill=white,fill opacity=.82,text opacity=1},
  inbar/.style={text=inbarink},
  badtext/.style={text=alarm,font=\\sffamily\\bfseries\\fontsize{10bp}{11bp}\\selectfont},
  lane/.style={draw=lanegrey,line width=1.2bp},
  grid/.style={draw=gridgrey,line width=1bp},
  axis/.style={draw=pale,line width=1bp},
  wide/.style={draw=pale,line width=3bp},
  moment/.style={fill=lanegrey,fill opacity=.1},
  band/.style={fill=lanegrey,fill opacity=.16},
  gap/.style={fill=white,fill opacity=.75},
  gapside/.style={draw=lanegrey,dash pattern=on 2bp off 3bp},
  waiting/.style={fill=waitfill,fill opacity=.45},
  inside/.style={fill=insidefill,draw=insideline,line width=1.2bp,rounded corners=4bp},
  leading/.style={fill=leadfill,draw=leadline,line width=1.2bp,rounded corners=4bp},
  following/.style={fill=followfill,fill opacity=.4},
  down/.style={draw=white,line width=3bp,dash pattern=on 5bp off 5bp},
  paused/.style={draw=white,line width=3bp,dash pattern=on 2bp off 5bp},
  arrow/.style={line width=1.4bp},
  tip/.style={-{Latex[length=8bp,width=7bp]},shorten >=3bp},
  again/.style={dash pattern=on 7bp off 3bp},
  lost/.style={dash pattern=on 4bp off 3bp},
  pending/.style={dash pattern=on 2bp off 4bp},
  cross/.style={draw=alarm,line width=2.2bp},
  bad/.style={draw=alarm,line width=1.4bp,dash pattern=on 6bp off 3bp},
  point/.style={fill=ink},
  ask/.style={fill=white,draw=ink,line width=1.4bp}";
