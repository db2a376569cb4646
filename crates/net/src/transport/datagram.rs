//! Datagrams on the loopback interface: one to each receiver, or one to the whole group.
//!
//! Datagrams are not retransmitted or acknowledged. If a full buffer or a firewall drops one, it is lost, and
//! the algorithm has to cope. A message that has not arrived after [`OVERDUE`] counts as lost; if it
//! arrives later, it is refused.
//!
//! ```text
//! datagram:  magic "KNKL" | version u8 | run u64 | sender u32
//!            | receivers u16 | as many times: place u32, message id u64 | body
//! ```

mod frame;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use konklave_process::{AnyProcess, Group, ProcessId, Rng};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

pub(crate) use self::frame::Datagram;
use crate::codec::{self, CodecError, End};
use crate::node::OutgoingMessage;
use crate::transport::{Arrival, TransportEvents};
use crate::{Trouble, Warning};

/// The maximum payload of a UDP datagram over IPv4, in bytes.
pub(crate) const MAX_DATAGRAM: usize = 65_507;

/// A message counts as lost after this time. On a loopback interface none takes as long, however busy the
/// machine is.
const OVERDUE: Duration = Duration::from_secs(1);

/// The socket buffer requested, in bytes; the system may grant less.
const BUFFER: usize = 4 << 20;

pub(crate) struct Network {
    mesh: Arc<Mesh>,
    /// The task that reports overdue messages; it ends with the network.
    _watch: Mutex<JoinSet<()>>,
}

/// The part of the transport that all processes share.
struct Mesh {
    group: Group,
    /// Tells this run from all others on the machine.
    number: u64,
    /// The multicast address of the group, if there is one.
    all: Option<SocketAddrV4>,
    limit: usize,
    /// Reads messages.
    sample: AnyProcess,
    directory: RwLock<Vec<Option<SocketAddr>>>,
    /// For each message in flight: when it was sent, and how many copies of it have not arrived yet.
    sent_at: Mutex<BTreeMap<u64, (Instant, u32)>>,
    events: Arc<dyn TransportEvents>,
}

pub(crate) struct Inbox {
    mesh: Arc<Mesh>,
    place: usize,
    me: ProcessId,
    own: UdpSocket,
    all: Option<UdpSocket>,
    /// Receive buffers for the own socket and the group's.
    buffers: [Vec<u8>; 2],
}

pub(crate) struct Outlet {
    mesh: Arc<Mesh>,
    me: ProcessId,
    /// The inbox's socket, outside of tokio: sending must not wait, and only the system knows whether there
    /// is room.
    own: std::net::UdpSocket,
    /// The messages of this step: encoded bodies with their receivers.
    pending: Vec<(Vec<u8>, Receivers)>,
}

/// The places of the receivers, each with its message number.
type Receivers = Vec<(usize, u64)>;

impl Network {
    pub(super) fn new(
        group: Group,
        frame_limit: usize,
        multicast: bool,
        sample: AnyProcess,
        events: Arc<dyn TransportEvents>,
    ) -> io::Result<Self> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let nonce = since.as_nanos() as u64 ^ u64::from(std::process::id()) << 40;
        let number = Rng::new(nonce).next_u64();
        // 239.255.0.0/16 is for use within a site. Two runs with the same address ignore each other's
        // datagrams.
        let [a, b, ..] = number.to_be_bytes();
        let address = Ipv4Addr::new(239, 255, a, b);
        let all = multicast.then(|| free_port(address)).transpose()?;
        let mesh = Arc::new(Mesh {
            number,
            all,
            limit: frame_limit.min(MAX_DATAGRAM),
            sample,
            directory: RwLock::new(vec![None; group.len()]),
            sent_at: Mutex::default(),
            group,
            events,
        });
        let mut watch = JoinSet::new();
        watch.spawn(report_overdue(mesh.clone()));
        Ok(Self { mesh, _watch: Mutex::new(watch) })
    }

    pub(super) fn attach(&self, place: usize, me: End) -> io::Result<(Inbox, Outlet)> {
        let mesh = &self.mesh;
        let own = bound(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
        own.set_multicast_if_v4(&Ipv4Addr::LOCALHOST)?;
        own.set_multicast_loop_v4(true)?;
        own.set_multicast_ttl_v4(0)?;
        let all = match mesh.all {
            None => None,
            Some(address) => {
                let socket = bound(address)?;
                socket.join_multicast_v4(address.ip(), &Ipv4Addr::LOCALHOST)?;
                Some(UdpSocket::from_std(socket.into())?)
            }
        };
        let out = own.try_clone()?.into();
        let own = UdpSocket::from_std(own.into())?;
        mesh.enter(place, Some(own.local_addr()?));
        let me = me.process;
        let inbox = Inbox {
            mesh: mesh.clone(),
            place,
            me,
            own,
            all,
            buffers: [vec![0; MAX_DATAGRAM], vec![0; MAX_DATAGRAM]],
        };
        let outlet = Outlet { mesh: mesh.clone(), me, own: out, pending: Vec::new() };
        Ok((inbox, outlet))
    }

    pub(super) fn detach(&self, place: usize) {
        self.mesh.enter(place, None);
    }

    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        let directory = self.mesh.directory.read().unwrap_or_else(PoisonError::into_inner);
        directory.iter().flatten().copied().collect()
    }
}

/// A socket bound to `address`; a multicast address can be shared.
fn bound(address: SocketAddrV4) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    if address.ip().is_multicast() {
        socket.set_reuse_address(true)?;
    }
    // The system may grant smaller buffers, which is fine.
    let _ = socket.set_recv_buffer_size(BUFFER);
    let _ = socket.set_send_buffer_size(BUFFER);
    socket.bind(&SocketAddr::V4(address).into())?;
    Ok(socket)
}

/// A port of `address` that is free now.
fn free_port(address: Ipv4Addr) -> io::Result<SocketAddrV4> {
    let found = bound(SocketAddrV4::new(address, 0))?.local_addr()?;
    let port = found.as_socket_ipv4().map_or(0, |found| found.port());
    Ok(SocketAddrV4::new(address, port))
}

async fn report_overdue(mesh: Arc<Mesh>) {
    loop {
        sleep(OVERDUE / 5).await;
        let now = Instant::now();
        let mut overdue = Vec::new();
        mesh.sent_at().retain(|id, (since, _)| {
            let late = now.duration_since(*since) > OVERDUE;
            if late {
                overdue.push(*id);
            }
            !late
        });
        overdue.into_iter().for_each(|id| mesh.events.lost(id));
    }
}

impl Mesh {
    fn enter(&self, place: usize, address: Option<SocketAddr>) {
        self.directory.write().unwrap_or_else(PoisonError::into_inner)[place] = address;
    }

    fn look_up(&self, place: usize) -> Option<SocketAddr> {
        self.directory.read().unwrap_or_else(PoisonError::into_inner)[place]
    }

    fn sent_at(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, (Instant, u32)>> {
        self.sent_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn depart(&self, id: u64) {
        self.sent_at().entry(id).or_insert((Instant::now(), 0)).1 += 1;
    }

    /// A copy of message `id` has arrived.
    fn arrive(&self, id: u64) {
        let mut sent_at = self.sent_at();
        let Some((_, copies)) = sent_at.get_mut(&id) else { return };
        *copies -= 1;
        if *copies == 0 {
            sent_at.remove(&id);
        }
    }

    fn lose(&self, id: u64) {
        if self.sent_at().remove(&id).is_some() {
            self.events.lost(id);
        }
    }
}

impl Inbox {
    /// The next arrival. Cancelling this future loses nothing, since a datagram is received in one call.
    pub(super) async fn next(&mut self) -> Option<Arrival> {
        loop {
            let Self { own, all, buffers: [one, many], .. } = self;
            let received = match all {
                None => own.recv(one).await.map(|len| (0, len)),
                Some(all) => tokio::select! {
                    received = own.recv(one) => received.map(|len| (0, len)),
                    received = all.recv(many) => received.map(|len| (1, len)),
                },
            };
            // A receive error concerns an earlier send to a process that is gone.
            let Ok((which, len)) = received else { continue };
            if let Some(arrival) = self.read(which, len) {
                return Some(arrival);
            }
        }
    }

    /// Decodes the first bytes of a buffer; none if they hold no message for this process.
    fn read(&self, which: usize, len: usize) -> Option<Arrival> {
        let bytes = self.buffers.get(which)?.get(..len)?;
        let datagram = match Datagram::decode(bytes) {
            // A datagram of another run or of another protocol on the same address is ignored.
            Err(CodecError::Magic) => return None,
            Ok(datagram) if datagram.run != self.mesh.number => return None,
            Ok(datagram) => datagram,
            Err(error) => {
                let trouble = Trouble::Hello(error);
                self.mesh.events.warn(Warning { at: self.me, trouble });
                return None;
            }
        };
        let from = datagram.sender;
        let id = datagram.id_for(self.place)?;
        match codec::read_body(&self.mesh.sample, datagram.body) {
            Ok(message) => {
                self.mesh.arrive(id);
                Some(Arrival::Message { from, id, message })
            }
            Err(error) => {
                let trouble = Trouble::Frame { from, error };
                self.mesh.events.warn(Warning { at: self.me, trouble });
                self.mesh.lose(id);
                None
            }
        }
    }
}

impl Outlet {
    pub(super) fn send(&mut self, OutgoingMessage { to, id, message }: OutgoingMessage) {
        self.mesh.depart(id);
        let body = match postcard::to_stdvec(&message) {
            Ok(body) => body,
            Err(error) => return self.refuse(to, id, CodecError::Body(error)),
        };
        // A message that one step sends to several receivers is one datagram to the group.
        match self.pending.last_mut() {
            Some((last, receivers))
                if self.mesh.all.is_some()
                    && *last == body
                    && receivers.iter().all(|(place, _)| *place != to) =>
            {
                receivers.push((to, id));
            }
            _ => self.pending.push((body, vec![(to, id)])),
        }
    }

    /// Sends the messages of the step.
    pub(super) fn flush(&mut self) {
        for (body, receivers) in std::mem::take(&mut self.pending) {
            let (run, sender) = (self.mesh.number, self.me);
            let bytes = Datagram { run, sender, receivers: &receivers, body: &body }.encode();
            if bytes.len() > self.mesh.limit {
                let (len, limit) = (bytes.len(), self.mesh.limit);
                for (to, id) in receivers {
                    self.refuse(to, id, CodecError::TooLong { len, limit });
                }
                continue;
            }
            let target = match (self.mesh.all, &receivers[..]) {
                (Some(all), [_, _, ..]) => Some(SocketAddr::V4(all)),
                (_, [(place, _), ..]) => self.mesh.look_up(*place),
                (_, []) => None,
            };
            // A receiver without an address has crashed; if a buffer is full, the datagram is dropped.
            let sent = target.map(|target| self.own.send_to(&bytes, target));
            if !matches!(sent, Some(Ok(_))) {
                receivers.iter().for_each(|(_, id)| self.mesh.lose(*id));
            }
        }
    }

    fn refuse(&self, to: usize, id: u64, error: CodecError) {
        let to = self.mesh.group.id(to);
        self.mesh.events.warn(Warning { at: self.me, trouble: Trouble::Unsendable { to, error } });
        self.mesh.lose(id);
    }
}
