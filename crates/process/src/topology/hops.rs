//! How far members are from each other along a tree.

use super::Topology;
use crate::{Group, ProcessId};

/// How many links lie between any two members: along a tree, or one where all are linked.
///
/// The tree may have more nodes than members: the others only pass on.
#[derive(Clone, PartialEq, Debug)]
pub struct Hops {
    group: Group,
    tree: Option<Tree>,
}

#[derive(Clone, PartialEq, Debug)]
struct Tree {
    parents: Vec<u32>,
    depths: Vec<u32>,
    /// Where each member stands, in node order.
    stands: Vec<u32>,
}

impl Hops {
    /// Members of `group`, each at its place of `topology`: along the tree of shortest paths from
    /// the first, unless all are linked with all.
    pub fn new(topology: &Topology, group: &Group) -> Self {
        if topology.is_complete() {
            return Self { group: group.clone(), tree: None };
        }
        let places: Vec<usize> = (0..topology.len()).collect();
        Self::sparse(topology, group, &places)
    }

    /// The members of `group`, in node order, stand at these places of a tree.
    pub fn sparse(topology: &Topology, group: &Group, places: &[usize]) -> Self {
        assert_eq!(group.len(), places.len(), "every member stands somewhere");
        let n = topology.len();
        let parents: Vec<u32> = (0..n).map(|i| topology.parent(i).unwrap_or(i) as u32).collect();
        let mut depths = vec![u32::MAX; n];
        for i in 0..n {
            let (mut path, mut at) = (Vec::new(), i);
            while depths[at] == u32::MAX && parents[at] as usize != at {
                path.push(at);
                at = parents[at] as usize;
            }
            if depths[at] == u32::MAX {
                depths[at] = 0;
            }
            let mut depth = depths[at];
            for &node in path.iter().rev() {
                depth += 1;
                depths[node] = depth;
            }
        }
        let stands = places.iter().map(|&i| i as u32).collect();
        Self { group: group.clone(), tree: Some(Tree { parents, depths, stands }) }
    }

    /// How many links lie between `a` and `b`; 0 for a stranger.
    pub fn between(&self, a: ProcessId, b: ProcessId) -> u32 {
        let (Some(i), Some(j)) = (self.group.place(a), self.group.place(b)) else { return 0 };
        let Some(tree) = &self.tree else { return u32::from(i != j) };
        let (mut i, mut j) = (tree.stands[i] as usize, tree.stands[j] as usize);
        let mut links = 0;
        while i != j {
            if tree.depths[i] >= tree.depths[j] {
                i = tree.parents[i] as usize;
            } else {
                j = tree.parents[j] as usize;
            }
            links += 1;
        }
        links
    }

    /// The members whose way from `root` crosses the link above the node `below` of the tree.
    pub fn beyond(&self, below: usize) -> Vec<ProcessId> {
        let Some(tree) = &self.tree else { return Vec::new() };
        let behind = |mut at: usize| loop {
            if at == below {
                return true;
            }
            if tree.parents[at] as usize == at {
                return false;
            }
            at = tree.parents[at] as usize;
        };
        let members = self.group.members().iter().zip(&tree.stands);
        members.filter(|(_, at)| behind(**at as usize)).map(|(p, _)| *p).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
