//! The handler of `/api/v1/questions`: has the questions of views answered by [`Ask`](crate::ask::Ask).

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use taffrail_api::question::ViewQuestion;

use super::body::{typed, whole};
use super::problem::Refusal;
use super::request::{HubApi, compute};
use crate::ask::AskError;

/// Answers the view's question that the body of the request holds as JSON.
pub(super) async fn ask(State(hub): State<Arc<HubApi>>, request: axum::extract::Request) -> Response {
    match answer(hub, request).await {
        Ok(bytes) => typed(bytes, "application/json"),
        Err(refusal) => refusal.into_response(),
    }
}

async fn answer(hub: Arc<HubApi>, request: axum::extract::Request) -> Result<Vec<u8>, Refusal> {
    let Some(asker) = hub.asker.clone() else {
        return Err(Refusal::not_found("the hub answers no questions of views"));
    };
    let Some(bytes) = whole(request.into_body()).await else {
        let why = format!("the body is longer than {} bytes, or was not sent whole", hub.limits.body);
        return Err(Refusal::too_large(StatusCode::PAYLOAD_TOO_LARGE, why));
    };
    let question: ViewQuestion = serde_json::from_slice(&bytes)
        .map_err(|error| Refusal::request(format!("the body is not a question: {error}")))?;
    let most = if question.is_drill_down() { hub.limits.drill_down } else { hub.limits.answer };
    let answer = asker.ask(question).await.map_err(|error| match error {
        AskError::Question(error) => Refusal::question(error),
        AskError::Invalid(why) => Refusal::request(why),
        AskError::Busy(_) => Refusal::busy(&error.to_string()),
        AskError::Ended => Refusal::internal(),
    })?;
    compute(hub, move |_| {
        let mut bytes = Bounded { bytes: Vec::new(), most };
        serde_json::to_writer(&mut bytes, &answer).map_err(|_| Refusal::answer(most))?;
        Ok(bytes.bytes)
    })
    .await
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
