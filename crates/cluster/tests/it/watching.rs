//! Tests that watchers keep following their scopes, whatever ends a list or a watch.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::json;
use taffrail_cluster::{
    ApiResource, Change, Cluster, Connectivity, Context, Deadline, ListStrategy, Scope, ScopeId, WatchEvent,
    WatchEvents, WatchSettings, WatchState, Watcher,
};
use taffrail_object::Projection;
use taffrail_object::json::Parser;
use taffrail_sim::{Fault, Fleet, Trouble};
use taffrail_testkit::objects::{namespace, widgets};
use taffrail_testkit::server::{Reply, Server};

use crate::contexts::{context, current};

/// The maximum time to wait for an expected event, on a busy machine; a test that passes never waits that long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn config_maps() -> ApiResource {
    ApiResource {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        plural: "configmaps".to_owned(),
        namespaced: true,
    }
}

pub(crate) fn settings(lists: ListStrategy) -> WatchSettings {
    let mut settings = WatchSettings::default();
    settings.lists = lists;
    settings.probe_after = Duration::from_millis(300);
    settings.probe_timeout = Duration::from_millis(500);
    settings.longest_pause = Duration::from_millis(500);
    settings.forbidden_pause = Duration::from_millis(200);
    settings
}

/// The objects and states that a reader has received.
#[derive(Default)]
pub(crate) struct Known {
    pub(crate) objects: BTreeMap<(ScopeId, String), String>,
    pub(crate) unseen: BTreeMap<ScopeId, BTreeSet<String>>,
    pub(crate) states: BTreeMap<ScopeId, WatchState>,
    pub(crate) complete: usize,
    pub(crate) malformed: Vec<String>,
    pub(crate) connectivity: Vec<Connectivity>,
    pub(crate) said: Vec<WatchState>,
    pub(crate) said_by: BTreeMap<ScopeId, Vec<WatchState>>,
}

pub(crate) struct Reader {
    pub(crate) watcher: Watcher,
    pub(crate) events: WatchEvents,
    pub(crate) parser: Parser,
    pub(crate) known: Known,
}

impl Reader {
    pub(crate) async fn start(fleet_cluster: &taffrail_sim::Cluster, settings: WatchSettings) -> Reader {
        Reader::as_of(current(&fleet_cluster.kubeconfig()), settings).await
    }

    pub(crate) async fn as_of(context: Context, settings: WatchSettings) -> Reader {
        let cluster = Cluster::connect(&context, Deadline::after(PATIENCE)).await.unwrap();
        let (watcher, events) = Watcher::start(cluster, Some(context), settings);
        Reader { watcher, events, parser: Parser::new(), known: Known::default() }
    }

    pub(crate) fn take(&mut self, event: WatchEvent) {
        let known = &mut self.known;
        match event {
            WatchEvent::InitStarted(id) => {
                let names =
                    known.objects.keys().filter(|(scope, _)| *scope == id).map(|(_, name)| name.clone());
                known.unseen.insert(id, names.collect());
            }
            WatchEvent::Batch(batch) => {
                let id = batch.scope();
                batch.read(&mut self.parser, |change| match change {
                    // Every namespace has one, when its controller has come round.
                    Change::Upsert(object) if object.name() == "kube-root-ca.crt" => {}
                    Change::Upsert(object) => {
                        let name = format!("{}/{}", object.namespace(), object.name());
                        assert!(!object.kind().is_empty() && object.kind() != "PartialObjectMetadata");
                        known.unseen.entry(id).or_default().remove(&name);
                        let version = object.text(&["metadata", "resourceVersion"]).into_owned();
                        known.objects.insert((id, name), version);
                    }
                    Change::Delete(object) => {
                        known.objects.remove(&(id, format!("{}/{}", object.namespace(), object.name())));
                    }
                    Change::Malformed(item) => known.malformed.push(item.reason),
                    Change::InitDone => {
                        known.complete += 1;
                        for name in known.unseen.remove(&id).unwrap_or_default() {
                            known.objects.remove(&(id, name));
                        }
                    }
                });
            }
            WatchEvent::State(id, state) => {
                known.said.push(state.clone());
                known.said_by.entry(id).or_default().push(state.clone());
                known.states.insert(id, state);
            }
            WatchEvent::Connectivity(connectivity) => known.connectivity.push(connectivity),
        }
    }

    /// Reads events until `holds` returns true for the received objects and states; fails after [`PATIENCE`] with
    /// `what` in the message.
    #[track_caller]
    pub(crate) fn until(
        &mut self,
        what: &'static str,
        holds: impl Fn(&Known) -> bool,
    ) -> impl Future<Output = ()> {
        let place = std::panic::Location::caller();
        async move {
            let reading = async {
                while !holds(&self.known) {
                    let event = self.events.next().await.expect("watcher live");
                    self.take(event);
                }
            };
            if tokio::time::timeout(PATIENCE, reading).await.is_err() {
                panic!(
                    "{place}: never {what}: {} objects, {:?}, {:?}",
                    self.known.objects.len(),
                    self.known.said,
                    self.known.connectivity
                );
            }
        }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.known.objects.keys().map(|(_, name)| name.clone()).collect()
    }
}

pub(crate) fn config_map(name: &str, value: &str) -> serde_json::Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}, "data": {"v": value}})
}

pub(crate) async fn shop(fleet: &Fleet, count: usize) -> taffrail_sim::Cluster {
    let cluster = fleet.cluster("dublin").await.unwrap();
    cluster.apply(namespace("shop")).unwrap();
    cluster.seed((0..count).map(|at| config_map(&format!("c{at:04}"), "1"))).unwrap();
    cluster
}

/// Returns, as `shop/NAME`, those of the names under which the cluster has a ConfigMap in the namespace `shop`.
fn expected(cluster: &taffrail_sim::Cluster, names: impl IntoIterator<Item = String>) -> Vec<String> {
    let there = |name: &String| cluster.get("v1", "ConfigMap", "shop", name).is_some();
    names.into_iter().filter(there).map(|name| format!("shop/{name}")).collect()
}

pub(crate) fn in_shop() -> Scope {
    Scope { namespace: Some("shop".to_owned()), ..Scope::all(config_maps()) }
}

#[tokio::test]
async fn lists_continue_as_watches() {
    for lists in [ListStrategy::Streams, ListStrategy::Pages] {
        let fleet = Fleet::builder().start().await.unwrap();
        // More than two pages.
        let cluster = shop(&fleet, 1200).await;
        let mut reader = Reader::start(&cluster, settings(lists)).await;
        let id = reader.watcher.follow(in_shop());
        reader.until("complete", |known| known.complete == 1).await;
        assert_eq!(reader.known.objects.len(), 1200, "{lists:?}");
        reader.until("live", |known| known.states.get(&id) == Some(&WatchState::Live)).await;

        cluster.apply(config_map("new", "1")).unwrap();
        cluster.apply(config_map("c0007", "2")).unwrap();
        cluster.delete("v1", "ConfigMap", "shop", "c0008");
        let changed = cluster.get("v1", "ConfigMap", "shop", "c0007").unwrap();
        let version = changed["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
        reader
            .until("changed", |known| {
                known.objects.get(&(id, "shop/c0007".to_owned())) == Some(&version)
                    && known.objects.contains_key(&(id, "shop/new".to_owned()))
                    && !known.objects.contains_key(&(id, "shop/c0008".to_owned()))
            })
            .await;
        assert_eq!(reader.known.said, [WatchState::CatchingUp, WatchState::Live]);
        let costs = reader.watcher.costs();
        assert_eq!(costs.relists, 0);
        let requests = costs.of(taffrail_cluster::Purpose::List).requests;
        assert_eq!(requests, if lists == ListStrategy::Pages { 3 } else { 0 });
    }
}

#[tokio::test]
async fn deletions_between_watches_show_after_the_next_list() {
    let fleet = Fleet::builder().window(50).start().await.unwrap();
    let cluster = shop(&fleet, 30).await;
    let mut reader = Reader::start(&cluster, settings(ListStrategy::Pages)).await;
    let id = reader.watcher.follow(in_shop());
    reader.until("live", |known| known.states.get(&id) == Some(&WatchState::Live)).await;
    let away = cluster.trouble(Trouble::Unreachable);
    reader.until("broken", |known| matches!(known.states.get(&id), Some(WatchState::Broken { .. }))).await;
    cluster.delete("v1", "ConfigMap", "shop", "c0003");
    // The versions in between are no longer kept.
    for round in 0..60 {
        cluster.apply(config_map("c0004", &format!("{round}!"))).unwrap();
    }
    cluster.compact();
    cluster.heal(away);
    reader
        .until("without the deleted one", |known| {
            known.complete == 2 && !known.objects.contains_key(&(id, "shop/c0003".to_owned()))
        })
        .await;
    assert_eq!(reader.names(), expected(&cluster, (0..30).map(|at| format!("c{at:04}"))));
    assert!(reader.watcher.costs().relists >= 1);
}

#[tokio::test]
async fn cut_connections_lose_nothing_and_cost_no_list() {
    let fleet = Fleet::builder().start().await.unwrap();
    let cluster = shop(&fleet, 10).await;
    let mut reader = Reader::start(&cluster, settings(ListStrategy::Streams)).await;
    let id = reader.watcher.follow(in_shop());
    reader.until("live", |known| known.states.get(&id) == Some(&WatchState::Live)).await;
    for round in 0..5 {
        cluster.cut_connections();
        let name = format!("after-{round}");
        cluster.apply(config_map(&name, "1")).unwrap();
        let key = (id, format!("shop/{name}"));
        reader.until("told", |known| known.objects.contains_key(&key)).await;
    }
    assert_eq!(reader.known.objects.len(), 15);
    assert_eq!(reader.known.complete, 1);
}

#[tokio::test]
async fn lines_cut_in_the_middle_are_sent_again() {
    let fleet = Fleet::builder().start().await.unwrap();
    let cluster = shop(&fleet, 3).await;
    for bytes in [1, 10, 200, 700] {
        let mut reader = Reader::start(&cluster, settings(ListStrategy::Streams)).await;
        cluster.fault(Fault::new(Trouble::Cut(bytes)).verb("watch").times(2));
        let id = reader.watcher.follow(in_shop());
        reader.until("live", |known| known.states.get(&id) == Some(&WatchState::Live)).await;
        assert_eq!(reader.known.objects.len(), 3, "cut after {bytes} bytes");
        assert!(reader.known.malformed.is_empty(), "{:?}", reader.known.malformed);
    }
}

#[tokio::test]
async fn forbidden_scope_is_reported_and_read_once_allowed() {
    let fleet = Fleet::builder().start().await.unwrap();
    let cluster = shop(&fleet, 3).await;
    let user = cluster.add_user("alice", &[]);
    let context = current(&cluster.kubeconfig_for(&user));
    let connected = Cluster::connect(&context, Deadline::after(PATIENCE)).await.unwrap();
    let (watcher, events) = Watcher::start(connected, Some(context), settings(ListStrategy::Streams));
    let mut reader = Reader { watcher, events, parser: Parser::new(), known: Known::default() };
    let id = reader.watcher.follow(in_shop());
    reader
        .until("forbidden", |known| matches!(known.states.get(&id), Some(WatchState::Forbidden { .. })))
        .await;
    let Some(WatchState::Forbidden { message }) = reader.known.states.get(&id) else { unreachable!() };
    assert!(message.contains("alice"), "{message}");
    assert_eq!(reader.known.connectivity, [], "who is refused was answered");

    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}]);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "reader", "namespace": "shop"}, "rules": rules});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "reader", "namespace": "shop"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]});
    cluster.apply(role).unwrap();
    cluster.apply(binding).unwrap();
    reader.until("live", |known| known.states.get(&id) == Some(&WatchState::Live)).await;
    assert_eq!(reader.known.objects.len(), 3);
}

#[tokio::test]
async fn missing_kind_is_absent_until_it_is_served() {
    let fleet = Fleet::builder().start().await.unwrap();
    let cluster = shop(&fleet, 0).await;
    let mut reader = Reader::start(&cluster, settings(ListStrategy::Streams)).await;
    let resource = ApiResource {
        group: "example.com".to_owned(),
        version: "v1".to_owned(),
        kind: "Widget".to_owned(),
        plural: "widgets".to_owned(),
        namespaced: true,
    };
    let id = reader.watcher.follow(Scope::all(resource));
    reader.until("absent", |known| known.states.get(&id) == Some(&WatchState::Absent)).await;
    cluster.apply(widgets()).unwrap();
    reader.until("live", |known| known.states.get(&id) == Some(&WatchState::Live)).await;
    cluster
        .apply(json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "shop"}}))
        .unwrap();
    reader.until("there", |known| known.objects.len() == 1).await;
}

#[tokio::test]
async fn silent_watch_is_reopened() {
    let fleet = Fleet::builder().start().await.unwrap();
    let cluster = shop(&fleet, 2).await;
    let mut settings = settings(ListStrategy::Pages);
    settings.silence = Duration::from_millis(400);
    let mut reader = Reader::start(&cluster, settings).await;
    cluster.fault(Fault::new(Trouble::SilentWatch).verb("watch").resource("configmaps").times(1));
    let id = reader.watcher.follow(in_shop());
    reader.until("live", |known| known.states.get(&id) == Some(&WatchState::Live)).await;
    cluster.apply(config_map("late", "1")).unwrap();
    reader.until("told", |known| known.objects.contains_key(&(id, "shop/late".to_owned()))).await;
    assert!(reader.watcher.costs().silences >= 1);
    assert_eq!(reader.known.complete, 1);
}

/// A proxy that buffers bodies swallows each watch, while lists and probes are answered.
#[tokio::test]
async fn scope_is_listed_again_where_its_watches_stay_silent() {
    for (bookmark_every, silences) in [(Duration::from_secs(60), 2), (Duration::from_millis(100), 1)] {
        let fleet = Fleet::builder().bookmark_every(bookmark_every).start().await.unwrap();
        let cluster = shop(&fleet, 2).await;
        let mut settings = settings(ListStrategy::Pages);
        settings.silence = Duration::from_secs(1);
        let mut reader = Reader::start(&cluster, settings).await;
        let id = reader.watcher.follow(in_shop());
        reader.until("live", |known| known.states.get(&id) == Some(&WatchState::Live)).await;
        cluster.apply(config_map("early", "1")).unwrap();
        reader.until("told", |known| known.objects.contains_key(&(id, "shop/early".to_owned()))).await;
        // Of a server that sends bookmarks one has come.
        tokio::time::sleep(Duration::from_millis(300)).await;
        cluster.fault(Fault::new(Trouble::SilentWatch).verb("watch").resource("configmaps"));
        cluster.cut_connections();
        let before = reader.watcher.costs().silences;
        cluster.apply(config_map("late", "1")).unwrap();
        reader.until("listed", |known| known.objects.contains_key(&(id, "shop/late".to_owned()))).await;
        assert_eq!(reader.watcher.costs().silences - before, silences, "bookmarks each {bookmark_every:?}");
    }
}

#[tokio::test]
async fn silent_server_is_lost_and_recovers() {
    let fleet = Fleet::builder().start().await.unwrap();
    let cluster = shop(&fleet, 2).await;
    let mut reader = Reader::start(&cluster, settings(ListStrategy::Streams)).await;
    let id = reader.watcher.follow(in_shop());
    reader.until("live", |known| known.states.get(&id) == Some(&WatchState::Live)).await;
    let hole = cluster.trouble(Trouble::Blackhole);
    reader.until("lost", |known| matches!(known.connectivity.last(), Some(Connectivity::Lost { .. }))).await;
    cluster.apply(config_map("meanwhile", "1")).unwrap();
    cluster.heal(hole);
    reader.until("found", |known| known.connectivity.last() == Some(&Connectivity::Live)).await;
    reader.until("told", |known| known.objects.contains_key(&(id, "shop/meanwhile".to_owned()))).await;
}

#[tokio::test]
async fn after_a_sleep_the_server_is_asked_and_each_watch_opened_again() {
    let fleet = Fleet::builder().start().await.unwrap();
    let cluster = shop(&fleet, 2).await;
    let settings = settings(ListStrategy::Streams);
    let clock = settings.clock.clone();
    let mut reader = Reader::start(&cluster, settings).await;
    let id = reader.watcher.follow(in_shop());
    reader.until("live", |known| known.states.get(&id) == Some(&WatchState::Live)).await;
    assert_eq!(reader.watcher.silence(), None);
    let night = Duration::from_secs(8 * 3600);
    clock.sleep(night);
    assert!(reader.watcher.silence().is_some_and(|silence| silence >= night));
    let said = reader.known.said.len();
    reader.until("live again", |known| known.said.len() >= said + 2).await;
    assert_eq!(reader.known.said[said..], [WatchState::CatchingUp, WatchState::Live]);
    let [Connectivity::Stale { silent }, Connectivity::Live] = &*reader.known.connectivity else {
        panic!("{:?}", reader.known.connectivity)
    };
    assert!(*silent >= night, "{silent:?}");
    assert_eq!((reader.watcher.silence(), reader.known.complete), (None, 1), "nothing was listed again");
}

#[tokio::test]
async fn what_comes_after_a_sleep_does_not_show_that_the_server_is_there() {
    let fleet = Fleet::builder().start().await.unwrap();
    let cluster = shop(&fleet, 2).await;
    let settings = settings(ListStrategy::Streams);
    let clock = settings.clock.clone();
    let mut reader = Reader::start(&cluster, settings).await;
    let id = reader.watcher.follow(in_shop());
    reader.until("live", |known| known.states.get(&id) == Some(&WatchState::Live)).await;
    cluster.fault(Fault::new(Trouble::Hang).resource("namespaces"));
    clock.sleep(Duration::from_secs(60));
    // As what a socket held when the machine fell asleep.
    cluster.apply(config_map("late", "1")).unwrap();
    reader.until("lost", |known| matches!(known.connectivity.last(), Some(Connectivity::Lost { .. }))).await;
    assert!(reader.watcher.silence().is_some());
}

#[tokio::test]
async fn a_server_restored_from_a_backup_is_listed_again() {
    let fleet = Fleet::builder().start().await.unwrap();
    let cluster = shop(&fleet, 2).await;
    let mut reader = Reader::start(&cluster, settings(ListStrategy::Streams)).await;
    let id = reader.watcher.follow(in_shop());
    for at in 0..20 {
        cluster.apply(config_map(&format!("lost-{at}"), "1")).unwrap();
    }
    reader.until("all there", |known| known.objects.len() == 22).await;
    // The probe has to have seen the version from which the server goes back.
    let probes = |reader: &Reader| reader.watcher.costs().of(taffrail_cluster::Purpose::Probe).requests;
    let before = probes(&reader);
    while probes(&reader) < before + 2 {
        tokio::task::yield_now().await;
        if let Some(event) = reader.events.try_next() {
            reader.take(event);
        }
    }
    cluster.restore(10).unwrap();
    reader
        .until("the older state", |known| {
            known.objects.len() == 12 && known.states.get(&id) == Some(&WatchState::Live)
        })
        .await;
}

#[tokio::test]
async fn retry_after_is_obeyed() {
    let fleet = Fleet::builder().start().await.unwrap();
    let cluster = shop(&fleet, 2).await;
    let mut reader = Reader::start(&cluster, settings(ListStrategy::Pages)).await;
    cluster.fault(Fault::new(Trouble::TooManyRequests(1)).verb("list").resource("configmaps").times(1));
    let begun = std::time::Instant::now();
    reader.watcher.follow(in_shop());
    reader.until("complete", |known| known.complete == 1).await;
    assert!(begun.elapsed() >= Duration::from_secs(1));
    assert!(
        reader
            .known
            .said
            .iter()
            .any(|state| matches!(state, WatchState::Broken { reason, .. } if *reason == "TooManyRequests"))
    );
}

#[tokio::test]
async fn garbage_errors_and_hangs_converge() {
    let fleet = Fleet::builder().start().await.unwrap();
    let cluster = shop(&fleet, 5).await;
    let troubles = [
        Trouble::Garbage,
        Trouble::ServerError("etcdserver: leader changed".to_owned()),
        Trouble::Expired,
        Trouble::Cut(3),
    ];
    for lists in [ListStrategy::Streams, ListStrategy::Pages] {
        let mut settings = settings(lists);
        settings.silence = Duration::from_secs(1);
        let mut reader = Reader::start(&cluster, settings).await;
        for trouble in &troubles {
            cluster.fault(Fault::new(trouble.clone()).resource("configmaps").times(1));
        }
        let id = reader.watcher.follow(in_shop());
        reader
            .until("live", |known| {
                known.states.get(&id) == Some(&WatchState::Live) && known.objects.len() == 5
            })
            .await;
        cluster.heal_all();
    }
}

#[tokio::test]
async fn overlong_line_is_reported_and_others_are_read() {
    let fleet = Fleet::builder().start().await.unwrap();
    let cluster = shop(&fleet, 2).await;
    let mut settings = settings(ListStrategy::Streams);
    settings.longest_line = 100_000;
    let mut reader = Reader::start(&cluster, settings).await;
    let id = reader.watcher.follow(in_shop());
    reader.until("live", |known| known.states.get(&id) == Some(&WatchState::Live)).await;
    cluster.apply(config_map("huge", &"x".repeat(900_000))).unwrap();
    cluster.apply(config_map("small", "1")).unwrap();
    reader.until("told", |known| known.objects.contains_key(&(id, "shop/small".to_owned()))).await;
    assert_eq!(reader.known.malformed.len(), 1);
    assert!(reader.known.malformed[0].contains("over 100000 bytes"), "{:?}", reader.known.malformed);
}

#[tokio::test]
async fn secrets_come_without_their_values() {
    let fleet = Fleet::builder().start().await.unwrap();
    let cluster = shop(&fleet, 0).await;
    cluster
        .apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "shop"},
            "data": {"password": "c2VjcmV0"}}))
        .unwrap();
    for lists in [ListStrategy::Streams, ListStrategy::Pages] {
        let context = current(&cluster.kubeconfig());
        let connected = Cluster::connect(&context, Deadline::after(PATIENCE)).await.unwrap();
        let (mut watcher, mut events) = Watcher::start(connected, None, settings(lists));
        let secrets =
            ApiResource { kind: "Secret".to_owned(), plural: "secrets".to_owned(), ..config_maps() };
        watcher.follow(Scope { projection: Projection::Full, ..Scope::all(secrets) });
        let mut seen = Vec::new();
        let mut complete = false;
        while !complete {
            if let WatchEvent::Batch(batch) = events.next().await.unwrap() {
                batch.read(&mut Parser::new(), |change| match change {
                    Change::Upsert(object) => {
                        seen.push(String::from_utf8_lossy(object.root().text().unwrap()).into_owned());
                    }
                    Change::InitDone => complete = true,
                    _ => {}
                });
            }
        }
        assert!(seen.iter().any(|text| text.contains("\"s\"")), "{seen:?}");
        assert!(!seen.iter().any(|text| text.contains("c2VjcmV0")), "{seen:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_may_share_the_one_connection_of_all_requests() {
    let fleet = Fleet::builder().start().await.unwrap();
    let cluster = fleet.cluster("a").await.unwrap();
    let context = current(&cluster.kubeconfig()).with_one_connection();
    let mut reader = Reader::as_of(context, settings(ListStrategy::Auto)).await;
    let ids: Vec<ScopeId> = [config_maps(), ApiResource::namespaces()]
        .into_iter()
        .map(|resource| reader.watcher.follow(Scope::all(resource)))
        .collect();
    let are_live = |known: &Known| ids.iter().all(|id| known.states.get(id) == Some(&WatchState::Live));
    reader.until("live", are_live).await;
    cluster.apply(namespace("new")).unwrap();
    let is_new = |known: &Known| known.objects.keys().any(|(_, name)| name == "/new");
    reader.until("told of the new one", is_new).await;
    assert_eq!(reader.watcher.cluster().connections(), 1);
}

#[tokio::test]
async fn many_watches_share_few_connections() {
    let fleet = Fleet::builder().start().await.unwrap();
    let cluster = shop(&fleet, 1).await;
    let mut reader = Reader::start(&cluster, settings(ListStrategy::Streams)).await;
    for _ in 0..200 {
        reader.watcher.follow(in_shop());
    }
    reader
        .until("live", |known| {
            known.states.values().filter(|state| **state == WatchState::Live).count() == 200
        })
        .await;
    // 90 streams each, and the one for lists and probes.
    assert_eq!(reader.watcher.cluster().connections(), 4);
}

#[tokio::test]
async fn items_of_another_kind_are_malformed_in_lists_and_in_watches() {
    const LIST: &str = r#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"10"},"items":[
        {"metadata":{"name":"plain","namespace":"shop"}},
        {"kind":"Secret","apiVersion":"v1","metadata":{"name":"listed","namespace":"shop"}},
        {"kind":"ConfigMap","apiVersion":"example.com/v1","metadata":{"name":"of-others","namespace":"shop"}}]}"#;
    const EVENTS: &str = concat!(
        r#"{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"new","namespace":"shop","resourceVersion":"11"}}}"#,
        "\n",
        r#"{"type":"ADDED","object":{"kind":"Secret","apiVersion":"v1","metadata":{"name":"watched","namespace":"shop","resourceVersion":"12"}}}"#,
        "\n",
    );
    let server = Server::start(|seen| match seen.query.contains("watch=") {
        true => Reply::stuck(EVENTS),
        false => Reply::json(200, LIST),
    });
    let context = context(&format!("server: {}", server.url()), "");
    let mut reader = Reader::as_of(context, settings(ListStrategy::Pages)).await;
    reader.watcher.follow(in_shop());
    reader.until("told of all", |known| known.malformed.len() >= 3 && known.objects.len() >= 2).await;
    assert_eq!(reader.names(), ["shop/new", "shop/plain"]);
    assert!(
        reader.known.malformed.iter().all(|why| why.contains("of another kind")),
        "{:?}",
        reader.known.malformed
    );
}
