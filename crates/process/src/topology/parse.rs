//! Topologies as users write them: the value of `--topology`, and files.

#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::str::FromStr;

use super::generate::most_square;
use super::{Links, Shape, Topology, TopologyError, check_nodes};
use crate::{Group, GroupError, MAX_ID, ProcessId, Rng};

/// A description of a topology. With a number of nodes and a seed, the topology can be built.
#[derive(Clone, PartialEq, Debug)]
pub enum Spec {
    /// A cycle, both ways.
    Ring,
    /// A cycle, one way.
    DirectedRing,
    /// A line.
    Path,
    /// One node in the middle, linked with all others.
    Star,
    /// A random tree.
    RandomTree,
    /// A tree in which each node has so many children.
    KaryTree(usize),
    /// A path with legs.
    Caterpillar,
    /// Rows and columns; without them, as square as possible.
    Grid(Option<(usize, usize)>),
    /// A grid that is closed in both directions.
    Torus(Option<(usize, usize)>),
    /// Places are linked if their numbers differ in one bit.
    Hypercube,
    /// Every node linked with every other.
    Complete,
    /// Members at random nodes of a tree with so many nodes and so many links each.
    Scattered(usize, usize),
    /// So many random neighbours for each node.
    RandomRegular(usize),
    /// Each pair with this probability.
    ErdosRenyi(f64),
    /// So many near neighbours for each node, and the probability that an edge is moved.
    SmallWorld(usize, f64),
    /// So many links from each node to earlier ones.
    ScaleFree(usize),
    /// So many edges in all.
    Random(usize),
    /// The topology in the file of this name.
    File(String),
}

/// A topology, and the ids of its nodes if a file gives them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParsedTopology {
    /// The graph over places.
    pub topology: Topology,
    /// The id of each place, in node order.
    pub ids: Option<Vec<ProcessId>>,
}

const KINDS: &[(&str, &str)] = &[
    ("ring", "a ring, links work both ways"),
    ("directed-ring", "a ring, links work one way"),
    ("path", "a line"),
    ("star", "one node in the middle"),
    ("tree", "a random tree, each equally likely (also random-tree)"),
    ("tree:B", "a tree with B children each (also kary:B; binary-tree is tree:2)"),
    ("caterpillar", "a path with one leg at each node"),
    ("grid", "a grid, as square as the number of nodes allows; grid:3x4 has 3 rows of 4"),
    ("torus", "a grid closed around; torus:3x4 has 3 rows of 4"),
    ("hypercube", "nodes linked where one bit differs; needs a power of two nodes"),
    ("complete", "everyone linked with everyone (also mesh)"),
    (
        "scattered:M",
        "anywhere in a tree of M nodes with 4 links each (scattered:M,D: D); see --delay hops",
    ),
    ("regular:D", "a random graph with D neighbours each"),
    ("erdos-renyi:P", "each pair linked with probability P (also er:P)"),
    ("small-world:K,P", "a ring with K near neighbours each, edges moved with probability P"),
    ("scale-free:M", "each node linked with M before it, rather those with many links"),
    ("random:M", "a random connected graph with M edges"),
    ("FILE", "a file with edges \"u v\", neighbours \"u: v w\" or \"ring: u v w\""),
];

/// All accepted names, also those that are not in the list for help texts.
const NAMES: &[&str] = &[
    "ring",
    "directed-ring",
    "path",
    "line",
    "star",
    "tree",
    "random-tree",
    "kary",
    "binary-tree",
    "caterpillar",
    "grid",
    "torus",
    "hypercube",
    "complete",
    "mesh",
    "scattered",
    "regular",
    "erdos-renyi",
    "er",
    "small-world",
    "scale-free",
    "random",
];

/// The default number of links of a node of the tree over which members are scattered.
const LINKS: usize = 4;
/// The stream of the seed from which topologies are drawn.
const STREAM: u64 = 0x746f_706f;

impl Spec {
    /// All kinds of topology with their meaning, for help texts.
    pub fn kinds() -> &'static [(&'static str, &'static str)] {
        KINDS
    }

    /// A topology that fits `shape` with every number of nodes.
    pub fn default_for(shape: Shape) -> Self {
        match shape {
            Shape::DirectedRing => Self::DirectedRing,
            Shape::Ring => Self::Ring,
            Shape::Tree => Self::RandomTree,
            Shape::Connected => Self::ScaleFree(2),
            Shape::Complete => Self::Complete,
        }
    }

    /// Builds the topology for `n` nodes. A topology that is not connected is an error.
    ///
    /// A file determines its number of nodes: `n` must be the same, or 0 for the number of nodes
    /// in the file. The caller reads the file, through `read_file`.
    pub fn build(
        &self,
        n: usize,
        seed_rng: &Rng,
        read_file: impl FnOnce(&str) -> Result<String, io::Error>,
    ) -> Result<ParsedTopology, TopologyError> {
        if let Self::File(file) = self {
            let text = read_file(file).map_err(|error| TopologyError::Unreadable {
                file: file.clone(),
                reason: error.to_string(),
            })?;
            return connected(Topology::parse(&text, file)?, n);
        }
        check_nodes(n)?;
        let topology = self.generate(n, &mut seed_rng.fork(STREAM))?;
        Ok(ParsedTopology { topology, ids: None })
    }

    fn generate(&self, n: usize, rng: &mut Rng) -> Result<Topology, TopologyError> {
        let sides = |kind, sides: Option<(usize, usize)>| {
            let (rows, columns) = sides.unwrap_or_else(|| most_square(n));
            if rows.checked_mul(columns) == Some(n) {
                Ok((rows, columns))
            } else {
                Err(TopologyError::Sides { kind, rows, columns, n })
            }
        };
        Ok(match *self {
            Self::Ring => Topology::ring(n),
            Self::DirectedRing => Topology::directed_ring(n),
            Self::Path => Topology::path(n),
            Self::Star => Topology::star(n),
            Self::RandomTree => Topology::random_tree(n, rng),
            Self::KaryTree(0) => return Err(wrong("tree:0", "tree:B, such as tree:3")),
            Self::KaryTree(b) => Topology::kary_tree(n, b),
            Self::Caterpillar => Topology::caterpillar(n),
            Self::Grid(given) => {
                let (rows, columns) = sides("grid", given)?;
                Topology::grid(rows, columns)
            }
            Self::Torus(given) => {
                let (rows, columns) = sides("torus", given)?;
                Topology::torus(rows, columns)
            }
            Self::Hypercube if n.is_power_of_two() => Topology::hypercube(n.trailing_zeros()),
            Self::Hypercube => return Err(TopologyError::Hypercube(n)),
            Self::Complete => Topology::complete(n),
            Self::Scattered(nodes, d) => Topology::scattered(n, nodes, d, rng)?,
            Self::RandomRegular(d) => Topology::random_regular(n, d, rng)?,
            Self::ErdosRenyi(p) => Topology::erdos_renyi(n, p, rng)?,
            Self::SmallWorld(k, beta) => Topology::small_world(n, k, beta, rng)?,
            Self::ScaleFree(m) => Topology::scale_free(n, m, rng)?,
            Self::Random(m) => Topology::random_graph(n, m, rng)?,
            Self::File(_) => unreachable!("files are parsed, not generated"),
        })
    }
}

/// Checks the content of a file: the number of nodes, and that the graph is connected.
fn connected(parsed: ParsedTopology, n: usize) -> Result<ParsedTopology, TopologyError> {
    let ParsedTopology { topology, ids } = &parsed;
    if n != 0 && n != topology.len() {
        let (file, found) = (topology.name.clone(), topology.len());
        return Err(TopologyError::Count { file, found, n });
    }
    if let Some(place) = topology.unreached() {
        let id = |place: usize| ids.as_ref().map_or(place as u32, |ids| ids[place].0);
        let name = topology.name.clone();
        return Err(TopologyError::Disconnected { name, from: id(0), to: id(place) });
    }
    Ok(parsed)
}

impl FromStr for Spec {
    type Err = TopologyError;

    fn from_str(text: &str) -> Result<Self, TopologyError> {
        let text = text.trim();
        let (kind, rest) = match text.split_once(':') {
            Some((kind, rest)) => (kind, Some(rest)),
            None => (text, None),
        };
        let kind = kind.to_ascii_lowercase();
        let plain = |spec: Self, name: &'static str| match rest {
            None => Ok(spec),
            Some(_) => Err(wrong(text, name)),
        };
        let needed = |spec: Option<Self>, syntax| spec.ok_or_else(|| wrong(text, syntax));
        let number = || rest.and_then(|rest| rest.parse().ok()).filter(|number| *number > 0);
        let sides = |syntax| match rest {
            None => Ok(None),
            Some(rest) => pair(rest, 'x').ok_or_else(|| wrong(text, syntax)).map(Some),
        };
        let kary = "tree for a random tree, or tree:B for one with B children each, such as tree:3";
        match kind.as_str() {
            "ring" => plain(Self::Ring, "ring"),
            "directed-ring" => plain(Self::DirectedRing, "directed-ring"),
            "path" | "line" => plain(Self::Path, "path"),
            "star" => plain(Self::Star, "star"),
            "tree" if rest.is_none() => Ok(Self::RandomTree),
            "random-tree" => plain(Self::RandomTree, "random-tree"),
            "tree" | "kary" => needed(number().map(Self::KaryTree), kary),
            "binary-tree" => plain(Self::KaryTree(2), "binary-tree"),
            "caterpillar" => plain(Self::Caterpillar, "caterpillar"),
            "grid" => sides("grid, or grid:ROWSxCOLUMNS, such as grid:3x4").map(Self::Grid),
            "torus" => sides("torus, or torus:ROWSxCOLUMNS, such as torus:3x4").map(Self::Torus),
            "hypercube" => plain(Self::Hypercube, "hypercube"),
            "complete" | "mesh" => plain(Self::Complete, "complete"),
            "scattered" => {
                let given = rest.and_then(|rest| pair(rest, ','));
                let given = given.or_else(|| number().map(|nodes| (nodes, LINKS)));
                let spec = given.map(|(nodes, d)| Self::Scattered(nodes, d));
                needed(spec, "scattered:NODES or scattered:NODES,LINKS, such as scattered:1000,4")
            }
            "regular" => {
                needed(number().map(Self::RandomRegular), "regular:NEIGHBOURS, such as regular:4")
            }
            "erdos-renyi" | "er" => {
                let p = rest.and_then(|rest| rest.parse().ok()).filter(is_probability);
                needed(p.map(Self::ErdosRenyi), "erdos-renyi:P with P from 0 to 1, such as er:0.3")
            }
            "small-world" => {
                let given =
                    rest.and_then(|rest| pair(rest, ',')).filter(|(_, p)| is_probability(p));
                let spec = given.map(|(k, beta)| Self::SmallWorld(k, beta));
                needed(
                    spec,
                    "small-world:K,P with K even and P from 0 to 1, such as small-world:4,0.1",
                )
            }
            "scale-free" => {
                needed(number().map(Self::ScaleFree), "scale-free:LINKS, such as scale-free:2")
            }
            "random" => needed(number().map(Self::Random), "random:EDGES, such as random:20"),
            "file" => {
                let file = rest.filter(|file| !file.is_empty());
                needed(file.map(|file| Self::File(file.into())), "file:NAME, such as file:net.txt")
            }
            _ if is_file(text) => Ok(Self::File(text.into())),
            _ => Err(TopologyError::Unknown { found: text.into() }),
        }
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ring => f.write_str("ring"),
            Self::DirectedRing => f.write_str("directed-ring"),
            Self::Path => f.write_str("path"),
            Self::Star => f.write_str("star"),
            Self::RandomTree => f.write_str("random-tree"),
            Self::KaryTree(b) => write!(f, "tree:{b}"),
            Self::Caterpillar => f.write_str("caterpillar"),
            Self::Grid(None) => f.write_str("grid"),
            Self::Grid(Some((rows, columns))) => write!(f, "grid:{rows}x{columns}"),
            Self::Torus(None) => f.write_str("torus"),
            Self::Torus(Some((rows, columns))) => write!(f, "torus:{rows}x{columns}"),
            Self::Hypercube => f.write_str("hypercube"),
            Self::Complete => f.write_str("complete"),
            Self::Scattered(nodes, d) => write!(f, "scattered:{nodes},{d}"),
            Self::RandomRegular(d) => write!(f, "regular:{d}"),
            Self::ErdosRenyi(p) => write!(f, "erdos-renyi:{p}"),
            Self::SmallWorld(k, beta) => write!(f, "small-world:{k},{beta}"),
            Self::ScaleFree(m) => write!(f, "scale-free:{m}"),
            Self::Random(m) => write!(f, "random:{m}"),
            Self::File(file) if is_file(file) && !file.contains(':') => f.write_str(file),
            Self::File(file) => write!(f, "file:{file}"),
        }
    }
}

fn wrong(found: &str, syntax: &'static str) -> TopologyError {
    TopologyError::Syntax { found: found.into(), syntax }
}

fn pair<A: FromStr, B: FromStr>(text: &str, between: char) -> Option<(A, B)> {
    let (a, b) = text.split_once(between)?;
    Some((a.trim().parse().ok()?, b.trim().parse().ok()?))
}

fn is_probability(p: &f64) -> bool {
    (0.0..=1.0).contains(p)
}

/// Whether an unknown word is a file name rather than a misspelt kind such as `erdos-reny:0.3`.
fn is_file(text: &str) -> bool {
    let slip = text.split_once(':').is_some_and(|(kind, rest)| {
        !kind.contains('.') && rest.starts_with(|c: char| c.is_ascii_digit())
    });
    text.contains('/') || text.contains('.') && !slip
}

/// The kinds, for the message about an unknown kind.
pub(super) fn names() -> String {
    let names: Vec<_> =
        KINDS.iter().map(|(syntax, _)| *syntax).filter(|syntax| *syntax != "FILE").collect();
    names.join(", ")
}

/// A suggestion for a misspelt kind, for the same message.
pub(super) fn guess(found: &str) -> String {
    let word = found.split(':').next().unwrap_or(found).to_ascii_lowercase();
    let near = NAMES.iter().map(|name| (distance(&word, name), *name)).min();
    let longer = NAMES.iter().find(|name| word.len() >= 2 && name.starts_with(&word));
    match (near, longer) {
        (_, Some(name)) => format!(" (did you mean {name}?)"),
        // One wrong letter in three is a misspelling; more make another word.
        (Some((slips, name)), None) if slips * 3 <= name.len() => {
            format!(" (did you mean {name}?)")
        }
        _ => String::new(),
    }
}

/// The number of letters to insert, remove or replace; a swap of two neighbours counts once.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<_>, Vec<_>) = (a.chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let exchange = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = exchange.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

impl Topology {
    /// Parses the content of a file. `file_name` is for names and messages only.
    ///
    /// Comments begin with `#`; empty lines do not count. Nodes are named by their ids, with
    /// spaces or commas between them. There are three forms:
    ///
    /// * `ring: 3 1 2` or `directed-ring: 3 1 2`, alone: the nodes in ring order.
    /// * `u v` or `u v weight` in every line: edges, each once. Weights must be numbers, but are
    ///   not stored.
    /// * `u: v w x` in every line: the neighbours of u. Both ends may name an edge.
    ///
    /// The latter two may begin with `nodes: 3 1 2`. This line sets the node order and allows
    /// nodes without edges; otherwise node order is the order of ids. The graph need not be connected.
    pub fn parse(text: &str, file_name: &str) -> Result<ParsedTopology, TopologyError> {
        let mut rest = lines(text, file_name).peekable();
        let none = || TopologyError::NoLines { file: file_name.into() };
        let first = *rest.peek().ok_or_else(none)?;
        let mut order = None;
        if let Some((key @ ("ring" | "directed-ring" | "nodes"), ids)) = first.keyed() {
            rest.next();
            let group = first.group(ids)?;
            if key != "nodes" {
                return match rest.next() {
                    Some(line) => Err(line.wrong("nothing after the ring order")),
                    None => Ok(ring(key, &group, file_name)),
                };
            }
            order = Some(group);
        }
        let mut found = Found::default();
        let adjacency = rest.peek().is_some_and(|line| line.keyed().is_some());
        for line in rest {
            if adjacency {
                found.neighbours(line)?
            } else {
                found.edge(line)?
            };
            if let Some(group) = &order {
                found.check_new_nodes(line, group)?;
            }
        }
        if let Some((earlier, again)) = found.repetition() {
            let what = if adjacency { "node" } else { "edge" };
            let line = lines(text, file_name).find(|line| line.number == again);
            let line = line.expect("what is repeated stands in a line");
            return Err(line.wrong(format!("each {what} once (it is in line {earlier} already)")));
        }
        found.build(order, file_name)
    }
}

fn ring(key: &str, group: &Group, file_name: &str) -> ParsedTopology {
    let links = if key == "ring" { Links::Ring } else { Links::DirectedRing };
    let topology = Topology::implicit(file_name, group.len(), links);
    ParsedTopology { topology, ids: Some(group.members().to_vec()) }
}

/// The edges and nodes of a file, by id.
#[derive(Default)]
struct Found {
    /// Each edge with its lower id first.
    edges: Vec<(u32, u32)>,
    /// The subject of each line and the line's number: an edge, or a node twice.
    subjects: Vec<(u32, u32, u32)>,
    /// All named nodes, not yet checked against the given order.
    nodes: Vec<u32>,
}

impl Found {
    /// Reads `u v [weight]`.
    fn edge(&mut self, line: Line<'_>) -> Result<(), TopologyError> {
        const SYNTAX: &str = "two ids \"u v [weight]\"";
        let mut words = line.words(line.text);
        let (Some(u), Some(v), weight, None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(line.wrong(SYNTAX));
        };
        let (u, v) = (line.id(u, SYNTAX)?, line.id(v, SYNTAX)?);
        if weight.is_some_and(|weight| !weight.parse().is_ok_and(f64::is_finite)) {
            return Err(line.wrong("a number as the weight in \"u v [weight]\""));
        }
        if u == v {
            return Err(line.wrong("two different ids \"u v [weight]\""));
        }
        self.nodes.extend([u, v]);
        self.edges.push((u.min(v), u.max(v)));
        self.subjects.push((u.min(v), u.max(v), line.number));
        Ok(())
    }

    /// Reads `u: v w x`.
    fn neighbours(&mut self, line: Line<'_>) -> Result<(), TopologyError> {
        const SYNTAX: &str = "an id and its neighbours \"u: v w x\"";
        let (head, rest) = line.keyed().ok_or_else(|| line.wrong(SYNTAX))?;
        let u = line.id(head, SYNTAX)?;
        let others = line.words(rest).map(|word| line.id(word, SYNTAX));
        let mut others = others.collect::<Result<Vec<_>, _>>()?;
        if others.contains(&u) {
            return Err(line.wrong("neighbours other than the node itself"));
        }
        others.sort_unstable();
        if others.windows(2).any(|two| two[0] == two[1]) {
            return Err(line.wrong("each neighbour once"));
        }
        self.nodes.push(u);
        self.nodes.extend(&others);
        self.edges.extend(others.iter().map(|&v| (u.min(v), u.max(v))));
        self.subjects.push((u, u, line.number));
        Ok(())
    }

    fn check_new_nodes(&mut self, line: Line<'_>, group: &Group) -> Result<(), TopologyError> {
        match self.nodes.drain(..).find(|&id| !group.contains(ProcessId(id))) {
            Some(id) => Err(line.wrong(format!("ids of the \"nodes:\" line, and {id} is none"))),
            None => Ok(()),
        }
    }

    /// The first line that repeats an earlier one: the number of the earlier line, and its own.
    fn repetition(&mut self) -> Option<(u32, u32)> {
        self.subjects.sort_unstable();
        let same = |two: &&[(u32, u32, u32)]| (two[0].0, two[0].1) == (two[1].0, two[1].1);
        let pairs = self.subjects.windows(2).filter(same).map(|two| (two[0].2, two[1].2));
        pairs.min_by_key(|&(_, again)| again)
    }

    fn build(
        mut self,
        order: Option<Group>,
        file_name: &str,
    ) -> Result<ParsedTopology, TopologyError> {
        // Both lines may have named their common edge.
        self.edges.sort_unstable();
        self.edges.dedup();
        self.nodes.sort_unstable();
        self.nodes.dedup();
        let named = || Group::new(self.nodes.iter().copied().map(ProcessId).collect());
        let group = order.map_or_else(named, Ok).expect("ids are checked, and each is there once");
        let place = |id: u32| group.place(ProcessId(id)).expect("all nodes are in the group");
        let edges = self.edges.iter().map(|&(u, v)| (place(u), place(v)));
        let topology = Topology::from_edges(file_name, group.len(), edges)?;
        Ok(ParsedTopology { topology, ids: Some(group.members().to_vec()) })
    }
}

/// A line with content.
#[derive(Clone, Copy)]
struct Line<'a> {
    file: &'a str,
    /// The number of the line, from 1.
    number: u32,
    text: &'a str,
}

fn lines<'a>(text: &'a str, file: &'a str) -> impl Iterator<Item = Line<'a>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    (1..).zip(text.lines()).filter_map(move |(number, line)| {
        let text = line.split('#').next().unwrap_or(line).trim();
        (!text.is_empty()).then_some(Line { file, number, text })
    })
}

impl<'a> Line<'a> {
    /// The words before and after the colon, if there is one.
    fn keyed(&self) -> Option<(&'a str, &'a str)> {
        self.text.split_once(':').map(|(key, rest)| (key.trim(), rest))
    }

    fn words(&self, text: &'a str) -> impl Iterator<Item = &'a str> + use<'a> {
        text.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty())
    }

    fn id(&self, word: &str, syntax: &str) -> Result<u32, TopologyError> {
        let digits = word.bytes().all(|byte| byte.is_ascii_digit()) && !word.is_empty();
        match word.parse() {
            Ok(id) if digits && id <= MAX_ID => Ok(id),
            _ if digits => Err(self.wrong(format!("ids from 0 to {MAX_ID}"))),
            _ => Err(self.wrong(syntax)),
        }
    }

    /// All these ids, in this order.
    fn group(&self, ids: &'a str) -> Result<Group, TopologyError> {
        let syntax = "ids in node order, such as \"3 1 2\"";
        let ids = self.words(ids).map(|word| self.id(word, syntax).map(ProcessId));
        Group::new(ids.collect::<Result<_, _>>()?).map_err(|error| match error {
            GroupError::Twice(id) => self.wrong(format!("each id once, but {id} is there twice")),
            GroupError::Empty | GroupError::TooLarge(_) => self.wrong(syntax),
        })
    }

    fn wrong(&self, expected: impl Into<String>) -> TopologyError {
        const SHOWN: usize = 60;
        let mut found: String = self.text.chars().take(SHOWN).collect();
        if found.len() < self.text.len() {
            found.push('…');
        }
        TopologyError::Line {
            file: self.file.into(),
            line: self.number as usize,
            expected: expected.into(),
            found,
        }
    }
}
