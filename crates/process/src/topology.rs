//! Topologies: the links between processes.

mod generate;
mod hops;
mod parse;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::OnceLock;

use thiserror::Error;

use crate::{Fixed, Group, MAX_ID, ProcessId};

pub use hops::Hops;
pub use parse::{ParsedTopology, Spec};

/// A graph over the places 0 to n − 1 of a group. The places also form a circle, the ring order.
///
/// Rings and complete graphs store no edges; others keep their neighbours in one array, so that
/// 10⁶ nodes and 10⁷ edges take 84 MB.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Topology {
    /// The user's text: `ring`, `grid:3x4`, a file name.
    pub name: String,
    n: u32,
    links: Links,
    /// The parents in the tree of shortest paths from place 0, computed at the first use.
    parents: Fixed<OnceLock<Box<[u32]>>>,
}

/// The representation of the links.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Links {
    /// A cycle in the order of places, messages one way only.
    DirectedRing,
    /// A cycle in the order of places.
    Ring,
    /// Every place is linked with every other.
    Complete,
    /// Every member can reach every other, over a tree whose other nodes only forward.
    Scattered {
        /// The tree.
        tree: Box<Topology>,
        /// The node of each place in the tree.
        stands: Vec<u32>,
    },
    /// A list of links, each in both directions.
    Listed {
        /// The index of the first neighbour of each place; one more entry than there are places.
        starts: Vec<u32>,
        /// The neighbours of place 0 in ascending order, then those of place 1, and so on.
        neighbours: Vec<u32>,
    },
}

/// A property that an algorithm can require of a topology.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Shape {
    /// Every process can send to the next one in node order.
    DirectedRing,
    /// Every process can send to the next and to the previous one in node order.
    Ring,
    /// Connected and without cycles.
    Tree,
    /// Every process can reach every other, and every link works both ways.
    Connected,
    /// Every process is linked with every other.
    Complete,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::DirectedRing => "directed ring",
            Self::Ring => "undirected ring",
            Self::Tree => "tree",
            Self::Connected => "connected graph",
            Self::Complete => "complete graph",
        })
    }
}

/// The reason why a topology cannot be built.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum TopologyError {
    /// The group is empty.
    #[error("a topology needs at least one node, not 0")]
    Empty,
    /// There are more nodes than ids.
    #[error("{0} nodes are too many: at most {max} can have an id", max = MAX_ID as usize + 1)]
    TooManyNodes(usize),
    /// The edges do not fit into one array.
    #[error("{name} has more than {MAX_EDGES} edges: take fewer nodes or a sparser graph")]
    TooManyEdges {
        /// The requested topology.
        name: String,
    },
    /// An edge names a place that does not exist.
    #[error("edge {0}-{1} leaves the graph: its places are 0 to {last}", last = .2 - 1)]
    OutOfRange(usize, usize, usize),
    /// An edge leads from a node to itself.
    #[error("edge {0}-{0} is a loop: an edge needs two different nodes")]
    Loop(usize),
    /// An edge is given more than once.
    #[error("edge {0}-{1} is given twice: give each edge once")]
    Duplicate(usize, usize),
    /// A node cannot be reached.
    #[error("{name}: not connected: {to} cannot be reached from {from}")]
    Disconnected {
        /// The topology.
        name: String,
        /// The id where the search started.
        from: u32,
        /// An id that the search did not reach.
        to: u32,
    },
    /// The number of nodes is not a power of two.
    #[error("a hypercube needs a power of two nodes, not {0} (try {below} or {above})",
        below = (.0.next_power_of_two() / 2).max(1), above = .0.next_power_of_two())]
    Hypercube(usize),
    /// Rows times columns is not the number of nodes.
    #[error("{kind}:{rows}x{columns} has {} nodes, not {n} (try {kind}:{r}x{c})",
        .rows.saturating_mul(*.columns), r = generate::most_square(*.n).0,
        c = generate::most_square(*.n).1)]
    Sides {
        /// Grid or torus.
        kind: &'static str,
        /// The given number of rows.
        rows: usize,
        /// The given number of columns.
        columns: usize,
        /// The number of nodes.
        n: usize,
    },
    /// No graph has these parameters with this number of nodes.
    #[error("{name} does not exist with {n} node{s}: {rule}", s = if *.n == 1 { "" } else { "s" })]
    Impossible {
        /// The requested topology.
        name: String,
        /// The number of nodes.
        n: usize,
        /// The rule for valid values.
        rule: String,
    },
    /// A number is not a probability.
    #[error("a probability goes from 0 to 1, not {0}")]
    Probability(f64),
    /// The file has another number of nodes than requested.
    #[error("{file} has {found} nodes, not {n}: leave the number out or make it {found}")]
    Count {
        /// The file.
        file: String,
        /// The number of nodes in the file.
        found: usize,
        /// The requested number of nodes.
        n: usize,
    },
    /// The name of the kind is not known.
    #[error("there is no topology {found:?}{guess}; the kinds are {kinds}, and a file is \
        anything with a / or . in it (or file:NAME)",
        guess = parse::guess(.found), kinds = parse::names())]
    Unknown {
        /// The text that was given.
        found: String,
    },
    /// The kind is known, but its parameters cannot be read.
    #[error("topology {found:?} is not complete or not right: write {syntax}")]
    Syntax {
        /// The text that was given.
        found: String,
        /// The valid syntax.
        syntax: &'static str,
    },
    /// The file could not be read.
    #[error("cannot read topology file {file}: {reason}")]
    Unreadable {
        /// The file.
        file: String,
        /// The error of the operating system.
        reason: String,
    },
    /// The file names no nodes.
    #[error(
        "{file}:1: expected lines \"u v [weight]\", \"u: v w x\" or \"ring: u v w\", found none"
    )]
    NoLines {
        /// The file.
        file: String,
    },
    /// A line of the file is wrong.
    #[error("{file}:{line}: expected {expected}, found {found:?}")]
    Line {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The valid content.
        expected: String,
        /// The content of the file.
        found: String,
    },
}

/// The largest number of edges: each takes two 32-bit entries.
const MAX_EDGES: usize = (u32::MAX / 2) as usize;
/// Up to this many nodes, the diameter is found by a search from each of them.
const EXACT_DIAMETER: usize = 2000;

impl Topology {
    /// The graph of `n` places with these edges, connected or not.
    ///
    /// An edge works both ways and must be given once.
    pub fn from_edges(
        name: impl Into<String>,
        n: usize,
        edges: impl IntoIterator<Item = (usize, usize)>,
    ) -> Result<Self, TopologyError> {
        let name = name.into();
        check_nodes(n)?;
        let mut checked = Vec::new();
        for (u, v) in edges {
            if u >= n || v >= n {
                return Err(TopologyError::OutOfRange(u, v, n));
            }
            if u == v {
                return Err(TopologyError::Loop(u));
            }
            checked.push((u as u32, v as u32));
        }
        if checked.len() > MAX_EDGES {
            return Err(TopologyError::TooManyEdges { name });
        }
        let topology = Self::listed(name, n, &checked);
        match topology.twice() {
            Some((u, v)) => Err(TopologyError::Duplicate(u, v)),
            None => Ok(topology),
        }
    }

    /// Lays out edges whose ends exist and which are no loops.
    fn listed(name: impl Into<String>, n: usize, edges: &[(u32, u32)]) -> Self {
        assert!(edges.len() <= MAX_EDGES, "the edges fit into one array");
        let mut starts = vec![0u32; n + 1];
        for &(u, v) in edges {
            starts[u as usize + 1] += 1;
            starts[v as usize + 1] += 1;
        }
        for place in 0..n {
            starts[place + 1] += starts[place];
        }
        let mut free = starts.clone();
        let mut neighbours = vec![0u32; edges.len() * 2];
        for &(u, v) in edges {
            for (at, other) in [(u, v), (v, u)] {
                neighbours[free[at as usize] as usize] = other;
                free[at as usize] += 1;
            }
        }
        for place in 0..n {
            neighbours[starts[place] as usize..starts[place + 1] as usize].sort_unstable();
        }
        let links = Links::Listed { starts, neighbours };
        Self { name: name.into(), n: n as u32, links, parents: Fixed::default() }
    }

    /// A topology whose links follow from a rule, without a list.
    fn implicit(name: impl Into<String>, n: usize, links: Links) -> Self {
        assert!(check_nodes(n).is_ok(), "a topology has 1 to 2^24 nodes");
        Self { name: name.into(), n: n as u32, links, parents: Fixed::default() }
    }

    /// An edge that is listed twice.
    fn twice(&self) -> Option<(usize, usize)> {
        (0..self.len()).find_map(|place| {
            let same = self.list(place).windows(2).find(|pair| pair[0] == pair[1])?;
            Some((place, same[0] as usize))
        })
    }

    /// The number of nodes.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a topology is never empty")]
    pub fn len(&self) -> usize {
        self.n as usize
    }

    /// The number of undirected edges; in a directed ring, the number of links.
    ///
    /// A ring of two is two parallel edges, a ring of one has none.
    pub fn edges(&self) -> usize {
        let n = self.len();
        match &self.links {
            Links::DirectedRing | Links::Ring if n == 1 => 0,
            Links::DirectedRing | Links::Ring => n,
            Links::Complete | Links::Scattered { .. } => n * (n - 1) / 2,
            Links::Listed { neighbours, .. } => neighbours.len() / 2,
        }
    }

    /// The places to which `place` can send directly, ascending. In a directed ring this is the next one only.
    pub fn neighbours(&self, place: usize) -> Vec<usize> {
        self.adjacent(place).collect()
    }

    /// The same as [`neighbours`](Self::neighbours), as an iterator.
    pub fn adjacent(&self, place: usize) -> impl Iterator<Item = usize> + '_ {
        assert!(place < self.len(), "{place} is no place among {}", self.len());
        let (before, after) = (self.predecessor(place), self.successor(place));
        let (low, high) = match &self.links {
            Links::DirectedRing => (after, after),
            Links::Ring => (before.min(after), before.max(after)),
            Links::Complete | Links::Scattered { .. } | Links::Listed { .. } => (place, place),
        };
        let ring = [(low != place).then_some(low), (high != low).then_some(high)];
        let all = match &self.links {
            Links::Complete | Links::Scattered { .. } => 0..self.len(),
            Links::DirectedRing | Links::Ring | Links::Listed { .. } => 0..0,
        };
        ring.into_iter()
            .flatten()
            .chain(all.filter(move |&other| other != place))
            .chain(self.list(place).iter().map(|&other| other as usize))
    }

    /// The stored neighbours of `place`.
    #[inline]
    fn list(&self, place: usize) -> &[u32] {
        match &self.links {
            Links::Listed { starts, neighbours } => {
                &neighbours[starts[place] as usize..starts[place + 1] as usize]
            }
            Links::DirectedRing | Links::Ring | Links::Complete | Links::Scattered { .. } => &[],
        }
    }

    /// The number of places to which `place` can send directly.
    pub fn degree(&self, place: usize) -> usize {
        assert!(place < self.len(), "{place} is no place among {}", self.len());
        let others = self.len() - 1;
        match &self.links {
            Links::DirectedRing => others.min(1),
            Links::Ring => others.min(2),
            Links::Complete | Links::Scattered { .. } => others,
            Links::Listed { .. } => self.list(place).len(),
        }
    }

    /// Whether `from` can send to `to` directly.
    pub fn links(&self, from: usize, to: usize) -> bool {
        if from == to || from.max(to) >= self.len() {
            return false;
        }
        match &self.links {
            Links::DirectedRing => self.successor(from) == to,
            Links::Ring => self.successor(from) == to || self.predecessor(from) == to,
            Links::Complete | Links::Scattered { .. } => true,
            Links::Listed { .. } => self.list(from).binary_search(&(to as u32)).is_ok(),
        }
    }

    /// The next place in node order, around the circle. See [`fits`](Self::fits) for its meaning.
    #[inline]
    pub fn successor(&self, place: usize) -> usize {
        if place + 1 < self.len() { place + 1 } else { 0 }
    }

    /// The previous place in node order, around the circle.
    #[inline]
    pub fn predecessor(&self, place: usize) -> usize {
        if place > 0 { place - 1 } else { self.len() - 1 }
    }

    /// The members of `group` to which the one at `place` can send directly, by ascending id.
    pub fn neighbour_ids(&self, place: usize, group: &Group) -> Vec<ProcessId> {
        let mut ids: Vec<_> = self.adjacent(place).map(|other| group.id(other)).collect();
        ids.sort_unstable();
        ids
    }

    /// All edges, the lower place first; a ring of two has its edge twice.
    pub fn edge_list(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let around = match &self.links {
            Links::DirectedRing | Links::Ring if self.len() > 1 => self.len(),
            _ => 0,
        };
        let others = if around == 0 { self.len() } else { 0 };
        let ring = (0..around).map(|u| (u, self.successor(u)));
        let listed = (0..others)
            .flat_map(move |u| self.adjacent(u).filter(move |&v| u < v).map(move |v| (u, v)));
        ring.map(|(u, v)| (u.min(v), u.max(v))).chain(listed)
    }

    /// Whether every place can reach every other.
    pub fn is_connected(&self) -> bool {
        self.unreached().is_none()
    }

    /// The lowest place that place 0 cannot reach.
    pub fn unreached(&self) -> Option<usize> {
        let Links::Listed { .. } = self.links else { return None };
        let search = self.search(0, |_, _| {});
        if search.order.len() == self.len() {
            return None;
        }
        let mut reached = vec![false; self.len()];
        search.order.iter().for_each(|&place| reached[place as usize] = true);
        reached.iter().position(|reached| !reached)
    }

    /// Whether it is connected and has one edge less than nodes. A ring of two is no tree.
    pub fn is_tree(&self) -> bool {
        self.edges() + 1 == self.len() && self.is_connected()
    }

    /// Whether the links are those between neighbours in node order, in one direction or both.
    ///
    /// One node is a ring, and so are two linked nodes.
    pub fn is_ring(&self) -> bool {
        let n = self.len();
        match &self.links {
            Links::DirectedRing | Links::Ring => true,
            Links::Complete | Links::Scattered { .. } => n <= 3,
            Links::Listed { .. } if n <= 2 => self.edges() + 1 == n,
            Links::Listed { .. } => {
                self.edges() == n && (0..n).all(|u| self.links(u, self.successor(u)))
            }
        }
    }

    /// Whether every place can send to every other directly.
    pub fn is_complete(&self) -> bool {
        let n = self.len();
        match &self.links {
            Links::DirectedRing => n <= 2,
            Links::Ring => n <= 3,
            Links::Complete | Links::Scattered { .. } => true,
            Links::Listed { .. } => self.edges() == n * (n - 1) / 2,
        }
    }

    /// Whether an algorithm that requires `shape` can run here.
    ///
    /// * A complete graph contains every ring, so it fits both ring shapes in any node order.
    /// * An undirected ring fits as a directed one: the other direction is not used.
    /// * Listed edges fit the ring shapes if they are exactly the cycle in node order.
    /// * A directed ring fits nothing else: its links work one way only.
    /// * One node fits everything. Two linked nodes fit everything, too: each
    ///   has the other as its only neighbour, successor and predecessor.
    pub fn fits(&self, shape: Shape) -> bool {
        if self.len() <= 2 {
            return self.is_connected();
        }
        let undirected = self.links != Links::DirectedRing;
        match shape {
            Shape::DirectedRing => self.is_ring() || self.is_complete(),
            Shape::Ring => undirected && (self.is_ring() || self.is_complete()),
            Shape::Tree => self.is_tree(),
            Shape::Connected => undirected && self.is_connected(),
            Shape::Complete => self.is_complete(),
        }
    }

    /// The largest distance between two places.
    ///
    /// The result is exact for rings, complete graphs, trees, and all graphs of up to 2000 nodes. For larger graphs,
    /// it is the longer of two sweeps (from place 0, then from the farthest place), which is
    /// a lower bound; exact again for grids, tori and hypercubes. If the graph is not connected,
    /// pairs without a path do not count.
    pub fn diameter(&self) -> usize {
        let n = self.len();
        match &self.links {
            Links::DirectedRing => n - 1,
            Links::Ring => n / 2,
            Links::Complete | Links::Scattered { .. } => (n - 1).min(1),
            Links::Listed { .. } if n > EXACT_DIAMETER || self.is_tree() => self.two_sweeps(),
            Links::Listed { .. } => self.largest_depth(),
        }
    }

    fn two_sweeps(&self) -> usize {
        let first = self.search(0, |_, _| {});
        let farthest = *first.order.last().expect("a search finds at least its root");
        self.search(farthest as usize, |_, _| {}).depth
    }

    fn largest_depth(&self) -> usize {
        (0..self.len()).map(|root| self.search(root, |_, _| {}).depth).max().unwrap_or(0)
    }

    /// The tree of shortest paths from `root`; ties go to the parent that was found first.
    pub fn spanning_tree(&self, root: usize) -> Self {
        let mut edges = Vec::with_capacity(self.len() - 1);
        self.search(root, |parent, child| edges.push((parent, child)));
        Self::listed(format!("{}/bfs-tree", self.name), self.len(), &edges)
    }

    /// The next place on the way to place 0 in the tree of shortest paths from there; none for
    /// place 0 itself. The tree is computed once.
    pub fn parent(&self, place: usize) -> Option<usize> {
        let parents = self.parents.get_or_init(|| {
            let mut parents = vec![0; self.len()];
            self.search(0, |parent, child| parents[child as usize] = parent);
            parents.into()
        });
        (place != 0).then(|| parents[place] as usize)
    }

    /// The tree over which the members are scattered, and the node of each member in it.
    pub fn below(&self) -> Option<(&Self, &[u32])> {
        match &self.links {
            Links::Scattered { tree, stands } => Some((tree, stands)),
            Links::DirectedRing | Links::Ring | Links::Complete | Links::Listed { .. } => None,
        }
    }

    /// All places that place 0 can reach, the nearest first: each parent before its children.
    fn breadth_first(&self) -> Vec<u32> {
        self.search(0, |_, _| {}).order
    }

    /// Searches breadth-first from `root` and passes each new place with its parent to `found`.
    fn search(&self, root: usize, mut found: impl FnMut(u32, u32)) -> Search {
        let mut seen = vec![false; self.len()];
        seen[root] = true;
        let mut order = vec![root as u32];
        let (mut depth, mut level) = (0, 0..1);
        loop {
            for at in level.clone() {
                // In a dense graph, the first few places are linked with all others.
                if order.len() == self.len() {
                    break;
                }
                let parent = order[at];
                self.adjacent(parent as usize).for_each(|child| {
                    if !seen[child] {
                        seen[child] = true;
                        order.push(child as u32);
                        found(parent, child as u32);
                    }
                });
            }
            if order.len() == level.end {
                return Search { order, depth };
            }
            depth += 1;
            level = level.end..order.len();
        }
    }
}

/// The result of a breadth-first search.
struct Search {
    /// All reached places, the nearest first.
    order: Vec<u32>,
    /// The distance of the farthest place.
    depth: usize,
}

/// Checks that a topology may have so many nodes.
fn check_nodes(n: usize) -> Result<(), TopologyError> {
    match n {
        0 => Err(TopologyError::Empty),
        _ if n > MAX_ID as usize + 1 => Err(TopologyError::TooManyNodes(n)),
        _ => Ok(()),
    }
}
