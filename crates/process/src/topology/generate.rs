//! Generated topologies, by rule and at random. The same state of the random generator gives the same graph.

#[cfg(test)]
mod tests;

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

    /// Every place linked with every other.
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

    /// A tree in which every node has `d` links as far as there are nodes, level by level. Place 0
    /// has `d` children, each other node `d` − 1.
    pub fn bounded_tree(n: usize, d: usize) -> Self {
        assert!(d > 1, "more than two nodes need two links somewhere");
        let parent = |v: usize| if v <= d { 0 } else { 1 + (v - 1 - d) / (d - 1) };
        Self::by_rule(format!("bounded-tree:{d}"), n, (1..n).map(|v| (parent(v), v)))
    }

    /// A path of the first half of the places; each place of it has one of the second half as a leg.
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

    /// A grid that is closed in both directions. A side of two is closed by its one edge.
    pub fn torus(rows: usize, columns: usize) -> Self {
        let n = area(rows, columns);
        // A side of one has no edges; a side of two has half as many.
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

/// Random generators. All graphs are connected.
impl Topology {
    /// One of the n^(n − 2) trees, all with the same probability (Prüfer).
    pub fn random_tree(n: usize, rng: &mut Rng) -> Self {
        assert!(check_nodes(n).is_ok(), "a topology has 1 to 2^24 nodes");
        Self::listed("random-tree", n, &random_tree(n, rng))
    }

    /// `n` members at random nodes of a [bounded tree](Self::bounded_tree) of `nodes` nodes with `d`
    /// links each. All members can reach each other; [`Hops`] computes their distances.
    ///
    /// [`Hops`]: super::Hops
    pub fn scattered(
        n: usize,
        nodes: usize,
        d: usize,
        rng: &mut Rng,
    ) -> Result<Self, TopologyError> {
        let name = format!("scattered:{nodes},{d}");
        check_nodes(n)?;
        check_nodes(nodes)?;
        let impossible = |rule: &str| {
            Err(TopologyError::Impossible { name: name.clone(), n, rule: rule.into() })
        };
        if nodes < n {
            return impossible("each member stands at a node of its own");
        }
        if d < 2 {
            return impossible("a tree needs 2 links or more for each node");
        }
        let mut stands: Vec<u32> = (0..nodes as u32).collect();
        rng.shuffle(&mut stands);
        stands.truncate(n);
        let tree = Box::new(Self::bounded_tree(nodes, d));
        Ok(Self::implicit(name, n, Links::Scattered { tree, stands }))
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
            // So dense that it is connected: the complement of a sparse graph.
            let sparse = Self::listed("", n, &regular(n, n - 1 - d, rng));
            let edges: Vec<_> =
                pairs(n as u32).filter(|&(u, v)| !sparse.links(u as usize, v as usize)).collect();
            return Ok(Self::listed(name, n, &edges));
        }
        if d == 2 {
            // The only connected graph is a cycle, and random pairs rarely make a single one.
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
    /// If the graph is not connected, a random spanning tree is added, and the name of the topology says so.
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

    /// A ring with `k` near neighbours each, in which every edge is moved with probability `beta`
    /// (Watts–Strogatz).
    ///
    /// If ten attempts are not connected, the edges between neighbours in node order are kept.
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

    /// Adds one place after the other, linked with `m` earlier ones. Places with many links are preferred
    /// (preferential attachment). The first m + 1 places are linked with each other.
    pub fn scale_free(n: usize, m: usize, rng: &mut Rng) -> Result<Self, TopologyError> {
        let name = format!("scale-free:{m}");
        check_nodes(n)?;
        if m == 0 {
            let rule = "every node needs at least 1 link".into();
            return Err(TopologyError::Impossible { name, n, rule });
        }
        // One node has only one connected graph, and so do two, for all parameters.
        if m >= n && n > 2 {
            let rule = format!("a node can have at most {0} links (scale-free:{0})", n - 1);
            return Err(TopologyError::Impossible { name, n, rule });
        }
        check_edges(&name, n as f64 * m.min(n) as f64)?;
        let clique = n.min(m.saturating_add(1)) as u32;
        let mut edges: Vec<_> = pairs(clique).collect();
        // Each node occurs as often as it has links, so a uniform draw prefers nodes with many links.
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

    /// A random tree and random further edges, `m` edges in all.
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
            // In a dense graph, random draws would often hit an existing edge: draw from the missing edges.
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

/// The two factors of `n` that are nearest to each other, the smaller first.
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

/// Checks that about so many edges fit; a random graph may have a few more.
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

/// The tree of a Prüfer code: repeatedly, the lowest leaf is linked with the next entry.
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

/// Every pair with probability `p`, by jumps from one chosen pair to the next (Batagelj and Brandes).
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

/// Exchanges the ends of loops and duplicates with random other edges; false if it gets stuck.
fn make_simple(edges: &mut [(u32, u32)], n: usize, d: usize, rng: &mut Rng) -> bool {
    edges.sort_unstable();
    let suspects: Vec<_> = (0..edges.len())
        .filter(|&i| edges[i].0 == edges[i].1 || i > 0 && edges[i] == edges[i - 1])
        .collect();
    if suspects.is_empty() {
        return true;
    }
    // The neighbours of every node; a double edge is listed twice.
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

/// The edges of a ring with `k` near neighbours; edges of distance `from` or more are moved with
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
