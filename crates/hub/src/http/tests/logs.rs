//! Logs, which are read for those alone whose token allows it.

use std::time::Duration;

use futures::{StreamExt, stream};
use http::Response;
use jiff::{SignedDuration, Timestamp};
use taffrail_api::logs::{LogEvent, LogLine, LogsQuestion};
use taffrail_api::question::{QuestionError, ViewQuestion};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::*;
use crate::http::openapi::{document, faults};
use crate::index::samples::START;
use crate::store::{LOGS_RIGHT, Token, TokenRecord};
use crate::{Ask, AskError, Asking, AskingLogs, LogAnswer, LogBounds};

/// An asker of a container that wrote one line, and writes none any more.
struct OneLine {
    /// The place that each followed log takes until its reader is gone.
    followed: Arc<Semaphore>,
}

fn line() -> LogEvent {
    LogEvent::Lines {
        log: 0,
        left_out: 0,
        lines: vec![LogLine { text: "\u{1b}[2Jone".to_owned(), left_out: 0 }],
    }
}

/// Events that hold a place, the first of which is a line.
fn waiting(place: OwnedSemaphorePermit) -> impl futures::Stream<Item = LogEvent> + Send + 'static {
    let rest = stream::once(async move {
        std::future::pending::<()>().await;
        drop(place);
        LogEvent::Done
    });
    stream::iter([line()]).chain(rest)
}

impl Ask for OneLine {
    fn ask(&self, _: ViewQuestion, _: Duration) -> Asking<'_> {
        Box::pin(async { Err(AskError::Ended) })
    }

    fn logs(&self, question: LogsQuestion, bounds: LogBounds) -> AskingLogs<'_> {
        Box::pin(async move {
            if question.what == "nothing" {
                return Err(QuestionError::InvalidName { text: question.what }.into());
            }
            if question.follow {
                let place = Arc::clone(&self.followed).acquire_owned().await.unwrap();
                return Ok(LogAnswer::follow(waiting(place)));
            }
            let events = stream::iter([line(), LogEvent::Ended { log: 0 }, LogEvent::Done]);
            let until = tokio::time::Instant::now() + bounds.patience;
            Ok(LogAnswer::read(events, bounds.patience, until, bounds.bytes))
        })
    }
}

/// A hub behind TLS with tokens.
struct Guarded {
    fleet: SampleFleet,
    hub: Arc<HubApi>,
    router: Router,
    followed: Arc<Semaphore>,
}

/// The time at which the clock of the sample fleet begins.
fn start() -> Timestamp {
    Timestamp::from_second(START).unwrap()
}

/// Returns a new token and its record, with the right to read logs if `logs`.
fn token(logs: bool, expires: Option<Timestamp>) -> (String, TokenRecord) {
    let token = Token::generate().unwrap();
    let mut record = token.record("ops", start());
    record.rights.extend(logs.then(|| LOGS_RIGHT.to_owned()));
    record.expires = expires;
    (format!("Bearer {}", token.as_str()), record)
}

impl Guarded {
    fn new(tokens: Vec<TokenRecord>, limits: Limits) -> Guarded {
        let (fleet, followed) = (fleet(), Arc::new(Semaphore::new(8)));
        let access = Access::behind_tls(["hub".to_owned()], tokens);
        let hub = HubApi::of(Arc::clone(&fleet.index), Some(access), limits).unwrap();
        let hub = Arc::new(hub.with_asker(Arc::new(OneLine { followed: Arc::clone(&followed) })));
        Guarded { fleet, router: router(Arc::clone(&hub)), hub, followed }
    }

    fn set_tokens(&self, tokens: Vec<TokenRecord>) {
        self.hub.access.as_ref().unwrap().set_tokens(tokens);
    }

    async fn post(&self, path: &str, headers: &[(&str, &str)], body: Value) -> Response<Body> {
        let mut request = http::Request::post(path).header("host", "hub");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.to_string())).unwrap();
        self.router.clone().oneshot(request).await.unwrap()
    }

    async fn logs(&self, bearer: &str, body: Value) -> Response<Body> {
        self.post("/api/v1/logs", &[("authorization", bearer)], body).await
    }

    /// Waits until no log is followed.
    async fn until_nothing_is_followed(&self) {
        let all = timeout(Duration::from_secs(60), self.followed.acquire_many(8)).await;
        drop(all.expect("a log is still followed").unwrap());
    }
}

async fn problem(response: Response<Body>) -> (u16, Value) {
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    assert_eq!(headers["content-type"], "application/problem+json");
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap())
}

/// Waits for the next event for at most a minute; `None` at the end.
async fn next(body: &mut Body) -> Option<Value> {
    let frame = timeout(Duration::from_secs(60), body.frame()).await.expect("no event came")?;
    let bytes = frame.unwrap().into_data().unwrap();
    assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 1, "an event is one line");
    Some(serde_json::from_slice(&bytes).unwrap())
}

#[tokio::test]
async fn logs_are_a_right_of_their_own() {
    let ((reads, one), (status, other)) = (token(true, None), token(false, None));
    let hub = Guarded::new(vec![one, other], Limits::default());
    let (code, refused) = problem(hub.logs(&status, json!({ "what": "shop" })).await).await;
    assert_eq!((code, &refused["detail"]), (403, &json!("the token does not allow to read logs")));
    assert!(refused["hint"].as_str().unwrap().contains("--logs"), "{refused}");
    assert_eq!(problem(hub.post("/api/v1/logs", &[], json!({})).await).await.0, 401);
    // Explanations have lines of logs, too, if they are asked for.
    let explain = |logs: bool| json!({ "view": "explain", "logs": logs });
    let ask = async |bearer: &str, logs| {
        problem(hub.post("/api/v1/questions", &[("authorization", bearer)], explain(logs)).await).await.0
    };
    assert_eq!(
        (ask(&status, true).await, ask(&status, false).await, ask(&reads, true).await),
        (403, 500, 500)
    );

    let response = hub.logs(&reads, json!({ "what": "shop" })).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["content-type"]),
        (200, &"application/x-ndjson".parse().unwrap())
    );
    assert_eq!(response.headers()["cache-control"], "no-store");
    let mut body = response.into_body();
    let mut events = Vec::new();
    while let Some(event) = next(&mut body).await {
        events.push(event);
    }
    assert_eq!(
        json!(events),
        json!([
            { "event": "lines", "log": 0, "leftOut": 0, "lines": [{ "text": "\u{1b}[2Jone" }] },
            { "event": "ended", "log": 0 },
            { "event": "done" },
        ])
    );
    let document = document();
    let schema = document.pointer("/components/schemas/LogEvent").unwrap();
    for event in &events {
        assert_eq!(faults(&document, schema, event, ""), [""; 0]);
    }
    for (question, code) in
        [(json!({ "what": "nothing" }), 422), (json!({ "colour": 1 }), 400), (json!("shop"), 400)]
    {
        assert_eq!(problem(hub.logs(&reads, question).await).await.0, code);
    }
}

#[tokio::test]
async fn a_followed_log_ends_with_its_token() {
    let (bearer, record) = token(true, None);
    let hub = Guarded::new(vec![record.clone()], Limits::default());
    let mut body = hub.logs(&bearer, json!({ "what": "shop", "follow": true })).await.into_body();
    assert_eq!(next(&mut body).await.unwrap()["event"], "lines");
    hub.set_tokens(Vec::new());
    let last = next(&mut body).await.unwrap();
    assert_eq!(last, json!({ "event": "refused", "message": "the access token is unknown or has expired" }));
    assert_eq!(next(&mut body).await, None);
    hub.until_nothing_is_followed().await;

    // Even if the client reads nothing.
    hub.set_tokens(vec![record]);
    let unread = hub.logs(&bearer, json!({ "what": "shop", "follow": true })).await;
    assert_eq!(hub.followed.available_permits(), 7);
    hub.set_tokens(Vec::new());
    hub.until_nothing_is_followed().await;
    drop(unread);
}

#[tokio::test]
async fn a_followed_log_ends_when_its_token_expires_or_its_reader_goes() {
    let end = start().checked_add(SignedDuration::from_hours(1)).unwrap();
    let (bearer, record) = token(true, Some(end));
    let hub = Guarded::new(vec![record], Limits::default());
    let mut body = hub.logs(&bearer, json!({ "what": "shop", "follow": true })).await.into_body();
    assert_eq!(next(&mut body).await.unwrap()["event"], "lines");
    hub.fleet.pass(3601);
    assert_eq!(next(&mut body).await.unwrap()["event"], "refused");
    assert_eq!(next(&mut body).await, None);

    let (bearer, record) = token(true, None);
    hub.set_tokens(vec![record]);
    let mut body = hub.logs(&bearer, json!({ "what": "shop", "follow": true })).await.into_body();
    assert_eq!(next(&mut body).await.unwrap()["event"], "lines");
    drop(body);
    hub.until_nothing_is_followed().await;
}

#[tokio::test]
async fn a_session_reads_logs_by_the_right_of_its_token_and_as_long_as_that_is_there() {
    let ((reads, one), (status, other)) = (token(true, None), token(false, None));
    let hub = Guarded::new(vec![one, other.clone()], Limits::default());
    let mut cookies = Vec::new();
    for bearer in [&reads, &status] {
        let token = bearer.strip_prefix("Bearer ").unwrap();
        let opened = hub.post("/api/v1/session", &[], json!({ "token": token })).await;
        let cookie = opened.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
        cookies.push(cookie);
    }
    let ask = async |cookie: &str| {
        let headers = [("cookie", cookie), ("sec-fetch-site", "same-origin")];
        hub.post("/api/v1/logs", &headers, json!({ "what": "shop", "follow": true })).await
    };
    assert_eq!(problem(ask(&cookies[1]).await).await.0, 403);
    let mut body = ask(&cookies[0]).await.into_body();
    assert_eq!(next(&mut body).await.unwrap()["event"], "lines");
    hub.set_tokens(vec![other]);
    assert_eq!(
        next(&mut body).await.unwrap(),
        json!({ "event": "refused", "message": "the session has ended" })
    );
    assert_eq!(next(&mut body).await, None);
}

#[tokio::test]
async fn logs_take_the_places_of_streams() {
    let (bearer, record) = token(true, None);
    let hub = Guarded::new(vec![record], Limits { streams: 1, requests: 1, ..Limits::default() });
    let followed = hub.logs(&bearer, json!({ "what": "shop", "follow": true })).await;
    assert_eq!(problem(hub.logs(&bearer, json!({ "what": "shop" })).await).await.0, 503);
    let lists = http::Request::get("/api/v1/apps").header("host", "hub").header("authorization", &bearer);
    assert_eq!(send(&hub.router, lists.body(Body::empty()).unwrap()).await.status, StatusCode::OK);
    drop(followed);
    assert_eq!(hub.logs(&bearer, json!({ "what": "shop" })).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_stream_of_pages_ends_with_its_token() {
    let (bearer, record) = token(false, None);
    let hub = Guarded::new(vec![record], Limits::default());
    let index = Arc::clone(&hub.fleet.index);
    let publisher = tokio::spawn(async move { index.run().await });
    let request = http::Request::get("/api/v1/stream?subscribe=all:counts");
    let request = request.header("host", "hub").header("authorization", &bearer).body(Body::empty()).unwrap();
    let mut body = hub.router.clone().oneshot(request).await.unwrap().into_body();
    assert!(body.frame().await.is_some());
    hub.set_tokens(Vec::new());
    let rest = async { while body.frame().await.is_some() {} };
    timeout(Duration::from_secs(60), rest).await.expect("the stream goes on");
    publisher.abort();
}
