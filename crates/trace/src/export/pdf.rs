//! A picture as PDF: the outlines of the SVG, text included. So it needs no font on any machine, and a print shop finds
//! none missing.

use std::fmt::Write as _;

use resvg::usvg::tiny_skia_path::{PathSegment, Transform};
use resvg::usvg::{FillRule, Group, LineCap, LineJoin, Node, Paint, Path};

use super::png::{PngError, read};

/// Points of 1/72 inch in a pixel of 1/96 inch.
const POINTS: f32 = 0.75;

/// `svg` as PDF, of the same size.
pub fn pdf(svg: &str) -> Result<Vec<u8>, PngError> {
    let tree = read(svg)?;
    let (width, height) = (tree.size().width() * POINTS, tree.size().height() * POINTS);
    let mut page = Page::default();
    let _ = writeln!(page.content, "{POINTS} 0 0 {} 0 {} cm 1 j", -POINTS, number(height));
    page.group(tree.root(), 1.0);
    Ok(page.finish(width, height))
}

#[derive(Default)]
struct Page {
    content: String,
    /// The opacities in use, in thousandths.
    opacities: Vec<u32>,
}

impl Page {
    fn group(&mut self, group: &Group, opacity: f32) {
        let opacity = opacity * group.opacity().get();
        for node in group.children() {
            match node {
                Node::Group(group) => self.group(group, opacity),
                Node::Path(path) if path.is_visible() => self.path(path, opacity),
                Node::Text(text) => self.group(text.flattened(), opacity),
                // Our pictures have no images.
                Node::Path(_) | Node::Image(_) => {}
            }
        }
    }

    fn path(&mut self, path: &Path, opacity: f32) {
        let outline = outline(path);
        let Transform { sx, kx, ky, sy, tx, ty } = path.abs_transform();
        let matrix: Vec<String> = [sx, ky, kx, sy, tx, ty].into_iter().map(number).collect();
        let _ = writeln!(self.content, "q {} cm", matrix.join(" "));
        if let Some(fill) = path.fill()
            && let Paint::Color(colour) = fill.paint()
        {
            self.opacity(opacity * fill.opacity().get());
            let rule = if fill.rule() == FillRule::EvenOdd { "f*" } else { "f" };
            let [r, g, b] = [colour.red, colour.green, colour.blue].map(part);
            let _ = writeln!(self.content, "{r} {g} {b} rg {outline}{rule}");
        }
        if let Some(stroke) = path.stroke()
            && let Paint::Color(colour) = stroke.paint()
        {
            self.opacity(opacity * stroke.opacity().get());
            let [r, g, b] = [colour.red, colour.green, colour.blue].map(part);
            let cap = match stroke.linecap() {
                LineCap::Butt => 0,
                LineCap::Round => 1,
                LineCap::Square => 2,
            };
            let join = match stroke.linejoin() {
                LineJoin::Round => 1,
                LineJoin::Bevel => 2,
                LineJoin::Miter | LineJoin::MiterClip => 0,
            };
            let dashes: Vec<String> =
                stroke.dasharray().unwrap_or_default().iter().copied().map(number).collect();
            let (width, dashes) = (number(stroke.width().get()), dashes.join(" "));
            let _ = writeln!(
                self.content,
                "{r} {g} {b} RG {width} w {cap} J {join} j [{dashes}] {} d {outline}S",
                number(stroke.dashoffset())
            );
        }
        self.content.push_str("Q\n");
    }

    fn opacity(&mut self, opacity: f32) {
        let opacity = (opacity * 1000.0).round() as u32;
        let i = self.opacities.iter().position(|known| *known == opacity).unwrap_or_else(|| {
            self.opacities.push(opacity);
            self.opacities.len() - 1
        });
        let _ = write!(self.content, "/G{i} gs ");
    }

    fn finish(self, width: f32, height: f32) -> Vec<u8> {
        let states: Vec<String> = (self.opacities.iter().enumerate())
            .map(|(i, opacity)| {
                let x = number(*opacity as f32 / 1000.0);
                format!("/G{i} << /ca {x} /CA {x} >>")
            })
            .collect();
        let objects = [
            "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
            format!(
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {} {}] /Contents 4 0 R \
                 /Resources << /ExtGState << {} >> >> >>",
                number(width),
                number(height),
                states.join(" ")
            ),
            format!("<< /Length {} >>\nstream\n{}endstream", self.content.len(), self.content),
        ];
        let mut out = String::from("%PDF-1.4\n");
        let mut places = Vec::new();
        for (i, object) in objects.iter().enumerate() {
            places.push(out.len());
            let _ = writeln!(out, "{} 0 obj\n{object}\nendobj", i + 1);
        }
        let table = out.len();
        let _ = writeln!(out, "xref\n0 {}\n0000000000 65535 f ", objects.len() + 1);
        for place in places {
            let _ = writeln!(out, "{place:010} 00000 n ");
        }
        let size = objects.len() + 1;
        let _ = writeln!(out, "trailer << /Size {size} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF");
        out.into_bytes()
    }
}

/// The path in the operators of PDF, which have no quadratic curves.
fn outline(path: &Path) -> String {
    let mut out = String::new();
    let mut at = (0.0, 0.0);
    for segment in path.data().segments() {
        let _ = match segment {
            PathSegment::MoveTo(p) => {
                at = (p.x, p.y);
                write!(out, "{} {} m ", number(p.x), number(p.y))
            }
            PathSegment::LineTo(p) => {
                at = (p.x, p.y);
                write!(out, "{} {} l ", number(p.x), number(p.y))
            }
            PathSegment::QuadTo(c, p) => {
                let third = |from: f32, to: f32| from + (to - from) * 2.0 / 3.0;
                let first = (third(at.0, c.x), third(at.1, c.y));
                let second = (third(p.x, c.x), third(p.y, c.y));
                at = (p.x, p.y);
                curve(&mut out, first, second, at)
            }
            PathSegment::CubicTo(a, b, p) => {
                at = (p.x, p.y);
                curve(&mut out, (a.x, a.y), (b.x, b.y), at)
            }
            PathSegment::Close => write!(out, "h "),
        };
    }
    out
}

fn curve(out: &mut String, a: (f32, f32), b: (f32, f32), to: (f32, f32)) -> std::fmt::Result {
    let points: Vec<String> = [a.0, a.1, b.0, b.1, to.0, to.1].into_iter().map(number).collect();
    write!(out, "{} c ", points.join(" "))
}

/// A part of a colour, from 0 to 1.
fn part(byte: u8) -> String {
    number(f32::from(byte) / 255.0)
}

/// A number without needless digits. PDF has no exponents.
fn number(x: f32) -> String {
    let text = format!("{x:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SVG: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"88mm\" height=\"10mm\" \
        viewBox=\"0 0 88 10\"><rect width=\"8\" height=\"4\" fill=\"#ff0000\" fill-opacity=\"0.5\"/>\
        <path d=\"M0 0Q4 4 8 0\" fill=\"none\" stroke=\"blue\" stroke-dasharray=\"2 1\"/>\
        <text x=\"1\" y=\"9\" font-size=\"3\">a–b</text></svg>";

    #[test]
    fn a_picture_keeps_its_size_and_every_offset_is_right() {
        let bytes = pdf(SVG).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.starts_with("%PDF-1.4\n") && text.ends_with("%%EOF\n"));
        // 88 mm and 10 mm in points.
        assert!(text.contains("/MediaBox [0 0 249.449 28.346]"), "{text}");
        let table = text.split("startxref\n").nth(1).unwrap().lines().next().unwrap();
        let table: usize = table.parse().unwrap();
        assert!(text[table..].starts_with("xref\n0 5\n"));
        for (i, line) in text[table..].lines().skip(3).take(4).enumerate() {
            let place: usize = line[..10].parse().unwrap();
            assert!(text[place..].starts_with(&format!("{} 0 obj\n", i + 1)), "{line}");
        }
        let length = text.split("/Length ").nth(1).unwrap().split(' ').next().unwrap();
        let stream = text.split("stream\n").nth(1).unwrap();
        assert_eq!(stream.len() - "end".len(), length.parse::<usize>().unwrap());
    }

    #[test]
    fn fills_strokes_dashes_curves_and_text_are_drawn() {
        let text = String::from_utf8(pdf(SVG).unwrap()).unwrap();
        assert!(text.contains("1 0 0 rg") && text.contains("/ca 0.5"), "{text}");
        assert!(text.contains("0 0 1 RG") && text.contains("[2 1] 0 d"), "{text}");
        assert!(text.contains("2.667 2.667 5.333 2.667 8 0 c"), "{text}");
        // Three letters, each an outline of its own or parts of one.
        assert!(text.matches(" c ").count() > 10 && !text.contains('–'), "{text}");
    }

    #[test]
    fn text_that_is_no_svg_is_refused() {
        assert!(pdf("hello").is_err());
    }
}
