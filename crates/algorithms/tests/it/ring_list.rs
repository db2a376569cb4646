use konklave_algorithms::election::ring_list::RingList;
use konklave_algorithms::election::ring_list::hardened::Hardened;
use konklave_process::{ProcessId, Rng};
use konklave_testkit::Case;

use crate::graphs::subsets;
use crate::long;
use crate::rings::{
    all_exhausted, every_ring, keeps_its_costs, random_ids, random_ring, restless, same,
};

fn ring(n: usize) -> Case<RingList> {
    Case::directed_ring(n)
}

fn hardened(case: Case<RingList>) -> Case<Hardened> {
    case.set("mode", "hardened").synchronous().of()
}

#[test]
fn every_initiator_costs_two_rounds() {
    for n in 1..=8 {
        for starters in subsets(n) {
            let seen = ring(n as usize).initiators(&starters).simulate();
            let all = if n > 1 { 2 * u64::from(n) * starters.len() as u64 } else { 0 };
            assert_eq!(seen.well().sent, all);
        }
    }
}

#[test]
fn every_run_of_rings_up_to_four_is_right_in_any_order_of_messages() {
    for case in every_ring(1..=4, ring) {
        let (n, s) = (case.setup.group.len() as u32, case.workload.initiators.len() as u32);
        for case in [case.clone(), case.no_fifo()] {
            let found = case.counting().check();
            assert_eq!(found.verdict, "exhausted", "{found:?}");
            // A process that learns the outcome before its own start does not start.
            let rounds = if n > 1 { (2 * n, 2 * n * s) } else { (0, 0) };
            assert_eq!(found.messages, Some(rounds));
        }
    }
    same(all_exhausted(every_ring(1..=4, ring)), (108, 110_160));
}

#[test]
fn every_run_of_rings_of_five_by_up_to_three_is_right() {
    // Lists do not extinguish each other: with every further initiator the states multiply.
    if long() {
        let few = |case: &Case<RingList>| case.workload.initiators.len() <= 3;
        assert_eq!(all_exhausted(every_ring(5..=5, ring).filter(few)).0, 600);
    }
}

#[test]
fn every_run_of_a_ring_of_five_by_four_or_all_is_right() {
    if long() {
        for starters in [&[0, 1, 2, 3][..], &[1, 2, 3, 4], &[0, 1, 2, 3, 4]] {
            let case = ring(5).initiators(starters).reduced();
            assert_eq!(case.check().verdict, "exhausted", "{starters:?}");
        }
    }
}

#[test]
fn as_printed_only_one_neighbour_learns_the_result() {
    let case = ring(3).initiators(&[0]);
    case.check().exhausted(8);
    case.mistake("no-forward").check().violated("termination", 5);
}

/// The ring 3 → 1 → 2 of the schedules, in which 2 starts, then 1, and 3 crashes.
fn schedule() -> Case<RingList> {
    ring(3).ids(&[3, 1, 2]).initiators(&[1, 2]).crashes(1, 0)
}

#[test]
fn schedule_l1_an_old_result_overtakes_a_new_one() {
    let case = schedule().judge(&["agreement"]);
    case.check().violated("agreement", 14);
    hardened(case).check().exhausted(620);
}

#[test]
fn schedule_l2_a_dead_winner_is_installed() {
    let case = schedule().judge(&["live leader"]);
    case.check().violated("live leader", 9);
    hardened(case).check().exhausted(620);
    // In the simulator: 3 crashes as soon as it is on the list.
    let case = ring(3).ids(&[3, 1, 2]).initiators(&[1]).fault("crash:3@2.5");
    let textbook = case.simulate();
    assert_eq!(textbook.summary.leader, None, "nobody leads");
    assert!(textbook.violations[0].starts_with("live leader"), "{:?}", textbook.violations);
    let seen = hardened(case).simulate();
    assert_eq!(seen.well().summary.leader, Some(ProcessId(2)));
}

#[test]
fn if_the_first_of_the_list_dies_the_second_closes_the_round() {
    let case = ring(5).initiators(&[0]).fault("crash:0@0.5");
    let seen = case.config(|c| c.detect_after = Some(0.5)).simulate();
    assert_eq!(seen.well().summary.leader, Some(ProcessId(4)));
    assert_eq!(seen.summary.informed, 4);
}

#[test]
fn hardened_every_run_with_a_fault_ends_well() {
    let rings = || every_ring(2..=3, ring).map(hardened);
    same(all_exhausted(every_ring(1..=4, ring).map(hardened)), (108, 7_214));
    same(all_exhausted(rings().map(|c| c.crashes(1, 0))), (17, 8822));
    same(all_exhausted(rings().map(|c| c.crashes(1, 0).no_fifo())), (17, 22_970));
    same(all_exhausted(rings().map(|c| c.crashes(1, 1).synchronous())), (17, 119_376));
    same(all_exhausted(rings().map(|c| c.mishaps(1, 1))), (17, 11_489));
    same(all_exhausted(rings().map(|c| c.mishaps(1, 1).no_fifo())), (17, 32_393));
}

/// All but termination: if the only starter dies unheard, there is no election.
const SAFE: &[&str] = &[
    "one leader at a time",
    "agreement",
    "live leader",
    "deadlock",
    "quiescence",
    "livelock",
    "expected inputs",
];

#[test]
fn hardened_two_faults_do_no_harm() {
    let rings = || every_ring(2..=3, ring).map(|case| hardened(case).judge(SAFE));
    same(all_exhausted(rings().map(|c| c.crashes(2, 0))), (17, 25_804));
    same(all_exhausted(rings().map(|c| c.crashes(1, 0).mishaps(1, 0))), (17, 51_149));
}

#[test]
fn hardened_the_number_of_the_election_must_survive_a_restart() {
    let mut case = hardened(ring(2)).initiators(&[1]).crashes(1, 1).synchronous();
    case.check().exhausted(234);
    case.options.stable_storage = false;
    case.check().violated("one leader at a time", 7);
}

#[test]
fn hardened_one_initiator_costs_what_the_textbook_says() {
    for n in [1, 2, 3, 7, 20] {
        for starter in 0..n as u32 {
            let case: Case<Hardened> = ring(n).initiators(&[starter]).set("mode", "hardened").of();
            keeps_its_costs(&case, &case.simulate());
        }
    }
}

#[test]
fn random_rings_keep_the_formulas() {
    for seed in 0..300 {
        let case = random_ring(seed, ring);
        let seen = case.simulate();
        assert_eq!(seen.well().summary.leader, Some(case.setup.group.highest()), "seed {seed}");
        keeps_its_costs(&case, &seen);
        restless(case).no_fifo().simulate().well();
    }
}

#[test]
fn hardened_random_crashes_restarts_losses_and_copies_are_outlived() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let case = restless(random_ring(seed, ring)).set("mode", "hardened").no_fifo();
        let case: Case<Hardened> = case.of();
        let ids = case.setup.group.members().to_vec();
        let victim = ids[rng.below(ids.len() as u32) as usize].0;
        let at = 1 + rng.below(100);
        let case = case.fault(&format!("crash:{victim}@{at}"));
        let case = match rng.below(2) {
            0 => case,
            _ => case.fault(&format!("restart:{victim}@{}", at + 5 + rng.below(200))),
        };
        let case = case.config(|c| {
            c.loss = 0.02;
            c.duplicate = 0.02;
            c.time_limit = 1e6;
        });
        let seen = case.simulate();
        assert_eq!(seen.ending, konklave_sim::Ending::Quiet, "seed {seed}");
        let only = |v: &String| v.starts_with("termination");
        assert!(seen.violations.iter().all(only), "seed {seed}: {:?}", seen.violations);
    }
}

#[test]
fn ten_thousand_gather_in_one_list() {
    let ids = random_ids(10_000, &mut Rng::new(1));
    let case = ring(10_000).ids(&ids).initiators(&[ids[0]]);
    let seen = case.simulate();
    assert_eq!(
        (seen.well().sent, seen.summary.leader.map(|p| p.0)),
        (20_000, ids.iter().copied().max())
    );
}
