//! Formulas of data sheets that have a condition, held against runs that meet it and runs that do not.

mod hand_over;

use konklave_algorithms::election::bully::{Bully, hardened};
use konklave_algorithms::election::bully_1982::Bully1982;
use konklave_algorithms::election::firewire::FireWire;
use konklave_algorithms::election::invitation::Invitation;
use konklave_algorithms::election::quorum::Quorum;
use konklave_algorithms::mutex::ricart_agrawala_acknowledged::RicartAgrawalaAcknowledged;
use konklave_algorithms::mutex::singhal::Singhal;
use konklave_algorithms::mutex::token_ring::TokenRing;
use konklave_algorithms::{Algorithm, Facts, Metric, Problem, election, mutex};
use konklave_process::{Portable, ProcessId, Rng, Topology};
use konklave_sim::{Delay, Pace};
use konklave_testkit::{Case, Seen};

/// Holds every formula that applies against `measured`; answers how many did.
#[track_caller]
fn held<P: Algorithm>(
    case: &Case<P>,
    served: &[(ProcessId, u64)],
    elapsed: f64,
    measured: impl Fn(Metric) -> Option<f64>,
) -> usize {
    let config = &case.config;
    let askers = case.workload.requests.iter().filter(|&&times| times > 0).count();
    let facts = Facts {
        setup: &case.setup,
        initiators: &case.workload.initiators,
        served,
        delay_max: config.delay.longest(),
        assumptions_hold: true,
        uncontended: askers <= 1 && (config.fifo || config.delay.is_constant()),
        at_once: config.think == Pace::Constant(0.0),
        elapsed,
        undisturbed: config.faults.is_empty(),
        steady: config.delay.is_constant(),
        hold: config.hold.least(),
    };
    let mut applied = 0;
    for cost in P::SHEET.costs {
        let (Some(bound), Some(measured)) = ((cost.bound)(&facts), measured(cost.metric)) else {
            continue;
        };
        assert!(bound.holds(measured), "{}: {measured}, not {bound:?}", cost.formula);
        applied += 1;
    }
    applied
}

#[track_caller]
fn elects<P>(case: &Case<P>) -> (usize, Seen<P>)
where
    P: Algorithm<Problem: Problem<P, Summary = election::Summary>> + Portable,
{
    let seen = case.simulate();
    let applied = held(case, &[], seen.time, |metric| match metric {
        Metric::Messages => Some(seen.sent as f64),
        Metric::Time => seen.summary.time_to_all,
        _ => None,
    });
    (applied, seen)
}

#[track_caller]
fn locks<P>(case: &Case<P>) -> usize
where
    P: Algorithm<Problem: Problem<P, Summary = mutex::Summary>> + Portable,
{
    let seen = case.simulate();
    let summary = &seen.well().summary;
    let alone = case.workload.requests.iter().filter(|&&times| times > 0).count() <= 1;
    held(case, &summary.entries_per_node, seen.time, |metric| match metric {
        Metric::Messages => Some(seen.sent as f64),
        Metric::MessagesPerEntry => Some(seen.sent as f64 / summary.entries as f64),
        Metric::SyncDelay => summary.sync_delay.map(|spread| spread.max),
        Metric::EntryDelay => summary.wait.filter(|_| alone).map(|spread| spread.max),
        _ => None,
    })
}

fn uneven<P: Algorithm + Portable>(case: Case<P>, seed: u64) -> Case<P> {
    case.config(|c| (c.seed, c.delay) = (seed, Delay::Uniform(0.2, 1.8)))
}

/// Each process makes up to three requests at random times, and stays inside for a while.
fn busy<P: Algorithm + Portable>(case: Case<P>, seed: u64) -> Case<P> {
    let mut rng = Rng::new(seed);
    let n = case.setup.group.len();
    let requests: Vec<u32> = (0..n).map(|i| rng.below(4).max(u32::from(i == 0))).collect();
    let case = uneven(case.requests(&requests), seed);
    let case = case.config(|c| {
        (c.think, c.hold) = (Pace::Exponential(5.0), Pace::Uniform(0.0, 2.0));
    });
    if rng.chance(0.5) { case.no_fifo() } else { case }
}

/// Only the process at `place` asks, so often.
fn only<P: Algorithm + Portable>(case: Case<P>, place: usize, times: u32) -> Case<P> {
    let n = case.setup.group.len();
    case.requests(&(0..n).map(|p| if p == place { times } else { 0 }).collect::<Vec<u32>>())
}

#[test]
fn of_bullies_that_start_at_once_the_lowest_decides_the_cost() {
    bullies_keep_their_costs(Case::<Bully>::complete);
    bullies_keep_their_costs(|n| Case::<hardened::Hardened>::complete(n).set("mode", "hardened"));
}

fn bullies_keep_their_costs<P>(group: impl Fn(usize) -> Case<P>)
where
    P: Algorithm<Problem: Problem<P, Summary = election::Summary>> + Portable,
{
    for n in 2..=6 {
        for set in 1..1_u32 << (n - 1) {
            let starters: Vec<u32> = (0..n - 1).filter(|p| set >> p & 1 == 1).collect();
            let case = group(n as usize).initiators(&starters).down(&[n - 1]);
            for seed in 0..4 {
                let case = if seed == 0 { case.clone() } else { uneven(case.clone(), seed) };
                assert_eq!(elects(&case).0, 3, "{n} {starters:?}");
            }
            // Late detectors may open the election again.
            let late = case.config(|c| c.think = Pace::Exponential(20.0));
            assert_eq!(elects(&late).0, if starters.len() == 1 { 3 } else { 0 });
        }
    }
    for n in 1..=6 {
        let case = group(n).initiators(&[n as u32 - 1]);
        assert_eq!(elects(&uneven(case, 1)).0, 2);
    }
}

#[test]
fn the_bully_of_1982_calls_each_three_times_then_checks() {
    for (n, time) in [(1, 100.0), (2, 3.0), (2, 90.0), (5, 15.0), (5, 300.0), (20, 900.0)] {
        let case = Case::<Bully1982>::complete(n).initiators(&[n as u32 - 1]);
        let case = case.config(|c| c.time_limit = time);
        assert_eq!(elects(&case).0, 2, "{n} {time}");
        assert_eq!(elects(&uneven(case, 1)).0, 2, "{n} {time}");
    }
    let lower = Case::<Bully1982>::complete(3).initiators(&[0]).config(|c| c.time_limit = 300.0);
    assert_eq!(elects(&lower).0, 0);
}

#[test]
fn a_bus_settles_by_chance_within_rounds_that_nobody_will_see() {
    let mut rounds = [0; 4];
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let n = 1 + rng.below(12) as usize;
        let case = Case::<FireWire>::on(Topology::random_tree(n, &mut rng));
        let case = case.config(|c| (c.seed, c.delay) = (seed, Delay::Uniform(0.5, 1.5)));
        let (applied, seen) = elects(&case);
        assert_eq!(applied, 1, "seed {seed}");
        let extra = seen.well().sent as usize - 4 * (n - 1);
        assert_eq!(extra % 2, 0, "seed {seed}");
        rounds[(extra / 2).min(3)] += 1;
    }
    assert!(rounds.iter().all(|times| *times > 0), "{rounds:?}");
    // A short wait and two such delays may outlast a long one.
    let slow = Case::<FireWire>::on(Topology::path(2)).config(|c| c.delay = Delay::Constant(2.0));
    assert_eq!(elects(&slow).0, 0);
}

#[test]
fn costs_of_an_endless_run_grow_with_its_time() {
    for time in [2.0, 7.0, 13.0, 22.0, 38.0, 41.0, 100.0, 507.0] {
        for n in [1, 2, 3, 7, 20] {
            for seed in 0..5 {
                let in_time = |c: &mut konklave_sim::Config| c.time_limit = time;
                let quorum = Case::<Quorum>::complete(n).initiators(&[n as u32 / 2]);
                let (applied, seen) = elects(&uneven(quorum, seed).config(in_time));
                let informed = seen.summary.time_to_all.is_some();
                assert_eq!(applied, 1 + usize::from(informed), "n = {n}, until {time}");
                let invitation = uneven(Case::<Invitation>::complete(n), seed).config(in_time);
                assert_eq!(elects(&invitation).0, 2, "n = {n}, until {time}");
            }
        }
    }
    let rivals = Case::<Quorum>::complete(5).config(|c| c.time_limit = 50.0);
    assert_eq!(elects(&rivals).0, 0);
}

#[test]
fn singhals_lone_asker_climbs_the_staircase_once() {
    for n in 1..=13 {
        for place in 0..n {
            for times in 1..=3 {
                let case = only(Case::<Singhal>::complete(n), place, times);
                assert_eq!(locks(&uneven(case, 1)), 3, "{place} of {n}, {times} times");
            }
        }
    }
    for seed in 0..300 {
        assert!(locks(&busy(Case::<Singhal>::complete(2 + seed as usize % 6), seed)) >= 1);
    }
}

#[test]
fn a_token_that_parks_goes_round_once_more_for_each_who_was_called() {
    for n in 1..=8 {
        for place in 0..n {
            let case = only(Case::<TokenRing>::directed_ring(n), place, 3);
            assert_eq!(locks(&uneven(case, 1)), 3, "{place} of {n}");
        }
    }
    for seed in 0..300 {
        let case = Case::<TokenRing>::directed_ring(2 + seed as usize % 9);
        assert!(locks(&busy(case, seed)) >= 1, "seed {seed}");
    }
}

#[test]
fn acknowledgements_cost_nothing_while_only_one_asks() {
    for n in 1..=8 {
        let case = only(Case::<RicartAgrawalaAcknowledged>::complete(n), n - 1, 3);
        assert_eq!(locks(&uneven(case.clone(), 1)), 2, "n = {n}");
        // A process that takes live processes for crashed may be wrong; its costs have no bound.
        let hasty = case.set("timeout", 1).set("model", "asynchronous");
        assert_eq!(locks(&uneven(hasty, 1)), 0, "n = {n}");
    }
    for seed in 0..200 {
        locks(&busy(Case::<RicartAgrawalaAcknowledged>::complete(2 + seed as usize % 5), seed));
    }
}
