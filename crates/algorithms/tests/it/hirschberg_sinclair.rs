use konklave_algorithms::election::hirschberg_sinclair::HirschbergSinclair;
use konklave_process::{ProcessId, Rng};
use konklave_testkit::Case;

use crate::long;
use crate::rings::{
    all_exhausted, every_ring, highest_initiator, keeps_its_costs, random_ids, random_ring,
    restless, table, violated,
};

fn ring(n: usize) -> Case<HirschbergSinclair> {
    Case::ring(n)
}

/// The 77 cases of the spec: all of two and three, and of four with at most two initiators.
fn small() -> impl Iterator<Item = Case<HirschbergSinclair>> {
    every_ring(2..=4, ring)
        .filter(|case| case.setup.group.len() < 4 || case.workload.initiators.len() <= 2)
}

#[test]
fn over_all_arrangements_the_counts_are_those_of_the_table() {
    let golden = [
        (2, 10, 10),
        (3, 23, 23),
        (4, 28, 32),
        (5, 49, 55),
        (6, 54, 68),
        (7, 59, 78),
        (8, 64, 89),
        (9, 101, 134),
    ];
    for (n, least, most) in golden {
        let (min, _, max) = table(n, ring, &["Probe", "Reply"]);
        assert_eq!((min, max), (least, most), "n = {n}");
    }
}

#[test]
fn every_run_of_rings_up_to_four_is_right() {
    assert_eq!(all_exhausted(every_ring(1..=4, ring)), (108, 243_060));
}

#[test]
fn every_run_of_rings_of_five_is_right() {
    if long() {
        assert_eq!(all_exhausted(every_ring(5..=5, ring)).0, 744);
    }
}

#[test]
fn the_order_of_messages_does_not_matter() {
    assert_eq!(all_exhausted(small().map(Case::no_fifo)), (77, 59_113));
}

#[test]
fn without_the_relay_lock_there_are_two_leaders_whenever_two_start() {
    let judged = || small().map(|case| case.judge(&["one leader at a time"]));
    assert_eq!(violated(judged()), (0, 77));
    assert_eq!(violated(judged().map(|case| case.mistake("no-relay-lock"))), (45, 77));
    let two = ring(2).judge(&["one leader at a time"]);
    two.check().exhausted(69);
    two.mistake("no-relay-lock").check().violated("one leader at a time", 17);
}

#[test]
fn the_highest_initiator_wins_or_with_join_the_highest_of_all() {
    let case = ring(4).ids(&[4, 3, 2, 1]).initiators(&[2, 3]);
    assert_eq!(case.simulate().well().summary.leader, Some(ProcessId(3)));
    assert_eq!(case.set("join", true).simulate().well().summary.leader, Some(ProcessId(4)));
    assert_eq!(all_exhausted(every_ring(1..=3, ring).map(|c| c.set("join", true))), (18, 6_924));
}

#[test]
fn a_ring_of_one_needs_no_message_and_a_ring_of_two_twelve() {
    assert_eq!(ring(1).simulate().well().sent, 0);
    assert_eq!(ring(2).simulate().well().sent, 10 + 2);
    ring(2).requests(&[2, 2]).simulate().well();
}

#[test]
fn random_rings_keep_the_formulas() {
    for seed in 0..500 {
        let case = random_ring(seed, ring);
        let seen = case.simulate();
        assert_eq!(seen.well().summary.leader, highest_initiator(&case), "seed {seed}");
        keeps_its_costs(&case, &seen);
        restless(case.no_fifo()).simulate().well();
    }
}

#[test]
fn a_hundred_thousand_elect_their_highest() {
    let ids = random_ids(100_000, &mut Rng::new(1));
    let case = ring(100_000).ids(&ids);
    let seen = case.simulate();
    assert_eq!(seen.well().summary.leader, highest_initiator(&case));
    keeps_its_costs(&case, &seen);
}
