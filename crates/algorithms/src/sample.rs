//! Samples of times in constant space.

use serde::Serialize;

/// A sample of times in ticks. Mean and extremes are exact. Percentiles come from a histogram of
/// 64 · 32 buckets: each is the mean of its bucket, at most 3 % off, and exact if all times of the
/// bucket are equal.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    count: u64,
    sum: u64,
    min: u64,
    max: u64,
    buckets: Vec<Bucket>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    count: u64,
    sum: u64,
}

const SUB: u32 = 32;

impl Sample {
    /// Adds a time.
    pub fn add(&mut self, ticks: u64) {
        self.min = if self.count == 0 { ticks } else { self.min.min(ticks) };
        self.max = self.max.max(ticks);
        self.count += 1;
        self.sum += ticks;
        let bucket = Self::bucket(ticks);
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, Bucket::default());
        }
        let bucket = &mut self.buckets[bucket];
        bucket.count += 1;
        bucket.sum += ticks;
    }

    fn bucket(ticks: u64) -> usize {
        if ticks < u64::from(SUB) {
            return ticks as usize;
        }
        let magnitude = ticks.ilog2() - SUB.ilog2();
        (magnitude * SUB) as usize + (ticks >> magnitude) as usize
    }

    fn quantile(&self, q: f64) -> u64 {
        let rank = ((self.count as f64 * q).ceil() as u64).max(1);
        let mut seen = 0;
        for bucket in &self.buckets {
            seen += bucket.count;
            if seen >= rank {
                return bucket.sum / bucket.count;
            }
        }
        self.max
    }

    /// The maximum, in units of T; none for an empty sample.
    pub fn max(&self, unit: f64) -> Option<f64> {
        (self.count > 0).then(|| self.max as f64 / unit)
    }

    /// The distribution; none for an empty sample.
    pub fn spread(&self, unit: f64) -> Option<Spread> {
        (self.count > 0).then(|| Spread {
            count: self.count,
            mean: self.sum as f64 / self.count as f64 / unit,
            min: self.min as f64 / unit,
            max: self.max as f64 / unit,
            p50: self.quantile(0.50) as f64 / unit,
            p99: self.quantile(0.99) as f64 / unit,
        })
    }
}

/// The distribution of a measure, in units of T.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Spread {
    /// The number of measurements.
    pub count: u64,
    /// The mean.
    pub mean: f64,
    /// The minimum.
    pub min: f64,
    /// The maximum.
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
    fn times_that_are_alike_have_exact_percentiles() {
        let mut sample = Sample::default();
        for ticks in [1000, 1000, 1000, 77_777] {
            sample.add(ticks);
        }
        assert_eq!((sample.quantile(0.5), sample.quantile(0.99)), (1000, 77_777));
    }

    #[test]
    fn the_times_of_a_bucket_are_near_each_other() {
        let mut first = 0;
        for ticks in 0..100_000 {
            if Sample::bucket(ticks) != Sample::bucket(first) {
                assert_eq!(Sample::bucket(ticks), Sample::bucket(first) + 1, "{ticks}");
                first = ticks;
            }
            assert!(ticks - first <= first / 32, "{ticks} with {first}");
        }
    }
}
