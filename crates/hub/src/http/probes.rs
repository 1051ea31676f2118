//! The handlers of `/healthz` and `/readyz`. They reveal nothing about the fleet, so they need no token.

use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::body::typed;
use super::problem::Refusal;
use super::request::HubApi;
use crate::store::{StoreError, StoreHealth};

/// Answers 200: the process runs.
pub(super) fn healthy() -> Response {
    typed(json!({ "healthy": true }).to_string(), "application/json")
}

/// Answers 503 until the hub has published the fleet, then 200 with the condition of the store (if it has one), even if
/// that cannot be written.
pub(super) async fn ready(hub: &HubApi) -> Response {
    if hub.index.published().version() == 0 {
        return Refusal::busy("the hub has not published the fleet yet").into_response();
    }
    let Some(health) = store_health(hub).await else {
        return typed(json!({ "ready": true }).to_string(), "application/json");
    };
    let store = json!({ "writable": health.is_writable, "full": health.is_full });
    typed(json!({ "ready": true, "store": store }).to_string(), "application/json")
}

/// Returns the condition of the store, not writable if the store itself fails; `None` if the hub has no store.
pub(super) async fn store_health(hub: &HubApi) -> Option<StoreHealth> {
    let store = hub.store.as_ref()?;
    let unknown = |error: StoreError| StoreHealth {
        is_writable: false,
        is_full: false,
        failure: Some(error.to_string()),
        bytes: 0,
    };
    Some(store.health().await.unwrap_or_else(unknown))
}
