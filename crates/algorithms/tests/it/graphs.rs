//! Checks of one algorithm on many small graphs.

use std::collections::BTreeMap;

use konklave_algorithms::Algorithm;
use konklave_process::{Portable, ProcessId, Rng, Topology};
use konklave_sim::Delay;
use konklave_testkit::Case;

pub(crate) use crate::long;

/// All nonempty sets of 0 to n − 1.
pub(crate) fn subsets(n: u32) -> impl Iterator<Item = Vec<u32>> {
    (1u32..1 << n).map(move |set| (0..n).filter(|i| set >> i & 1 == 1).collect())
}

/// The totals of many checks.
#[derive(Debug, Default)]
pub(crate) struct Swept {
    pub(crate) cases: u32,
    pub(crate) states: u64,
    /// The fewest and the most messages, without the final flood, by edges and initiators.
    pub(crate) messages: BTreeMap<(usize, usize), (u32, u32)>,
}

impl Swept {
    /// The number of cases, and of states of all of them.
    pub(crate) fn size(&self) -> (u32, u64) {
        (self.cases, self.states)
    }
}

/// Checks every run on every connected graph of `n` nodes with every set of initiators, where
/// the numbers of edges and of initiators fit.
pub(crate) fn sweep<P: Algorithm + Portable>(
    n: usize,
    fifo: bool,
    counting: bool,
    fits: impl Fn(usize, usize) -> bool,
) -> Swept {
    let mut swept = Swept::default();
    for graph in Topology::all_connected(n) {
        let m = graph.edges();
        for initiators in subsets(n as u32).filter(|initiators| fits(m, initiators.len())) {
            let case = Case::<P>::on(graph.clone()).initiators(&initiators);
            let case = if fifo { case } else { case.no_fifo() };
            let found = if counting { case.counting() } else { case }.check();
            assert_eq!(found.verdict, "exhausted", "{} {initiators:?} {found:?}", graph.name);
            swept.cases += 1;
            swept.states += found.states;
            if let Some((least, most)) = found.messages.filter(|_| counting) {
                let flood = (2 * m + 1 - n) as u32;
                let entry = swept.messages.entry((m, initiators.len())).or_insert((u32::MAX, 0));
                *entry = (entry.0.min(least - flood), entry.1.max(most - flood));
            }
        }
    }
    swept
}

/// A connected graph by chance, with ids, initiators and delays by chance.
pub(crate) fn by_chance<P: Algorithm + Portable>(seed: u64, most: u32) -> Case<P> {
    let mut rng = Rng::new(seed);
    let n = 1 + rng.below(most) as usize;
    let m = n - 1 + rng.below((n * (n - 1) / 2 - (n - 1)).min(3 * n) as u32 + 1) as usize;
    let graph = Topology::random_graph(n, m, &mut rng).unwrap();
    let mut ids: Vec<u32> = (0..n as u32).map(|i| 5 * i + rng.below(5)).collect();
    rng.shuffle(&mut ids);
    let k = 1 + rng.below(n as u32) as usize;
    let case = Case::<P>::on(graph).ids(&ids).initiators(&ids[..k]);
    let case = if seed.is_multiple_of(2) { case } else { case.no_fifo() };
    case.config(|c| {
        c.seed = seed;
        c.delay =
            if seed.is_multiple_of(3) { Delay::Uniform(0.1, 2.0) } else { Delay::Exponential(1.0) };
    })
}

/// The highest initiator of `case`.
pub(crate) fn strongest<P>(case: &Case<P>) -> Option<ProcessId> {
    case.workload.initiators.iter().copied().max()
}
