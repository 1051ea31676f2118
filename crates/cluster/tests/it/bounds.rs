//! What a server may cost that sends more than anybody asked for.

use std::future::{Future, poll_fn};
use std::io::Write;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use taffrail_cluster::{
    ApiResource, Cluster, Deadline, ListRequest, ListStrategy, Memory, Phase, ReadError, Reason, Scope,
    WatchEvent, WatchState, Watcher,
};
use taffrail_object::json::Parser;
use taffrail_testkit::server::{Reply, Request, Server};

use crate::contexts::{LONG, context, reached};

fn things() -> ApiResource {
    ApiResource {
        group: "example".to_owned(),
        version: "v1".to_owned(),
        kind: "Thing".to_owned(),
        plural: "things".to_owned(),
        namespaced: true,
    }
}

fn gzip(write: impl FnOnce(&mut dyn Write)) -> Reply {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    write(&mut gzip);
    let headers =
        vec![("content-type", "application/json".to_owned()), ("content-encoding", "gzip".to_owned())];
    Reply::Whole(200, headers, gzip.finish().unwrap())
}

async fn connected(server: &Server, memory: &Memory, timeout: Duration) -> Cluster {
    let context = context(&format!("server: {}", server.url()), "").with_memory(memory);
    Cluster::connect(&context, Deadline::after(timeout)).await.unwrap()
}

#[tokio::test]
async fn response_size_is_bounded_after_decompression() {
    let server = Server::start(|_| {
        gzip(|to| {
            to.write_all(br#"{"kind":"ThingList","apiVersion":"example/v1","metadata":{},"items":["#)
                .unwrap();
            let spaces = vec![b' '; 1 << 20];
            (0..400).for_each(|_| to.write_all(&spaces).unwrap());
            to.write_all(b"]}").unwrap();
        })
    });
    let cluster = connected(&server, &Memory::of(64 << 30), LONG).await;
    let error = cluster.list(&ListRequest::all(&things())).await.unwrap_err();
    assert_eq!(error.reason(), Reason::OverLimit);
    assert_eq!(error.to_string(), "list things.example: the answer is larger than 256 MiB");
}

/// A list that has always one more page, of objects with so many bytes.
fn endless(size: usize) -> impl Fn(&Request) -> Reply + Send + Sync + 'static {
    let pages = AtomicUsize::new(0);
    move |_| {
        let page = pages.fetch_add(1, Ordering::Relaxed);
        let item = json!({ "metadata": { "name": format!("a{page}") }, "filler": "x".repeat(size) });
        let list = json!({
            "kind": "ThingList", "apiVersion": "example/v1",
            "metadata": { "resourceVersion": "7", "continue": format!("p{page}") }, "items": [item],
        });
        Reply::json(200, list.to_string())
    }
}

#[tokio::test]
async fn endless_list_ends_at_the_clusters_share() {
    let memory = Memory::of(64 << 20);
    let (hostile, honest) = (
        Server::start(endless(1 << 20)),
        Server::start(|_| {
            let list = json!({
                "kind": "ThingList", "apiVersion": "example/v1", "metadata": { "resourceVersion": "7" },
                "items": [{ "metadata": { "name": "a" }, "filler": "x".repeat(6 << 20) }],
            });
            Reply::json(200, list.to_string())
        }),
    );
    let hostile = connected(&hostile, &memory, LONG).await;
    let honest = connected(&honest, &memory, LONG).await;
    let error = hostile.list(&ListRequest::all(&things())).await.unwrap_err();
    assert_eq!(error.reason(), Reason::OverLimit);
    assert!(error.to_string().contains("its share of memory"), "{error}");
    // What the first has taken is still kept.
    assert_eq!(honest.list(&ListRequest::all(&things())).await.unwrap().objects.len(), 1);
    // Who is done gives back.
    drop(hostile);
    assert_eq!(memory.clusters(), 1);
}

#[tokio::test]
async fn endless_empty_pages_are_an_error() {
    let pages = AtomicUsize::new(0);
    let server = Server::start(move |_| {
        let page = pages.fetch_add(1, Ordering::Relaxed);
        let list = json!({ "kind": "ThingList", "apiVersion": "example/v1",
            "metadata": { "continue": format!("p{page}") }, "items": [] });
        Reply::json(200, list.to_string())
    });
    let cluster = reached(&server, Duration::from_secs(100)).await;
    let error = cluster.list(&ListRequest::all(&things())).await.unwrap_err();
    assert_eq!(error.reason(), Reason::OverLimit);
    assert!(error.to_string().contains("pages"), "{error}");
}

/// A page that is mostly this, so many bytes of it.
fn page_of(items: &'static str, size: usize) -> Reply {
    gzip(|to| {
        let head =
            br#"{"kind":"ThingList","apiVersion":"example/v1","metadata":{"resourceVersion":"7"},"items":["#;
        to.write_all(head).unwrap();
        let block = items.repeat((1 << 20) / items.len());
        (0..size >> 20).for_each(|_| to.write_all(block.as_bytes()).unwrap());
        to.write_all(b"1]}").unwrap();
    })
}

/// Each costs many times its text to tell.
#[tokio::test]
async fn items_that_are_no_objects_end_a_list_before_they_cost_much() {
    for (items, reason) in [
        ("1,", Reason::OverLimit),
        ("\"a long text that is not an object either\",", Reason::UnexpectedAnswer),
    ] {
        let server = Server::start(move |_| page_of(items, 4 << 20));
        let cluster = connected(&server, &Memory::of(32 << 20), LONG).await;
        let error = cluster.list(&ListRequest::all(&things())).await.unwrap_err();
        assert_eq!(error.reason(), reason, "{error}");
        let error = cluster.list_page(&ListRequest::all(&things()), None).await.unwrap_err();
        assert_eq!(error.reason(), reason, "{error}");
    }
}

/// The states that are told of one scope until one is neither live nor catching up.
async fn broken(server: &Server, memory: &Memory, lists: ListStrategy) -> WatchState {
    let cluster = connected(server, memory, LONG).await;
    let (mut watcher, mut events) = Watcher::start(cluster, None, crate::watching::settings(lists));
    watcher.follow(Scope::all(things()));
    let mut parser = Parser::new();
    let told = async {
        while let Some(event) = events.next().await {
            match event {
                WatchEvent::Batch(batch) => {
                    assert!(batch.size() <= 600 << 10, "{} bytes are read at once", batch.size());
                    batch.read(&mut parser, |_| ());
                }
                WatchEvent::State(_, state @ WatchState::Broken { .. }) => return state,
                _ => {}
            }
        }
        panic!("nothing more comes")
    };
    tokio::time::timeout(LONG, told).await.unwrap()
}

#[tokio::test]
async fn incomplete_watch_lines_are_charged_to_the_cluster() {
    let server = Server::start(|seen| match seen.query.contains("watch=1") {
        true => Reply::stuck(format!(r#"{{"type":"ADDED","object":{{"x":"{}"#, "x".repeat(3 << 20))),
        false => Reply::status(404, "NotFound", "no"),
    });
    let memory = Memory::of(4 << 20);
    let state = broken(&server, &memory, ListStrategy::Streams).await;
    let WatchState::Broken { reason, message } = state else { panic!("{state:?}") };
    assert_eq!(reason, "OverLimit", "{message}");
    assert!(message.contains("its share of memory"), "{message}");
}

/// Nobody asked for that, and little of it would be much.
#[tokio::test]
async fn compressed_watches_are_not_decompressed() {
    let server = Server::start(|seen| match seen.query.contains("watch=1") {
        true => gzip(|to| {
            to.write_all(b"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}\n").unwrap()
        }),
        false => Reply::status(404, "NotFound", "no"),
    });
    let state = broken(&server, &Memory::of(4 << 20), ListStrategy::Streams).await;
    let WatchState::Broken { reason, message } = state else { panic!("{state:?}") };
    assert_eq!(reason, "UnexpectedAnswer", "{message}");
    assert!(!message.contains("before it was complete"), "it was read: {message}");
}

#[tokio::test]
async fn followed_pages_are_charged_and_read_in_batches() {
    let pages = |_: &Request| page_of("{\"metadata\":{\"name\":\"a\"}},", 2 << 20);
    let server = Server::start(pages);
    // The last item is no object, and the watch after it no watch.
    let state = broken(&server, &Memory::of(1 << 30), ListStrategy::Pages).await;
    assert!(matches!(&state, WatchState::Broken { reason: "UnexpectedAnswer", .. }), "{state:?}");
    let state = broken(&server, &Memory::of(2 << 20), ListStrategy::Pages).await;
    assert!(matches!(&state, WatchState::Broken { reason: "OverLimit", .. }), "{state:?}");
}

#[tokio::test]
async fn followed_list_fails_on_too_many_non_objects() {
    let server = Server::start(|_| page_of("{},", 1 << 20));
    let state = broken(&server, &Memory::of(1 << 30), ListStrategy::Pages).await;
    let WatchState::Broken { message, .. } = state else { panic!("{state:?}") };
    assert!(message.contains("more than 1000 items are not objects"), "{message}");
}

/// A discovery of more than anybody asked for.
#[derive(Clone, Copy)]
enum Excess {
    /// So many kinds of one group, as servers tell them that answer for all groups at once.
    Kinds(usize),
    /// So many groups, as older servers tell them, each of which is asked for.
    Groups(usize),
}

impl Excess {
    fn reply(self, seen: &Request) -> Reply {
        let group_list = |groups: Value| json!({ "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": groups });
        let body = match (self, seen.path.as_str()) {
            (Excess::Kinds(_), "/api") => {
                group_list(json!([{ "metadata": {}, "versions": [{ "version": "v1", "resources": [] }] }]))
            }
            (Excess::Kinds(number), _) => {
                let kind = |at| {
                    json!({ "resource": format!("things{at}"), "responseKind": { "kind": format!("Thing{at}") },
                        "scope": "Namespaced", "verbs": ["list"] })
                };
                let resources: Vec<Value> = (0..number).map(kind).collect();
                group_list(json!([{ "metadata": { "name": "example" },
                    "versions": [{ "version": "v1", "resources": resources }] }]))
            }
            (Excess::Groups(_), "/api") => json!({ "kind": "APIVersions", "versions": ["v1"] }),
            (Excess::Groups(number), "/apis") => {
                let group = |at| json!({ "name": format!("g{at}"), "versions": [{ "version": "v1" }] });
                json!({ "kind": "APIGroupList", "groups": (0..number).map(group).collect::<Vec<_>>() })
            }
            (Excess::Groups(_), _) => json!({ "kind": "APIResourceList", "resources": [] }),
        };
        Reply::json(200, body.to_string())
    }
}

#[tokio::test]
async fn discovery_reads_at_most_5_000_kinds_and_reports_the_rest() {
    let server = Server::start(|seen| Excess::Kinds(100_000).reply(seen));
    let cluster = reached(&server, Duration::from_secs(100)).await;
    let discovery = cluster.discover().await.unwrap();
    assert_eq!(discovery.resources().len(), 5_000);
    let [broken] = discovery.broken() else { panic!("{:?}", discovery.broken()) };
    assert_eq!(broken.reason, "the cluster has too many kinds: 5000 are read, and 95000 more are left out");
    // What else there is belongs to a group that is not known.
    assert!(broken.concerns("example") && broken.concerns("other.example"));
}

#[tokio::test]
async fn discovery_requests_a_bounded_number_of_groups() {
    let server = Server::start(|seen| Excess::Groups(20_000).reply(seen));
    let cluster = reached(&server, Duration::from_secs(100)).await;
    let discovery = cluster.discover().await.unwrap();
    assert!(server.requests().len() <= 1_002, "{}", server.requests().len());
    let reasons: Vec<&str> = discovery.broken().iter().map(|broken| broken.reason.as_str()).collect();
    assert_eq!(
        reasons,
        ["the cluster has too many API versions: 1000 are read, and 19001 more are left out"]
    );
}

#[tokio::test]
async fn deadline_covers_parsing_of_answers() {
    let server = Server::start(|_| {
        gzip(|to| {
            to.write_all(br#"{"kind":"ThingList","apiVersion":"example/v1","metadata":{},"items":["#)
                .unwrap();
            let mut items = Vec::new();
            (0..50_000).for_each(|_| items.extend_from_slice(b"{\"metadata\":{\"name\":\"a\"}},"));
            (0..100).for_each(|_| to.write_all(&items).unwrap());
            to.write_all(b"{}]}").unwrap();
        })
    });
    let cluster = connected(&server, &Memory::of(64 << 30), LONG).await;
    let timeout = Duration::from_millis(1500);
    let error = cluster.with_timeout(timeout).list(&ListRequest::all(&things())).await.unwrap_err();
    assert!(
        matches!(error, ReadError::Timeout { phase: Phase::Headers | Phase::Body | Phase::Reading, .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn decompression_yields_to_other_tasks() {
    let server = Server::start(|_| {
        gzip(|to| {
            let spaces = vec![b' '; 1 << 20];
            (0..64).for_each(|_| to.write_all(&spaces).unwrap());
        })
    });
    let cluster = connected(&server, &Memory::of(64 << 30), LONG).await;
    let things = things();
    let request = ListRequest::all(&things);
    let mut listing = pin!(cluster.list(&request));
    let mut turns = 0;
    let listed = poll_fn(|context| {
        turns += 1;
        listing.as_mut().poll(context)
    });
    assert!(listed.await.is_err());
    // The deadline is looked at between two turns.
    assert!(turns > 32, "64 MiB in {turns} turns");
}

#[tokio::test]
async fn clusters_of_100_000_objects_stay_within_limits() {
    // Twenty clusters, one of them large, on a machine of 8 GB.
    let memory = Memory::of(4 << 30);
    let servers = Server::start(|_| Reply::json(200, "{}"));
    let mut clusters = Vec::new();
    for _ in 0..20 {
        clusters.push(connected(&servers, &memory, LONG).await);
    }
    // As text, 5 KB each.
    assert!(clusters[0].charge("list", 100_000 * 5_000).is_ok());
    for cluster in &clusters[1..] {
        assert!(cluster.charge("list", 10_000 * 5_000).is_ok());
    }
}
