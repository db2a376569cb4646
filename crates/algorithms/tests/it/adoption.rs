use konklave_algorithms::election::adoption::Adoption;
use konklave_process::{ProcessId, Rng, Topology};
use konklave_testkit::Case;

use crate::graphs::{by_chance, long, strongest, subsets, sweep};

#[test]
fn every_run_on_every_graph_of_three_is_right() {
    for (n, fifo, cases, states) in [
        (1, true, 1, 2),
        (2, true, 3, 29),
        (2, false, 3, 31),
        (3, true, 28, 3461),
        (3, false, 28, 5143),
    ] {
        assert_eq!(sweep::<Adoption>(n, fifo, false, |_, _| true).size(), (cases, states));
    }
}

#[test]
fn every_run_on_sparse_graphs_of_four_is_right_without_fifo() {
    let swept = sweep::<Adoption>(4, false, false, |m, k| m * k <= 9);
    assert_eq!(swept.size(), (402, 219_828));
}

#[test]
fn the_most_messages_are_those_of_the_table() {
    // By edges and initiators; the fewest are two for each edge.
    let three = sweep::<Adoption>(3, true, true, |_, _| true);
    let most = [((2, 1), 4), ((2, 2), 6), ((2, 3), 7), ((3, 1), 6), ((3, 2), 9), ((3, 3), 10)];
    let most = most.map(|((m, k), most)| ((m, k), (2 * m as u32, most)));
    assert_eq!(three.messages.into_iter().collect::<Vec<_>>(), most);

    let four = sweep::<Adoption>(4, true, true, |m, k| m * k <= 12 || long());
    let most = [
        ((3, 1), 6),
        ((3, 2), 9),
        ((3, 3), 11),
        ((3, 4), 12), //
        ((4, 1), 8),
        ((4, 2), 12),
        ((4, 3), 15),
        ((4, 4), 16), //
        ((5, 1), 10),
        ((5, 2), 15),
        ((5, 3), 18),
        ((5, 4), 19), //
        ((6, 1), 12),
        ((6, 2), 17),
        ((6, 3), 21),
        ((6, 4), 22),
    ];
    let most = most.iter().filter(|((m, k), _)| m * k <= 12 || long());
    let most = most.map(|&((m, k), most)| ((m, k), (2 * m as u32, most)));
    assert_eq!(four.messages.into_iter().collect::<Vec<_>>(), most.collect::<Vec<_>>());
}

#[test]
fn the_largest_checks_of_four_are_right_too() {
    if long() {
        let swept = sweep::<Adoption>(4, false, false, |m, k| m * k > 9);
        assert_eq!(swept.size(), (0, 0));
    }
}

#[test]
fn five_nodes_cost_at_most_what_the_table_says() {
    if long() {
        let five = sweep::<Adoption>(5, true, true, |m, k| m <= 5 && k <= 3);
        let most =
            [((4, 1), 8), ((4, 2), 12), ((4, 3), 15), ((5, 1), 10), ((5, 2), 15), ((5, 3), 19)];
        let most = most.map(|((m, k), most)| ((m, k), (2 * m as u32, most)));
        assert_eq!(five.messages.into_iter().collect::<Vec<_>>(), most);
        assert_eq!(five.cases, 8675);
    }
}

#[test]
fn a1_an_explorer_that_is_sent_back_as_it_came_elects_the_wrong_one() {
    let case = Case::<Adoption>::on(Topology::path(3)).ids(&[2, 1, 3]).judge(&["right winner"]);
    case.check().exhausted(175);
    case.mistake("case3-literal").check().violated("right winner", 10);
}

#[test]
fn a1_if_both_ends_close_the_edge_two_lead() {
    let case = Case::<Adoption>::on(Topology::path(3)).ids(&[2, 1, 3]);
    let case = case.judge(&["one leader at a time"]);
    case.check().exhausted(175);
    case.mistake("case3-close-edge").check().violated("one leader at a time", 9);
}

#[test]
fn a2_a_process_that_has_echoed_is_adopted() {
    let case = Case::<Adoption>::on(Topology::path(3)).ids(&[3, 1, 2]).initiators(&[2, 3]);
    case.check().exhausted(43);
    case.no_fifo().check().exhausted(50);
}

#[test]
fn a3_three_waves_that_meet_in_a_triangle_may_all_wait_for_ever() {
    let case = Case::<Adoption>::complete(3);
    case.check().exhausted(1248);
    case.mistake("case3-literal").check().violated("deadlock", 11);
}

#[test]
fn a4_a_start_that_comes_too_late_changes_nothing() {
    let case = Case::<Adoption>::on(Topology::path(2)).requests(&[2, 2]);
    case.check().exhausted(33);
    Case::<Adoption>::ring(2).no_fifo().check().exhausted(21);
}

#[test]
fn the_literal_rules_fail_in_few_cases_and_only_with_three_initiators() {
    let sizes: &[(usize, u32, u32)] =
        if long() { &[(3, 2, 28), (4, 130, 570)] } else { &[(3, 2, 28)] };
    for &(n, wrong, all) in sizes {
        let (mut failed, mut cases) = (0, 0);
        for graph in Topology::all_connected(n) {
            for initiators in subsets(n as u32) {
                let case = Case::<Adoption>::on(graph.clone()).initiators(&initiators);
                let found = case.mistake("case3-literal").check();
                cases += 1;
                failed += u32::from(found.verdict == "violated");
                assert!(found.verdict == "exhausted" || initiators.len() >= 3, "{found:?}");
            }
        }
        assert_eq!((failed, cases), (wrong, all));
    }
}

#[test]
fn without_the_flood_of_the_first_contact_nobody_gets_far() {
    let case = Case::<Adoption>::on(Topology::path(3)).initiators(&[0]);
    case.check().exhausted(8);
    case.mistake("no-flood").check().violated("deadlock", 2);
}

#[test]
fn graphs_by_chance_elect_their_strongest_initiator_within_the_bounds() {
    for seed in 0..600 {
        let case = by_chance::<Adoption>(seed, 40);
        let seen = case.simulate();
        assert_eq!(seen.well().summary.leader, strongest(&case), "seed {seed}");
        let (n, k) = (case.setup.group.len(), case.workload.initiators.len());
        let m = case.setup.topology.edges();
        assert!(seen.sent as usize <= 2 * m + 3 * n * (k - 1) + 2 * m + 1 - n, "seed {seed}");
        assert_eq!(seen.kind("Info") as usize, 2 * m + 1 - n, "seed {seed}");
        if k == 1 {
            assert_eq!(seen.sent as usize, 4 * m + 1 - n, "seed {seed}");
        }
    }
}

#[test]
fn a_large_graph_elects_its_maximum() {
    let (n, m) = if long() { (100_000, 1_000_000) } else { (20_000, 200_000) };
    let graph = Topology::random_graph(n, m, &mut Rng::new(7)).unwrap();
    let seen = Case::<Adoption>::on(graph).simulate();
    assert_eq!(seen.well().summary.leader, Some(ProcessId(n as u32 - 1)));
    assert_eq!(seen.kind("Info"), 2 * m as u64 - n as u64 + 1);
    assert!(seen.sent < 20 * m as u64, "{}", seen.sent);
}

#[test]
fn a_large_star_and_a_long_path_are_no_harder() {
    for graph in [Topology::star(50_000), Topology::path(50_000)] {
        let seen = Case::<Adoption>::on(graph).initiators(&[17]).simulate();
        assert_eq!(seen.well().sent, 3 * 49_999);
    }
}
