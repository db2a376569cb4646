use konklave_algorithms::election::chang_roberts::ChangRoberts;
use konklave_algorithms::election::chang_roberts::hardened::Hardened;
use konklave_process::{ProcessId, Rng};
use konklave_testkit::Case;

use crate::rings::{
    all_exhausted, arrangements, every_ring, highest_initiator, keeps_its_costs, random_ids,
    random_ring, restless, same,
};

fn ring(n: usize) -> Case<ChangRoberts> {
    Case::directed_ring(n)
}

fn hardened(case: Case<ChangRoberts>) -> Case<Hardened> {
    case.set("mode", "hardened").synchronous().of()
}

#[test]
fn one_initiator_costs_its_way_to_the_maximum_and_two_rounds() {
    for n in 2..=5 {
        for ring in arrangements(n) {
            for (place, &starter) in ring.iter().enumerate() {
                let highest = ring.iter().position(|&id| id == n - 1).unwrap();
                let way = (highest + n as usize - place) % n as usize;
                let case = Case::<ChangRoberts>::directed_ring(n as usize).ids(&ring);
                let found = case.initiators(&[starter]).counting().check();
                let exact = way as u32 + 2 * n;
                assert_eq!((found.verdict, found.messages), ("exhausted", Some((exact, exact))));
            }
        }
    }
}

#[test]
fn when_all_start_the_averages_are_those_of_the_formula() {
    // n · H_n proposals on average over all arrangements, and n to tell the ring.
    for n in 2..=9 {
        let average: f64 = (1..=n).map(|i| f64::from(n) / f64::from(i)).sum();
        let rings = arrangements(n);
        let counts = rings.iter().map(|ring| {
            let seen = Case::<ChangRoberts>::directed_ring(n as usize).ids(ring).simulate();
            seen.well().kind("Propose")
        });
        let counts: Vec<u64> = counts.collect();
        let mean = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
        assert!((mean - average).abs() < 1e-9, "n = {n}: {mean}");
        assert_eq!(counts.iter().min(), Some(&(2 * u64::from(n) - 1)));
        assert_eq!(counts.iter().max(), Some(&(u64::from(n) * (u64::from(n) + 1) / 2)));
    }
}

#[test]
fn a_ring_of_one_needs_no_message() {
    let seen = Case::<ChangRoberts>::directed_ring(1).simulate();
    assert_eq!((seen.well().sent, seen.summary.leader), (0, Some(ProcessId(0))));
    Case::<ChangRoberts>::directed_ring(1).requests(&[2]).check().exhausted(3);
}

#[test]
fn a_thousand_random_rings_elect_their_maximum() {
    for seed in 0..1000 {
        let mut rng = Rng::new(seed);
        let n = 1 + rng.below(20);
        let mut ids: Vec<u32> = (0..n).map(|i| 7 * i + rng.below(7)).collect();
        rng.shuffle(&mut ids);
        let case = Case::<ChangRoberts>::directed_ring(n as usize)
            .ids(&ids)
            .requests(&vec![2; n as usize]);
        let case = case.config(|c| {
            c.seed = seed;
            c.delay = konklave_sim::Delay::Exponential(1.0);
            c.think = konklave_sim::Pace::Exponential(5.0);
        });
        let seen = case.simulate();
        assert_eq!(
            seen.well().summary.leader.map(|p| p.0),
            ids.iter().copied().max(),
            "seed {seed}"
        );
    }
}

#[test]
fn every_run_of_small_rings_is_right() {
    Case::<ChangRoberts>::directed_ring(4).check().exhausted(195);
    Case::<ChangRoberts>::directed_ring(4).ids(&[3, 2, 1, 0]).check().exhausted(311);
    Case::<ChangRoberts>::directed_ring(3).requests(&[2, 2, 2]).check().exhausted(146);
}

#[test]
fn without_fifo_a_process_may_keep_its_flag_for_ever() {
    let case = Case::<ChangRoberts>::directed_ring(4).no_fifo();
    case.check().violated("quiescence", 12);
}

#[test]
fn without_the_hop_limit_a_message_outlives_its_owner() {
    let case = Case::<ChangRoberts>::directed_ring(3).crashes(1, 0).judge(&["livelock"]);
    case.check().exhausted(1239);
    case.mistake("no-hop-limit").check().violated("livelock", 8);
}

#[test]
fn without_stepping_down_there_are_two_leaders() {
    let case = Case::<ChangRoberts>::directed_ring(2).requests(&[2, 0]).down(&[1]);
    let case = case.crashes(0, 1).judge(&["one leader at a time"]);
    case.check().exhausted(26);
    case.mistake("no-step-down").check().violated("one leader at a time", 8);
}

#[test]
fn every_run_of_rings_up_to_five_is_right() {
    same(all_exhausted(every_ring(1..=5, ring)), (852, 118_085));
    let original = every_ring(1..=5, ring).map(|case| case.set("mode", "original"));
    same(all_exhausted(original), (852, 222_454));
}

#[test]
fn in_the_original_form_one_initiator_costs_two_rounds_and_wins() {
    for n in 2..=5 {
        for ids in arrangements(n) {
            for starter in 0..n {
                let case =
                    ring(n as usize).ids(&ids).initiators(&[starter]).set("mode", "original");
                let found = case.clone().counting().check();
                assert_eq!((found.verdict, found.messages), ("exhausted", Some((2 * n, 2 * n))));
                assert_eq!(case.simulate().summary.leader, Some(ProcessId(starter)));
            }
        }
    }
    ring(1).set("mode", "original").requests(&[2]).check().exhausted(3);
}

#[test]
fn in_the_original_form_elections_may_follow_each_other() {
    let case = ring(3).requests(&[2, 2, 2]).set("mode", "original");
    case.judge(&["one leader at a time", "agreement", "deadlock", "quiescence"])
        .check()
        .exhausted(535);
}

#[test]
fn random_rings_keep_the_formulas() {
    for seed in 0..500 {
        let case = random_ring(seed, ring);
        let highest = Some(case.setup.group.highest());
        let seen = case.simulate();
        assert_eq!(seen.well().summary.leader, highest, "seed {seed}");
        keeps_its_costs(&case, &seen);
        let hardened = hardened(case.clone());
        let seen = hardened.simulate();
        assert_eq!(seen.well().summary.leader, highest, "seed {seed}");
        keeps_its_costs(&hardened, &seen);
        let original = case.set("mode", "original");
        let seen = original.simulate();
        assert_eq!(seen.well().summary.leader, highest_initiator(&original), "seed {seed}");
        keeps_its_costs(&original, &seen);
        restless(original).simulate().well();
    }
}

#[test]
fn the_worst_of_the_original_form_is_its_formula() {
    // The initiators in descending order from one place on.
    for (n, k) in [(5, 3), (8, 8), (10, 2)] {
        let ids: Vec<u32> = (0..n).rev().collect();
        let starters: Vec<u32> = (n - k..n).collect();
        let case = ring(n as usize).ids(&ids).initiators(&starters).set("mode", "original");
        let most = u64::from(n * k - k * (k - 1) / 2 + n);
        assert_eq!(case.simulate().well().sent, most);
    }
}

#[test]
fn schedule_c1_a_message_does_not_outlive_its_owner() {
    // 3 wins, sends its word and crashes before it returns.
    let case = ring(3).ids(&[3, 1, 2]).initiators(&[3]).fault("crash:3@3.5");
    let case = case.config(|c| c.detect_after = Some(0.2));
    let textbook = case.simulate();
    assert_eq!(textbook.kind("Elected"), 4, "it is dropped after n hops");
    let healed = hardened(case).simulate();
    assert_eq!(healed.well().summary.leader, Some(ProcessId(2)));
}

#[test]
fn schedule_c2_a_flag_that_was_left_behind_is_cleared_by_the_next_election() {
    // 0 starts anew as soon as it knows the leader; its number overtakes the announcement of the winner.
    let three = ring(3).requests(&[2, 1, 1]);
    three.clone().no_fifo().check().violated("deadlock", 9);
    assert_eq!(three.clone().check().verdict, "exhausted");
    assert_eq!(hardened(three).no_fifo().check().verdict, "exhausted");
    ring(4).no_fifo().check().violated("quiescence", 12);
    hardened(ring(4)).no_fifo().check().exhausted(308);
    ring(3).mishaps(1, 0).judge(&["deadlock"]).check().violated("deadlock", 2);
    assert_eq!(hardened(ring(3)).mishaps(1, 0).check().verdict, "exhausted");
}

#[test]
fn schedule_c3_a_restart_in_mid_election_blocks_the_textbook_and_not_the_hardened_form() {
    let case = ring(2).crashes(1, 1);
    let safe = case.clone().judge(&["one leader at a time", "expected inputs", "livelock"]);
    safe.check().exhausted(553);
    case.clone().judge(&["deadlock"]).check().violated("deadlock", 4);
    hardened(case).synchronous().check().exhausted(394);
}

#[test]
fn schedule_c4_a_second_copy_of_the_winning_number_changes_nothing() {
    ring(3).mishaps(0, 1).check().exhausted(244);
    let seen = ring(3).initiators(&[2]).fault("duplicate:0>1/Propose#1").simulate();
    assert_eq!((seen.well().sent, seen.summary.elections), (6 + 1, 1));
}

#[test]
fn hardened_every_run_with_a_fault_ends_well() {
    let rings = || every_ring(2..=3, ring).map(hardened);
    same(all_exhausted(every_ring(1..=4, ring).map(hardened)), (108, 5_538));
    same(all_exhausted(rings().map(|c| c.crashes(1, 0))), (17, 7170));
    same(all_exhausted(rings().map(|c| c.crashes(1, 0).no_fifo())), (17, 10_907));
    same(all_exhausted(rings().map(|c| c.crashes(1, 1).synchronous())), (17, 85_074));
    same(all_exhausted(rings().map(|c| c.mishaps(1, 1))), (17, 9_361));
    same(all_exhausted(rings().map(|c| c.mishaps(1, 1).no_fifo())), (17, 20_523));
}

#[test]
fn hardened_a_crash_in_a_ring_of_four_ends_well() {
    let all = ring(4).ids(&[3, 1, 0, 2]);
    hardened(all).crashes(1, 0).check().exhausted(10_835);
    hardened(ring(4)).initiators(&[0]).crashes(1, 0).check().exhausted(875);
}

/// All but termination: if the only starter dies unheard, there is no election.
const SAFE: &[&str] = &[
    "one leader at a time",
    "one leader per epoch",
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
    same(all_exhausted(rings().map(|c| c.crashes(2, 0))), (17, 20_821));
    same(all_exhausted(rings().map(|c| c.crashes(1, 0).mishaps(1, 0))), (17, 42_082));
}

#[test]
fn hardened_the_number_of_the_election_must_survive_a_restart() {
    let mut case = hardened(ring(2)).initiators(&[0]).crashes(1, 1).synchronous();
    case.check().exhausted(168);
    case.options.stable_storage = false;
    case.check().violated("one leader at a time", 8);
}

#[test]
fn hardened_one_initiator_costs_what_the_textbook_says() {
    for n in 1..=4 {
        for ids in arrangements(n) {
            for starter in 0..n {
                let case = ring(n as usize).ids(&ids).initiators(&[starter]);
                let textbook = case.simulate().well().sent as u32;
                let found = hardened(case).counting().check();
                assert_eq!(found.messages, Some((textbook, textbook)));
            }
        }
    }
}

#[test]
fn hardened_random_crashes_restarts_losses_and_copies_are_outlived() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let case = hardened(restless(random_ring(seed, ring))).no_fifo();
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
fn a_hundred_thousand_elect_their_highest() {
    let ids = random_ids(100_000, &mut Rng::new(1));
    let case = ring(100_000).ids(&ids);
    let seen = case.simulate();
    assert_eq!(seen.well().summary.leader, Some(case.setup.group.highest()));
    keeps_its_costs(&case, &seen);
}
