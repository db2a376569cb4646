//! The routes, and how long work gets done: off the server's threads, and given up with its request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::extract::State;
use axum::http::header;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::de::DeserializeOwned;

use crate::refusal::Refusal;
use crate::{Shared, assets, catalog, checking, export, guard, limits, live, running};

pub(crate) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/api/catalog", get(catalog::catalog))
        .route("/api/run", post(run))
        .route("/api/check", post(checking::check))
        .route("/api/export", post(export))
        .route("/api/live", get(live::live))
        .fallback(get(assets::asset))
        .layer(DefaultBodyLimit::max(limits::BODY))
        .layer(from_fn_with_state(Arc::clone(&shared), guard::guard))
        .with_state(shared)
}

async fn run(State(shared): State<Arc<Shared>>, body: Bytes) -> Result<Response, Refusal> {
    let request = read(&body)?;
    let json = off_thread(&shared, move |shared, stop| running::run(shared, request, stop)).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], json).into_response())
}

async fn export(State(shared): State<Arc<Shared>>, body: Bytes) -> Result<Response, Refusal> {
    let request = read(&body)?;
    let file = off_thread(&shared, move |shared, _| export::export(shared, &request)).await?;
    let named = format!("attachment; filename=\"{}\"", file.name);
    let headers =
        [(header::CONTENT_TYPE, file.kind.to_owned()), (header::CONTENT_DISPOSITION, named)];
    Ok((headers, file.content).into_response())
}

/// Parses the body of a request.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|e| Refusal::unreadable(format!("the request: {e}")))
}

/// Set when the client has closed the connection.
pub(crate) struct Abandoned(pub(crate) Arc<AtomicBool>);

impl Drop for Abandoned {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` on a blocking thread; its flag is set when the client closes the connection.
async fn off_thread<T: Send + 'static>(
    shared: &Arc<Shared>,
    work: impl FnOnce(&Shared, &AtomicBool) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let abandoned = Abandoned(Arc::default());
    let slot = Arc::clone(&shared.slots).acquire_owned().await;
    let slot = slot.map_err(|_| Refusal::gone("the workbench is closing"))?;
    let (shared, stop) = (Arc::clone(shared), Arc::clone(&abandoned.0));
    let done = tokio::task::spawn_blocking(move || {
        let done = work(&shared, &stop);
        drop(slot);
        done
    });
    done.await.map_err(|_| Refusal::bug("this is a bug of konklave: the run panicked"))?
}
