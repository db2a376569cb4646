//! From rows to figures: mean, deviation, confidence, percentiles.

mod difference;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

pub use self::difference::{Difference, holm, paired};

use crate::Row;

/// The rows of one combination of algorithm and parameters, with all seeds.
#[derive(Clone, Debug, Serialize)]
pub struct Combination {
    /// The algorithm.
    pub algorithm: String,
    /// The varied parameters.
    pub parameters: BTreeMap<String, Value>,
    /// How many runs.
    pub runs: usize,
    /// How many of them were not ok.
    pub failed: usize,
    /// Each measure.
    pub measures: BTreeMap<String, Spread>,
    /// The mean of each formula, by metric.
    pub formulas: BTreeMap<String, (String, f64)>,
}

/// How a measure spreads over the runs of a combination.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Spread {
    /// How many runs have it.
    pub runs: usize,
    /// The mean.
    pub mean: f64,
    /// The standard deviation of the sample.
    pub deviation: f64,
    /// Half the width of the 95 % confidence interval of the mean.
    pub confidence: f64,
    /// The least.
    pub min: f64,
    /// The median.
    pub p50: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The most.
    pub max: f64,
}

/// The combinations of these rows, in the order of their first rows.
pub fn combinations(rows: &[Row]) -> Vec<Combination> {
    let mut order: Vec<(String, String)> = Vec::new();
    let mut by_key: BTreeMap<(String, String), Vec<&Row>> = BTreeMap::new();
    for row in rows {
        let parameters = serde_json::to_string(&row.parameters).unwrap_or_default();
        let key = (row.algorithm.clone(), parameters);
        if !by_key.contains_key(&key) {
            order.push(key.clone());
        }
        by_key.entry(key).or_default().push(row);
    }
    order.iter().map(|key| group(&by_key[key])).collect()
}

fn group(rows: &[&Row]) -> Combination {
    let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut formulas: BTreeMap<String, (String, f64, f64)> = BTreeMap::new();
    for row in rows {
        for (name, x) in &row.measures {
            values.entry(name.clone()).or_default().extend(x.as_f64());
        }
        for (metric, (formula, limit)) in &row.formulas {
            let sum = formulas.entry(metric.clone()).or_insert((formula.clone(), 0.0, 0.0));
            sum.1 += limit;
            sum.2 += 1.0;
        }
    }
    Combination {
        algorithm: rows[0].algorithm.clone(),
        parameters: rows[0].parameters.clone(),
        runs: rows.len(),
        failed: rows.iter().filter(|row| !["ok", "loop"].contains(&&*row.verdict)).count(),
        measures: values.into_iter().map(|(name, xs)| (name, spread(&xs))).collect(),
        // A formula that holds for some of the runs says nothing of their mean.
        formulas: formulas
            .into_iter()
            .filter(|(_, (_, _, k))| *k == rows.len() as f64)
            .map(|(m, (f, sum, k))| (m, (f, sum / k)))
            .collect(),
    }
}

/// The figures of a sample, which must not be empty.
pub fn spread(sample: &[f64]) -> Spread {
    let n = sample.len() as f64;
    let mean = sample.iter().sum::<f64>() / n;
    let squares: f64 = sample.iter().map(|x| (x - mean) * (x - mean)).sum();
    let deviation = if sample.len() > 1 { (squares / (n - 1.0)).sqrt() } else { 0.0 };
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    let quantile = |q: f64| {
        let rank = ((n * q).ceil() as usize).clamp(1, sorted.len());
        sorted[rank - 1]
    };
    Spread {
        runs: sample.len(),
        mean,
        deviation,
        confidence: student(sample.len().saturating_sub(1)) * deviation / n.sqrt(),
        min: sorted[0],
        p50: quantile(0.50),
        p95: quantile(0.95),
        p99: quantile(0.99),
        max: sorted[sorted.len() - 1],
    }
}

/// The 97.5 % quantile of Student's t distribution.
fn student(freedom: usize) -> f64 {
    const FIRST: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    match freedom {
        0 => 0.0,
        1..=30 => FIRST[freedom - 1],
        // The expansion of Cornish and Fisher: right to three digits from here on.
        _ => {
            let (z, v) = (1.959_964_f64, freedom as f64);
            z + (z.powi(3) + z) / (4.0 * v)
                + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * v * v)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_are_those_of_the_textbook() {
        let s = spread(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!((s.mean, s.min, s.max, s.p50, s.p95), (5.0, 2.0, 9.0, 4.0, 9.0));
        assert!((s.deviation - 2.138).abs() < 1e-3);
        assert!((s.confidence - 2.365 * 2.138 / 8f64.sqrt()).abs() < 1e-3);
        let one = spread(&[3.0]);
        assert_eq!((one.mean, one.deviation, one.confidence), (3.0, 0.0, 0.0));
    }

    #[test]
    fn students_quantiles_come_down_to_the_normal_one() {
        assert!((student(40) - 2.021).abs() < 1e-3);
        assert!((student(120) - 1.980).abs() < 1e-3);
        assert!((student(1_000_000) - 1.960).abs() < 1e-3);
    }
}
