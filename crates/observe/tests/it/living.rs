//! A cluster all of whose objects are followed.

use std::time::Duration;

use futures::StreamExt;
use serde_json::{Value, json};
use taffrail_cluster::{Cluster, Connectivity, Context, Deadline, Kubeconfig, ListStrategy, WatchSettings};
use taffrail_index::{Notice, ScopeState, Snapshot};
use taffrail_observe::{KindSettings, Live, LiveSettings};
use taffrail_sim::{Fault, Fleet, Trouble};
use taffrail_status::Status;
use taffrail_testkit::objects::{namespace, widgets};

/// Maximum time of each wait; no test that succeeds needs so much, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns the current context of a kubeconfig.
pub(crate) fn current(kubeconfig: &str) -> Context {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), kubeconfig).unwrap();
    Kubeconfig::load(Some(file.path()), None, None).unwrap().current().unwrap()
}

fn settings() -> LiveSettings {
    let mut feeds = WatchSettings::default();
    feeds.lists = ListStrategy::Streams;
    feeds.probe_after = Duration::from_millis(300);
    feeds.probe_timeout = Duration::from_millis(500);
    feeds.longest_pause = Duration::from_millis(500);
    feeds.forbidden_pause = Duration::from_millis(200);
    LiveSettings { feeds, ..LiveSettings::default() }
}

async fn live(cluster: &taffrail_sim::Cluster) -> Live {
    live_by(cluster, settings()).await
}

async fn live_by(cluster: &taffrail_sim::Cluster, settings: LiveSettings) -> Live {
    let context = current(&cluster.kubeconfig());
    let connected = Cluster::connect(&context, Deadline::after(PATIENCE)).await.unwrap();
    Live::start(connected, Some(context), settings).await.unwrap()
}

/// Waits for a snapshot for which `holds` returns true; panics with `what` if none comes.
#[track_caller]
fn until<'l>(
    live: &'l Live,
    what: &'static str,
    holds: impl Fn(&Snapshot) -> bool + 'l,
) -> impl Future<Output = Snapshot> + 'l {
    let place = std::panic::Location::caller();
    async move {
        let mut changes = live.subscribe(10_000).await.expect("it is followed");
        let waiting = async {
            loop {
                let snapshot = live.snapshot();
                if holds(&snapshot) {
                    return snapshot;
                }
                changes.next().await.expect("it is followed");
            }
        };
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(snapshot) => snapshot,
            Err(_) => {
                let scopes = live.snapshot();
                let odd: Vec<String> = scopes
                    .scopes()
                    .filter(|(.., scope)| scope.state != ScopeState::Live)
                    .map(|(kind, namespace, scope)| {
                        let kind = scopes.resource(kind).map(|resource| resource.full_name());
                        format!("{kind:?} {namespace:?} {scope:?}")
                    })
                    .collect();
                panic!("{place}: never {what}: {} objects; {odd:#?}", scopes.len())
            }
        }
    }
}

fn is_live(snapshot: &Snapshot) -> bool {
    snapshot.scopes().count() > 30 && snapshot.scopes().all(|(.., scope)| scope.state == ScopeState::Live)
}

fn status(snapshot: &Snapshot, group: &str, kind: &str, name: &str) -> Option<Status> {
    snapshot.find(group, kind, "shop", name).map(|object| object.status())
}

fn deployment(replicas: i64) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "web:1"}]}}}})
}

async fn shop(fleet: &Fleet) -> taffrail_sim::Cluster {
    let cluster = fleet.cluster("dublin").await.unwrap();
    cluster.apply(namespace("shop")).unwrap();
    cluster
}

/// Returns the group and name of each kind of which objects are followed; the index knows all that are served.
fn followed(snapshot: &Snapshot) -> Vec<(&str, &str)> {
    let has_scope = |id| snapshot.scopes().any(|(own, ..)| own == id);
    let kinds = snapshot.kinds().filter(|(id, _)| has_scope(*id));
    kinds.map(|(_, resource)| (&*resource.group, &*resource.kind)).collect()
}

#[tokio::test]
async fn all_objects_are_known_and_stay_live() {
    let fleet = Fleet::builder().nodes(2).start().await.unwrap();
    let cluster = shop(&fleet).await;
    cluster.apply(deployment(3)).unwrap();
    let live = live(&cluster).await;
    let snapshot = until(&live, "live", is_live).await;
    // Leases and second views are left out.
    assert!(!followed(&snapshot).contains(&("coordination.k8s.io", "Lease")));
    assert!(!followed(&snapshot).contains(&("events.k8s.io", "Event")));
    assert!(snapshot.find("", "Namespace", "", "shop").is_some());

    let ready = |snapshot: &Snapshot| status(snapshot, "apps", "Deployment", "web") == Some(Status::Current);
    let snapshot = until(&live, "rolled out", ready).await;
    let web = snapshot.find("apps", "Deployment", "shop", "web").unwrap();
    let below: Vec<String> = snapshot
        .tree(&[web.handle()])
        .filter_map(|node| node.object(&snapshot).map(|object| object.object_name().kind))
        .collect();
    assert_eq!(below, ["Deployment", "ReplicaSet", "Pod", "Pod", "Pod"]);

    cluster.delete("apps/v1", "Deployment", "shop", "web");
    let gone = |snapshot: &Snapshot| {
        let pods = snapshot.find_kind("", "Pod").map(|pods| snapshot.of_kind(pods, Some("shop")).count());
        pods == Some(0) && snapshot.find("apps", "Deployment", "shop", "web").is_none()
    };
    until(&live, "gone", gone).await;
}

#[tokio::test]
async fn only_requested_kinds_are_followed() {
    let fleet = Fleet::builder().nodes(2).start().await.unwrap();
    let cluster = shop(&fleet).await;
    cluster.apply(deployment(3)).unwrap();
    let pair = |group: &str, kind: &str| (group.to_owned(), kind.to_owned());
    let kinds = KindSettings {
        only: vec![pair("apps", "*"), pair("", "Pod"), pair("coordination.k8s.io", "Lease")],
        exclude: vec![pair("apps", "ControllerRevision")],
        ..KindSettings::default()
    };
    let live = live_by(&cluster, LiveSettings { kinds, ..settings() }).await;
    let ready = |snapshot: &Snapshot| status(snapshot, "apps", "Deployment", "web") == Some(Status::Current);
    let snapshot = until(&live, "rolled out", ready).await;
    let mut kinds: Vec<&str> = followed(&snapshot).into_iter().map(|(_, kind)| kind).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["DaemonSet", "Deployment", "Lease", "Pod", "ReplicaSet", "StatefulSet"]);
}

#[tokio::test]
async fn a_pod_that_fails_fails_its_deployment_in_the_same_batch() {
    let fleet = Fleet::builder().controllers(false).start().await.unwrap();
    let cluster = shop(&fleet).await;
    let uid = |object: &Value| object["metadata"]["uid"].as_str().unwrap().to_owned();
    let mut web = deployment(1);
    web["metadata"]["generation"] = json!(1);
    web["status"] = json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "unavailableReplicas": 1,
        "conditions": [{"type": "Available", "status": "False"},
            {"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"}]});
    cluster.apply(web).unwrap();
    let web = cluster.get("apps/v1", "Deployment", "shop", "web").unwrap();
    let owner = |kind: &str, object: &Value| {
        let name = &object["metadata"]["name"];
        json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid(object), "controller": true}])
    };
    cluster
        .apply(json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"name": "web-1", "namespace": "shop", "generation": 1, "labels": {"app": "web"},
                "annotations": {"deployment.kubernetes.io/revision": "1"}, "ownerReferences": owner("Deployment", &web)},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": web["spec"]["template"]},
            "status": {"observedGeneration": 1, "replicas": 1}}))
        .unwrap();
    let set = cluster.get("apps/v1", "ReplicaSet", "shop", "web-1").unwrap();
    let pod = |waiting: &str| {
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "web-1-a", "namespace": "shop", "labels": {"app": "web"},
                "ownerReferences": owner("ReplicaSet", &set)},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "web:1"}]},
            "status": {"phase": "Pending", "containerStatuses": [
                {"name": "c", "state": {"waiting": {"reason": waiting, "message": "words of the kubelet"}}}]}})
    };
    cluster.apply(pod("ContainerCreating")).unwrap();
    let live = live(&cluster).await;
    let waiting = |snapshot: &Snapshot| {
        is_live(snapshot) && status(snapshot, "apps", "Deployment", "web") == Some(Status::InProgress)
    };
    until(&live, "waiting", waiting).await;

    let mut changes = live.subscribe(1000).await.unwrap();
    assert!(matches!(changes.next().await, Some(Notice::Reread { .. })));
    cluster.apply(pod("ImagePullBackOff")).unwrap();
    let Some(Notice::Batch(batch)) = changes.next().await else { panic!("no batch") };
    let mut kinds: Vec<(String, Status)> = Vec::new();
    let snapshot = live.snapshot();
    for change in &batch.changes {
        let resource = snapshot.resource(change.kind).unwrap();
        kinds.extend(change.after.as_ref().map(|after| (resource.kind.clone(), after.status)));
    }
    kinds.sort();
    let failed = ["Deployment", "Pod", "ReplicaSet"].map(|kind| (kind.to_owned(), Status::Failed));
    assert_eq!(kinds, failed);
    let web = snapshot.find("apps", "Deployment", "shop", "web").unwrap();
    assert_eq!(web.cause().map(|cause| cause.kind.as_str()), Some("Pod"));
    assert!(web.message().contains("words of the kubelet"), "{}", web.message());
}

#[tokio::test]
async fn adding_and_removing_kinds_leaves_others_alone() {
    let fleet = Fleet::builder().start().await.unwrap();
    let cluster = shop(&fleet).await;
    let live = live(&cluster).await;
    until(&live, "live", is_live).await;
    let before = live.costs().await;
    cluster.apply(widgets()).unwrap();
    let known =
        |snapshot: &Snapshot| snapshot.find_kind("example.com", "Widget").is_some() && is_live(snapshot);
    until(&live, "known", known).await;
    cluster
        .apply(json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "shop"}}))
        .unwrap();
    until(&live, "there", |snapshot| snapshot.find("example.com", "Widget", "shop", "w").is_some()).await;
    let watches = |costs: taffrail_cluster::Costs| costs.of(taffrail_cluster::Purpose::Watch).requests;
    assert_eq!(watches(live.costs().await), watches(before) + 1, "only the new kind is watched anew");

    cluster.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "widgets.example.com");
    until(&live, "gone", |snapshot| snapshot.find("example.com", "Widget", "shop", "w").is_none()).await;
}

/// If half of a discovery fails, the index keeps the kinds of that half: it is not known that they are gone.
#[tokio::test]
async fn half_of_a_discovery_that_fails_takes_no_kind_away() {
    let fleet = Fleet::builder().start().await.unwrap();
    let cluster = shop(&fleet).await;
    let live = live(&cluster).await;
    until(&live, "live", is_live).await;
    let before = live.costs().await;
    // The next time that it is asked which kinds there are.
    cluster.fault(Fault::new(Trouble::Garbage).verb("get").path("/apis").times(1));
    cluster.apply(widgets()).unwrap();
    let known =
        |snapshot: &Snapshot| snapshot.find_kind("example.com", "Widget").is_some() && is_live(snapshot);
    until(&live, "known", known).await;
    let watches = |costs: taffrail_cluster::Costs| costs.of(taffrail_cluster::Purpose::Watch).requests;
    assert_eq!(watches(live.costs().await), watches(before) + 1, "only the new kind is watched anew");
}

#[tokio::test]
async fn a_cluster_that_stops_answering_turns_stale_and_live_again() {
    let fleet = Fleet::builder().start().await.unwrap();
    let cluster = shop(&fleet).await;
    let live = live(&cluster).await;
    until(&live, "live", is_live).await;
    let hole = cluster.trouble(Trouble::Blackhole);
    let mut contact = live.contact();
    let lost = contact.wait_for(|contact| matches!(contact, Connectivity::Lost { .. }));
    tokio::time::timeout(PATIENCE, lost).await.expect("it is noticed").unwrap();
    let stale = |snapshot: &Snapshot| {
        let none_is_live = snapshot.scopes().all(|(.., scope)| scope.state != ScopeState::Live);
        none_is_live && snapshot.find("", "Namespace", "", "shop").is_some()
    };
    until(&live, "stale, with what was known", stale).await;
    cluster.apply(namespace("meanwhile")).unwrap();
    cluster.heal(hole);
    let back =
        |snapshot: &Snapshot| is_live(snapshot) && snapshot.find("", "Namespace", "", "meanwhile").is_some();
    until(&live, "live again", back).await;
}

#[tokio::test]
async fn what_was_known_before_a_sleep_is_stale_until_it_is_watched_again() {
    let fleet = Fleet::builder().start().await.unwrap();
    let cluster = shop(&fleet).await;
    let settings = settings();
    let clock = settings.feeds.clock.clone();
    let live = live_by(&cluster, settings).await;
    until(&live, "live", is_live).await;
    let hung = cluster.fault(Fault::new(Trouble::Hang).verb("watch"));
    clock.sleep(Duration::from_secs(3600));
    // The server answers, and still no scope is live.
    let stale = |snapshot: &Snapshot| snapshot.scopes().all(|(.., scope)| scope.state != ScopeState::Live);
    until(&live, "stale", stale).await;
    let mut contact = live.contact();
    let back = contact.wait_for(|contact| *contact == Connectivity::Live);
    tokio::time::timeout(PATIENCE, back).await.expect("it answers").unwrap();
    assert!(stale(&live.snapshot()));
    cluster.heal(hung);
    until(&live, "live again", is_live).await;
}

#[tokio::test]
async fn what_was_known_is_shown_at_once_and_only_what_changed_is_read() {
    let fleet = Fleet::builder().start().await.unwrap();
    let cluster = shop(&fleet).await;
    let config_map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}});
    for name in ["old", "gone"] {
        cluster.apply(config_map(name)).unwrap();
    }
    let first = live(&cluster).await;
    let has = |snapshot: &Snapshot, name: &str| snapshot.find("", "ConfigMap", "shop", name).is_some();
    until(&first, "live", |snapshot| is_live(snapshot) && has(snapshot, "gone")).await;
    let saved = first.save().await.unwrap();
    let full = first.costs().await.of(taffrail_cluster::Purpose::Watch).bytes;
    drop(first);
    cluster.delete("v1", "ConfigMap", "shop", "gone");
    cluster.apply(config_map("new")).unwrap();

    let context = current(&cluster.kubeconfig());
    let connect = async || Cluster::connect(&context, Deadline::after(PATIENCE)).await.unwrap();
    let warm = LiveSettings { warm: Some(saved.clone()), ..settings() };
    let second = Live::start(connect().await, Some(context.clone()), warm).await.unwrap();
    assert!(second.cold_start().is_none(), "{:?}", second.cold_start());
    let at_once = second.snapshot();
    assert!(has(&at_once, "old") && has(&at_once, "gone"));
    assert!(at_once.scopes().all(|(.., scope)| scope.state == ScopeState::Stale));
    let caught_up = |snapshot: &Snapshot| is_live(snapshot) && has(snapshot, "new") && !has(snapshot, "gone");
    let snapshot = until(&second, "caught up", caught_up).await;
    assert!(has(&snapshot, "old"));
    let differences = second.costs().await;
    assert!(differences.of(taffrail_cluster::Purpose::Watch).bytes * 5 < full, "{differences:?} of {full}");
    assert_eq!(differences.of(taffrail_cluster::Purpose::List).requests, 0);

    // What is of another cluster, or damaged, is not begun with.
    let other = fleet.cluster("paris").await.unwrap();
    let other_context = current(&other.kubeconfig());
    let connected = Cluster::connect(&other_context, Deadline::after(PATIENCE)).await.unwrap();
    let warm = LiveSettings { warm: Some(saved.clone()), ..settings() };
    let cold = Live::start(connected, None, warm).await.unwrap();
    assert!(cold.cold_start().unwrap().to_string().contains("another cluster"), "{:?}", cold.cold_start());
    let half = saved[..saved.len() / 2].to_vec();
    for damaged in [Vec::new(), b"{}".to_vec(), half] {
        let warm = LiveSettings { warm: Some(damaged), ..settings() };
        let cold = Live::start(connect().await, None, warm).await.unwrap();
        assert!(cold.cold_start().is_some());
        until(&cold, "live all the same", |snapshot| is_live(snapshot) && has(snapshot, "new")).await;
    }
}

#[tokio::test]
async fn a_dead_conversion_webhook_breaks_one_kind() {
    const SAID: &str = "conversion webhook for example.com/v1, Kind=Widget failed: Post \\\"https://webhook.shop.svc:443/convert?timeout=30s\\\": dial tcp 10.0.0.7:443: connect: connection refused";
    let fleet = Fleet::builder().start().await.unwrap();
    let cluster = shop(&fleet).await;
    cluster.apply(widgets()).unwrap();
    cluster
        .apply(json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "shop"}}))
        .unwrap();
    let live = live(&cluster).await;
    until(&live, "live", is_live).await;
    let mut contact = live.contact();
    contact.mark_unchanged();

    let said = SAID.replace('\\', "");
    let dead = cluster.fault(Fault::new(Trouble::ServerError(said.clone())).resource("widgets.example.com"));
    cluster.cut_connections();
    let widgets = |snapshot: &Snapshot| {
        let kind = snapshot.find_kind("example.com", "Widget").unwrap();
        snapshot.scope(kind, "shop")
    };
    let snapshot = until(&live, "broken", |snapshot| {
        let others = snapshot.scopes().filter(|(.., scope)| scope.state != ScopeState::Live).count();
        let own = widgets(snapshot);
        // A watch may be told that its connection broke before it is told of the webhook.
        own.state == ScopeState::Broken && own.reason.contains("webhook") && others == 1
    })
    .await;
    assert!(widgets(&snapshot).reason.contains("connection refused"), "{}", widgets(&snapshot).reason);
    assert!(snapshot.find("example.com", "Widget", "shop", "w").is_some(), "what was known stays");
    let beside =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "beside", "namespace": "shop"}});
    cluster.apply(beside).unwrap();
    until(&live, "told beside", |snapshot| snapshot.find("", "ConfigMap", "shop", "beside").is_some()).await;
    cluster.heal(dead);
    until(&live, "live again", is_live).await;
}
