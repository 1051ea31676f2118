//! `--hub`: questions, answered by a hub.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use taffrail_api::hub::HttpProblem;
use taffrail_api::question::{QuestionError, ViewQuestion};
use tokio::net::TcpStream;

use crate::cli::HubSource;
use crate::command_error::CommandError;
use crate::hub_url::HubUrl;
use crate::runtime::block_on;

/// The environment variable with the token of the hub.
const TOKEN: &str = "TAFFRAIL_HUB_TOKEN";

/// Maximum length of an answer, in bytes: a hub sends no longer ones.
const MAX_ANSWER: usize = 80 << 20;

/// Maximum length of a token, in bytes.
const MAX_TOKEN: usize = 1024;

/// The reason why a hub gave no answer.
enum Unanswered {
    Question(Box<QuestionError>),
    Error(CommandError),
}

/// Asks a hub, which has `time` for the answer.
///
/// # Errors
/// If there is no answer; the inner error is that the question has none.
pub(super) fn ask<A: DeserializeOwned>(
    hub: &HubSource,
    url: &HubUrl,
    question: &ViewQuestion,
    time: Duration,
) -> Result<Result<A, QuestionError>, CommandError> {
    let token = token(url, hub.hub_token_file.as_deref())?;
    let authority = &url.authority;
    let failed = |why: &dyn fmt::Display| {
        CommandError::unreadable(format_args!("cannot ask the hub at http://{authority}: {why}"))
    };
    let body = serde_json::to_vec(question).map_err(|error| failed(&error))?;
    let sent = send(url, token.as_deref(), body);
    let answered = block_on(async { tokio::time::timeout(time, sent).await })?;
    let answered = answered.map_err(|_| {
        failed(&format_args!("the hub did not answer within {time:?}")).hint("allow more time: --timeout 30s")
    })?;
    let (status, bytes) = answered.map_err(|error| {
        failed(&error).hint("check that the hub runs, and its address: 'taffrail hub serve' prints it")
    })?;
    match read(status, &bytes) {
        Ok(answer) => Ok(Ok(answer)),
        Err(Unanswered::Question(error)) => Ok(Err(*error)),
        Err(Unanswered::Error(error)) => {
            let hint = error.hint.clone();
            Err(failed(&error).maybe_hint(hint))
        }
    }
}

/// Returns the token: of the file, the URL or the environment; `None` without one.
fn token(url: &HubUrl, file: Option<&Path>) -> Result<Option<String>, CommandError> {
    let text = match file {
        Some(path) => {
            let read = std::fs::read_to_string(path);
            Some(read.map_err(|error| {
                CommandError::usage(format_args!("cannot read {}", path.display())).with_source(&error)
            })?)
        }
        None => url.token.clone().or_else(|| std::env::var(TOKEN).ok()),
    };
    let token = text.map(|text| text.trim().to_owned()).filter(|token| !token.is_empty());
    match &token {
        Some(token) if token.len() > MAX_TOKEN || !token.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Err(CommandError::usage("the token of the hub is not one: it has spaces, or is too long"))
        }
        _ => Ok(token),
    }
}

/// An error of the connection.
type SendError = Box<dyn std::error::Error + Send + Sync>;

/// Sends a question, and returns status and body of the answer.
async fn send(url: &HubUrl, token: Option<&str>, body: Vec<u8>) -> Result<(StatusCode, Bytes), SendError> {
    let stream = TcpStream::connect(url.address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let mut request = Request::post("/api/v1/questions")
        .header(header::HOST, &url.authority)
        .header(header::CONTENT_TYPE, "application/json");
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    let request = request.body(Full::new(Bytes::from(body)))?;
    let answering = async {
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await?;
        Ok((status, body.to_bytes()))
    };
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        biased;
        answered = answering => answered,
        ended = &mut connection => {
            ended?;
            Err("the connection was closed".into())
        }
    }
}

/// Reads the answer of a hub.
fn read<A: DeserializeOwned>(status: StatusCode, bytes: &[u8]) -> Result<A, Unanswered> {
    let unreadable = |why: String| Unanswered::Error(CommandError::unreadable(why));
    if status == StatusCode::OK {
        return serde_json::from_slice(bytes).map_err(|error| {
            let of_another =
                CommandError::unreadable(format_args!("the answer of the hub is not understood: {error}"));
            Unanswered::Error(of_another.hint("use the same release of Taffrail as the hub"))
        });
    }
    let problem: HttpProblem = serde_json::from_slice(bytes)
        .map_err(|_| unreadable(format!("the hub answered with HTTP status {}", status.as_u16())))?;
    if let Some(question) = problem.question {
        return Err(Unanswered::Question(question));
    }
    let hint = match status {
        StatusCode::UNAUTHORIZED => Some(format!(
            "'taffrail hub serve' prints the token: put it into ${TOKEN}, or into a file for --hub-token-file"
        )),
        _ => problem.hint,
    };
    Err(Unanswered::Error(CommandError::unreadable(problem.detail).maybe_hint(hint)))
}
