//! Sanders's mutual exclusion by any information structure.
//!
//! Each process has a set R of arbiters that it must ask and a set I of those that it must inform when it leaves. Its
//! handlers are those of [Maekawa](super::maekawa), and three rules differ:
//!
//! - a requester asks R, needs all its locks, and sends its release to I only, which is part of R;
//! - an arbiter locks itself only for a requester that will inform it, and grants the others at once;
//! - the sets come from a [`Structure`]: with the right one this is a coordinator, or Ricart and Agrawala's algorithm,
//!   or Maekawa's, or something between them.

mod sheet;
mod structure;
#[cfg(test)]
mod tests;

pub use self::structure::Structure;
pub use super::maekawa::Message;
use super::maekawa::{Node, Variant};

/// One process of the algorithm.
pub type Sanders = Node<InformationStructure>;

/// Sanders's algorithm: the locks of R, releases to I.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum InformationStructure {}

impl Variant for InformationStructure {}
