//! `--hub`: sends questions to a hub, and reads its answers.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use http::request::Builder;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;
use taffrail_api::hub::HttpProblem;
use taffrail_api::question::{QuestionError, ViewQuestion};
use tokio::time::Instant;

use super::hub_connector::{Connector, SendError, is_of_unknown_issuer};
use crate::cli::HubFiles;
use crate::command_error::CommandError;
use crate::hub_url::HubUrl;
use crate::program;
use crate::runtime::block_on;

/// The environment variable with the token of the hub.
const TOKEN: &str = "TAFFRAIL_HUB_TOKEN";

/// Maximum length of an answer, in bytes; reading a longer one fails. A hub sends no longer ones.
const MAX_ANSWER: usize = 80 << 20;

/// Maximum length of a token, in bytes; a longer one is an error.
const MAX_TOKEN: usize = 1024;

/// The reason why a response of a hub holds no answer: the question has none, or another error.
enum Unanswered {
    Question(Box<QuestionError>),
    Error(CommandError),
}

/// The response of a hub, before it is parsed.
pub(super) struct HubResponse {
    pub(super) status: StatusCode,
    pub(super) bytes: Bytes,
}

/// Sends a question to the hub at `url` and returns its answer, or the hub's reason why the question has none.
///
/// # Errors
/// Fails if the token or the certificate authorities cannot be read, and if the hub cannot be reached, does not answer
/// within `time`, or answers with another error.
pub(crate) fn ask<A: DeserializeOwned>(
    url: &HubUrl,
    files: &HubFiles,
    question: &ViewQuestion,
    time: Duration,
) -> Result<Result<A, QuestionError>, CommandError> {
    understood(url, &fetch(url, files, question, time)?)
}

pub(super) fn failed(url: &HubUrl, why: &dyn fmt::Display) -> CommandError {
    let authority = &url.authority;
    let scheme = url.scheme.as_str();
    CommandError::unreadable(format_args!("cannot ask the hub at {scheme}://{authority}: {why}"))
}

/// Sends a question to the hub at `url` and returns its response, whatever that is.
///
/// # Errors
/// Fails if the token or the certificate authorities cannot be read, and if the hub cannot be reached, or does not
/// respond within `time`.
pub(super) fn fetch(
    url: &HubUrl,
    files: &HubFiles,
    question: &ViewQuestion,
    time: Duration,
) -> Result<HubResponse, CommandError> {
    post(url, files, "/api/v1/questions", question, time)
}

/// Posts `question` as JSON to `path` of the hub at `url`, and returns its response, whatever that is.
///
/// # Errors
/// Fails as [`fetch`] does.
fn post(
    url: &HubUrl,
    files: &HubFiles,
    path: &str,
    question: &impl Serialize,
    time: Duration,
) -> Result<HubResponse, CommandError> {
    let body = serde_json::to_vec(question).map_err(|error| failed(url, &error))?;
    let request = Request::post(path)
        .header(header::CONTENT_TYPE, "application/json")
        // RFC 7240, in whole seconds.
        .header("prefer", format!("wait={}", time.as_secs().max(1)));
    exchange(url, files, request, body, &HubBudget::new(time, MAX_ANSWER))
}

/// Posts a question about an operation to `path` of the hub at `url`, and returns the answer, or the reason why the
/// question has none.
///
/// # Errors
/// Fails as [`ask`] does.
pub(crate) fn ask_at<Q: Serialize, A: DeserializeOwned>(
    url: &HubUrl,
    files: &HubFiles,
    path: &str,
    question: &Q,
    time: Duration,
) -> Result<Result<A, QuestionError>, CommandError> {
    understood(url, &post(url, files, path, question, time)?)
}

/// The time and the bytes that are left for several answers of a hub together.
#[derive(Debug)]
pub(crate) struct HubBudget {
    until: Instant,
    /// The time that all answers have together, for messages.
    time: Duration,
    bytes: usize,
}

impl HubBudget {
    /// Makes the budget of answers that together take at most `time`, from now on, and `bytes`.
    pub(crate) fn new(time: Duration, bytes: usize) -> HubBudget {
        HubBudget { until: Instant::now() + time, time, bytes }
    }
}

/// Gets the JSON document at `path` of the hub at `url`, and takes its length from `budget`.
///
/// # Errors
/// Wrong usage if the hub knows nothing of that path. Else fails if the token or the certificate authorities cannot be
/// read, and if the hub cannot be reached, exceeds the budget, or answers with another error.
pub(crate) fn get<A: DeserializeOwned>(
    url: &HubUrl,
    files: &HubFiles,
    path: &str,
    budget: &mut HubBudget,
) -> Result<A, CommandError> {
    let sent = exchange(url, files, Request::get(path), Vec::new(), budget)?;
    budget.bytes -= sent.bytes.len().min(budget.bytes);
    if sent.status == StatusCode::NOT_FOUND
        && let Ok(HttpProblem { detail, hint, .. }) = serde_json::from_slice(&sent.bytes)
    {
        return Err(CommandError::usage(detail).maybe_hint(hint));
    }
    if sent.status == StatusCode::BAD_REQUEST
        && let Ok(HttpProblem { detail, hint, .. }) = serde_json::from_slice(&sent.bytes)
    {
        let refused = CommandError::unreadable(format!("the hub refuses the question: {detail}"));
        return Err(refused.maybe_hint(hint));
    }
    understood(url, &sent)?.map_err(|error| failed(url, &error))
}

/// Sends a request to the hub at `url`, with the token, and returns the response, whatever that is, within `budget`.
fn exchange(
    url: &HubUrl,
    files: &HubFiles,
    request: Builder,
    body: Vec<u8>,
    budget: &HubBudget,
) -> Result<HubResponse, CommandError> {
    let token = token(url, files.hub_token_file.as_deref())?;
    let connector = Connector::of(url, files)?;
    let request = addressed(url, token.as_deref(), request).body(Full::new(Bytes::from(body)));
    let request = request.map_err(|error| failed(url, &error))?;
    let sent = send(url, connector, request, budget.bytes);
    let answered = block_on(async { tokio::time::timeout_at(budget.until, sent).await })?;
    let answered = answered.map_err(|_| {
        let late = failed(url, &format_args!("the hub did not answer within {:?}", budget.time));
        late.hint("allow the hub more time: --timeout 30s")
    })?;
    let (status, bytes) = answered.map_err(|error| unreachable(url, &error))?;
    Ok(HubResponse { status, bytes })
}

/// Returns the error that a request to the hub at `url` failed, with the hint that it may not run.
pub(super) fn unreachable(url: &HubUrl, error: &SendError) -> CommandError {
    let command = program::hinted("taffrail hub serve");
    if is_of_unknown_issuer(error) {
        let hint = "name the authority that issued the hub's certificate, or the certificate itself: --hub-ca-file FILE";
        return failed(url, error).hint(hint);
    }
    failed(url, error)
        .hint(format!("check that the hub runs, and that its address is right: {command} prints it"))
}

/// Adds the host of the hub and the token to a request.
pub(super) fn addressed(url: &HubUrl, token: Option<&str>, request: Builder) -> Builder {
    let request = request.header(header::HOST, &url.authority);
    match token {
        Some(token) => request.header(header::AUTHORIZATION, format!("Bearer {token}")),
        None => request,
    }
}

/// Parses the response of the hub at `url`: returns its answer, or the hub's reason why the question has none.
///
/// # Errors
/// Fails if the response is an error, or not an answer.
pub(super) fn understood<A: DeserializeOwned>(
    url: &HubUrl,
    sent: &HubResponse,
) -> Result<Result<A, QuestionError>, CommandError> {
    match read(sent.status, &sent.bytes) {
        Ok(answer) => Ok(Ok(answer)),
        Err(Unanswered::Question(error)) => Ok(Err(*error)),
        Err(Unanswered::Error(error)) => {
            let hint = error.hint.clone();
            Err(failed(url, &error).maybe_hint(hint))
        }
    }
}

impl HubResponse {
    /// Returns the response with the time of its answer moved `time` later, so that all ages are longer by that;
    /// unchanged if it states no time.
    pub(super) fn aged(&self, time: Duration) -> HubResponse {
        let mut sent = HubResponse { status: self.status, bytes: self.bytes.clone() };
        let Ok(mut answer) = serde_json::from_slice::<serde_json::Value>(&self.bytes) else { return sent };
        let now = answer.pointer_mut("/fleet/now");
        let then = now.as_ref().and_then(|now| now.as_str()?.parse::<Timestamp>().ok());
        let later = then.and_then(|then| then.checked_add(SignedDuration::try_from(time).ok()?).ok());
        if let Some((now, later)) = now.zip(later) {
            *now = later.to_string().into();
            sent.bytes = answer.to_string().into();
        }
        sent
    }
}

/// Returns the token for the hub: from `file` if there is one, else from the URL, else from [`TOKEN`]; `None` if there
/// is none, or only a blank one. Fails for an unreadable file and a text that cannot be a token.
pub(super) fn token(url: &HubUrl, file: Option<&Path>) -> Result<Option<String>, CommandError> {
    let text = match file {
        Some(path) => {
            let read = std::fs::read_to_string(path);
            Some(read.map_err(|error| {
                CommandError::usage(format_args!("cannot read the token of the hub from {}", path.display()))
                    .with_source(&error)
            })?)
        }
        None => url.token.clone().or_else(|| std::env::var(TOKEN).ok()),
    };
    let token = text.map(|text| text.trim().to_owned()).filter(|token| !token.is_empty());
    match &token {
        Some(token) if token.len() > MAX_TOKEN || !token.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Err(CommandError::usage(
                "the token for the hub has spaces or other characters that no token has, or is longer than 1 KiB",
            ))
        }
        _ => Ok(token),
    }
}

/// Sends a request, and returns the status and the body of the response, which must not be longer than `most` bytes.
/// Does not limit the time.
async fn send(
    url: &HubUrl,
    connector: Connector,
    request: Request<Full<Bytes>>,
    most: usize,
) -> Result<(StatusCode, Bytes), SendError> {
    let mut connection = connector.connect(url).await?;
    let response = connection.send(request).await?;
    let status = response.status();
    let body = Limited::new(response.into_body(), most).collect().await?;
    Ok((status, body.to_bytes()))
}

/// Parses the response of a hub: returns its answer if `status` is 200, else the reason why it holds none.
fn read<A: DeserializeOwned>(status: StatusCode, bytes: &[u8]) -> Result<A, Unanswered> {
    let unreadable = |why: String| Unanswered::Error(CommandError::unreadable(why));
    if status == StatusCode::OK {
        return serde_json::from_slice(bytes).map_err(|error| {
            let of_another = CommandError::unreadable(format_args!(
                "the answer of the hub does not have the expected form: {error}"
            ));
            Unanswered::Error(of_another.hint("use the same release of Taffrail as the hub"))
        });
    }
    let problem: HttpProblem = serde_json::from_slice(bytes).map_err(|_| {
        unreadable(format!("the hub gave no answer, but the HTTP status {}", status.as_u16()))
    })?;
    if let Some(question) = problem.question {
        return Err(Unanswered::Question(question));
    }
    let hint = match status {
        StatusCode::UNAUTHORIZED => Some(format!(
            "{} prints the token: put it into ${TOKEN}, or into a file for --hub-token-file",
            program::hinted("taffrail hub serve")
        )),
        _ => problem.hint,
    };
    Err(Unanswered::Error(CommandError::unreadable(problem.detail).maybe_hint(hint)))
}
