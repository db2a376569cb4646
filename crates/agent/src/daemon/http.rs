//! Metrics for Prometheus, and two words for whoever keeps us alive.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::routing::get;

use super::group::Group;
use crate::failure::Failure;
use crate::service::Service;

/// Binds, and gives the work of serving.
pub(super) async fn serve(
    address: SocketAddr,
    group: Arc<Group>,
) -> Result<impl Future<Output = ()>, Failure> {
    let what = format!("cannot serve metrics at {address}");
    let listener = tokio::net::TcpListener::bind(address).await.map_err(Failure::system(what))?;
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
        tracing::info!(%address, "metrics");
    }
    Ok(async move {
        if let Err(error) = axum::serve(listener, routes).await {
            tracing::error!(%error, "metrics are no longer served");
        }
    })
}
