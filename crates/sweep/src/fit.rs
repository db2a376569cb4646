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
    /// What it starts from.
    pub b: f64,
    /// How much of the variation it explains, from 0 to 1.
    pub r2: f64,
}

/// The simplest law that explains the points (n, y) about as well as the best one does; none for
/// fewer than three different n.
///
/// Errors count relative to y, so that the large n do not decide alone.
pub fn fit(points: &[(f64, f64)]) -> Option<Fit> {
    let mut sizes: Vec<f64> = points.iter().map(|(n, _)| *n).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    if sizes.len() < 3 {
        return None;
    }
    let fits: Vec<(Fit, f64)> = Law::ALL.iter().map(|&law| squares(law, points)).collect();
    let best = fits.iter().map(|(_, error)| *error).fold(f64::INFINITY, f64::min);
    fits.into_iter().find(|(_, error)| *error <= 1.02 * best + 1e-6).map(|(fit, _)| fit)
}

/// The least squares of a law, and the mean relative error they leave.
fn squares(law: Law, points: &[(f64, f64)]) -> (Fit, f64) {
    let weight = |y: f64| 1.0 / y.abs().max(1e-9).powi(2);
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
    (Fit { law, a, b, r2 }, (relative / points.len() as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_law_is_known_again() {
        for law in Law::ALL {
            let points: Vec<(f64, f64)> = [2.0, 4.0, 8.0, 16.0, 50.0, 100.0]
                .iter()
                .map(|&n| (n, 3.0 * law.at(n) + 5.0))
                .collect();
            let found = fit(&points).unwrap();
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
        assert_eq!(fit(&points).unwrap().law, Law::Linear);
    }

    #[test]
    fn two_points_follow_any_law() {
        assert_eq!(fit(&[(2.0, 1.0), (4.0, 2.0)]), None);
    }
}
