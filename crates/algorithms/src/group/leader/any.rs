//! The elections that can run inside a view, chosen when the group is built.

use konklave_process::Topology;
use konklave_process::topology::Shape;

use crate::election::{Indication, Request, adoption, dolev_klawe_rodeh, franklin, tree_wave};
use crate::group::within::any;

any! {
    Request => Indication;
    "franklin" Franklin franklin "Franklin, on a ring.";
    "dolev-klawe-rodeh" DolevKlaweRodeh dolev_klawe_rodeh "Dolev–Klawe–Rodeh, on a one-way ring.";
    "tree-wave" TreeWave tree_wave "The wave on a tree.";
    "adoption" Adoption adoption "Adoption, on all links.";
}

impl Any {
    /// The links of the election `name` in a view of `n` members, the most senior first.
    pub(super) fn topology(name: &str, n: usize) -> Topology {
        match Self::shape(name) {
            Some(Shape::Ring) => Topology::ring(n),
            Some(Shape::DirectedRing) => Topology::directed_ring(n),
            Some(Shape::Tree) => Topology::kary_tree(n, 2),
            Some(Shape::Connected | Shape::Complete) | None => Topology::complete(n),
        }
    }
}
