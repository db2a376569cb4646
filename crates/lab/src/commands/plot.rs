//! Line plots of a sweep, with error bars.

use std::collections::BTreeMap;

use konklave_sweep::Group;
use plotters::prelude::*;

/// Colours that the colour-blind can tell apart (Okabe and Ito).
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(90, 90, 90),
];

/// `measure` over n, a line for each algorithm and combination, with 95 % confidence.
pub(crate) fn plot(groups: &[Group], measure: &str) -> Result<String, String> {
    let mut lines: BTreeMap<String, Vec<(f64, f64, f64)>> = BTreeMap::new();
    for group in groups {
        let Some(n) = group.parameters.get("nodes").and_then(serde_json::Value::as_f64) else {
            continue;
        };
        let Some(s) = group.measures.get(measure) else { continue };
        let rest: Vec<String> = group
            .parameters
            .iter()
            .filter(|(key, _)| *key != "nodes")
            .map(|(key, value)| format!("{key}={}", value.to_string().trim_matches('"')))
            .collect();
        let name = format!("{} {}", group.algorithm, rest.join(" "));
        lines.entry(name.trim().to_owned()).or_default().push((n, s.mean, s.confidence));
    }
    let points = || lines.values().flatten();
    if points().next().is_none() {
        return Err(format!("--plot: no run has a measure called {measure}"));
    }
    let largest = points().map(|(n, ..)| *n).fold(1.0, f64::max);
    let highest = points().map(|(_, y, e)| y + e).fold(1e-9, f64::max);
    let mut picture = String::new();
    {
        let area = SVGBackend::with_string(&mut picture, (900, 560)).into_drawing_area();
        draw(&area, &lines, (largest, highest), measure).map_err(|e| e.to_string())?;
    }
    Ok(picture)
}

fn draw(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    lines: &BTreeMap<String, Vec<(f64, f64, f64)>>,
    (largest, highest): (f64, f64),
    measure: &str,
) -> Result<(), Box<dyn std::error::Error>> {
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(area)
        .margin(16)
        .x_label_area_size(44)
        .y_label_area_size(72)
        .build_cartesian_2d(0.0..largest * 1.05, 0.0..highest * 1.08)?;
    chart.configure_mesh().x_desc("nodes").y_desc(measure).light_line_style(WHITE).draw()?;
    for (i, (name, points)) in lines.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        let mut points = points.clone();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        chart
            .draw_series(LineSeries::new(
                points.iter().map(|(n, y, _)| (*n, *y)),
                colour.stroke_width(2),
            ))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
        chart.draw_series(points.iter().map(|(n, y, e)| {
            ErrorBar::new_vertical(*n, (y - e).max(0.0), *y, y + e, colour.filled(), 8)
        }))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    area.present()?;
    Ok(())
}
