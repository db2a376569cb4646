//! Tests of topologies.

use proptest::prelude::*;

use super::*;
use crate::Rng;

const SHAPES: [Shape; 5] =
    [Shape::DirectedRing, Shape::Ring, Shape::Tree, Shape::Connected, Shape::Complete];

fn graph(n: usize, edges: &[(usize, usize)]) -> Topology {
    Topology::from_edges("test", n, edges.iter().copied()).unwrap()
}

fn fitting(topology: &Topology) -> Vec<Shape> {
    SHAPES.into_iter().filter(|&shape| topology.fits(shape)).collect()
}

#[test]
fn neighbours_are_ascending_and_without_duplicates() {
    assert_eq!(graph(4, &[(3, 1), (1, 0), (2, 1)]).neighbours(1), [0, 2, 3]);
    assert_eq!(Topology::ring(5).neighbours(0), [1, 4]);
    assert_eq!(Topology::ring(5).neighbours(4), [0, 3]);
    assert_eq!(Topology::ring(2).neighbours(1), [0]);
    assert!(Topology::ring(1).neighbours(0).is_empty());
    assert_eq!(Topology::directed_ring(3).neighbours(2), [0]);
    assert!(Topology::directed_ring(1).neighbours(0).is_empty());
    assert_eq!(Topology::complete(4).neighbours(2), [0, 1, 3]);
}

#[test]
fn parents_lead_to_place_0_along_the_spanning_tree() {
    let graph = graph(5, &[(0, 2), (2, 1), (1, 0), (2, 3), (3, 4), (4, 1)]);
    let tree = graph.spanning_tree(0);
    assert_eq!(
        (0..5).map(|v| graph.parent(v)).collect::<Vec<_>>(),
        [None, Some(0), Some(0), Some(2), Some(1)]
    );
    assert!((1..5).all(|v| tree.parent(v) == graph.parent(v)));
    assert_eq!(Topology::complete(4).parent(3), Some(0));
    assert_eq!(Topology::path(4).parent(3), Some(2));
}

#[test]
fn neighbour_ids_ascend_by_id_and_not_by_place() {
    let group = Group::new([9, 7, 8].map(ProcessId).to_vec()).unwrap();
    let ids = Topology::ring(3).neighbour_ids(1, &group);
    assert_eq!(ids, [ProcessId(8), ProcessId(9)]);
}

#[test]
fn a_ring_of_two_is_two_parallel_edges_and_of_one_none() {
    assert_eq!([1, 2, 3].map(|n| Topology::ring(n).edges()), [0, 2, 3]);
    assert_eq!([1, 2, 3].map(|n| Topology::directed_ring(n).edges()), [0, 2, 3]);
    let list = |t: Topology| t.edge_list().collect::<Vec<_>>();
    assert_eq!(list(Topology::ring(1)), []);
    assert_eq!(list(Topology::ring(2)), [(0, 1), (0, 1)]);
    assert_eq!(list(Topology::directed_ring(3)), [(0, 1), (1, 2), (0, 2)]);
    assert!(!Topology::ring(2).is_tree() && Topology::path(2).is_tree());
}

#[test]
fn each_shape_is_fit_by_what_holds_it() {
    use Shape::{Complete, Connected, DirectedRing, Ring, Tree};
    assert_eq!(fitting(&Topology::directed_ring(4)), [DirectedRing]);
    assert_eq!(fitting(&Topology::directed_ring(3)), [DirectedRing]);
    assert_eq!(fitting(&Topology::ring(4)), [DirectedRing, Ring, Connected]);
    assert_eq!(fitting(&Topology::ring(3)), [DirectedRing, Ring, Connected, Complete]);
    assert_eq!(fitting(&Topology::complete(5)), [DirectedRing, Ring, Connected, Complete]);
    assert_eq!(fitting(&Topology::path(3)), [Tree, Connected]);
    assert_eq!(fitting(&Topology::grid(2, 3)), [Connected]);
    assert_eq!(fitting(&graph(3, &[(0, 1)])), []);
}

#[test]
fn a_listed_cycle_is_a_ring_in_node_order_only() {
    assert!(graph(4, &[(0, 1), (1, 2), (2, 3), (3, 0)]).fits(Shape::Ring));
    assert!(!graph(4, &[(0, 2), (2, 1), (1, 3), (3, 0)]).fits(Shape::DirectedRing));
    let complete = graph(4, &[(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)]);
    assert!(complete.fits(Shape::Ring) && complete.fits(Shape::Complete));
}

#[test]
fn one_node_and_two_linked_nodes_fit_everything() {
    for n in [1, 2] {
        let all = [Topology::ring(n), Topology::directed_ring(n), Topology::path(n)];
        for topology in all.into_iter().chain([Topology::star(n), Topology::complete(n)]) {
            assert_eq!(fitting(&topology), SHAPES, "{topology:?}");
            assert!(topology.is_ring() && topology.is_complete());
        }
    }
    assert_eq!(fitting(&graph(2, &[])), []);
}

#[test]
fn graph_that_is_not_simple_is_refused() {
    let refused = |n, edges: &[(usize, usize)]| {
        Topology::from_edges("x", n, edges.iter().copied()).unwrap_err().to_string()
    };
    assert_eq!(refused(0, &[]), "a topology needs at least one node, not 0");
    assert_eq!(refused(2, &[(0, 2)]), "edge 0-2 leaves the graph: its places are 0 to 1");
    assert_eq!(refused(2, &[(1, 1)]), "edge 1-1 is a loop: an edge needs two different nodes");
    let twice = "edge 0-1 is given twice: give each edge once";
    assert_eq!(refused(3, &[(0, 1), (2, 1), (1, 0)]), twice);
    let many = "16777217 nodes are too many: at most 16777216 can have an id";
    assert_eq!(refused((1 << 24) + 1, &[]), many);
}

#[test]
fn diameters_in_closed_form_agree_with_a_search_from_everywhere() {
    for n in [1, 2, 3, 4, 5, 10, 33] {
        let known = [Topology::directed_ring(n), Topology::ring(n), Topology::complete(n)];
        let trees = [Topology::path(n), Topology::star(n), Topology::caterpillar(n)];
        let random = [Topology::random_tree(n, &mut Rng::new(n as u64))];
        for topology in known.into_iter().chain(trees).chain(random) {
            assert_eq!(topology.diameter(), topology.largest_depth(), "{n} {}", topology.name);
        }
    }
    assert_eq!(Topology::grid(3, 4).diameter(), 5);
    assert_eq!(Topology::torus(4, 5).diameter(), 4);
    assert_eq!(Topology::hypercube(6).diameter(), 6);
    assert_eq!(Topology::grid(40, 60).diameter(), 98);
    assert_eq!(Topology::torus(50, 51).diameter(), 50);
    assert_eq!(Topology::hypercube(12).diameter(), 12);
    assert_eq!(graph(5, &[(0, 1), (2, 3), (3, 4)]).diameter(), 2);
}

#[test]
fn the_lowest_place_out_of_reach_is_named() {
    assert_eq!(graph(5, &[(0, 4), (4, 1), (2, 3)]).unreached(), Some(2));
    assert_eq!(graph(2, &[(0, 1)]).unreached(), None);
}

#[test]
fn shapes_read_as_words() {
    assert_eq!(Shape::Ring.to_string(), "undirected ring");
    assert_eq!(format!("{:>6}", Shape::Tree), "  tree");
}

proptest! {
    #[test]
    fn the_views_of_a_graph_agree(n in 1usize..12, p in 0.0..1.0, seed: u64) {
        let topology = Topology::erdos_renyi(n, p, &mut Rng::new(seed)).unwrap();
        let edges: Vec<_> = topology.edge_list().collect();
        prop_assert_eq!(edges.len(), topology.edges());
        prop_assert!(edges.iter().all(|&(u, v)| u < v && topology.links(u, v)));
        let ends: usize = (0..n).map(|u| topology.degree(u)).sum();
        prop_assert_eq!(ends, 2 * topology.edges());
        for (u, v) in (0..n).flat_map(|u| (0..n).map(move |v| (u, v))) {
            prop_assert_eq!(topology.links(u, v), topology.neighbours(u).contains(&v));
            prop_assert_eq!(topology.links(u, v), topology.links(v, u));
        }
        let same = Topology::from_edges(topology.name.clone(), n, edges).unwrap();
        prop_assert_eq!(same, topology);
    }

    #[test]
    fn a_spanning_tree_keeps_distances_to_its_root(n in 1usize..20, p in 0.0..1.0, seed: u64) {
        let mut rng = Rng::new(seed);
        let topology = Topology::erdos_renyi(n, p, &mut rng).unwrap();
        let root = rng.below(n as u32) as usize;
        let tree = topology.spanning_tree(root);
        prop_assert!(tree.is_tree());
        prop_assert!(tree.edge_list().all(|(u, v)| topology.links(u, v)));
        let depth = |t: &Topology| t.search(root, |_, _| {}).depth;
        prop_assert_eq!(depth(&tree), depth(&topology));
        prop_assert_eq!(tree.name, format!("{}/bfs-tree", topology.name));
    }

    #[test]
    fn two_sweeps_never_exceed_the_diameter(n in 1usize..40, p in 0.0..0.3, seed: u64) {
        let topology = Topology::erdos_renyi(n, p, &mut Rng::new(seed)).unwrap();
        prop_assert!(topology.two_sweeps() <= topology.diameter());
    }
}
