use konklave_algorithms::Facts;
use konklave_algorithms::election::extinction::Extinction;
use konklave_process::{ProcessId, Rng, Topology};
use konklave_sim::Ending;
use konklave_testkit::{Case, Seen};

use crate::graphs::{by_chance, long, strongest, sweep};

#[test]
fn every_run_on_every_graph_of_three_is_right() {
    for (n, fifo, cases, states) in [
        (1, true, 1, 2),
        (2, true, 3, 28),
        (2, false, 3, 30),
        (3, true, 28, 3330),
        (3, false, 28, 6477),
    ] {
        assert_eq!(sweep::<Extinction>(n, fifo, false, |_, _| true).size(), (cases, states));
    }
}

#[test]
fn every_run_on_sparse_graphs_of_four_is_right_without_fifo() {
    let swept = sweep::<Extinction>(4, false, false, |m, k| m * k <= 9);
    assert_eq!(swept.size(), (402, 325_758));
}

#[test]
fn the_most_messages_are_those_of_the_table() {
    // By edges and initiators; the fewest are two for each edge.
    let three = sweep::<Extinction>(3, true, true, |_, _| true);
    let most = [((2, 1), 4), ((2, 2), 7), ((2, 3), 8), ((3, 1), 6), ((3, 2), 9), ((3, 3), 11)];
    let most = most.map(|((m, k), most)| ((m, k), (2 * m as u32, most)));
    assert_eq!(three.messages.into_iter().collect::<Vec<_>>(), most);

    let four = sweep::<Extinction>(4, true, true, |m, k| m * k <= 12 || long());
    let most = [
        ((3, 1), 6),
        ((3, 2), 11),
        ((3, 3), 14),
        ((3, 4), 16), //
        ((4, 1), 8),
        ((4, 2), 15),
        ((4, 3), 18),
        ((4, 4), 21), //
        ((5, 1), 10),
        ((5, 2), 17),
        ((5, 3), 21),
        ((5, 4), 24), //
        ((6, 1), 12),
        ((6, 2), 19),
        ((6, 3), 24),
        ((6, 4), 27),
    ];
    let most = most.iter().filter(|((m, k), _)| m * k <= 12 || long());
    let most = most.map(|&((m, k), most)| ((m, k), (2 * m as u32, most)));
    assert_eq!(four.messages.into_iter().collect::<Vec<_>>(), most.collect::<Vec<_>>());
}

#[test]
fn the_largest_checks_of_four_are_right_too() {
    if long() {
        let swept = sweep::<Extinction>(4, false, false, |m, k| m * k > 9 && m * k <= 15);
        assert_eq!(swept.cases, 142);
    }
}

#[test]
fn if_all_start_every_run_on_four_nodes_with_four_links_is_right_without_fifo() {
    let is_ring = |graph: &Topology| (0..4).all(|place| graph.degree(place) == 2);
    let fits = |graph: &Topology| graph.edges() == 4 && (is_ring(graph) || long());
    let mut states = 0;
    for graph in Topology::all_connected(4).filter(fits) {
        let found = Case::<Extinction>::on(graph.clone()).no_fifo().reduced().check();
        assert_eq!(found.verdict, "exhausted", "{} {found:?}", graph.name);
        states += found.states;
    }
    assert_eq!(states, if long() { 1_932_129 } else { 181_425 });
}

#[test]
fn five_nodes_cost_at_most_what_the_table_says() {
    if long() {
        let five = sweep::<Extinction>(5, true, true, |m, k| m <= 5 && k <= 3);
        let most =
            [((4, 1), 8), ((4, 2), 15), ((4, 3), 20), ((5, 1), 10), ((5, 2), 19), ((5, 3), 26)];
        let most = most.map(|((m, k), most)| ((m, k), (2 * m as u32, most)));
        assert_eq!(five.messages.into_iter().collect::<Vec<_>>(), most);
        assert_eq!(five.cases, 8675);
    }
}

#[test]
fn a_captured_process_that_starts_anew_makes_a_second_leader() {
    let case = Case::<Extinction>::on(Topology::path(2)).judge(&["one leader at a time"]);
    case.check().exhausted(18);
    case.mistake("late-start").check().violated("one leader at a time", 7);
}

#[test]
fn explorers_that_cross_and_do_not_count_wait_for_ever() {
    let case = Case::<Extinction>::complete(3).initiators(&[0]);
    case.check().exhausted(65);
    case.mistake("no-crossing").check().violated("deadlock", 5);
}

#[test]
fn the_outcome_stands_when_it_is_asked_for_again() {
    Case::<Extinction>::on(Topology::path(2)).requests(&[2, 2]).check().exhausted(29);
    Case::<Extinction>::ring(2).check().exhausted(18);
}

#[test]
fn graphs_by_chance_elect_their_strongest_initiator_within_the_bounds() {
    for seed in 0..600 {
        let case = by_chance::<Extinction>(seed, 40);
        let seen = case.simulate();
        assert_eq!(seen.well().summary.leader, strongest(&case), "seed {seed}");
        within_bounds(&case, &seen);
    }
}

fn within_bounds(case: &Case<Extinction>, seen: &Seen<Extinction>) {
    use konklave_algorithms::{Algorithm, Metric};
    let facts = Facts {
        setup: &case.setup,
        initiators: &case.workload.initiators,
        served: &[],
        delay_max: case.config.delay.longest(),
        assumptions_hold: true,
        uncontended: false,
        at_once: true,
        elapsed: seen.time,
        undisturbed: true,
        steady: case.config.delay.is_constant(),
        hold: 0.0,
    };
    for cost in Extinction::SHEET.costs {
        let measured = match cost.metric {
            Metric::Messages => seen.sent as f64,
            _ => seen.summary.time_to_all.unwrap(),
        };
        let bound = (cost.bound)(&facts);
        assert!(bound.is_none_or(|b| b.holds(measured)), "{}: {measured}, {bound:?}", cost.formula);
    }
}

#[test]
fn a_large_graph_elects_its_maximum() {
    let (n, m) = if long() { (100_000, 1_000_000) } else { (20_000, 200_000) };
    let mut rng = Rng::new(7);
    let graph = Topology::random_graph(n, m, &mut rng).unwrap();
    let mut ids: Vec<u32> = (0..n as u32).collect();
    rng.shuffle(&mut ids);
    let seen = Case::<Extinction>::on(graph).ids(&ids).simulate();
    assert_eq!(seen.well().ending, Ending::Quiet);
    assert_eq!(seen.summary.leader, Some(ProcessId(n as u32 - 1)));
    assert_eq!(seen.kind("Info"), 2 * m as u64 - n as u64 + 1);
    // Few waves pass each edge: as many as there are new maxima within reach.
    assert!(seen.sent < 30 * m as u64, "{}", seen.sent);
}

#[test]
fn a_large_star_and_a_long_path_are_no_harder() {
    for graph in [Topology::star(50_000), Topology::path(50_000)] {
        let seen = Case::<Extinction>::on(graph).initiators(&[17]).simulate();
        assert_eq!(seen.well().sent, 3 * 49_999);
    }
}
