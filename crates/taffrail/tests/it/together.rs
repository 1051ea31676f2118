//! The same in many clusters is told once, and names them.

use std::fs;

use serde_json::{Value, json};

use snapbox::str;

use super::{Answer, assert_shown, taffrail};

const NOW: &str = "2026-03-01T12:00:00Z";

/// A Deployment of the app `shop` whose Pod crashes with this message since then, with a warning about it.
fn crashing(suffix: &str, since: &str, said: &str) -> Value {
    let owned = |kind: &str, name: &str, uid: &str| json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": true}]);
    let uid = format!("5d1f2e3a-0000-4000-8000-0000000000{suffix}");
    let (set, pod) = (format!("web-7d9f{suffix}"), format!("web-7d9f{suffix}-x2k{suffix}"));
    let labels = json!({"app.kubernetes.io/instance": "shop"});
    let event = |count: i64, first: &str, last: &str| {
        json!({
        "apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": "Denied", "message": format!("{said} for {count}s"),
        "metadata": {"namespace": "shop", "name": format!("web.{suffix}")}, "count": count, "firstTimestamp": first, "lastTimestamp": last,
        "involvedObject": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"}})
    };
    json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "apps/v1", "kind": "Deployment",
         "metadata": {"name": "web", "namespace": "shop", "uid": "u-web", "generation": 1, "labels": labels, "creationTimestamp": "2026-02-01T00:00:00Z"},
         "spec": {"replicas": 1},
         "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "conditions": [
            {"type": "Available", "status": "False", "lastTransitionTime": since}]}},
        {"apiVersion": "apps/v1", "kind": "ReplicaSet",
         "metadata": {"name": set, "namespace": "shop", "uid": "u-set", "generation": 1, "creationTimestamp": "2026-02-01T00:00:00Z",
            "ownerReferences": owned("Deployment", "web", "u-web")},
         "spec": {"replicas": 1}, "status": {"observedGeneration": 1, "replicas": 1, "availableReplicas": 0}},
        {"apiVersion": "v1", "kind": "Pod",
         "metadata": {"name": pod, "namespace": "shop", "uid": uid, "creationTimestamp": "2026-02-01T00:00:00Z",
            "ownerReferences": owned("ReplicaSet", &set, "u-set")},
         "spec": {"containers": [{"name": "web", "image": "web:1"}]},
         "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": since}],
            "containerStatuses": [{"name": "web", "restartCount": 5, "state": {"waiting": {"reason": "CrashLoopBackOff",
                "message": format!("back-off 2m4{}s {said}, pod={pod}_shop({uid})", &suffix[1..])}}}]}},
        event(suffix.parse::<i64>().unwrap(), since, since),
    ]})
}

/// Asks of a fleet of dumps.
fn ask(clusters: &[(&str, Value)], arguments: &[&str]) -> Answer {
    let folder = tempfile::tempdir().unwrap();
    for (name, objects) in clusters {
        fs::write(folder.path().join(format!("{name}.json")), objects.to_string()).unwrap();
    }
    let from = ["--from", folder.path().to_str().unwrap(), "--now", NOW];
    taffrail(&[arguments, &from].concat(), "")
}

fn fleet() -> [(&'static str, Value); 4] {
    [
        ("ap", crashing("11", "2026-03-01T11:50:00Z", "restarting")),
        ("eu", crashing("12", "2026-03-01T11:40:00Z", "restarting")),
        ("hostile", crashing("13", "2026-03-01T11:30:00Z", "restarting slowly")),
        ("us", crashing("14", "2026-03-01T11:55:00Z", "restarting")),
    ]
}

/// The clusters of each entry.
fn clusters(answer: &Value) -> Vec<Vec<String>> {
    let names = |item: &Value| match item["clusters"].as_array() {
        Some(several) => several.iter().map(|name| name.as_str().unwrap().to_owned()).collect(),
        None => vec![item["cluster"].as_str().unwrap().to_owned()],
    };
    let mut all: Vec<Vec<String>> = answer["items"].as_array().unwrap().iter().map(names).collect();
    all.sort();
    all
}

#[test]
fn one_cause_in_many_clusters_is_one_explanation_that_names_them() {
    let list = ask(&fleet(), &["explain", "-o", "json"]).json();
    // Who says something else is told of beside the others, and the first is that of which the details are.
    assert_eq!(clusters(&list), [vec!["eu", "ap", "us"], vec!["hostile"]], "{list:#}");
    let shared = list["items"].as_array().unwrap().iter().find(|item| item["clusters"].is_array()).unwrap();
    assert_eq!(shared.get("cluster"), None);
    assert_eq!(shared["chain"][0]["since"], "2026-03-01T11:40:00Z");
    assert_eq!(shared["chain"][2]["object"]["name"], "web-7d9f12-x2k12");

    let text = ask(&fleet(), &["explain"]).stdout;
    assert!(text.contains("label shop/shop in eu, ap, us is Failed\n  shown for eu;"), "{text}");
    assert!(text.contains("label shop/shop in hostile is Failed\n"), "{text}");
    assert_eq!(clusters(&ask(&fleet(), &["explain", "--per-cluster", "-o", "json"]).json()).len(), 4);
    // By its name an app is told of each cluster.
    assert_eq!(clusters(&ask(&fleet(), &["explain", "shop", "-o", "json"]).json()).len(), 4);
    let one = ask(&fleet(), &["explain", "--cluster", "us", "-o", "json"]).json();
    assert_eq!(clusters(&one), [["us"]]);
    assert_eq!(one["items"][0]["cluster"], "us");
}

#[test]
fn different_explanations_are_not_merged() {
    let mut fleet = fleet();
    // In one of the clusters another object is not ready either.
    let mut other = fleet[0].1["items"][0].clone();
    other["metadata"]["name"] = json!("worker");
    other["metadata"]["uid"] = json!("u-worker");
    fleet[0].1["items"].as_array_mut().unwrap().push(other);
    let list = ask(&fleet, &["explain", "-o", "json"]).json();
    assert_eq!(clusters(&list), [vec!["ap"], vec!["eu", "us"], vec!["hostile"]]);
}

#[test]
fn one_finding_in_many_clusters_is_one_that_counts_all() {
    let list = ask(&fleet(), &["trust", "--category", "fallback", "-o", "json"]).json();
    let [one] = list["items"].as_array().unwrap().as_slice() else { panic!("{list:#}") };
    assert_eq!(one["clusters"], json!(["ap", "eu", "hostile", "us"]));
    assert_eq!(
        (&one["reason"], &one["appCount"], &one["green"]),
        (&"NoInventory".into(), &4.into(), &0.into())
    );
    assert_eq!(one["apps"].as_array().unwrap().len(), 1);
    let text = ask(&fleet(), &["trust", "--category", "fallback"]).stdout;
    let told = "  fallback    ap, eu, hostile, us: label\n    in each of 4 clusters: 1 app is known only by its labels";
    assert!(text.contains(told), "{text}");
    let each = ask(&fleet(), &["trust", "--category", "fallback", "--per-cluster", "-o", "json"]).json();
    assert_eq!(clusters(&each), [["ap"], ["eu"], ["hostile"], ["us"]]);
    // Names are compared with those of an earlier run, and stay what they are.
    let names = ask(&fleet(), &["trust", "--category", "fallback", "-o", "name"]).stdout;
    assert_eq!(names.lines().count(), 4, "{names}");
}

#[test]
fn findings_about_one_object_merge_across_apps() {
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"namespace": "kube-system", "name": "kube-scheduler"},
        "spec": {"leaseDurationSeconds": 15, "renewTime": "2026-03-01T10:00:00.000000Z"}});
    let of = |app: &str, renewed: &str| {
        let mut lease = lease.clone();
        lease["spec"]["renewTime"] = json!(renewed);
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"namespace": app, "name": "map", "labels": {"app.kubernetes.io/instance": app}}});
        json!({"apiVersion": "v1", "kind": "List", "items": [lease, map]})
    };
    let fleet = [
        ("eu", of("shop", "2026-03-01T10:00:00.000000Z")),
        ("us", of("docs", "2026-03-01T09:00:00.000000Z")),
    ];
    let list = ask(&fleet, &["trust", "--category", "silent", "-o", "json"]).json();
    let [one] = list["items"].as_array().unwrap().as_slice() else { panic!("{list:#}") };
    assert_eq!((&one["clusters"], &one["appCount"]), (&json!(["eu", "us"]), &2.into()));
    assert_eq!(one["since"], "2026-03-01T09:00:00Z", "the earliest");
    let text = ask(&fleet, &["trust", "--category", "silent"]).stdout;
    assert!(text.contains("2 green apps: shop/shop, docs/docs (not the same in each)"), "{text}");
    // What is about no object is about its apps, and these are others.
    let labels = ask(&fleet, &["trust", "--category", "fallback", "-o", "json"]).json();
    assert_eq!(clusters(&labels), [["eu"], ["us"]]);
}

#[test]
fn one_warning_in_many_clusters_is_one_that_counts_all() {
    let list = ask(&fleet(), &["events", "-o", "json"]).json();
    let all = list["items"].as_array().unwrap();
    assert_eq!(clusters(&list), [vec!["ap", "eu", "us"], vec!["hostile"]], "{list:#}");
    let shared = all.iter().find(|item| item["clusters"].is_array()).unwrap();
    assert_eq!(shared["count"], 11 + 12 + 14);
    assert_eq!(shared["firstSeen"], "2026-03-01T11:40:00Z");
    assert_eq!(shared["lastSeen"], "2026-03-01T11:55:00Z");
    assert_eq!(shared["message"], "restarting for 14s", "that of the newest");
    assert_eq!(clusters(&ask(&fleet(), &["events", "--per-cluster", "-o", "json"]).json()).len(), 4);
    let text = ask(&fleet(), &["events"]).stdout;
    assert!(text.contains("\nap, eu, us   "), "{text}");
}

#[test]
fn many_clusters_are_counted_in_text_and_all_named_in_json() {
    let names: Vec<String> = (10..30).map(|number| format!("c{number}")).collect();
    let of = |name: &String| crashing(&name[1..], "2026-03-01T11:50:00Z", "restarting");
    let fleet: Vec<(&str, Value)> = names.iter().map(|name| (&**name, of(name))).collect();
    let text = ask(&fleet, &["explain"]).stdout;
    assert!(text.starts_with("label shop/shop in c10, c11, c12 and 17 more is Failed\n"), "{text}");
    assert_eq!(clusters(&ask(&fleet, &["explain", "-o", "json"]).json()), [names]);
}

/// Applications with a Pod each on one lost node; that of the last is OutOfSync, too.
fn on_a_lost_node() -> Value {
    let names = ["cart", "docs", "shop"];
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"},
        "status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status.", "lastTransitionTime": "2026-03-01T11:50:00Z"}]}});
    let pod = |name: &str| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": name, "name": name,
                "annotations": {"argocd.argoproj.io/tracking-id": format!("{name}:/Pod:{name}/{name}")}},
            "spec": {"nodeName": "node-1", "containers": [{"name": "web", "image": "web:1"}]},
            "status": {"phase": "Running", "containerStatuses": [{"name": "web", "state": {"running": {}}}],
                "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-03-01T11:50:00Z"}]}})
    };
    let app = |name: &str| {
        let state = if name == "shop" { "OutOfSync" } else { "Synced" };
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"namespace": "argocd", "name": name},
            "spec": {"destination": {"server": "https://kubernetes.default.svc", "namespace": name}},
            "status": {"sync": {"status": state, "revision": "a"}, "health": {"status": "Healthy"},
                "resources": [{"kind": "Pod", "namespace": name, "name": name, "status": state}],
                "operationState": {"phase": "Succeeded", "finishedAt": "2026-03-01T10:00:00Z",
                    "syncResult": {"revision": "a"}}}})
    };
    let items: Vec<Value> = names.iter().flat_map(|name| [pod(name), app(name)]).chain([node]).collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

#[test]
fn a_cause_is_told_once_although_an_app_has_more_to_tell() {
    let text = ask(&[("eu", on_a_lost_node())], &["explain"]).stdout;
    assert_shown(
        &text,
        str![[r#"
argo-application argocd/cart is Failed
argo-application argocd/docs is Failed

Cause
  Node node-1: NodeStatusUnknown, not ready for 10 min
  Kubelet stopped posting node status.

Changes before
  at that time: Node node-1, lost: Ready → NodeStatusUnknown

Cause chain of argo-application argocd/cart
  Pod cart/cart  Failed: Pod is running but is not Ready
  └ Node node-1  Failed

Next steps
  kubectl describe node node-1

argo-application argocd/shop is Failed

Cause
  Node node-1: NodeStatusUnknown, not ready for 10 min
  explained above, for argo-application argocd/cart

Cause chain
  Pod shop/shop  Failed: Pod is running but is not Ready
  └ Node node-1  Failed

Sync
  Application argocd/shop: OutOfSync
  OutOfSync: Pod shop/shop; automatic sync is off

Not synced
  Pod shop/shop  OutOfSync
  Which fields differ is not recorded in the cluster; Argo CD shows it: argocd app diff argocd/shop

"#]],
    );
    // A named app is explained alone.
    let named = ask(&[("eu", on_a_lost_node())], &["explain", "cart", "shop"]).stdout;
    assert_eq!(named.matches("Kubelet stopped posting node status.").count(), 2, "{named}");
}

/// Answers with entries of several clusters.
pub(super) fn samples() -> Vec<Answer> {
    let mut samples = Vec::from(["explain", "trust", "events"].map(|of| ask(&fleet(), &[of, "-o", "json"])));
    // One object that different apps cannot write.
    let failed = |app: &str| {
        let gear =
            json!({"group": "x", "kind": "Gear", "name": "g", "status": "SyncFailed", "message": "no CRD"});
        let app = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"namespace": "argocd", "name": app}, 
            "spec": {"destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"}},
            "status": {"sync": {"status": "OutOfSync", "revision": "a"},
                "resources": [{"kind": "ConfigMap", "namespace": "shop", "name": "m", "status": "Synced"}],
                "operationState": {"phase": "Failed", "syncResult": {"resources": [gear]}}}});
        let map =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": "m"}});
        json!({"apiVersion": "v1", "kind": "List", "items": [app, map]})
    };
    samples.push(ask(&[("eu", failed("shop")), ("us", failed("docs"))], &["trust", "-o", "json"]));
    // Two Pods of one workload with the same warning.
    let mut shop = crashing("11", "2026-03-01T11:50:00Z", "restarting");
    let items = shop["items"].as_array_mut().unwrap();
    let pod = items[2].clone();
    for name in ["web-7d9f11-x2k12", "web-7d9f11-x2k13"] {
        let mut own = pod.clone();
        own["metadata"]["name"] = json!(name);
        own["metadata"]["uid"] = json!(name);
        items.push(own);
        items.push(json!({"apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": "BackOff",
            "message": "back-off", "metadata": {"namespace": "shop", "name": name},
            "lastTimestamp": "2026-03-01T11:55:00Z",
            "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": name}}));
    }
    samples.push(ask(&[("eu", shop)], &["events", "-o", "json"]));
    samples
}
