//! Logs that are read and followed, of a server whose answers the test sets.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use taffrail_api::logs::LogLine;
use taffrail_cluster::{Cluster, LogRequest, Reason};
use taffrail_observe::logs::{
    FollowedLog, LogPlaces, LogReader, LogTarget, MAX_FOLLOWED, MAX_LOG_BYTES, MAX_READS, ReadLimits,
};
use taffrail_observe::{ClusterConnector, ClusterSelection, TimeLimits, members};
use taffrail_status::Status;
use taffrail_testkit::server::{Reply, Server};
use tokio::time::Instant;

const PATIENCE: Duration = Duration::from_secs(60);

async fn connected(server: &Server) -> Cluster {
    let file = tempfile::NamedTempFile::new().unwrap();
    let cluster = format!("server: {}", server.url());
    std::fs::write(file.path(), taffrail_testkit::kubeconfig(&[("test", &cluster, "")])).unwrap();
    let kubeconfig = Some(file.path().to_owned());
    let mut found = members(&ClusterSelection { kubeconfig, ..ClusterSelection::default() }).unwrap();
    let member = found.members.pop().unwrap();
    ClusterConnector { member, limits: TimeLimits::each(PATIENCE) }.connect().await.unwrap()
}

fn request() -> LogRequest {
    LogRequest {
        namespace: "shop".to_owned(),
        pod: "web-1".to_owned(),
        container: "web".to_owned(),
        previous: false,
        follow: false,
        timestamps: false,
        tail: Some(5),
        since: None,
    }
}

/// The request for all lines.
fn all() -> LogRequest {
    LogRequest { tail: None, ..request() }
}

fn target() -> LogTarget {
    LogTarget {
        namespace: "shop".to_owned(),
        pod: "web-1".to_owned(),
        container: "web".to_owned(),
        status: Status::Current,
        has_crashed: false,
        restarts: 0,
        is_running: true,
        has_started: true,
    }
}

fn text(text: impl Into<Vec<u8>>) -> Reply {
    Reply::Whole(200, vec![("content-type", "text/plain".to_owned())], text.into())
}

/// Returns a Pod whose container was restarted `restarts` times and is in the state `state`.
fn pod(restarts: usize, state: serde_json::Value) -> Reply {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "shop", "name": "web-1"},
        "status": {"phase": "Running", "containerStatuses": [
            {"name": "web", "ready": false, "restartCount": restarts, "state": state}]},
    });
    Reply::json(200, pod.to_string())
}

#[tokio::test]
async fn a_log_is_read_up_to_its_bound() {
    let server = Server::start(|_| Reply::flood(&format!("{}\n", "x".repeat(1023))));
    let reader = LogReader::new(&connected(&server).await);
    let log = reader.read(&all(), ReadLimits::from_now()).await.unwrap();
    assert!(log.is_cut && log.failure.is_none(), "{:?}", log.failure);
    let bytes: usize = log.lines.iter().map(LogLine::cost).sum();
    assert!((MAX_LOG_BYTES - 2048..=MAX_LOG_BYTES).contains(&bytes), "{bytes}");
    // A server that ignores the number of lines to send costs no memory for the others.
    let log = reader.read(&request(), ReadLimits::from_now()).await.unwrap();
    assert!(log.is_cut && log.failure.is_none(), "{:?}", log.failure);
    assert_eq!(log.lines.len(), 5);
}

#[tokio::test]
async fn empty_lines_take_memory_too() {
    let server = Server::start(|_| Reply::flood("\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n"));
    let reader = LogReader::new(&connected(&server).await);
    let log = reader.read(&all(), ReadLimits::from_now()).await.unwrap();
    assert!(log.is_cut && log.failure.is_none(), "{:?}", log.failure);
    assert_eq!(log.lines.len(), MAX_LOG_BYTES / size_of::<LogLine>());
}

#[tokio::test]
async fn a_read_that_gets_no_place_ends_at_its_deadline() {
    let server = Server::hanging();
    let reader = LogReader::new(&connected(&server).await);
    let reads: Vec<_> = (0..MAX_READS)
        .map(|_| {
            let reader = reader.clone();
            let limits = ReadLimits { until: Instant::now() + PATIENCE, ..ReadLimits::from_now() };
            tokio::spawn(async move { reader.read(&request(), limits).await.is_ok() })
        })
        .collect();
    let server = tokio::task::spawn_blocking(move || {
        server.until(|traffic| traffic.count("/log") >= MAX_READS);
        server
    })
    .await
    .unwrap();
    let soon = ReadLimits { until: Instant::now() + Duration::from_millis(50), ..ReadLimits::from_now() };
    let late = reader.read(&request(), soon).await.unwrap_err();
    assert_eq!(late.reason(), Reason::Timeout, "{late}");
    assert_eq!(server.traffic().count("/log"), MAX_READS);
    reads.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn what_was_read_before_a_failure_is_kept() {
    let server = Server::start(|_| Reply::cut("one\ntwo"));
    let reader = LogReader::new(&connected(&server).await);
    let log = reader.read(&request(), ReadLimits::from_now()).await.unwrap();
    assert_eq!(log.lines.iter().map(|line| &*line.text).collect::<Vec<_>>(), ["one", "two"]);
    assert!(log.failure.is_some() && !log.is_cut);
}

#[tokio::test]
async fn few_logs_of_a_cluster_are_read_at_once() {
    let server = Server::hanging();
    let reader = LogReader::new(&connected(&server).await);
    let reads: Vec<_> = (0..MAX_READS + 8)
        .map(|_| {
            let reader = reader.clone();
            tokio::spawn(async move { reader.read(&request(), ReadLimits::from_now()).await.is_ok() })
        })
        .collect();
    let server = tokio::task::spawn_blocking(move || {
        server.until(|traffic| traffic.count("/log") >= MAX_READS);
        server
    })
    .await
    .unwrap();
    assert_eq!(server.traffic().count("/log"), MAX_READS);
    reads.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn few_logs_of_a_cluster_are_followed_and_dropped_ones_make_room() {
    let server = Server::start(|_| Reply::stuck("one\n"));
    let (cluster, places) = (connected(&server).await, LogPlaces::default());
    let reader = LogReader::sharing(&cluster, places.clone());
    let shared = LogReader::sharing(&cluster, places);
    let mut followed: Vec<FollowedLog> =
        (0..MAX_FOLLOWED).map(|_| reader.follow(&request(), &target()).unwrap()).collect();
    for log in &mut followed {
        assert_eq!(log.next().await.unwrap().lines[0].text, "one");
    }
    assert!(reader.follow(&request(), &target()).is_none());
    // Readers that share places share the number.
    assert!(shared.follow(&request(), &target()).is_none());
    followed.pop();
    // The place is free when the dropped task has ended.
    let again = tokio::time::timeout(PATIENCE, async {
        loop {
            if let Some(log) = reader.follow(&request(), &target()) {
                break log;
            }
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(again.await.unwrap().next().await.unwrap().lines[0].text, "one");
}

#[tokio::test]
async fn a_container_is_followed_through_its_restarts_until_its_pod_is_gone() {
    let looks = AtomicUsize::new(0);
    let logs = AtomicUsize::new(0);
    let waiting = json!({"waiting": {"reason": "CrashLoopBackOff"}});
    let server = Server::start(move |request| {
        if request.path.ends_with("/log") {
            return match logs.fetch_add(1, Ordering::SeqCst) {
                0 => text("one\n"),
                _ => text("two\n"),
            };
        }
        match looks.fetch_add(1, Ordering::SeqCst) {
            0 => pod(0, waiting.clone()),
            1 => pod(1, json!({"running": {}})),
            _ => Reply::json(
                404,
                json!({"kind": "Status", "code": 404, "details": {"name": "web-1"}, "message": "not found"})
                    .to_string(),
            ),
        }
    });
    let reader = LogReader::new(&connected(&server).await);
    let mut followed = reader.follow(&request(), &target()).unwrap();
    let (mut lines, mut waits, mut end) = (Vec::new(), 0, None);
    while let Some(news) = followed.next().await {
        lines.extend(news.lines.into_iter().map(|line| line.text));
        waits += usize::from(news.waits);
        end = news.end;
    }
    assert_eq!((lines, waits), (vec!["one".to_owned(), "two".to_owned()], 1));
    assert!(matches!(end, Some(Ok(()))), "{end:?}");
    let asked: Vec<String> =
        server.requests().iter().filter(|it| it.path.ends_with("/log")).map(|it| it.query.clone()).collect();
    // A new run is read from its beginning.
    assert_eq!(asked, ["container=web&follow=true&tailLines=5", "container=web&follow=true"]);
}
