//! Datagrams on the loopback interface: one to each receiver, or one to the whole group.
//!
//! Nothing is sent again and nobody says that something is missing: what a full buffer or a rule of
//! the firewall drops is lost, and the algorithms have to cope. A message that has not arrived after
//! [`OVERDUE`] counts as lost; if it comes then, it is refused.
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
use crate::node::Parcel;
use crate::transport::{Arrival, Fates};
use crate::{Trouble, Warning};

/// A datagram of IPv4 carries no more.
pub(crate) const MOST: usize = 65_507;

/// On a loopback interface nothing takes as long as this, however busy the machine is.
const OVERDUE: Duration = Duration::from_secs(1);

/// What the system shall keep for a process that is busy. It may keep less.
const BUFFER: usize = 4 << 20;

pub(crate) struct Network {
    mesh: Arc<Mesh>,
    /// Who looks for messages that are overdue; it ends with the network.
    _watch: Mutex<JoinSet<()>>,
}

/// What all processes share.
struct Mesh {
    group: Group,
    /// Tells this run from all others on the machine.
    number: u64,
    /// Where the whole group is reached, if it is.
    all: Option<SocketAddrV4>,
    limit: usize,
    /// Reads messages.
    sample: AnyProcess,
    directory: RwLock<Vec<Option<SocketAddr>>>,
    /// Since when messages are on their way.
    flying: Mutex<BTreeMap<u64, Instant>>,
    fates: Arc<dyn Fates>,
}

pub(crate) struct Inbox {
    mesh: Arc<Mesh>,
    place: usize,
    me: ProcessId,
    own: UdpSocket,
    all: Option<UdpSocket>,
    /// For what comes to us alone, and to all.
    buffers: [Vec<u8>; 2],
}

pub(crate) struct Outlet {
    mesh: Arc<Mesh>,
    me: ProcessId,
    /// The same socket as the inbox's. The system itself says whether there is room: the runtime
    /// knows nothing of a socket that it has not looked at yet.
    own: std::net::UdpSocket,
    /// What was sent in this step, as bodies with their receivers: places and numbers.
    pending: Vec<(Vec<u8>, Receivers)>,
}

/// Places, and the numbers of what goes there.
type Receivers = Vec<(usize, u64)>;

impl Network {
    pub(super) fn new(
        group: Group,
        frame_limit: usize,
        multicast: bool,
        sample: AnyProcess,
        fates: Arc<dyn Fates>,
    ) -> io::Result<Self> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let nonce = since.as_nanos() as u64 ^ u64::from(std::process::id()) << 40;
        let number = Rng::new(nonce).next_u64();
        // 239.255.0.0/16 is for use within a site. Two runs that choose alike refuse each other's.
        let [a, b, ..] = number.to_be_bytes();
        let address = Ipv4Addr::new(239, 255, a, b);
        let all = multicast.then(|| free_port(address)).transpose()?;
        let mesh = Arc::new(Mesh {
            number,
            all,
            limit: frame_limit.min(MOST),
            sample,
            directory: RwLock::new(vec![None; group.len()]),
            flying: Mutex::default(),
            group,
            fates,
        });
        let mut watch = JoinSet::new();
        watch.spawn(look_for_overdue(mesh.clone()));
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
            buffers: [vec![0; MOST], vec![0; MOST]],
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

/// A socket that shares its address with others who ask for the same.
fn bound(address: SocketAddrV4) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    if address.ip().is_multicast() {
        socket.set_reuse_address(true)?;
    }
    // The system gives what it likes to give.
    let _ = socket.set_recv_buffer_size(BUFFER);
    let _ = socket.set_send_buffer_size(BUFFER);
    socket.bind(&SocketAddr::V4(address).into())?;
    Ok(socket)
}

/// A port of `address` that nobody has now.
fn free_port(address: Ipv4Addr) -> io::Result<SocketAddrV4> {
    let found = bound(SocketAddrV4::new(address, 0))?.local_addr()?;
    let port = found.as_socket_ipv4().map_or(0, |found| found.port());
    Ok(SocketAddrV4::new(address, port))
}

async fn look_for_overdue(mesh: Arc<Mesh>) {
    loop {
        sleep(OVERDUE / 5).await;
        let now = Instant::now();
        let mut overdue = Vec::new();
        mesh.flying().retain(|id, since| {
            let late = now.duration_since(*since) > OVERDUE;
            if late {
                overdue.push(*id);
            }
            !late
        });
        overdue.into_iter().for_each(|id| mesh.fates.lost(id));
    }
}

impl Mesh {
    fn enter(&self, place: usize, address: Option<SocketAddr>) {
        self.directory.write().unwrap_or_else(PoisonError::into_inner)[place] = address;
    }

    fn look_up(&self, place: usize) -> Option<SocketAddr> {
        self.directory.read().unwrap_or_else(PoisonError::into_inner)[place]
    }

    fn flying(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Instant>> {
        self.flying.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lose(&self, id: u64) {
        if self.flying().remove(&id).is_some() {
            self.fates.lost(id);
        }
    }
}

impl Inbox {
    /// Loses nothing when it is given up: a datagram is taken from the system in one go.
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
            // A failed receive is about an earlier send, to one who is gone.
            let Ok((which, len)) = received else { continue };
            if let Some(arrival) = self.read(which, len) {
                return Some(arrival);
            }
        }
    }

    /// What the first bytes of a buffer say to us, if they do.
    fn read(&self, which: usize, len: usize) -> Option<Arrival> {
        let bytes = self.buffers.get(which)?.get(..len)?;
        let datagram = match Datagram::decode(bytes) {
            // Another run, or no run at all, on the same address: not our business.
            Err(CodecError::Magic) => return None,
            Ok(datagram) if datagram.run != self.mesh.number => return None,
            Ok(datagram) => datagram,
            Err(error) => {
                let trouble = Trouble::Hello(error);
                self.mesh.fates.warn(Warning { at: self.me, trouble });
                return None;
            }
        };
        let from = datagram.sender;
        let id = datagram.id_for(self.place)?;
        match codec::read_body(&self.mesh.sample, datagram.body) {
            Ok(message) => {
                self.mesh.flying().remove(&id);
                Some(Arrival::Message { from, id, message })
            }
            Err(error) => {
                let trouble = Trouble::Frame { from, error };
                self.mesh.fates.warn(Warning { at: self.me, trouble });
                self.mesh.lose(id);
                None
            }
        }
    }
}

impl Outlet {
    pub(super) fn send(&mut self, Parcel { to, id, message }: Parcel) {
        self.mesh.flying().insert(id, Instant::now());
        let body = match postcard::to_stdvec(&message) {
            Ok(body) => body,
            Err(error) => return self.refuse(to, id, CodecError::Body(error)),
        };
        // What one step says to many is one datagram to the group.
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

    /// Hands all that was sent to the system.
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
            // Who is not there has crashed; where there is no room, datagrams are dropped.
            let sent = target.map(|target| self.own.send_to(&bytes, target));
            if !matches!(sent, Some(Ok(_))) {
                receivers.iter().for_each(|(_, id)| self.mesh.lose(*id));
            }
        }
    }

    fn refuse(&self, to: usize, id: u64, error: CodecError) {
        let to = self.mesh.group.id(to);
        self.mesh.fates.warn(Warning { at: self.me, trouble: Trouble::Unsendable { to, error } });
        self.mesh.lose(id);
    }
}
