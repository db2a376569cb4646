//! Which law a measure follows as n grows.

use serde::Serialize;

/// A class of growth.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Law {
    /// The same for every n.
    #[serde(rename = "1")]
    Constant,
    /// log n.
    #[serde(rename = "log n")]
    Logarithmic,
    /// √n.
    #[serde(rename = "√n")]
    Root,
    /// n.
    #[serde(rename = "n")]
    Linear,
    /// n log n.
    #[serde(rename = "n log n")]
    Linearithmic,
    /// n².
    #[serde(rename = "n²")]
    Quadratic,
}

impl Law {
    const ALL: [Self; 6] = [
        Self::Constant,
        Self::Logarithmic,
        Self::Root,
        Self::Linear,
        Self::Linearithmic,
        Self::Quadratic,
    ];

    fn at(self, n: f64) -> f64 {
        match self {
            Self::Constant => 1.0,
            Self::Logarithmic => n.ln(),
            Self::Root => n.sqrt(),
            Self::Linear => n,
            Self::Linearithmic => n * n.ln(),
            Self::Quadratic => n * n,
        }
    }
}

impl std::fmt::Display for Law {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Constant => "1",
            Self::Logarithmic => "log n",
            Self::Root => "√n",
            Self::Linear => "n",
            Self::Linearithmic => "n log n",
            Self::Quadratic => "n²",
        })
    }
}

/// A law with its factors: y ≈ a · law(n) + b.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Fit {
    /// Which.
    pub law: Law,
    /// Its factor.
    pub a: f64,
    /// The constant term.
    pub b: f64,
    /// How much of the variation it explains, from 0 to 1.
    pub r2: f64,
    /// How far it is off on average, as a part of y.
    pub error: f64,
}

/// The result of fitting points (n, y).
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Finding {
    /// They follow this law.
    Follows(Fit),
    /// They follow none; this one comes nearest.
    NoneFits(Fit),
    /// There are only so many different n: any law fits so few.
    TooFew(usize),
}

/// A law must explain so much of the variation.
pub const LEAST_R2: f64 = 0.9;
/// The largest relative deviation of a measure that counts as constant.
pub const LEVEL: f64 = 0.05;
/// So many different n are needed.
pub const SIZES: usize = 3;

impl Fit {
    /// Whether the fit is good enough to be reported.
    fn is_good(&self) -> bool {
        if self.law == Law::Constant { self.error <= LEVEL } else { self.r2 >= LEAST_R2 }
    }
}

/// The simplest law that explains the points (n, y) about as well as the best one does, if that is well
/// enough.
///
/// Errors count relative to y, so that the large n do not decide alone.
pub fn fit(points: &[(f64, f64)]) -> Finding {
    let mut sizes: Vec<f64> = points.iter().map(|(n, _)| *n).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    if sizes.len() < SIZES {
        return Finding::TooFew(sizes.len());
    }
    let fits = Law::ALL.map(|law| squares(law, points));
    let best = fits.iter().map(|fit| fit.error).fold(f64::INFINITY, f64::min);
    let simplest = fits.iter().find(|fit| fit.error <= 1.02 * best + 1e-6);
    // Where noise is all there is, some law fits it a little better than none.
    let chosen = simplest.filter(|fit| fit.is_good()).or(Some(&fits[0]));
    match (chosen, simplest) {
        (Some(fit), _) if fit.is_good() => Finding::Follows(*fit),
        (_, Some(nearest)) => Finding::NoneFits(*nearest),
        (_, None) => Finding::NoneFits(fits[0]),
    }
}

/// The least squares of a law. What is next to nothing, as the messages of one process, must not
/// decide alone.
fn squares(law: Law, points: &[(f64, f64)]) -> Fit {
    let largest = points.iter().map(|(_, y)| y.abs()).fold(0.0, f64::max);
    let weight = |y: f64| 1.0 / y.abs().max(1e-2 * largest).max(1e-9).powi(2);
    let (mut w, mut x, mut y, mut xx, mut xy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for &(n, value) in points {
        let (weight, at) = (weight(value), law.at(n));
        w += weight;
        x += weight * at;
        y += weight * value;
        xx += weight * at * at;
        xy += weight * at * value;
    }
    let (a, b) = if law == Law::Constant {
        (y / w, 0.0)
    } else {
        let a = (w * xy - x * y) / (w * xx - x * x);
        (a, (y - a * x) / w)
    };
    let mean = points.iter().map(|(_, y)| y).sum::<f64>() / points.len() as f64;
    let (mut left, mut all, mut relative) = (0.0, 0.0, 0.0);
    for &(n, value) in points {
        let error = value - (a * law.at(n) + b);
        left += error * error;
        all += (value - mean) * (value - mean);
        relative += error * error * weight(value);
    }
    let r2 = if all > 0.0 { (1.0 - left / all).max(0.0) } else { 1.0 };
    Fit { law, a, b, r2, error: (relative / points.len() as f64).sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn followed(points: &[(f64, f64)]) -> Fit {
        match fit(points) {
            Finding::Follows(fit) => fit,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_law_is_known_again() {
        for law in Law::ALL {
            let points: Vec<(f64, f64)> = [2.0, 4.0, 8.0, 16.0, 50.0, 100.0]
                .iter()
                .map(|&n| (n, 3.0 * law.at(n) + 5.0))
                .collect();
            let found = followed(&points);
            assert_eq!(found.law, law);
            assert!(found.r2 > 0.999, "{found:?}");
        }
    }

    #[test]
    fn a_little_noise_changes_nothing() {
        let noise = [1.02, 0.98, 1.01, 0.99, 1.015, 0.985];
        let sizes = [5.0, 10.0, 20.0, 40.0, 80.0, 160.0];
        let points: Vec<(f64, f64)> =
            sizes.iter().zip(noise).map(|(&n, e)| (n, 2.0 * (n - 1.0) * e)).collect();
        assert_eq!(followed(&points).law, Law::Linear);
        // Noise about a constant explains nothing, and is a constant.
        let level: Vec<(f64, f64)> = sizes.iter().zip(noise).map(|(&n, e)| (n, 3.0 * e)).collect();
        assert_eq!(followed(&level).law, Law::Constant);
    }

    #[test]
    fn measures_without_a_law_get_none() {
        let jumps = [(2.0, 1.0), (4.0, 9.0), (8.0, 2.0), (16.0, 8.0), (32.0, 1.0), (64.0, 7.0)];
        assert!(matches!(fit(&jumps), Finding::NoneFits(nearest) if nearest.r2 < LEAST_R2));
    }

    #[test]
    fn one_that_costs_nothing_does_not_decide_alone() {
        let sizes = [1.0, 2.0, 3.0, 5.0, 9.0, 20.0];
        let points: Vec<(f64, f64)> =
            sizes.iter().map(|&n| (n, 3.0 * (n - 1.0) * (n - 1.0))).collect();
        assert_eq!(followed(&points).law, Law::Quadratic);
    }

    #[test]
    fn two_points_follow_any_law() {
        assert_eq!(fit(&[(2.0, 1.0), (4.0, 2.0), (4.0, 3.0)]), Finding::TooFew(2));
        assert_eq!(fit(&[]), Finding::TooFew(0));
    }
}
