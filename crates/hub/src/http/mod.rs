//! The HTTP API of the hub.
//!
//! [`router()`] serves the paths of one table ([`endpoint::ENDPOINTS`]) with the parameters of another
//! ([`query::PARAMETERS`]); the OpenAPI document `docs/openapi.json` is made of both and of the types of
//! [`taffrail_api`]. All answers are computed from the last published state of the fleet at the present moment.

mod cursor;
mod endpoint;
mod lists;
mod problem;
mod query;
mod request;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{RawPathParams, RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{HeaderValue, header};

use self::endpoint::{ENDPOINTS, Endpoint};
use self::problem::Refusal;
use self::query::Query;
pub use self::request::HubApi;
use self::request::Request;

/// Makes the router of the API.
pub fn router(hub: Arc<HubApi>) -> Router {
    let mut router = Router::new();
    for endpoint in ENDPOINTS {
        let handler = move |State(hub): State<Arc<HubApi>>, parts: PathParts, RawQuery(query): RawQuery| {
            answer(hub, endpoint, parts.0, query)
        };
        router = router.route(endpoint.path, get(handler));
    }
    router
        .fallback(|| async { Refusal::not_found("the hub has no such path") })
        .method_not_allowed_fallback(|| async { Refusal::method() })
        .with_state(hub)
}

/// The parameters in the path, decoded.
struct PathParts(Result<Vec<String>, Refusal>);

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for PathParts {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(
        parts: &mut http::request::Parts,
        state: &S,
    ) -> Result<PathParts, Self::Rejection> {
        let read = RawPathParams::from_request_parts(parts, state).await;
        let read = read.map(|all| all.iter().map(|(_, value)| value.to_owned()).collect());
        Ok(PathParts(read.map_err(|_| Refusal::request("the path is not valid UTF-8"))))
    }
}

/// Computes an answer on a thread that may take its time.
async fn answer(
    hub: Arc<HubApi>,
    endpoint: &'static Endpoint,
    path: Result<Vec<String>, Refusal>,
    query: Option<String>,
) -> Response {
    let read = || Ok((path?, Query::read(&query.unwrap_or_default(), endpoint.parameters)?));
    let (path, query) = match read() {
        Ok(read) => read,
        Err(refusal) => return Refusal::into_response(refusal),
    };
    let Ok(permit) = Arc::clone(&hub.computed).acquire_owned().await else {
        return Refusal::internal().into_response();
    };
    let computed = tokio::task::spawn_blocking(move || {
        let request = Request { view: hub.index.view(), hub: &hub, query, path };
        let answer = (endpoint.answer)(&request);
        drop(permit);
        answer
    });
    match computed.await.unwrap_or_else(|_| Err(Refusal::internal())) {
        Ok(bytes) => document(bytes),
        Err(refusal) => refusal.into_response(),
    }
}

fn document(bytes: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(bytes));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests;
