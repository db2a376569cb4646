//! Topologies in words and files.

use proptest::prelude::*;

use super::*;
use crate::Rng;

fn spec(text: &str) -> Spec {
    text.parse().unwrap()
}

fn refused(text: &str) -> String {
    text.parse::<Spec>().unwrap_err().to_string()
}

fn build(text: &str, n: usize) -> Result<Topology, TopologyError> {
    let no_file = |_: &str| panic!("no file is needed");
    spec(text).build(n, &Rng::new(1), no_file).map(|parsed| parsed.topology)
}

fn read(text: &str) -> ParsedTopology {
    Topology::parse(text, "net.txt").unwrap()
}

fn fault(text: &str) -> String {
    Topology::parse(text, "net.txt").unwrap_err().to_string()
}

fn ids(parsed: &ParsedTopology) -> Vec<u32> {
    parsed.ids.iter().flatten().map(|id| id.0).collect()
}

#[test]
fn every_kind_can_be_written() {
    let cases = [
        ("ring", Spec::Ring),
        ("Directed-Ring", Spec::DirectedRing),
        ("path", Spec::Path),
        ("line", Spec::Path),
        ("star", Spec::Star),
        ("tree", Spec::RandomTree),
        ("random-tree", Spec::RandomTree),
        ("tree:3", Spec::KaryTree(3)),
        ("kary:4", Spec::KaryTree(4)),
        ("binary-tree", Spec::KaryTree(2)),
        ("caterpillar", Spec::Caterpillar),
        ("grid", Spec::Grid(None)),
        ("grid:3x4", Spec::Grid(Some((3, 4)))),
        ("torus", Spec::Torus(None)),
        ("torus:4x4", Spec::Torus(Some((4, 4)))),
        ("hypercube", Spec::Hypercube),
        ("complete", Spec::Complete),
        ("mesh", Spec::Complete),
        ("scattered:1000", Spec::Scattered(1000, 4)),
        ("scattered:50,3", Spec::Scattered(50, 3)),
        ("regular:4", Spec::RandomRegular(4)),
        ("erdos-renyi:0.3", Spec::ErdosRenyi(0.3)),
        ("er:1", Spec::ErdosRenyi(1.0)),
        ("small-world:4,0.1", Spec::SmallWorld(4, 0.1)),
        ("scale-free:2", Spec::ScaleFree(2)),
        ("random:20", Spec::Random(20)),
        ("net.txt", Spec::File("net.txt".into())),
        ("./Ring", Spec::File("./Ring".into())),
        ("file:ring", Spec::File("ring".into())),
        ("C:\\nets\\a.txt", Spec::File("C:\\nets\\a.txt".into())),
    ];
    for (text, expected) in cases {
        assert_eq!(spec(text), expected, "{text}");
        assert_eq!(spec(&expected.to_string()), expected, "{text}");
    }
}

#[test]
fn the_list_of_kinds_can_be_written_as_it_stands() {
    for (syntax, _) in Spec::kinds().iter().filter(|(syntax, _)| *syntax != "FILE") {
        let filled = syntax.replace(":K,P", ":2,0.5").replace(":P", ":0.5");
        let filled = filled.replace(":B", ":2").replace(":D", ":2").replace(":M", ":2");
        assert!(filled.parse::<Spec>().is_ok(), "{filled}");
    }
}

#[test]
fn an_unknown_kind_brings_the_list_and_the_nearest() {
    let message = refused("rnig");
    assert!(message.starts_with("there is no topology \"rnig\" (did you mean ring?); "));
    assert!(message.contains("directed-ring") && message.contains("small-world:K,P"));
    assert!(refused("erdos-reny:0.3").contains("did you mean erdos-renyi?"));
    assert!(refused("hyper").contains("did you mean hypercube?"));
    assert!(refused("Gird").contains("did you mean grid?"));
    assert!(!refused("banana").contains("did you mean"));
    assert!(!refused("").contains("did you mean"));
    assert_eq!(distance("", "abc"), 3);
}

#[test]
fn a_wrong_parameter_is_answered_with_the_right_form() {
    assert_eq!(
        refused("grid:3x"),
        "topology \"grid:3x\" is not complete or not right: write grid, or \
         grid:ROWSxCOLUMNS, such as grid:3x4"
    );
    for text in ["ring:5", "tree:0", "kary", "regular", "regular:-1", "er", "er:1.5", "er:NaN"] {
        assert!(refused(text).contains("write "), "{text}");
    }
    for text in
        ["small-world:4", "small-world:4,2", "scale-free:x", "random", "file:", "scattered:x,4"]
    {
        assert!(refused(text).contains("write "), "{text}");
    }
}

#[test]
fn a_spec_is_built_for_a_number_of_nodes() {
    assert_eq!(build("grid", 12).unwrap().name, "grid:3x4");
    assert_eq!(build("torus", 7).unwrap().name, "torus:1x7");
    assert_eq!(build("hypercube", 8).unwrap().diameter(), 3);
    assert_eq!(build("random:9", 6).unwrap().edges(), 9);
    let message = |text, n| build(text, n).unwrap_err().to_string();
    let cube = "a hypercube needs a power of two nodes, not 6 (try 4 or 8)";
    assert_eq!(message("hypercube", 6), cube);
    assert_eq!(message("grid:3x4", 10), "grid:3x4 has 12 nodes, not 10 (try grid:2x5)");
    assert_eq!(message("ring", 0), "a topology needs at least one node, not 0");
    assert!(message("ring", 1 << 25).contains("too many"));
    assert!(build("grid:0x4", 4).is_err());
}

#[test]
fn the_default_fits_its_shape_with_every_number_of_nodes() {
    use Shape::{Complete, Connected, DirectedRing, Ring, Tree};
    for shape in [DirectedRing, Ring, Tree, Connected, Complete] {
        for n in [1, 2, 3, 10, 100] {
            let topology = build(&Spec::default_for(shape).to_string(), n).unwrap();
            assert!(topology.fits(shape), "{shape} of {n}");
        }
    }
}

#[test]
fn edges_may_have_weights_and_comments() {
    let parsed = read("\u{feff}# a net\r\n7 3 0.5\r\n\r\n3 10 # far\r\n");
    assert_eq!(ids(&parsed), [3, 7, 10]);
    assert_eq!(parsed.topology.edge_list().collect::<Vec<_>>(), [(0, 1), (0, 2)]);
    assert_eq!(parsed.topology.name, "net.txt");
}

#[test]
fn a_line_of_nodes_sets_their_order() {
    let parsed = read("nodes: 3, 1, 2\n1 2\n3 1\n2 3\n");
    assert_eq!(ids(&parsed), [3, 1, 2]);
    assert!(parsed.topology.fits(Shape::Ring));
    let alone = read("nodes: 5\n");
    assert_eq!((ids(&alone), alone.topology.edges()), (vec![5], 0));
}

#[test]
fn neighbours_may_be_named_by_one_end_or_both() {
    let one = read("1: 2 3\n2: 3\n");
    let both = read("1: 2 3\n2: 1 3\n3: 1 2\n");
    assert_eq!(one, both);
    assert!(one.topology.is_complete());
    assert_eq!(read("4:\n").topology.len(), 1);
}

#[test]
fn a_ring_is_the_order_of_its_ids() {
    let ring = read("ring: 3 1 2 7\n");
    assert_eq!(ids(&ring), [3, 1, 2, 7]);
    assert!(ring.topology.fits(Shape::Ring));
    let directed = read("# one way\ndirected-ring: 3 1 2");
    assert!(!directed.topology.fits(Shape::Ring));
    assert!(directed.topology.fits(Shape::DirectedRing));
}

#[test]
fn every_fault_names_file_line_and_what_is_right() {
    let cases = [
        ("1 2\n\na 7\n", "net.txt:3: expected two ids \"u v [weight]\", found \"a 7\""),
        ("1 2 3 4\n", "net.txt:1: expected two ids \"u v [weight]\", found \"1 2 3 4\""),
        ("1 -2\n", "net.txt:1: expected two ids \"u v [weight]\", found \"1 -2\""),
        ("1 +2\n", "net.txt:1: expected two ids \"u v [weight]\", found \"1 +2\""),
        (
            "1 2 far\n",
            "net.txt:1: expected a number as the weight in \"u v [weight]\", \
             found \"1 2 far\"",
        ),
        ("1 2\n4 4\n", "net.txt:2: expected two different ids \"u v [weight]\", found \"4 4\""),
        ("1 16777216\n", "net.txt:1: expected ids from 0 to 16777215, found \"1 16777216\""),
        (
            "1 2\n2 3\n2 1\n",
            "net.txt:3: expected each edge once (it is in line 1 already), found \"2 1\"",
        ),
        (
            "nodes: 1 2\n1 3\n",
            "net.txt:2: expected ids of the \"nodes:\" line, and 3 is none, found \"1 3\"",
        ),
        (
            "nodes: 1 1\n",
            "net.txt:1: expected each id once, but 1 is there twice, found \"nodes: 1 1\"",
        ),
        ("ring:\n", "net.txt:1: expected ids in node order, such as \"3 1 2\", found \"ring:\""),
        ("ring: 1 2\n1 2\n", "net.txt:2: expected nothing after the ring order, found \"1 2\""),
        ("1: 2\n1 3\n", "net.txt:2: expected an id and its neighbours \"u: v w x\", found \"1 3\""),
        (
            "1: 2\n1: 3\n",
            "net.txt:2: expected each node once (it is in line 1 already), found \"1: 3\"",
        ),
        ("1: 2 2\n", "net.txt:1: expected each neighbour once, found \"1: 2 2\""),
        ("1: 1\n", "net.txt:1: expected neighbours other than the node itself, found \"1: 1\""),
        (
            "# nothing\n",
            "net.txt:1: expected lines \"u v [weight]\", \"u: v w x\" or \"ring: u v w\", \
             found none",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(fault(text), expected);
    }
    assert!(fault(&"ä".repeat(1000)).ends_with(&format!("found \"{}…\"", "ä".repeat(60))));
}

#[test]
fn a_file_is_read_by_the_caller_and_must_be_connected() {
    let file = spec("net.txt");
    let with = |text: &'static str, n| {
        file.build(n, &Rng::new(1), |name| {
            assert_eq!(name, "net.txt");
            Ok(text.into())
        })
    };
    assert_eq!(ids(&with("4 9\n", 0).unwrap()), [4, 9]);
    assert_eq!(ids(&with("4 9\n", 2).unwrap()), [4, 9]);
    assert_eq!(
        with("4 9\n", 3).unwrap_err().to_string(),
        "net.txt has 2 nodes, not 3: leave the number out or make it 2"
    );
    assert_eq!(
        with("nodes: 0 3 1\n0 1\n", 0).unwrap_err().to_string(),
        "net.txt: not connected: 3 cannot be reached from 0"
    );
    let missing = |_: &str| Err(io::Error::new(io::ErrorKind::NotFound, "no such file"));
    assert_eq!(
        file.build(0, &Rng::new(1), missing).unwrap_err().to_string(),
        "cannot read topology file net.txt: no such file"
    );
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(
        text in "([0-9:a, #.\\-\n]|nodes:|ring:|\n[0-3] [0-3]\n){0,60}"
    ) {
        let _ = Topology::parse(&text, "net.txt");
        let _ = text.parse::<Spec>();
    }

    #[test]
    fn a_written_graph_is_read_back(n in 1usize..15, p in 0.0..1.0, seed: u64) {
        let topology = Topology::erdos_renyi(n, p, &mut Rng::new(seed)).unwrap();
        let nodes: String = (0..n).map(|id| format!(" {id}")).collect();
        let edges: String = topology.edge_list().map(|(u, v)| format!("{v} {u}\n")).collect();
        let parsed = Topology::parse(&format!("nodes:{nodes}\n{edges}"), &topology.name);
        prop_assert_eq!(parsed.unwrap().topology, topology);
    }

    #[test]
    fn one_seed_builds_one_topology(seed: u64, n in 6usize..40) {
        for text in ["tree", "er:0.2", "regular:4", "small-world:4,0.2", "scale-free:2"] {
            let build = || spec(text).build(n, &Rng::new(seed), |_| unreachable!("no file"));
            prop_assert_eq!(build(), build());
        }
    }
}
