//! A workbench that was built without the agent shows no agents.

use axum::Json;
use serde_json::{Value, json};

/// `GET /api/live`: no agents.
pub(crate) async fn live() -> Json<Value> {
    Json(json!({ "now": 0.0, "agents": [] }))
}
