//! Why a request is refused, as the page is told.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use konklave_catalog::Error;
use serde_json::json;

/// Why a request is refused.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    why: String,
}

impl Refusal {
    /// It cannot be read.
    pub(crate) fn unreadable(why: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, why: why.into() }
    }

    /// It makes no sense.
    pub(crate) fn senseless(why: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, why: why.into() }
    }

    /// It is more than a page should show.
    pub(crate) fn too_large(why: impl Into<String>) -> Self {
        Self { status: StatusCode::PAYLOAD_TOO_LARGE, why: why.into() }
    }

    /// The address lacks the token.
    pub(crate) fn stranger(why: impl Into<String>) -> Self {
        Self { status: StatusCode::UNAUTHORIZED, why: why.into() }
    }

    /// It comes from elsewhere.
    pub(crate) fn foreign(why: impl Into<String>) -> Self {
        Self { status: StatusCode::FORBIDDEN, why: why.into() }
    }

    /// What it is about is no longer here.
    pub(crate) fn gone(why: impl Into<String>) -> Self {
        Self { status: StatusCode::GONE, why: why.into() }
    }

    /// A bug of ours.
    pub(crate) fn bug(why: impl Into<String>) -> Self {
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, why: why.into() }
    }

    /// In words.
    pub(crate) fn why(&self) -> &str {
        &self.why
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::senseless(error.to_string())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.status, Json(json!({ "error": self.why }))).into_response()
    }
}
