//! Each way on which a change reaches a row is needed: without it the row stays as it was, and that is wrong.

use jiff::SignedDuration;
use serde_json::{Value, json};
use taffrail_apps::{
    Answer, AppLabels, AppList, AppRows, ChangeBatch, Freshness, FreshnessState, Objects, Propagation, Read,
    Scope, ScopeError, Snapshot, Target, apps_by,
};
use taffrail_object::{Object, ObjectKey, Projection};
use taffrail_status::ActiveRules;
use taffrail_status::assess::{Budgets, Options};

use crate::dump::{NOW, base64, document, holding, release};

const FLUX: &str = "kustomize.toolkit.fluxcd.io/v1";

fn key_of(object: &Value) -> ObjectKey {
    ObjectKey::of(&Object::new(object.into()).unwrap())
}

fn object(version: &str, kind: &str, namespace: &str, name: &str) -> Value {
    let mut metadata = json!({"name": name, "uid": format!("u-{kind}-{name}"), "generation": 1});
    if !namespace.is_empty() {
        metadata["namespace"] = json!(namespace);
    }
    metadata["creationTimestamp"] = json!("2026-03-01T11:00:00Z");
    json!({"apiVersion": version, "kind": kind, "metadata": metadata})
}

/// An object that its label makes an app of.
fn labelled(version: &str, kind: &str, name: &str) -> Value {
    let mut object = object(version, kind, "shop", name);
    object["metadata"]["labels"] = json!({"app.kubernetes.io/instance": "web"});
    object
}

fn owned(mut object: Value, owner: &Value, is_controller: bool) -> Value {
    let key = key_of(owner);
    object["metadata"]["ownerReferences"] = json!([{"apiVersion": owner["apiVersion"], "kind": key.kind,
        "name": key.name, "uid": owner["metadata"]["uid"], "controller": is_controller}]);
    object
}

fn with(mut object: Value, path: &str, value: Value) -> Value {
    let (parent, name) = path.rsplit_once('/').unwrap();
    let parent = parent.split('/').skip(1).fold(&mut object, |object, part| &mut object[part]);
    parent[name] = value;
    object
}

fn kustomization(name: &str, entries: &[&str]) -> Value {
    let entries: Vec<Value> = entries.iter().map(|id| json!({"id": id, "v": "v1"})).collect();
    let mut object = object(FLUX, "Kustomization", "flux-system", name);
    object["spec"] =
        json!({"interval": "10m", "path": "./", "sourceRef": {"kind": "GitRepository", "name": "src"}});
    object["status"] = json!({"observedGeneration": 1, "lastAppliedRevision": "main@sha1:aaa",
        "lastAttemptedRevision": "main@sha1:aaa", "inventory": {"entries": entries},
        "conditions": [{"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "message": "Applied",
            "observedGeneration": 1, "lastTransitionTime": "2026-03-01T11:00:00Z"}]});
    object
}

fn source(revision: &str) -> Value {
    let mut object = object("source.toolkit.fluxcd.io/v1", "GitRepository", "flux-system", "src");
    object["spec"] = json!({"url": "https://git.example/r.git", "interval": "1m", "ref": {"branch": "main"}});
    object["status"] = json!({"artifact": {"revision": revision, "lastUpdateTime": "2026-03-01T11:59:00Z"},
        "conditions": [{"type": "Ready", "status": "True", "reason": "Succeeded", "message": "stored"}]});
    object
}

fn deployment(name: &str, ready: i64) -> Value {
    let mut object = labelled("apps/v1", "Deployment", name);
    object["spec"] = json!({"replicas": 2, "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}}});
    object["status"] = json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": ready,
        "availableReplicas": ready});
    object
}

fn pod(name: &str, phase: &str) -> Value {
    let mut pod = object("v1", "Pod", "shop", name);
    pod["spec"] = json!({"nodeName": "node-1", "containers": [{"name": "c"}]});
    pod["status"] = json!({"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]});
    pod
}

enum Then<'t> {
    Comes(Value),
    Goes(Value),
    Scope(&'t dyn Fn(&mut Snapshot)),
    Passes(SignedDuration),
}

/// Checks that a change is seen, and is not without one propagation.
fn check(without: Propagation, objects: &[Value], then: Then<'_>) {
    check_with(without, &Options::default(), objects, then);
}

fn check_with(without: Propagation, options: &Options, objects: &[Value], then: Then<'_>) {
    let seen = |without: Option<Propagation>| {
        let mut cluster = holding("prod", objects);
        let rules = ActiveRules { options, ..ActiveRules::default() };
        let mut rows = AppRows::new(AppLabels::default());
        without.into_iter().for_each(|it| rows.leave_out(it));
        let look = |rows: &mut AppRows, cluster: &mut Snapshot, now| {
            let changes: [ChangeBatch; 1] = [cluster.take_changes()];
            rows.look(&[cluster], &changes, &rules, now)
        };
        look(&mut rows, &mut cluster, NOW);
        let before: AppList = rows.list().clone();
        let mut now = NOW;
        match &then {
            Then::Comes(object) => cluster.insert(document(object), Projection::Full).unwrap(),
            Then::Goes(object) => cluster.remove(&key_of(object)),
            Then::Scope(change) => change(&mut cluster),
            Then::Passes(time) => now += *time,
        }
        let looked = look(&mut rows, &mut cluster, now);
        assert!(!looked.is_whole, "{without:?}: everything was judged again");
        let clusters: [&dyn Objects; 1] = [&cluster];
        let whole = apps_by(&AppLabels::default(), &clusters, &rules, now);
        assert_ne!(before, whole, "{without:?}: the change makes no difference: {whole:#?}");
        (rows.list().clone(), whole)
    };
    let (kept, whole) = seen(None);
    assert_eq!(kept, whole, "with all propagations");
    let (kept, whole) = seen(Some(without));
    assert_ne!(kept, whole, "without {without:?}");
}

#[test]
fn an_object_of_a_row_changes() {
    check(Propagation::Object, &[deployment("web", 2)], Then::Comes(deployment("web", 1)));
}

#[test]
fn an_app_comes_into_a_list() {
    let objects = [kustomization("web", &[]), source("main@sha1:aaa")];
    check(Propagation::Keys, &objects, Then::Comes(kustomization("other", &[])));
}

#[test]
fn an_argo_cd_learns_the_address_of_a_cluster() {
    let mut app = object("argoproj.io/v1alpha1", "Application", "argocd", "web");
    app["spec"] = json!({"destination": {"name": "edge"}});
    app["status"] = json!({"sync": {"status": "Synced"}, "health": {"status": "Healthy"}});
    let mut secret = object("v1", "Secret", "argocd", "edge");
    secret["metadata"]["labels"] = json!({"argocd.argoproj.io/secret-type": "cluster"});
    secret["data"] = json!({"name": base64("edge"), "server": base64("https://edge.example")});
    check(Propagation::Kind, &[app], Then::Comes(secret));
}

#[test]
fn a_declaration_is_kept_until_its_object_changes() {
    let objects = [kustomization("web", &[]), kustomization("other", &[]), source("main@sha1:aaa")];
    let suspended = with(kustomization("web", &[]), "/spec/suspend", json!(true));
    check(Propagation::Declared, &objects, Then::Comes(suspended));
    let more = kustomization("web", &["shop_one__ConfigMap"]);
    check(Propagation::Declared, &objects, Then::Comes(more));
}

#[test]
fn a_mark_on_an_object_hides_a_release() {
    let declaring = json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"namespace": "tenant", "name": "evil", "generation": 1},
        "spec": {"storageNamespace": "shop", "targetNamespace": "shop", "releaseName": "web"},
        "status": {"observedGeneration": 1,
            "inventory": {"entries": [{"id": "shop_web__ConfigMap", "v": "v1"}]}},
    });
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: shop}\n";
    let plain = object("v1", "ConfigMap", "shop", "web");
    let flux = json!({"helm.toolkit.fluxcd.io/name": "evil", "helm.toolkit.fluxcd.io/namespace": "tenant"});
    let objects = [declaring, release("shop", "web", 1, "deployed", map), plain.clone()];
    check(Propagation::Metadata, &objects, Then::Comes(with(plain, "/metadata/labels", flux)));
}

#[test]
fn a_controller_turns_out_to_be_of_the_cluster() {
    let widget = object("example.com/v1", "Widget", "", "w");
    let made = owned(labelled("v1", "ConfigMap", "made"), &widget, true);
    check(Propagation::IsNamespaced, &[made], Then::Comes(widget));
}

/// The ReplicaSet of a Deployment, and how it is when its Pods are refused.
fn replica_set(owner: &Value) -> [Value; 2] {
    let mut set = owned(object("apps/v1", "ReplicaSet", "shop", "web-1"), owner, true);
    set["spec"] = json!({"replicas": 2, "template": {"metadata": {"labels": {"app": "web"}}}});
    let refused = json!({"replicas": 1, "observedGeneration": 1, "conditions": [{"type": "ReplicaFailure",
        "status": "True", "reason": "FailedCreate", "message": "exceeded quota: small"}]});
    [with(set.clone(), "/status", json!({"replicas": 1})), with(set, "/status", refused)]
}

#[test]
fn an_app_upstream_says_another_cause() {
    let condition = |mut object: Value, reason: &str, message: &str| {
        object["status"]["conditions"][0] = json!({"type": "Ready", "status": "False", "reason": reason,
            "message": message, "observedGeneration": 1, "lastTransitionTime": "2026-03-01T11:00:00Z"});
        object
    };
    let entries = ["shop_web_apps_Deployment"];
    let deployment = with(deployment("web", 1), "/metadata/labels", json!({}));
    let infra = condition(kustomization("infra", &entries), "HealthCheckFailed", "timeout");
    let waits = with(kustomization("shop", &[]), "/spec/dependsOn", json!([{"name": "infra"}]));
    let waits = condition(waits, "DependencyNotReady", "dependency 'flux-system/infra' is not ready");
    let failed = json!([{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded",
        "message": "timed out"}]);
    let objects = [infra, waits, source("main@sha1:aaa"), deployment.clone()];
    check(Propagation::Relations, &objects, Then::Comes(with(deployment, "/status/conditions", failed)));
    // A parent creates an app that is not judged again.
    let parent = kustomization("root", &["flux-system_web_kustomize.toolkit.fluxcd.io_Kustomization"]);
    let objects = [kustomization("web", &[]), kustomization("root", &[]), source("main@sha1:aaa")];
    check(Propagation::Relations, &objects, Then::Comes(parent));
}

#[test]
fn what_a_controller_makes_changes() {
    let owner = deployment("web", 1);
    let [set, refused] = replica_set(&owner);
    check(Propagation::Controlled, &[owner, set], Then::Comes(refused));
}

#[test]
fn what_an_owner_waits_for_goes() {
    let going = json!("2026-03-01T11:50:00Z");
    let mut owner = with(deployment("web", 2), "/metadata/deletionTimestamp", going.clone());
    owner["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
    let held = owned(object("v1", "ConfigMap", "shop", "held"), &owner, false);
    let mut held = with(held, "/metadata/deletionTimestamp", going);
    held["metadata"]["finalizers"] = json!(["example.com/keep"]);
    check(Propagation::Owned, &[owner, held.clone()], Then::Goes(held));
}

fn waiting_claim() -> [Value; 2] {
    let class = with(
        object("storage.k8s.io/v1", "StorageClass", "", "late"),
        "/volumeBindingMode",
        json!("WaitForFirstConsumer"),
    );
    let mut claim = labelled("v1", "PersistentVolumeClaim", "data");
    claim["spec"] = json!({"storageClassName": "late"});
    claim["status"] = json!({"phase": "Pending"});
    [class, claim]
}

#[test]
fn the_user_of_a_claim_ends() {
    let [class, claim] = waiting_claim();
    let volumes = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]);
    let user = |phase| with(pod("user", phase), "/spec/volumes", volumes.clone());
    check(Propagation::Users, &[class, claim, user("Pending")], Then::Comes(user("Succeeded")));
}

#[test]
fn the_pods_of_a_namespace_turn_out_to_be_left_out() {
    let [class, claim] = waiting_claim();
    let set = |replicas: i64| {
        with(object("apps/v1", "ReplicaSet", "shop", "other"), "/status", json!({"replicas": replicas}))
    };
    check(Propagation::Pods, &[class, claim, set(0)], Then::Comes(set(1)));
}

#[test]
fn a_budget_is_kept() {
    let budget = |wanted: i64| {
        let mut budget = object("policy/v1", "PodDisruptionBudget", "shop", "web");
        budget["spec"] = json!({"selector": {"matchLabels": {"app": "web"}}});
        budget["status"] =
            json!({"observedGeneration": 1, "desiredHealthy": wanted, "currentHealthy": wanted});
        budget
    };
    let options = Options { pdb: Budgets::Sufficient, ..Options::default() };
    check_with(Propagation::Budgets, &options, &[deployment("web", 1), budget(2)], Then::Comes(budget(1)));
}

#[test]
fn a_pod_makes_room() {
    let mut waiting = labelled("v1", "Pod", "waiting");
    waiting["spec"] = json!({"containers": [{"name": "c"}], "priority": 1000});
    waiting["metadata"]["creationTimestamp"] = json!("2026-03-01T11:55:00Z");
    waiting["status"] = json!({"phase": "Pending", "nominatedNodeName": "node-1", "conditions": [{"type": "PodScheduled",
        "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}]});
    let mut leaving =
        with(pod("low", "Running"), "/metadata/deletionTimestamp", json!("2026-03-01T12:00:10Z"));
    leaving["metadata"]["deletionGracePeriodSeconds"] = json!(30);
    leaving["status"]["conditions"] =
        json!([{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]);
    check(Propagation::Leaving, &[waiting, pod("low", "Running")], Then::Comes(leaving));
}

#[test]
fn a_definition_says_that_a_status_is_to_come() {
    let young = with(
        labelled("example.com/v1", "Widget", "w"),
        "/metadata/creationTimestamp",
        json!("2026-03-01T11:59:00Z"),
    );
    let mut definition =
        object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "widgets.example.com");
    definition["spec"] = json!({"group": "example.com", "names": {"kind": "Widget", "plural": "widgets"},
        "scope": "Namespaced", "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}}}]});
    check(Propagation::Definition, &[young], Then::Comes(definition));
}

#[test]
fn what_holds_a_namespace_goes() {
    let mut namespace = with(
        object("v1", "Namespace", "", "shop"),
        "/metadata/deletionTimestamp",
        json!("2026-03-01T11:50:00Z"),
    );
    namespace["spec"] = json!({"finalizers": ["kubernetes"]});
    namespace["status"] = json!({"phase": "Terminating"});
    let mut held = with(
        object("v1", "ConfigMap", "shop", "held"),
        "/metadata/deletionTimestamp",
        json!("2026-03-01T11:50:00Z"),
    );
    held["metadata"]["finalizers"] = json!(["example.com/keep"]);
    let objects =
        [kustomization("web", &["_shop__Namespace"]), source("main@sha1:aaa"), namespace, held.clone()];
    check(Propagation::Namespace, &objects, Then::Goes(held));
}

#[test]
fn an_event_tells_of_a_refusal() {
    let claim = with(labelled("v1", "PersistentVolumeClaim", "data"), "/status", json!({"phase": "Pending"}));
    let event = json!({"apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": "ProvisioningFailed",
        "message": "no space", "lastTimestamp": "2026-03-01T11:59:00Z", "metadata": {"namespace": "shop", "name": "e"},
        "involvedObject": {"kind": "PersistentVolumeClaim", "namespace": "shop", "name": "data"}});
    check(Propagation::Events, &[claim], Then::Comes(event));
}

fn read(key: &ObjectKey, target: Target) -> Read {
    Read {
        group: key.group.clone(),
        version: "v1".to_owned(),
        kind: key.kind.clone(),
        plural: "things".to_owned(),
        namespace: None,
        projection: Projection::Full,
        target,
    }
}

#[test]
fn a_list_is_refused() {
    let objects = [kustomization("web", &["shop_gone__ConfigMap"]), source("main@sha1:aaa")];
    let key = ObjectKey::new("", "ConfigMap", "shop", "gone");
    let list = read(&key, Target::List { labels: None, fields: None });
    let refuse =
        |cluster: &mut Snapshot| cluster.answer(&list, Answer::Forbidden { message: "forbidden".to_owned() });
    check(Propagation::Lists, &objects, Then::Scope(&refuse));
}

#[test]
fn a_release_comes_into_the_storage() {
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: shop}\n";
    let first = release("shop", "web", 1, "deployed", map);
    check(Propagation::Storage, &[first], Then::Comes(release("shop", "web", 2, "failed", map)));
}

#[test]
fn a_workload_says_that_it_is_an_argo_cd() {
    let mut app = object("argoproj.io/v1alpha1", "Application", "argocd", "web");
    app["spec"] = json!({"destination": {"server": "https://kubernetes.default.svc"}});
    app["status"] = json!({"sync": {"status": "Synced"}, "health": {"status": "Healthy"}});
    let mut settings = object("v1", "ConfigMap", "argocd", "argocd-cm");
    settings["data"] =
        json!({"resource.customizations.health.apps_Deployment": "return {status = 'Healthy'}"});
    let mut workload = object("apps/v1", "StatefulSet", "argocd", "controller");
    workload["metadata"]["labels"] = json!({"app.kubernetes.io/component": "application-controller"});
    workload["spec"] = json!({"template": {"spec": {"serviceAccountName": "argocd"}}});
    check(Propagation::ArgoControllers, &[app, settings], Then::Comes(workload));
}

#[test]
fn why_a_body_was_not_read_is_told() {
    let shop = deployment("web", 2);
    let key = key_of(&shop);
    let report = |cluster: &mut Snapshot| {
        cluster.report(ScopeError {
            scope: Scope::Object(key.clone()),
            reason: "Timeout".to_owned(),
            message: "it took too long".to_owned(),
        });
    };
    let seen = |without: Option<Propagation>| {
        let mut cluster = Snapshot::dump("prod", NOW);
        cluster.insert(document(&shop), Projection::Metadata).unwrap();
        let mut rows = AppRows::new(AppLabels::default());
        without.into_iter().for_each(|it| rows.leave_out(it));
        for _ in 0..2 {
            let changes = [cluster.take_changes()];
            rows.look(&[&cluster], &changes, &ActiveRules::default(), NOW);
            report(&mut cluster);
        }
        let changes = [cluster.take_changes()];
        rows.look(&[&cluster], &changes, &ActiveRules::default(), NOW);
        rows.list().clone() == apps_by(&AppLabels::default(), &[&cluster], &ActiveRules::default(), NOW)
    };
    assert!(seen(None));
    assert!(!seen(Some(Propagation::Errors)));
}

#[test]
fn a_cluster_goes_dark() {
    let lost = |cluster: &mut Snapshot| {
        cluster.set_freshness(Freshness { state: FreshnessState::Lost, observed_at: Some(NOW) });
    };
    check(Propagation::Freshness, &[deployment("web", 2)], Then::Scope(&lost));
}

#[test]
fn two_apps_share_an_object_that_is_not_well() {
    let mut shared = deployment("web", 1);
    shared["metadata"]["labels"] = json!({});
    let entry = ["shop_web_apps_Deployment"];
    let [set, refused] = replica_set(&shared);
    let objects =
        [kustomization("a", &entry), kustomization("b", &entry), source("main@sha1:aaa"), shared, set];
    check(Propagation::Shared, &objects, Then::Comes(refused));
}

#[test]
fn an_object_gets_the_label_of_an_app() {
    let mut plain = labelled("v1", "ConfigMap", "one");
    plain["metadata"]["labels"] = json!({"app.kubernetes.io/instance": "other"});
    let objects = [plain, labelled("v1", "ConfigMap", "two")];
    check(Propagation::Labels, &objects, Then::Comes(labelled("v1", "ConfigMap", "one")));
}

#[test]
fn controller_of_labelled_objects_goes_or_is_replaced() {
    let owner = deployment("web", 2);
    let made = owned(labelled("v1", "ConfigMap", "made"), &owner, true);
    let objects = [owner.clone(), made];
    check(Propagation::Controllers, &objects, Then::Goes(owner.clone()));
    check(Propagation::Controllers, &objects, Then::Comes(with(owner, "/metadata/uid", json!("another"))));
}

#[test]
fn a_stateful_set_turns_out_to_have_made_a_claim() {
    let mut claim = labelled("v1", "PersistentVolumeClaim", "data-db-0");
    claim["status"] = json!({"phase": "Bound"});
    let set = with(
        object("apps/v1", "StatefulSet", "shop", "db"),
        "/spec",
        json!({"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}),
    );
    check(Propagation::ClaimTemplates, &[claim], Then::Comes(set));
}

#[test]
fn an_inventory_takes_an_object_from_its_labels() {
    let mut object = labelled("v1", "ConfigMap", "one");
    for (name, value) in [("name", "web"), ("namespace", "flux-system")] {
        object["metadata"]["labels"][format!("kustomize.toolkit.fluxcd.io/{name}")] = json!(value);
    }
    let claiming = kustomization("web", &["shop_one__ConfigMap"]);
    let objects = [object.clone(), kustomization("web", &[]), source("main@sha1:aaa")];
    check(Propagation::Claims, &objects, Then::Comes(claiming.clone()));
    check(Propagation::Claims, &[object, source("main@sha1:aaa")], Then::Comes(claiming));
}

#[test]
fn a_pod_that_fits_no_node_has_failed_after_a_while() {
    let mut waiting = labelled("v1", "Pod", "waiting");
    waiting["metadata"]["creationTimestamp"] = json!(NOW.to_string());
    waiting["status"] = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
        "reason": "Unschedulable", "message": "0/3 nodes"}]});
    check(Propagation::Time, &[waiting], Then::Passes(SignedDuration::from_secs(15)));
}

/// The moment is known at which time alone changes something.
#[test]
fn the_next_moment_is_exact() {
    let mut waiting = labelled("v1", "Pod", "waiting");
    waiting["metadata"]["creationTimestamp"] = json!(NOW.to_string());
    waiting["status"] = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
        "reason": "Unschedulable", "message": "0/3 nodes"}]});
    let cluster = holding("prod", &[waiting, deployment("web", 2)]);
    let mut rows = AppRows::new(AppLabels::default());
    rows.look(&[&cluster], &[], &ActiveRules::default(), NOW);
    assert_eq!(rows.next_moment(), Some(NOW + SignedDuration::from_secs(15)));
    let quiet = [ChangeBatch::default()];
    let looked = rows.look(&[&cluster], &quiet, &ActiveRules::default(), NOW + SignedDuration::from_secs(14));
    assert_eq!(looked.judged, 0);
    let looked = rows.look(&[&cluster], &quiet, &ActiveRules::default(), NOW + SignedDuration::from_secs(15));
    assert_eq!(looked.judged, 1);
    assert_eq!(rows.next_moment(), None);
}

/// A change of one app leaves the others as they are.
#[test]
fn a_status_event_judges_one_row() {
    let mut objects: Vec<Value> = (0..20)
        .map(|at| {
            let mut one = deployment("web", 2);
            one["metadata"]["name"] = json!(format!("d{at}"));
            one["metadata"]["labels"] = json!({"app.kubernetes.io/instance": format!("app-{at}")});
            one
        })
        .collect();
    let mut cluster = holding("prod", &objects);
    let mut rows = AppRows::new(AppLabels::default());
    let changes = [cluster.take_changes()];
    assert_eq!(rows.look(&[&cluster], &changes, &ActiveRules::default(), NOW).judged, 20);
    objects[7]["status"]["readyReplicas"] = json!(1);
    cluster.insert(document(&objects[7]), Projection::Full).unwrap();
    let changes = [cluster.take_changes()];
    let looked = rows.look(&[&cluster], &changes, &ActiveRules::default(), NOW);
    assert_eq!((looked.judged, looked.declared, looked.is_whole), (1, 0, false));
}

/// A change of one declaring object leaves the declarations of others as they are.
#[test]
fn an_event_of_a_declaring_object_reads_one_declaration() {
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: shop}\n";
    let mut objects: Vec<Value> = (0..20).map(|at| kustomization(&format!("k{at}"), &[])).collect();
    objects.extend([source("main@sha1:aaa"), release("shop", "web", 1, "deployed", map)]);
    let mut cluster = holding("prod", &objects);
    let mut rows = AppRows::new(AppLabels::default());
    let mut told = |object: Value| {
        cluster.insert(document(&object), Projection::Full).unwrap();
        let changes = [cluster.take_changes()];
        let looked = rows.look(&[&cluster], &changes, &ActiveRules::default(), NOW);
        assert_eq!(*rows.list(), apps_by(&AppLabels::default(), &[&cluster], &ActiveRules::default(), NOW));
        (looked.judged, looked.declared, looked.is_whole)
    };
    assert_eq!(told(kustomization("k3", &[])), (21, 22, true), "20 objects, the storage and the Argo CDs");
    let suspended = with(kustomization("k3", &[]), "/spec/suspend", json!(true));
    assert_eq!(told(suspended), (1, 1, false));
    assert_eq!(told(kustomization("k3", &["shop_one__ConfigMap"])), (1, 1, false), "its claims change");
    assert_eq!(told(kustomization("new", &[])), (1, 1, false));
    assert_eq!(told(release("shop", "web", 2, "deployed", map)), (1, 1, false), "only the storage");
}
