//! Errors of the HTTP API, as RFC 9457 describes them.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use taffrail_api::hub::HttpProblem;
use taffrail_api::question::QuestionError;

/// A request that the hub refuses, or fails to answer: the problem document to respond with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal(pub(crate) HttpProblem);

impl Refusal {
    fn new(status: StatusCode, sort: &'static str, title: &'static str, detail: String) -> Refusal {
        let status = status.as_u16();
        Refusal(HttpProblem {
            sort: sort.into(),
            title: title.into(),
            status,
            detail,
            hint: None,
            question: None,
        })
    }

    /// Makes the refusal (400) of a query parameter `name` with a wrong value; `why` says what is wrong.
    pub(crate) fn parameter(name: &str, why: impl std::fmt::Display) -> Refusal {
        let detail = format!("parameter '{name}': {why}");
        let sort = "urn:taffrail:problem:invalid-parameter";
        Refusal::new(StatusCode::BAD_REQUEST, sort, "Invalid parameter", detail)
    }

    /// Makes the refusal (400) of a request that the hub cannot parse; `why` is the whole message.
    pub(crate) fn request(why: impl Into<String>) -> Refusal {
        let sort = "urn:taffrail:problem:invalid-request";
        Refusal::new(StatusCode::BAD_REQUEST, sort, "Invalid request", why.into())
    }

    /// Makes the refusal (400) of a cursor that cannot be decoded, or is one of another run of the hub or of another
    /// list.
    pub(crate) fn cursor() -> Refusal {
        let detail = "the cursor is not one of this list and of this run of the hub".to_owned();
        let sort = "urn:taffrail:problem:invalid-cursor";
        let refusal = Refusal::new(StatusCode::BAD_REQUEST, sort, "Invalid cursor", detail);
        refusal.hint("ask for the first page again, without 'cursor'")
    }

    /// Makes the refusal of a request for something that the hub does not have (404); `what` is the whole message.
    pub(crate) fn not_found(what: impl Into<String>) -> Refusal {
        let sort = "urn:taffrail:problem:not-found";
        Refusal::new(StatusCode::NOT_FOUND, sort, "Not found", what.into())
    }

    /// Makes the refusal (405) of an HTTP method that the path does not support.
    pub(crate) fn method() -> Refusal {
        let sort = "urn:taffrail:problem:method-not-allowed";
        let detail =
            "the path does not support the method of the request; the header Allow lists those that it does"
                .to_owned();
        Refusal::new(StatusCode::METHOD_NOT_ALLOWED, sort, "Method not allowed", detail)
    }

    /// Makes the refusal (409) of a path that names several apps.
    pub(crate) fn ambiguous(what: impl Into<String>) -> Refusal {
        let sort = "urn:taffrail:problem:ambiguous";
        Refusal::new(StatusCode::CONFLICT, sort, "Ambiguous name", what.into())
    }

    /// Makes the refusal (409) of a run of an operation that does not fit the present state of the hub or the fleet.
    pub(crate) fn not_run(why: impl Into<String>) -> Refusal {
        let sort = "urn:taffrail:problem:not-run";
        Refusal::new(StatusCode::CONFLICT, sort, "Not run", why.into())
    }

    /// Makes the refusal of a request without a valid token or session (401).
    pub(crate) fn unauthorized(why: &str) -> Refusal {
        let sort = "urn:taffrail:problem:unauthorized";
        Refusal::new(StatusCode::UNAUTHORIZED, sort, "Unauthorized", why.to_owned())
    }

    /// Makes the refusal of a request that another site sent or may have sent, or that names another host (403).
    pub(crate) fn forbidden(why: impl Into<String>) -> Refusal {
        let sort = "urn:taffrail:problem:forbidden";
        Refusal::new(StatusCode::FORBIDDEN, sort, "Forbidden", why.into())
    }

    /// Makes the refusal (422) of a view's question that names something that the fleet does not have, or an app by a
    /// name that several apps have.
    pub(crate) fn question(error: QuestionError) -> Refusal {
        let sort = "urn:taffrail:problem:no-answer";
        let detail = error.to_string();
        let refusal = Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, sort, "No answer", detail);
        Refusal(HttpProblem { question: Some(Box::new(error)), ..refusal.0 })
    }

    /// Makes the refusal of a request that is too large, with this status code.
    pub(crate) fn too_large(status: StatusCode, why: impl Into<String>) -> Refusal {
        let sort = "urn:taffrail:problem:too-large";
        Refusal::new(status, sort, "Request too large", why.into())
    }

    /// Makes the refusal (422) of a view's question whose answer would be longer than `most` bytes.
    pub(crate) fn answer(most: usize) -> Refusal {
        let sort = "urn:taffrail:problem:answer-too-large";
        let detail =
            format!("the answer to the question is longer than the {most} bytes that the hub sends at most");
        let refusal = Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, sort, "Answer too large", detail);
        refusal.hint("make the answer shorter: ask with filters, a namespace or the names of apps")
    }

    /// Makes the refusal (503) of a request that the hub cannot answer now, and that the client may repeat after a
    /// second.
    pub(crate) fn busy(why: &str) -> Refusal {
        let sort = "urn:taffrail:problem:busy";
        let refusal = Refusal::new(StatusCode::SERVICE_UNAVAILABLE, sort, "Busy", why.to_owned());
        refusal.hint("send the request again in a second")
    }

    /// Makes the response for a failure of the hub itself (500).
    pub(crate) fn internal() -> Refusal {
        let sort = "urn:taffrail:problem:internal";
        let detail =
            "the hub failed while it computed the answer; what it wrote to stderr may say why".to_owned();
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, sort, "Internal error", detail)
    }

    /// Sets the hint: what the user can do about it.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Refusal {
        Refusal(HttpProblem { hint: Some(hint.into()), ..self.0 })
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = Response::new(Body::from(serde_json::to_vec(&self.0).unwrap_or_default()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"taffrail\""));
        }
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
