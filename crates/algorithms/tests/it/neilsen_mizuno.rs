use konklave_algorithms::mutex::neilsen_mizuno::NeilsenMizuno;
use konklave_process::{Rng, Topology};
use konklave_sim::{Delay, Pace};
use konklave_testkit::Case;

#[test]
fn a_lone_entry_costs_the_distance_and_one_more() {
    for n in [1, 2, 3, 7, 20] {
        for topology in [Topology::path(n), Topology::star(n), Topology::kary_tree(n, 2)] {
            for place in 0..n {
                let ways = std::iter::successors(Some(place), |&p| topology.parent(p));
                let distance = ways.count() as u64 - 1;
                let times: Vec<u32> = (0..n).map(|p| if p == place { 3 } else { 0 }).collect();
                let case = Case::<NeilsenMizuno>::on(topology.clone()).requests(&times);
                let cost = if distance == 0 { 0 } else { distance + 1 };
                assert_eq!(case.simulate().well().sent, cost, "{} of {n}: {place}", topology.name);
            }
        }
    }
}

#[test]
fn when_all_want_three_messages_do_and_one_delay_between_entries() {
    for n in [10, 100, 1000] {
        for topology in [Topology::path(n), Topology::star(n), Topology::complete(n)] {
            let case = Case::<NeilsenMizuno>::on(topology).requests(&vec![20; n]);
            let seen = case.config(|c| c.hold = Pace::Constant(1.0)).simulate();
            let per_entry = seen.well().sent as f64 / seen.summary.entries as f64;
            assert!((2.7..=3.0).contains(&per_entry), "n = {n}: {per_entry}");
            let delay = seen.summary.sync_delay.unwrap();
            assert_eq!((delay.min, delay.max), (1.0, 1.0));
        }
    }
}

#[test]
fn every_run_on_a_line_and_on_a_star_is_right_in_any_order_of_messages() {
    let line = Case::<NeilsenMizuno>::on(Topology::path(4)).requests(&[1, 1, 2, 1]).fenced();
    line.check().exhausted(2585);
    line.clone().no_fifo().check().exhausted(2606);
    let star = Case::<NeilsenMizuno>::on(Topology::star(4)).requests(&[2, 2, 1, 1]).fenced();
    star.check().exhausted(4970);
    star.clone().no_fifo().check().exhausted(5054);
    assert_eq!(line.counting().check().messages, Some((6, 15)));
    assert_eq!(star.counting().check().messages, Some((8, 14)));
}

#[test]
fn every_tree_of_four_is_right_wherever_the_token_begins() {
    let mut states = 0;
    for tree in Topology::all_trees(4) {
        for ids in [[0, 1, 2, 3], [3, 1, 0, 2]] {
            let found = Case::<NeilsenMizuno>::on(tree.clone()).ids(&ids).fenced().check();
            assert_eq!(found.verdict, "exhausted", "{found:?}");
            states += found.states;
        }
    }
    assert_eq!(states, 42_868);
}

#[test]
fn order_is_not_kept() {
    let case = Case::<NeilsenMizuno>::on(Topology::star(4)).requests(&[1, 2, 2, 1]).ordered();
    case.check().violated("happened-before order", 14);
    case.no_fifo().check().violated("happened-before order", 9);
}

#[test]
fn a_request_turns_the_edges_on_its_way() {
    let case = Case::<NeilsenMizuno>::on(Topology::path(3)).requests(&[0, 1, 1]);
    case.check().exhausted(30);
    case.mistake("no-edge-reversal").check().violated("deadlock", 8);
}

#[test]
fn a_sink_that_waits_has_no_token_to_give() {
    let case = Case::<NeilsenMizuno>::on(Topology::path(3));
    case.check().exhausted(156);
    case.mistake("only-holders-queue").check().violated("one token", 3);
}

#[test]
fn random_trees_random_delays_and_any_order_do_no_harm() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let n = 1 + rng.below(12) as usize;
        let tree = Topology::random_tree(n, &mut rng);
        let case = Case::<NeilsenMizuno>::on(tree).requests(&vec![5; n]).no_fifo().config(|c| {
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
    for topology in [Topology::kary_tree(n, 2), Topology::star(n)] {
        let seen = Case::<NeilsenMizuno>::on(topology).requests(&vec![2; n]).simulate();
        assert_eq!(seen.well().summary.entries, 2 * n as u64);
        assert!(seen.sent < 6 * n as u64);
    }
}
