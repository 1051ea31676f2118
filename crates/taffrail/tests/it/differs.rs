//! The fields in which an object that is not synced differs, if the object records them.

use serde_json::json;
use snapbox::str;

use super::{Answer, assert_shown, taffrail};

/// An Application that was synced to `c2`, and wants `wanted`.
fn application(wanted: &str) -> String {
    format!(
        "\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{namespace: argocd, name: shop}}
spec: {{destination: {{server: 'https://kubernetes.default.svc'}}}}
status:
  health: {{status: Healthy}}
  sync: {{status: OutOfSync, revision: {wanted}}}
  resources:
  - {{group: apps, kind: Deployment, version: v1, namespace: shop, name: web, status: OutOfSync}}
  - {{kind: ConfigMap, version: v1, namespace: shop, name: settings, status: OutOfSync}}
  - {{kind: Secret, version: v1, namespace: shop, name: key, status: OutOfSync}}
  - {{kind: Service, version: v1, namespace: shop, name: web, status: OutOfSync}}
  history: [{{revision: c2, deployedAt: '2026-03-01T10:00:00Z'}}]
  operationState:
    phase: Succeeded
    finishedAt: '2026-03-01T10:00:00Z'
    syncResult: {{revision: c2}}
"
    )
}

fn dump(wanted: &str) -> String {
    let containers = json!([{"name": "web", "image": "web:1", "resources": {"limits": {"cpu": "1000m"}}}]);
    let applied = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": {"team": "a"}},
        "spec": {"replicas": 3, "paused": false, "template": {"spec": {"containers": containers}}}});
    let live = json!([
        {"name": "proxy", "image": "proxy:1"},
        {"name": "web", "image": "web:2", "resources": {"limits": {"cpu": "1"}}, "imagePullPolicy": "Always"},
    ]);
    let last = "kubectl.kubernetes.io/last-applied-configuration";
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"namespace": "shop", "name": "web", "generation": 1, "labels": {"team": "a"},
            "annotations": {last: applied.to_string(), "deployment.kubernetes.io/revision": "4"}},
        "spec": {"replicas": 5, "template": {"spec": {"containers": live}}},
        "status": {"observedGeneration": 1, "replicas": 5, "updatedReplicas": 5, "readyReplicas": 5, "availableReplicas": 5,
            "conditions": [{"type": "Available", "status": "True"}]}});
    let write = |manager: &str, time: &str, fields: serde_json::Value| json!({"manager": manager, "operation": "Update", "time": time, "fieldsV1": fields});
    let settings = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "shop", "name": "settings", "managedFields": [
            write("argocd-controller", "2026-03-01T11:00:00Z", json!({"f:data": {"f:a": {}}})),
            write("helm", "2026-03-01T09:00:00Z", json!({"f:data": {"f:b": {}}})),
            write("kubectl-edit", "2026-03-01T11:00:00Z",
                json!({"f:data": {".": {}, "f:colour": {}}, "f:metadata": {"f:annotations": {"f:acme.dev/by": {}}}})),
        ]},
        "data": {"a": "1", "colour": "red"}});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "shop", "name": "key",
            "annotations": {last: json!({"kind": "Secret", "data": {"password": "czNjcjN0"}}).to_string()}},
        "data": {"password": "b3RoZXI="}});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "shop", "name": "web"},
        "spec": {"type": "ClusterIP", "clusterIP": "10.0.0.1"}});
    let objects = [deployment, settings, secret, service].map(|object| format!("---\n{object}\n"));
    format!("{}{}", application(wanted), objects.concat())
}

fn ask(arguments: &[&str], dump: &str) -> Answer {
    taffrail(&[arguments, &["--from", "-", "--now", "2026-03-01T12:00:00Z"]].concat(), dump)
}

/// Adds more objects that are OutOfSync than are compared.
fn many(dump: &str) -> String {
    let list = |at: usize| {
        format!("  - {{kind: ConfigMap, version: v1, namespace: shop, name: m{at}, status: OutOfSync}}\n")
    };
    let lists: String = (0..20).map(list).collect();
    let object = |at: usize| {
        format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{namespace: shop, name: m{at}}}\n")
    };
    let objects: String = (0..20).map(object).collect();
    let history = "  history: ";
    format!("{}{objects}", dump.replacen(history, &format!("{lists}{history}"), 1))
}

/// Answers in JSON that have all of it.
pub(super) fn samples() -> Vec<Answer> {
    let written: Vec<String> = (0..9).map(|number| format!("\"f:n{number}\":{{}}")).collect();
    let dump = many(&dump("c2")).replace("\"f:colour\":{}", &written.join(","));
    ["explain", "app"].map(|view| ask(&[view, "shop", "-o", "json"], &dump)).into()
}

#[test]
fn explain_names_the_fields_that_differ_and_says_where_they_are_not_recorded() {
    let answer = ask(&["explain", "shop"], &dump("c2"));
    let (_, told) = answer.stdout.split_once("Not synced\n").unwrap();
    assert_shown(
        told,
        str![[r#"
  Deployment shop/web  OutOfSync
    - spec.replicas, spec.template.spec.containers[name=web].image differ from what was last applied
  ConfigMap shop/settings  OutOfSync
    - kubectl-edit wrote data.colour, metadata.annotations[acme.dev/by] after the last sync
  Secret shop/key  OutOfSync
  Service shop/web  OutOfSync
  What else differs is not recorded in the cluster; Argo CD shows it: argocd app diff argocd/shop

Next steps
  kubectl describe application.argoproj.io shop -n argocd

"#]],
    );
    for view in
        [["explain", "shop", "-o", "json"], ["app", "shop", "-o", "json"], ["app", "shop", "-o", "yaml"]]
    {
        let text = ask(&view, &dump("c2")).stdout;
        assert!(!text.contains("czNjcjN0") && !text.contains("b3RoZXI="), "{text}");
    }
    let json = ask(&["explain", "shop", "-o", "json"], &dump("c2")).json();
    assert_eq!(
        json["unsynced"][0]["differs"],
        json!([{"fields": ["spec.replicas", "spec.template.spec.containers[name=web].image"]}])
    );
    assert_eq!(json["unsynced"][1]["differs"][0]["by"], "kubectl-edit");
    assert_eq!(json["unsynced"][2].get("differs"), None);
}

#[test]
fn app_names_the_fields_beside_each_object() {
    let answer = ask(&["app", "shop"], &dump("c2"));
    let (_, told) = answer.stdout.split_once("Deployment details:\n").unwrap();
    assert_shown(
        told,
        str![[r#"
KIND         NAME       STATUS             NAMESPACE   MESSAGE
Deployment   web        Ready, OutOfSync   shop        unconfirmed; spec.replicas, spec.template.spec.containers[name=web].image differ from what was last applied
ConfigMap    settings   Ready, OutOfSync   shop        unconfirmed; kubectl-edit wrote data.colour, metadata.annotations[acme.dev/by] after the last sync
Secret       key        Ready, OutOfSync   shop        unconfirmed
Service      web        Ready, OutOfSync   shop        unconfirmed
What else differs is not recorded in the cluster; Argo CD shows it: argocd app diff argocd/shop

"#]],
    );
}

#[test]
fn what_was_applied_last_tells_nothing_of_another_revision() {
    let told = ask(&["explain", "shop"], &dump("c3")).stdout;
    assert!(!told.contains("spec.replicas"), "{told}");
    assert!(told.contains("kubectl-edit wrote") && told.contains("argocd app diff argocd/shop"), "{told}");
}

#[test]
fn explain_says_that_not_all_objects_were_compared() {
    let dump = many(&dump("c2"));
    for view in ["explain", "app"] {
        let told = ask(&[view, "shop"], &dump).stdout;
        let remark = "Taffrail did not compare all fields, because there are too many; Argo CD shows it: argocd app diff argocd/shop";
        assert!(told.contains(remark) && !told.contains("not recorded"), "{told}");
    }
    let json = ask(&["explain", "shop", "-o", "json"], &dump).json();
    let incomplete = json["unsynced"].as_array().unwrap().iter().filter(|own| own["incomplete"] == true);
    assert_eq!(incomplete.count(), 4);
}
