//! Plots of whole studies.

use std::collections::BTreeMap;

use super::*;
use crate::spread;

fn group(algorithm: &str, parameters: &[(&str, Value)], values: &[f64]) -> Combination {
    Combination {
        algorithm: algorithm.into(),
        parameters: parameters.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect(),
        runs: values.len(),
        failed: 0,
        measures: BTreeMap::from([
            ("messages".to_owned(), spread(values)),
            ("time".to_owned(), spread(&[values.len() as f64])),
        ]),
        formulas: BTreeMap::new(),
    }
}

fn plot() -> Plot {
    Plot {
        measure: "messages".into(),
        x: "nodes".into(),
        facet: None,
        log_x: false,
        log_y: false,
        width: Plot::COLUMN,
    }
}

fn study(series: usize) -> Vec<Combination> {
    let one = |i: usize, n: usize| {
        let y = (n * (i + 1)) as f64;
        let load = if i.is_multiple_of(2) { "low" } else { "high" };
        let parameters = [("nodes", n.into()), ("load", load.into())];
        group(&format!("mutex/lock-{i}"), &parameters, &[y, y + 1.0, y + 2.0])
    };
    (0..series).flat_map(|i| [2, 4, 8].map(|n| one(i, n))).collect()
}

#[test]
fn a_figure_fits_a_column_unless_it_is_told_otherwise() {
    let figure = Figure::new(&study(2), &plot()).unwrap();
    assert!(figure.svg().starts_with("<svg") && figure.svg().contains("width=\"88.00mm\""));
    assert!(figure.tikz().contains("paperwidth=249.45bp"), "{}", figure.tikz());
    let wide = Figure::new(&study(2), &Plot { width: 180.0, ..plot() }).unwrap();
    assert!(
        wide.svg().contains("width=\"180.00mm\"") && wide.tikz().contains("paperwidth=510.24bp")
    );
}

#[test]
fn names_hold_only_what_tells_series_apart() {
    let figure = Figure::new(&study(2), &plot()).unwrap();
    assert_eq!(figure.names, ["lock-0 load=low", "lock-1 load=high"]);
    let one = Figure::new(&study(1), &plot()).unwrap();
    assert_eq!(one.names, ["lock-0"]);
}

#[test]
fn a_facet_has_a_panel_for_each_value() {
    let facet = |key: &str| Figure::new(&study(4), &Plot { facet: Some(key.into()), ..plot() });
    let by_load = facet("load").unwrap();
    let titles: Vec<&str> = by_load.panels.iter().map(|p| p.title.as_str()).collect();
    assert_eq!(titles, ["load = low", "load = high"]);
    assert_eq!(by_load.names, ["lock-0", "lock-1", "lock-2", "lock-3"]);
    let by_algorithm = facet("algorithm").unwrap();
    assert_eq!((by_algorithm.panels.len(), by_algorithm.names.len()), (4, 2));
    let why = facet("lode").unwrap_err();
    assert!(why.contains("--facet lode") && why.contains("load, nodes"), "{why}");
}

#[test]
fn any_parameter_or_measure_may_be_the_horizontal_axis() {
    let think =
        |t: &str| group("central", &[("think", t.into()), ("nodes", 4.into())], &[3.0, 4.0]);
    let groups = [think("arrivals:5"), think("10"), think("exponential:20")];
    let figure = Figure::new(&groups, &Plot { x: "think".into(), ..plot() }).unwrap();
    let xs: Vec<f64> = figure.panels[0].series[&0].iter().map(|p| p.x).collect();
    assert_eq!(xs, [5.0, 10.0, 20.0]);
    assert!(Figure::new(&groups, &Plot { x: "time".into(), ..plot() }).is_ok());
    let why = Figure::new(&groups, &Plot { x: "hold".into(), ..plot() }).unwrap_err();
    assert!(why.contains("--plot-x hold") && why.contains("nodes, think"), "{why}");
    let why = Figure::new(&groups, &Plot { measure: "noise".into(), ..plot() }).unwrap_err();
    assert!(why.contains("no run has a measure called noise"), "{why}");
}

#[test]
fn logarithmic_axes_need_positive_values() {
    let log = Plot { log_x: true, log_y: true, ..plot() };
    let figure = Figure::new(&study(3), &log).unwrap();
    assert!(!figure.svg().contains("NaN") && !figure.tikz().contains("NaN"));
    let zero = [group("central", &[("nodes", 4.into())], &[0.0, 0.0])];
    let why = Figure::new(&zero, &log).unwrap_err();
    assert!(why.contains("--log y: messages"), "{why}");
}

#[test]
fn a_single_run_has_a_point_without_interval() {
    let figure = Figure::new(&[group("central", &[("nodes", 4.into())], &[7.0])], &plot()).unwrap();
    let svg = figure.svg();
    assert!(!svg.contains("NaN") && svg.matches("<polygon").count() == 2, "{svg}");
}
