//! Calling peers, and accepting their calls.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use konklave_process::ProcessId;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::connection::{Connection, HANDSHAKE_TIMEOUT};
use super::handshake::HandshakeError;
use super::link::{Attached, Link};
use super::pending_handshakes::PendingHandshake;
use super::{Mesh, Security, nats, noise, unprotected};
use crate::shared::{Flush, Shared};
use crate::wire::{Frame, Hello};

/// Delay between unanswered calls: the first, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(1));
/// The longest delay for addresses learned from peers, reached after ten minutes without an answer.
const LONG_PAUSE: Duration = Duration::from_secs(10);
/// Delay after a failed `accept`.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);
/// After this many connections in a row that ended soon, calls are delayed. A few are normal: when two nodes
/// call each other, one of the two connections is closed.
const SHORT_LIVED: u32 = 3;
/// How long to call a NATS inbox that nobody reads. A restarted process has another inbox.
const FORGET: Duration = Duration::from_secs(10);
/// The most addresses to call.
const ADDRESSES: usize = 1024;

/// How a call ended.
enum Call {
    /// The called process is this one.
    Ourselves,
    /// A connection to this peer was established, and has ended; `garbled`: because of an invalid record.
    Ended { with: ProcessId, garbled: bool },
    /// Another connection to this peer is in use.
    Redundant(ProcessId),
}

/// Calls an address again and again, unless another task does.
pub(super) fn call(
    mesh: &Arc<Mesh>,
    shared: &Arc<Shared>,
    address: String,
    seed: Option<usize>,
    who: Option<ProcessId>,
) {
    let mut called = mesh.dialled.lock().unwrap_or_else(PoisonError::into_inner);
    let known = called.contains(&address);
    if (known && seed.is_none()) || (!known && called.len() >= ADDRESSES) {
        return;
    }
    called.insert(address.clone());
    drop(called);
    start_calling(mesh.clone(), shared.clone(), address, seed, who);
}

fn start_calling(
    mesh: Arc<Mesh>,
    shared: Arc<Shared>,
    address: String,
    seed: Option<usize>,
    who: Option<ProcessId>,
) {
    // Boxed, because this function calls itself indirectly.
    let calls: Pin<Box<dyn Future<Output = ()> + Send>> =
        Box::pin(keep_calling(mesh, shared, address, seed, who));
    tokio::spawn(calls);
}

async fn keep_calling(
    mesh: Arc<Mesh>,
    shared: Arc<Shared>,
    address: String,
    seed: Option<usize>,
    mut who: Option<ProcessId>,
) {
    let mut stop = mesh.stop.subscribe();
    let mut pause = PAUSE.0;
    let mut refused: Option<Instant> = None;
    let mut answered = Instant::now();
    let learned_from_peer = seed.is_none() && who.is_some();
    // The number of short-lived connections in a row.
    let mut short_lived = 0;
    // The number of calls in a row that the peer refused: it may have another of the shared keys.
    let mut refusals = 0;
    while !*stop.borrow_and_update() {
        let redial = mesh.redial.notified();
        if who.and_then(|id| mesh.link(id)).is_some_and(|link| link.is_connected()) {
            tokio::select! {
                () = redial => {}
                _ = stop.changed() => {}
            }
            (pause, answered) = (PAUSE.0, Instant::now());
            continue;
        }
        let begun = Instant::now();
        match dial(&mesh, &shared, &address, seed, refusals).await {
            Ok(Call::Ourselves) => return,
            Ok(Call::Ended { with, garbled }) => {
                (who, refused, answered, refusals) = (Some(with), None, Instant::now(), 0);
                short_lived =
                    if garbled || begun.elapsed() <= PAUSE.1 { short_lived + 1 } else { 0 };
                if short_lived == 0 {
                    pause = PAUSE.0;
                }
                if short_lived < SHORT_LIVED {
                    // Call again at once: if the port is closed now, the peer's process is gone.
                    continue;
                }
                // The cause that ended this connection may end the next one, too: do not call in a tight loop.
                let _ = timeout(pause, stop.changed()).await;
                pause = (pause * 2).min(PAUSE.1);
                continue;
            }
            Ok(Call::Redundant(id)) => (who, pause, answered) = (Some(id), PAUSE.0, Instant::now()),
            Err(HandshakeError::Io(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                // The peer may have called this node, so that this task never learned its id.
                lost(&mesh, &shared, who.or_else(|| mesh.peer_at(&address)));
                // Another process will answer here next.
                short_lived = 0;
                let since = *refused.get_or_insert_with(Instant::now);
                if address.starts_with(nats::SCHEME) && since.elapsed() > FORGET {
                    mesh.dialled.lock().unwrap_or_else(PoisonError::into_inner).remove(&address);
                    return;
                }
            }
            Err(HandshakeError::Io(_)) => {}
            Err(failed) => {
                pause = pause.max(PAUSE.1 / 10);
                refusals += 1;
                shared.with(|core, now| core.refused(address.clone(), failed.to_string(), now));
            }
        }
        pause = wait_to_call(redial, &mut stop, pause, learned_from_peer, answered).await;
    }
}

/// Waits for `pause`, or until a connection ends or the node stops; returns the next delay.
async fn wait_to_call(
    redial: impl Future<Output = ()>,
    stop: &mut watch::Receiver<bool>,
    pause: Duration,
    learned_from_peer: bool,
    answered: Instant,
) -> Duration {
    tokio::select! {
        () = sleep(pause) => (pause * 2).min(longest_pause(learned_from_peer, answered.elapsed())),
        // A connection ended: perhaps the one by which the peer had called this node, perhaps during the last
        // call. An ending process may still accept a call.
        () = redial => PAUSE.0,
        _ = stop.changed() => pause,
    }
}

/// The longest delay between calls after `unanswered` without an answer. Where machines come and go, most
/// addresses learned from peers will never answer again; given or discovered ones may.
fn longest_pause(learned_from_peer: bool, unanswered: Duration) -> Duration {
    if learned_from_peer { (unanswered / 60).clamp(PAUSE.1, LONG_PAUSE) } else { PAUSE.1 }
}

/// The port where peer `who` listened is closed: reports that peer as down.
fn lost(mesh: &Mesh, shared: &Shared, who: Option<ProcessId>) {
    let Some((id, link)) = who.and_then(|id| Some((id, mesh.link(id)?))) else { return };
    shared.with(|core, now| {
        // Under the core's lock: a peer that reconnects in between must not be reported down afterwards.
        if link.mark_down() {
            core.peer_down(id, now);
        }
    });
}

/// Calls all addresses that a name resolves to, until one answers.
async fn dial(
    mesh: &Arc<Mesh>,
    shared: &Arc<Shared>,
    address: &str,
    seed: Option<usize>,
    refusals: u32,
) -> Result<Call, HandshakeError> {
    if let Some(inbox) = address.strip_prefix(nats::SCHEME) {
        let Some(nats_endpoint) = &mesh.nats_endpoint else {
            return Err(HandshakeError::Refused(
                "it is reached over NATS, this node over TCP".into(),
            ));
        };
        let (stream, responders) = nats_endpoint.call(inbox).await?;
        let called = secure_and_run(mesh, shared, stream, seed, refusals).await;
        if called.is_err() && responders.is_gone(mesh.settings.silence) {
            return Err(HandshakeError::Io(io::ErrorKind::ConnectionRefused.into()));
        }
        return called;
    }
    let places: Vec<_> = lookup_host(address).await?.collect();
    if !mesh.settings.open
        && matches!(mesh.security(), Security::None)
        && let Some(place) = places.iter().find(|place| !place.ip().is_loopback())
    {
        return Err(HandshakeError::Refused(unprotected(place)));
    }
    if stands_for_several(&places) && seed.is_some() {
        shared.with(|core, _| core.seed_is_several(address));
    }
    if places.len() > 1 && seed.is_some() {
        // The name stands for several processes: a task calls each address.
        for place in &places[1..] {
            let mut called = mesh.dialled.lock().unwrap_or_else(PoisonError::into_inner);
            if called.len() < ADDRESSES && called.insert(place.to_string()) {
                let (mesh, shared) = (mesh.clone(), shared.clone());
                start_calling(mesh, shared, place.to_string(), seed, None);
            }
        }
    }
    let Some(place) = places.first() else {
        return Err(HandshakeError::Io(io::Error::new(io::ErrorKind::NotFound, "no such address")));
    };
    let stream =
        timeout(HANDSHAKE_TIMEOUT, TcpStream::connect(place)).await.map_err(io::Error::from)??;
    stream.set_nodelay(true)?;
    retry_steadily(&stream);
    secure_and_run(mesh, shared, stream, seed, refusals).await
}

/// Retransmits at equal intervals at first. With doubled ones, a network that is back after 3 s would carry the
/// next packet only after 6 s, when the lease is over.
fn retry_steadily(stream: &TcpStream) {
    // Not all systems have this option; there, the lease must be longer.
    #[cfg(target_os = "linux")]
    let _ = rustix::net::sockopt::set_tcp_thin_linear_timeouts(stream, true);
    #[cfg(not(target_os = "linux"))]
    let _ = stream;
}

/// Whether a name stands for several machines, rather than for one with an IPv4 and an IPv6 address.
pub(super) fn stands_for_several(places: &[SocketAddr]) -> bool {
    let of_its_kind = |v6: bool| places.iter().filter(|place| place.is_ipv6() == v6).count();
    of_its_kind(true) > 1 || of_its_kind(false) > 1
}

/// Protects the connection with TLS or the shared key, if there is one; then exchanges greetings; then runs
/// the connection.
async fn secure_and_run<S>(
    mesh: &Arc<Mesh>,
    shared: &Arc<Shared>,
    stream: S,
    seed: Option<usize>,
    refusals: u32,
) -> Result<Call, HandshakeError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let role = |identity| Role { seed, called: None, identity, objection: None };
    match &mesh.security() {
        Security::Tls(tls) => {
            let shaken =
                timeout(HANDSHAKE_TIMEOUT, tls.connect(stream)).await.map_err(io::Error::from)?;
            let (stream, identity) = shaken.map_err(HandshakeError::Refused)?;
            handshake_and_run(mesh, shared, stream, role(identity)).await.map_err(|failed| {
                match failed {
                    HandshakeError::Io(e) => {
                        tls.refusal(&e).map_or(HandshakeError::Io(e), HandshakeError::RefusedUs)
                    }
                    failed => failed,
                }
            })
        }
        Security::Keys(keys) => {
            let shaken = noise::connect(stream, keys, &mesh.settings.secret, refusals);
            let shaken = timeout(HANDSHAKE_TIMEOUT, shaken).await.map_err(io::Error::from)?;
            let (stream, identity) = shaken?;
            handshake_and_run(mesh, shared, stream, role(Some(identity))).await
        }
        Security::None => handshake_and_run(mesh, shared, stream, role(None)).await,
    }
}

/// Accepts calls until the node stops.
pub(super) async fn accept(mesh: Arc<Mesh>, shared: Arc<Shared>, listener: TcpListener) {
    let mut stop = mesh.stop.subscribe();
    while !*stop.borrow_and_update() {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.changed() => continue,
        };
        let Ok((stream, from)) = accepted else {
            // Perhaps too many open files: other connections may close meanwhile.
            sleep(ACCEPT_RETRY).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        retry_steadily(&stream);
        tokio::spawn(answer(mesh.clone(), shared.clone(), stream, from.to_string()));
    }
}

/// Serves an accepted call until the connection ends.
pub(super) async fn answer<S>(mesh: Arc<Mesh>, shared: Arc<Shared>, stream: S, from: String)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let handshake = mesh.handshakes.enter();
    let evicted = handshake.evicted();
    tokio::select! {
        () = evicted => {}
        () = accept_handshake(mesh, shared, stream, handshake, from) => {}
    }
}

async fn accept_handshake<S>(
    mesh: Arc<Mesh>,
    shared: Arc<Shared>,
    stream: S,
    handshake: PendingHandshake,
    from: String,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mesh, shared) = (&mesh, &shared);
    let called = Some(handshake);
    let answered = match &mesh.security() {
        Security::Tls(tls) => match tls.accept(stream, HANDSHAKE_TIMEOUT).await {
            Ok((stream, Ok(identity))) => {
                let role = Role { seed: None, called, identity, objection: None };
                handshake_and_run(mesh, shared, stream, role).await
            }
            Ok((stream, Err(objection))) => {
                let objection = Some(objection);
                let role = Role { seed: None, called, identity: None, objection };
                handshake_and_run(mesh, shared, stream, role).await
            }
            Err(reason) => Err(HandshakeError::Refused(reason)),
        },
        Security::Keys(keys) => {
            let shaken = noise::accept(stream, keys, &mesh.settings.secret);
            match timeout(HANDSHAKE_TIMEOUT, shaken).await {
                Ok(Ok((stream, identity))) => {
                    let identity = Some(identity);
                    let role = Role { seed: None, called, identity, objection: None };
                    handshake_and_run(mesh, shared, stream, role).await
                }
                Ok(Err(error)) => Err(error),
                Err(_) => Err(late()),
            }
        }
        Security::None => {
            let role = Role { seed: None, called, identity: None, objection: None };
            handshake_and_run(mesh, shared, stream, role).await
        }
    };
    if let Err(HandshakeError::Refused(reason)) = answered {
        shared.with(|core, now| core.refused_caller(from, reason, now));
    }
}

/// The reason to refuse a peer that is silent during a handshake.
fn late() -> HandshakeError {
    HandshakeError::Refused("it did not send a greeting in time".into())
}

/// The parties and the purpose of a handshake.
struct Role {
    /// The founder whose address this node called.
    seed: Option<usize>,
    /// This node was called.
    called: Option<PendingHandshake>,
    /// The identity that the peer has proved.
    identity: Option<String>,
    /// Why the peer is refused.
    objection: Option<String>,
}

/// Exchanges greetings, then runs the connection until it ends.
async fn handshake_and_run<S>(
    mesh: &Arc<Mesh>,
    shared: &Arc<Shared>,
    mut stream: S,
    role: Role,
) -> Result<Call, HandshakeError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Role { seed, called, identity, objection } = role;
    let we_call = called.is_none();
    let objection = objection.or_else(|| mesh.shut_out(identity.as_deref()));
    let greeted = timeout(HANDSHAKE_TIMEOUT, mesh.handshake(&mut stream, objection)).await;
    let hello = greeted.map_err(|_| late())??;
    drop(called);
    let settings = &mesh.settings;
    // At NATS, founders have no addresses: every peer may be one.
    let seed = seed.or(mesh.nats_endpoint.as_ref().map(|_| 0));
    let peer = ProcessId(hello.id);
    if hello.boot == settings.boot {
        if let Some(seed) = seed {
            shared.with(|core, _| core.seed_is(seed, mesh.me));
        }
        return Ok(Call::Ourselves);
    }
    if peer == mesh.me || hello.id > konklave_process::MAX_ID {
        let what = format!(
            "{} has the same id as this node, {}: give each node its own",
            hello.name, hello.id
        );
        return Err(HandshakeError::Refused(what));
    }
    let link = mesh.links().entry(peer).or_insert_with(|| Arc::new(Link::new())).clone();
    let caller = if we_call { mesh.me } else { peer };
    let attached = link.attach(&hello, identity.as_deref(), caller, settings.silence);
    if let Some(seed) = seed {
        shared.with(|core, _| core.seed_is(seed, peer));
    }
    let Some((number, news)) = in_use(attached, &hello, identity.as_deref())? else {
        return Ok(Call::Redundant(peer));
    };
    if news {
        let name: Arc<str> = hello.name.chars().take(64).collect::<String>().into();
        shared.with(|core, now| core.peer_up(peer, name, now));
        introduce(mesh, &link, peer);
    }
    link.wake();
    call(mesh, shared, hello.address.clone(), None, Some(peer));
    let connection = Connection { mesh: mesh.clone(), shared: shared.clone(), link, peer, number };
    // A task of its own: its wake-ups do not wake the calling task, which only waits for the end; and the
    // eviction of a pending handshake can no longer cancel it.
    let garbled = tokio::spawn(run(connection, stream, hello)).await.unwrap_or(true);
    Ok(Call::Ended { with: peer, garbled })
}

/// The number of the connection, and whether the peer is new; `None` if another connection is in use.
fn in_use(
    attached: Attached,
    hello: &Hello,
    identity: Option<&str>,
) -> Result<Option<(u64, bool)>, HandshakeError> {
    let Hello { name, id, .. } = hello;
    Err(HandshakeError::Refused(match attached {
        Attached::InUse { number, news } => return Ok(Some((number, news))),
        Attached::Redundant => return Ok(None),
        Attached::IdTaken => format!("{name} and another node have the id {id}"),
        Attached::Impostor(known) => {
            let now =
                identity.map_or("no identity".to_owned(), |now| format!("the identity {now}"));
            format!("{name} proves {now}, but the node it says to be had the identity {known}")
        }
    }))
}

/// Runs the connection until it ends; returns whether it ended because of an invalid record.
async fn run<S>(connection: Connection, stream: S, hello: Hello) -> bool
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let ended = connection.run(stream).await;
    let garbled = ended.err().filter(|error| error.kind() == io::ErrorKind::InvalidData);
    if let Some(error) = &garbled {
        connection.shared.with(|core, now| core.refused(hello.address, error.to_string(), now));
    }
    if connection.link.detach(connection.number) {
        // All calling tasks check whether their peer is gone.
        connection.mesh.redial.notify_waiters();
    }
    garbled.is_some()
}

/// Sends a new peer the others' addresses, and the others its address.
fn introduce(mesh: &Mesh, link: &Link, peer: ProcessId) {
    let links = mesh.links();
    let others = links.iter().filter(|(id, l)| **id != peer && l.is_connected());
    let addresses: Vec<(u32, String)> = others.map(|(id, l)| (id.0, l.address())).collect();
    // Addresses are short, so this frame is never too long.
    let news = Frame::Peers(vec![(peer.0, link.address())]);
    for (_, other) in links.iter().filter(|(id, _)| **id != peer) {
        let _ = other.push(&news, Flush::Now);
        other.wake();
    }
    let _ = link.push(&Frame::Peers(addresses), Flush::Now);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_learned_from_peers_are_called_less_and_less() {
        let minutes = |n: u64| Duration::from_secs(60 * n);
        assert_eq!(longest_pause(false, minutes(600)), PAUSE.1);
        assert_eq!(longest_pause(true, minutes(0)), PAUSE.1);
        assert_eq!(longest_pause(true, minutes(5)), Duration::from_secs(5));
        assert_eq!(longest_pause(true, minutes(600)), LONG_PAUSE);
    }
}
