//! A comparison as a picture: bars for every column, and the sources' triangle for every algorithm.

use std::fmt::Write as _;

use super::{Better, Column, Comparison, Endurance, Line};

const ROW: f64 = 22.0;
const NAME: f64 = 190.0;
const BAR: f64 = 150.0;
const GAP: f64 = 70.0;
const SIDE: f64 = 150.0;
/// Blue and orange of Okabe and Ito, distinguishable by colour-blind readers and in grey.
const COLOURS: [&str; 2] = ["#0072b2", "#e69f00"];

/// The picture as SVG.
pub fn svg(all: &Comparison) -> String {
    let mut names: Vec<&str> = all.lines.iter().map(|l| l.algorithm.as_str()).collect();
    names.dedup();
    let mut cases: Vec<&str> = all.lines.iter().map(|l| l.case).collect();
    cases.sort_unstable();
    cases.dedup();
    let height_of_one = ROW * cases.len() as f64 / 2.0 + 12.0;
    let bars_end = 90.0 + names.len() as f64 * height_of_one;
    let width = NAME + all.columns.len() as f64 * (BAR + GAP) + 20.0;
    let per_row = ((width - 20.0) / SIDE).floor().max(1.0) as usize;
    let rows = names.len().div_ceil(per_row);
    // Without a common delay there is nothing to compare in one picture.
    let triangles = all.lines.iter().any(|l| l.endurance.is_some())
        && all.columns.iter().any(|column| column.is_delay);
    let height = bars_end + if triangles { 50.0 + rows as f64 * (SIDE + 24.0) } else { 20.0 };
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\" font-size=\"12\" role=\"img\" \
         aria-label=\"{} algorithms compared\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        escape(all.problem)
    );
    text(&mut out, (10.0, 24.0), &title(all), "font-size=\"16\" font-weight=\"bold\"");
    for (i, case) in cases.iter().enumerate() {
        let x = 10.0 + 130.0 * i as f64;
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"36\" width=\"12\" height=\"12\" fill=\"{}\"/>",
            COLOURS[i % 2]
        );
        text(&mut out, (x + 18.0, 46.0), case, "");
    }
    for (c, column) in all.columns.iter().enumerate() {
        let x = NAME + c as f64 * (BAR + GAP);
        heading(&mut out, x, column);
        let (most, none) = (highest(&all.lines, c), nothing(all, c));
        for (a, name) in names.iter().enumerate() {
            let lines = all.lines.iter().filter(|l| l.algorithm == *name);
            for line in lines {
                let at = cases.iter().position(|case| *case == line.case).unwrap_or(0);
                let y = 92.0 + a as f64 * height_of_one + at as f64 * ROW / 2.0;
                bar(&mut out, (x, y), (line, c, &none), most, COLOURS[at % 2]);
            }
        }
    }
    for (a, name) in names.iter().enumerate() {
        let y = 92.0 + a as f64 * height_of_one + 10.0;
        text(&mut out, (10.0, y), short(name), "");
    }
    if triangles {
        text(
            &mut out,
            (10.0, bars_end + 24.0),
            "messages – delay – fault tolerance: further out is better",
            "font-weight=\"bold\"",
        );
        for (a, name) in names.iter().enumerate() {
            let x = 10.0 + (a % per_row) as f64 * SIDE + SIDE / 2.0;
            let y = bars_end + 44.0 + (a / per_row) as f64 * (SIDE + 24.0) + SIDE / 2.0;
            triangle(&mut out, (x, y), name, all);
        }
    }
    out.push_str("</svg>\n");
    out
}

/// The name of a column, and whether less or more is better.
fn heading(out: &mut String, x: f64, column: &Column) {
    let arrow = if column.better == Better::Less { "less is better" } else { "more is better" };
    text(out, (x, 68.0), &format!("{} {}", column.name, column.unit), "font-weight=\"bold\"");
    text(out, (x, 82.0), arrow, "fill=\"#555\" font-size=\"10\"");
}

fn title(all: &Comparison) -> String {
    format!("{}: {} nodes, {} seeds each", all.problem, all.nodes, all.seeds)
}

fn highest(lines: &[Line], column: usize) -> f64 {
    let means = lines.iter().filter_map(|l| l.measured[column].map(|s| s.mean));
    means.fold(0.0, f64::max).max(1e-9)
}

fn bar(
    out: &mut String,
    (x, y): (f64, f64),
    (line, column, none): (&Line, usize, &str),
    most: f64,
    colour: &str,
) {
    let Some(s) = line.measured[column] else {
        return text(out, (x, y + 9.0), none, "fill=\"#888\" font-size=\"10\"");
    };
    let width = (s.mean / most * BAR).max(1.0);
    let _ = writeln!(
        out,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"9\" fill=\"{colour}\"/>"
    );
    let (from, to) = ((s.mean - s.confidence).max(0.0), (s.mean + s.confidence).min(1.2 * most));
    if s.confidence > 0.0 {
        let (from, to, middle) = (x + from / most * BAR, x + to / most * BAR, y + 4.5);
        let _ = writeln!(
            out,
            "<path d=\"M{from:.1} {middle:.1}H{to:.1}M{from:.1} {y:.1}v9M{to:.1} {y:.1}v9\" fill=\"none\" \
             stroke=\"black\"/>"
        );
    }
    let reach = width.max(to / most * BAR);
    let weight = if line.best[column] { "font-weight=\"bold\"" } else { "" };
    let star = if line.best[column] { " ★" } else { "" };
    let value = format!("{:.2}{star}", s.mean);
    text(out, (x + reach + 4.0, y + 9.0), &value, &format!("font-size=\"10\" {weight}"));
}

/// The text for a measure without values.
fn nothing(all: &Comparison, column: usize) -> String {
    all.columns[column].without_any()
}

/// The three corners of one algorithm, each from 0 to 1: the best of all has 1. None where nothing was
/// measured.
fn corners(name: &str, all: &Comparison) -> [Option<f64>; 3] {
    let busiest = all.lines.iter().rfind(|l| l.algorithm == name);
    let Some(line) = busiest else { return [None; 3] };
    let against = |column: usize| {
        let mean = |l: &Line| l.measured.get(column).copied().flatten().map(|s| s.mean);
        let same = all.lines.iter().filter(|l| l.case == line.case);
        let least = same.filter_map(mean).fold(f64::INFINITY, f64::min);
        // One is added, so that nothing at all does not make everything else worth nothing.
        mean(line).map(|own| (least + 1.0) / (own + 1.0))
    };
    let delay = all.columns.iter().position(|column| column.is_delay);
    let endurance = line.endurance.as_ref().map(Endurance::score);
    [against(0), delay.and_then(against), endurance]
}

fn triangle(out: &mut String, (x, y): (f64, f64), name: &str, all: &Comparison) {
    let corners = corners(name, all);
    let radius = SIDE * 0.36;
    let point = |corner: usize, length: f64| {
        let angle = (-90.0 + 120.0 * corner as f64).to_radians();
        (x + radius * length * angle.cos(), y + 8.0 + radius * length * angle.sin())
    };
    let path = |lengths: [f64; 3]| {
        let points = (0..3).map(|i| {
            let (px, py) = point(i, lengths[i].max(0.02));
            format!("{px:.1},{py:.1}")
        });
        points.collect::<Vec<_>>().join(" ")
    };
    let _ = writeln!(
        out,
        "<polygon points=\"{}\" fill=\"none\" stroke=\"#999\"/>\n<polygon points=\"{}\" \
         fill=\"{}\" fill-opacity=\"0.45\" stroke=\"{}\"/>",
        path([1.0; 3]),
        path(corners.map(|corner| corner.unwrap_or(0.0))),
        COLOURS[0],
        COLOURS[0]
    );
    for (corner, label) in ["messages", "delay", "faults"].iter().enumerate() {
        let (px, py) = point(corner, 1.18);
        let unknown = if corners[corner].is_none() { " (–)" } else { "" };
        let style = "text-anchor=\"middle\" font-size=\"9\" fill=\"#555\"";
        text(out, (px, py + 3.0), &format!("{label}{unknown}"), style);
    }
    let anchor = "text-anchor=\"middle\" font-weight=\"bold\" font-size=\"11\"";
    text(out, (x, y + SIDE * 0.5 - 4.0), short(name), anchor);
}

fn text(out: &mut String, (x, y): (f64, f64), words: &str, style: &str) {
    let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" {style}>{}</text>", escape(words));
}

fn short(name: &str) -> &str {
    name.split_once('/').map_or(name, |(_, name)| name)
}

fn escape(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The picture and the table as one page that needs nothing else.
pub fn html(all: &Comparison) -> String {
    let mut rows = String::new();
    for line in &all.lines {
        let _ = write!(rows, "<tr><td>{}</td><td>{}</td>", escape(&line.algorithm), line.case);
        for (i, measured) in line.measured.iter().enumerate() {
            let class = if line.best[i] { " class=\"best\"" } else { "" };
            let value = measured.map_or_else(
                || nothing(all, i),
                |s| format!("{:.2} ± {:.2}", s.mean, s.confidence),
            );
            let of = match line.samples[i] {
                Some(count) if !all.columns[i].of.is_empty() => {
                    format!(" <small>({count} {})</small>", escape(all.columns[i].of))
                }
                Some(_) | None => String::new(),
            };
            let formula = line.formulas[i].as_ref();
            let limit = all.columns[i].limit;
            let formula = match (formula, &line.without[i]) {
                (Some((formula, x)), _) => {
                    format!("<br><small>{limit} {} = {x:.2}</small>", escape(formula))
                }
                (None, Some(why)) => format!("<br><small>no formula: {}</small>", escape(why)),
                (None, None) => String::new(),
            };
            let _ = write!(rows, "<td><span{class}>{value}</span>{of}{formula}</td>");
        }
        let survives = line.endurance.as_ref().map_or(String::new(), Endurance::words);
        let _ = writeln!(
            rows,
            "<td>{}</td><td><code>{}</code></td></tr>",
            escape(&survives),
            escape(&line.command)
        );
    }
    let heads: String = all
        .columns
        .iter()
        .map(|c| format!("<th>{} <small>{}</small></th>", escape(c.name), escape(c.unit)))
        .collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{title}</title>\n<style>\n\
         body {{ font-family: sans-serif; margin: 2rem }}\n\
         .wide {{ overflow-x: auto }}\nsvg {{ max-width: 100%; height: auto }}\n\
         table {{ border-collapse: collapse }}\n\
         td, th {{ padding: .2rem .6rem; border-bottom: 1px solid #ccc; text-align: left }}\n\
         .best {{ font-weight: bold }}\n.best::after {{ content: \" ★\" }}\n</style>\n\
         <h1>{title}</h1>\n{}<div class=\"wide\"><table>\n<tr><th>algorithm</th><th>case</th>{heads}\
         <th>kinds of faults that never did harm</th><th>repeat</th></tr>\n{rows}</table></div>\n</html>\n",
        svg(all),
        title = escape(&title(all)),
    )
}
