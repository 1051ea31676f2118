//! The status of a cluster that a hub writes into the objects that stand for it, on a real API server.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taffrail_testkit::hub::Hub;
use taffrail_testkit::kube::{ControlPlane, Options};
use taffrail_testkit::objects;

use crate::harness::{CLUSTER, built, unavailable};

/// The cluster for which objects of [`CLUSTER`] stand.
const MANAGED: &str = "kube-2";

/// Returns the kind of an object that stands for a cluster. With `is_shared`, each condition has an owner of its own.
fn kind(group: &str, kind: &str, is_shared: bool) -> Value {
    let text = json!({"type": "string"});
    let of_condition = ["type", "status", "reason", "message", "lastTransitionTime"];
    let properties: Value = of_condition.map(|name| (name.to_owned(), text.clone())).into_iter().collect();
    let mut conditions =
        json!({"type": "array", "items": {"type": "object", "properties": properties, "required": ["type"]}});
    if is_shared {
        conditions["x-kubernetes-list-type"] = json!("map");
        conditions["x-kubernetes-list-map-keys"] = json!(["type"]);
    }
    let status = json!({
        "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"conditions": conditions}});
    let schema = json!({"type": "object", "properties": {"status": status}});
    objects::with_status_subresource(objects::definition(group, "v1", kind, schema))
}

#[test]
fn a_hub_writes_conditions_where_each_has_an_owner_of_its_own() {
    if unavailable() {
        return;
    }
    let name = format!("e2e-conditions-{}", std::process::id());
    let options = Options { name, clusters: 2, bare: 2, nodes: 0, ..Options::default() };
    let plane = ControlPlane::start(&options).unwrap_or_else(|error| panic!("{error:#}"));
    let (profiles, managed) = ("multicluster.x-k8s.io", "cluster.open-cluster-management.io");
    let kinds = [kind(profiles, "ClusterProfile", true), kind(managed, "ManagedCluster", false)];
    let all = |objects: &[Value]| -> String { objects.iter().map(|it| format!("---\n{it}\n")).collect() };
    plane.apply(CLUSTER, &all(&kinds)).expect("the kinds");
    let established = "--for=condition=Established";
    for crd in [
        "crd/clusterprofiles.multicluster.x-k8s.io",
        "crd/managedclusters.cluster.open-cluster-management.io",
    ] {
        plane.wait(CLUSTER, &[established, crd]).expect("it is served");
    }
    let identity =
        plane.kubectl(MANAGED, &["get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}"]);
    let identity = identity.expect("the identity");
    let object = |group: &str, kind: &str| {
        let healthy = json!({
            "type": "ControlPlaneHealthy", "status": "True", "reason": "Healthy", "message": "",
            "lastTransitionTime": "2026-03-01T12:00:00Z",
        });
        json!({
            "apiVersion": format!("{group}/v1"), "kind": kind,
            "metadata": {"name": "eu", "namespace": "fleet"},
            "status": {
                "conditions": [healthy],
                "clusterClaims": [{"name": "id.k8s.io", "value": identity}],
                "accessProviders": [{"cluster": {"server": plane.server(1)}}],
            },
        })
    };
    let standing = [object(profiles, "ClusterProfile"), object(managed, "ManagedCluster")];
    plane.apply(CLUSTER, &all(&[objects::namespace("fleet")])).expect("a namespace");
    plane.apply(CLUSTER, &all(&standing)).expect("objects");
    plane.apply_status(CLUSTER, &all(&standing)).expect("their statuses");
    // An app of the other cluster that is not ready.
    plane.apply(MANAGED, &all(&[objects::namespace("flux-system")])).expect("a namespace");
    let app = json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"name": "shop", "namespace": "flux-system"},
        "spec": {"interval": "10m", "path": "./", "prune": true, "sourceRef": {"kind": "GitRepository", "name": "shop"}},
        "status": {"observedGeneration": 1, "conditions": [{
            "type": "Ready", "status": "False", "reason": "BuildFailed", "message": "no such path",
            "lastTransitionTime": "2026-03-01T12:00:00Z", "observedGeneration": 1}]},
    });
    let revision = "main@sha1:0123456789abcdef0123456789abcdef01234567";
    let ready = |reason: &str| {
        json!([{
            "type": "Ready", "status": "True", "reason": reason, "message": "done",
            "lastTransitionTime": "2026-03-01T12:00:00Z", "observedGeneration": 1}])
    };
    let source = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
        "metadata": {"name": "shop", "namespace": "flux-system"},
        "spec": {"interval": "10m", "url": "https://git.example.com/shop"},
        "status": {
            "observedGeneration": 1, "conditions": ready("Succeeded"),
            "artifact": {
                "revision": revision, "digest": "sha256:0123", "path": "shop.tar.gz",
                "url": "http://source-controller/shop.tar.gz", "lastUpdateTime": "2026-03-01T12:00:00Z"}},
    });
    let flux = all(&[source, app]);
    plane.apply(MANAGED, &flux).expect("an app");
    plane.apply_status(MANAGED, &flux).expect("its status");

    let get = |resource: &str| -> Value {
        let get = ["get", resource, "eu", "-n", "fleet", "--show-managed-fields", "-o", "json"];
        serde_json::from_str(&plane.kubectl(CLUSTER, &get).expect("the object")).expect("it is JSON")
    };
    let before = get("managedclusters");
    let data = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(built());
    command
        .args(["hub", "serve", "--listen", "127.0.0.1:0", "--all-contexts", "--write-cluster-conditions"])
        .arg("--data")
        .arg(data.path().join("hub"))
        .arg("--kubeconfig")
        .arg(plane.kubeconfig())
        .env("NO_COLOR", "1")
        .env_remove("KUBECONFIG");
    let hub = Hub::start(&mut command).unwrap_or_else(|error| panic!("{error:#}"));

    let until = |wanted: &[(&str, &str, &str)]| -> Value {
        let begun = Instant::now();
        loop {
            let profile = get("clusterprofiles");
            let conditions = profile["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let has = |(kind, status, reason): &(&str, &str, &str)| {
                conditions
                    .iter()
                    .any(|it| it["type"] == *kind && it["status"] == *status && it["reason"] == *reason)
            };
            if wanted.iter().all(has) {
                return profile;
            }
            let is_late = begun.elapsed() > Duration::from_secs(120);
            assert!(!is_late, "{profile:#}\n{:#?}", hub.get("/api/v1/apps"));
            std::thread::sleep(Duration::from_millis(200));
        }
    };
    let (live, apps_ready) = ("taffrail.dev/Live", "taffrail.dev/AppsReady");
    let healthy = ("ControlPlaneHealthy", "True", "Healthy");
    let first = until(&[healthy, (live, "True", "Live"), (apps_ready, "False", "Failed")]);
    let is_own = |entry: &&Value| entry["manager"] == "taffrail-hub";
    let managers = first["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let own: Vec<&Value> = managers.iter().filter(is_own).collect();
    assert!(own.len() == 1 && own[0]["subresource"] == "status", "{managers:#?}");
    // A list of conditions that has one owner stays that owner's.
    assert_eq!(get("managedclusters"), before);

    let healed = json!({"status": {
        "conditions": ready("ReconciliationSucceeded"), "lastAppliedRevision": revision,
        "lastAttemptedRevision": revision}})
    .to_string();
    let patch =
        ["patch", "kustomization", "shop", "-n", "flux-system", "--subresource=status", "--type=merge"];
    plane.kubectl(MANAGED, &[&patch[..], &["-p", &healed]].concat()).expect("its status");
    let second = until(&[healthy, (live, "True", "Live"), (apps_ready, "True", "Ready")]);
    let since = |object: &Value, kind: &str| {
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|it| it["type"] == kind).map(|it| it["lastTransitionTime"].clone())
    };
    assert_eq!(since(&second, live), since(&first, live), "it did not turn");
    assert_ne!(since(&second, apps_ready), since(&first, apps_ready));
    drop(hub);
}
