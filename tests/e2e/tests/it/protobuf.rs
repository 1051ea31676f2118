//! Tests that objects in Protobuf equal those in JSON: watches use the one form, lists the other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use taffrail_cluster::{Cluster, Deadline, Kubeconfig, ListRequest, ListStrategy, WatchSettings};
use taffrail_index::{IndexSettings, ScopeState};
use taffrail_observe::{KindSettings, Live, LiveSettings};

use crate::harness::{CLUSTER, plane};

const SPECIMENS: &str = include_str!("../data/specimens.yaml");

const PATIENCE: Duration = Duration::from_secs(60);

/// Kinds of the specimens or of every cluster, whose fields have the odd types of Kubernetes.
const EXPECTED: [&str; 22] = [
    "ConfigMap",
    "ControllerRevision",
    "CronJob",
    "DaemonSet",
    "Deployment",
    "FlowSchema",
    "HorizontalPodAutoscaler",
    "Ingress",
    "Job",
    "Lease",
    "Namespace",
    "NetworkPolicy",
    "Node",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodDisruptionBudget",
    "ReplicaSet",
    "ResourceQuota",
    "Service",
    "StatefulSet",
    "ValidatingWebhookConfiguration",
];

/// Removes the fields that the index omits, and empty ones.
fn essence(mut value: Value) -> Value {
    // Protobuf does not carry the type of an object within an object: its position implies it.
    let templates = value.get_mut("volumeClaimTemplates").and_then(Value::as_array_mut).into_iter().flatten();
    for template in templates.filter_map(Value::as_object_mut) {
        template.retain(|key, _| key != "apiVersion" && key != "kind");
    }
    match value {
        Value::Array(all) => all.into_iter().map(essence).collect(),
        Value::Object(members) => {
            let is_left_out = |key: &str| {
                let heartbeat = key == "lastHeartbeatTime" || key == "lastProbeTime";
                heartbeat
                    || matches!(key, "managedFields" | "resourceVersion" | "selfLink")
                    || key == "kubectl.kubernetes.io/last-applied-configuration"
            };
            let kept = members.into_iter().filter(|(key, _)| !is_left_out(key));
            let kept = kept.map(|(key, value)| (key, essence(value)));
            let is_empty = |value: &Value| match value {
                Value::Null => true,
                Value::Array(all) => all.is_empty(),
                Value::Object(all) => all.is_empty(),
                _ => false,
            };
            Value::Object(kept.filter(|(_, value)| !is_empty(value)).collect())
        }
        Value::String(text) => match text.strip_suffix(".000000Z") {
            Some(whole) => format!("{whole}Z").into(),
            None => text.into(),
        },
        other => other,
    }
}

fn is_known(live: &Live) -> bool {
    let snapshot = live.snapshot();
    snapshot.scopes().next().is_some()
        && snapshot
            .scopes()
            .all(|(_, _, scope)| !matches!(scope.state, ScopeState::CatchingUp | ScopeState::Unread))
}

async fn compare(kubeconfig: &Path) {
    let loaded = Kubeconfig::load(Some(kubeconfig), None, None).expect("a kubeconfig");
    let context = loaded.context(CLUSTER).expect("a context");
    let cluster = Cluster::connect(&context, Deadline::after(PATIENCE)).await.expect("a connection");
    let lists = cluster.clone();
    let mut feeds = WatchSettings::default();
    // Pages, which Taffrail requests from slow servers, are JSON.
    feeds.lists = ListStrategy::Streams;
    let settings = LiveSettings {
        feeds,
        index: IndexSettings { keep: Arc::new(|_| true), ..IndexSettings::default() },
        kinds: KindSettings {
            include: vec![("coordination.k8s.io".to_owned(), "*".to_owned())],
            bodies: [
                ("", "ConfigMap"),
                ("apps", "ControllerRevision"),
                ("networking.k8s.io", "NetworkPolicy"),
            ]
            .map(|(group, kind)| (group.to_owned(), kind.to_owned()))
            .to_vec(),
            ..KindSettings::default()
        },
        ..LiveSettings::default()
    };
    let live = Live::start(cluster, Some(context), settings).await.expect("a cluster");
    let begun = Instant::now();
    while !is_known(&live) {
        assert!(begun.elapsed() < PATIENCE, "the cluster is not known yet");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut kinds = BTreeSet::new();
    // Kinds whose controllers have not created anything yet are read again.
    while !EXPECTED.iter().all(|kind| kinds.contains(*kind)) {
        let missing: Vec<_> = EXPECTED.iter().filter(|kind| !kinds.contains(**kind)).collect();
        assert!(begun.elapsed() < PATIENCE, "none of {missing:?} was seen in the same version");
        let snapshot = live.snapshot();
        let mut known = BTreeMap::new();
        for object in snapshot.all() {
            if let (Some(body), Some(resource)) = (object.body(), object.resource()) {
                known.insert(
                    (resource.clone(), object.uid().to_string()),
                    (object.resource_version().into_owned(), body),
                );
            }
        }
        let resources: BTreeSet<_> = known.keys().map(|(resource, _)| resource.clone()).collect();
        for resource in resources {
            let listing =
                lists.with_timeout(PATIENCE).list(&ListRequest::all(&resource)).await.expect("a list");
            for object in listing.objects {
                let object: Value = serde_json::from_slice(object.text()).expect("JSON");
                let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
                let Some((version, body)) = known.get(&(resource.clone(), text("uid"))) else { continue };
                // Other tests change the cluster meanwhile.
                if *version != text("resourceVersion") {
                    continue;
                }
                let ours: Value = serde_json::from_slice(body).expect("JSON");
                let (ours, theirs) = (essence(ours), essence(object));
                assert_eq!(ours, theirs, "{}", resource.full_name());
                kinds.insert(resource.kind.clone());
            }
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[test]
fn protobuf_and_json_give_equal_objects() {
    let Some(plane) = plane() else { return };
    plane.apply(CLUSTER, SPECIMENS).expect("the specimens are applied");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(compare(plane.kubeconfig()));
    plane
        .kubectl(CLUSTER, &["delete", "--wait=false", "namespace", "specimens"])
        .expect("the namespace goes");
    plane
        .kubectl(CLUSTER, &["delete", "validatingwebhookconfiguration/specimen", "persistentvolume/specimen"])
        .expect("what is in no namespace goes");
}
