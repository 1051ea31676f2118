//! The router of the HTTP API, and the handlers that are not lists.

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequestParts, RawPathParams, RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http::{HeaderMap, Method, StatusCode, Uri, header};

use super::body::{parse, typed, whole};
use super::compression::{Answer, accepts_gzip};
use super::endpoint::{ENDPOINTS, Endpoint};
use super::problem::Refusal;
use super::query::Query;
use super::request::{HubApi, Request, compute};
use super::{guard, logs, metrics, operations, page, probes, questions, stream};

/// Makes the router with all paths of the API, behind the guard.
pub fn router(hub: Arc<HubApi>) -> Router {
    let mut router = Router::new();
    for endpoint in ENDPOINTS {
        let handler = move |State(hub): State<Arc<HubApi>>,
                            parts: PathParts,
                            RawQuery(query): RawQuery,
                            headers: HeaderMap| {
            answer(hub, endpoint, parts.0, query, accepts_gzip(&headers))
        };
        router = router.route(endpoint.path, get(handler));
    }
    router
        .route("/healthz", get(|| async { probes::healthy() }))
        .route("/readyz", get(|State(hub): State<Arc<HubApi>>| async move { probes::ready(&hub).await }))
        .route(guard::METRICS, get(measure))
        .route(guard::SESSION, post(open_session))
        .route(guard::STREAM, get(follow))
        .route(guard::QUESTIONS, post(questions::ask))
        .route(guard::LOGS, post(logs::open))
        .route(guard::PLANS, post(operations::plan))
        .route(guard::ACTIONS, post(operations::actions))
        .route(guard::OPERATIONS, post(operations::run))
        .fallback(other)
        .method_not_allowed_fallback(|| async { Refusal::method() })
        .layer(axum::middleware::from_fn_with_state(Arc::clone(&hub), guard::guard))
        .with_state(hub)
}

/// Responds with a file of the page, or its document, to a request for it, else with 404.
async fn other(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    match guard::is_for_page(&method, uri.path(), &headers) {
        true => page::answer(uri.path(), &headers),
        false => Refusal::not_found("the hub has no such path").into_response(),
    }
}

/// Opens a session for the token in the JSON body, and responds with 204 and the session cookie; refuses (401) a token
/// that is not valid, and (404) every request if the hub needs no token.
async fn open_session(State(hub): State<Arc<HubApi>>, request: axum::extract::Request) -> Response {
    #[derive(serde::Deserialize, serde::Serialize)]
    struct SessionRequest {
        token: String,
    }

    let Some(access) = &hub.access else {
        return Refusal::not_found("this hub needs no token, and so opens no sessions").into_response();
    };
    let Some(bytes) = whole(request.into_body()).await else {
        let why = format!(
            "the body of the request is longer than {} bytes, or was not sent whole",
            hub.limits.body
        );
        return Refusal::too_large(StatusCode::PAYLOAD_TOO_LARGE, why).into_response();
    };
    let Ok(SessionRequest { token }) = parse(&bytes) else {
        return Refusal::request("the body of the request is not JSON like {\"token\": \"…\"}")
            .into_response();
    };
    match access.open_session(&token, hub.index.clock().time().now) {
        Err(refusal) => refusal.into_response(),
        Ok(cookie) => {
            let mut response = StatusCode::NO_CONTENT.into_response();
            response.headers_mut().insert(header::SET_COOKIE, cookie);
            response
        }
    }
}

/// Responds with a stream of server-sent events.
async fn follow(
    State(hub): State<Arc<HubApi>>,
    RawQuery(query): RawQuery,
    request: axum::extract::Request,
) -> Response {
    stream::open(hub, request.into_parts().0, &query.unwrap_or_default())
}

/// Responds with the metrics for Prometheus.
async fn measure(State(hub): State<Arc<HubApi>>) -> Response {
    let in_flight = hub.limits.requests - hub.requests.available_permits().min(hub.limits.requests);
    let streams = hub.limits.streams - hub.streams.available_permits().min(hub.limits.streams);
    let store = probes::store_health(&hub).await;
    let agents = hub.agents.as_ref().map(|agents| agents.connected());
    compute(hub, move |hub| {
        let view = hub.index.view();
        Ok(metrics::write(&hub.index, &view, store.as_ref(), in_flight, streams, agents).into_bytes())
    })
    .await
    .map_or_else(Refusal::into_response, |text| typed(text, "text/plain; version=0.0.4; charset=utf-8"))
}

/// The decoded path parameters; a refusal if they are not UTF-8.
struct PathParts(Result<Vec<String>, Refusal>);

impl<S: Send + Sync> FromRequestParts<S> for PathParts {
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

/// Parses the query, and responds with the JSON answer of `endpoint`, compressed if the client accepts that and it is
/// long, or with a refusal.
async fn answer(
    hub: Arc<HubApi>,
    endpoint: &'static Endpoint,
    path: Result<Vec<String>, Refusal>,
    query: Option<String>,
    is_gzip_accepted: bool,
) -> Response {
    let read = || Ok((path?, Query::read(&query.unwrap_or_default(), endpoint.parameters)?));
    let (path, query) = match read() {
        Ok(read) => read,
        Err(refusal) => return Refusal::into_response(refusal),
    };
    let answer = compute(hub, move |hub| {
        let bytes = (endpoint.answer)(&Request { view: hub.index.view(), hub, query, path })?;
        Ok(Answer::new(bytes, is_gzip_accepted))
    });
    answer.await.map_or_else(Refusal::into_response, |answer| answer.respond("application/json"))
}
