//! The edges of a process, as it numbers them.

use std::fmt;
use std::ops::{Index, IndexMut};

use konklave_process::{Context, Fixed, Port, PortSet, Process, ProcessId, prefetch};
use serde::{Serialize, Serializer};
use smallvec::SmallVec;

use crate::{Bound, Facts, Setup};

/// The edges of one process: port i leads to the neighbour with the i-th lowest id. The note of an algorithm on each
/// edge (`N`, shown and recorded as the list of these) stands beside it, so that one search finds both. A few edges, as
/// most processes of a tree have, are inside the process.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Edges<N = (), const FEW: usize = 4>(SmallVec<[Edge<N>; FEW]>);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Edge<N> {
    peer: Fixed<ProcessId>,
    note: N,
}

impl<N, const FEW: usize> Default for Edges<N, FEW> {
    fn default() -> Self {
        Self(SmallVec::new())
    }
}

impl<N: Copy + Default, const FEW: usize> Edges<N, FEW> {
    /// The edges of `me`.
    pub(super) fn new(me: ProcessId, setup: &Setup) -> Self {
        let edge = |peer| Edge { peer: Fixed(peer), note: N::default() };
        Self(setup.neighbours(me).into_iter().map(edge).collect())
    }

    /// Prefetches them ahead of their use.
    #[inline]
    pub(super) fn prefetch(&self) {
        if self.0.spilled() {
            prefetch(&self.0);
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// All ports, in order.
    pub(super) fn ports(&self) -> impl Iterator<Item = Port> + use<N, FEW> {
        (0..self.len() as u32).map(Port)
    }

    /// All ports but `except`.
    pub(super) fn all_but(&self, except: Option<Port>) -> PortSet {
        let mut ports = PortSet::first(self.len());
        if let Some(port) = except {
            ports.remove(port);
        }
        ports
    }

    /// Notes the same of all.
    pub(super) fn note_all(&mut self, note: N) {
        self.0.iter_mut().for_each(|edge| edge.note = note);
    }

    /// The port that leads to `peer`, if it is a neighbour.
    pub(super) fn port(&self, peer: ProcessId) -> Option<Port> {
        self.0.binary_search_by_key(&peer, |edge| edge.peer.0).ok().map(|i| Port(i as u32))
    }

    /// The neighbour behind `port`.
    pub(super) fn peer(&self, port: Port) -> ProcessId {
        self.0[port.0 as usize].peer.0
    }

    /// Sends `message` over all edges but `except`.
    pub(super) fn send_all_but<P: Process>(
        &self,
        except: Option<Port>,
        message: P::Message,
        ctx: &mut Context<'_, P>,
    ) {
        for port in self.ports().filter(|&port| Some(port) != except) {
            ctx.send(self.peer(port), message.clone());
        }
    }
}

impl<N, const FEW: usize> Index<Port> for Edges<N, FEW> {
    type Output = N;
    fn index(&self, port: Port) -> &N {
        &self.0[port.0 as usize].note
    }
}

impl<N, const FEW: usize> IndexMut<Port> for Edges<N, FEW> {
    fn index_mut(&mut self, port: Port) -> &mut N {
        &mut self.0[port.0 as usize].note
    }
}

impl<N: fmt::Debug, const FEW: usize> fmt::Debug for Edges<N, FEW> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|edge| &edge.note)).finish()
    }
}

impl<N: Serialize, const FEW: usize> Serialize for Edges<N, FEW> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|edge| &edge.note))
    }
}

/// The number of edges. Two processes have one edge, whatever their topology is called.
pub(super) fn links(f: &Facts<'_>) -> f64 {
    if f.n() == 2.0 { 1.0 } else { f.m() }
}

/// The messages of a flood: at each process over all edges but the one on which it came.
pub(super) fn flood(f: &Facts<'_>) -> f64 {
    2.0 * links(f) - f.n() + 1.0
}

/// The time of an echo wave and a flood. The wave reaches each process within D; but the fastest ways may be long, and
/// on the way back each of their hops may take the longest delay.
pub(super) fn echo_time(f: &Facts<'_>) -> Option<Bound> {
    // The diameter of larger graphs is not known exactly.
    let longest = f.delay_max.filter(|_| f.n() <= 2000.0)?;
    Some(Bound::AtMost((2.0 * f.setup.topology.diameter() as f64 + f.n()) * longest))
}
