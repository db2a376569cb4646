//! Refused requests: status and reason, as the page receives them.

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
    /// The request cannot be parsed.
    pub(crate) fn unreadable(why: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, why: why.into() }
    }

    /// The request is invalid.
    pub(crate) fn invalid(why: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, why: why.into() }
    }

    /// The run or group is too large for a page.
    pub(crate) fn too_large(why: impl Into<String>) -> Self {
        Self { status: StatusCode::PAYLOAD_TOO_LARGE, why: why.into() }
    }

    /// The address lacks the token.
    pub(crate) fn unauthorised(why: impl Into<String>) -> Self {
        Self { status: StatusCode::UNAUTHORIZED, why: why.into() }
    }

    /// The request comes from another site.
    pub(crate) fn foreign(why: impl Into<String>) -> Self {
        Self { status: StatusCode::FORBIDDEN, why: why.into() }
    }

    /// The requested run is no longer kept.
    pub(crate) fn gone(why: impl Into<String>) -> Self {
        Self { status: StatusCode::GONE, why: why.into() }
    }

    /// A bug of ours.
    pub(crate) fn bug(why: impl Into<String>) -> Self {
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, why: why.into() }
    }

    /// The reason.
    pub(crate) fn why(&self) -> &str {
        &self.why
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::invalid(error.to_string())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.status, Json(json!({ "error": self.why }))).into_response()
    }
}
