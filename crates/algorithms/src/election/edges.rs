//! The edges of a process, as it numbers them.

use konklave_process::{Context, Fixed, Port, PortSet, Process, ProcessId, call_up};
use smallvec::SmallVec;

use crate::{Bound, Facts, Setup};

/// The edges of one process: port i leads to the neighbour with the i-th lowest id. Few of them, as
/// most processes of a tree have, are kept where the process is.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Edges(Fixed<SmallVec<[ProcessId; 4]>>);

impl Edges {
    /// The edges of `me`.
    pub(super) fn new(me: ProcessId, setup: &Setup) -> Self {
        Self(Fixed(setup.neighbours(me).into()))
    }

    /// Calls them up ahead of their use.
    #[inline]
    pub(super) fn call_up(&self) {
        if self.0.spilled() {
            call_up(&self.0);
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// All ports, in order.
    pub(super) fn ports(&self) -> impl Iterator<Item = Port> + use<> {
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

    /// The port that leads to `peer`, if it is a neighbour.
    pub(super) fn port(&self, peer: ProcessId) -> Option<Port> {
        self.0.binary_search(&peer).ok().map(|i| Port(i as u32))
    }

    /// The neighbour behind `port`.
    pub(super) fn peer(&self, port: Port) -> ProcessId {
        self.0[port.0 as usize]
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

/// The number of edges. Two processes have one edge, whatever their topology is called.
pub(super) fn links(f: &Facts<'_>) -> f64 {
    if f.n() == 2.0 { 1.0 } else { f.m() }
}

/// The messages of a flood: over all edges but the one on which it came, at everyone.
pub(super) fn flood(f: &Facts<'_>) -> f64 {
    2.0 * links(f) - f.n() + 1.0
}

/// The time of an echo wave and a flood. Everyone is reached within D; but the fastest ways may be
/// long, and on the way back each hop of them may take as long as any.
pub(super) fn echo_time(f: &Facts<'_>) -> Option<Bound> {
    // The diameter of larger graphs is not known exactly.
    let longest = f.delay_max.filter(|_| f.n() <= 2000.0)?;
    Some(Bound::AtMost((2.0 * f.setup.topology.diameter() as f64 + f.n()) * longest))
}
