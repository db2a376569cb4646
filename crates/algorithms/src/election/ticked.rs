//! The edges of a process of a tree, each with a tick or without, in sixteen bytes.

use std::fmt;
use std::hash::{Hash, Hasher};

use konklave_process::{Context, MAX_ID, Port, PortSet, Process, ProcessId, prefetch};
use serde::{Serialize, Serializer};

use crate::Setup;

/// The edges of one process: port i leads to the neighbour with the i-th lowest id. They are shown,
/// compared and recorded as the set of those that are ticked. Three, which most processes of a tree
/// do not exceed, are kept where the process is.
#[derive(Clone)]
pub(super) enum Ticked {
    Few(u8, [Edge; FEW]),
    Many(Box<Box<[Edge]>>),
}

const FEW: usize = 3;

/// The id of a neighbour, which leaves one byte of four for the tick.
#[derive(Clone, Copy, Default)]
pub(super) struct Edge(u32);

const TICK: u32 = 1 << 31;
const _: () = assert!(MAX_ID < TICK);

impl Edge {
    fn peer(self) -> ProcessId {
        ProcessId(self.0 & !TICK)
    }

    fn is_ticked(self) -> bool {
        self.0 & TICK != 0
    }
}

impl Ticked {
    /// The edges of `me`, none of them ticked.
    pub(super) fn new(me: ProcessId, setup: &Setup) -> Self {
        let edges: Box<[Edge]> = setup.neighbours(me).into_iter().map(|p| Edge(p.0)).collect();
        if edges.len() > FEW {
            return Self::Many(Box::new(edges));
        }
        let mut few = [Edge::default(); FEW];
        few[..edges.len()].copy_from_slice(&edges);
        Self::Few(edges.len() as u8, few)
    }

    fn edges(&self) -> &[Edge] {
        match self {
            Self::Few(len, few) => &few[..usize::from(*len)],
            Self::Many(edges) => edges,
        }
    }

    /// Prefetches them ahead of their use.
    #[inline]
    pub(super) fn prefetch(&self) {
        if let Self::Many(edges) = self {
            prefetch(edges);
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.edges().len()
    }

    /// The port that leads to `peer`, if it is a neighbour.
    pub(super) fn port(&self, peer: ProcessId) -> Option<Port> {
        let found = match self {
            Self::Few(..) => self.edges().iter().position(|edge| edge.peer() == peer),
            Self::Many(edges) => edges.binary_search_by_key(&peer, |edge| edge.peer()).ok(),
        };
        found.map(|i| Port(i as u32))
    }

    /// The neighbour behind `port`.
    pub(super) fn peer(&self, port: Port) -> ProcessId {
        self.edges()[port.0 as usize].peer()
    }

    /// Ticks an edge; false if it was.
    pub(super) fn tick(&mut self, port: Port) -> bool {
        let edges = match self {
            Self::Few(_, few) => &mut few[..],
            Self::Many(edges) => edges,
        };
        let edge = &mut edges[port.0 as usize];
        let new = !edge.is_ticked();
        edge.0 |= TICK;
        new
    }

    /// The first edge without a tick.
    pub(super) fn unticked(&self) -> Option<Port> {
        let first = self.edges().iter().position(|edge| !edge.is_ticked());
        first.map(|i| Port(i as u32))
    }

    /// Sends `message` over all edges but `except`.
    pub(super) fn send_all_but<P: Process>(
        &self,
        except: Option<Port>,
        message: P::Message,
        ctx: &mut Context<'_, P>,
    ) {
        let except = except.map(|port| port.0 as usize);
        for (i, edge) in self.edges().iter().enumerate() {
            if Some(i) != except {
                ctx.send(edge.peer(), message.clone());
            }
        }
    }

    fn ticks(&self) -> impl Iterator<Item = bool> + '_ {
        self.edges().iter().map(|edge| edge.is_ticked())
    }

    fn ticked(&self) -> PortSet {
        (0..).map(Port).zip(self.ticks()).filter(|(_, tick)| *tick).map(|(port, _)| port).collect()
    }
}

// The neighbours never change, and are no part of the state.
impl PartialEq for Ticked {
    fn eq(&self, other: &Self) -> bool {
        self.ticks().eq(other.ticks())
    }
}

impl Eq for Ticked {}

impl Hash for Ticked {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.ticks().for_each(|tick| tick.hash(state));
    }
}

impl fmt::Debug for Ticked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ticked().fmt(f)
    }
}

impl Serialize for Ticked {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.ticked().serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use konklave_process::{Group, Topology};

    use super::*;

    #[test]
    fn few_and_many_edges_behave_alike() {
        assert_eq!(size_of::<Ticked>(), 16);
        for n in [1, 2, 4, 5, 70] {
            let setup = Setup::new(Group::of(n), Topology::star(n));
            let mut centre = Ticked::new(ProcessId(0), &setup);
            assert_eq!(centre.len(), n - 1);
            for p in (1..n as u32).rev() {
                let port = centre.port(ProcessId(p)).unwrap();
                assert_eq!((port, centre.peer(port)), (Port(p - 1), ProcessId(p)));
                assert_eq!(centre.unticked(), Some(Port(0)));
                assert_eq!((centre.tick(port), centre.tick(port)), (true, false));
                assert_eq!(centre.port(ProcessId(p)), Some(port), "a tick hides nobody");
            }
            assert_eq!(centre.unticked(), None);
            assert_eq!(centre.port(ProcessId(0)), None);
            assert_eq!(centre.ticked(), PortSet::first(n - 1));
        }
    }
}
