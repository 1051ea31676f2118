//! The middleware before every path: checks limits and access, and sets the headers of every response.

use std::sync::Arc;

use axum::body::{Body, HttpBody};
use axum::extract::State;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use tokio::sync::Semaphore;

use super::access::Rights;
use super::body::BodyWithPermit;
use super::page;
use super::problem::Refusal;
use super::request::HubApi;

/// The path at which a browser exchanges a token for a session.
pub(super) const SESSION: &str = "/api/v1/session";

/// The path of the server-sent events.
pub(super) const STREAM: &str = "/api/v1/stream";

/// The path to which clients post the questions of views, such as that of `taffrail explain --hub`.
pub(super) const QUESTIONS: &str = "/api/v1/questions";

/// The path to which clients post questions about logs.
pub(super) const LOGS: &str = "/api/v1/logs";

/// The path to which clients post the question of an operation, to see its plan.
pub(super) const PLANS: &str = "/api/v1/plans";

/// The path to which clients post the name of an object, to see its actions.
pub(super) const ACTIONS: &str = "/api/v1/actions";

/// The path to which clients post plans to run, and which lists the operations that were run.
pub(super) const OPERATIONS: &str = "/api/v1/operations";

/// The path of the metrics.
pub(super) const METRICS: &str = "/metrics";

/// The paths that need neither token nor session, because their answers reveal nothing about the fleet.
const OPEN: [&str; 2] = ["/healthz", "/readyz"];

/// The security headers of every response that does not set them itself. They keep browsers from storing it, showing it
/// as a page, and using it in pages of other origins.
const HEADERS: [(HeaderName, &str); 5] = [
    (header::CACHE_CONTROL, "no-store"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Returns true if a part of the hub other than its page has this path, or any below it.
pub(super) fn is_taken(path: &str) -> bool {
    OPEN.contains(&path) || path == METRICS || path == "/api" || path.starts_with("/api/")
}

/// Returns true if a request is one for the page: for one of its files, or, if it accepts HTML, for a path that no other
/// part of the hub has.
pub(super) fn is_for_page(method: &Method, path: &str, headers: &HeaderMap) -> bool {
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    is_read && (page::has(path) || page::is_opened(headers) && !is_taken(path))
}

/// Runs the handler of a request that is within all limits and has access, for at most
/// [`Limits::time`](super::limits::Limits::time); else responds with the refusal. Adds [`HEADERS`] to either response.
pub(super) async fn guard(
    State(hub): State<Arc<HubApi>>,
    request: axum::extract::Request,
    next: Next,
) -> Response {
    let mut response = match guarded(&hub, request, next).await {
        Ok(response) => response,
        Err(refusal) => refusal.into_response(),
    };
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

async fn guarded(hub: &HubApi, request: axum::extract::Request, next: Next) -> Result<Response, Refusal> {
    let limits = &hub.limits;
    let (parts, body) = request.into_parts();
    let path = parts.uri.path();
    if parts.uri.path_and_query().map_or(0, |uri| uri.as_str().len()) > limits.url {
        let why = format!("the URL of the request is longer than {} bytes", limits.url);
        return Err(Refusal::too_large(StatusCode::URI_TOO_LONG, why));
    }
    let headers: usize = parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if headers > limits.headers {
        let why = format!("the headers of the request are longer than {} bytes", limits.headers);
        return Err(Refusal::too_large(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, why));
    }
    if body.size_hint().lower() > limits.body as u64 {
        let why = format!("the body of the request is longer than {} bytes", limits.body);
        return Err(Refusal::too_large(StatusCode::PAYLOAD_TOO_LARGE, why));
    }
    let is_open = OPEN.contains(&path) && matches!(parts.method, Method::GET | Method::HEAD);
    let is_entrance = path == SESSION && parts.method == Method::POST;
    let is_page = is_for_page(&parts.method, path, &parts.headers);
    let mut rights = Rights::ALL;
    if let Some(access) = &hub.access {
        // Probes do not know the name of the hub.
        if !is_open {
            access.check_origin(&parts)?;
        }
        if !is_open && !is_entrance && !is_page {
            rights = access.check_reader(&parts, hub.index.clock().time().now)?;
        }
    }
    let permits: &Arc<Semaphore> = match path {
        // Whoever may not read takes no place of readers, however slowly a body is sent.
        _ if is_open || is_entrance || is_page => &hub.strangers,
        STREAM | LOGS => &hub.streams,
        OPERATIONS if parts.method == Method::POST => &hub.streams,
        _ => &hub.requests,
    };
    let permit = Arc::clone(permits).try_acquire_owned();
    let permit = permit
        .map_err(|_| Refusal::busy("the hub already answers as many requests as it may at one time"))?;
    let body = Body::new(http_body_util::Limited::new(body, limits.body));
    let mut request = axum::extract::Request::from_parts(parts, body);
    request.extensions_mut().insert(rights);
    let response = tokio::time::timeout(limits.time, next.run(request)).await;
    let response = response.map_err(|_| Refusal::busy("the hub did not answer the request in time"))?;
    // What is answered counts until it is sent.
    Ok(response.map(|body| Body::new(BodyWithPermit::new(body, permit))))
}
