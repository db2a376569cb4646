//! Topologies that are made.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::topology::{Hops, Shape};
use crate::{Group, ProcessId, Rng};

const SIZES: [usize; 5] = [1, 2, 3, 10, 100];

fn degrees(topology: &Topology) -> BTreeSet<usize> {
    (0..topology.len()).map(|place| topology.degree(place)).collect()
}

fn is_sound(topology: &Topology) -> bool {
    let edges: Vec<_> = topology.edge_list().collect();
    let simple = Topology::from_edges("", topology.len(), edges.iter().copied());
    topology.is_connected() && edges.len() == topology.edges() && simple.is_ok()
}

#[test]
fn rings_and_complete_graphs_have_their_sizes() {
    for n in SIZES {
        for ring in [Topology::ring(n), Topology::directed_ring(n)] {
            assert!(ring.is_connected() && ring.is_ring());
            assert_eq!(ring.edges(), if n == 1 { 0 } else { n });
            assert_eq!(ring.edge_list().count(), ring.edges());
        }
        assert_eq!(degrees(&Topology::ring(n)), BTreeSet::from([(n - 1).min(2)]));
        assert_eq!(degrees(&Topology::directed_ring(n)), BTreeSet::from([(n - 1).min(1)]));
        let complete = Topology::complete(n);
        assert!(is_sound(&complete) && complete.is_complete());
        assert_eq!(degrees(&complete), BTreeSet::from([n - 1]));
    }
}

#[test]
fn trees_are_trees_of_every_size() {
    for n in SIZES {
        let mut rng = Rng::new(n as u64);
        let trees = [
            Topology::path(n),
            Topology::star(n),
            Topology::kary_tree(n, 1),
            Topology::kary_tree(n, 3),
            Topology::caterpillar(n),
            Topology::random_tree(n, &mut rng),
        ];
        for tree in &trees {
            assert!(is_sound(tree) && tree.is_tree(), "{} of {n}", tree.name);
        }
        assert_eq!(trees[1].degree(0), n - 1);
        assert_eq!(
            trees[0].edge_list().collect::<Vec<_>>(),
            trees[2].edge_list().collect::<Vec<_>>()
        );
    }
    assert_eq!(Topology::kary_tree(10, 3).neighbours(1), [0, 4, 5, 6]);
    assert_eq!(Topology::caterpillar(7).neighbours(1), [0, 2, 5]);
    assert_eq!(Topology::caterpillar(7).neighbours(3), [2]);
}

#[test]
fn grids_and_tori_have_their_sides() {
    for (r, c) in [(1, 1), (1, 2), (2, 1), (2, 2), (1, 3), (3, 1), (2, 5), (10, 10), (3, 4)] {
        let (grid, torus) = (Topology::grid(r, c), Topology::torus(r, c));
        assert!(is_sound(&grid) && is_sound(&torus), "{r}x{c}");
        assert_eq!(grid.edges(), r * (c - 1) + c * (r - 1));
        let around = |side| [0, 0, 1].get(side).copied().unwrap_or(side);
        assert_eq!(torus.edges(), r * around(c) + c * around(r), "{r}x{c}");
        assert_eq!(degrees(&torus), BTreeSet::from([(r - 1).min(2) + (c - 1).min(2)]));
    }
    assert_eq!(Topology::grid(3, 4).neighbours(5), [1, 4, 6, 9]);
    assert_eq!(Topology::torus(3, 4).neighbours(0), [1, 3, 4, 8]);
    assert_eq!(Topology::torus(3, 4).neighbours(11), [3, 7, 8, 10]);
    assert_eq!([1, 7, 10, 12, 36].map(most_square), [(1, 1), (1, 7), (2, 5), (3, 4), (6, 6)]);
}

#[test]
fn hypercubes_have_one_neighbour_for_each_bit() {
    for d in 0..8 {
        let cube = Topology::hypercube(d);
        assert!(is_sound(&cube));
        assert_eq!((cube.len(), cube.diameter()), (1 << d, d as usize));
        assert_eq!(degrees(&cube), BTreeSet::from([d as usize]));
    }
}

#[test]
fn all_labelled_trees_are_counted_by_cayley() {
    for (n, count) in [(1, 1), (2, 1), (3, 3), (4, 16), (5, 125)] {
        let trees: Vec<_> = Topology::all_trees(n).collect();
        assert!(trees.iter().all(Topology::is_tree));
        let different: BTreeSet<Vec<_>> =
            trees.iter().map(|tree| tree.edge_list().collect()).collect();
        assert_eq!((trees.len(), different.len()), (count, count));
    }
    assert_eq!(Topology::all_trees(6).count(), 1296);
}

#[test]
fn all_connected_graphs_are_counted_as_known() {
    let counts = [1, 2, 3, 4, 5].map(|n| Topology::all_connected(n).count());
    assert_eq!(counts, [1, 1, 4, 38, 728]);
}

#[test]
fn a_random_tree_is_any_tree_equally_often() {
    let mut rng = Rng::new(3);
    let mut counts = std::collections::BTreeMap::new();
    for _ in 0..16_000 {
        let tree = Topology::random_tree(4, &mut rng);
        *counts.entry(tree.edge_list().collect::<Vec<_>>()).or_insert(0) += 1;
    }
    assert_eq!(counts.len(), 16);
    assert!(counts.values().all(|count| (850..1150).contains(count)), "{counts:?}");
}

#[test]
fn random_generators_work_from_one_node_up() {
    for n in SIZES {
        let rng = &mut Rng::new(5);
        for p in [0.0, 1e-300, 0.03, 0.5, 1.0] {
            assert!(is_sound(&Topology::erdos_renyi(n, p, rng).unwrap()), "{n} {p}");
        }
        assert!(Topology::erdos_renyi(n, 1.0, rng).unwrap().is_complete());
        for m in [1, 2, 5, 200] {
            let graph = Topology::scale_free(n, m, rng);
            // More links than others are no scale-free graph, but a complete one.
            let Ok(graph) = graph else {
                assert!(m >= n && n > 2, "{n} {m}");
                continue;
            };
            assert!(m < n || n <= 2, "{n} {m}");
            let first = n.min(m + 1);
            assert!(is_sound(&graph));
            assert_eq!(graph.edges(), first * (first - 1) / 2 + (n - first) * m);
        }
        let all = n * (n - 1) / 2;
        for m in [n - 1, n, all / 2, all / 2 + 1, all.saturating_sub(1), all] {
            if m >= n - 1 && m <= all {
                let graph = Topology::random_graph(n, m, rng).unwrap();
                assert!(is_sound(&graph));
                assert_eq!(graph.edges(), m);
            }
        }
    }
}

#[test]
fn regular_graphs_exist_wherever_they_can() {
    for n in 1..16 {
        for d in 0..n + 1 {
            let graph = Topology::random_regular(n, d, &mut Rng::new(9));
            let possible = d < n && n * d % 2 == 0 && (d >= 2 || n == d + 1);
            assert_eq!(graph.is_ok(), possible, "{n} {d}");
            if let Ok(graph) = graph {
                assert!(is_sound(&graph));
                assert_eq!(degrees(&graph), BTreeSet::from([d]));
            }
        }
    }
}

#[test]
fn a_graph_that_had_to_be_connected_says_so() {
    let graph = Topology::erdos_renyi(50, 0.01, &mut Rng::new(1)).unwrap();
    assert_eq!(graph.name, "erdos-renyi:0.01+spanning-tree");
    let graph = Topology::erdos_renyi(50, 0.5, &mut Rng::new(1)).unwrap();
    assert_eq!(graph.name, "erdos-renyi:0.5");
}

#[test]
fn the_density_of_a_random_graph_is_its_probability() {
    let graph = Topology::erdos_renyi(2000, 0.1, &mut Rng::new(4)).unwrap();
    assert!((196_000..204_000).contains(&graph.edges()), "{}", graph.edges());
}

#[test]
fn a_small_world_stays_connected_even_where_that_is_unlikely() {
    for beta in [0.0, 0.1, 1.0] {
        let world = Topology::small_world(300, 2, beta, &mut Rng::new(2)).unwrap();
        assert!(is_sound(&world));
        assert_eq!(world.edges(), 300);
    }
    assert!(Topology::small_world(300, 2, 0.0, &mut Rng::new(2)).unwrap().is_ring());
    assert!(Topology::small_world(5, 4, 1.0, &mut Rng::new(2)).unwrap().is_complete());
}

#[test]
fn impossible_value_is_refused_with_possible_ones() {
    let rng = &mut Rng::new(1);
    let refused = |result: Result<Topology, TopologyError>| result.unwrap_err().to_string();
    assert_eq!(
        refused(Topology::random_regular(5, 3, rng)),
        "regular:3 does not exist with 5 nodes: nodes times degree must be even"
    );
    assert_eq!(
        refused(Topology::small_world(10, 3, 0.1, rng)),
        "small-world:3,0.1 does not exist with 10 nodes: the neighbours must be an even \
         number from 2 to 8"
    );
    assert_eq!(
        refused(Topology::small_world(1, 2, 0.1, rng)),
        "small-world:2,0.1 does not exist with 1 node: it needs at least 3 nodes"
    );
    assert_eq!(
        refused(Topology::random_graph(5, 3, rng)),
        "random:3 does not exist with 5 nodes: connected, that has 4 to 10 edges"
    );
    assert_eq!(
        refused(Topology::erdos_renyi(5, f64::NAN, rng)),
        "a probability goes from 0 to 1, not NaN"
    );
    assert_eq!(
        refused(Topology::erdos_renyi(10_000_000, 0.5, rng)),
        "erdos-renyi:0.5 has more than 2147483647 edges: take fewer nodes or a sparser graph"
    );
    assert!(Topology::scale_free(5, 0, rng).is_err());
    assert!(Topology::random_tree(1, rng).is_tree());
}

#[test]
fn large_topologies_are_built_at_once() {
    let ring = Topology::ring(10_000_000);
    assert_eq!((ring.edges(), ring.diameter()), (10_000_000, 5_000_000));
    assert!(ring.fits(Shape::Ring));
    let graph = Topology::random_graph(100_000, 1_000_000, &mut Rng::new(1)).unwrap();
    assert_eq!(graph.edges(), 1_000_000);
    assert!(graph.is_connected());
    assert!(Topology::path(1_000_000).fits(Shape::Tree));
}

fn any_random(kind: u32, n: usize, rng: &mut Rng) -> Topology {
    match kind {
        0 => Topology::random_tree(n, rng),
        1 => Topology::random_regular(n, 4, rng).unwrap(),
        2 => Topology::erdos_renyi(n, 0.1, rng).unwrap(),
        3 => Topology::small_world(n, 4, 0.3, rng).unwrap(),
        4 => Topology::scale_free(n, 2, rng).unwrap(),
        _ => Topology::random_graph(n, 2 * n, rng).unwrap(),
    }
}

proptest! {
    #[test]
    fn a_random_tree_is_a_tree(n in 1usize..200, seed: u64) {
        prop_assert!(Topology::random_tree(n, &mut Rng::new(seed)).is_tree());
    }

    #[test]
    fn one_seed_gives_one_sound_graph(kind in 0u32..6, n in 5usize..60, seed: u64) {
        let graph = any_random(kind, n, &mut Rng::new(seed));
        prop_assert!(is_sound(&graph));
        prop_assert_eq!(&graph, &any_random(kind, n, &mut Rng::new(seed)));
    }

    #[test]
    fn regular_degrees_are_regular(n in 3usize..60, d in 2usize..59, seed: u64) {
        prop_assume!(d < n && n * d % 2 == 0);
        let graph = Topology::random_regular(n, d, &mut Rng::new(seed)).unwrap();
        prop_assert!(is_sound(&graph));
        prop_assert_eq!(degrees(&graph), BTreeSet::from([d]));
    }

    #[test]
    fn a_small_world_keeps_its_number_of_edges(n in 7usize..60, beta in 0.0..=1.0, seed: u64) {
        let world = Topology::small_world(n, 6, beta, &mut Rng::new(seed)).unwrap();
        prop_assert!(is_sound(&world));
        prop_assert_eq!(world.edges(), 3 * n);
    }
}

#[test]
fn a_bounded_tree_has_no_node_with_more_links() {
    for d in 2..6 {
        for n in [1, 2, 5, 6, 100] {
            let tree = Topology::bounded_tree(n, d);
            assert!(tree.is_tree() && (0..n).all(|place| tree.degree(place) <= d), "{n}, {d}");
            let inner = (0..n).filter(|&place| tree.degree(place) > 1).count();
            let full = (0..n).filter(|&place| tree.degree(place) == d).count();
            assert!(d == 2 || n <= d || inner - full <= 1, "all but one at most are full");
        }
    }
}

#[test]
fn the_scattered_are_linked_with_all_and_far_from_each_other() {
    let mut rng = Rng::new(3);
    let topology = Topology::scattered(50, 1000, 4, &mut rng).unwrap();
    assert!(topology.is_complete() && topology.fits(Shape::Complete));
    assert_eq!((topology.len(), topology.degree(7), topology.edges()), (50, 49, 1225));
    let (tree, stands) = topology.below().unwrap();
    let places: BTreeSet<u32> = stands.iter().copied().collect();
    assert_eq!((tree.len(), places.len()), (1000, 50));
    let hops = Hops::new(&topology, &Group::of(50));
    let far = |i: u32, j: u32| hops.between(ProcessId(i), ProcessId(j));
    let longest = (0..50).flat_map(|i| (0..50).map(move |j| far(i, j))).max();
    assert!(longest > Some(6) && longest <= Some(tree.diameter() as u32), "{longest:?}");
    assert!((0..50).all(|i| far(i, i) == 0 && (0..50).all(|j| i == j || far(i, j) > 0)));
    let refused = |n, nodes, d| Topology::scattered(n, nodes, d, &mut Rng::new(1)).unwrap_err();
    assert!(refused(3, 2, 4).to_string().contains("a node of its own"));
    assert!(refused(2, 9, 1).to_string().contains("2 links"));
    assert!(Topology::scattered(1, 1, 2, &mut rng).is_ok());
}
