//! From one to the next, and what leading means: formulas and measures of locks, groups and elections.

use konklave_algorithms::election::chang_roberts::ChangRoberts;
use konklave_algorithms::election::invitation::Invitation;
use konklave_algorithms::mutex::cao_singhal::CaoSinghal;
use konklave_algorithms::mutex::maekawa::Maekawa;
use konklave_algorithms::mutex::sanders::Sanders;
use konklave_algorithms::mutex::singhal::Singhal;
use konklave_algorithms::mutex::voting::Voting;
use konklave_algorithms::{Algorithm, Facts, Metric, Problem, mutex};
use konklave_process::Portable;
use konklave_sim::{Delay, Pace};
use konklave_testkit::Case;

use super::{busy, elects, locks, uneven};

/// The most that the first formula for the delay from one to the next allows in a run of `case`.
fn promised<P>(case: &Case<P>) -> Option<f64>
where
    P: Algorithm<Problem: Problem<P, Summary = mutex::Summary>> + Portable,
{
    let summary = case.simulate().summary;
    let facts = Facts {
        setup: &case.setup,
        initiators: &[],
        served: &summary.entries_per_node,
        delay_max: case.config.delay.longest(),
        assumptions_hold: true,
        uncontended: false,
        at_once: case.config.think == Pace::Constant(0.0),
        elapsed: 0.0,
        undisturbed: true,
        steady: case.config.delay.is_constant(),
        hold: case.config.hold.least(),
    };
    let mut costs = P::SHEET.costs.iter().filter(|cost| cost.metric == Metric::SyncDelay);
    costs.find_map(|cost| (cost.bound)(&facts)).map(|bound| bound.limit())
}

/// Each process requests the lock again at once, and stays inside for so long.
fn all<P: Algorithm + Portable>(n: usize, hold: f64) -> Case<P> {
    let case = Case::<P>::complete(n).requests(&vec![4; n]);
    case.config(|c| (c.think, c.hold) = (Pace::Constant(0.0), Pace::Constant(hold)))
}

fn is_promised<P>(settled: impl Fn(usize) -> f64, unsettled: impl Fn(usize) -> f64)
where
    P: Algorithm<Problem: Problem<P, Summary = mutex::Summary>> + Portable,
{
    for n in [1, 2, 3, 4, 5, 7, 9, 13] {
        let patient = all::<P>(n, 2.0 * n as f64 + 2.0);
        assert_eq!(promised(&patient), Some(settled(n)), "n = {n}");
        locks(&patient);
        let hasty = all::<P>(n, 0.0);
        assert_eq!(promised(&hasty), Some(4.0), "n = {n}");
        for seed in 0..10 {
            let hasty = uneven(hasty.clone(), seed);
            locks(&hasty);
            locks(&hasty.no_fifo());
            let busy = busy(Case::<P>::complete(n), seed);
            assert_eq!(promised(&busy), Some(unsettled(n) * 1.8), "n = {n}");
            locks(&busy);
        }
        // A delay without a limit has no formula.
        let endless = hasty.config(|c| c.delay = Delay::Exponential(1.0));
        assert_eq!(promised(&endless), None, "n = {n}");
    }
}

#[test]
fn the_locks_of_arbiters_go_from_one_to_the_next_in_time() {
    let each = |n: usize| 4.0 * n as f64;
    is_promised::<Maekawa>(|_| 2.0, each);
    is_promised::<Voting>(|_| 2.0, each);
    is_promised::<CaoSinghal>(|_| 1.0, each);
    // Alone, Sanders's first informs only itself.
    is_promised::<Sanders>(|n| if n < 3 { 1.0 } else { 2.0 }, each);
}

#[test]
fn singhals_token_goes_on_in_time() {
    is_promised::<Singhal>(|_| 1.0, |_| 4.0);
}

#[test]
fn a_number_goes_round_a_ring_three_times_at_most() {
    for n in 1..=9_u32 {
        for first in 0..n {
            for seed in 0..3 {
                let case = Case::<ChangRoberts>::directed_ring(n as usize);
                let one = uneven(case.clone().initiators(&[first]), seed);
                let (applied, seen) = elects(&one);
                assert!(applied >= 2 && seen.well().summary.time_to_all.is_some(), "n = {n}");
                elects(&uneven(case, seed));
            }
        }
    }
}

#[test]
fn leader_of_itself_alone_does_not_count_as_the_leader() {
    for n in [1, 2, 5] {
        let case = Case::<Invitation>::complete(n).config(|c| c.time_limit = 200.0);
        let summary = case.simulate().summary;
        // At first each process leads a group of its own.
        let (one, all) = (summary.time_to_leader, summary.time_to_all);
        assert_eq!(one == Some(0.0), n == 1, "{summary:?}");
        assert!(one.is_some() && one <= all, "{summary:?}");
        assert_eq!(summary.agreeing, n, "{summary:?}");
    }
    // If the processes still disagree in the end, there is no time at which one began to lead for good.
    let cut = Case::<Invitation>::complete(5).config(|c| c.time_limit = 2.0);
    let summary = cut.simulate().summary;
    assert_eq!((summary.time_to_leader, summary.agreeing), (None, 0), "{summary:?}");
}
