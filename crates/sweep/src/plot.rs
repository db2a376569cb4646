//! Plots of a study: a measure over a parameter, with 95 % confidence, as SVG or TikZ.

mod axis;
mod canvas;
mod draw;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use self::axis::Axis;
use crate::Combination;

/// The series of a plot, and its form.
#[derive(Clone, PartialEq, Debug)]
pub struct Plot {
    /// The measure on the vertical axis.
    pub measure: String,
    /// The parameter or measure on the horizontal axis.
    pub x: String,
    /// A panel for each value of this parameter, or of `algorithm`.
    pub facet: Option<String>,
    /// Whether the horizontal axis is logarithmic.
    pub log_x: bool,
    /// Whether the vertical axis is logarithmic.
    pub log_y: bool,
    /// The width, in mm.
    pub width: f64,
}

impl Plot {
    /// The width of a column of a paper, in mm.
    pub const COLUMN: f64 = 88.0;
}

/// A plotted mean with its confidence.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Point {
    x: f64,
    y: f64,
    confidence: f64,
}

/// One picture beside others.
#[derive(Clone, PartialEq, Debug)]
struct Panel {
    title: String,
    /// By the number of the series.
    series: BTreeMap<usize, Vec<Point>>,
}

/// A plot with its data.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    plot: Plot,
    panels: Vec<Panel>,
    /// The names of all series.
    names: Vec<String>,
    x: Axis,
    y: Axis,
}

impl Figure {
    /// The figure of `plot` for these combinations.
    pub fn new(groups: &[Combination], plot: &Plot) -> Result<Self, String> {
        let shared = Shared::of(groups, plot);
        let mut names: Vec<String> = Vec::new();
        let mut panels: Vec<Panel> = Vec::new();
        for group in groups {
            let Some(s) = group.measures.get(&plot.measure) else { continue };
            let Some(x) = x_of(group, &plot.x) else { continue };
            let (title, name) = (shared.title(group, plot), shared.name(group, plot));
            let series = names.iter().position(|known| *known == name).unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            });
            let panel = panels.iter().position(|known| known.title == title).unwrap_or_else(|| {
                panels.push(Panel { title, series: BTreeMap::new() });
                panels.len() - 1
            });
            let point = Point { x, y: s.mean, confidence: s.confidence };
            panels[panel].series.entry(series).or_default().push(point);
        }
        let all = || panels.iter().flat_map(|panel| panel.series.values().flatten());
        if all().next().is_none() {
            return Err(
                match groups.iter().any(|group| group.measures.contains_key(&plot.measure)) {
                    true => format!(
                        "--plot-x {}: it has no numbers in this study; {}",
                        plot.x,
                        known(groups)
                    ),
                    false => format!("--plot: no run has a measure called {}", plot.measure),
                },
            );
        }
        if let Some(facet) = plot.facet.as_ref().filter(|facet| *facet != "algorithm")
            && !groups.iter().any(|group| group.parameters.contains_key(facet))
        {
            return Err(format!(
                "--facet {facet}: it does not vary in this study; {}",
                known(groups)
            ));
        }
        let x = Axis::over(all().map(|p| (p.x, p.x)), plot.log_x, true)
            .map_err(|why| format!("--log x: {}: {why}", plot.x))?;
        let ends = all().map(|p| (p.y - p.confidence, p.y + p.confidence));
        let y = match plot.log_y {
            // An interval that reaches 0 is cut off at the edge.
            true => Axis::over(all().map(|p| (p.y, p.y + p.confidence)), true, false),
            false => Axis::over(ends, false, false),
        };
        let y = y.map_err(|why| format!("--log y: {}: {why}", plot.measure))?;
        for points in panels.iter_mut().flat_map(|panel| panel.series.values_mut()) {
            points.sort_by(|a, b| a.x.total_cmp(&b.x));
        }
        Ok(Self { plot: plot.clone(), panels, names, x, y })
    }

    /// As SVG.
    pub fn svg(&self) -> String {
        canvas::svg(&draw::draw(self))
    }

    /// As a LaTeX document with TikZ.
    pub fn tikz(&self) -> String {
        canvas::tikz(&draw::draw(self))
    }
}

/// The parameters that vary, for errors.
fn known(groups: &[Combination]) -> String {
    let keys: BTreeSet<&str> =
        groups.iter().flat_map(|group| group.parameters.keys().map(String::as_str)).collect();
    format!("parameters are {}", keys.into_iter().collect::<Vec<_>>().join(", "))
}

/// Where a combination stands: the value of a parameter, or the mean of a measure.
fn x_of(group: &Combination, key: &str) -> Option<f64> {
    match group.parameters.get(key) {
        Some(value) => number_in(value),
        None => group.measures.get(key).map(|s| s.mean),
    }
}

/// The number of a value: `5`, `"5"`, or the only one in `"arrivals:5"`.
fn number_in(value: &Value) -> Option<f64> {
    let Value::String(text) = value else { return value.as_f64() };
    if let Ok(x) = text.parse() {
        return Some(x);
    }
    let (_, argument) = text.split_once(':')?;
    argument.parse().ok()
}

/// The parameters that all combinations share; labels leave them out.
struct Shared {
    problem: Option<String>,
    keys: BTreeSet<String>,
}

impl Shared {
    fn of(groups: &[Combination], plot: &Plot) -> Self {
        let problem = |group: &Combination| {
            group.algorithm.split_once('/').map(|(problem, _)| problem.to_owned())
        };
        let mut problems: Vec<_> = groups.iter().map(problem).collect();
        problems.dedup();
        let mut values: BTreeMap<&String, BTreeSet<String>> = BTreeMap::new();
        for (key, value) in groups.iter().flat_map(|group| &group.parameters) {
            values.entry(key).or_default().insert(value.to_string());
        }
        let same = values.into_iter().filter(|(_, values)| values.len() == 1);
        let keys = same.map(|(key, _)| key.clone()).filter(|key| Some(key) != plot.facet.as_ref());
        let keys = keys.chain([plot.x.clone()]).collect();
        Self { problem: problems.first().cloned().flatten().filter(|_| problems.len() == 1), keys }
    }

    fn algorithm(&self, group: &Combination) -> String {
        let prefix = self.problem.as_ref().map(|problem| format!("{problem}/"));
        let short = prefix.and_then(|prefix| group.algorithm.strip_prefix(&prefix));
        short.unwrap_or(&group.algorithm).to_owned()
    }

    fn title(&self, group: &Combination, plot: &Plot) -> String {
        match plot.facet.as_deref() {
            None => String::new(),
            Some("algorithm") => self.algorithm(group),
            Some(key) => {
                group.parameters.get(key).map_or("–".into(), |v| format!("{key} = {}", word(v)))
            }
        }
    }

    fn name(&self, group: &Combination, plot: &Plot) -> String {
        let facet = plot.facet.as_deref();
        let told = group
            .parameters
            .iter()
            .filter(|(key, _)| !self.keys.contains(*key) && facet != Some(key.as_str()));
        let mut words: Vec<String> = told.map(|(key, v)| format!("{key}={}", word(v))).collect();
        if facet != Some("algorithm") {
            words.insert(0, self.algorithm(group));
        }
        words.join(" ")
    }
}

fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests;
