use konklave_algorithms::election::virtual_tree::VirtualTree;
use konklave_algorithms::election::virtual_tree_wave::VirtualTreeWave;
use konklave_process::topology::Spec;
use konklave_process::{ProcessId, Rng, Topology};
use konklave_sim::Delay;
use konklave_testkit::Case;

use crate::graphs::{long, subsets};

#[test]
fn every_run_on_every_graph_of_three_elects_the_highest() {
    let mut states = 0;
    for n in 1..=3 {
        for graph in Topology::all_connected(n) {
            for initiators in subsets(n as u32) {
                let found = Case::<VirtualTreeWave>::on(graph.clone()).initiators(&initiators);
                let found = found.check();
                assert_eq!(found.verdict, "exhausted", "{} {found:?}", graph.name);
                states += found.states;
            }
        }
    }
    assert_eq!(states, 15_361);
}

#[test]
fn every_run_on_graphs_of_four_by_one_elects_the_highest() {
    let mut states = 0;
    for graph in Topology::all_connected(4).filter(|graph| graph.edges() <= 4 || long()) {
        for starter in 0..4 {
            let found = Case::<VirtualTreeWave>::on(graph.clone()).initiators(&[starter]).check();
            assert_eq!(found.verdict, "exhausted", "{} {starter} {found:?}", graph.name);
            states += found.states;
        }
    }
    assert_eq!(states, if long() { 2_206_620 } else { 297_519 });
}

/// A triangle that hangs on the root by one edge.
fn triangle_with_a_root() -> Topology {
    Topology::all_connected(4).find(|graph| graph.name == "graph 57 of 4").expect("a graph of four")
}

#[test]
fn reached_process_must_stay() {
    let graph = triangle_with_a_root();
    assert_eq!((graph.edges(), graph.degree(0), graph.degree(1)), (4, 1, 3));
    let case = Case::<VirtualTreeWave>::on(graph).initiators(&[0]);
    assert_eq!(case.check().verdict, "exhausted");
    case.mistake("no-freeze").check().violated("deadlock", 43);
    // The data sheet names this graph by the seed that makes it.
    let spec: Spec = "random:4".parse().expect("a random graph of four edges");
    let built = spec.build(4, &Rng::new(2).fork(1), |_| unreachable!("it is in no file"));
    let case = Case::<VirtualTreeWave>::on(built.expect("there is one").topology).initiators(&[0]);
    assert_eq!(case.check().verdict, "exhausted");
    case.mistake("no-freeze").check().violated("deadlock", 43);
}

#[test]
fn a_wave_before_the_tree_is_complete_leaves_someone_out() {
    let case = Case::<VirtualTreeWave>::on(Topology::path(3)).initiators(&[0]);
    assert_eq!(case.check().verdict, "exhausted");
    case.mistake("no-count").check().violated("termination", 18);
}

#[test]
fn where_nobody_moves_the_count_is_exact() {
    for n in [1, 2, 3, 10, 100] {
        for (graph, ways) in [
            (Topology::star(n), n - 1),
            (Topology::path(n), n * (n - 1) / 2),
            (Topology::complete(n), n - 1),
        ] {
            let case = |graph| Case::<VirtualTree>::on(graph).set("cap", 1000).initiators(&[0]);
            let tree = case(graph.clone()).simulate().well().sent;
            let wave = Case::<VirtualTreeWave>::on(graph).set("cap", 1000).initiators(&[0]);
            let seen = wave.simulate();
            assert_eq!(seen.well().summary.leader, Some(ProcessId(n as u32 - 1)));
            assert_eq!(seen.sent, tree + ways as u64 + 3 * (n as u64 - 1), "{n}");
        }
    }
}

#[test]
fn random_graphs_elect_their_highest_for_any_initiators() {
    let mut sought_twice = 0;
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let n = 1 + rng.below(40) as usize;
        let more = rng.below((n * (n - 1) / 2 - (n - 1)).min(2 * n) as u32 + 1) as usize;
        let graph = Topology::random_graph(n, n - 1 + more, &mut rng).unwrap();
        let starters: Vec<u32> = (0..=rng.below(n as u32)).collect();
        let seen = Case::<VirtualTreeWave>::on(graph).initiators(&starters).config(|c| {
            c.seed = seed;
            c.delay = Delay::Exponential(1.0);
        });
        let seen = seen.simulate();
        let leader = seen.well().summary.leader;
        assert_eq!((leader, seen.summary.informed), (Some(ProcessId(n as u32 - 1)), n));
        // Two parents may explore a process that moves; it echoes to one. So 3(n − 1) is not exact for the wave.
        let others = n as u64 - 1;
        assert!(seen.kind("Explore") >= others, "seed {seed}");
        sought_twice += u32::from(seen.kind("Explore") > others);
        assert_eq!((seen.kind("Echo"), seen.kind("Info")), (others, others), "seed {seed}");
    }
    assert!(sought_twice > 0, "no process was explored twice");
}

#[test]
fn a_large_mesh_elects_its_highest() {
    let (n, m) = if long() { (100_000, 1_000_000) } else { (10_000, 50_000) };
    let graph = Topology::random_graph(n, m, &mut Rng::new(11)).unwrap();
    let seen = Case::<VirtualTreeWave>::on(graph).initiators(&[5]).simulate();
    assert_eq!(seen.well().summary.leader, Some(ProcessId(n as u32 - 1)));
}
