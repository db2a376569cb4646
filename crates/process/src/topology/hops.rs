//! Distances between members along a tree.

use super::Topology;
use crate::{Group, ProcessId};

/// The number of links between any two members: along a tree, or one link if all are linked.
///
/// The tree may have more nodes than members: the other nodes only forward.
#[derive(Clone, PartialEq, Debug)]
pub struct Hops {
    group: Group,
    tree: Option<Tree>,
}

/// A tree whose nodes are numbered in the order of a walk from its root (preorder): the nodes
/// below a node follow right after it.
///
/// The distance of two nodes follows from the depth of their lowest common ancestor. In the walk between the two, the
/// least depth is one more than the ancestor's. [`Lows`] finds this least depth without a search link by link.
#[derive(Clone, PartialEq, Debug)]
struct Tree {
    /// The position of each node of the topology in the walk.
    turns: Vec<u32>,
    /// The position of each member in the walk, in node order.
    stands: Vec<u32>,
    /// The depth of each node, in the order of the walk.
    depths: Vec<u32>,
    /// The number of nodes below each node, itself included, in the order of the walk.
    sizes: Vec<u32>,
    lows: Lows,
}

impl Hops {
    /// Distances in `topology`, where each member of `group` has its place: along the tree of shortest paths from
    /// the first member, unless all are linked with all. Members that are scattered over a larger tree
    /// have their nodes there.
    pub fn new(topology: &Topology, group: &Group) -> Self {
        if let Some((tree, places)) = topology.below() {
            return Self::sparse(tree, group, places);
        }
        if topology.is_complete() {
            return Self { group: group.clone(), tree: None };
        }
        let places: Vec<u32> = (0..topology.len() as u32).collect();
        Self::sparse(topology, group, &places)
    }

    /// Distances of the members of `group`, which have these places of a tree, in node order.
    pub fn sparse(topology: &Topology, group: &Group, places: &[u32]) -> Self {
        assert_eq!(group.len(), places.len(), "every member has a place");
        let walk = Walk::new(topology);
        let stands = places.iter().map(|&place| walk.turns[place as usize]).collect();
        let Walk { turns, depths, sizes } = walk;
        let lows = Lows::new(&depths);
        Self { group: group.clone(), tree: Some(Tree { turns, stands, depths, sizes, lows }) }
    }

    /// The number of links between `a` and `b`; 0 if one is not a member.
    pub fn between(&self, a: ProcessId, b: ProcessId) -> u32 {
        let (Some(i), Some(j)) = (self.group.place(a), self.group.place(b)) else { return 0 };
        let Some(tree) = &self.tree else { return u32::from(i != j) };
        let (i, j) = (tree.stands[i] as usize, tree.stands[j] as usize);
        if i == j {
            return 0;
        }
        // Right after the common ancestor, the first node of the walk is one level below it.
        let least = tree.lows.least(&tree.depths, i.min(j) + 1, i.max(j)) - 1;
        tree.depths[i] + tree.depths[j] - 2 * least
    }

    /// The members whose path from the root crosses the link above the node `below` of the tree.
    pub fn beyond(&self, below: usize) -> Vec<ProcessId> {
        let Some(tree) = &self.tree else { return Vec::new() };
        let first = tree.turns[below];
        let behind = first..first + tree.sizes[first as usize];
        let members = self.group.members().iter().zip(&tree.stands);
        members.filter(|(_, at)| behind.contains(at)).map(|(p, _)| *p).collect()
    }

    /// The number of nodes of the tree; none if all members are linked with all.
    pub fn nodes(&self) -> usize {
        self.tree.as_ref().map_or(0, |tree| tree.turns.len())
    }
}

/// A walk through the tree of shortest paths from place 0.
struct Walk {
    turns: Vec<u32>,
    depths: Vec<u32>,
    sizes: Vec<u32>,
}

impl Walk {
    fn new(topology: &Topology) -> Self {
        let n = topology.len();
        let order = topology.breadth_first();
        // Upwards: count the nodes below each node. Downwards: a subtree begins where that of the previous sibling ends.
        let mut below = vec![1u32; n];
        for &place in order.iter().rev() {
            if let Some(parent) = topology.parent(place as usize) {
                below[parent] += below[place as usize];
            }
        }
        let (mut turns, mut next) = (vec![0u32; n], vec![1u32; n]);
        let (mut depths, mut sizes) = (vec![0u32; n], vec![n as u32; n]);
        for &place in &order {
            let place = place as usize;
            let Some(parent) = topology.parent(place) else { continue };
            turns[place] = next[parent];
            next[parent] += below[place];
            next[place] = turns[place] + 1;
            depths[turns[place] as usize] = depths[turns[parent] as usize] + 1;
            sizes[turns[place] as usize] = below[place];
        }
        Self { turns, depths, sizes }
    }
}

/// The number of neighbours in one block: as many as fit into a cache line.
const BLOCK: usize = 16;

/// Range minima of a row of numbers. A range consists of the end of a block, whole blocks, and the beginning of a
/// block: the minima of all these are precomputed, those of whole blocks for every power of two. Only a range within
/// one block is searched.
#[derive(Clone, PartialEq, Debug)]
struct Lows {
    /// The minimum from the beginning of its block to each number.
    upto: Vec<u32>,
    /// The minimum from each number to the end of its block.
    from: Vec<u32>,
    /// The minimum of 2ᵏ blocks from each block on: first for k = 0, then for k = 1, and so on.
    levels: Vec<Vec<u32>>,
}

impl Lows {
    fn new(row: &[u32]) -> Self {
        let running = |least: &mut u32, x: &u32| {
            *least = (*least).min(*x);
            Some(*least)
        };
        let (mut upto, mut from) = (Vec::new(), Vec::new());
        for block in row.chunks(BLOCK) {
            upto.extend(block.iter().scan(u32::MAX, running));
            from.extend(block.iter().rev().scan(u32::MAX, running));
            let first = from.len() - block.len();
            from[first..].reverse();
        }
        let mut levels = vec![from.iter().copied().step_by(BLOCK).collect::<Vec<u32>>()];
        let mut reach = 1;
        while let Some(last) = levels.last()
            && last.len() > reach
        {
            let pairs = last.iter().zip(&last[reach..]);
            let next = pairs.map(|(a, b)| *a.min(b)).collect();
            levels.push(next);
            reach *= 2;
        }
        Self { upto, from, levels }
    }

    /// The minimum of `row` from `first` to `last`, both included.
    #[inline]
    fn least(&self, row: &[u32], first: usize, last: usize) -> u32 {
        let (head, tail) = (first / BLOCK, last / BLOCK);
        if head == tail {
            return row[first..=last].iter().copied().fold(u32::MAX, u32::min);
        }
        let ends = self.from[first].min(self.upto[last]);
        let whole = tail - head - 1;
        if whole == 0 {
            return ends;
        }
        let k = whole.ilog2();
        let level = &self.levels[k as usize];
        ends.min(level[head + 1]).min(level[tail - (1 << k)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    #[test]
    fn distances_are_counted_along_the_tree() {
        let chain: Vec<(usize, usize)> = (1..5).map(|i| (i - 1, i)).collect();
        let chain = Topology::from_edges("chain", 5, chain).unwrap();
        let hops = Hops::new(&chain, &Group::of(5));
        for i in 0..5 {
            for j in 0..5 {
                assert_eq!(hops.between(ProcessId(i), ProcessId(j)), i.abs_diff(j));
            }
        }
        assert_eq!(hops.beyond(3), [ProcessId(3), ProcessId(4)]);
        let sparse = Hops::sparse(&chain, &Group::of(2), &[4, 1]);
        assert_eq!(sparse.between(ProcessId(0), ProcessId(1)), 3);
        let all = Hops::new(&Topology::complete(4), &Group::of(4));
        assert_eq!(
            (all.between(ProcessId(1), ProcessId(3)), all.between(ProcessId(1), ProcessId(1))),
            (1, 0)
        );
        assert!(all.beyond(2).is_empty());
    }

    /// The distance by climbing from both ends, link by link.
    fn climbed(topology: &Topology, mut i: usize, mut j: usize) -> u32 {
        let depth = |mut at: usize| {
            let mut depth = 0;
            while let Some(parent) = topology.parent(at) {
                (at, depth) = (parent, depth + 1);
            }
            depth
        };
        let mut links = 0;
        while i != j {
            if depth(i) < depth(j) {
                std::mem::swap(&mut i, &mut j);
            }
            i = topology.parent(i).expect("the deeper one is not the root");
            links += 1;
        }
        links
    }

    #[test]
    fn lookup_agrees_with_a_search_link_by_link() {
        let mut rng = Rng::new(7);
        for n in [1, 2, 3, 15, 16, 17, 33, 64, 200] {
            let mut shapes = vec![
                Topology::path(n),
                Topology::star(n),
                Topology::kary_tree(n, 2),
                Topology::random_tree(n, &mut rng),
            ];
            if n > 2 {
                shapes.push(Topology::ring(n));
            }
            for topology in shapes.into_iter().filter(|t| !t.is_complete()) {
                let hops = Hops::new(&topology, &Group::of(n));
                for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
                    let found = hops.between(ProcessId(i as u32), ProcessId(j as u32));
                    assert_eq!(found, climbed(&topology, i, j), "{} {n}: {i}-{j}", topology.name);
                }
                for below in 1..n {
                    let behind = |mut at: usize| loop {
                        match topology.parent(at) {
                            _ if at == below => return true,
                            Some(parent) => at = parent,
                            None => return false,
                        }
                    };
                    let found: Vec<usize> =
                        hops.beyond(below).iter().map(|p| p.0 as usize).collect();
                    let expected: Vec<usize> = (0..n).filter(|&at| behind(at)).collect();
                    assert_eq!(found, expected, "{} {n}: behind {below}", topology.name);
                }
            }
        }
    }
}
