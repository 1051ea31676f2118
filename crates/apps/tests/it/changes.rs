//! Changes before an app turned red.

use serde_json::{Value, json};
use taffrail_api::text;
use taffrail_apps::{App, Changes, Objects, ReadQuery, Snapshot, apps, changes};
use taffrail_object::{ObjectKey, Projection};
use taffrail_status::ActiveRules;
use taffrail_status::assess::Change;

use super::dump::{NOW, holding};
use super::server::Server;

/// Returns a ReplicaSet of the Deployment `shop/web` with this creation time, image and arguments.
fn set(name: &str, revision: &str, created: &str, image: &str, args: &[&str]) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "shop", "uid": format!("u-{name}"), "creationTimestamp": created,
            "generation": 1, "annotations": {"deployment.kubernetes.io/revision": revision},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u-web", "controller": true}]},
        "spec": {"replicas": 1, "template": {"metadata": {"labels": {"app": "web", "pod-template-hash": name}},
            "spec": {"containers": [{"name": "app", "image": image, "args": args}]}}},
        "status": {"observedGeneration": 1, "replicas": 1, "availableReplicas": 0}})
}

fn deployment(revision: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "uid": "u-web", "generation": 2, "creationTimestamp": "2026-02-01T00:00:00Z",
            "labels": {"app.kubernetes.io/instance": "shop"}, "annotations": {"deployment.kubernetes.io/revision": revision}},
        "spec": {"replicas": 1},
        "status": {"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "conditions": [
            {"type": "Available", "status": "False", "lastTransitionTime": "2026-03-01T11:50:00Z"},
            {"type": "Progressing", "status": "True", "lastTransitionTime": "2026-03-01T11:40:00Z"}]}})
}

/// Returns a Pod of the ReplicaSet that crashes and uses the ConfigMap `settings` and the Secret `login`.
fn pod(owner: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "web-1", "namespace": "shop", "uid": "u-pod", "creationTimestamp": "2026-03-01T11:49:00Z",
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": format!("u-{owner}"), "controller": true}]},
        "spec": {"nodeName": "one", "containers": [{"name": "app", "envFrom": [{"configMapRef": {"name": "settings"}}, {"secretRef": {"name": "login"}}]}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-03-01T11:50:00Z"}],
            "containerStatuses": [{"name": "app", "restartCount": 5, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}},
                "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}}}]}})
}

/// Returns an object whose fields were written at this time.
fn written(kind: &str, name: &str, fields: &str, at: &str) -> Value {
    json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "shop", "creationTimestamp": "2026-02-01T00:00:00Z",
        "managedFields": [
            {"manager": "kubectl-edit", "operation": "Update", "time": at, "fieldsV1": {fields: {"f:key": {}}}},
            {"manager": "status-writer", "operation": "Update", "subresource": "status", "time": "2026-03-01T11:49:59Z", "fieldsV1": {fields: {}}},
            {"manager": "labels-only", "operation": "Apply", "time": "2026-03-01T11:49:58Z", "fieldsV1": {"f:metadata": {"f:labels": {}}}}]}})
}

fn told(app: &App, cluster: &dyn Objects) -> Vec<String> {
    let rows = changes(app, &[], &[cluster]);
    let told = |row: &Change| {
        format!("{} {} {}, {}", row.when.unwrap(), row.object.kind, row.object.name, text::change(row))
    };
    rows.iter().map(told).collect()
}

fn of(objects: &[Value]) -> Vec<String> {
    let cluster = holding("one", objects);
    let list = apps(&[&cluster], &ActiveRules::default(), NOW);
    assert_eq!(list.apps.len(), 1, "{list:?}");
    told(&list.apps[0], &cluster)
}

#[test]
fn rollout_shows_the_images_that_differ() {
    let old = set("web-a", "1", "2026-02-20T08:00:00Z", "web:1", &["--fast"]);
    let new = set("web-b", "2", "2026-03-01T11:48:30Z", "web:2", &["--slow"]);
    assert_eq!(
        of(&[deployment("2"), old, new, pod("web-b")]),
        [
            "2026-03-01T11:48:30Z Deployment web, image of container app: web:1 → web:2",
            "2026-03-01T11:48:30Z Deployment web, Pod template: args of container app",
        ]
    );
}

#[test]
fn changes_long_before_or_after_the_failure_are_left_out() {
    let old = || set("web-a", "1", "2026-02-20T08:00:00Z", "web:1", &[]);
    for created in ["2026-03-01T10:40:00Z", "2026-03-01T11:50:02Z"] {
        let new = set("web-b", "2", created, "web:2", &[]);
        assert_eq!(of(&[deployment("2"), old(), new, pod("web-b")]), [""; 0], "{created}");
    }
    // What was rolled out again was made before: when it was taken up, it does not say.
    let again = set("web-b", "3", "2026-02-10T00:00:00Z", "web:0", &[]);
    assert_eq!(of(&[deployment("3"), old(), again, pod("web-b")]), [""; 0]);
    // A workload that is new has no other story.
    let mut fresh = deployment("1");
    fresh["metadata"]["creationTimestamp"] = json!("2026-03-01T11:47:00Z");
    let only = set("web-b", "1", "2026-03-01T11:47:00Z", "web:2", &[]);
    assert_eq!(of(&[fresh, only, pod("web-b")]), ["2026-03-01T11:47:00Z Deployment web, created"]);
}

#[test]
fn rollback_to_an_old_replica_set_shows_its_image() {
    // `kubectl rollout undo`: the controller numbers the old ReplicaSet anew and scales it up.
    let newer = || set("web-b", "2", "2026-02-20T08:00:00Z", "web:2", &[]);
    let mut again = set("web-a", "3", "2026-02-10T00:00:00Z", "web:1", &[]);
    let mut web = deployment("3");
    web["metadata"]["managedFields"] = json!([{"manager": "kubectl", "operation": "Update", "time": "2026-03-01T11:48:00Z",
        "fieldsV1": {"f:spec": {"f:template": {"f:spec": {}}}}}]);
    assert_eq!(
        of(&[web, newer(), again.clone(), pod("web-a")]),
        ["2026-03-01T11:48:00Z Deployment web, image of container app, by kubectl: web:2 → web:1"]
    );
    // Without the Deployment's managed fields the ReplicaSet's say when it was taken up.
    again["metadata"]["managedFields"] = json!([{"manager": "kube-controller-manager", "operation": "Update",
        "time": "2026-03-01T11:48:01Z",
        "fieldsV1": {"f:metadata": {"f:annotations": {"f:deployment.kubernetes.io/revision": {}}}}}]);
    assert_eq!(
        of(&[deployment("3"), newer(), again, pod("web-a")]),
        ["2026-03-01T11:48:01Z Deployment web, image of container app: web:2 → web:1"]
    );
}

#[test]
fn rollout_shows_the_field_manager_of_the_image() {
    let old = || set("web-a", "1", "2026-02-20T08:00:00Z", "web:1", &[]);
    let new = || set("web-b", "2", "2026-03-01T11:48:30Z", "web:2", &[]);
    let written_at = |at: &str| {
        let mut web = deployment("2");
        let scaled = json!({"manager": "kubectl", "operation": "Update", "subresource": "scale", "time": "2026-03-01T11:48:31Z",
            "fieldsV1": {"f:spec": {"f:replicas": {}}}});
        web["metadata"]["managedFields"] = json!([scaled, {"manager": "flux", "operation": "Apply", "time": at,
            "fieldsV1": {"f:spec": {"f:template": {}}}}]);
        of(&[web, old(), new(), pod("web-b")])
    };
    // Who scaled it meanwhile did not write the image.
    assert_eq!(
        written_at("2026-03-01T11:48:29Z"),
        ["2026-03-01T11:48:30Z Deployment web, image of container app, by flux: web:1 → web:2"]
    );
    // Who wrote another time wrote something else.
    assert_eq!(
        written_at("2026-03-01T09:00:00Z"),
        ["2026-03-01T11:48:30Z Deployment web, image of container app: web:1 → web:2"]
    );
}

#[test]
fn config_changes_show_their_writer_and_time() {
    let objects = [
        deployment("1"),
        set("web-a", "1", "2026-02-20T08:00:00Z", "web:1", &[]),
        pod("web-a"),
        written("ConfigMap", "settings", "f:data", "2026-03-01T11:45:00Z"),
        written("ConfigMap", "other", "f:data", "2026-03-01T11:45:00Z"),
        written("Secret", "login", "f:data", "2026-03-01T11:46:00Z"),
    ];
    assert_eq!(
        of(&objects),
        [
            "2026-03-01T11:46:00Z Secret login, contents, by kubectl-edit",
            "2026-03-01T11:45:00Z ConfigMap settings, contents, by kubectl-edit",
        ]
    );
    // Nothing is said where nothing is known.
    let silent = objects.map(|mut object| {
        object["metadata"].as_object_mut().unwrap().remove("managedFields");
        object
    });
    assert_eq!(of(&silent), [""; 0]);
}

#[test]
fn scaling_and_lowered_quotas_are_shown_with_their_writer() {
    let mut web = deployment("1");
    web["metadata"]["managedFields"] =
        written("X", "x", "f:spec", "2026-03-01T11:49:00Z")["metadata"]["managedFields"].clone();
    let mut refused = set("web-a", "1", "2026-02-20T08:00:00Z", "web:1", &[]);
    refused["status"] = json!({"observedGeneration": 1, "replicas": 0, "conditions": [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
        "lastTransitionTime": "2026-03-01T11:49:30Z",
        "message": "pods \"web-x\" is forbidden: exceeded quota: team, requested: pods=1, used: pods=6, limited: pods=6"}]});
    let used = "ResourceQuota team, used up";
    let scaled = "2026-03-01T11:49:00Z Deployment web, spec, by kubectl-edit: key";
    assert_eq!(
        of(&[web.clone(), refused.clone()]),
        [format!("2026-03-01T11:49:30Z {used}: used: pods=6, limited: pods=6"), scaled.to_owned()]
    );
    let quota = written("ResourceQuota", "team", "f:spec", "2026-03-01T11:30:00Z");
    assert_eq!(
        of(&[web, refused, quota]),
        [
            scaled.to_owned(),
            format!("2026-03-01T11:30:00Z {used}, by kubectl-edit: used: pods=6, limited: pods=6")
        ]
    );
}

#[test]
fn spec_fields_that_a_manager_wrote_are_named() {
    let mut web = deployment("1");
    let told = |web: &mut Value, spec: Value| {
        web["metadata"]["managedFields"] = json!([{"manager": "kubectl-edit", "operation": "Update",
            "time": "2026-03-01T11:49:00Z", "fieldsV1": {"f:spec": spec}}]);
        let cluster = holding("cluster", std::slice::from_ref(web));
        let objects: &dyn Objects = &cluster;
        let key = ObjectKey::new("apps", "Deployment", "shop", "web");
        let observed = objects.get(key.as_ref()).present().unwrap();
        let last = taffrail_status::assess::last_changes(&observed.object, &cluster);
        text::change(&last[0])
    };
    let strategy = json!({"f:type": {}});
    let several = json!({"f:strategy": strategy, "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {"f:env": {}}}}}});
    assert_eq!(told(&mut web, several), "spec, by kubectl-edit: strategy.type, template.spec.containers");
    assert_eq!(told(&mut web, json!({"f:strategy": strategy})), "spec, by kubectl-edit: strategy.type");
    assert_eq!(
        told(&mut web, json!({"f:a": {}, "f:b": {"f:x": {}, "f:y": {}}, "f:c": {}, "f:d": {}, "f:e": {}})),
        "spec, by kubectl-edit: a, b, c and 2 more"
    );
    let many: serde_json::Map<String, Value> = (10..40).map(|at| (format!("f:n{at}"), json!({}))).collect();
    assert_eq!(
        told(&mut web, Value::Object(many)),
        "spec, by kubectl-edit: n10, n11, n12 and at least 7 more"
    );
}

/// Returns a HelmRelease with this history whose upgrade was rolled back.
fn remedied(history: &Value) -> Value {
    json!({"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": {"name": "web", "namespace": "shop", "generation": 1},
        "spec": {"chart": {"spec": {"chart": "web", "sourceRef": {"kind": "HelmRepository", "name": "r"}}}},
        "status": {"observedGeneration": 1, "lastAttemptedRevision": "1.1.0", "history": history, "inventory": {"entries": []}, "conditions": [
            {"type": "Stalled", "status": "True", "reason": "RetriesExceeded", "message": "Failed to upgrade after 1 attempt(s)", "lastTransitionTime": "2026-03-01T11:50:00Z"},
            {"type": "Ready", "status": "False", "reason": "RollbackSucceeded", "message": "rolled back to web.v1", "lastTransitionTime": "2026-03-01T11:50:00Z"},
            {"type": "Released", "status": "False", "reason": "UpgradeFailed", "message": "upgrade failed: timed out", "lastTransitionTime": "2026-03-01T11:50:00Z"},
            {"type": "Remediated", "status": "True", "reason": "RollbackSucceeded", "message": "rolled back to web.v1", "lastTransitionTime": "2026-03-01T11:50:00Z"}]}})
}

#[test]
fn helm_rollback_is_neither_the_cause_nor_a_change() {
    let snapshot = |version: i64, status: &str, chart: &str, at: &str| {
        json!({"name": "web", "namespace": "shop", "version": version, "status": status, "chartVersion": chart, "configDigest": "sha256:a",
            "lastDeployed": at})
    };
    let failed = || snapshot(2, "failed", "1.1.0", "2026-03-01T11:45:00Z");
    let restored = || snapshot(3, "deployed", "1.0.0", "2026-03-01T11:50:00Z");
    let expected = ["2026-03-01T11:45:00Z HelmRelease web, revision: 1.0.0 → 1.1.0"];
    assert_eq!(of(&[remedied(&json!([restored(), failed()]))]), expected);
    let first = snapshot(1, "superseded", "1.0.0", "2026-02-01T00:00:00Z");
    assert_eq!(of(&[remedied(&json!([restored(), failed(), first]))]), expected);

    let cluster = holding("one", &[remedied(&json!([restored(), failed()]))]);
    let list = apps(&[&cluster], &ActiveRules::default(), NOW);
    let cause = &list.apps[0].speaker.as_ref().unwrap().chain[0];
    assert_eq!((&*cause.reason, &*list.apps[0].message), ("UpgradeFailed", "upgrade failed: timed out"));
    assert_eq!(cause.facts, ["rolled back to web.v1"]);
}

#[test]
fn the_sync_before_a_failure_shows_both_revisions() {
    let application = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "web", "namespace": "argocd"},
        "spec": {"destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"}, "source": {"repoURL": "r"}},
        "status": {"health": {"status": "Degraded"}, "sync": {"status": "Synced", "revision": "c3"},
            "resources": [{"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "shop", "name": "web"}],
            "operationState": {"phase": "Succeeded", "startedAt": "2026-03-01T11:48:00Z", "syncResult": {"revision": "c3"}},
            "history": [
                {"id": 1, "revision": "c1", "deployedAt": "2026-02-20T08:00:00Z"},
                {"id": 2, "revision": "c2", "deployStartedAt": "2026-03-01T11:20:00Z", "deployedAt": "2026-03-01T11:21:00Z"},
                {"id": 3, "revision": "c3", "deployStartedAt": "2026-03-01T11:48:00Z", "deployedAt": "2026-03-01T11:48:05Z"}]}});
    let mut web = deployment("1");
    web["metadata"]["labels"] = json!({});
    assert_eq!(
        of(&[application, web, set("web-a", "1", "2026-02-20T08:00:00Z", "web:1", &[]), pod("web-a")]),
        [
            "2026-03-01T11:48:00Z Application web, revision: c2 → c3",
            "2026-03-01T11:20:00Z Application web, revision: c1 → c2",
        ]
    );
}

#[test]
fn evidence_of_changes_is_read_on_request_and_secrets_as_metadata() {
    let server = Server::new(vec![
        deployment("1"),
        set("web-a", "1", "2026-02-20T08:00:00Z", "web:1", &[]),
        pod("web-a"),
        written("ConfigMap", "settings", "f:data", "2026-03-01T11:45:00Z"),
        written("Secret", "login", "f:data", "2026-03-01T11:46:00Z"),
    ]);
    let of_others = Changes::Of(vec!["another".parse().unwrap()]);
    for (wanted, expected) in [
        (Changes::None, 0),
        (of_others, 0),
        (Changes::All, 1),
        (Changes::Of(vec!["shop".parse().unwrap()]), 1),
    ] {
        let asked = ReadQuery { changes: wanted, ..ReadQuery::default() };
        let (live, log): (Snapshot, _) = server.read("one", &asked);
        log.assert_no_repetition();
        let maps: Vec<_> = log.all().filter(|read| read.path().ends_with("/configmaps/settings")).collect();
        assert_eq!(maps.len(), expected, "{:?}", log.paths());
        let values = ["ConfigMap", "Secret"];
        assert!(
            log.all().all(|read| !values.contains(&&*read.kind) || read.projection == Projection::Metadata),
            "{:?}",
            log.paths()
        );
        assert!(log.0.len() <= 5, "{:?}", log.paths());
        if expected == 1 {
            let list = apps(&[&live], &ActiveRules::default(), NOW);
            assert_eq!(told(&list.apps[0], &live).len(), 2);
        }
    }
}
