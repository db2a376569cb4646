//! How messages travel. What carries them may lose them, and says so; nothing else is asked of it.

pub(crate) mod datagram;
mod tcp;
mod threads;

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use konklave_process::{Group, ProcessId};
use serde::Serialize;
use serde::de::DeserializeOwned;

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
pub(crate) enum Arrival<M> {
    /// A message.
    Message { from: ProcessId, id: u64, message: M },
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

/// A future whose type is forgotten: what the runtime does for a task is then compiled once, not for
/// each of them and each algorithm.
pub(crate) fn task<T>(
    future: impl Future<Output = T> + Send + 'static,
) -> Pin<Box<dyn Future<Output = T> + Send>> {
    Box::pin(future)
}

/// What a message must be able to do to travel.
pub(crate) trait Body: Serialize + DeserializeOwned + Send + 'static {}

impl<M: Serialize + DeserializeOwned + Send + 'static> Body for M {}

/// What connects the processes.
pub(crate) enum Network<M> {
    Threads(threads::Network<M>),
    Tcp(tcp::Network),
    Datagram(datagram::Network),
}

/// Where messages come in. When it is dropped, the process is cut off.
pub(crate) enum Inbox<M> {
    Threads(threads::Inbox<M>),
    Tcp(tcp::Inbox<M>),
    Datagram(datagram::Inbox<M>),
}

/// Where messages go out. When it is dropped, what was sent still goes out.
pub(crate) enum Outlet<M> {
    Threads(threads::Outlet<M>),
    Tcp(tcp::Outlet<M>),
    Datagram(datagram::Outlet<M>),
}

impl<M: Body> Network<M> {
    pub(crate) fn new(
        transport: Transport,
        group: &Group,
        frame_limit: usize,
        fates: Arc<dyn Fates>,
    ) -> io::Result<Self> {
        let datagram = |multicast| {
            let network =
                datagram::Network::new(group.clone(), frame_limit, multicast, fates.clone());
            network.map(Self::Datagram)
        };
        match transport {
            Transport::Threads => Ok(Self::Threads(threads::Network::new(group))),
            Transport::Tcp => Ok(Self::Tcp(tcp::Network::new(group.clone(), frame_limit, fates))),
            Transport::Udp => datagram(false),
            Transport::Multicast => datagram(true),
        }
    }

    /// Connects the process at `place`.
    pub(crate) async fn attach(&self, place: usize, me: End) -> io::Result<(Inbox<M>, Outlet<M>)> {
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

impl<M: Body> Inbox<M> {
    /// What comes next; none if nothing can come any more. Loses nothing when it is given up.
    pub(crate) async fn next(&mut self) -> Option<Arrival<M>> {
        match self {
            Self::Threads(inbox) => inbox.next().await,
            Self::Tcp(inbox) => inbox.next().await,
            Self::Datagram(inbox) => inbox.next().await,
        }
    }
}

impl<M: Body> Outlet<M> {
    /// Sends without waiting.
    pub(crate) fn send(&mut self, parcel: Parcel<M>) {
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
