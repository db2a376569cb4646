//! How messages travel. What carries them may lose them, and says so; nothing else is asked of it.

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
use crate::node::Parcel;
use crate::{Transport, Warning};

/// One connection: from whom, to whom, and the how many-th between them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Link {
    pub(crate) sender: End,
    pub(crate) receiver: End,
    pub(crate) connection: u32,
}

/// What comes in.
pub(crate) enum Arrival {
    /// A message.
    Message { from: ProcessId, id: u64, message: AnyData },
    /// The end of a connection, after all its messages.
    End(Link),
}

/// Who has to know what becomes of messages.
pub(crate) trait Fates: Send + Sync {
    /// Message `id` will not arrive.
    fn lost(&self, id: u64);
    /// The sender closed `link` after it had given message `last` to it.
    fn closed(&self, link: Link, last: u64);
    /// Something went wrong.
    fn warn(&self, warning: Warning);
}

/// What connects the processes.
pub(crate) enum Network {
    Threads(threads::Network),
    Tcp(tcp::Network),
    Datagram(datagram::Network),
}

/// Where messages come in. When it is dropped, the process is cut off.
pub(crate) enum Inbox {
    Threads(threads::Inbox),
    Tcp(tcp::Inbox),
    Datagram(datagram::Inbox),
}

/// Where messages go out. When it is dropped, what was sent still goes out.
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
        fates: Arc<dyn Fates>,
    ) -> io::Result<Self> {
        Ok(match transport {
            Transport::Threads => Self::Threads(threads::Network::new(&group)),
            Transport::Tcp => Self::Tcp(tcp::Network::new(group, frame_limit, sample, fates)),
            Transport::Udp | Transport::Multicast => {
                let multicast = transport == Transport::Multicast;
                let network = datagram::Network::new(group, frame_limit, multicast, sample, fates);
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

    /// The process at `place` is gone: nobody needs to call it any more.
    pub(crate) fn detach(&self, place: usize) {
        match self {
            Self::Threads(_) => {}
            Self::Tcp(network) => network.detach(place),
            Self::Datagram(network) => network.detach(place),
        }
    }

    /// Where the processes listen, in node order; nowhere if they have no sockets.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        match self {
            Self::Threads(_) => Vec::new(),
            Self::Tcp(network) => network.addresses(),
            Self::Datagram(network) => network.addresses(),
        }
    }
}

impl Inbox {
    /// What comes next; none if nothing can come any more. Loses nothing when it is given up.
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
    pub(crate) fn send(&mut self, parcel: Parcel) {
        match self {
            Self::Threads(outlet) => outlet.send(parcel),
            Self::Tcp(outlet) => outlet.send(parcel),
            Self::Datagram(outlet) => outlet.send(parcel),
        }
    }

    /// The step is over: what waits for more of the same goes out.
    pub(crate) fn flush(&mut self) {
        match self {
            Self::Threads(_) | Self::Tcp(_) => {}
            Self::Datagram(outlet) => outlet.flush(),
        }
    }
}
