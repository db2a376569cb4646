//! Helpers for the tests of elections on rings.

use konklave_algorithms::election::{Election, Indication, Request};
use konklave_algorithms::{Algorithm, Facts, Metric};
use konklave_process::{Portable, Process, Rng};
use konklave_sim::{Delay, Pace};
use konklave_testkit::{Case, Seen};

use crate::graphs::subsets;

/// Every arrangement of 0 to n − 1 on a ring, the first fixed: (n − 1)! of them.
pub(crate) fn arrangements(n: u32) -> Vec<Vec<u32>> {
    let mut all = vec![vec![0]];
    for id in 1..n {
        all = all
            .iter()
            .flat_map(|ring| {
                (1..=ring.len()).map(move |at| {
                    let mut longer = ring.clone();
                    longer.insert(at, id);
                    longer
                })
            })
            .collect();
    }
    all
}

/// Every arrangement of rings of these sizes with every set of initiators.
pub(crate) fn every_ring<P: Algorithm + Portable>(
    sizes: std::ops::RangeInclusive<u32>,
    ring: fn(usize) -> Case<P>,
) -> impl Iterator<Item = Case<P>> {
    sizes.flat_map(move |n| {
        arrangements(n).into_iter().flat_map(move |ids| {
            subsets(n).map(move |starters| ring(n as usize).ids(&ids).initiators(&starters))
        })
    })
}

/// Explores each case and finds nothing; how many cases and states there were.
#[track_caller]
pub(crate) fn all_exhausted<P: Algorithm + Portable>(
    cases: impl Iterator<Item = Case<P>>,
) -> (u32, u64) {
    let mut sum = (0, 0);
    for case in cases {
        let found = case.check();
        assert_eq!(found.verdict, "exhausted", "{:?} {:?} {found:?}", case.setup, case.workload);
        sum = (sum.0 + 1, sum.1 + found.states);
    }
    sum
}

/// How many of the cases break a property, and how many there are.
pub(crate) fn violated<P: Algorithm + Portable>(
    cases: impl Iterator<Item = Case<P>>,
) -> (u32, u32) {
    cases.fold((0, 0), |(bad, all), case| {
        (bad + u32::from(case.check().verdict == "violated"), all + 1)
    })
}

/// The fewest and the most messages of these kinds over all arrangements, and the mean to one
/// digit, when all start at once.
pub(crate) fn table<P: Algorithm + Portable>(
    n: u32,
    ring: fn(usize) -> Case<P>,
    kinds: &[&str],
) -> (u64, f64, u64) {
    let count = |ids: &Vec<u32>| -> u64 {
        let seen = ring(n as usize).ids(ids).simulate();
        kinds.iter().map(|kind| seen.well().kind(kind)).sum()
    };
    let counts: Vec<u64> = arrangements(n).iter().map(count).collect();
    let mean = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    (*counts.iter().min().unwrap(), (10.0 * mean).round() / 10.0, *counts.iter().max().unwrap())
}

/// Asserts every formula of the data sheet that applies to this run of constant delay.
#[track_caller]
pub(crate) fn keeps_its_costs<P>(case: &Case<P>, seen: &Seen<P>)
where
    P: Algorithm<Problem = Election> + Process<Request = Request, Indication = Indication>,
{
    let facts = Facts {
        setup: &case.setup,
        initiators: &case.workload.initiators,
        served: &[],
        delay_max: Some(1.0),
        assumptions_hold: true,
        uncontended: false,
        at_once: true,
        elapsed: seen.time,
        undisturbed: true,
        steady: true,
        hold: 0.0,
    };
    for cost in P::sheet(&case.setup).costs {
        let measured = match cost.metric {
            Metric::Messages => Some(seen.sent as f64),
            Metric::Time => seen.summary.time_to_all,
            _ => None,
        };
        if let (Some(bound), Some(measured)) = ((cost.bound)(&facts), measured) {
            let (n, k) = (facts.n(), facts.k());
            assert!(bound.holds(measured), "{} n {n} k {k}: {bound:?} {measured}", cost.formula);
        }
    }
}

/// A random ring with random ids and initiators; all start at once.
pub(crate) fn random_ring<P: Algorithm + Portable>(
    seed: u64,
    ring: fn(usize) -> Case<P>,
) -> Case<P> {
    let mut rng = Rng::new(seed);
    let n = 1 + rng.below(40);
    let ids = random_ids(n, &mut rng);
    let mut starters: Vec<u32> = ids.iter().copied().filter(|_| rng.chance(0.5)).collect();
    if starters.is_empty() {
        starters.push(ids[0]);
    }
    ring(n as usize).ids(&ids).initiators(&starters).config(|c| c.seed = seed)
}

/// The same with random delays and random starts of all processes.
pub(crate) fn restless<P: Algorithm + Portable>(case: Case<P>) -> Case<P> {
    case.config(|c| {
        c.delay = Delay::Exponential(1.0);
        c.think = Pace::Exponential(10.0);
    })
}

/// `n` different ids in random order.
pub(crate) fn random_ids(n: u32, rng: &mut Rng) -> Vec<u32> {
    let mut ids: Vec<u32> = (0..n).map(|i| 7 * i + rng.below(7)).collect();
    rng.shuffle(&mut ids);
    ids
}

/// The highest of the initiators.
pub(crate) fn highest_initiator<P: Algorithm>(
    case: &Case<P>,
) -> Option<konklave_process::ProcessId> {
    case.workload.initiators.iter().copied().max()
}

/// Compares how many cases were explored, and how many states they have.
#[track_caller]
pub(crate) fn same(found: (u32, u64), expected: (u32, u64)) {
    assert_eq!(found, expected);
}
