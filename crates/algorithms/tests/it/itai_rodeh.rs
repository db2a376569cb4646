use konklave_algorithms::election::itai_rodeh::ItaiRodeh;
use konklave_sim::Delay;
use konklave_testkit::Case;

use crate::long;
use crate::rings::{all_exhausted, every_ring, keeps_its_costs, random_ring, restless};

fn ring(n: usize) -> Case<ItaiRodeh> {
    Case::directed_ring(n)
}

/// Draws from `range` numbers, and messages carry no phase: finite, so that all draws can be explored.
fn finite(n: usize, range: u32) -> Case<ItaiRodeh> {
    ring(n).set("range", range).set("phases", "untold")
}

#[test]
fn any_draws_elect_one_leader() {
    finite(1, 2).check().exhausted(2);
    finite(2, 2).check().exhausted(43);
    finite(2, 3).check().exhausted(75);
    finite(3, 2).check().exhausted(517);
    finite(3, 3).check().exhausted(1183);
    finite(4, 2).check().exhausted(5791);
    finite(4, 3).check().exhausted(16025);
}

#[test]
fn any_initiators_elect_one_leader() {
    let cases = every_ring(1..=4, |n| finite(n, 2));
    assert_eq!(all_exhausted(cases), (108, 64_227));
}

#[test]
fn every_run_of_rings_of_five_is_right() {
    if long() {
        assert_eq!(all_exhausted(every_ring(5..=5, |n| finite(n, 2))), (744, 3_073_344));
    }
}

#[test]
fn with_phases_no_order_of_messages_does_harm_as_far_as_was_looked() {
    let looked = |n, depth| {
        let mut case = ring(n).set("range", 2).no_fifo();
        case.options.max_depth = depth;
        let found = case.check();
        (found.verdict, found.states)
    };
    assert_eq!(looked(2, 60), ("bounded", 1461));
    assert_eq!(looked(3, 30), ("bounded", 36_972));
}

#[test]
fn without_phases_fifo_is_needed() {
    finite(2, 3).check().exhausted(75);
    finite(2, 3).no_fifo().check().violated("deadlock", 8);
}

#[test]
fn with_one_number_to_draw_it_never_ends() {
    finite(2, 1).check().violated("livelock", 6);
}

#[test]
fn too_small_assumed_ring_elects_several() {
    finite(2, 2).set("believed-n", 1).check().violated("one leader at a time", 4);
    finite(4, 2).set("believed-n", 2).check().violated("one leader at a time", 6);
}

#[test]
fn too_large_assumed_ring_elects_no_leader() {
    finite(2, 2).set("believed-n", 3).check().violated("livelock", 6);
    finite(3, 2).set("believed-n", 4).check().violated("livelock", 8);
    let endless = ring(5).set("believed-n", 7).config(|c| c.step_limit = 100_000).simulate();
    assert_eq!((endless.ending, endless.summary.leader), (konklave_sim::Ending::CutOff, None));
}

#[test]
fn everyone_may_draw_the_same_several_times() {
    // With two numbers, some of a thousand elections of two need ten phases or more.
    let longest = (0..1000).map(|seed| {
        let seen = ring(2).set("range", 2).config(|c| c.seed = seed).simulate();
        seen.well().kind("Token") / 4
    });
    assert!(longest.max().unwrap() >= 8);
}

#[test]
fn one_initiator_costs_two_rounds() {
    for n in [2, 3, 10, 1000] {
        let case = ring(n).initiators(&[1]);
        let seen = case.simulate();
        assert_eq!(seen.well().sent, 2 * n as u64);
        keeps_its_costs(&case, &seen);
    }
    assert_eq!(ring(1).simulate().well().sent, 0);
}

#[test]
fn random_rings_elect_one() {
    for seed in 0..500 {
        let case = random_ring(seed, ring);
        let seen = case.simulate();
        assert_eq!(seen.well().summary.elections, 1, "seed {seed}");
        keeps_its_costs(&case, &seen);
        let restless = restless(case).no_fifo().simulate();
        assert_eq!(restless.well().summary.elections, 1, "seed {seed}");
    }
}

#[test]
fn a_hundred_thousand_elect_one_for_n_log_n() {
    let seen = ring(100_000).config(|c| c.delay = Delay::Uniform(0.5, 1.5)).simulate();
    assert_eq!(seen.well().summary.elections, 1);
    let per_node = seen.sent as f64 / 1e5;
    assert!(per_node < 20.0, "{per_node} messages a node; ln n is 11.5");
}
