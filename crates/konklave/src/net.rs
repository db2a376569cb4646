//! The network of a node: a mesh of TCP connections, or of streams over NATS, protected by TLS or by a shared
//! key.

mod alarm;
#[cfg(feature = "tls")]
mod certificate;
mod connection;
mod dial;
mod dirty_links;
mod handshake;
mod link;
#[cfg_attr(not(feature = "nats"), path = "net/without_nats.rs")]
mod nats;
mod noise;
mod pending_handshakes;
mod record_reader;
#[cfg_attr(not(feature = "tls"), path = "net/without_tls.rs")]
pub(crate) mod tls;

pub(crate) use nats::{NatsAddress, NatsOptions};
pub(crate) use noise::{Secret, SharedKeys};

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use konklave_algorithms::group::ViewId;
use konklave_algorithms::group::virtual_synchrony::Message;
use konklave_process::ProcessId;
use rustc_hash::FxHashMap;
use tokio::net::{TcpListener, lookup_host};
use tokio::sync::{Notify, Semaphore, watch};

use crate::error::Error;
use crate::shared::{Carrier, Flush, Shared};
use crate::wire::{Frame, WireError};
use alarm::AlarmClock;
use dirty_links::DirtyLinks;
#[cfg(test)]
pub(crate) use handshake::encode as encode_hello;
use link::Link;
use nats::NatsEndpoint;
use pending_handshakes::PendingHandshakes;
use tls::Tls;

/// How connections are protected.
#[derive(Clone)]
pub(crate) enum Security {
    None,
    Keys(SharedKeys),
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "there is no value of `Tls`"))]
    Tls(Tls),
}

impl Security {
    /// Whether the keys are long enough, and the certificate is one for members.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self {
            Self::None => Ok(()),
            Self::Keys(keys) => keys.check(),
            Self::Tls(tls) => tls.check(),
        }
    }

    /// The identity that this node proves to its peers, if any. `secret`: its static key.
    fn identity(&self, secret: &Secret) -> Option<String> {
        match self {
            Self::None => None,
            Self::Keys(_) => Some(secret.identity()),
            Self::Tls(tls) => tls.own_identity(),
        }
    }
}

/// Does not show the key.
impl std::fmt::Debug for Security {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Keys(_) => "Keys",
            Self::Tls(_) => "Tls",
        })
    }
}

/// Settings of a mesh.
pub(crate) struct Settings {
    pub(crate) cluster: String,
    pub(crate) security: Security,
    /// This node's static key; with it, the node proves its identity where members share a key.
    pub(crate) secret: Secret,
    /// The identities that are shut out.
    pub(crate) denied: Vec<String>,
    /// Whether other machines may be called: the connections are protected, or the user chose `insecure`.
    pub(crate) open: bool,
    pub(crate) key: u64,
    pub(crate) boot: u64,
    pub(crate) name: Arc<str>,
    pub(crate) address: String,
    pub(crate) seeds: Vec<String>,
    pub(crate) lock_algorithm: crate::LockAlgorithm,
    pub(crate) heartbeat: Duration,
    pub(crate) silence: Duration,
    pub(crate) lease: Duration,
}

/// All connections of a node.
pub(crate) struct Mesh {
    me: ProcessId,
    this: Weak<Self>,
    settings: Settings,
    /// How new connections are protected.
    security: Mutex<Security>,
    /// The identities that are shut out.
    denied: Mutex<Vec<String>>,
    links: Mutex<FxHashMap<ProcessId, Arc<Link>>>,
    /// The links that this step has pushed frames to.
    dirty_links: DirtyLinks,
    /// The last order frame, encoded once for all receivers.
    order: Mutex<LastOrder>,
    /// The addresses that tasks of this node call.
    dialled: Mutex<BTreeSet<String>>,
    /// Notified when a connection ends: every calling task tries again at once.
    redial: Notify,
    stop: watch::Sender<bool>,
    /// A permit that the listening task holds while the port is open.
    listening: Arc<Semaphore>,
    /// Accepted connections whose handshake is not complete.
    handshakes: Arc<PendingHandshakes>,
    /// This node's endpoint at NATS, if that is the network.
    nats_endpoint: Option<Arc<NatsEndpoint>>,
}

/// View and position, and the encoded frame.
type LastOrder = (Option<(ViewId, u64)>, Vec<u8>);

impl Mesh {
    fn links(&self) -> MutexGuard<'_, FxHashMap<ProcessId, Arc<Link>>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn security(&self) -> Security {
        self.security.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Why the peer with this identity is refused, if so.
    fn shut_out(&self, identity: Option<&str>) -> Option<String> {
        let identity = identity?;
        let denied = self.denied.lock().unwrap_or_else(PoisonError::into_inner);
        let found = denied.iter().any(|denied| denied == identity);
        found.then(|| format!("its identity {identity} is shut out here (deny)"))
    }

    fn link(&self, id: ProcessId) -> Option<Arc<Link>> {
        self.links().get(&id).cloned()
    }

    /// How often to check whether heartbeats are due or missing.
    fn check_period(&self) -> Duration {
        self.settings.heartbeat.max(self.settings.silence / 8)
    }

    /// Checks all links; called every `check_period`.
    fn check_links(&self) {
        self.links().values().for_each(|link| link.check_liveness(self.settings.silence));
    }

    /// The peer that announced this address as its own.
    fn peer_at(&self, address: &str) -> Option<ProcessId> {
        self.links().iter().find(|(_, link)| link.address() == address).map(|(id, _)| *id)
    }
}

impl Carrier for Mesh {
    fn send(&self, to: ProcessId, frame: &Frame, flush: Flush) -> Result<Option<u64>, WireError> {
        let links = self.links();
        let Some(link) = links.get(&to) else { return Ok(None) };
        let number = match frame {
            // The same for all receivers: encoded once.
            Frame::Group(Message::Order { view, position, .. }) => {
                let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
                if order.0 != Some((*view, *position)) {
                    order.1.clear();
                    order.1 = frame.encode(std::mem::take(&mut order.1));
                    order.0 = Some((*view, *position));
                }
                link.push_bytes(&order.1, flush)?
            }
            _ => link.push(frame, flush)?,
        };
        self.dirty_links.note(link);
        Ok(Some(number))
    }

    fn flush(&self) {
        self.dirty_links.wake();
    }

    fn stop(&self) {
        self.stop.send_replace(true);
        // A woken writer sees that the mesh has stopped.
        self.links().values().for_each(|link| link.wake_writer());
    }

    fn closed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async { drop(self.listening.acquire().await) })
    }

    fn dial(&self, shared: &Arc<Shared>, addresses: Vec<String>) {
        // At NATS, members find each other on a subject.
        let Some(mesh) = self.this.upgrade().filter(|mesh| mesh.nats_endpoint.is_none()) else {
            return;
        };
        for address in addresses {
            dial::call(&mesh, shared, address, None, None);
        }
    }

    fn set_security(&self, security: Security) {
        *self.security.lock().unwrap_or_else(PoisonError::into_inner) = security;
    }

    fn deny(&self, identities: Vec<String>) {
        // First the list: a peer that is cut off calls again at once.
        self.denied.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&identities);
        for link in self.links().values() {
            if link.identity().is_some_and(|identity| identities.contains(&identity)) {
                link.cut();
            }
        }
        self.redial.notify_waiters();
    }

    fn identity(&self, id: ProcessId) -> Option<String> {
        match id == self.me {
            true => self.security().identity(&self.settings.secret),
            false => self.link(id)?.identity(),
        }
    }
}

/// Opens the port. Refuses to listen unprotected on an address that other machines can reach.
pub(crate) async fn listen(
    address: &str,
    security: Option<&Security>,
) -> Result<TcpListener, Error> {
    let places: Vec<SocketAddr> = lookup_host(address)
        .await
        .map_err(|e| Error::Config(format!("cannot listen at {address}: {e}")))?
        .collect();
    if security.is_none()
        && let Some(open) = places.iter().find(|a| !a.ip().is_loopback())
    {
        return Err(Error::Config(format!(
            "{open} can be reached from outside: give a pre-shared key or TLS, or say `insecure`"
        )));
    }
    let listener = TcpListener::bind(places.as_slice()).await;
    listener
        .map_err(|e| io::Error::new(e.kind(), format!("cannot listen at {address}: {e}")).into())
}

/// Why an unprotected node does not call another machine.
fn unprotected(place: &SocketAddr) -> String {
    format!("{place} is another machine: give a pre-shared key or TLS, or say `insecure`")
}

/// Refuses founders' addresses on other machines without protection. Names are checked once they are
/// resolved.
pub(crate) fn check_seeds(seeds: &[String], security: Option<&Security>) -> Result<(), Error> {
    let mut places = seeds.iter().filter_map(|seed| seed.parse::<SocketAddr>().ok());
    match places.find(|place| security.is_none() && !place.ip().is_loopback()) {
        Some(place) => Err(Error::Config(unprotected(&place))),
        None => Ok(()),
    }
}

/// Where a node is reached.
pub(crate) enum Endpoint {
    Tcp(TcpListener),
    Nats(NatsAddress),
}

/// The address of a process at NATS.
pub(crate) fn inbox_address(boot: u64) -> String {
    format!("{}{boot:016x}", nats::SCHEME)
}

/// Starts all tasks of a node.
pub(crate) fn start(
    shared: &Arc<Shared>,
    endpoint: Endpoint,
    settings: Settings,
) -> io::Result<()> {
    let alarm_clock = AlarmClock::new()?;
    let seeds = settings.seeds.clone();
    let nats_endpoint = match &endpoint {
        Endpoint::Tcp(_) => None,
        Endpoint::Nats(place) => Some(NatsEndpoint::new(place, &settings.cluster, settings.boot)),
    };
    let security = Mutex::new(settings.security.clone());
    let denied = Mutex::new(settings.denied.clone());
    let mesh = Arc::new_cyclic(|this| Mesh {
        me: shared.id,
        this: this.clone(),
        settings,
        security,
        denied,
        links: Mutex::default(),
        dirty_links: DirtyLinks::default(),
        order: Mutex::default(),
        dialled: Mutex::default(),
        redial: Notify::new(),
        stop: watch::Sender::new(false),
        listening: Arc::new(Semaphore::new(1)),
        handshakes: Arc::default(),
        nats_endpoint: nats_endpoint.clone(),
    });
    shared.connect(mesh.clone());
    tokio::spawn(keep_time(CrashOnDrop(shared.clone()), mesh.clone(), alarm_clock));
    match (endpoint, nats_endpoint) {
        (Endpoint::Tcp(listener), _) => {
            let open = mesh.listening.clone().try_acquire_owned();
            let accepting = dial::accept(mesh.clone(), shared.clone(), listener);
            tokio::spawn(async move {
                accepting.await;
                drop(open);
            });
            for (seed, address) in seeds.into_iter().enumerate() {
                dial::call(&mesh, shared, address, Some(seed), None);
            }
        }
        (Endpoint::Nats(_), Some(nats_endpoint)) => {
            // Every process at NATS may be a founder, this one included.
            shared.with(|core, _| core.seed_is(0, mesh.me));
            tokio::spawn(nats::run(mesh, shared.clone(), nats_endpoint));
        }
        (Endpoint::Nats(_), None) => {}
    }
    Ok(())
}

/// Ends the node as a crash would when the timer task is gone, even if it never ran.
struct CrashOnDrop(Arc<Shared>);

impl Drop for CrashOnDrop {
    fn drop(&mut self) {
        self.0.crash();
    }
}

/// Timer task: wakes the node whenever something is due, and checks its links.
async fn keep_time(end: CrashOnDrop, mesh: Arc<Mesh>, mut alarm_clock: AlarmClock) {
    let CrashOnDrop(shared) = &end;
    let mut stop = mesh.stop.subscribe();
    let mut check_at = Duration::ZERO;
    while !*stop.borrow_and_update() {
        // In every iteration, also after a spurious wake-up: a follower of the leader's heartbeat hardly ever
        // reaches its own deadline.
        let now = shared.clock.now();
        if check_at <= now {
            mesh.check_links();
            check_at = now + mesh.check_period();
        }
        let due = shared.due();
        if due <= now {
            // Local tasks that were woken run first: their requests travel with the deferred operations.
            shared.grant_budget.yield_to_woken().await;
            if shared.due() <= shared.clock.now() {
                shared.tick();
            }
            continue;
        }
        alarm_clock.ring_by(due).expect("a clock can be set for any time");
        tokio::select! {
            _ = stop.changed() => {}
            () = shared.alarm.notified() => {}
            () = alarm_clock.rings() => {}
        }
    }
}

#[cfg(test)]
mod tests;
