//! The HTTP endpoint: metrics for Prometheus, and health and readiness for supervisors.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::routing::get;
use tokio::net::TcpListener;

use super::group::GroupService;
use crate::failure::Failure;
use crate::service::Service;

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
    if let Err(error) = axum::serve(listener, routes).await {
        tracing::error!(%error, "metrics are no longer served: restart the agent");
    }
}
