use konklave_algorithms::election::dolev_klawe_rodeh::DolevKlaweRodeh;
use konklave_process::{ProcessId, Rng};
use konklave_testkit::Case;

use crate::rings::{
    all_exhausted, arrangements, every_ring, highest_initiator, keeps_its_costs, random_ids,
    random_ring, restless, table, violated,
};

fn ring(n: usize) -> Case<DolevKlaweRodeh> {
    Case::directed_ring(n)
}

#[test]
fn over_all_arrangements_the_counts_are_those_of_the_table() {
    let golden = [
        (2, (6, 6.0, 6)),
        (3, (9, 9.0, 9)),
        (4, (12, 14.7, 20)),
        (5, (15, 21.7, 25)),
        (6, (18, 28.4, 30)),
        (7, (21, 34.4, 35)),
        (8, (24, 40.1, 56)),
        (9, (27, 46.0, 63)),
    ];
    for (n, counts) in golden {
        assert_eq!(table(n, ring, &["One", "Two"]), counts, "n = {n}");
        let n = u64::from(n);
        assert_eq!(counts.2, 2 * n * u64::from(n.ilog2()) + n, "the bound is reached");
    }
}

#[test]
fn every_run_of_rings_up_to_five_is_right() {
    assert_eq!(all_exhausted(every_ring(1..=5, ring)), (852, 432_689));
}

#[test]
fn the_count_does_not_depend_on_the_schedule() {
    for n in 1..=5 {
        for ids in arrangements(n) {
            let all = ring(n as usize).ids(&ids).simulate().well().sent as u32;
            // With `join` a process starts before it handles its first message, whichever process began.
            let case = ring(n as usize).ids(&ids).initiators(&[0]).set("join", true);
            let found = case.counting().check();
            assert_eq!((found.verdict, found.messages), ("exhausted", Some((all, all))));
        }
    }
}

#[test]
fn without_fifo_three_of_four_small_rings_fail() {
    let cases = || every_ring(1..=4, ring).map(Case::no_fifo);
    assert_eq!(violated(cases()), (75, 108));
    // If processes ignore that a value overtook another, the election ends without a leader.
    assert_eq!(violated(cases().map(|case| case.judge(&["deadlock"]))), (75, 108));
    ring(2).no_fifo().check().violated("expected inputs", 4);
}

#[test]
fn the_highest_initiator_wins_or_with_join_the_highest_of_all() {
    let case = ring(4).ids(&[4, 3, 2, 1]).initiators(&[3]);
    assert_eq!(case.simulate().well().summary.leader, Some(ProcessId(3)));
    assert_eq!(case.set("join", true).simulate().well().summary.leader, Some(ProcessId(4)));
    assert_eq!(all_exhausted(every_ring(1..=4, ring).map(|c| c.set("join", true))), (108, 18_839));
}

#[test]
fn process_that_detects_the_end_need_not_win() {
    for n in 2..=6 {
        for ids in arrangements(n) {
            let case = ring(n as usize).ids(&ids).mistake("detector-is-leader");
            let leader = case.simulate().summary.leader;
            assert_ne!(leader, Some(ProcessId(n - 1)), "{ids:?}: it never is");
        }
    }
    ring(2).check().exhausted(25);
    ring(2).mistake("detector-is-leader").check().violated("right winner", 10);
}

#[test]
fn a_ring_of_one_needs_no_message_and_a_ring_of_two_eight() {
    assert_eq!(ring(1).simulate().well().sent, 0);
    assert_eq!(ring(2).simulate().well().sent, 6 + 2);
    ring(2).requests(&[2, 2]).simulate().well();
}

#[test]
fn random_rings_keep_the_formulas() {
    for seed in 0..1000 {
        let case = random_ring(seed, ring);
        let seen = case.simulate();
        assert_eq!(seen.well().summary.leader, highest_initiator(&case), "seed {seed}");
        keeps_its_costs(&case, &seen);
        restless(case).simulate().well();
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
