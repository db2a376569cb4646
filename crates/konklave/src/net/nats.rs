//! NATS instead of own sockets: members meet on subjects of an existing server.
//!
//! Every process has an inbox, `PREFIX.GROUP.to.INBOX.STREAM`, and announces it on `PREFIX.GROUP.here`. A
//! process that hears of an inbox calls it. The call opens a stream of bytes; everything above it (handshake,
//! key or TLS, numbers, confirmations) is the same as over TCP.

mod address;
mod message;
mod stream;

pub(crate) use address::{NatsAddress, NatsOptions};

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_nats::{
    Client, ConnectOptions, Event, Message, ReconnectToServer, ServerAddr, StatusCode, Subscriber,
};
use bytes::Bytes;
use futures_util::StreamExt;
use rustc_hash::FxHashMap;
use tokio::io::{DuplexStream, duplex};
use tokio::sync::watch;
use tokio::time::{interval, sleep, timeout};

use super::{Mesh, dial};
use crate::shared::Shared;
use message::StreamMessage;
use stream::{Accepted, NatsStream, StreamRoute};

/// The scheme of inbox addresses.
pub(super) const SCHEME: &str = "nats:";
/// Delay between attempts to reach a server: the first, and the longest. A restarted server is back long
/// before a lease ends, so the delay is short at first.
const RETRY_DELAY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// How long the delay stays short.
const SHORT_DELAYS_FOR: Duration = Duration::from_secs(5);
/// How often to announce the inbox.
const ANNOUNCE_PERIOD: Duration = Duration::from_secs(1);
/// How long a server may take to answer.
const SERVER_TIMEOUT: Duration = Duration::from_secs(3);
/// The most bytes of a stream between two tasks.
const BUFFER: usize = 64 << 10;

/// This node at the NATS server.
pub(super) struct NatsEndpoint {
    address: NatsAddress,
    root: String,
    inbox: String,
    streams: Mutex<FxHashMap<u64, NatsStream>>,
    /// The connection to the server, while there is one.
    connection: watch::Sender<Option<NatsConnection>>,
}

#[derive(Clone)]
struct NatsConnection {
    client: Client,
    since: Instant,
}

/// The subscriptions of a new connection.
struct Subscriptions {
    client: Client,
    messages: Subscriber,
    calls: Subscriber,
    ended: watch::Receiver<bool>,
}

/// Whether the server reported that nobody reads the peer's inbox.
pub(super) struct Responders {
    gone: Arc<AtomicBool>,
    since: Instant,
}

impl Responders {
    /// Whether the peer is gone. Shortly after a reconnect, the peer may only be slower to return than this
    /// node.
    pub(super) fn is_gone(&self, settled: Duration) -> bool {
        self.gone.load(Ordering::Acquire) && self.since.elapsed() > settled
    }
}

impl NatsEndpoint {
    pub(super) fn new(address: &NatsAddress, cluster: &str, boot: u64) -> Arc<Self> {
        let (root, inbox) = (address.root(cluster), format!("{boot:016x}"));
        let (streams, connection) = (Mutex::default(), watch::Sender::new(None));
        Arc::new(Self { address: address.clone(), root, inbox, streams, connection })
    }

    fn streams(&self) -> MutexGuard<'_, FxHashMap<u64, NatsStream>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn subject(&self, inbox: &str, stream: u64) -> String {
        format!("{}.to.{inbox}.{stream:016x}", self.root)
    }

    /// Opens a stream to an inbox, as soon as there is a server.
    pub(super) async fn call(
        self: &Arc<Self>,
        inbox: &str,
    ) -> io::Result<(DuplexStream, Responders)> {
        if !is_number(inbox) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not the address of an inbox"));
        }
        let mut connection = self.connection.subscribe();
        let there = timeout(SERVER_TIMEOUT, connection.wait_for(Option::is_some)).await;
        let there = there.ok().and_then(Result::ok).and_then(|connection| connection.clone());
        let Some(NatsConnection { client, since }) = there else {
            let what = format!("no connection to {}", self.address.shown());
            return Err(io::Error::new(io::ErrorKind::NotConnected, what));
        };
        let number = getrandom::u64().map_err(|_| io::Error::other("no random numbers"))?;
        let (to, from) = (self.subject(inbox, number), self.subject(&self.inbox, number));
        let route = StreamRoute { client, to, from };
        route.send(&StreamMessage::Call).await?;
        let (stream, gone) = self.begin(number, route);
        Ok((stream, Responders { gone, since }))
    }

    /// Starts the task that carries a stream; returns the local end.
    fn begin(self: &Arc<Self>, number: u64, route: StreamRoute) -> (DuplexStream, Arc<AtomicBool>) {
        let (stream, stream_task, gone) = NatsStream::new();
        let (ours, theirs) = duplex(BUFFER);
        self.streams().insert(number, stream);
        let nats_endpoint = self.clone();
        tokio::spawn(async move {
            // The users of the stream notice its end by themselves.
            let _ = stream_task.carry(&route, theirs).await;
            if nats_endpoint.streams().remove(&number).is_some() {
                let _ = route.send(&StreamMessage::End).await;
            }
        });
        (ours, gone)
    }

    /// Connects to a server, and subscribes.
    async fn connect(&self, server: &ServerAddr) -> Result<Subscriptions, async_nats::Error> {
        let (end, ended) = watch::channel(false);
        let on_event = move |event| {
            if matches!(event, Event::Disconnected | Event::Closed) {
                end.send_replace(true);
            }
            std::future::ready(())
        };
        // This node reconnects by itself, and reports it. Asked for a server, the client would give up
        // silently; left to itself, it would log a misleading error.
        let same = |servers: Vec<async_nats::Server>, _| {
            let server = servers.into_iter().next();
            let delay = Some(Duration::ZERO);
            std::future::ready(server.map(|s| ReconnectToServer { addr: s.addr, delay }))
        };
        let options = ConnectOptions::new()
            .name("konklave")
            .connection_timeout(SERVER_TIMEOUT)
            .ping_interval(ANNOUNCE_PERIOD)
            .max_reconnects(1)
            .ignore_discovered_servers()
            .reconnect_to_server_callback(same)
            .event_callback(on_event);
        let options = match self.address.credentials()? {
            Some(text) => options.credentials(&text)?,
            None => options,
        };
        let client = timeout(SERVER_TIMEOUT * 2, options.connect(server)).await??;
        let messages = client.subscribe(self.message_subject()).await?;
        let calls = client.subscribe(format!("{}.here", self.root)).await?;
        timeout(SERVER_TIMEOUT, client.flush()).await??;
        Ok(Subscriptions { client, messages, calls, ended })
    }

    fn message_subject(&self) -> String {
        format!("{}.to.{}.*", self.root, self.inbox)
    }

    /// Handles messages, and calls announced inboxes, until the connection or the node ends.
    async fn serve(
        self: &Arc<Self>,
        mesh: &Arc<Mesh>,
        shared: &Arc<Shared>,
        session: Subscriptions,
    ) {
        let Subscriptions { client, mut messages, mut calls, mut ended } = session;
        let mut stop = mesh.stop.subscribe();
        let mut beat = interval(ANNOUNCE_PERIOD);
        self.connection
            .send_replace(Some(NatsConnection { client: client.clone(), since: Instant::now() }));
        loop {
            tokio::select! {
                biased;
                _ = ended.changed() => break,
                _ = stop.changed() => break,
                message = messages.next() => match message {
                    Some(message) => self.take(mesh, shared, &client, &message),
                    None => break,
                },
                call = calls.next() => match call {
                    Some(call) => self.on_announcement(mesh, shared, &call.payload),
                    None => break,
                },
                _ = beat.tick() => {
                    let here = Bytes::copy_from_slice(self.inbox.as_bytes());
                    if client.publish(format!("{}.here", self.root), here).await.is_err() {
                        break;
                    }
                }
            }
        }
        self.connection.send_replace(None);
        // All streams have ended.
        self.streams().clear();
    }

    /// A process announces its inbox.
    fn on_announcement(&self, mesh: &Arc<Mesh>, shared: &Arc<Shared>, inbox: &[u8]) {
        let Some(inbox) = std::str::from_utf8(inbox).ok().filter(|inbox| is_number(inbox)) else {
            return;
        };
        if inbox != self.inbox {
            dial::call(mesh, shared, format!("{SCHEME}{inbox}"), None, None);
        }
    }

    fn take(
        self: &Arc<Self>,
        mesh: &Arc<Mesh>,
        shared: &Arc<Shared>,
        client: &Client,
        message: &Message,
    ) {
        let Some(number) = message.subject.rsplit('.').next().and_then(number) else { return };
        let mut streams = self.streams();
        if message.status == Some(StatusCode::NO_RESPONDERS) {
            if let Some(stream) = streams.remove(&number) {
                stream.no_responders();
            }
            return;
        }
        let Some(decoded) = StreamMessage::decode(&message.payload) else { return };
        let broken = match (decoded, streams.get_mut(&number)) {
            (StreamMessage::Call, None) => {
                drop(streams);
                return self.answer(mesh, shared, client, number, message);
            }
            (StreamMessage::Piece(address, bytes), Some(stream)) => {
                stream.take(address, bytes) == Accepted::Broken
            }
            (StreamMessage::Piece(..), None) => true,
            (StreamMessage::Room(read), Some(stream)) => {
                stream.has_room(read);
                false
            }
            (StreamMessage::End, _) => {
                streams.remove(&number);
                false
            }
            (StreamMessage::Call, Some(_)) | (StreamMessage::Room(_), None) => false,
        };
        if broken {
            streams.remove(&number);
            drop(streams);
            if let Some(route) = self.reply_route(client, number, message) {
                tokio::spawn(async move { route.send(&StreamMessage::End).await });
            }
        }
    }

    /// The route back to the sender; `None` if that is not the inbox of a member.
    fn reply_route(&self, client: &Client, number: u64, message: &Message) -> Option<StreamRoute> {
        let to = message.reply.as_ref()?;
        let rest = to.strip_prefix(self.root.as_str())?.strip_prefix(".to.")?;
        let (inbox, _) = rest.split_once('.').filter(|(inbox, _)| is_number(inbox))?;
        let (to, from) = (self.subject(inbox, number), self.subject(&self.inbox, number));
        Some(StreamRoute { client: client.clone(), to, from })
    }

    /// A peer opens a stream to this node.
    fn answer(
        self: &Arc<Self>,
        mesh: &Arc<Mesh>,
        shared: &Arc<Shared>,
        client: &Client,
        number: u64,
        message: &Message,
    ) {
        let Some(route) = self.reply_route(client, number, message) else { return };
        let from = route.to.clone();
        let (stream, _) = self.begin(number, route);
        tokio::spawn(dial::answer(mesh.clone(), shared.clone(), stream, from));
    }
}

/// Keeps a connection to a server, while the node lives.
pub(super) async fn run(mesh: Arc<Mesh>, shared: Arc<Shared>, nats_endpoint: Arc<NatsEndpoint>) {
    let mut stop = mesh.stop.subscribe();
    let (mut delay, mut disconnected_at) = (RETRY_DELAY.0, Instant::now());
    let mut servers = nats_endpoint.address.servers.iter().cycle();
    while !*stop.borrow_and_update()
        && let Some(server) = servers.next()
    {
        let connected = tokio::select! {
            connected = nats_endpoint.connect(server) => connected,
            _ = stop.changed() => continue,
        };
        let why = match connected {
            Ok(session) => {
                shared.network(None);
                nats_endpoint.serve(&mesh, &shared, session).await;
                (delay, disconnected_at) = (RETRY_DELAY.0, Instant::now());
                "the connection ended".to_owned()
            }
            Err(error) => reasons(&*error),
        };
        if *stop.borrow() {
            return;
        }
        shared
            .network(Some(format!("NATS: {}: {why}; trying again", nats_endpoint.address.shown())));
        // Spread the attempts of several nodes.
        let share = getrandom::u32().unwrap_or(0) % 1000;
        sleep(delay + RETRY_DELAY.0 * share / 1000).await;
        if disconnected_at.elapsed() > SHORT_DELAYS_FOR {
            delay = (delay * 2).min(RETRY_DELAY.1);
        }
    }
}

/// An error with its causes.
fn reasons(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// The number written as 16 hexadecimal digits.
fn number(text: &str) -> Option<u64> {
    let digits = text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
    digits.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

fn is_number(text: &str) -> bool {
    number(text).is_some()
}
