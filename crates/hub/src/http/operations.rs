//! The handlers of `/api/v1/plans` and `/api/v1/operations`: operations are planned, shown, run once and recorded.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use taffrail_api::List;
use taffrail_api::hub::HttpProblem;
use taffrail_api::operations::{
    ActionQuestion, OperationEvent, OperationId, OperationQuestion, OperationRecord, RunRequest,
};
use tokio::time::{Instant, timeout, timeout_at};

use super::access::Rights;
use super::body::{json, typed};
use super::logs::{ALIVE, CHECK, NDJSON};
use super::past::wait;
use super::problem::Refusal;
use super::questions::{bounded, patience, question, refused};
use super::request::{HubApi, Request, compute};
use crate::operations::{Operate, Position, Run, RunError};
use crate::store::OperationQuery;

/// The lengths that the identifier of a run has.
const ID: std::ops::RangeInclusive<usize> = 16..=64;

/// The greatest time of a run, in milliseconds.
const MAX_TIMEOUT: u64 = 3_600_000;

/// Answers with the plan of the operation that the body of the request asks for as JSON. Nothing is written.
pub(super) async fn plan(State(hub): State<Arc<HubApi>>, request: axum::extract::Request) -> Response {
    let plan = async {
        let (parts, body) = request.into_parts();
        check_acts(&parts)?;
        let operator = operator(&hub)?;
        let asked: OperationQuestion = question(&hub, body, "an operation").await?;
        let answer = operator.plan(asked, patience(&parts.headers)).await.map_err(|error| refused(&error))?;
        let most = hub.limits.drill_down;
        compute(hub, move |_| bounded(&answer, most)).await
    };
    plan.await.map_or_else(Refusal::into_response, |bytes| typed(bytes, "application/json"))
}

/// Answers with the actions of the object that the body of the request names as JSON.
pub(super) async fn actions(State(hub): State<Arc<HubApi>>, request: axum::extract::Request) -> Response {
    let list = async {
        let (parts, body) = request.into_parts();
        let operator = operator(&hub)?;
        let asked: ActionQuestion = question(&hub, body, "actions").await?;
        let answer =
            operator.actions(asked, patience(&parts.headers)).await.map_err(|error| refused(&error))?;
        let most = hub.limits.drill_down;
        compute(hub, move |_| bounded(&answer, most)).await
    };
    list.await.map_or_else(Refusal::into_response, |bytes| typed(bytes, "application/json"))
}

/// Runs the plan that the body of the request names as JSON, unless a run has its identifier, and responds with the
/// events of the run as they come. The run goes on when the client is gone.
pub(super) async fn run(State(hub): State<Arc<HubApi>>, request: axum::extract::Request) -> Response {
    match begin(hub, request).await {
        Ok(body) => typed(body, NDJSON),
        Err(refusal) => refusal.into_response(),
    }
}

/// Returns what plans and runs the operations of a hub; refuses (404) if it has nothing.
fn operator(hub: &HubApi) -> Result<Arc<dyn Operate>, Refusal> {
    hub.operator.clone().ok_or_else(|| Refusal::not_found("this hub runs no operations"))
}

fn check_acts(parts: &Parts) -> Result<(), Refusal> {
    parts.extensions.get::<Rights>().copied().unwrap_or(Rights::NONE).check_acts()
}

async fn begin(hub: Arc<HubApi>, request: axum::extract::Request) -> Result<Body, Refusal> {
    // Before the guard gives up: who asked must not take a run that began for one that did not.
    let until = Instant::now() + hub.limits.time.mul_f64(0.7);
    let (parts, body) = request.into_parts();
    check_acts(&parts)?;
    let operator = operator(&hub)?;
    let asked: RunRequest = question(&hub, body, "a run of an operation").await?;
    let id = asked.id.as_str();
    if !ID.contains(&id.len()) || !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Err(Refusal::request("the identifier of a run has 16 to 64 letters, digits and hyphens"));
    }
    if asked.timeout_millis > MAX_TIMEOUT {
        return Err(Refusal::request(format!("a run takes at most {MAX_TIMEOUT} milliseconds")));
    }
    // The body may have come slowly.
    hub.still_admits(&parts)?.check_acts()?;
    let by = match &hub.access {
        Some(access) => access.name(&parts, hub.index.clock().time().now)?,
        None => None,
    };
    let digest = asked.digest.clone();
    let run = hub.operations.start(asked, by, operator, hub.store.clone());
    if let Ok(begun) = timeout_at(until, run.begun()).await {
        begun.map_err(|error| not_run(&error))?;
    }
    if run.record().is_some_and(|record| record.digest != digest) {
        return Err(not_run(&RunError::IdTaken));
    }
    let sending = RunSending { hub, parts, run, position: Position::default(), is_last: false };
    let lines = futures::stream::unfold(sending, |mut sending| async {
        let lines = sending.next().await?;
        Some((Ok::<Bytes, Infallible>(lines), sending))
    });
    Ok(Body::from_stream(lines))
}

/// Converts the reason why an operation was not run.
fn not_run(error: &RunError) -> Refusal {
    let why = error.to_string();
    match error {
        RunError::Ask(error) => refused(error),
        RunError::Changed | RunError::Old => {
            Refusal::not_run(why).hint("plan the operation again, check the new plan, and run that")
        }
        RunError::NotCounted(apps) => {
            Refusal::not_run(why).hint(format!("set 'confirmed' to {apps} if that is meant"))
        }
        RunError::TooMany(_) => {
            Refusal::not_run(why).hint("name fewer apps, or limit the namespace or clusters")
        }
        RunError::IdTaken => Refusal::not_run(why).hint("choose a random identifier for each run"),
        RunError::Busy => Refusal::busy(&why),
        RunError::NotStored => Refusal::busy(&why).hint("look at /readyz: the disk may be full"),
    }
}

/// The events of a run that are being sent to one client.
struct RunSending {
    hub: Arc<HubApi>,
    /// The head of the request, by which it is checked again and again whether the client may still see the run.
    parts: Parts,
    run: Arc<Run>,
    position: Position,
    /// True once the last event was sent.
    is_last: bool,
}

impl RunSending {
    /// Waits until the run begins or is refused, and for its next events.
    async fn next_events(&mut self) -> Vec<OperationEvent> {
        match self.run.begun().await {
            Ok(()) => self.run.next(&mut self.position).await,
            Err(error) => {
                let Refusal(HttpProblem { detail, hint, .. }) = not_run(&error);
                vec![OperationEvent::Refused { message: detail, hint }]
            }
        }
    }

    /// Waits for the next events, and returns their lines; `None` after the last one, and once the client may no longer
    /// see them.
    async fn next(&mut self) -> Option<Bytes> {
        let begun = Instant::now();
        while !self.is_last {
            let events = timeout(CHECK, self.next_events()).await;
            self.hub.still_admits(&self.parts).and_then(Rights::check_acts).ok()?;
            let events = match events {
                Ok(events) if events.is_empty() => return None,
                Ok(events) => events,
                Err(_) if begun.elapsed() >= ALIVE => vec![OperationEvent::Alive],
                Err(_) => continue,
            };
            let is_last = |event: &OperationEvent| {
                matches!(event, OperationEvent::Done | OperationEvent::Refused { .. })
            };
            self.is_last = events.last().is_some_and(is_last);
            let mut lines = Vec::new();
            for event in &events {
                serde_json::to_writer(&mut lines, event).ok()?;
                lines.push(b'\n');
            }
            return Some(lines.into());
        }
        None
    }
}

/// Answers with the operations that were run last, the latest first.
pub(super) fn list(request: &Request<'_>) -> Result<Vec<u8>, Refusal> {
    let limit = request.query.limit;
    let mut records = request.hub.operations.records();
    if let Some(store) = &request.hub.store {
        let saved = wait(store.operations(OperationQuery::Latest(limit)))?;
        let is_known = |id: &OperationId| records.iter().any(|known| known.id == *id);
        let saved: Vec<OperationRecord> = saved.into_iter().filter(|saved| !is_known(&saved.id)).collect();
        records.extend(saved);
        records.sort_by_key(|record| std::cmp::Reverse(record.began));
    }
    records.truncate(limit);
    bounded(&List::of(records, [] as [&taffrail_apps::AppError; 0]), request.hub.limits.drill_down)
}

/// Answers with one operation, as a list of one.
pub(super) fn one(request: &Request<'_>) -> Result<Vec<u8>, Refusal> {
    let id = OperationId::new(request.path.first().cloned().unwrap_or_default());
    let running = request.hub.operations.record(&id);
    let found = match (running, &request.hub.store) {
        (None, Some(store)) => wait(store.operations(OperationQuery::Id(id)))?.into_iter().next(),
        (running, _) => running,
    };
    let record =
        found.ok_or_else(|| Refusal::not_found("the hub knows no operation with this identifier"))?;
    json(&List::of(vec![record], [] as [&taffrail_apps::AppError; 0]))
}
