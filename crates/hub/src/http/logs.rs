//! The handler of `/api/v1/logs`: has logs read or followed by [`Ask`](crate::ask::Ask), and sends them as they come, a
//! JSON document on each line.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use taffrail_api::logs::{LogEvent, LogsQuestion};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::access::Rights;
use super::body::typed;
use super::problem::Refusal;
use super::questions::{asker, patience, question, refused};
use super::request::HubApi;
use crate::ask::{LogAnswer, LogBounds};

/// The media type of an answer.
pub(super) const NDJSON: &str = "application/x-ndjson";

/// The time without events after which it is checked whether the client may still read logs.
pub(super) const CHECK: Duration = Duration::from_secs(1);

/// The time without events after which `alive` is sent.
pub(super) const ALIVE: Duration = Duration::from_secs(15);

/// Answers the question about logs that the body of the request holds as JSON.
pub(super) async fn open(State(hub): State<Arc<HubApi>>, request: axum::extract::Request) -> Response {
    match begin(hub, request).await {
        Ok(body) => typed(body, NDJSON),
        Err(refusal) => refusal.into_response(),
    }
}

async fn begin(hub: Arc<HubApi>, request: axum::extract::Request) -> Result<Body, Refusal> {
    let (parts, body) = request.into_parts();
    parts.extensions.get::<Rights>().copied().unwrap_or(Rights::NONE).check_logs()?;
    let asker = asker(&hub)?;
    let asked: LogsQuestion = question(&hub, body, "logs").await?;
    let bounds = LogBounds { patience: patience(&parts.headers), bytes: hub.limits.drill_down };
    let answer = asker.logs(asked, bounds).await.map_err(|error| refused(&error))?;
    let watch = Watch::start(&hub, &parts, &answer);
    let sending = LogSending { hub, parts, answer: Some(answer), sent: Instant::now(), _watch: watch };
    let lines = futures::stream::unfold(sending, |mut sending| async {
        let line = sending.next().await?;
        Some((Ok::<Bytes, Infallible>(line), sending))
    });
    Ok(Body::from_stream(lines))
}

/// An answer that is being sent.
struct LogSending {
    hub: Arc<HubApi>,
    /// The head of the request, by which it is checked again and again whether the client may still read logs.
    parts: Parts,
    /// The events; `None` after the last one.
    answer: Option<LogAnswer>,
    /// The moment at which the last event was sent.
    sent: Instant,
    _watch: Watch,
}

/// A task that ends the work for an answer when its client may not read logs any more, also if the client takes no
/// events. It ends when this is dropped.
struct Watch(JoinHandle<()>);

impl Watch {
    fn start(hub: &Arc<HubApi>, parts: &Parts, answer: &LogAnswer) -> Watch {
        let (hub, parts, work) = (Arc::clone(hub), parts.clone(), answer.abort_handle());
        Watch(tokio::spawn(async move {
            while hub.still_admits(&parts).and_then(Rights::check_logs).is_ok() {
                tokio::time::sleep(CHECK).await;
            }
            work.abort();
        }))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl LogSending {
    /// Waits for the next event, and returns its line; `None` after the last one.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let event = timeout(CHECK, self.answer.as_mut()?.next()).await;
            // What was admitted before the wait need not be now.
            let admitted = self.hub.still_admits(&self.parts).and_then(Rights::check_logs);
            let event = match (admitted, event) {
                (Err(refusal), _) => {
                    self.answer = None;
                    LogEvent::Refused { message: refusal.0.detail }
                }
                (Ok(()), Ok(event)) => event?,
                (Ok(()), Err(_)) if self.sent.elapsed() >= ALIVE => LogEvent::Alive,
                (Ok(()), Err(_)) => continue,
            };
            self.sent = Instant::now();
            let mut line = serde_json::to_vec(&event).ok()?;
            line.push(b'\n');
            return Some(line.into());
        }
    }
}
