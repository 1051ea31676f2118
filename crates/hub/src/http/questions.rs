//! The handler of `/api/v1/questions`: has the questions of views answered by [`Ask`].

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use taffrail_api::question::ViewQuestion;

use super::access::Rights;
use super::body::{parse, whole};
use super::compression::{Answer, accepts_gzip};
use super::elements::elements;
use super::problem::Refusal;
use super::request::{HubApi, compute};
use crate::ask::{Ask, AskError};

/// Answers the view's question that the body of the request holds as JSON.
pub(super) async fn ask(State(hub): State<Arc<HubApi>>, request: axum::extract::Request) -> Response {
    match answer(hub, request).await {
        Ok(answer) => answer.respond("application/json"),
        Err(refusal) => refusal.into_response(),
    }
}

/// The time limit for answering a question: the default, and the most that a request may set; a greater time is
/// shortened to it.
const MAX_PATIENCE: Duration = Duration::from_secs(10);

/// Converts the reason why there is no answer to a question.
pub(super) fn refused(error: &AskError) -> Refusal {
    match error {
        AskError::Question(error) => Refusal::question(error.clone()),
        AskError::Invalid(why) => Refusal::request(why.clone()),
        AskError::Busy(_) | AskError::Late | AskError::Unconnected(_) | AskError::OfAgent { .. } => {
            Refusal::busy(&error.to_string())
        }
        AskError::Ended => Refusal::internal(),
    }
}

/// Returns the asker of a hub; refuses (404) if it has none.
pub(super) fn asker(hub: &HubApi) -> Result<Arc<dyn Ask>, Refusal> {
    let none = || Refusal::not_found("this hub does not answer the commands of taffrail with --hub");
    hub.asker.clone().ok_or_else(none)
}

/// Parses the body of a request, the question of what `what` names, from JSON.
pub(super) async fn question<Q: DeserializeOwned + Serialize>(
    hub: &HubApi,
    body: Body,
    what: &str,
) -> Result<Q, Refusal> {
    let Some(bytes) = whole(body).await else {
        let why = format!(
            "the body of the request is longer than {} bytes, or was not sent whole",
            hub.limits.body
        );
        return Err(Refusal::too_large(StatusCode::PAYLOAD_TOO_LARGE, why));
    };
    parse(&bytes).map_err(|error| {
        Refusal::request(format!("the body of the request is not the question of {what}: {error}"))
    })
}

/// Returns the time for which the client waits for the answer: the seconds of the first valid `wait` in its `Prefer`
/// headers (RFC 7240, `Prefer: wait=5`), but at most [`MAX_PATIENCE`], which is also the default.
pub(super) fn patience(headers: &HeaderMap) -> Duration {
    let mut waits = elements(headers, "prefer").filter_map(|preference| {
        let (name, seconds) = preference.split_once('=')?;
        let seconds = seconds.split(';').next()?.trim().parse().ok()?;
        name.trim().eq_ignore_ascii_case("wait").then_some(Duration::from_secs(seconds))
    });
    waits.next().unwrap_or(MAX_PATIENCE).min(MAX_PATIENCE)
}

async fn answer(hub: Arc<HubApi>, request: axum::extract::Request) -> Result<Answer, Refusal> {
    let is_gzip_accepted = accepts_gzip(request.headers());
    let patience = patience(request.headers());
    let asker = asker(&hub)?;
    let rights = request.extensions().get().copied();
    let question: ViewQuestion = self::question(&hub, request.into_body(), "a view").await?;
    if question.reads_logs() {
        rights.unwrap_or(Rights::NONE).check_logs()?;
    }
    let most = if question.is_drill_down() { hub.limits.drill_down } else { hub.limits.answer };
    let answer = asker.ask(question, patience).await.map_err(|error| refused(&error))?;
    compute(hub, move |_| Ok(Answer::new(bounded(&answer, most)?, is_gzip_accepted))).await
}

/// Serializes an answer as JSON; refuses (422) one that is longer than `most` bytes.
pub(super) fn bounded(answer: &impl Serialize, most: usize) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Bounded { bytes: Vec::new(), most };
    serde_json::to_writer(&mut bytes, answer).map_err(|_| Refusal::answer(most))?;
    Ok(bytes.bytes)
}

/// A buffer of limited length for an answer; a write beyond the limit fails.
struct Bounded {
    bytes: Vec<u8>,
    most: usize,
}

impl std::io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.most {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn patience_is_the_preference_of_the_sender_up_to_ten_seconds() {
        let of = |values: &[&'static str]| {
            let named = |value: &&'static str| ("prefer".parse().unwrap(), HeaderValue::from_static(value));
            patience(&values.iter().map(named).collect::<HeaderMap>()).as_secs()
        };
        assert_eq!(of(&[]), 10);
        assert_eq!(of(&["wait=5"]), 5);
        assert_eq!(of(&["respond-async", "return=minimal, Wait = 3; x=y"]), 3);
        assert_eq!(of(&["wait=3600"]), 10);
        assert_eq!(of(&["wait=soon", "wait"]), 10);
    }
}
