//! Topologies by rule and by chance. The same generator state gives the same graph.

use smallvec::SmallVec;

use super::{Links, MAX_EDGES, Topology, TopologyError, check_nodes};
use crate::{MAX_ID, Rng};

/// Generators by rule. They panic unless there are 1 to 2²⁴ nodes.
impl Topology {
    /// A ring whose links work from each place to the next.
    pub fn directed_ring(n: usize) -> Self {
        Self::implicit("directed-ring", n, Links::DirectedRing)
    }

    /// A ring whose links work both ways.
    pub fn ring(n: usize) -> Self {
        Self::implicit("ring", n, Links::Ring)
    }

    /// Everyone linked with everyone.
    pub fn complete(n: usize) -> Self {
        Self::implicit("complete", n, Links::Complete)
    }

    /// A ring that is cut between the last place and the first.
    pub fn path(n: usize) -> Self {
        Self::by_rule("path", n, (1..n).map(|v| (v - 1, v)))
    }

    /// Place 0 in the middle of all others.
    pub fn star(n: usize) -> Self {
        Self::by_rule("star", n, (1..n).map(|v| (0, v)))
    }

    /// Place 0 with `b` children, each with `b` children, level by level.
    pub fn kary_tree(n: usize, b: usize) -> Self {
        assert!(b > 0, "a tree node has at least one child");
        Self::by_rule(format!("tree:{b}"), n, (1..n).map(|v| ((v - 1) / b, v)))
    }

    /// A path of the first half of the places, each with one of the second half as a leg.
    pub fn caterpillar(n: usize) -> Self {
        let spine = n.div_ceil(2);
        let edges = (1..n).map(|v| (if v < spine { v - 1 } else { v - spine }, v));
        Self::by_rule("caterpillar", n, edges)
    }

    /// Rows and columns, row by row.
    pub fn grid(rows: usize, columns: usize) -> Self {
        let n = area(rows, columns);
        let right = (0..n).filter(|u| u % columns + 1 < columns).map(|u| (u, u + 1));
        let down = (0..n - columns).map(|u| (u, u + columns));
        Self::by_rule(format!("grid:{rows}x{columns}"), n, right.chain(down))
    }

    /// A grid that is closed around in both directions. A side of two closes with one edge.
    pub fn torus(rows: usize, columns: usize) -> Self {
        let n = area(rows, columns);
        // A side of one has no edges, of two half as many.
        let goes_on = |at: usize, side: usize| at + 1 < side || side > 2;
        let right = (0..n)
            .filter(|u| goes_on(u % columns, columns))
            .map(|u| (u, u - u % columns + (u % columns + 1) % columns));
        let down = (0..n).filter(|u| goes_on(u / columns, rows)).map(|u| (u, (u + columns) % n));
        Self::by_rule(format!("torus:{rows}x{columns}"), n, right.chain(down))
    }

    /// 2^`dimension` places, linked where one bit differs.
    pub fn hypercube(dimension: u32) -> Self {
        assert!(dimension <= MAX_ID.count_ones(), "a hypercube has up to 24 dimensions");
        let n = 1usize << dimension;
        let up = move |u: usize| (0..dimension).map(move |bit| (u, u | 1 << bit));
        let edges = (0..n).flat_map(up).filter(|(u, v)| u < v);
        Self::by_rule("hypercube", n, edges)
    }

    fn by_rule(
        name: impl Into<String>,
        n: usize,
        edges: impl Iterator<Item = (usize, usize)>,
    ) -> Self {
        assert!(check_nodes(n).is_ok(), "a topology has 1 to 2^24 nodes");
        let edges: Vec<_> = edges.map(|(u, v)| (u as u32, v as u32)).collect();
        Self::listed(name, n, &edges)
    }

    /// All n^(n − 2) trees over `n` places. Meant for small `n`; panics above 12.
    pub fn all_trees(n: usize) -> impl Iterator<Item = Self> {
        assert!((1..=12).contains(&n), "all trees of 1 to 12 nodes can be listed");
        let digits = n.saturating_sub(2) as u32;
        let base = n as u64;
        (0..base.pow(digits)).map(move |number| {
            let code: Vec<_> = (0..digits).map(|i| (number / base.pow(i) % base) as u32).collect();
            Self::listed(format!("tree {number} of {n}"), n, &prufer(n, &code))
        })
    }

    /// All connected graphs over `n` places. Meant for small `n`; panics above 8.
    pub fn all_connected(n: usize) -> impl Iterator<Item = Self> {
        assert!((1..=8).contains(&n), "all graphs of 1 to 8 nodes can be listed");
        let pairs: Vec<_> = pairs(n as u32).collect();
        (0..1u64 << pairs.len())
            .map(move |subset| {
                let chosen = pairs.iter().enumerate().filter(|(bit, _)| subset >> bit & 1 == 1);
                let edges: Vec<_> = chosen.map(|(_, &edge)| edge).collect();
                Self::listed(format!("graph {subset} of {n}"), n, &edges)
            })
            .filter(Self::is_connected)
    }
}

/// Generators by chance. All graphs are connected.
impl Topology {
    /// Any of the n^(n − 2) trees, each as likely (Prüfer).
    pub fn random_tree(n: usize, rng: &mut Rng) -> Self {
        assert!(check_nodes(n).is_ok(), "a topology has 1 to 2^24 nodes");
        Self::listed("random-tree", n, &random_tree(n, rng))
    }

    /// Every place with `d` neighbours: random pairs of link ends, repaired to a simple graph.
    pub fn random_regular(n: usize, d: usize, rng: &mut Rng) -> Result<Self, TopologyError> {
        let name = format!("regular:{d}");
        check_nodes(n)?;
        let impossible = |rule: &str| {
            Err(TopologyError::Impossible { name: name.clone(), n, rule: rule.into() })
        };
        if d >= n {
            return impossible("the degree must be less than the number of nodes");
        }
        if n * d % 2 == 1 {
            return impossible("nodes times degree must be even");
        }
        if d < 2 && n > d + 1 {
            return impossible("to be connected, it needs a degree of 2 or more");
        }
        check_edges(&name, n as f64 * d as f64 / 2.0)?;
        if 2 * d >= n {
            // So dense that it is connected: take out a sparse one.
            let sparse = Self::listed("", n, &regular(n, n - 1 - d, rng));
            let edges: Vec<_> =
                pairs(n as u32).filter(|&(u, v)| !sparse.links(u as usize, v as usize)).collect();
            return Ok(Self::listed(name, n, &edges));
        }
        if d == 2 {
            // The only connected one is a cycle, and pairs rarely make a single one.
            let mut order: Vec<_> = (0..n as u32).collect();
            rng.shuffle(&mut order);
            let edges: Vec<_> = (0..n).map(|i| (order[i], order[(i + 1) % n])).collect();
            return Ok(Self::listed(name, n, &edges));
        }
        loop {
            let topology = Self::listed(name.as_str(), n, &regular(n, d, rng));
            if topology.is_connected() {
                return Ok(topology);
            }
        }
    }

    /// Every pair linked with probability `p`.
    ///
    /// If that is not connected, a random spanning tree is added, and the name says so.
    pub fn erdos_renyi(n: usize, p: f64, rng: &mut Rng) -> Result<Self, TopologyError> {
        let name = format!("erdos-renyi:{p}");
        check_nodes(n)?;
        check_probability(p)?;
        check_edges(&name, p * n as f64 * n as f64 / 2.0)?;
        let mut edges = independent_pairs(n, p, rng);
        let topology = Self::listed(name.as_str(), n, &edges);
        if topology.is_connected() {
            return Ok(topology);
        }
        edges.extend(random_tree(n, rng));
        sort_and_dedup(&mut edges);
        Ok(Self::listed(format!("{name}+spanning-tree"), n, &edges))
    }

    /// A ring with `k` near neighbours each, every edge moved with probability `beta`
    /// (Watts–Strogatz).
    ///
    /// If ten attempts are not connected, the edges between neighbours in node order stay.
    pub fn small_world(
        n: usize,
        k: usize,
        beta: f64,
        rng: &mut Rng,
    ) -> Result<Self, TopologyError> {
        let name = format!("small-world:{k},{beta}");
        check_nodes(n)?;
        check_probability(beta)?;
        if k % 2 == 1 || k < 2 || k >= n {
            let rule = match n {
                1 | 2 => "it needs at least 3 nodes".into(),
                _ => format!("the neighbours must be an even number from 2 to {}", (n - 1) & !1),
            };
            return Err(TopologyError::Impossible { name, n, rule });
        }
        check_edges(&name, n as f64 * k as f64 / 2.0)?;
        for _ in 0..10 {
            let topology = Self::listed(name.as_str(), n, &rewired(n, k, beta, 1, rng));
            if topology.is_connected() {
                return Ok(topology);
            }
        }
        Ok(Self::listed(name, n, &rewired(n, k, beta, 2, rng)))
    }

    /// One place after the other, each linked with `m` before it, those with many links first
    /// (preferential attachment). The first m + 1 are linked with each other.
    pub fn scale_free(n: usize, m: usize, rng: &mut Rng) -> Result<Self, TopologyError> {
        let name = format!("scale-free:{m}");
        check_nodes(n)?;
        if m == 0 {
            let rule = "every node needs at least 1 link".into();
            return Err(TopologyError::Impossible { name, n, rule });
        }
        check_edges(&name, n as f64 * m.min(n) as f64)?;
        let clique = n.min(m.saturating_add(1)) as u32;
        let mut edges: Vec<_> = pairs(clique).collect();
        // Every node as often as it has links: a uniform draw prefers those with many.
        let mut ends: Vec<_> = edges.iter().flat_map(|&(u, v)| [u, v]).collect();
        let mut linked_with = vec![0; n];
        for v in clique..n as u32 {
            let known = ends.len() as u32;
            for _ in 0..m {
                let u = loop {
                    let u = ends[rng.below(known) as usize];
                    if linked_with[u as usize] != v {
                        break u;
                    }
                };
                linked_with[u as usize] = v;
                edges.push((u, v));
                ends.extend([u, v]);
            }
        }
        Ok(Self::listed(name, n, &edges))
    }

    /// A random tree and random further edges, `m` in all.
    pub fn random_graph(n: usize, m: usize, rng: &mut Rng) -> Result<Self, TopologyError> {
        let name = format!("random:{m}");
        check_nodes(n)?;
        let all = n * (n - 1) / 2;
        if m < n - 1 || m > all {
            let rule = format!("connected, that has {} to {all} edges", n - 1);
            return Err(TopologyError::Impossible { name, n, rule });
        }
        check_edges(&name, m as f64)?;
        let mut edges = random_tree(n, rng);
        sort_and_dedup(&mut edges);
        if m > all / 2 {
            // So dense that draws would often hit what is there: choose among what is not.
            let mut rest: Vec<_> =
                pairs(n as u32).filter(|edge| edges.binary_search(edge).is_err()).collect();
            for i in 0..m - edges.len() {
                let other = i + rng.below((rest.len() - i) as u32) as usize;
                rest.swap(i, other);
                edges.push(rest[i]);
            }
        }
        while edges.len() < m {
            for _ in 0..m - edges.len() {
                let u = rng.below(n as u32);
                let v = rng.below(n as u32 - 1);
                edges.push((u, if v < u { v } else { v + 1 }));
            }
            sort_and_dedup(&mut edges);
        }
        Ok(Self::listed(name, n, &edges))
    }
}

/// The factors of `n` that are nearest to each other, the smaller first.
pub(super) fn most_square(n: usize) -> (usize, usize) {
    let rows = (1..=n.isqrt()).rev().find(|rows| n.is_multiple_of(*rows)).unwrap_or(1);
    (rows, n / rows)
}

fn area(rows: usize, columns: usize) -> usize {
    assert!(rows > 0 && columns > 0, "a grid has at least one row and one column");
    rows.saturating_mul(columns)
}

fn check_probability(p: f64) -> Result<(), TopologyError> {
    if (0.0..=1.0).contains(&p) { Ok(()) } else { Err(TopologyError::Probability(p)) }
}

/// Whether about so many edges can be kept; chance may add a few.
fn check_edges(name: &str, expected: f64) -> Result<(), TopologyError> {
    if expected < MAX_EDGES as f64 * 0.98 {
        Ok(())
    } else {
        Err(TopologyError::TooManyEdges { name: name.into() })
    }
}

fn pairs(n: u32) -> impl Iterator<Item = (u32, u32)> {
    (0..n).flat_map(move |u| (u + 1..n).map(move |v| (u, v)))
}

fn sort_and_dedup(edges: &mut Vec<(u32, u32)>) {
    edges.iter_mut().for_each(|edge| *edge = (edge.0.min(edge.1), edge.0.max(edge.1)));
    edges.sort_unstable();
    edges.dedup();
}

fn random_tree(n: usize, rng: &mut Rng) -> Vec<(u32, u32)> {
    let code: Vec<_> = (2..n).map(|_| rng.below(n as u32)).collect();
    prufer(n, &code)
}

/// The tree of a Prüfer code: again and again the lowest leaf is linked with the next entry.
fn prufer(n: usize, code: &[u32]) -> Vec<(u32, u32)> {
    if n < 2 {
        return Vec::new();
    }
    let mut degrees = vec![1u32; n];
    code.iter().for_each(|&v| degrees[v as usize] += 1);
    let next_leaf = |degrees: &[u32], from: usize| {
        (from..n).find(|&v| degrees[v] == 1).expect("the last place stays a leaf")
    };
    let mut edges = Vec::with_capacity(n - 1);
    let mut scanned = next_leaf(&degrees, 0);
    let mut leaf = scanned;
    for &v in code {
        let v = v as usize;
        edges.push((leaf as u32, v as u32));
        degrees[v] -= 1;
        if degrees[v] == 1 && v < scanned {
            leaf = v;
        } else {
            scanned = next_leaf(&degrees, scanned + 1);
            leaf = scanned;
        }
    }
    edges.push((leaf as u32, n as u32 - 1));
    edges
}

/// Every pair with probability `p`, by jumping from hit to hit (Batagelj and Brandes).
fn independent_pairs(n: usize, p: f64, rng: &mut Rng) -> Vec<(u32, u32)> {
    let mut edges = Vec::new();
    if p == 0.0 {
        return edges;
    }
    let miss = (-p).ln_1p();
    let (mut u, mut v) = (-1i64, 1i64);
    loop {
        let skipped = ((1.0 - rng.unit()).ln() / miss).floor();
        u = u.saturating_add(1).saturating_add(skipped as i64);
        while u >= v && v < n as i64 {
            u -= v;
            v += 1;
        }
        if v >= n as i64 {
            return edges;
        }
        edges.push((u as u32, v as u32));
    }
}

/// A random graph with degree `d` everywhere, connected or not.
fn regular(n: usize, d: usize, rng: &mut Rng) -> Vec<(u32, u32)> {
    loop {
        let mut ends: Vec<_> = (0..n as u32).flat_map(|u| std::iter::repeat_n(u, d)).collect();
        rng.shuffle(&mut ends);
        let mut edges: Vec<_> =
            ends.chunks_exact(2).map(|pair| (pair[0].min(pair[1]), pair[0].max(pair[1]))).collect();
        if make_simple(&mut edges, n, d, rng) {
            return edges;
        }
    }
}

/// Exchanges ends of loops and duplicates with random other edges; false if it gets stuck.
fn make_simple(edges: &mut [(u32, u32)], n: usize, d: usize, rng: &mut Rng) -> bool {
    edges.sort_unstable();
    let suspects: Vec<_> = (0..edges.len())
        .filter(|&i| edges[i].0 == edges[i].1 || i > 0 && edges[i] == edges[i - 1])
        .collect();
    if suspects.is_empty() {
        return true;
    }
    // The partners of every node, as often as they are.
    let mut partners: Vec<Vec<u32>> = (0..n).map(|_| Vec::with_capacity(d)).collect();
    for &(u, v) in &*edges {
        partners[u as usize].push(v);
        partners[v as usize].push(u);
    }
    let replace = |partners: &mut [Vec<u32>], at: u32, old: u32, new: u32| {
        let entry = partners[at as usize].iter_mut().find(|partner| **partner == old);
        *entry.expect("partners know each other") = new;
    };
    for i in suspects {
        let (u, v) = edges[i];
        let copies = partners[u as usize].iter().filter(|&&partner| partner == v).count();
        if u != v && copies == 1 {
            continue;
        }
        let mut attempts = 0;
        loop {
            attempts += 1;
            if attempts > 100 + n {
                return false;
            }
            let j = rng.below(edges.len() as u32) as usize;
            let (x, y) = if rng.chance(0.5) { edges[j] } else { (edges[j].1, edges[j].0) };
            let taken = |a: u32, b: u32| a == b || partners[a as usize].contains(&b);
            if i == j || x == y || taken(u, x) || taken(v, y) {
                continue;
            }
            replace(&mut partners, u, v, x);
            replace(&mut partners, v, u, y);
            replace(&mut partners, x, y, u);
            replace(&mut partners, y, x, v);
            edges[i] = (u, x);
            edges[j] = (v, y);
            break;
        }
    }
    true
}

/// The edges of a ring with `k` near neighbours, those of distance `from` or more moved with
/// probability `beta`.
fn rewired(n: usize, k: usize, beta: f64, from: usize, rng: &mut Rng) -> Vec<(u32, u32)> {
    let near = |u: usize, distance: usize| ((u + distance) % n) as u32;
    let mut adjacent: Vec<SmallVec<[u32; 8]>> =
        (0..n).map(|u| (1..=k / 2).flat_map(|i| [near(u, i), near(u, n - i)]).collect()).collect();
    for distance in from..=k / 2 {
        for u in 0..n {
            if !rng.chance(beta) || adjacent[u].len() + 1 == n {
                continue;
            }
            let new = loop {
                let v = rng.below(n as u32);
                if v as usize != u && !adjacent[u].contains(&v) {
                    break v;
                }
            };
            let old = near(u, distance);
            adjacent[u].retain(|v| *v != old);
            adjacent[old as usize].retain(|v| *v as usize != u);
            adjacent[u].push(new);
            adjacent[new as usize].push(u as u32);
        }
    }
    let of = |u: usize| adjacent[u].iter().map(move |&v| (u as u32, v)).filter(|(u, v)| u < v);
    (0..n).flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::Rng;
    use crate::topology::Shape;

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
                let graph = Topology::scale_free(n, m, rng).unwrap();
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
    fn what_cannot_be_is_refused_with_what_could() {
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
}
