//! Bodies of requests and answers.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use http::{HeaderValue, header};
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;

use super::problem::Refusal;

/// A response body that holds its permit until it is sent or dropped.
pub(super) struct BodyWithPermit {
    body: Body,
    _permit: OwnedSemaphorePermit,
}

impl BodyWithPermit {
    pub(super) fn new(body: Body, permit: OwnedSemaphorePermit) -> BodyWithPermit {
        BodyWithPermit { body, _permit: permit }
    }
}

impl HttpBody for BodyWithPermit {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Makes a response with status 200, this body and this content type.
pub(super) fn typed(bytes: impl Into<Body>, content_type: &'static str) -> Response {
    let mut response = Response::new(bytes.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Reads a whole body; `None` if reading fails, because the body exceeds the limit set on it or breaks off.
pub(super) async fn whole(body: Body) -> Option<Bytes> {
    Some(body.collect().await.ok()?.to_bytes())
}

/// Parses a body from JSON. Fails also if the body has a list in place of an object: a list does not name the fields of
/// its values, and Serde takes it for any struct.
pub(super) fn parse<T: DeserializeOwned + Serialize>(bytes: &[u8]) -> Result<T, serde_json::Error> {
    let parsed: T = serde_json::from_slice(bytes)?;
    match lists_an_object(&serde_json::from_slice(bytes)?, &serde_json::to_value(&parsed)?) {
        false => Ok(parsed),
        true => Err(serde::de::Error::custom("it has a list in place of an object")),
    }
}

/// Returns true if `given` has a list, at any depth, where `read`, which was parsed from it, has an object.
fn lists_an_object(given: &Value, read: &Value) -> bool {
    match (given, read) {
        (Value::Array(_), Value::Object(_)) => true,
        (Value::Array(given), Value::Array(read)) => {
            given.iter().zip(read).any(|(given, read)| lists_an_object(given, read))
        }
        (Value::Object(given), Value::Object(read)) => {
            given.iter().any(|(name, given)| read.get(name).is_some_and(|read| lists_an_object(given, read)))
        }
        _ => false,
    }
}

/// Serializes an answer as JSON; an internal error (500) if that fails.
pub(super) fn json(answer: &impl Serialize) -> Result<Vec<u8>, Refusal> {
    serde_json::to_vec(answer).map_err(|_| Refusal::internal())
}
