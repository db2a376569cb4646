use konklave_algorithms::mutex::raymond::Raymond;
use konklave_process::{Rng, Topology};
use konklave_sim::{Delay, Pace};
use konklave_testkit::Case;

/// Only the node at this place asks, so often.
fn only(place: usize, times: u32, n: usize) -> Vec<u32> {
    (0..n).map(|p| if p == place { times } else { 0 }).collect()
}

#[test]
fn a_lone_entry_costs_twice_the_distance_and_the_next_one_nothing() {
    for n in [1, 2, 3, 7, 20] {
        for topology in [Topology::path(n), Topology::star(n), Topology::kary_tree(n, 2)] {
            for place in 0..n {
                let mut ways = std::iter::successors(Some(place), |&p| topology.parent(p));
                let distance = ways.by_ref().count() as u64 - 1;
                let case = Case::<Raymond>::on(topology.clone()).requests(&only(place, 3, n));
                let seen = case.simulate();
                assert_eq!(seen.well().sent, 2 * distance, "{} of {n}: {place}", topology.name);
                assert_eq!(seen.summary.entries, 3);
            }
        }
    }
}

#[test]
fn when_all_want_each_edge_is_crossed_four_times_for_n_entries() {
    for n in [10, 100, 1000] {
        for topology in [Topology::path(n), Topology::star(n), Topology::kary_tree(n, 3)] {
            let case = Case::<Raymond>::on(topology).requests(&vec![20; n]);
            let seen = case.config(|c| c.hold = Pace::Constant(1.0)).simulate();
            let per_entry = seen.well().sent as f64 / seen.summary.entries as f64;
            let formula = 4.0 * (n as f64 - 1.0) / n as f64;
            assert!((0.95 * formula..=formula).contains(&per_entry), "{per_entry} of {formula}");
            assert_eq!(seen.summary.max_bypass, n as u64 - 1);
        }
    }
}

#[test]
fn between_two_entries_the_token_takes_the_way_from_one_to_the_other() {
    for n in [2, 5, 17] {
        let mut ends = vec![0; n];
        (ends[0], ends[n - 1]) = (5, 5);
        let case = Case::<Raymond>::on(Topology::path(n)).requests(&ends);
        let seen = case.config(|c| c.hold = Pace::Constant(2.0 * n as f64)).simulate();
        let delay = seen.well().summary.sync_delay.unwrap();
        assert_eq!((delay.min, delay.max), (n as f64 - 1.0, n as f64 - 1.0));
    }
}

#[test]
fn the_tree_may_be_found_in_any_graph_and_is_a_star_where_all_are_linked() {
    for n in [2, 3, 9] {
        let seen = Case::<Raymond>::complete(n).requests(&vec![2; n]).simulate();
        let star = Case::<Raymond>::on(Topology::star(n)).requests(&vec![2; n]).simulate();
        assert_eq!(seen.well().sent, star.well().sent);
        Case::<Raymond>::ring(n).requests(&vec![2; n]).simulate().well();
    }
    let case = Case::<Raymond>::on(Topology::grid(4, 5)).requests(&only(19, 1, 20));
    assert_eq!(case.simulate().well().sent, 14);
}

#[test]
fn every_run_on_a_line_and_on_a_star_is_right_in_any_order_of_messages() {
    let line = Case::<Raymond>::on(Topology::path(4)).requests(&[1, 1, 2, 1]).fenced();
    let star = Case::<Raymond>::on(Topology::star(4)).requests(&[2, 2, 1, 1]).fenced();
    for (greedy, states) in [
        (0, [1727, 2027, 3068, 3618]),
        (1, [2549, 2950, 4001, 4692]),
        (2, [2587, 2989, 4073, 4768]),
    ] {
        let [line, star] = [&line, &star].map(|case| case.clone().set("greedy", greedy));
        line.check().exhausted(states[0]);
        line.no_fifo().check().exhausted(states[1]);
        star.check().exhausted(states[2]);
        star.no_fifo().check().exhausted(states[3]);
    }
}

#[test]
fn five_entries_on_a_line_of_four_cost_6_to_20_messages() {
    let line = Case::<Raymond>::on(Topology::path(4)).requests(&[1, 1, 2, 1]).counting();
    assert_eq!(line.check().messages, Some((6, 20)));
    assert_eq!(line.no_fifo().check().messages, Some((6, 20)));
    let star = Case::<Raymond>::on(Topology::star(4)).requests(&[2, 2, 1, 1]).counting();
    assert_eq!(star.check().messages, Some((10, 16)));
}

#[test]
fn every_tree_of_four_is_right_wherever_the_token_begins() {
    let mut states = 0;
    for tree in Topology::all_trees(4) {
        for ids in [[0, 1, 2, 3], [3, 1, 0, 2]] {
            let case = Case::<Raymond>::on(tree.clone()).ids(&ids).fenced();
            let found = case.check();
            assert_eq!(found.verdict, "exhausted", "{found:?}");
            states += found.states;
        }
    }
    assert_eq!(states, 30_784);
}

#[test]
fn order_is_not_kept() {
    // A child has the token and enters again before its parent's request arrives.
    let case = Case::<Raymond>::on(Topology::path(3)).requests(&[0, 1, 2]).ordered();
    case.check().violated("happened-before order", 8);
}

#[test]
fn one_request_for_the_whole_queue_is_enough() {
    let case = Case::<Raymond>::on(Topology::path(3)).requests(&[0, 1, 1]);
    case.check().exhausted(30);
    case.mistake("no-asked-flag").check().violated("expected inputs", 10);
}

#[test]
fn the_first_in_the_queue_may_be_oneself() {
    let case = Case::<Raymond>::on(Topology::path(2)).requests(&[0, 1]);
    case.check().exhausted(5);
    case.mistake("forgets-self").check().violated("deadlock", 3);
}

#[test]
fn the_token_is_asked_back_for_the_rest_of_the_queue() {
    let case = Case::<Raymond>::on(Topology::path(3)).requests(&[0, 1, 1]);
    case.check().exhausted(30);
    case.mistake("forgets-rest").check().violated("deadlock", 7);
}

#[test]
fn greed_without_bounds_starves_the_others() {
    let case = Case::<Raymond>::on(Topology::path(2)).requests(&[1, 1]);
    case.check().exhausted(20);
    case.mistake("unbounded-greedy").check().violated("deadlock", 4);
}

#[test]
fn the_greedier_they_are_the_more_often_one_is_overtaken_but_never_for_ever() {
    let n = 100;
    let bypass = |greedy: u32| {
        let case = Case::<Raymond>::on(Topology::kary_tree(n, 2)).requests(&vec![10; n]);
        let case = case.set("greedy", greedy).config(|c| c.hold = Pace::Constant(1.0));
        case.simulate().well().summary.max_bypass
    };
    assert_eq!([0, 1, 2, 4, 100].map(bypass), [99, 148, 192, 197, 197]);
}

#[test]
fn a_duplicate_is_noticed() {
    let case = Case::<Raymond>::on(Topology::path(3)).mishaps(0, 1);
    case.check().violated("expected inputs", 4);
}

#[test]
fn random_trees_random_delays_and_any_order_do_no_harm() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let n = 1 + rng.below(12) as usize;
        let tree = Topology::random_tree(n, &mut rng);
        let case = Case::<Raymond>::on(tree).requests(&vec![5; n]).set("greedy", seed % 4);
        let case = case.no_fifo().config(|c| {
            c.seed = seed;
            c.delay = Delay::Exponential(1.0);
            c.think = Pace::Exponential(f64::from(rng.below(20)));
        });
        assert_eq!(case.simulate().well().summary.entries, 5 * n as u64, "seed {seed}");
    }
}

#[test]
fn a_hundred_thousand_are_served_quickly() {
    let n = 100_000;
    for topology in [Topology::kary_tree(n, 2), Topology::star(n), Topology::complete(n)] {
        let seen = Case::<Raymond>::on(topology).requests(&vec![2; n]).simulate();
        assert_eq!(seen.well().summary.entries, 2 * n as u64);
        assert!(seen.sent < 8 * n as u64);
    }
}
