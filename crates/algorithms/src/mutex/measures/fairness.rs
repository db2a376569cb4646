//! Fairness between clients.

use serde::Serialize;

/// Jain's index of how clients fare: 1 if all fare alike, 1/n if one has everything.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Fairness {
    /// Of the mean waiting times of the clients.
    pub waits: Option<f64>,
    /// Of the entries of the clients, each divided by its requests.
    pub entries: Option<f64>,
}

/// (Σx)² / (k Σx²) of k values; none if all are 0.
pub(super) fn jain(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut k, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for x in values {
        (k, sum, squares) = (k + 1.0, sum + x, squares + x * x);
    }
    (squares > 0.0).then(|| sum * sum / (k * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index_goes_from_all_alike_to_one_alone() {
        let index = |values: &[f64]| jain(values.iter().copied());
        assert_eq!(index(&[3.0, 3.0, 3.0]), Some(1.0));
        assert_eq!(index(&[0.0, 0.0, 0.0, 8.0]), Some(0.25));
        // The example of Jain, Chiu and Hawe: twice as much for half of them.
        assert_eq!(index(&[1.0, 1.0, 2.0, 2.0]), Some(0.9));
        assert_eq!((index(&[]), index(&[0.0])), (None, None));
    }
}
