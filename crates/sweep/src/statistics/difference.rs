//! Differences between two algorithms that met the same workloads, and whether they are more than chance.

use serde::Serialize;

use super::spread;

/// The difference of two samples, pair by pair: both of a pair met the same clients and the same network.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Difference {
    /// How many pairs there are.
    pub pairs: usize,
    /// The mean difference.
    pub mean: f64,
    /// Half the width of its 95 % confidence interval.
    pub confidence: f64,
    /// How likely a mean difference is that is at least as large, if there is none in truth: the two-sided paired
    /// t test.
    pub p: f64,
}

/// The difference `first − second` of those pairs that have both values; none for less than two such pairs.
pub fn paired(pairs: impl IntoIterator<Item = (Option<f64>, Option<f64>)>) -> Option<Difference> {
    let differences: Vec<f64> = pairs.into_iter().filter_map(|(a, b)| Some(a? - b?)).collect();
    if differences.len() < 2 {
        return None;
    }
    let s = spread(&differences);
    // Differences that are equal but for rounding are equal.
    let scatter = s.deviation / (s.runs as f64).sqrt();
    let p = match scatter <= 1e-12 * s.mean.abs() {
        true if s.mean == 0.0 => 1.0,
        true => 0.0,
        false => two_sided(s.mean / scatter, s.runs - 1),
    };
    Some(Difference { pairs: s.runs, mean: s.mean, confidence: s.confidence, p })
}

/// Adjusts p-values of several tests by Holm's method: the chance that any of those below a limit is below it by
/// chance is at most the limit.
pub fn holm(all: &mut [&mut Difference]) {
    all.sort_by(|a, b| a.p.total_cmp(&b.p));
    let (tests, mut least) = (all.len(), 0.0_f64);
    for (i, difference) in all.iter_mut().enumerate() {
        least = least.max(difference.p * (tests - i) as f64).min(1.0);
        difference.p = least;
    }
}

/// The probability of a value at least as far from 0 as `t`, by Student's distribution.
fn two_sided(t: f64, freedom: usize) -> f64 {
    let v = freedom as f64;
    incomplete_beta(v / (v + t * t), v / 2.0, 0.5)
}

/// The regularised incomplete beta function, by its continued fraction (Lentz's method).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges fast on one side of the mean.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = (a * x.ln() + b * (1.0 - x).ln() - ln_beta(a, b)).exp() / a;
    let tiny = |y: f64| if y.abs() < 1e-300 { 1e-300 } else { y };
    let mut d = 1.0 / tiny(1.0 - (a + b) * x / (a + 1.0));
    let (mut c, mut fraction) = (1.0, d);
    for m in 1..500 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = fraction;
        for step in [even, odd] {
            d = 1.0 / tiny(1.0 + step * d);
            c = tiny(1.0 + step / c);
            fraction *= d * c;
        }
        if (fraction - before).abs() <= 1e-15 * fraction.abs() {
            break;
        }
    }
    front * fraction
}

fn ln_beta(a: f64, b: f64) -> f64 {
    ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b)
}

/// By Stirling's series, after moving up to where it is exact to twelve digits.
fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut below) = (x, 0.0);
    while x < 12.0 {
        below += x.ln();
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    let series = (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y / 1680.0))) / x;
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series - below
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_values_are_those_of_the_tables() {
        // 97.5 % quantiles of Student's distribution leave 5 % on both sides.
        for (t, freedom) in [(12.706, 1), (4.303, 2), (2.228, 10), (2.042, 30), (1.962, 1000)] {
            let p = two_sided(t, freedom);
            assert!((p - 0.05).abs() < 1e-4, "{t} {freedom}: {p}");
        }
        assert!((two_sided(0.0, 5) - 1.0).abs() < 1e-12);
        assert!((two_sided(1.0, 1) - 0.5).abs() < 1e-12, "Cauchy");
        assert!(two_sided(50.0, 20) < 1e-20);
    }

    #[test]
    fn pairing_shows_a_difference_that_scatter_hides() {
        // Student's sleep data: two drugs, ten patients.
        let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let pairs = first.iter().zip(&second).map(|(a, b)| (Some(*a), Some(*b)));
        let d = paired(pairs).unwrap();
        assert!((d.mean + 1.58).abs() < 1e-9 && (d.p - 0.002_833).abs() < 1e-5, "{d:?}");
        assert!((d.confidence - 0.8799).abs() < 1e-3, "{d:?}");
    }

    #[test]
    fn equal_differences_are_certain_and_missing_ones_do_not_count() {
        let d = paired([(Some(2.0), Some(1.0)), (None, Some(7.0)), (Some(4.0), Some(3.0))]);
        assert_eq!(d, Some(Difference { pairs: 2, mean: 1.0, confidence: 0.0, p: 0.0 }));
        let same = paired([(Some(2.0), Some(2.0)), (Some(4.0), Some(4.0))]).unwrap();
        assert_eq!((same.mean, same.p), (0.0, 1.0));
        assert_eq!(paired([(Some(2.0), Some(1.0))]), None);
    }

    #[test]
    fn holms_method_adjusts_for_several_tests() {
        let test = |p| Difference { pairs: 9, mean: 1.0, confidence: 1.0, p };
        let mut all = [test(0.01), test(0.04), test(0.03), test(0.9)];
        holm(&mut all.iter_mut().collect::<Vec<_>>());
        let p: Vec<f64> = all.iter().map(|d| (d.p * 1e6).round() / 1e6).collect();
        assert_eq!(p, [0.04, 0.09, 0.09, 0.9]);
    }
}
