//! A fence gate in front of an HTTP service: a `tower` layer, for axum, hyper, tonic and others.
//!
//! ```
//! use konklave::fence::http::FenceLayer;
//!
//! let layer = FenceLayer::default();
//! // axum: Router::new().route("/report", put(write)).layer(layer.clone())
//! # let _ = layer;
//! ```
//!
//! A request without a token is answered with 400, a request of a former holder with 409; neither reaches the
//! service. The service finds the [`Token`] among the request's extensions.
//!
//! Hazard: a later holder may pass the gate before this request writes. So a service that writes to a database
//! passes the token on ([`SQL`](super::SQL)); one that writes to its own memory checks
//! [`FenceLayer::is_current`] under the lock that protects it.

use std::future::{Ready, ready};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures_util::future::Either;
use http::{Request, Response};
use tower_layer::Layer;
use tower_service::Service;

use super::{FenceGate, HEADER, HeaderError};
use crate::token::Token;

/// Puts a gate in front of a service. All clones share the gate.
#[derive(Clone, Debug, Default)]
pub struct FenceLayer {
    gate: Arc<Mutex<FenceGate>>,
}

impl FenceLayer {
    /// With a gate that has seen tokens already: after a restart, give it the highest one before.
    #[must_use]
    pub fn new(gate: FenceGate) -> Self {
        Self { gate: Arc::new(Mutex::new(gate)) }
    }

    fn gate(&self) -> MutexGuard<'_, FenceGate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The highest token so far.
    #[must_use]
    pub fn highest(&self) -> Token {
        self.gate().highest()
    }

    /// Whether no higher token has been seen since.
    #[must_use]
    pub fn is_current(&self, token: Token) -> bool {
        self.highest() <= token
    }

    fn admit<B>(&self, request: &Request<B>) -> Result<Token, HeaderError> {
        let mut values = request.headers().get_all(HEADER).iter();
        let value = match (values.next(), values.next()) {
            (value, None) => value.map(|value| value.to_str()).transpose(),
            // Several values: it is unclear which one counts.
            (_, Some(_)) => return Err(HeaderError::Malformed),
        };
        self.gate().admit_header(value.map_err(|_| HeaderError::Malformed)?)
    }
}

impl<S> Layer<S> for FenceLayer {
    type Service = Fenced<S>;

    fn layer(&self, inner: S) -> Fenced<S> {
        Fenced { inner, layer: self.clone() }
    }
}

/// A service behind a gate.
#[derive(Clone, Debug)]
pub struct Fenced<S> {
    inner: S,
    layer: FenceLayer,
}

impl<S, B, R> Service<Request<B>> for Fenced<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: From<String>,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Either<Ready<Result<Response<R>, S::Error>>, S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        match self.layer.admit(&request) {
            Ok(token) => {
                request.extensions_mut().insert(token);
                Either::Right(self.inner.call(request))
            }
            Err(error) => {
                let mut refusal = Response::new(R::from(format!("{error}\n")));
                let status = http::StatusCode::from_u16(error.status());
                *refusal.status_mut() = status.unwrap_or(http::StatusCode::CONFLICT);
                Either::Left(ready(Ok(refusal)))
            }
        }
    }
}
