//! The probes: `/healthz` and `/readyz`. They tell nothing of the fleet, so that they need no token.

use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::body::typed;
use super::problem::Refusal;
use super::request::HubApi;

/// Answers that the process runs.
pub(super) fn healthy() -> Response {
    typed(json!({ "healthy": true }).to_string(), "application/json")
}

/// Answers whether the hub can answer questions, and whether it can save what it learns: reading goes on while it cannot.
pub(super) async fn ready(hub: &HubApi) -> Response {
    if hub.index.published().version() == 0 {
        return Refusal::busy("the hub has not published the fleet yet").into_response();
    }
    let Some(store) = &hub.store else {
        return typed(json!({ "ready": true }).to_string(), "application/json");
    };
    let store = match store.health().await {
        Ok(health) => json!({ "writable": health.is_writable, "full": health.is_full }),
        Err(_) => json!({ "writable": false, "full": false }),
    };
    typed(json!({ "ready": true, "store": store }).to_string(), "application/json")
}
