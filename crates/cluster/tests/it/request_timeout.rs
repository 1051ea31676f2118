//! Tests of the time limit of one request, against servers that answer late or never.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use taffrail_cluster::{
    Cluster, Deadline, ListRequest, ListStrategy, PatchRequest, PatchType, ReadError, Scope, WatchEvent,
    WatchSettings, WatchState, Watcher, WriteError,
};
use taffrail_object::Projection;
use taffrail_object::json::Parser;
use taffrail_testkit::server::{Reply, Server, watch_event};

use crate::contexts::{LONG, context};
use crate::watching::config_maps;

const SHORT: Duration = Duration::from_millis(300);

async fn limited(server: &Server, total: Duration, request: Duration) -> Cluster {
    let context = context(&format!("server: {}", server.url()), "");
    Cluster::connect(&context, Deadline::after(total).with_request_timeout(Some(request))).await.unwrap()
}

#[tokio::test]
async fn a_request_ends_at_its_own_limit_and_says_so() {
    let server = Server::hanging();
    let cluster = limited(&server, LONG, SHORT).await;
    let begun = Instant::now();
    let resource = config_maps();
    let list = cluster.list(&ListRequest::all(&resource)).await.unwrap_err();
    let said = "list configmaps: no complete answer within 0.3 s, the limit of one request: gave up waiting for an answer";
    assert_eq!(list.to_string(), said);
    let get = cluster.get(&resource, Some("a"), "b", Projection::Full).await.unwrap_err();
    assert!(get.to_string().contains("0.3 s, the limit of one request"), "{get}");
    let patch = PatchRequest {
        resource: &resource,
        namespace: Some("a"),
        name: "b",
        subresource: None,
        patch_type: PatchType::Merge,
        body: b"{}",
        dry_run: false,
    };
    let patch = cluster.patch(&patch).await.unwrap_err();
    assert!(matches!(patch, WriteError::Uncertain(ReadError::Timeout { .. })), "{patch:?}");
    assert!(begun.elapsed() < LONG / 2, "{:?}", begun.elapsed());
    // A clone with another deadline has the same limit of one request.
    let later = cluster.with_timeout(LONG).version().await.unwrap_err();
    assert!(later.to_string().contains("the limit of one request"), "{later}");
}

#[tokio::test]
async fn the_earlier_limit_ends_a_request_and_no_limit_is_one() {
    let server = Server::hanging();
    for request in [LONG, Duration::MAX] {
        let cluster = limited(&server, SHORT, request).await;
        let error = cluster.list(&ListRequest::all(&config_maps())).await.unwrap_err().to_string();
        assert!(error.contains("within 0.3 s: gave up"), "{error}");
    }
}

#[tokio::test]
async fn each_page_of_a_list_has_the_time_of_a_request() {
    const PAGES: usize = 4;
    let pages = AtomicUsize::new(0);
    let server = Server::start(move |_| {
        let page = pages.fetch_add(1, Ordering::Relaxed) + 1;
        let next = if page < PAGES { format!("p{page}") } else { String::new() };
        let list = json!({"kind": "ConfigMapList", "apiVersion": "v1", "items": [{"metadata": {"name": format!("a{page}")}}],
            "metadata": {"resourceVersion": "7", "continue": next}});
        let late = async move {
            tokio::time::sleep(SHORT).await;
            list.to_string()
        };
        Reply::staged("", late)
    });
    let cluster = limited(&server, LONG, SHORT * 3).await;
    let begun = Instant::now();
    let list = cluster.list(&ListRequest::all(&config_maps())).await.unwrap();
    assert_eq!(list.objects.len(), PAGES);
    assert!(begun.elapsed() > SHORT * 3, "{:?}", begun.elapsed());
}

/// Follows all ConfigMaps for at most `time`, and returns the first state for which `wanted` returns true; `None` if
/// none came.
async fn follow(
    cluster: Cluster,
    time: Duration,
    wanted: impl Fn(&WatchState) -> bool,
) -> Option<WatchState> {
    let mut settings = WatchSettings::default();
    settings.lists = ListStrategy::Pages;
    let (mut watcher, mut events) = Watcher::start(cluster, None, settings);
    watcher.follow(Scope::all(config_maps()));
    let mut parser = Parser::new();
    let found = async {
        loop {
            match events.next().await.unwrap() {
                WatchEvent::State(_, state) if wanted(&state) => return state,
                WatchEvent::Batch(batch) => batch.read(&mut parser, |_| {}),
                _ => {}
            }
        }
    };
    tokio::time::timeout(time, found).await.ok()
}

#[tokio::test]
async fn a_page_that_stops_in_the_middle_ends_at_the_limit_of_its_request() {
    let server = Server::start(|_| Reply::stuck(r#"{"kind":"ConfigMapList","apiVersion":"v1","items":["#));
    let cluster = limited(&server, LONG, SHORT).await;
    let state = follow(cluster, LONG, |state| matches!(state, WatchState::Broken { .. })).await;
    let Some(WatchState::Broken { message, .. }) = state else { panic!("{state:?}") };
    assert!(message.contains("0.3 s, the limit of one request: gave up in the middle"), "{message}");
}

#[tokio::test]
async fn a_watch_lives_longer_than_a_request_may_take() {
    let server = Server::start(|request| {
        match request.query.contains("watch=1") {
        true => Reply::stuck(watch_event(
            "BOOKMARK",
            &json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": "8"}}),
        )),
        false => Reply::json(
            200,
            json!({"kind": "ConfigMapList", "apiVersion": "v1", "items": [], "metadata": {"resourceVersion": "7"}})
                .to_string(),
        ),
    }
    });
    let cluster = limited(&server, LONG, SHORT).await;
    let broken = follow(cluster, SHORT * 5, |state| matches!(state, WatchState::Broken { .. })).await;
    assert_eq!(broken, None);
    assert_eq!(server.traffic().count("watch=1"), 1, "it was not opened again");
}
