//! Tests that objects which a user can write in one namespace are not evidence about objects of other namespaces.

use super::current::CRASHING;
use super::{ROLLING, all, check, event, pod_of};

/// Returns the Deployment of [`ROLLING`] without its revision, and the ReplicaSets.
fn rolling() -> (String, String) {
    let (deployment, sets) = ROLLING.split_once("\n---\n").unwrap();
    let revision = ", annotations: {deployment.kubernetes.io/revision: \"2\"}";
    (deployment.replace(revision, ""), sets.to_owned())
}

fn in_tenant(text: &str) -> String {
    text.replace("namespace: shop", "namespace: tenant")
}

#[test]
fn dependent_in_another_namespace_is_ignored() {
    let (deployment, sets) = rolling();
    let pod = pod_of("ReplicaSet/web-2", "web-2-a", CRASHING);
    check(&all(&[&deployment, &sets, &pod]), "Failed < /Pod/shop/web-2-a: back-off");
    check(&all(&[&deployment, &in_tenant(&sets), &in_tenant(&pod)]), "InProgress");
    check(&all(&[&deployment, &sets, &in_tenant(&pod)]), "InProgress");
}

#[test]
fn a_newer_revision_of_another_namespace_hides_no_crash() {
    let (deployment, sets) = rolling();
    let pod = pod_of("ReplicaSet/web-2", "web-2-a", CRASHING);
    let newer = sets.split("\n---\n").next().unwrap().replace("web-2", "web-9").replace("\"2\"", "\"9\"");
    let cause = "Failed < /Pod/shop/web-2-a: back-off";
    check(&all(&[&deployment, &sets, &pod, &in_tenant(&newer)]), cause);
}

#[test]
fn uid_alone_does_not_prove_ownership() {
    let widget = "
apiVersion: example.com/v1
kind: Widget
metadata: {name: blue, namespace: shop, uid: u-blue, creationTimestamp: '2026-02-01T12:00:00Z'}
status: {replicas: 1}
";
    let pod = |api: &str, kind: &str, name: &str| {
        let pod = pod_of("Widget/blue", "db-0", CRASHING);
        pod.replace(
            "[{kind: Widget, name: blue,",
            &format!("[{{apiVersion: {api}, kind: {kind}, name: {name},"),
        )
    };
    let cause = "Failed < /Pod/shop/db-0: back-off";
    // The version of the group does not matter.
    check(&all(&[widget, &pod("example.com/v1", "Widget", "blue")]), cause);
    check(&all(&[widget, &pod("example.com/v2", "Widget", "blue")]), cause);
    for (api, kind, name) in [
        ("example.org/v1", "Widget", "blue"),
        ("v1", "Widget", "blue"),
        ("example.com/v1", "Gadget", "blue"),
        ("example.com/v1", "Widget", "red"),
    ] {
        check(&all(&[widget, &pod(api, kind, name)]), "Current");
    }
}

const CLAIM: &str = r#"
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop, creationTimestamp: "2026-03-01T11:50:00Z"}
spec: {storageClassName: fast}
status: {phase: Pending}
"#;

const RELEASED: &str = r#"
apiVersion: example.org/v1
kind: Database
metadata: {name: db, creationTimestamp: "2026-03-01T11:50:00Z"}
status: {conditions: [{type: Ready, status: "False", reason: Creating, message: ""}]}
"#;

#[test]
fn event_counts_only_in_the_namespace_of_its_object() {
    let failed = || event("PersistentVolumeClaim/data", "Warning", "Provisioning", 9, "11:59:00", "no space");
    let from = |namespace: &str| failed().replacen("namespace: shop", &format!("namespace: {namespace}"), 1);
    let told = |event: &str| super::told(&all(&[CLAIM, event])).contains("no space");
    assert!(told(&failed()));
    assert!(!told(&from("tenant")));
    assert!(!told(&from("default")));
}

#[test]
fn cluster_scoped_events_count_only_in_their_namespaces() {
    let event = event("Database/db", "Warning", "Boom", 9, "11:59:00", "no space");
    let about = |from: &str, of: &str| {
        let event = event.replacen("namespace: shop", &format!("namespace: {from}"), 1);
        let of = if of.is_empty() { String::new() } else { format!("namespace: {of},") };
        super::told(&all(&[RELEASED, &event.replacen("namespace: shop,", &of, 1)])).contains("no space")
    };
    assert!(about("default", ""));
    assert!(about("default", "default"));
    assert!(about("kube-system", ""));
    assert!(!about("tenant", "tenant"));
    assert!(!about("tenant", ""));
    assert!(!about("tenant", "default"));
}

/// The API does not check the owner that a namespaced object names, so this may not worsen a cluster-scoped one.
#[test]
fn namespaced_objects_do_not_worsen_cluster_scoped_owners() {
    let widget = |status: &str| {
        format!(
            "apiVersion: example.com/v1\nkind: Widget\n\
             metadata: {{name: blue, uid: u-blue, creationTimestamp: '2026-02-01T12:00:00Z'}}\nstatus: {status}"
        )
    };
    let pod = pod_of("Widget/blue", "db-0", CRASHING);
    check(&all(&[&widget("{replicas: 1}"), &pod]), "Current");
    let waiting = "{conditions: [{type: Ready, status: 'False', message: waiting}]}";
    // Where it is not well by its own words, that may be why: providers of Crossplane own their Deployment so.
    check(&all(&[&widget(waiting), &pod]), "InProgress < /Pod/shop/db-0: back-off");
}
