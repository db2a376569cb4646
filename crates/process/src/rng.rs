//! The seeded random generator of hosts, topologies and workloads. Algorithms use `ctx.choose` instead.

/// SplitMix64: the seed determines all numbers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// An independent generator for a part of the work; the same `stream` gives the same generator.
    pub fn fork(&self, stream: u64) -> Self {
        let mut mixed = Self(self.0 ^ stream.wrapping_mul(0xd134_2543_de82_ef95));
        Self(mixed.next_u64())
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 when `bound` is 0.
    #[inline]
    pub fn below(&mut self, bound: u32) -> u32 {
        (((self.next_u64() >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// A number of [0, 1).
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with probability `p`.
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        p > 0.0 && self.unit() < p
    }

    /// An exponentially distributed number with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }

    /// A normally distributed number with mean 0 and deviation 1 (Box–Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (2.0 * self.exponential()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Puts `items` in random order (Fisher–Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u32 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_gives_the_same_numbers_and_streams_differ() {
        let draws = |mut rng: Rng| (0..4).map(|_| rng.below(1000)).collect::<Vec<_>>();
        assert_eq!(draws(Rng::new(7)), draws(Rng::new(7)));
        assert_ne!(draws(Rng::new(7)), draws(Rng::new(8)));
        assert_ne!(draws(Rng::new(7).fork(1)), draws(Rng::new(7).fork(2)));
    }

    #[test]
    fn distributions_have_their_means() {
        let mut rng = Rng::new(1);
        let n = 100_000;
        let mean = |f: &mut dyn FnMut() -> f64| (0..n).map(|_| f()).sum::<f64>() / f64::from(n);
        assert!((mean(&mut || rng.exponential()) - 1.0).abs() < 0.02);
        assert!(mean(&mut || rng.normal()).abs() < 0.02);
        assert!((mean(&mut || f64::from(rng.below(11))) - 5.0).abs() < 0.05);
    }
}
