//! Responses that are read as they arrive.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::FutureExt;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use taffrail_object::protobuf::{self, Extent};
use tokio::sync::OwnedSemaphorePermit;
use tracing::{Instrument, debug};

use super::{Connection, Shared};
use crate::costs::Purpose;
use crate::error::{Fault, Phase, ReadError, TimeLimit};
use crate::request::{AGENT, Answer, Ask, refused, retry_after};

/// Number of bytes of the body of an error response after which reading it stops.
const MAX_REFUSAL: usize = 64 << 10;
/// Time limit for reading the body of an error response; the part read until then is used.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(5);

/// A failure, and the time that the server asks to wait.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) error: ReadError,
    pub(super) retry_after: Option<Duration>,
    /// The generation of the connection, if known: it may have been replaced since.
    pub(super) generation: Option<u64>,
}

impl From<ReadError> for Refusal {
    fn from(error: ReadError) -> Refusal {
        Refusal { error, retry_after: None, generation: None }
    }
}

/// A response in progress, and its slot on the connection.
pub(super) struct Stream {
    what: String,
    pub(super) purpose: Purpose,
    /// True if it is in Protobuf: events preceded by their lengths instead of lines.
    pub(super) is_protobuf: bool,
    /// The time limit of the whole response, and the moment at which it passes; `None` for a watch or if no limit is
    /// set.
    pub(super) ends: Option<(TimeLimit, Instant)>,
    body: Body,
    _place: OwnedSemaphorePermit,
}

/// Sends a request and returns the response as soon as it begins, if its status is a success; else the failure. The
/// response may be compressed only if `compressed`. A watch takes a slot of the connections for watches, anything else
/// one of the first connection.
pub(super) async fn open(
    shared: &Shared,
    ask: &Ask,
    purpose: Purpose,
    compressed: bool,
) -> Result<Stream, Refusal> {
    let connection = shared.connection();
    let generation = Some(connection.generation);
    begin(shared, &connection, ask, purpose, compressed)
        .await
        .map_err(|refusal| Refusal { generation, ..refusal })
}

async fn begin(
    shared: &Shared,
    connection: &Connection,
    ask: &Ask,
    purpose: Purpose,
    compressed: bool,
) -> Result<Stream, Refusal> {
    let cluster = &connection.cluster;
    let pool = &cluster.shared.pool;
    let lost = |error: &(dyn std::error::Error + 'static)| Fault::of(error);
    let (client, place) = match purpose {
        Purpose::Watch => {
            // Open files are scarce, and other clusters need theirs.
            let most = cluster.charge.connections();
            let place = pool.lasting(most).map_err(|source| ReadError::Transport {
                what: ask.what.clone(),
                fault: lost(source.as_ref()),
                source: Some(source),
            })?;
            place.ok_or_else(|| ReadError::OverLimit {
                what: ask.what.clone(),
                limit: format!("more than {most} connections to the server would be open"),
            })?
        }
        _ => {
            let first = &pool.first;
            // The semaphore is never closed.
            let place = first
                .streams
                .clone()
                .acquire_owned()
                .await
                .map_err(|_| timed_out(shared, ask, Phase::Queue, purpose))?;
            (first.client.clone(), place)
        }
    };
    let mut request = Request::get(&ask.path).header(ACCEPT, ask.accept).header(USER_AGENT, AGENT);
    if !compressed {
        request = request.header(ACCEPT_ENCODING, "identity");
    }
    let request = request.body(Body::empty()).map_err(|error| ReadError::Unexpected {
        what: ask.what.clone(),
        problem: format!("the request is invalid: {error}"),
    })?;
    shared.costs.request(purpose);
    shared.costs.stream();
    let span = ask.span(cluster, request.method(), 1);
    let sent = Instant::now();
    let mut returned = shared.returned.subscribe();
    let answer = tokio::select! {
        answer = tokio::time::timeout(begins(shared, purpose).time(), client.send(request).instrument(span.clone())) => answer,
        // A request sent while the server was away is repeated, not waited for.
        _ = returned.changed() => return Err(Refusal::from(timed_out(shared, ask, Phase::Headers, purpose))),
    };
    let response = answer
        .map_err(|_| timed_out(shared, ask, Phase::Headers, purpose))?
        .map_err(|error| transport(ask, error))?;
    shared.hear();
    let (head, body) = response.into_parts();
    span.in_scope(|| debug!(status = head.status.as_u16(), took = ?sent.elapsed(), "begun to be answered"));
    if head.status != StatusCode::UNAUTHORIZED {
        shared.accept(connection.generation);
    }
    let is_protobuf = head
        .headers
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/vnd.kubernetes.protobuf"));
    let limit = cluster.request_timeout().filter(|_| purpose != Purpose::Watch);
    let ends = limit.and_then(|limit| Some((TimeLimit::Request(limit), sent.checked_add(limit)?)));
    let mut stream = Stream { what: ask.what.clone(), purpose, is_protobuf, ends, body, _place: place };
    if head.status.is_success() {
        return Ok(stream);
    }
    Err(stream.refusal(shared, ask, head.status, head.headers).await)
}

/// Returns the time limit for the start of a response: that of one request if the user set it, else `answer_timeout`
/// for a list, which the server first reads from its store, and a third of it for a watch, which begins at once.
fn begins(shared: &Shared, purpose: Purpose) -> TimeLimit {
    let list = shared.settings.answer_timeout;
    match shared.connection().cluster.request_timeout() {
        Some(limit) => TimeLimit::Request(limit),
        None => TimeLimit::All(if purpose == Purpose::Watch { list / 3 } else { list }),
    }
}

fn timed_out(shared: &Shared, ask: &Ask, phase: Phase, purpose: Purpose) -> ReadError {
    ReadError::Timeout { what: ask.what.clone(), phase, after: begins(shared, purpose) }
}

fn transport(ask: &Ask, error: kube::Error) -> ReadError {
    let fault = Fault::of(&error);
    // An error of a token's issuer may quote the token.
    let source = (fault != Fault::Credentials).then(|| error.into());
    ReadError::Transport { what: ask.what.clone(), fault, source }
}

impl Stream {
    /// Returns the next bytes; `None` at the end of the response.
    pub(super) async fn next(&mut self, shared: &Shared) -> Option<Result<Bytes, ReadError>> {
        loop {
            // Decompressed data is ready at once, again and again: yield so that other tasks get a turn.
            tokio::task::consume_budget().await;
            let frame = self.body.frame().await?;
            match self.take(shared, frame) {
                Ok(None) => {}
                Ok(Some(bytes)) => return Some(Ok(bytes)),
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Returns the next bytes if they have already arrived; else, or at the end of the response, `None`.
    pub(super) fn ready(&mut self, shared: &Shared) -> Option<Result<Bytes, ReadError>> {
        self.next(shared).now_or_never().flatten()
    }

    fn take(
        &self,
        shared: &Shared,
        frame: Result<hyper::body::Frame<Bytes>, kube::Error>,
    ) -> Result<Option<Bytes>, ReadError> {
        let frame = frame.map_err(|error| {
            let fault = Fault::of(&error);
            ReadError::Transport { what: self.what.clone(), fault, source: Some(error.into()) }
        })?;
        let bytes = frame.into_data().ok();
        if let Some(bytes) = &bytes {
            shared.hear();
            shared.costs.bytes(self.purpose, bytes.len());
        }
        Ok(bytes)
    }

    /// Reads an error response, or the start of it, and converts it to a failure.
    async fn refusal(
        &mut self,
        shared: &Shared,
        ask: &Ask,
        status: StatusCode,
        headers: HeaderMap,
    ) -> Refusal {
        let mut body = Vec::new();
        let read = async {
            while let Some(Ok(bytes)) = self.next(shared).await {
                body.extend_from_slice(&bytes);
                if body.len() > MAX_REFUSAL {
                    break;
                }
            }
        };
        // The body is optional: the status already says that the server refused.
        let _ = tokio::time::timeout(REFUSAL_TIMEOUT, read).await;
        let mut text = Vec::new();
        if self.is_protobuf && protobuf::write_json(&body, Extent::Whole, &mut text).is_ok() {
            body = text;
        }
        let retry_after = retry_after(&headers);
        let error = refused(ask, &Answer { status, headers, body }).error;
        Refusal { error, retry_after, generation: None }
    }
}
