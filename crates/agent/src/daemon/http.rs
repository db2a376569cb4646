//! The HTTP endpoint: metrics for Prometheus, and health and readiness for supervisors.
//!
//! Any host that reaches the port can connect. So there are few connections at a time, each for a short time:
//! half-sent requests take nothing from the group.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::routing::get;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

use super::group::GroupService;
use crate::failure::Failure;
use crate::newcomers::Newcomers;
use crate::service::Service;

/// The most connections; beyond it, the oldest one ends.
const CONNECTIONS: usize = 32;
/// How long a connection may last.
const LIFETIME: Duration = Duration::from_secs(10);
/// The pause after a failed `accept`.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Opens the port. Connections wait until [`serve`] accepts them.
pub(super) async fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    let what = format!("cannot serve metrics at {address}");
    let fail = Failure::bind(what, "choose another port with --metrics ADDRESS");
    TcpListener::bind(address).await.map_err(fail)
}

/// Serves until the task is aborted.
pub(super) async fn serve(listener: TcpListener, group: Arc<GroupService>) {
    let (metrics, ready) = (Arc::clone(&group), group);
    let routes = Router::new()
        .route(
            "/metrics",
            get(|| async move {
                ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], metrics.metrics())
            }),
        )
        .route("/healthz", get(|| async { "alive\n" }))
        .route(
            "/ready",
            get(|| async move {
                match ready.is_primary() {
                    true => (StatusCode::OK, "ready\n"),
                    false => (StatusCode::SERVICE_UNAVAILABLE, "no majority\n"),
                }
            }),
        );
    if let Ok(address) = listener.local_addr() {
        tracing::info!(%address, "serving metrics");
    }
    let listener = BriefListener { listener, connections: Newcomers::new(CONNECTIONS) };
    if let Err(error) = axum::serve(listener, routes).await {
        tracing::error!(%error, "metrics are no longer served: restart the agent");
    }
}

/// Accepts connections that end soon.
struct BriefListener {
    listener: TcpListener,
    connections: Arc<Newcomers>,
}

impl axum::serve::Listener for BriefListener {
    type Io = BriefConnection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (BriefConnection, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, from)) => {
                    return (BriefConnection::new(stream, &self.connections), from);
                }
                // Usually all file descriptors are in use, and some will be closed soon.
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that ends after its lifetime, or sooner if others need its place.
struct BriefConnection {
    stream: TcpStream,
    /// Completes when the connection must end.
    end: Pin<Box<dyn Future<Output = ()> + Send>>,
    ended: bool,
}

impl BriefConnection {
    fn new(stream: TcpStream, connections: &Arc<Newcomers>) -> Self {
        let place = connections.enter();
        let end = Box::pin(async move {
            let _ = tokio::time::timeout(LIFETIME, place.evicted()).await;
        });
        Self { stream, end, ended: false }
    }

    /// Fails once the connection must end.
    fn check(&mut self, task: &mut Context<'_>) -> io::Result<()> {
        self.ended = self.ended || self.end.as_mut().poll(task).is_ready();
        if self.ended { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }
}

impl AsyncRead for BriefConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(task)?;
        Pin::new(&mut self.stream).poll_read(task, room)
    }
}

impl AsyncWrite for BriefConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check(task)?;
        Pin::new(&mut self.stream).poll_write(task, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(task)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(task)
    }
}
