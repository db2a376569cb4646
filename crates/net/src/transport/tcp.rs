//! TCP on the loopback interface.
//!
//! Each process listens on a port of its own. A process connects to a receiver when it first sends to it; the
//! connection carries messages in this direction only. Messages lost with a broken connection are counted
//! as lost and not sent again. The next message goes through a new connection.

mod reader;
#[cfg(test)]
mod tests;
mod writer;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use konklave_process::{AnyProcess, Group, Rng};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{Receiver, UnboundedSender, channel, unbounded_channel};
use tokio::task::JoinSet;

use crate::codec::End;
use crate::node::OutgoingMessage;
use crate::transport::{Arrival, TransportEvents};

/// How many messages an inbox holds before its sockets are not read any further.
const INBOX: usize = 1024;

pub(crate) struct Network(Arc<Mesh>);

/// The part of the transport that all processes share.
struct Mesh {
    group: Group,
    /// Tells this run from all others on the machine.
    number: u64,
    frame_limit: usize,
    /// Reads messages.
    sample: AnyProcess,
    directory: RwLock<Vec<Option<Entry>>>,
    events: Arc<dyn TransportEvents>,
    /// Writers outlive their processes: what was sent goes out.
    writers: Mutex<JoinSet<()>>,
}

/// The address at which an incarnation of a process listens.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Entry {
    address: SocketAddr,
    end: End,
}

pub(crate) struct Inbox {
    arrivals: Receiver<Arrival>,
    /// The task that listens: it ends with the inbox, and so do all readers.
    _listener: JoinSet<()>,
}

pub(crate) struct Outlet {
    me: End,
    mesh: Arc<Mesh>,
    writers: Vec<Option<UnboundedSender<OutgoingMessage>>>,
}

impl Network {
    pub(super) fn new(
        group: Group,
        frame_limit: usize,
        sample: AnyProcess,
        events: Arc<dyn TransportEvents>,
    ) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let nonce = since.as_nanos() as u64 ^ u64::from(std::process::id()) << 40;
        Self(Arc::new(Mesh {
            number: Rng::new(nonce).next_u64(),
            frame_limit,
            sample,
            directory: RwLock::new(vec![None; group.len()]),
            group,
            events,
            writers: Mutex::default(),
        }))
    }

    pub(super) async fn attach(&self, place: usize, me: End) -> io::Result<(Inbox, Outlet)> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let mesh = &self.0;
        mesh.enter(place, Some(Entry { address, end: me }));
        let (sender, arrivals) = channel(INBOX);
        let mut listening = JoinSet::new();
        listening.spawn(reader::listen(listener, mesh.clone(), me, sender));
        let writers = (0..mesh.group.len()).map(|_| None).collect();
        let outlet = Outlet { me, mesh: mesh.clone(), writers };
        Ok((Inbox { arrivals, _listener: listening }, outlet))
    }

    pub(super) fn detach(&self, place: usize) {
        self.0.enter(place, None);
    }

    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        let directory = self.0.directory.read().unwrap_or_else(PoisonError::into_inner);
        directory.iter().flatten().map(|entry| entry.address).collect()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.0.writers.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }
}

impl Mesh {
    fn enter(&self, place: usize, entry: Option<Entry>) {
        self.directory.write().unwrap_or_else(PoisonError::into_inner)[place] = entry;
    }

    fn look_up(&self, place: usize) -> Option<Entry> {
        self.directory.read().unwrap_or_else(PoisonError::into_inner)[place]
    }
}

impl Inbox {
    pub(super) async fn next(&mut self) -> Option<Arrival> {
        self.arrivals.recv().await
    }
}

impl Outlet {
    pub(super) fn send(&mut self, parcel: OutgoingMessage) {
        let (me, mesh, to) = (self.me, &self.mesh, parcel.to);
        let writer = self.writers[to].get_or_insert_with(|| {
            let (sender, parcels) = unbounded_channel();
            let mut writers = mesh.writers.lock().unwrap_or_else(PoisonError::into_inner);
            writers.spawn(writer::write(mesh.clone(), me, to, parcels));
            sender
        });
        // A writer ends after its outlet, unless the run is over.
        let _ = writer.send(parcel);
    }
}
