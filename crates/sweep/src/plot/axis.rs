//! Axes: from values to places, with round numbers at their ticks.

/// An axis from `low` to `high`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Axis {
    pub(super) low: f64,
    pub(super) high: f64,
    log: bool,
}

impl Axis {
    /// The axis that shows all these spans. A linear axis begins at 0, unless the values are far from it and `tight`.
    pub(super) fn over(
        spans: impl Iterator<Item = (f64, f64)>,
        log: bool,
        tight: bool,
    ) -> Result<Self, String> {
        let (low, high) = spans.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (a, b)| {
            (low.min(a), high.max(b))
        });
        if log {
            if low <= 0.0 {
                return Err("a logarithmic axis needs values above 0".into());
            }
            let room = if high > low { (high / low).powf(0.05) } else { 1.5 };
            return Ok(Self { low: low / room, high: high * room, log });
        }
        if tight && low > 0.5 * high {
            let room = if high > low { 0.06 * (high - low) } else { 0.1 * high.abs().max(1.0) };
            return Ok(Self { low: low - room, high: high + room, log });
        }
        let room = 0.06 * (high.max(0.0) - low.min(0.0)).max(1e-9);
        let low = if low < 0.0 { low - room } else { 0.0 };
        let high = if high > 0.0 { high + room } else { room };
        Ok(Self { low, high, log })
    }

    /// Where `x` is, from 0 to 1; values outside are at the edge.
    pub(super) fn place(&self, x: f64) -> f64 {
        let part = match self.log {
            true => (x.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
            false => (x - self.low) / (self.high - self.low),
        };
        part.clamp(0.0, 1.0)
    }

    /// Round numbers along the axis, at most `most`.
    pub(super) fn ticks(&self, most: usize) -> Vec<f64> {
        let steps: Vec<Vec<f64>> = match self.log {
            true => vec![
                self.decades(&[1.0, 2.0, 5.0]),
                self.decades(&[1.0, 3.0]),
                self.decades(&[1.0]),
            ],
            false => Vec::new(),
        };
        if let Some(ticks) = steps.into_iter().find(|ticks| (2..=most).contains(&ticks.len())) {
            return ticks;
        }
        if self.log && self.high / self.low > 100.0 {
            let decades = self.decades(&[1.0]);
            let each = decades.len().div_ceil(most.max(1)).max(1);
            return decades.into_iter().step_by(each).collect();
        }
        self.linear(most)
    }

    fn decades(&self, digits: &[f64]) -> Vec<f64> {
        let first = self.low.log10().floor() as i32;
        let last = self.high.log10().ceil() as i32;
        let all = (first..=last).flat_map(|e| digits.iter().map(move |d| d * 10f64.powi(e)));
        all.filter(|x| (self.low..=self.high).contains(x)).collect()
    }

    fn linear(&self, most: usize) -> Vec<f64> {
        let rough = (self.high - self.low) / most.max(1) as f64;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|d| d * power).into_iter().find(|s| *s >= rough);
        let step = step.unwrap_or(rough);
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        (first..=last).map(|i| i as f64 * step).collect()
    }
}

/// A number for a tick.
pub(super) fn label(x: f64) -> String {
    let size = x.abs();
    if size >= 1e6 || (size < 1e-3 && size > 0.0) {
        let exponent = size.log10().floor();
        let digits = format!("{:.2}", x / 10f64.powf(exponent));
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        return format!("{digits}e{exponent}");
    }
    let text = format!("{x:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(low: f64, high: f64, log: bool) -> Axis {
        Axis { low, high, log }
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(axis(0.0, 10.3, false).ticks(6), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(axis(0.0, 0.023, false).ticks(5).len(), 5);
        assert_eq!(axis(0.9, 11.0, true).ticks(6), [1.0, 2.0, 5.0, 10.0]);
        assert_eq!(axis(0.9, 1.1e4, true).ticks(6), [1.0, 10.0, 100.0, 1000.0, 1e4]);
        for log in [false, true] {
            for high in [1.001, 1.5, 9.0, 77.0, 1e5, 1e12] {
                let ticks = axis(1.0, high, log).ticks(7);
                assert!((1..=8).contains(&ticks.len()), "{log} {high}: {ticks:?}");
                // Beside 10¹², 0 and 1 are the same place.
                assert!(
                    ticks.iter().all(|t| (0.99 - high / 1e9..=high * 1.01).contains(t)),
                    "{high}: {ticks:?}"
                );
            }
        }
    }

    #[test]
    fn values_have_their_places() {
        let linear = Axis::over([(2.0, 3.0), (0.0, 10.0)].into_iter(), false, false).unwrap();
        assert!(linear.low == 0.0 && linear.high > 10.0 && linear.place(0.0) == 0.0);
        let log = Axis::over([(1.0, 100.0)].into_iter(), true, false).unwrap();
        assert!((log.place(10.0) - 0.5).abs() < 1e-9 && log.place(-1.0) == 0.0);
        assert!(Axis::over([(0.0, 1.0)].into_iter(), true, false).is_err());
        let one = Axis::over([(5.0, 5.0)].into_iter(), false, true).unwrap();
        assert!((one.place(5.0) - 0.5).abs() < 0.01);
    }

    #[test]
    fn labels_are_short() {
        for (x, text) in [(0.0, "0"), (2.5, "2.5"), (1200.0, "1200"), (3e7, "3e7"), (2e-5, "2e-5")]
        {
            assert_eq!(label(x), text);
        }
    }
}
