//! Random streams: one for each purpose and node, all from the seed of the run.
//!
//! With one stream for all, a further message of one algorithm would shift every later draw, so two algorithms
//! with the same seed would meet different clients. With streams of their own, client k thinks and holds for the
//! same times under every algorithm, and differences between algorithms are differences between algorithms.

use konklave_process::Rng;

/// The decision that a random number makes. The numbers are part of the meaning of a seed: never change one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// The pause of a client before a request.
    Think = 16,
    /// The time for which a client holds.
    Hold = 17,
    /// The delay of a message, by its sender.
    Delay = 18,
    /// Whether a message is lost, by its sender.
    Loss = 19,
    /// Whether a message arrives twice, by its sender.
    Duplicate = 20,
    /// Receiver and delay of a message of the application, by its sender.
    AppMessage = 21,
    /// The time that a node needs to handle a message.
    Service = 22,
}

/// The random streams of one purpose, one for each node.
#[derive(Clone, Debug, Default)]
pub struct Streams(Vec<Rng>);

impl Streams {
    /// The streams of `n` nodes, for `purpose`, in a run with this seed.
    pub fn new(seed: u64, purpose: Purpose, n: usize) -> Self {
        let all = Rng::new(seed).fork(purpose as u64);
        Self((0..n as u64).map(|place| all.fork(place)).collect())
    }

    /// No streams: for a purpose without chance.
    pub fn none() -> Self {
        Self::default()
    }

    /// The stream of the node at `place`.
    #[inline]
    pub fn at(&mut self, place: usize) -> &mut Rng {
        &mut self.0[place]
    }

    /// Prefetches the stream of the node at `place`.
    #[inline]
    pub(crate) fn prefetch(&self, place: usize) {
        if let Some(rng) = self.0.get(place) {
            konklave_process::prefetch_whole(rng);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_different_purposes_nodes_and_seeds_differ() {
        let mut firsts = std::collections::BTreeSet::new();
        for seed in 0..20 {
            for purpose in [Purpose::Think, Purpose::Hold, Purpose::Delay, Purpose::Loss] {
                let mut streams = Streams::new(seed, purpose, 50);
                firsts.extend((0..50).map(|place| streams.at(place).next_u64()));
            }
        }
        assert_eq!(firsts.len(), 20 * 4 * 50);
    }

    #[test]
    fn draws_of_one_node_leave_other_streams_alone() {
        let draws = |skipped: usize| {
            let mut streams = Streams::new(7, Purpose::Think, 2);
            for _ in 0..skipped {
                streams.at(0).next_u64();
            }
            (0..5).map(|_| streams.at(1).next_u64()).collect::<Vec<_>>()
        };
        assert_eq!(draws(0), draws(99));
    }

    /// Streams that ran in step would make clients ask together.
    #[test]
    fn streams_of_neighbours_are_uncorrelated() {
        let mut streams = Streams::new(1, Purpose::Delay, 2);
        let n = 100_000;
        let product = |_| (streams.at(0).unit() - 0.5) * (streams.at(1).unit() - 0.5);
        let covariance = (0..n).map(product).sum::<f64>() / f64::from(n);
        // Of independent uniform numbers: deviation 1/12 / √n.
        assert!(covariance.abs() < 4.0 / 12.0 / f64::from(n).sqrt(), "{covariance}");
    }
}
