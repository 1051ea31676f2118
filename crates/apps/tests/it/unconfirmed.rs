//! Objects that an author in another namespace lists never change the status of other apps and their objects.

use serde_json::{Value, json};
use taffrail_api::TrustReport;
use taffrail_apps::trust::TrustShape;
use taffrail_apps::{App, AppLabels, AppList, AppRows, ChangeBatch, Objects, ScopeError, Snapshot};
use taffrail_object::{ObjectKey, Projection};
use taffrail_status::ActiveRules;

use super::dump::{NOW, apps_of, document, holding};

fn kustomization(namespace: &str, name: &str, entries: &[&str]) -> Value {
    let entries: Vec<Value> = entries.iter().map(|id| json!({"id": id, "v": "v1"})).collect();
    json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"namespace": namespace, "name": name, "generation": 1},
        "status": {"observedGeneration": 1, "inventory": {"entries": entries},
            "conditions": [{"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "observedGeneration": 1}]},
    })
}

/// A Deployment `shop/web` that a Kustomization of its namespace applied, and its ReplicaSet and Pod, which does not
/// exist where `has_pod` is false.
fn workload(has_pod: bool) -> Vec<Value> {
    let owned = |kind: &str, name: &str, uid: &str, owner: (&str, &str)| {
        json!({"namespace": "shop", "name": name, "uid": uid, "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": kind, "name": owner.0, "uid": owner.1, "controller": true}]})
    };
    let web = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"namespace": "shop", "name": "web", "uid": "d", "generation": 1, "labels": {
            "kustomize.toolkit.fluxcd.io/namespace": "shop", "kustomize.toolkit.fluxcd.io/name": "web"}},
        "spec": {"replicas": 1},
        "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
            "conditions": [{"type": "Available", "status": "True"}, {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}]},
    });
    let set = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": owned("Deployment", "web-1", "r", ("web", "d")),
        "spec": {"replicas": 1}, "status": {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1},
    });
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": owned("ReplicaSet", "web-1-a", "p", ("web-1", "r")),
        "spec": {"nodeName": "one", "containers": [{"name": "web"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    });
    // A Pod of somebody else: the Pods of the namespace were read.
    let other = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "shop", "name": "other"},
        "spec": {"containers": []}, "status": {"phase": "Running"},
    });
    [Some(web), Some(set), Some(pod).filter(|_| has_pod), Some(other)].into_iter().flatten().collect()
}

fn own() -> Value {
    kustomization("shop", "web", &["shop_web_apps_Deployment"])
}

/// A Kustomization of another namespace that lists the Deployment, its ReplicaSet and its Pod.
fn foreign() -> Value {
    kustomization(
        "aaa",
        "all",
        &["shop_web_apps_Deployment", "shop_web-1_apps_ReplicaSet", "shop_web-1-a__Pod"],
    )
}

/// Returns each finding as `REASON: APP,APP`.
fn trust(list: &AppList, cluster: &dyn Objects, asked: &[&App], shape: TrustShape) -> Vec<String> {
    let report = TrustReport::new(asked, list, &[cluster], NOW, shape);
    let line = |found: &taffrail_api::TrustFinding| {
        let apps: Vec<String> =
            found.apps.iter().map(|it| format!("{}/{}", it.app.namespace, it.app.name)).collect();
        format!("{}: {}", found.reason, apps.join(","))
    };
    report.items.iter().map(line).collect()
}

fn trust_of_all(objects: &[Value]) -> Vec<String> {
    let cluster = holding("prod", objects);
    let list = apps_of(&cluster);
    let all: Vec<&App> = list.apps.iter().collect();
    trust(&list, &cluster, &all, TrustShape::default())
}

#[test]
fn a_listed_object_that_names_no_app_is_an_orphan_and_says_who_lists_it() {
    let settings =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": "left"}});
    let of = |namespace: &str| {
        let app = kustomization(namespace, "all", &["shop_left__ConfigMap"]);
        let cluster = holding("prod", &[settings.clone(), app]);
        let orphans = apps_of(&cluster).orphans(&cluster, &["shop".to_owned()].into()).objects;
        orphans.into_iter().map(|orphan| (orphan.key.name.to_string(), orphan.remarks)).collect::<Vec<_>>()
    };
    let says = "the object is listed by flux-kustomization aaa/all, although it carries no mark of that app"
        .to_owned();
    assert_eq!(of("aaa"), [("left".to_owned(), vec![says])]);
    assert_eq!(of("shop"), []);
}

#[test]
fn a_listed_pod_still_belongs_to_the_app_of_its_controller() {
    let cluster = holding("prod", &[workload(true), vec![own(), foreign()]].concat());
    let list = apps_of(&cluster);
    let belonging = list.belonging(&cluster, &ObjectKey::new("", "Pod", "shop", "web-1-a"));
    let names = |apps: &[&App]| apps.iter().map(|app| app.app.to_string()).collect::<Vec<_>>();
    assert_eq!(names(&belonging.apps), ["flux-kustomization shop/web"]);
    assert_eq!(names(&belonging.listed), ["flux-kustomization aaa/all"]);
}

#[test]
fn an_object_that_is_only_listed_still_says_which_app_its_marks_name() {
    let objects = [workload(true), vec![kustomization("shop", "web", &[]), foreign()]].concat();
    let marked = |foreign: &[Value]| {
        let cluster = holding("prod", &[&objects[..objects.len() - 1], foreign].concat());
        let list = apps_of(&cluster);
        list.belonging(&cluster, &ObjectKey::new("apps", "Deployment", "shop", "web")).marked
    };
    assert_eq!(marked(&[]), ["flux-kustomization shop/web, which does not list it"]);
    // Its mark names the Kustomization `web` of `shop`, which the other app takes for its own name.
    let mut foreign = foreign();
    foreign["metadata"]["name"] = json!("web");
    assert_eq!(marked(&[foreign]), ["flux-kustomization shop/web, which does not list it"]);
}

#[test]
fn findings_about_a_listed_pod_concern_the_app_of_its_controller() {
    let lost = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"namespace": "kube-node-lease", "name": "one"},
        "spec": {"leaseDurationSeconds": 40, "renewTime": "2026-03-01T11:00:00Z"},
    });
    let with = |apps: &[Value]| trust_of_all(&[&workload(true), apps, std::slice::from_ref(&lost)].concat());
    let node = |found: Vec<String>| found.into_iter().find(|line| line.starts_with("Node:")).unwrap();
    assert_eq!(node(with(&[own()])), "Node: shop/web");
    assert_eq!(node(with(&[own(), foreign()])), "Node: shop/web,aaa/all");
}

/// The rules of the app that lists an object may call it unwell; the finding needs the verdict of the app that has it.
#[test]
fn findings_about_an_object_use_the_verdict_of_the_app_that_it_names() {
    let mut list = apps_of(&holding("prod", &[workload(false), vec![own(), foreign()]].concat()));
    let cluster = holding("prod", &[workload(false), vec![own(), foreign()]].concat());
    let differ = |list: &AppList| {
        let all: Vec<&App> = list.apps.iter().collect();
        let found = trust(list, &cluster, &all, TrustShape::default());
        found.into_iter().find(|line| line.starts_with("PodsDiffer"))
    };
    let expected = Some("PodsDiffer: shop/web,aaa/all".to_owned());
    assert_eq!(differ(&list), expected);
    for app in list.apps.iter_mut().filter(|app| app.app.namespace == "aaa") {
        app.resources.iter_mut().for_each(|resource| resource.status = taffrail_status::Status::Failed);
    }
    assert_eq!(differ(&list), expected);
}

fn overlaps(list: &AppList) -> Vec<&str> {
    let errors = list.errors.iter().map(|error| &error.error);
    errors.filter(|error| error.reason == "Overlap").map(|ScopeError { message, .. }| &**message).collect()
}

#[test]
fn a_listing_that_the_object_does_not_confirm_is_no_overlap() {
    let list = apps_of(&holding("prod", &[workload(true), vec![own(), foreign()]].concat()));
    assert_eq!(overlaps(&list), Vec::<&str>::new());
    let found = trust_of_all(&[workload(true), vec![own(), foreign()]].concat());
    assert!(found.iter().all(|line| !line.starts_with("Overlap")), "{found:?}");
    // Two apps of one author, of which the object names the one that applied it last.
    let mut web = workload(true).remove(0);
    web["metadata"]["labels"]["kustomize.toolkit.fluxcd.io/namespace"] = json!("flux-system");
    let both = ["web", "all"].map(|name| kustomization("flux-system", name, &["shop_web_apps_Deployment"]));
    let list = apps_of(&holding("prod", &[vec![web], both.to_vec()].concat()));
    let says = "apps/Deployment/shop/web is claimed by flux-kustomization flux-system/all and flux-kustomization flux-system/web";
    assert_eq!(overlaps(&list), [says]);
}

/// Two apps of a tenant that list an object of another namespace cast no doubt on its label app.
#[test]
fn an_overlap_of_listings_does_not_concern_the_label_app() {
    let mut web = workload(true);
    web[0]["metadata"]["labels"] = json!({"app.kubernetes.io/instance": "web"});
    let tenants = ["a", "b"].map(|name| kustomization("aaa", name, &["shop_web_apps_Deployment"]));
    let found = trust_of_all(&[&web[..], &tenants].concat());
    let found: Vec<String> = found.into_iter().filter(|line| line.starts_with("Overlap")).collect();
    assert_eq!(found, ["Overlap: aaa/a,aaa/b"]);
}

#[test]
fn the_finding_about_an_overlap_names_ten_of_its_apps() {
    let many: Vec<Value> =
        (0..100).map(|at| kustomization("aaa", &format!("k{at}"), &["shop_web_apps_Deployment"])).collect();
    let mut web = workload(true);
    web[0]["metadata"]["labels"] = json!({});
    let cluster = holding("prod", &[web, many].concat());
    let list = apps_of(&cluster);
    let all: Vec<&App> = list.apps.iter().collect();
    let report = TrustReport::new(&all, &list, &[&cluster], NOW, TrustShape::default());
    let overlap = &report.items.iter().find(|found| found.reason == "Overlap").unwrap().message;
    assert_eq!(overlap.matches("flux-kustomization aaa/").count(), 10, "{overlap}");
    assert!(overlap.contains(" and by 90 more: Ready is true"), "{overlap}");
}

#[test]
fn a_time_in_the_future_concerns_the_apps_of_its_namespace() {
    let settings = |namespace: &str, at: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": "c",
            "managedFields": [{"manager": "m", "operation": "Apply", "time": at}]}})
    };
    let ahead = "2026-04-01T11:00:00Z";
    let apps = [own(), kustomization("tenant", "t", &["tenant_c__ConfigMap"])];
    let with = |more: &[Value]| {
        let found = trust_of_all(&[&workload(true), &apps[..], more].concat());
        found.into_iter().filter(|line| line.starts_with("FutureTime")).collect::<Vec<_>>()
    };
    assert_eq!(with(&[settings("tenant", ahead)]), ["FutureTime: tenant/t"]);
    assert_eq!(with(&[settings("nobody", ahead)]), Vec::<String>::new());
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "one"},
        "status": {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": ahead}]}});
    let both = with(&[settings("tenant", "2026-05-01T11:00:00Z"), node]);
    assert_eq!(both, ["FutureTime: shop/web,tenant/t", "FutureTime: tenant/t"]);
}

#[test]
fn an_overlap_with_a_listing_is_told_while_the_object_names_neither_app() {
    let rules = ActiveRules::default();
    let admins = kustomization("flux-system", "web", &["shop_web_apps_Deployment"]);
    let mut named = workload(true).remove(0);
    named["metadata"]["labels"]["kustomize.toolkit.fluxcd.io/namespace"] = json!("flux-system");
    let mut unnamed = named.clone();
    unnamed["metadata"]["labels"] = json!({});
    let mut cluster = holding("prod", &[unnamed.clone(), admins, foreign()]);
    let mut rows = AppRows::new(AppLabels::default());
    let mut told = |cluster: &mut Snapshot| {
        let changes: [ChangeBatch; 1] = [cluster.take_changes()];
        let looked = rows.look(&[&*cluster], &changes, &rules, NOW);
        assert_eq!(rows.list(), &apps_of(cluster));
        (overlaps(rows.list()).len(), looked.is_whole)
    };
    // No claim is better than the other one.
    assert_eq!(told(&mut cluster), (1, true));
    cluster.insert(document(&named), Projection::Full).unwrap();
    assert_eq!(told(&mut cluster), (0, false));
    cluster.insert(document(&unnamed), Projection::Full).unwrap();
    assert_eq!(told(&mut cluster), (1, false));
}
