//! A single HTTP request: counted, timed, retried where that is safe, and bounded by its time limit and the deadline.

use std::fmt;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, Method, Request, StatusCode, request};
use http_body_util::BodyExt;
use jiff::Timestamp;
use kube::client::Body;
use serde::Deserialize;
use serde::de::IgnoredAny;
use tracing::{Instrument, Span, debug, debug_span, trace};

use crate::connect::Cluster;
use crate::error::{Fault, Phase, ReadError, TimeLimit, one_line};

pub(crate) const AGENT: &str = concat!("taffrail/", env!("CARGO_PKG_VERSION"));

/// The media type of plain JSON.
pub(crate) const JSON: &str = "application/json";

/// Maximum size of a response in bytes, decompressed; a larger one is refused with an error. Responses are kept
/// whole.
pub(crate) const MAX_RESPONSE: usize = 256 << 20;

/// Maximum pause taken from a server's `Retry-After`; a longer one is shortened to this.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// Minimum pause before a request is repeated, even if the server's `Retry-After` is shorter; also the pause after a
/// server error (5xx) without `Retry-After`.
const MIN_PAUSE: Duration = Duration::from_millis(250);

/// The pause before a request is repeated to which the server responded 429 without `Retry-After`.
const DEFERRED_PAUSE: Duration = Duration::from_secs(1);

/// Maximum number of attempts of one request: as in client-go, the first and ten more. The last response is then
/// final.
const MAX_ATTEMPTS: u32 = 11;

/// A request to the server, without its method and body.
#[derive(Debug)]
pub(crate) struct Ask {
    /// The operation as a verb phrase, for error messages: `list pods in namespace shop`.
    pub(crate) what: String,
    /// Path and query.
    pub(crate) path: String,
    /// The `Accept` header.
    pub(crate) accept: &'static str,
}

impl Ask {
    /// Returns the tracing span of a request, and traces its purpose. Headers and bodies are never traced: they hold
    /// credentials and Secrets.
    pub(crate) fn span(&self, cluster: &Cluster, method: &Method, attempt: u32) -> Span {
        let (cluster, path) = (cluster.context(), TracedPath(&self.path));
        let span = debug_span!("request", cluster, %method, ?path, attempt);
        span.in_scope(|| trace!(purpose = self.what, "sent"));
        span
    }
}

/// A path and query as traces show them, without the token of the next page: an API server can put names into it.
struct TracedPath<'p>(&'p str);

impl fmt::Debug for TracedPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((before, after)) = self.0.split_once("continue=") else { return self.0.fmt(f) };
        let rest = after.find('&').and_then(|end| after.get(end..)).unwrap_or_default();
        format!("{before}continue=…{rest}").fmt(f)
    }
}

/// A complete response, whatever its status.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// Returns this response if its status is a success, otherwise an error.
    pub(crate) fn successful(self, ask: &Ask) -> Result<Answer, ReadError> {
        if self.status.is_success() { Ok(self) } else { Err(refused(ask, &self).error) }
    }

    /// Returns true if an API server made this failure: it is a `Status` object, or has the header that an API server
    /// adds to all its responses, even to those of its limits for requests, which are plain text.
    pub(crate) fn is_of_api_server(&self) -> bool {
        self.headers.contains_key("audit-id") || self.failure().is_some()
    }

    /// Parses the `Status` object; `None` if the response is not one.
    fn failure(&self) -> Option<Status> {
        serde_json::from_slice::<Status>(&self.body).ok().filter(|status| status.kind == "Status")
    }

    /// Returns the causes that the `Status` object of a failure gives; none if the response is not one.
    pub(crate) fn causes(&self) -> Vec<StatusCause> {
        self.failure()
            .and_then(|status| status.details)
            .and_then(|details| details.causes)
            .unwrap_or_default()
    }

    /// Returns true if the response is a `Status` object that tells of a success, as that to a deletion may be.
    pub(crate) fn is_success_status(&self) -> bool {
        let said = serde_json::from_slice::<Success>(&self.body).ok();
        self.status.is_success() && said.is_some_and(|said| said.kind == "Status" && said.status == "Success")
    }

    /// Returns the error for a successful response that cannot be parsed because of `problem`, or, if it is not a JSON
    /// object, because of that; `what` names the operation.
    pub(crate) fn unreadable(&self, what: &str, problem: impl std::fmt::Display) -> ReadError {
        let json = content_type(&self.headers).contains("json");
        if json && self.body.trim_ascii_start().first() == Some(&b'{') {
            return ReadError::Unexpected { what: what.to_owned(), problem: problem.to_string() };
        }
        not_json(what.to_owned(), self.status, &self.headers, &self.body)
    }
}

/// The `Status` object with which an API server reports a failure.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    kind: String,
    message: Option<String>,
    reason: Option<String>,
    details: Option<StatusDetails>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StatusDetails {
    name: Option<String>,
    causes: Option<Vec<StatusCause>>,
}

/// A cause in the details of a `Status` object.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct StatusCause {
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) field: String,
}

/// The `Status` object with which an API server reports a success, if it has no object to answer.
#[derive(Debug, Deserialize)]
struct Success {
    kind: String,
    status: String,
}

/// The failure of a read request.
#[derive(Debug)]
pub(crate) struct ReadFailure {
    pub(crate) error: ReadError,
    /// True if the server tells that the object does not exist, though its kind does.
    pub(crate) no_such_object: bool,
    /// True if the server leads to another address (HTTP 3xx).
    pub(crate) is_redirect: bool,
}

/// The failure of a request that got no usable response.
#[derive(Debug)]
pub(crate) struct LostRequest {
    pub(crate) error: ReadError,
    /// True if the server may have received the request.
    pub(crate) sent: bool,
}

impl LostRequest {
    fn unsent(error: ReadError) -> LostRequest {
        LostRequest { error, sent: false }
    }

    fn sent(error: ReadError) -> LostRequest {
        LostRequest { error, sent: true }
    }
}

impl From<ReadError> for ReadFailure {
    fn from(error: ReadError) -> ReadFailure {
        ReadFailure { error, no_such_object: false, is_redirect: false }
    }
}

impl Cluster {
    /// Sends a read and returns its response if that is a success.
    ///
    /// Retries after each 429 (too many requests), and once after a server error (5xx), as long as the deadline and
    /// [`MAX_ATTEMPTS`] allow. Only reads use this, so repeating one is harmless.
    pub(crate) async fn ask(&self, ask: &Ask) -> Result<Answer, ReadFailure> {
        let (mut attempt, mut failed_before) = (0, false);
        loop {
            attempt += 1;
            let get = Request::get(&ask.path);
            let answer = self.exchange(ask, get, Body::empty(), attempt).await.map_err(|lost| lost.error)?;
            let may_succeed = match answer.status {
                status if status.is_success() => return Ok(answer),
                StatusCode::TOO_MANY_REQUESTS => true,
                status => status.is_server_error() && !std::mem::replace(&mut failed_before, true),
            };
            if !may_succeed || !self.pause_before_retry(&answer, attempt).await {
                return Err(refused(ask, &answer));
            }
        }
    }

    /// Waits before a request is repeated whose `attempt`, counted from 1, got `answer`: as long as its `Retry-After`
    /// asks, but at least [`MIN_PAUSE`]. Returns false at once if the request must not be repeated, because it was
    /// sent [`MAX_ATTEMPTS`] times or the deadline would pass first.
    pub(crate) async fn pause_before_retry(&self, answer: &Answer, attempt: u32) -> bool {
        let unasked = match answer.status {
            StatusCode::TOO_MANY_REQUESTS => DEFERRED_PAUSE,
            _ => MIN_PAUSE,
        };
        let wait = retry_after(&answer.headers).unwrap_or(unasked).max(MIN_PAUSE);
        if attempt >= MAX_ATTEMPTS || wait >= self.deadline.remaining() {
            return false;
        }
        tokio::time::sleep(wait).await;
        true
    }

    pub(crate) async fn ask_once(&self, ask: &Ask) -> Result<Answer, ReadError> {
        self.exchange(ask, Request::get(&ask.path), Body::empty(), 1).await.map_err(|lost| lost.error)
    }

    /// Charges the cluster for `more` bytes of a response that has `have` bytes so far, or returns the error for a
    /// response that is too large; `what` names the operation.
    fn take_in(&self, what: &str, have: usize, more: usize) -> Result<(), ReadError> {
        if have + more > MAX_RESPONSE {
            return Err(too_large(what, MAX_RESPONSE));
        }
        self.charge.take(what, more as u64)
    }

    /// Sends one request, without a retry, and returns its whole response, whatever its status.
    pub(crate) async fn exchange(
        &self,
        ask: &Ask,
        request: request::Builder,
        body: Body,
        attempt: u32,
    ) -> Result<Answer, LostRequest> {
        let timed_out = |phase, after| ReadError::Timeout { what: ask.what.clone(), phase, after };
        let request =
            request.header(ACCEPT, ask.accept).header(USER_AGENT, AGENT).body(body).map_err(|error| {
                LostRequest::unsent(ReadError::Unexpected {
                    what: ask.what.clone(),
                    problem: format!("the request is invalid: {error}"),
                })
            })?;
        // A request that begins after the deadline could only be given up, and a write would be uncertain.
        if self.deadline.remaining().is_zero() {
            let after = TimeLimit::All(self.deadline.elapsed());
            return Err(LostRequest::unsent(timed_out(Phase::Unsent, after)));
        }
        // The semaphore is never closed.
        let _place = self
            .deadline
            .limit(self.shared.pool.first.streams.acquire())
            .await
            .map_err(|after| LostRequest::unsent(timed_out(Phase::Queue, after)))?;

        let span = ask.span(self, request.method(), attempt);
        let traffic = &self.shared.traffic;
        let sent = traffic.send();
        let (mut status, mut bytes) = (None, 0);
        let mut phase = Phase::Headers;
        let outcome = {
            // Pinned here, so that what limits and traces it holds no copies: dozens of requests run at once.
            let exchange = pin!(async {
                let response = self.shared.pool.first.client.send(request).await?;
                phase = Phase::Body;
                status = Some(response.status());
                traffic.compare_clocks(response.headers(), Timestamp::now());
                let (head, mut body) = response.into_parts();
                let mut whole = Vec::new();
                while let Some(frame) = body.frame().await {
                    // Decompressed data is ready at once, again and again: yield so that the deadline and other tasks get a
                    // turn.
                    tokio::task::consume_budget().await;
                    let data = frame?.into_data().unwrap_or_else(|_| Bytes::new());
                    bytes += data.len() as u64;
                    let taken = self.take_in(&ask.what, whole.len(), data.len());
                    if let Err(over) = taken {
                        self.charge.give_back(whole.len() as u64);
                        return Ok(Err(over));
                    }
                    whole.extend_from_slice(&data);
                }
                Ok::<_, kube::Error>(Ok(Answer { status: head.status, headers: head.headers, body: whole }))
            });
            self.deadline.limit_request(exchange).instrument(span.clone()).await
        };
        let took = traffic.end(sent, bytes, status.is_some());
        let (round, at) = (sent.round, sent.at);
        span.in_scope(|| match status {
            Some(status) => debug!(status = status.as_u16(), bytes, round, ?at, ?took, "answered"),
            None => debug!(round, ?at, ?took, "not answered"),
        });
        match outcome {
            Err(after) => Err(LostRequest::sent(timed_out(phase, after))),
            Ok(Ok(Ok(answer))) => Ok(answer),
            Ok(Ok(Err(over))) => Err(LostRequest::sent(over)),
            Ok(Err(error)) => {
                let fault = Fault::of(&error);
                // An error of a token's issuer may quote the token.
                let source = (fault != Fault::Credentials).then(|| error.into());
                // Without a connection or credentials nothing was sent.
                let sent = matches!(fault, Fault::Lost | Fault::Other);
                Err(LostRequest {
                    error: ReadError::Transport { what: ask.what.clone(), fault, source },
                    sent,
                })
            }
        }
    }
}

/// Returns the error for a response to the operation `what` of more than `largest` bytes.
pub(crate) fn too_large(what: &str, largest: usize) -> ReadError {
    ReadError::OverLimit {
        what: what.to_owned(),
        limit: format!("the answer is larger than {} MiB", largest >> 20),
    }
}

/// Parses `Retry-After` in seconds, limited to [`MAX_RETRY_AFTER`]; `None` if it is missing or not a number.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // A number beyond u64 is a long time too.
    Some(text.parse().map_or(MAX_RETRY_AFTER, Duration::from_secs).min(MAX_RETRY_AFTER))
}

/// Maximum number of characters of a server's message.
const MAX_MESSAGE: usize = 400;

pub(crate) fn refused(ask: &Ask, answer: &Answer) -> ReadFailure {
    let what = ask.what.clone();
    let code = answer.status.as_u16();
    let Some(status) = answer.failure() else {
        // These status codes are unambiguous whatever sent them, and so is an error as JSON; for others the body shows
        // what did.
        let telling = matches!(code, 401 | 403 | 404 | 410 | 429 | 500..) || is_json(&answer.body);
        let error = if telling {
            let text = content_type(&answer.headers);
            let start = one_line(&String::from_utf8_lossy(&answer.body[..answer.body.len().min(400)]), 80);
            let reason = answer.status.canonical_reason().unwrap_or("error");
            let message = match start.is_empty() {
                true => reason.to_owned(),
                false => format!("{reason}, {text}: \"{start}\""),
            };
            ReadError::Refused { what, code, message }
        } else {
            not_json(what, answer.status, &answer.headers, &answer.body)
        };
        return ReadFailure { is_redirect: answer.status.is_redirection(), ..ReadFailure::from(error) };
    };
    let message = status.message.filter(|message| !message.is_empty()).or(status.reason);
    let message = message.unwrap_or_else(|| answer.status.to_string());
    let message =
        match (message.len() > MAX_MESSAGE, status.details.as_ref().and_then(|it| it.causes.as_ref())) {
            (true, Some(causes)) => without_values(&message, causes),
            _ => message,
        };
    let named = status.details.and_then(|details| details.name).is_some_and(|name| !name.is_empty());
    ReadFailure {
        error: ReadError::Refused { what, code, message: one_line(&message, MAX_MESSAGE) },
        no_such_object: code == 404 && named,
        is_redirect: false,
    }
}

/// Returns the message about an invalid object without its long values, which come before what is wrong with them.
fn without_values(message: &str, causes: &[StatusCause]) -> String {
    /// The number of characters of a value that are told.
    const VALUE: usize = 40;
    const INVALID: &str = " is invalid: ";
    let Some((object, _)) = message.split_once(INVALID).filter(|_| !causes.is_empty()) else {
        return message.to_owned();
    };
    let told = causes.iter().map(|StatusCause { field, message, .. }| {
        let value = message.split_once(" value: ").filter(|(what, _)| !what.contains(' '));
        let short = value.and_then(|(what, rest)| {
            // A value is JSON, or a struct as Go writes it.
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
            let end = match values.next() {
                Some(Ok(_)) => values.byte_offset(),
                _ => rest.rfind("}: ").map_or_else(|| rest.rfind(": "), |at| Some(at + 1))?,
            };
            let (value, why) = rest.split_at_checked(end)?;
            Some(format!("{what} value: {}{why}", one_line(value, VALUE)))
        });
        format!("{field}: {}", short.as_deref().unwrap_or(message))
    });
    format!("{object}{INVALID}{}", told.collect::<Vec<_>>().join(", "))
}

/// Returns true if a body is a JSON object.
fn is_json(body: &[u8]) -> bool {
    body.trim_ascii_start().first() == Some(&b'{') && serde_json::from_slice::<IgnoredAny>(body).is_ok()
}

fn content_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    value.map_or_else(|| "no content type".to_owned(), |value| one_line(&value, 60))
}

pub(crate) fn not_json(what: String, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> ReadError {
    // Enough bytes for 80 characters of any length and the white space between them.
    let start = one_line(&String::from_utf8_lossy(&body[..body.len().min(1000)]), 80);
    ReadError::NotJson { what, code: status.as_u16(), content_type: content_type(headers), start }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traced_paths_are_quoted_and_hide_the_token_of_the_next_page() {
        let traced = |path| format!("{:?}", TracedPath(path));
        assert_eq!(
            traced("/api/v1/pods?limit=5&continue=eyJ2&x=1"),
            "\"/api/v1/pods?limit=5&continue=…&x=1\""
        );
        assert_eq!(traced("/api/v1/pods?continue=eyJ2"), "\"/api/v1/pods?continue=…\"");
        assert_eq!(traced("/a\u{1b}\"b"), r#""/a\u{1b}\"b""#);
    }

    #[test]
    fn retry_after_is_limited_to_a_minute() {
        let wait = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, http::HeaderValue::from_static(text));
            retry_after(&headers)
        };
        assert_eq!(wait("3"), Some(Duration::from_secs(3)));
        assert_eq!(wait("3601"), Some(MAX_RETRY_AFTER));
        assert_eq!(wait("18446744073709551615"), Some(MAX_RETRY_AFTER));
        assert_eq!(wait("99999999999999999999999"), Some(MAX_RETRY_AFTER));
        assert_eq!(wait("-1"), None);
        assert_eq!(wait("Wed, 21 Oct 2015 07:28:00 GMT"), None);
    }
}
