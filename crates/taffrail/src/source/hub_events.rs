//! Reads answers of a hub that are events, as they come: logs, and the runs of operations.

use std::collections::VecDeque;
use std::future::Future;
use std::time::Duration;

use futures::Stream;
use futures::stream::try_unfold;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use taffrail_api::logs::{LogEvent, LogsQuestion};
use taffrail_observe::logs::READ_TIMEOUT;
use tokio::time::{Instant, timeout_at};

use super::hub::{self, HubResponse};
use super::hub_connector::{Connector, HubConnection, SendError};
use crate::cli::HubFiles;
use crate::command_error::CommandError;
use crate::commands::named;
use crate::hub_url::HubUrl;

/// Maximum length of one event, in bytes; the events of a hub are shorter.
const MAX_EVENT: usize = 256 << 10;
/// Maximum length of an event of an operation, in bytes, which may have a new object, or up to 500 waiting apps.
pub(super) const MAX_OPERATION_EVENT: usize = 8 << 20;
/// Maximum length of all events of an answer that is not endless, in bytes. A hub sends 16 MiB of text,
/// of which a byte takes at most six in JSON.
const MAX_ANSWER: usize = 112 << 20;
/// Maximum length of a response that is an error, in bytes.
const MAX_REFUSAL: usize = 1 << 20;
/// The time without an event after which the connection of an endless answer counts as broken: a hub sends one every 15 s.
const SILENCE: Duration = Duration::from_secs(45);
/// The time for sending an answer, beside that for finding and reading logs that are not followed.
const SENDING: Duration = Duration::from_secs(5);

/// A question whose answer is events.
#[derive(Debug, Clone, Copy)]
pub(super) struct EventQuestion<'q> {
    /// The path to which it is posted.
    pub(super) path: &'static str,
    /// The command that asks, for hints.
    pub(super) command: &'q str,
    /// The time until the first event.
    pub(super) time: Duration,
    /// True if events come as long as something happens, else all of them come within `time` and that for reading logs.
    pub(super) is_endless: bool,
    /// Maximum length of one event, in bytes.
    pub(super) event: usize,
}

/// Asks the hub at `url` for logs, and returns the events of its answer. `time` is that for finding the logs.
///
/// # Errors
/// Fails as [`hub_events`] does.
pub(crate) async fn hub_logs(
    url: &HubUrl,
    files: &HubFiles,
    question: &LogsQuestion,
    time: Duration,
) -> Result<impl Stream<Item = Result<LogEvent, CommandError>> + use<>, CommandError> {
    let asked = EventQuestion {
        path: "/api/v1/logs",
        command: "logs",
        time,
        is_endless: question.follow,
        event: MAX_EVENT,
    };
    hub_events(url, files, asked, question).await.map_err(NoEvents::error)
}

/// The reason why a hub sent no events.
pub(crate) enum NoEvents {
    /// The question cannot be sent, or the hub refuses it.
    Refused(CommandError),
    /// The connection failed: whether the hub got the question is not known.
    Broken(CommandError),
}

impl NoEvents {
    pub(crate) fn error(self) -> CommandError {
        match self {
            NoEvents::Refused(error) | NoEvents::Broken(error) => error,
        }
    }
}

impl From<CommandError> for NoEvents {
    fn from(error: CommandError) -> NoEvents {
        NoEvents::Refused(error)
    }
}

/// Posts `body` to the hub at `url`, and returns the events of its answer.
///
/// # Errors
/// Fails if the token or the certificate authorities cannot be read, and if the hub cannot be reached or refuses. The
/// events end with an error if one is too long or none, all together are too long, or they do not come in time.
pub(super) async fn hub_events<T: DeserializeOwned, Q: Serialize>(
    url: &HubUrl,
    files: &HubFiles,
    question: EventQuestion<'_>,
    body: &Q,
) -> Result<impl Stream<Item = Result<T, CommandError>> + use<T, Q>, NoEvents> {
    let EventQuestion { path, command, time, is_endless, event } = question;
    let token = hub::token(url, files.hub_token_file.as_deref())?;
    let connector = Connector::of(url, files)?;
    let body = serde_json::to_vec(body).map_err(|error| hub::failed(url, &error))?;
    let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
    let request = hub::addressed(url, token.as_deref(), request).body(Full::new(Bytes::from(body)));
    let request = request.map_err(|error| hub::failed(url, &error))?;
    let until = Instant::now() + time + READ_TIMEOUT + SENDING;
    let late = || hub::failed(url, &format_args!("the hub did not answer within {:?}", time + READ_TIMEOUT));
    let begun = timeout_at(until, begin(url, connector, request)).await;
    let begun = begun.map_err(|_| NoEvents::Broken(late()))?;
    let (status, body, connection) =
        begun.map_err(|error| NoEvents::Broken(hub::unreachable(url, &error)))?;
    if status != StatusCode::OK {
        let is_of_proxy = matches!(status, StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT);
        let bytes = timeout_at(until, Limited::new(body, MAX_REFUSAL).collect()).await.map_err(|_| late())?;
        let bytes = bytes.map_err(|error| hub::failed(url, &error))?.to_bytes();
        let refusal = match hub::understood::<IgnoredAny>(url, &HubResponse { status, bytes }) {
            Ok(refusal) => refusal,
            // A proxy answers for a hub that may have got the question.
            Err(error) if is_of_proxy => return Err(NoEvents::Broken(error)),
            Err(error) => return Err(NoEvents::Refused(error)),
        };
        return Err(NoEvents::Refused(match refusal {
            Err(error) => named::refused_by_hub(command, &error),
            Ok(_) => hub::failed(url, &"the hub sent no events"),
        }));
    }
    let events = HubEvents {
        url: url.clone(),
        body,
        _connection: connection,
        line: Vec::new(),
        parsed: VecDeque::new(),
        event,
        bound: if is_endless { EventBound::Silence } else { EventBound::Whole(until, MAX_ANSWER) },
    };
    Ok(try_unfold(events, |mut events| async move { Ok(events.next().await?.map(|event| (event, events))) }))
}

/// Sends a request, and returns the status and the body of the response, with the connection.
async fn begin(
    url: &HubUrl,
    connector: Connector,
    request: Request<Full<Bytes>>,
) -> Result<(StatusCode, Incoming, HubConnection), SendError> {
    let mut connection = connector.connect(url).await?;
    let response = connection.send(request).await?;
    Ok((response.status(), response.into_body(), connection))
}

/// The bound of an answer.
enum EventBound {
    /// All of it must come by this moment, and be at most so long.
    Whole(Instant, usize),
    /// Something must come at least every [`SILENCE`].
    Silence,
}

/// The events of an answer, as they come.
struct HubEvents<T> {
    url: HubUrl,
    body: Incoming,
    _connection: HubConnection,
    /// The begin of the next event, without its end.
    line: Vec<u8>,
    /// The events that came and were not taken yet.
    parsed: VecDeque<T>,
    /// Maximum length of one event, in bytes.
    event: usize,
    bound: EventBound,
}

impl<T: DeserializeOwned> HubEvents<T> {
    fn failed(&self, why: &dyn std::fmt::Display) -> CommandError {
        hub::failed(&self.url, why)
    }

    /// Waits for the next event; returns `None` at the end of the answer.
    async fn next(&mut self) -> Result<Option<T>, CommandError> {
        loop {
            if let Some(event) = self.parsed.pop_front() {
                return Ok(Some(event));
            }
            let (until, why) = match self.bound {
                EventBound::Whole(until, _) => (until, "the hub did not send the whole answer in time"),
                EventBound::Silence => (Instant::now() + SILENCE, "the hub sends nothing any more"),
            };
            // What is ready again and again must not hold up the deadline.
            if Instant::now() >= until {
                return Err(self.failed(&why));
            }
            let Some(frame) = within(until, self.body.frame()).await.ok_or_else(|| self.failed(&why))? else {
                return match self.line.is_empty() {
                    true => Ok(None),
                    false => Err(self.failed(&"the answer ends in the midst of an event")),
                };
            };
            let frame = frame.map_err(|error| self.failed(&error))?;
            let Ok(data) = frame.into_data() else { continue };
            if let EventBound::Whole(_, left) = &mut self.bound {
                match left.checked_sub(data.len()) {
                    Some(rest) => *left = rest,
                    None => {
                        return Err(
                            self.failed(&format_args!("the answer is longer than {MAX_ANSWER} bytes"))
                        );
                    }
                }
            }
            self.parse(&data)?;
        }
    }

    fn parse(&mut self, data: &[u8]) -> Result<(), CommandError> {
        for part in data.split_inclusive(|byte| *byte == b'\n') {
            if self.line.len() + part.len() > self.event {
                return Err(self.failed(&format_args!("an event is longer than {} KiB", self.event >> 10)));
            }
            self.line.extend_from_slice(part);
            if part.last() == Some(&b'\n') {
                let line = std::mem::take(&mut self.line);
                let event = serde_json::from_slice(&line).map_err(|error| {
                    let why = format!("the answer of the hub does not have the expected form: {error}");
                    self.failed(&why).hint("use the same release of Taffrail as the hub")
                })?;
                self.parsed.push_back(event);
            }
        }
        Ok(())
    }
}

/// Waits for `future` until a moment; `None` if that passes first.
async fn within<F: Future>(until: Instant, future: F) -> Option<F::Output> {
    timeout_at(until, future).await.ok()
}
