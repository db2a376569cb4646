//! Real connections between members: a mesh of TCP connections, protected by TLS or by a shared key.

mod dial;
mod greeting;
mod link;
mod pipe;
mod seal;
mod tls;

pub use tls::Tls;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use konklave_algorithms::group::ViewId;
use konklave_algorithms::group::virtual_synchrony::Message;
use konklave_process::ProcessId;
use rustc_hash::FxHashMap;
use tokio::net::{TcpListener, lookup_host};
use tokio::sync::{Notify, watch};

use crate::error::Error;
use crate::flight::Flight;
use crate::shared::{Carrier, Hurry, Shared};
use crate::wire::Frame;
#[cfg(test)]
pub(crate) use greeting::encode as encode_hello;
use link::Link;

/// How connections are protected.
#[derive(Clone)]
pub(crate) enum Security {
    None,
    Key(Arc<[u8]>),
    Tls(Tls),
}

/// Says nothing of the key.
impl std::fmt::Debug for Security {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Key(_) => "Key",
            Self::Tls(_) => "Tls",
        })
    }
}

/// What a mesh is made from.
pub(crate) struct Settings {
    pub(crate) cluster: String,
    pub(crate) security: Security,
    pub(crate) key: u64,
    pub(crate) boot: u64,
    pub(crate) name: Arc<str>,
    pub(crate) address: String,
    pub(crate) seeds: Vec<String>,
    pub(crate) mutex: crate::Mutex,
    pub(crate) heartbeat: Duration,
    pub(crate) silence: Duration,
}

/// All connections of a node.
pub(crate) struct Mesh {
    me: ProcessId,
    settings: Settings,
    links: Mutex<FxHashMap<ProcessId, Arc<Link>>>,
    /// The last message that was given its place, as bytes.
    order: Mutex<LastOrder>,
    /// Addresses that someone calls.
    called: Mutex<BTreeSet<String>>,
    /// A connection ended: whoever calls there calls at once.
    redial: Notify,
    stop: watch::Sender<bool>,
    flight: Arc<Flight>,
}

/// Which view, which place, and the frame.
type LastOrder = (Option<(ViewId, u64)>, Vec<u8>);

impl Mesh {
    fn links(&self) -> MutexGuard<'_, FxHashMap<ProcessId, Arc<Link>>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn link(&self, id: ProcessId) -> Option<Arc<Link>> {
        self.links().get(&id).cloned()
    }
}

impl Carrier for Mesh {
    fn send(&self, to: ProcessId, frame: &Frame, hurry: Hurry) {
        let links = self.links();
        let Some(link) = links.get(&to) else { return };
        let number = match frame {
            // The same for everyone: written once.
            Frame::Group(Message::Order { view, position, .. }) => {
                let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
                if order.0 != Some((*view, *position)) {
                    order.1.clear();
                    order.1 = frame.encode(std::mem::take(&mut order.1));
                    order.0 = Some((*view, *position));
                }
                link.push_bytes(&order.1)
            }
            _ => link.push(frame, hurry),
        };
        self.flight.note(true, to.0, number, frame);
    }

    fn flush(&self) {
        for link in self.links().values() {
            link.wake();
        }
    }

    fn stop(&self) {
        self.stop.send_replace(true);
    }
}

/// Opens the port; refuses to stand unprotected where strangers come by.
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
    listener.map_err(|e| Error::Config(format!("cannot listen at {address}: {e}")))
}

/// Starts all tasks of a node.
pub(crate) fn start(
    shared: &Arc<Shared>,
    listener: TcpListener,
    settings: Settings,
) -> Result<(), Error> {
    let seeds = settings.seeds.clone();
    let mesh = Arc::new(Mesh {
        me: shared.id,
        settings,
        links: Mutex::default(),
        order: Mutex::default(),
        called: Mutex::default(),
        redial: Notify::new(),
        stop: watch::Sender::new(false),
        flight: shared.flight.clone(),
    });
    shared.connect(mesh.clone());
    tokio::spawn(keep_time(shared.clone(), mesh.stop.subscribe()));
    tokio::spawn(dial::accept(mesh.clone(), shared.clone(), listener));
    for (seed, address) in seeds.into_iter().enumerate() {
        dial::call(&mesh, shared, address, Some(seed), None);
    }
    Ok(())
}

/// Wakes the node whenever something is due.
async fn keep_time(shared: Arc<Shared>, mut stop: watch::Receiver<bool>) {
    while !*stop.borrow_and_update() {
        let wait = shared.due().saturating_sub(shared.clock.now());
        tokio::select! {
            _ = stop.changed() => {}
            () = shared.alarm.notified() => {}
            () = tokio::time::sleep(wait) => shared.tick(),
        }
    }
}
