//! Logs of containers, read as they arrive.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use percent_encoding::utf8_percent_encode;
use tokio::sync::OwnedSemaphorePermit;
use tracing::{Instrument, debug};

use crate::connect::{Cluster, Shared};
use crate::deadline::Deadline;
use crate::error::{BoxError, Fault, Phase, ReadError, TimeLimit};
use crate::read::ESCAPED;
use crate::request::{AGENT, Answer, Ask, not_json, refused};
use crate::traffic::SentRequest;

/// The media types of a log, as kubectl requests them: some servers refuse a request for plain text alone.
const LOG: &str = "application/json, */*";

/// Maximum number of bytes read of the body of an error response; the rest is ignored.
const MAX_REFUSAL_BYTES: usize = 64 << 10;
/// Time limit for the body of an error response to a request without a deadline.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(5);
/// Number of connections for watches and followed logs from which on no further one is opened for a log to follow; if
/// all are full, it is refused with an error. With HTTP/1.1 each followed log has a connection of its own.
const MAX_CONNECTIONS: usize = 8;

/// The log of a container to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRequest {
    /// The namespace of the Pod.
    pub namespace: String,
    /// The name of the Pod.
    pub pod: String,
    /// The name of the container.
    pub container: String,
    /// True to read the log of the container's previous run.
    pub previous: bool,
    /// True to keep reading what the container writes from now on.
    pub follow: bool,
    /// True if each line begins with its time (RFC 3339) and a space.
    pub timestamps: bool,
    /// Number of lines to read, counted from the end; `None` for all.
    pub tail: Option<u64>,
    /// Age of the oldest line to read; `None` for any. The API counts whole seconds, at least one.
    pub since: Option<Duration>,
}

impl LogRequest {
    /// Returns the operation for error messages, such as `read the log of container c of pods/web in namespace shop`.
    pub fn what(&self) -> String {
        let LogRequest { namespace, pod, container, .. } = self;
        let previous = if self.previous { "previous " } else { "" };
        format!("read the {previous}log of container {container} of pods/{pod} in namespace {namespace}")
    }

    fn path(&self) -> String {
        let escaped = |text| utf8_percent_encode(text, ESCAPED);
        let LogRequest { namespace, pod, container, .. } = self;
        let mut path = format!(
            "/api/v1/namespaces/{}/pods/{}/log?container={}",
            escaped(namespace),
            escaped(pod),
            escaped(container)
        );
        let flags = [("previous", self.previous), ("follow", self.follow), ("timestamps", self.timestamps)];
        for (flag, _) in flags.into_iter().filter(|(_, is_set)| *is_set) {
            // Writing to a string cannot fail.
            let _ = write!(path, "&{flag}=true");
        }
        if let Some(tail) = self.tail {
            let _ = write!(path, "&tailLines={}", tail.min(i64::MAX as u64));
        }
        if let Some(since) = self.since {
            let seconds = since.as_millis().div_ceil(1000).clamp(1, i64::MAX as u128);
            let _ = write!(path, "&sinceSeconds={seconds}");
        }
        path
    }
}

/// The log of a container, in parts as the server sends them.
pub struct LogStream {
    what: String,
    body: Body,
    shared: Arc<Shared>,
    sent: SentRequest,
    bytes: u64,
    /// The time limit of the whole log; `None` for a log that is followed.
    deadline: Option<Deadline>,
    _place: OwnedSemaphorePermit,
}

impl std::fmt::Debug for LogStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogStream").field("what", &self.what).finish_non_exhaustive()
    }
}

impl Cluster {
    /// Begins to read the log of a container. A log that is followed has no time limit, not even for its first bytes:
    /// the server sends nothing before the container writes a line.
    ///
    /// # Errors
    /// Returns an error if the server refuses: [`Reason::BadRequest`](crate::Reason::BadRequest) if the container has
    /// not started or has no previous run, [`Reason::NotFound`](crate::Reason::NotFound) if the Pod does not exist,
    /// [`Reason::Forbidden`](crate::Reason::Forbidden) without the right to `get` `pods/log`.
    pub async fn log(&self, request: &LogRequest) -> Result<LogStream, ReadError> {
        let ask = Ask { what: request.what(), path: request.path(), accept: LOG };
        let deadline = (!request.follow).then_some(self.deadline);
        let timed_out = |phase, after| ReadError::Timeout { what: ask.what.clone(), phase, after };
        if deadline.is_some_and(|deadline| deadline.remaining().is_zero()) {
            return Err(timed_out(Phase::Unsent, TimeLimit::All(self.deadline.elapsed())));
        }
        let pool = &self.shared.pool;
        let (client, place) = match request.follow {
            true => {
                let place = pool.lasting(MAX_CONNECTIONS).map_err(|source| transport(&ask.what, source))?;
                place.ok_or_else(|| ReadError::OverLimit {
                    what: ask.what.clone(),
                    limit: format!("more than {MAX_CONNECTIONS} connections to the server would be open"),
                })?
            }
            false => {
                let place = self.deadline.limit(pool.first.streams.clone().acquire_owned()).await;
                let place = place.map_err(|after| timed_out(Phase::Queue, after))?;
                // The semaphore is never closed.
                let closed = |error: tokio::sync::AcquireError| transport(&ask.what, error.into());
                (pool.first.client.clone(), place.map_err(closed)?)
            }
        };
        let sent = Request::get(&ask.path).header(ACCEPT, ask.accept).header(USER_AGENT, AGENT);
        let http = sent.body(Body::empty()).map_err(|error| ReadError::Unexpected {
            what: ask.what.clone(),
            problem: format!("the request is invalid: {error}"),
        })?;
        let span = ask.span(self, http.method(), 1);
        let sent = self.shared.traffic.send();
        let answering = client.send(http).instrument(span.clone());
        let response = match deadline {
            Some(deadline) => deadline.limit_request(answering).await,
            None => Ok(answering.await),
        };
        let response = response.map_err(|after| timed_out(Phase::Headers, after))?;
        let response = response.map_err(|error| transport(&ask.what, error.into()))?;
        let (head, body) = response.into_parts();
        let status = head.status;
        span.in_scope(|| debug!(status = status.as_u16(), "begun to be answered"));
        let shared = self.shared.clone();
        let what = ask.what.clone();
        let mut stream = LogStream { what, body, shared, sent, bytes: 0, deadline, _place: place };
        let is_page =
            head.headers.get(CONTENT_TYPE).is_some_and(|it| it.as_bytes().starts_with(b"text/html"));
        if status.is_success() && !is_page {
            return Ok(stream);
        }
        stream.deadline.get_or_insert_with(|| Deadline::after(REFUSAL_TIMEOUT));
        let mut body = Vec::new();
        // Without its message, the failure is told by its status alone.
        while let Ok(Some(part)) = stream.next().await {
            body.extend_from_slice(&part[..part.len().min(MAX_REFUSAL_BYTES - body.len())]);
            if body.len() == MAX_REFUSAL_BYTES {
                break;
            }
        }
        let answer = Answer { status, headers: head.headers, body };
        Err(match status.is_success() {
            // A login page, not a log.
            true => not_json(ask.what, StatusCode::OK, &answer.headers, &answer.body),
            false => refused(&ask, &answer).error,
        })
    }
}

impl LogStream {
    /// Waits for the next part of the log; returns `None` at its end. A part may end within a line or a character.
    /// Nothing is read ahead: the server waits until the next call.
    ///
    /// # Errors
    /// Returns an error if the connection is lost, or if the time limit of a log that is not followed passes.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ReadError> {
        loop {
            // Parts that are ready at once, again and again, must not hold up the deadline and other tasks.
            tokio::task::consume_budget().await;
            let frame = match self.deadline {
                Some(deadline) => deadline.limit_request(self.body.frame()).await,
                None => Ok(self.body.frame().await),
            };
            let frame = frame.map_err(|after| ReadError::Timeout {
                what: self.what.clone(),
                phase: Phase::Body,
                after,
            })?;
            let Some(frame) = frame else { return Ok(None) };
            let frame = frame.map_err(|error| transport(&self.what, error.into()))?;
            // Trailers have no data.
            if let Ok(data) = frame.into_data()
                && !data.is_empty()
            {
                self.bytes += data.len() as u64;
                return Ok(Some(data));
            }
        }
    }
}

impl Drop for LogStream {
    fn drop(&mut self) {
        self.shared.traffic.end(self.sent, self.bytes, self.bytes > 0);
    }
}

fn transport(what: &str, source: BoxError) -> ReadError {
    let fault = Fault::of(source.as_ref());
    // An error of a token's issuer may quote the token.
    let source = (fault != Fault::Credentials).then_some(source);
    ReadError::Transport { what: what.to_owned(), fault, source }
}
