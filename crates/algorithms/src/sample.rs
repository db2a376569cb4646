//! Many times, kept in little space.

use serde::Serialize;

/// Times in ticks: mean and extremes exactly, percentiles from a histogram of 64 · 32 buckets that
/// is never more than 3 % off.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    count: u64,
    sum: u64,
    min: u64,
    max: u64,
    buckets: Vec<u32>,
}

const SUB: u32 = 32;

impl Sample {
    /// Takes note of one.
    pub(crate) fn add(&mut self, ticks: u64) {
        self.min = if self.count == 0 { ticks } else { self.min.min(ticks) };
        self.max = self.max.max(ticks);
        self.count += 1;
        self.sum += ticks;
        let bucket = Self::bucket(ticks);
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
    }

    fn bucket(ticks: u64) -> usize {
        if ticks < u64::from(SUB) {
            return ticks as usize;
        }
        let magnitude = ticks.ilog2() - SUB.ilog2();
        (magnitude * SUB) as usize + (ticks >> magnitude) as usize
    }

    /// The lowest value of a bucket.
    fn floor(bucket: usize) -> u64 {
        let sub = SUB as usize;
        if bucket < 2 * sub {
            return bucket as u64;
        }
        let magnitude = bucket / sub - 1;
        ((bucket - magnitude * sub) as u64) << magnitude
    }

    fn quantile(&self, q: f64) -> u64 {
        let rank = ((self.count as f64 * q).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, &count) in self.buckets.iter().enumerate() {
            seen += u64::from(count);
            if seen >= rank {
                return Self::floor(bucket).clamp(self.min, self.max);
            }
        }
        self.max
    }

    /// The most, in units of T; none of nothing.
    pub(crate) fn max(&self, unit: f64) -> Option<f64> {
        (self.count > 0).then(|| self.max as f64 / unit)
    }

    /// How they spread; none of nothing.
    pub(crate) fn spread(&self, unit: f64) -> Option<Spread> {
        (self.count > 0).then(|| Spread {
            mean: self.sum as f64 / self.count as f64 / unit,
            min: self.min as f64 / unit,
            max: self.max as f64 / unit,
            p50: self.quantile(0.50) as f64 / unit,
            p99: self.quantile(0.99) as f64 / unit,
        })
    }
}

/// How a measure spreads, in units of T.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
    /// The median, within 3 %.
    pub p50: f64,
    /// The 99th percentile, within 3 %.
    pub p99: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_three_percent() {
        let mut sample = Sample::default();
        for ticks in 0..100_000 {
            sample.add(ticks);
        }
        let p99 = sample.quantile(0.99) as f64;
        assert!((p99 - 99_000.0).abs() < 0.03 * 99_000.0, "{p99}");
        assert_eq!((sample.min, sample.max), (0, 99_999));
    }

    #[test]
    fn buckets_and_floors_agree() {
        for ticks in (0..200).chain([1000, 4095, 4096, 1 << 40]) {
            let floor = Sample::floor(Sample::bucket(ticks));
            assert!(floor <= ticks && ticks - floor <= ticks / 32, "{ticks} in bucket of {floor}");
        }
    }
}
