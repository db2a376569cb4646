use konklave_algorithms::election::franklin::Franklin;
use konklave_process::{ProcessId, Rng};
use konklave_testkit::Case;

use crate::long;
use crate::rings::{
    all_exhausted, arrangements, every_ring, highest_initiator, keeps_its_costs, random_ids,
    random_ring, restless, table, violated,
};

fn ring(n: usize) -> Case<Franklin> {
    Case::ring(n)
}

#[test]
fn over_all_arrangements_the_counts_are_those_of_the_table() {
    let golden = [
        (2, (8, 8.0, 8)),
        (3, (12, 12.0, 12)),
        (4, (16, 18.7, 24)),
        (5, (20, 26.7, 30)),
        (6, (24, 34.4, 36)),
        (7, (28, 41.4, 42)),
        (8, (32, 48.1, 64)),
        (9, (36, 55.0, 72)),
    ];
    for (n, counts) in golden {
        assert_eq!(table(n, ring, &["Id"]), counts, "n = {n}");
        assert_eq!(counts.2, 2 * u64::from(n) * u64::from(n.ilog2() + 1), "the bound is reached");
    }
}

#[test]
fn every_run_of_rings_up_to_four_is_right() {
    assert_eq!(all_exhausted(every_ring(1..=4, ring)), (108, 69_843));
}

#[test]
fn every_run_of_some_rings_of_five_is_right() {
    ring(5).check().exhausted(41_290);
    ring(5).ids(&[4, 3, 2, 1, 0]).check().exhausted(41_258);
    ring(5).ids(&[0, 3, 1, 4, 2]).check().exhausted(45_318);
}

#[test]
fn every_run_of_rings_of_five_is_right() {
    if long() {
        assert_eq!(all_exhausted(every_ring(5..=5, ring)).0, 744);
    }
}

#[test]
fn the_count_does_not_depend_on_the_schedule() {
    for n in 1..=4 {
        for ids in arrangements(n) {
            let all = ring(n as usize).ids(&ids).simulate().well().sent as u32;
            // With `join` a process starts before it handles its first message, whichever process began.
            for first in 0..n {
                let case = ring(n as usize).ids(&ids).initiators(&[first]).set("join", true);
                let found = case.counting().check();
                assert_eq!((found.verdict, found.messages), ("exhausted", Some((all, all))));
            }
        }
    }
}

#[test]
fn without_fifo_numbers_must_tell_their_round() {
    let cases = || every_ring(2..=4, ring).map(Case::no_fifo);
    assert_eq!(violated(cases()), (32, 107));
    assert_eq!(all_exhausted(cases().map(|case| case.set("rounds", "told"))), (107, 90_662));
    ring(3).no_fifo().check().violated("deadlock", 15);
}

#[test]
fn the_highest_initiator_wins_or_with_join_the_highest_of_all() {
    let case = Case::<Franklin>::ring(4).ids(&[4, 3, 2, 1]).initiators(&[2, 3]);
    assert_eq!(case.simulate().well().summary.leader, Some(ProcessId(3)));
    assert_eq!(case.set("join", true).simulate().well().summary.leader, Some(ProcessId(4)));
    assert_eq!(all_exhausted(every_ring(1..=3, ring).map(|c| c.set("join", true))), (18, 2_976));
}

#[test]
fn process_that_turns_passive_must_forward_its_queued_messages() {
    ring(3).check().exhausted(620);
    ring(3).mistake("drop-queued").check().violated("deadlock", 11);
}

#[test]
fn the_same_number_from_both_sides_may_be_anothers() {
    ring(2).check().exhausted(41);
    ring(2).mistake("equal-sides").check().violated("one leader at a time", 6);
}

#[test]
fn a_ring_of_one_needs_no_message_and_a_ring_of_two_ten() {
    assert_eq!(ring(1).simulate().well().sent, 0);
    assert_eq!(ring(2).simulate().well().sent, 8 + 2);
    assert_eq!(ring(2).initiators(&[0]).simulate().well().summary.leader, Some(ProcessId(0)));
    ring(2).requests(&[2, 2]).simulate().well();
}

#[test]
fn random_rings_keep_the_formulas() {
    for seed in 0..500 {
        let case = random_ring(seed, ring);
        let seen = case.simulate();
        assert_eq!(seen.well().summary.leader, highest_initiator(&case), "seed {seed}");
        keeps_its_costs(&case, &seen);
        restless(case.clone()).simulate().well();
        restless(case.set("rounds", "told").no_fifo()).simulate().well();
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
