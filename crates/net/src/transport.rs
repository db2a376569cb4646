//! The transports. A transport may lose messages, but it must report each loss.

pub(crate) mod datagram;
#[cfg(test)]
pub(crate) mod sample;
mod tcp;
mod threads;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use konklave_process::{AnyData, AnyProcess, Group, ProcessId};

use crate::codec::End;
use crate::node::OutgoingMessage;
use crate::{Transport, Warning};

/// A connection from one incarnation of a process to one of another; `connection` counts those between them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Link {
    pub(crate) sender: End,
    pub(crate) receiver: End,
    pub(crate) connection: u32,
}

/// An item that a process receives from a transport.
pub(crate) enum Arrival {
    /// A message.
    Message { from: ProcessId, id: u64, message: AnyData },
    /// The end of a connection, after all its messages.
    End(Link),
}

/// The events that a transport reports to the run.
pub(crate) trait TransportEvents: Send + Sync {
    /// Message `id` will not arrive.
    fn lost(&self, id: u64);
    /// The sender closed `link`; message `last` was the last one written to it.
    fn closed(&self, link: Link, last: u64);
    /// The transport has a problem.
    fn warn(&self, warning: Warning);
}

/// The transport that connects the processes of a run.
pub(crate) enum Network {
    Threads(threads::Network),
    Tcp(tcp::Network),
    Datagram(datagram::Network),
}

/// Receives messages for one process. When it is dropped, the process is cut off.
pub(crate) enum Inbox {
    Threads(threads::Inbox),
    Tcp(tcp::Inbox),
    Datagram(datagram::Inbox),
}

/// Sends messages for one process. When it is dropped, messages already sent still go out.
pub(crate) enum Outlet {
    Threads(threads::Outlet),
    Tcp(tcp::Outlet),
    Datagram(datagram::Outlet),
}

impl Network {
    pub(crate) fn new(
        transport: Transport,
        group: Group,
        frame_limit: usize,
        sample: AnyProcess,
        events: Arc<dyn TransportEvents>,
    ) -> io::Result<Self> {
        Ok(match transport {
            Transport::Threads => Self::Threads(threads::Network::new(&group)),
            Transport::Tcp => Self::Tcp(tcp::Network::new(group, frame_limit, sample, events)),
            Transport::Udp | Transport::Multicast => {
                let multicast = transport == Transport::Multicast;
                let network = datagram::Network::new(group, frame_limit, multicast, sample, events);
                Self::Datagram(network?)
            }
        })
    }

    /// Connects the process at `place`.
    pub(crate) async fn attach(&self, place: usize, me: End) -> io::Result<(Inbox, Outlet)> {
        Ok(match self {
            Self::Threads(network) => {
                let (inbox, outlet) = network.attach(place, me.process);
                (Inbox::Threads(inbox), Outlet::Threads(outlet))
            }
            Self::Tcp(network) => {
                let (inbox, outlet) = network.attach(place, me).await?;
                (Inbox::Tcp(inbox), Outlet::Tcp(outlet))
            }
            Self::Datagram(network) => {
                let (inbox, outlet) = network.attach(place, me)?;
                (Inbox::Datagram(inbox), Outlet::Datagram(outlet))
            }
        })
    }

    /// The process at `place` has crashed: no sender needs to connect to it any more.
    pub(crate) fn detach(&self, place: usize) {
        match self {
            Self::Threads(_) => {}
            Self::Tcp(network) => network.detach(place),
            Self::Datagram(network) => network.detach(place),
        }
    }

    /// The addresses at which the processes listen, in node order; empty if they have no sockets.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        match self {
            Self::Threads(_) => Vec::new(),
            Self::Tcp(network) => network.addresses(),
            Self::Datagram(network) => network.addresses(),
        }
    }
}

impl Inbox {
    /// The next arrival; none if there will be no more. Cancelling this future loses nothing.
    pub(crate) async fn next(&mut self) -> Option<Arrival> {
        match self {
            Self::Threads(inbox) => inbox.next().await,
            Self::Tcp(inbox) => inbox.next().await,
            Self::Datagram(inbox) => inbox.next().await,
        }
    }
}

impl Outlet {
    /// Sends without waiting.
    pub(crate) fn send(&mut self, parcel: OutgoingMessage) {
        match self {
            Self::Threads(outlet) => outlet.send(parcel),
            Self::Tcp(outlet) => outlet.send(parcel),
            Self::Datagram(outlet) => outlet.send(parcel),
        }
    }

    /// Sends the messages that wait to be combined into one datagram. Called after each step.
    pub(crate) fn flush(&mut self) {
        match self {
            Self::Threads(_) | Self::Tcp(_) => {}
            Self::Datagram(outlet) => outlet.flush(),
        }
    }
}
