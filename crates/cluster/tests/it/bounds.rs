//! Tests of the limits on the memory and time that a server can cost which sends more than was requested.

use std::future::{Future, poll_fn};
use std::io::Write;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use taffrail_cluster::{
    ApiResource, Cluster, Deadline, Discovery, ListRequest, ListStrategy, Memory, PatchRequest, PatchType,
    Phase, ReadError, Reason, Scope, WatchEvent, WatchState, Watcher, WriteError,
};
use taffrail_object::Projection;
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

/// Returns a script whose every answer is a page of one object of about `size` bytes, with the token of one more page.
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

/// Returns a compressed page of a list whose items are `items` repeated to about `size` bytes.
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

/// Reporting an item that is not an object costs many times the item's text.
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

/// The records of tiny objects take far more memory than their texts.
#[tokio::test]
async fn list_of_tiny_objects_is_charged_for_each() {
    for (number, is_read) in [(50_000, false), (20_000, true)] {
        let server = Server::start(move |_| {
            gzip(|to| {
                let head = br#"{"kind":"ThingList","apiVersion":"example/v1","metadata":{},"items":["#;
                to.write_all(head).unwrap();
                let items: Vec<String> =
                    (0..number).map(|at| format!(r#"{{"metadata":{{"name":"a{at}"}}}}"#)).collect();
                to.write_all(items.join(",").as_bytes()).unwrap();
                to.write_all(b"]}").unwrap();
            })
        });
        let (things, memory) = (things(), Memory::of(48 << 20));
        let request = ListRequest::all(&things);
        let over = (!is_read).then_some(Reason::OverLimit);
        let cluster = connected(&server, &memory, LONG).await;
        let error = cluster.list(&request).await.err();
        assert_eq!(error.map(|error| error.reason()), over);
        drop(cluster);
        let cluster = connected(&server, &memory, LONG).await;
        let error = cluster.list_page(&request, None).await.err();
        assert_eq!(error.map(|error| error.reason()), over);
    }
}

/// Returns a response with one object, or a list of it with `as_list`, whose status has about `size` bytes of zeros.
fn dense(size: usize, as_list: bool) -> Reply {
    gzip(|to| {
        let (head, tail) = match as_list {
            true => (r#"{"kind":"ThingList","apiVersion":"example/v1","metadata":{},"items":["#, "]}"),
            false => ("", ""),
        };
        write!(to, r#"{head}{{"metadata":{{"name":"a"}},"status":{{"conditions":["#).unwrap();
        to.write_all("0,".repeat(size / 2).as_bytes()).unwrap();
        write!(to, "0]}}}}{tail}").unwrap();
    })
}

#[tokio::test]
async fn single_object_is_charged_for_its_index() {
    let server = Server::start(|_| dense(4 << 20, false));
    // Two million values of 32 bytes, twice.
    let cluster = connected(&server, &Memory::of(96 << 20), LONG).await;
    let error = cluster.get(&things(), Some("a"), "a", Projection::Full).await.err();
    assert_eq!(error.map(|error| error.reason()), Some(Reason::OverLimit));
    let change = PatchRequest {
        resource: &things(),
        namespace: Some("a"),
        name: "a",
        subresource: None,
        patch_type: PatchType::Merge,
        body: b"{}",
        dry_run: false,
    };
    let written = cluster.with_timeout(LONG).patch(&change).await;
    assert!(matches!(&written, Err(WriteError::Uncertain(error)) if error.reason() == Reason::OverLimit));
    // Of what is read, one index remains.
    let cluster = connected(&server, &Memory::of(160 << 20), LONG).await;
    assert!(cluster.get(&things(), Some("a"), "a", Projection::Full).await.unwrap().is_some());
    assert!(cluster.charge("get", 40 << 20).is_ok());
    assert!(cluster.charge("get", 16 << 20).is_err());
}

#[tokio::test]
async fn single_object_has_at_most_8_mib() {
    for (size, is_read) in [(5 << 20, true), (9 << 20, false)] {
        let server = Server::start(move |_| {
            let secret =
                json!({ "metadata": { "name": "a" }, "data": { "a": "x".repeat(size) } }).to_string();
            gzip(|to| to.write_all(secret.as_bytes()).unwrap())
        });
        let cluster = connected(&server, &Memory::of(64 << 20), LONG).await;
        match cluster.get(&things(), Some("a"), "a", Projection::Full).await {
            Ok(object) => assert!(is_read && object.is_some()),
            Err(error) => {
                assert!(!is_read, "{error}");
                assert!(error.to_string().ends_with("the answer is larger than 8 MiB"), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn list_is_charged_for_its_text_and_its_objects_while_both_are_held() {
    let server = Server::start(|_| dense(2 << 20, true));
    let things = things();
    let request = ListRequest::all(&things);
    // A million values of 32 bytes, twice.
    let cluster = connected(&server, &Memory::of(50 << 20), LONG).await;
    let list = cluster.with_timeout(LONG).list(&request).await.err();
    let page = cluster.with_timeout(LONG).list_page(&request, None).await.err();
    let first = cluster.with_timeout(LONG).first_page(&request).await.err();
    for error in [list, page, first] {
        assert_eq!(error.map(|error| error.reason()), Some(Reason::OverLimit));
    }
    // Of what is read, one index remains.
    let cluster = connected(&server, &Memory::of(80 << 20), LONG).await;
    assert_eq!(cluster.list(&request).await.unwrap().objects.len(), 1);
    assert!(cluster.charge("list", 20 << 20).is_ok());
    assert!(cluster.charge("list", 8 << 20).is_err());
}

#[tokio::test]
async fn followed_page_is_charged_for_its_text_and_its_objects_while_both_are_held() {
    let server = Server::start(|_| dense(2 << 20, true));
    let state = broken(&server, &Memory::of(50 << 20), ListStrategy::Pages).await;
    assert!(matches!(&state, WatchState::Broken { reason: "OverLimit", .. }), "{state:?}");
}

#[tokio::test]
async fn page_is_charged_while_its_objects_are_held() {
    let server = Server::start(|_| dense(2 << 20, true));
    let cluster = connected(&server, &Memory::of(80 << 20), LONG).await;
    let things = things();
    let request = ListRequest::all(&things);
    let page = cluster.with_timeout(LONG).list_page(&request, None).await.unwrap();
    let error = cluster.with_timeout(LONG).list_page(&request, None).await.err();
    assert_eq!(error.map(|error| error.reason()), Some(Reason::OverLimit));
    drop(page);
    assert_eq!(cluster.with_timeout(LONG).list_page(&request, None).await.unwrap().objects.len(), 1);
}

/// Follows all things of the server and returns the first state that is [`WatchState::Broken`]; fails after [`LONG`].
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

/// The watcher does not ask for compressed watches, and a few compressed bytes could be many decompressed.
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
    assert!(message.contains("more than 1000 items are not valid objects"), "{message}");
}

/// The answers of a server with too many kinds or groups.
#[derive(Clone, Copy)]
enum Excess {
    /// This number of kinds in one group, as aggregated discovery.
    Kinds(usize),
    /// This number of groups, as plain discovery, which takes a request for each.
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

/// Returns the discovery of a server with an empty core group whose response to the path `/apis`, or to a version of
/// an older server, is `groups`.
async fn discovered(groups: impl Fn(&str) -> String + Send + Sync + 'static) -> Discovery {
    let core = r#"{"kind":"APIVersions","versions":[]}"#;
    let server = Server::start(move |seen| {
        let body = if seen.path == "/api" { core.to_owned() } else { groups(&seen.path) };
        gzip(|to| to.write_all(body.as_bytes()).unwrap())
    });
    reached(&server, Duration::from_secs(100)).await.discover().await.unwrap()
}

/// Returns an aggregated response with these versions of the group `example`.
fn aggregated(versions: &[String]) -> String {
    let versions = versions.join(",");
    format!(
        r#"{{"kind":"APIGroupDiscoveryList","items":[{{"metadata":{{"name":"example"}},"versions":[{versions}]}}]}}"#
    )
}

#[tokio::test]
async fn discovery_keeps_a_repeated_kind_and_version_once() {
    let thing = r#"{"resource":"things","responseKind":{"kind":"Thing"},"verbs":["list"]}"#;
    let version = |name: usize, repeats: usize| {
        format!(r#"{{"version":"v{name}","resources":[{}]}}"#, vec![thing; repeats].join(","))
    };
    let body = aggregated(&(0..900).map(|name| version(name, 20)).collect::<Vec<_>>());
    let discovery = discovered(move |_| body.clone()).await;
    let [things] = discovery.resources() else { panic!("{}", discovery.resources().len()) };
    assert_eq!(things.versions.len(), 32);
    assert!(discovery.broken().iter().any(|broken| broken.reason.contains("are left out")));
    // As soon as the group goes on with another kind.
    let other = thing.replace("hing", "ong");
    let body =
        aggregated(&[format!(r#"{{"version":"v1","resources":[{thing},{other},{thing}]}}"#), version(2, 2)]);
    let discovery = discovered(move |_| body.clone()).await;
    let versions: Vec<String> = discovery.resources().iter().map(|kind| kind.versions.join(" ")).collect();
    assert_eq!(versions, ["v1 v2", "v1"]);
}

#[tokio::test]
async fn discovery_bounds_what_it_reads_of_one_old_version() {
    let status = r#"{"name":"a/status","namespaced":true,"kind":"A"},"#.repeat(40_000);
    let discovery = discovered(move |path| match path {
        "/apis" => {
            r#"{"kind":"APIGroupList","groups":[{"name":"x.io","versions":[{"version":"v1"}]}]}"#.to_owned()
        }
        _ => format!(r#"{{"resources":[{status}{{"name":"z","namespaced":true,"kind":"Z"}}]}}"#),
    })
    .await;
    assert_eq!(discovery.resources().len(), 0);
    let [broken] = discovery.broken() else { panic!("{:?}", discovery.broken()) };
    assert_eq!(broken.reason, "the cluster has too many kinds: 0 are read, and 25001 more are left out");
}

#[tokio::test]
async fn discovery_counts_malformed_groups_beyond_the_bound_unread() {
    let body = format!(r#"{{"kind":"APIGroupDiscoveryList","items":[{}0]}}"#, "0,".repeat(50_000));
    let discovery = discovered(move |_| body.clone()).await;
    let reasons: Vec<&str> = discovery.broken()[1000..].iter().map(|broken| broken.reason.as_str()).collect();
    assert_eq!(
        reasons,
        [
            "the cluster has too many API groups: 20000 are read, and 30001 more are left out",
            "the cluster has too many broken groups: 1000 are read, and 19000 more are left out"
        ]
    );
}

#[tokio::test]
async fn discovery_copies_no_endless_name() {
    let body = format!(
        r#"{{"kind":"APIGroupDiscoveryList","items":[{{"metadata":{{"name":"{}"}},"versions":[{{"version":"v1","freshness":"Stale"}}]}}]}}"#,
        "x".repeat(1 << 20)
    );
    let discovery = discovered(move |_| body.clone()).await;
    let [broken] = discovery.broken() else { panic!("{}", discovery.broken().len()) };
    assert!(broken.name.len() <= 110, "{}", broken.name.len());
    assert_eq!(broken.reason, "the name is too long");
}

#[tokio::test]
async fn discovery_refuses_a_response_above_32_mib() {
    let spaces = " ".repeat(32 << 20);
    let discovery =
        discovered(move |_| format!(r#"{{"kind":"APIGroupDiscoveryList","items":[{spaces}]}}"#)).await;
    let [broken] = discovery.broken() else { panic!("{:?}", discovery.broken()) };
    assert_eq!(broken.reason, "discover kinds (/apis): the answer is larger than 32 MiB");
}

#[tokio::test]
async fn large_honest_discovery_is_read_whole() {
    // 5,000 definitions of three versions each, in 500 groups, as aggregated discovery tells them.
    let thing = |at: usize| {
        let kind = format!("SomeRatherLongKindOfThing{at}");
        json!({ "resource": format!("{}s", kind.to_lowercase()), "scope": "Namespaced",
            "responseKind": { "group": "", "version": "", "kind": kind }, "singularResource": kind.to_lowercase(),
            "verbs": ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"],
            "shortNames": [format!("s{at}")], "categories": ["all", "managed"],
            "subresources": [{ "subresource": "status", "responseKind": { "group": "", "version": "", "kind": kind },
                "verbs": ["get", "patch", "update"] }] })
    };
    let group = |at: usize| {
        let resources: Vec<Value> = (0..10).map(|kind| thing(at * 10 + kind)).collect();
        let versions = ["v1", "v1beta1", "v1alpha1"]
            .map(|version| json!({ "version": version, "freshness": "Current", "resources": resources }));
        json!({ "metadata": { "name": format!("group{at}.example.com") }, "versions": versions })
    };
    let groups: Vec<Value> = (0..500).map(group).collect();
    let body = json!({ "kind": "APIGroupDiscoveryList", "items": groups }).to_string();
    assert!(body.len() < 16 << 20, "{}", body.len());
    let discovery = discovered(move |_| body.clone()).await;
    assert_eq!((discovery.resources().len(), discovery.broken().len()), (5_000, 0));
    assert!(discovery.resources().iter().all(|kind| kind.versions.len() == 3 && kind.has_status_subresource));
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
