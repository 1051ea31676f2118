//! Flux: the state of apps, their objects, and their clusters.
//!
//! The shapes are those of Flux v2: kustomize-controller `186fb3b`, helm-controller `0f61a86`, source-controller
//! `39b711b1`; each fixture names the type that it follows.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use taffrail_api::AppDetailList;
use taffrail_apps::{App, ReadQuery, SyncState, apps};
use taffrail_status::{ActiveRules, Status};

use super::dump::{NOW, apps_of, holding, release};
use super::server::Server;

const OLD: &str = "main@sha1:1111111111111111111111111111111111111111";
const NEW: &str = "main@sha1:2222222222222222222222222222222222222222";

/// source-controller `api/v1/gitrepository_types.go`, GitRepository; the artifact as in `fluxcd/pkg` `apis/meta`.
fn source(revision: Option<&str>) -> Value {
    json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
        "metadata": {"namespace": "flux-system", "name": "fleet"},
        "spec": {"url": "https://git.example.com/fleet", "ref": {"branch": "main"}},
        "status": revision.map_or(json!({}), |revision| json!({"artifact": {"revision": revision}})),
    })
}

/// kustomize-controller `api/v1/kustomization_types.go`, Kustomization.
fn kustomization(status: Value) -> Value {
    json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"namespace": "flux-system", "name": "shop", "generation": 3, "creationTimestamp": "2026-02-10T09:00:00Z"},
        "spec": {"path": "./shop", "sourceRef": {"kind": "GitRepository", "name": "fleet"}},
        "status": status,
    })
}

/// A condition of `fluxcd/pkg` `apis/meta/conditions.go`, with its reasons.
fn ready(status: &str, reason: &str, generation: i64) -> Value {
    json!({
        "type": "Ready", "status": status, "reason": reason, "message": format!("{reason} says Flux"),
        "observedGeneration": generation, "lastTransitionTime": "2026-03-01T11:20:00Z",
    })
}

/// The conditions that `runtime/reconcile` of `fluxcd/pkg` sets while a controller works or retries.
fn reconciling() -> Value {
    json!({"type": "Reconciling", "status": "True", "reason": "Progressing", "message": "working", "observedGeneration": 3})
}

/// kustomize-controller `api/v1/kustomization_types.go`, KustomizationStatus.
fn status(applied: Option<&str>, attempted: Option<&str>, observed: i64, conditions: &[Value]) -> Value {
    let mut status = json!({"observedGeneration": observed, "conditions": conditions});
    if let Some(applied) = applied {
        status["lastAppliedRevision"] = json!(applied);
    }
    if let Some(attempted) = attempted {
        status["lastAttemptedRevision"] = json!(attempted);
    }
    status
}

#[test]
fn the_state_of_a_kustomization_follows_from_revisions_and_conditions() {
    use Status::{Current, Failed, InProgress};
    use SyncState::{OutOfSync, Synced, Syncing, Unknown};

    let (old, new) = (Some(OLD), Some(NEW));
    let well = || ready("True", "ReconciliationSucceeded", 3);
    let waits = || ready("False", "DependencyNotReady", 3);
    let fails = || ready("False", "BuildFailed", 3);
    let works = || ready("Unknown", "Progressing", 3);
    let fresh = || kustomization(json!({"observedGeneration": -1}));
    let no_status = {
        let mut object = kustomization(json!({}));
        object.as_object_mut().unwrap().remove("status");
        object
    };
    let cases: Vec<(&str, Value, Option<Value>, SyncState, Status)> = vec![
        ("applied", kustomization(status(new, new, 3, &[well()])), Some(source(new)), Synced, Current),
        (
            "newer source",
            kustomization(status(old, old, 3, &[well()])),
            Some(source(new)),
            OutOfSync,
            Current,
        ),
        (
            "newer spec",
            kustomization(status(new, new, 2, &[ready("True", "ReconciliationSucceeded", 2)])),
            Some(source(new)),
            OutOfSync,
            InProgress,
        ),
        (
            "working",
            kustomization(status(old, new, 3, &[reconciling(), works()])),
            Some(source(new)),
            Syncing,
            InProgress,
        ),
        (
            "working on the same",
            kustomization(status(new, new, 3, &[works()])),
            Some(source(new)),
            Syncing,
            InProgress,
        ),
        (
            "failing",
            kustomization(status(old, new, 3, &[fails()])),
            Some(source(new)),
            SyncState::Failed,
            Failed,
        ),
        (
            "failing, retried",
            kustomization(status(old, new, 3, &[reconciling(), fails()])),
            Some(source(new)),
            SyncState::Failed,
            Failed,
        ),
        (
            "failing, success long ago",
            kustomization(status(old, new, 1, &[fails()])),
            Some(source(new)),
            SyncState::Failed,
            Failed,
        ),
        (
            "waiting, newer source",
            kustomization(status(old, old, 3, &[waits()])),
            Some(source(new)),
            OutOfSync,
            InProgress,
        ),
        (
            "waiting, reconciling",
            kustomization(status(old, old, 3, &[reconciling(), waits()])),
            Some(source(new)),
            OutOfSync,
            InProgress,
        ),
        (
            "waiting, nothing new",
            kustomization(status(new, new, 3, &[waits()])),
            Some(source(new)),
            Synced,
            InProgress,
        ),
        (
            "waiting, newer spec",
            kustomization(status(new, new, 2, &[waits()])),
            Some(source(new)),
            OutOfSync,
            InProgress,
        ),
        ("never looked at", fresh(), Some(source(new)), OutOfSync, InProgress),
        ("never looked at, empty source", fresh(), Some(source(None)), Unknown, InProgress),
        ("no status", no_status, Some(source(new)), OutOfSync, InProgress),
        (
            "source gone, failing",
            kustomization(status(old, old, 3, &[fails()])),
            None,
            SyncState::Failed,
            Failed,
        ),
        ("source gone, not noticed", kustomization(status(old, old, 3, &[well()])), None, Unknown, Current),
    ];
    for (case, app, source, sync, health) in cases {
        let objects: Vec<Value> = source.into_iter().chain([app]).collect();
        let list = apps_of(&holding("prod", &objects));
        let [row] = list.apps.as_slice() else { panic!("{case}: {list:?}") };
        assert_eq!((row.sync.state, row.health), (sync, health), "{case}");
    }
}

#[test]
fn a_suspended_app_keeps_its_last_verdict() {
    for (condition, health) in [
        (ready("True", "ReconciliationSucceeded", 2), Status::Current),
        (ready("False", "BuildFailed", 2), Status::Failed),
    ] {
        // Suspending is a new generation, which nobody looks at.
        let mut app = kustomization(status(Some(OLD), Some(OLD), 2, &[condition]));
        app["spec"]["suspend"] = json!(true);
        let list = apps_of(&holding("prod", &[source(Some(NEW)), app]));
        let row = &list.apps[0];
        assert_eq!((row.sync.state, row.health, row.suspended), (SyncState::Suspended, health, true));
    }
}

#[test]
fn a_row_has_the_source_and_the_last_success() {
    let mut state = status(Some(NEW), Some(NEW), 3, &[ready("True", "ReconciliationSucceeded", 3)]);
    let list = apps_of(&holding("prod", &[source(Some(NEW)), kustomization(state.clone())]));
    let App { source: Some(from), sync, message, .. } = &list.apps[0] else { panic!("{list:?}") };
    assert_eq!(from.url.as_deref(), Some("https://git.example.com/fleet"));
    assert_eq!((from.path.as_deref(), from.reference.as_deref()), (Some("./shop"), Some("main")));
    assert_eq!(sync.last_success.map(|at| at.to_string()).as_deref(), Some("2026-03-01T11:20:00Z"));
    assert_eq!(message, "ReconciliationSucceeded says Flux");

    state["history"] = json!([
        {"lastReconciled": "2026-03-01T11:59:00Z", "lastReconciledStatus": "HealthCheckFailed"},
        {"lastReconciled": "2026-03-01T11:40:00Z", "lastReconciledStatus": "ReconciliationSucceeded"},
    ]);
    let list = apps_of(&holding("prod", &[source(Some(NEW)), kustomization(state)]));
    let at = list.apps[0].sync.last_success.map(|at| at.to_string());
    assert_eq!(at.as_deref(), Some("2026-03-01T11:40:00Z"));
}

#[test]
fn sources_of_apps_are_not_orphans() {
    let of_kind = |kind: &str, name: &str| {
        json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": kind,
            "metadata": {"namespace": "flux-system", "name": name}, "status": {}})
    };
    let release = |name: &str, spec: Value| {
        let mut app = helm_release(spec, json!({}));
        (app["metadata"]["name"], app["metadata"]["namespace"]) = (json!(name), json!("flux-system"));
        app
    };
    let chart =
        json!({"chart": {"spec": {"chart": "db", "sourceRef": {"kind": "HelmRepository", "name": "acme"}}}});
    let objects = [
        kustomization(status(Some(NEW), Some(NEW), 3, &[])),
        source(Some(NEW)),
        release("of-repository", chart),
        of_kind("HelmRepository", "acme"),
        release("of-oci", json!({"chartRef": {"kind": "OCIRepository", "name": "db"}})),
        of_kind("OCIRepository", "db"),
        of_kind("GitRepository", "unused"),
        of_kind("Bucket", "fleet"),
    ];
    let cluster = holding("prod", &objects);
    let orphans = apps_of(&cluster).orphans(&cluster, &Default::default()).objects;
    let names: Vec<String> =
        orphans.iter().map(|orphan| format!("{}/{}", orphan.key.kind, orphan.key.name)).collect();
    assert_eq!(names, ["Bucket/fleet", "GitRepository/unused"], "sources of no app");
}

/// source-controller `api/v1/helmchart_types.go`, `ocirepository_types.go`: the artifact of a chart.
fn chart(kind: &str, revision: &str) -> Value {
    json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": kind,
        "metadata": {"namespace": "shop", "name": if kind == "HelmChart" { "shop-db" } else { "db" }},
        "status": {"artifact": {"revision": revision}},
    })
}

/// helm-controller `api/v2/helmrelease_types.go`, HelmRelease.
fn helm_release(spec: Value, status: Value) -> Value {
    json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"namespace": "shop", "name": "db", "generation": 3}, "spec": spec, "status": status,
    })
}

/// helm-controller `api/v2/helmrelease_types.go`, HelmReleaseStatus, with Snapshots of `snapshot_types.go` and the
/// inventory of `inventory_types.go`.
fn with_history(versions: &[(i64, &str, &str)], attempted: &str) -> Value {
    let snapshot = |(version, chart, status): &(i64, &str, &str)| json!({"name": "db", "namespace": "shop", "version": version, "chartVersion": chart, "status": status});
    json!({
        "observedGeneration": 3, "conditions": [ready("True", "UpgradeSucceeded", 3)],
        "history": versions.iter().map(snapshot).collect::<Vec<_>>(), "lastAttemptedRevision": attempted,
        "inventory": {"entries": []},
    })
}

#[test]
fn revisions_of_charts_are_compared_as_helm_controller_writes_them() {
    let digest = "sha256:821df151bf12406d1f5f548874154c43b1fc81007439b52c6822bd5c9323110f";
    let chart_spec = || json!({"chart": {"spec": {"chart": "db", "sourceRef": {"kind": "HelmRepository", "name": "acme"}}}});
    let oci = || json!({"chartRef": {"kind": "OCIRepository", "name": "db"}});
    for (spec, kind, revision, version, same) in [
        (chart_spec(), "HelmChart", "2.0.0", "2.0.0", true),
        (chart_spec(), "HelmChart", "2.1.0", "2.0.0", false),
        (chart_spec(), "HelmChart", "2.0.0+1e644628deb6", "2.0.0+1e644628deb6", true),
        (oci(), "OCIRepository", &*format!("6.5.4@{digest}"), "6.5.4+821df151bf12", true),
        (oci(), "OCIRepository", &*format!("latest@{digest}"), "6.5.4+821df151bf12", true),
        (oci(), "OCIRepository", digest, "6.5.4+821df151bf12", true),
        (oci(), "OCIRepository", &*format!("6.5.4@{digest}"), "6.5.4", true),
        (oci(), "OCIRepository", &*format!("6.5.4@{digest}"), "6.5.4+aaaaaaaaaaaa", false),
        (oci(), "OCIRepository", &*format!("6.5.4@{digest}"), "6.5.3", false),
    ] {
        let app = helm_release(spec, with_history(&[(1, version, "deployed")], version));
        let list = apps_of(&holding("prod", &[chart(kind, revision), app]));
        let expected = if same { SyncState::Synced } else { SyncState::OutOfSync };
        assert_eq!(list.apps[0].sync.state, expected, "{version} of {revision}");
        assert_eq!(list.apps[0].sync.applied.as_deref(), Some(version));
    }
}

#[test]
fn a_chart_that_is_referred_to_comes_from_the_source_of_that_chart() {
    let mut chart = chart("HelmChart", "2.0.0");
    chart["spec"] =
        json!({"chart": "db", "version": "2.x", "sourceRef": {"kind": "HelmRepository", "name": "acme"}});
    let repository = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmRepository",
        "metadata": {"namespace": "shop", "name": "acme"}, "spec": {"url": "https://charts.example.com"},
    });
    let app = helm_release(
        json!({"chartRef": {"kind": "HelmChart", "name": "shop-db"}}),
        with_history(&[(1, "2.0.0", "deployed")], "2.0.0"),
    );
    let cluster = holding("prod", &[chart, repository, app]);
    let list = apps_of(&cluster);
    let source = list.apps[0].source.clone().unwrap();
    assert_eq!(
        (source.kind.as_str(), source.url.as_deref()),
        ("HelmRepository", Some("https://charts.example.com"))
    );
    assert_eq!((source.path.as_deref(), source.reference.as_deref()), (Some("db"), Some("2.x")));
    assert_eq!(list.apps[0].sync.state, SyncState::Synced);
    let detail = AppDetailList::new(&[&list.apps[0]], &list, &[&cluster], &ActiveRules::default(), NOW);
    let sources: Vec<_> = detail.items[0].reconciliation.sources.iter().map(|row| &*row.kind).collect();
    assert_eq!(sources, ["HelmRepository", "HelmChart"]);
}

#[test]
fn applied_is_the_newest_release_that_is_or_was_deployed() {
    for (history, applied) in [
        (vec![(3, "3.0.0", "failed"), (2, "2.0.0", "deployed"), (1, "1.0.0", "superseded")], Some("2.0.0")),
        // The order of the list does not matter.
        (
            vec![(1, "1.0.0", "superseded"), (3, "3.0.0", "pending-upgrade"), (2, "2.0.0", "superseded")],
            Some("2.0.0"),
        ),
        (vec![(1, "1.0.0", "failed")], None),
    ] {
        let app = helm_release(json!({}), with_history(&history, "3.0.0"));
        let list = apps_of(&holding("prod", &[app]));
        assert_eq!(list.apps[0].sync.applied.as_deref(), applied, "{history:?}");
    }
    let old =
        json!({"lastAppliedRevision": "1.2.3", "conditions": [ready("True", "ReconciliationSucceeded", 3)]});
    let list = apps_of(&holding("prod", &[helm_release(json!({}), old)]));
    assert_eq!(list.apps[0].sync.applied.as_deref(), Some("1.2.3"));
}

const MANIFEST: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: db\n---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: db\n";

fn without_inventory(mut status: Value) -> Value {
    status.as_object_mut().unwrap().remove("inventory");
    status
}

#[test]
fn without_inventory_the_objects_are_those_of_the_release() {
    let history =
        || without_inventory(with_history(&[(2, "2.0.0", "deployed"), (1, "1.0.0", "superseded")], "2.0.0"));
    let newest = release("shop", "db", 2, "deployed", MANIFEST);
    let older = release("shop", "db", 1, "superseded", "");
    let list = apps_of(&holding("prod", &[helm_release(json!({}), history()), older, newest.clone()]));
    let [row] = list.apps.as_slice() else {
        panic!("a release of a HelmRelease is no app of its own: {list:?}")
    };
    let keys: Vec<String> = row.resources.iter().map(|resource| resource.key.to_string()).collect();
    assert_eq!(keys, ["apps/Deployment/shop/db", "/Secret/shop/db"]);
    assert_eq!(row.health, Status::NotFound);

    // Definitions are no part of a release; helm-controller labels those that it applies.
    let definition = |name: &str, namespace: &str| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": name, "labels": {
                "helm.toolkit.fluxcd.io/name": "db", "helm.toolkit.fluxcd.io/namespace": namespace,
            }},
        })
    };
    let list = apps_of(&holding(
        "prod",
        &[
            helm_release(json!({}), history()),
            newest.clone(),
            definition("a.example.com", "shop"),
            definition("b.example.com", "wiki"),
        ],
    ));
    let keys: Vec<&str> = list.apps[0].resources.iter().map(|resource| &*resource.key.name).collect();
    assert_eq!(keys, ["db", "db", "a.example.com"]);

    // The storage is elsewhere, and the release has another name.
    let spec = json!({"releaseName": "store", "targetNamespace": "shop", "storageNamespace": "flux-system"});
    let mut named = release("shop", "store", 1, "deployed", MANIFEST);
    named["metadata"]["namespace"] = json!("flux-system");
    let applied = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"namespace": "shop", "name": "db", "labels": {
            "helm.toolkit.fluxcd.io/name": "db", "helm.toolkit.fluxcd.io/namespace": "shop",
        }},
    });
    let list = apps_of(&holding("prod", &[helm_release(spec, json!({})), named, applied]));
    assert_eq!((list.apps.len(), list.apps[0].resources.len()), (1, 2), "{list:?}");

    // The release cannot be read.
    let mut damaged = newest;
    damaged["data"] = json!({"release": "!"});
    for storage in [Some(damaged), None] {
        let objects: Vec<Value> = storage.into_iter().chain([helm_release(json!({}), history())]).collect();
        let list = apps_of(&holding("prod", &objects));
        assert_eq!((list.apps.len(), list.apps[0].health), (1, Status::Unknown), "{list:?}");
        assert!(list.apps[0].message.contains("sh.helm.release.v1.db.v2"), "{}", list.apps[0].message);
        assert_eq!(list.errors.len(), 1);
    }

    // Nothing was ever installed.
    let list = apps_of(&holding("prod", &[helm_release(json!({}), json!({}))]));
    assert_eq!((list.apps[0].health, list.errors.len()), (Status::InProgress, 0));
}

#[test]
fn long_release_names_are_recognised_in_their_short_form() {
    let mut app = helm_release(json!({"targetNamespace": "a-namespace-with-quite-a-long-name"}), json!({}));
    app["metadata"]["name"] = json!("and-a-release-with-another");
    let stored = release(
        "a-namespace-with-quite-a-long-name",
        "a-namespace-with-quite-a-long-name-and-a-0123456789ab",
        1,
        "deployed",
        MANIFEST,
    );
    let mut own = stored.clone();
    own["metadata"]["namespace"] = json!("shop");
    let list = apps_of(&holding("prod", &[app.clone(), own]));
    assert_eq!((list.apps.len(), list.apps[0].resources.len()), (1, 2), "{list:?}");
    // One of that name in another namespace is not its.
    assert_eq!(apps_of(&holding("prod", &[app, stored])).apps.len(), 2);
}

/// helm-controller keeps a few snapshots; thousands in the status do not make an author claim more releases.
#[test]
fn only_the_newest_release_names_of_a_long_history_count() {
    let snapshot = |version: i64| json!({"name": format!("db-{version}"), "namespace": "shop", "version": version, "status": "superseded"});
    let mut status = with_history(&[], "1.0.0");
    status["history"] = (1..=40).map(snapshot).collect();
    let stored = [1, 20, 21, 40].map(|at| release("shop", &format!("db-{at}"), 1, "deployed", MANIFEST));
    let objects: Vec<Value> = [helm_release(json!({}), status)].into_iter().chain(stored).collect();
    let list = apps_of(&holding("prod", &objects));
    let names: Vec<&str> = list.apps.iter().map(|app| &*app.app.name).collect();
    assert_eq!(names, ["db", "db-1", "db-20"]);
}

#[test]
fn a_long_history_tells_a_success_only_among_its_newest_entries() {
    let mut failed: Vec<(i64, &str, &str)> = (2..=40).map(|version| (version, "2.0.0", "failed")).collect();
    failed.push((1, "1.0.0", "superseded"));
    let list = apps_of(&holding("prod", &[helm_release(json!({}), with_history(&failed, "2.0.0"))]));
    assert_eq!(list.apps[0].sync.applied, None);

    let mut state = status(Some(NEW), Some(NEW), 3, &[ready("False", "HealthCheckFailed", 3)]);
    let entry =
        |status: &str| json!({"lastReconciled": "2026-03-01T11:40:00Z", "lastReconciledStatus": status});
    let failed = (0..20).map(|_| entry("HealthCheckFailed"));
    state["history"] = failed.chain([entry("ReconciliationSucceeded")]).collect();
    let list = apps_of(&holding("prod", &[source(Some(NEW)), kustomization(state)]));
    assert_eq!(list.apps[0].sync.last_success, None);
}

/// The Secret of `spec.kubeConfig.secretRef`: `fluxcd/pkg` `apis/meta/reference_types.go`,
/// KubeConfigReference.
fn kubeconfig(server: &str) -> Value {
    let config = format!(
        "clusters:\n- name: other\n  cluster: {{server: https://other.example.com}}\n- name: edge\n  cluster:\n    server: {server}\n\
         contexts:\n- name: c\n  context: {{cluster: edge, user: u}}\ncurrent-context: c\nusers: []\n"
    );
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "flux-system", "name": "edge"},
        "data": {"value": STANDARD.encode(config)},
    })
}

fn remote() -> Value {
    let mut state = status(Some(NEW), Some(NEW), 3, &[ready("True", "ReconciliationSucceeded", 3)]);
    state["inventory"] = json!({"entries": [{"id": "shop_settings__ConfigMap", "v": "v1"}]});
    let mut app = kustomization(state);
    app["spec"]["kubeConfig"] = json!({"secretRef": {"name": "edge"}});
    app
}

fn settings() -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "shop", "name": "settings", "labels": {
            "app.kubernetes.io/instance": "shop",
            "kustomize.toolkit.fluxcd.io/name": "shop", "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
        }},
    })
}

#[test]
fn an_app_is_followed_into_the_cluster_that_its_kubeconfig_names() {
    let hub = holding("hub", &[source(Some(NEW)), remote(), kubeconfig("https://edge.example.com/")]);
    let mut edge = holding("edge", &[settings()]);
    edge.add_server("https://EDGE.example.com:443");
    let list = apps(&[&hub, &edge], &ActiveRules::default(), NOW);
    let [row] = list.apps.as_slice() else { panic!("its objects make no label row there: {list:?}") };
    assert_eq!((&*row.app.home, &*row.app.target, row.health), ("hub", "edge", Status::Current));
}

#[test]
fn a_kubeconfig_of_the_home_cluster_targets_the_home() {
    for server in ["https://kubernetes.default.svc", "https://kubernetes.default.svc.cluster.local:443/"] {
        let list = apps_of(&holding("hub", &[source(Some(NEW)), remote(), kubeconfig(server), settings()]));
        let [row] = list.apps.as_slice() else { panic!("{list:?}") };
        assert_eq!((row.in_reach, row.health), (true, Status::Current), "{server}");
    }
}

#[test]
fn passwords_in_addresses_of_clusters_are_not_shown() {
    let server = "https://admin:s3cr3t@10.0.0.1:6443?token=t0k3n";
    let cluster = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"namespace": "argocd", "name": "cl", "labels": {"argocd.argoproj.io/secret-type": "cluster"}},
        "data": {"name": STANDARD.encode("far"), "server": STANDARD.encode(server)},
    });
    let application = |name: &str, destination: Value| {
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"namespace": "argocd", "name": name}, "spec": {"destination": destination},
        })
    };
    let objects = [
        source(Some(NEW)),
        remote(),
        kubeconfig(server),
        cluster,
        application("by-name", json!({"name": "far"})),
        application("by-server", json!({"server": server})),
    ];
    let list = apps_of(&holding("hub", &objects));
    assert_eq!(list.apps.len(), 3);
    for row in &list.apps {
        assert!(row.message.contains("https://10.0.0.1:6443"), "{}", row.message);
        let all = format!("{row:?}");
        assert!(!all.contains("s3cr3t") && !all.contains("t0k3n"), "{all}");
    }
    // The whole address finds the cluster.
    let hub = holding("hub", &objects);
    let mut edge = holding("edge", &[settings()]);
    edge.add_server(server);
    let list = apps(&[&hub, &edge], &ActiveRules::default(), NOW);
    assert!(list.apps.iter().all(|row| &*row.app.target == "edge"), "{list:?}");
}

#[test]
fn an_app_out_of_reach_is_unknown_and_names_its_cluster() {
    // An object of that name at home is another one.
    for (config, place) in [
        (Some(kubeconfig("https://edge.example.com")), "https://edge.example.com"),
        (None, "flux-system/edge"),
    ] {
        let objects: Vec<Value> =
            config.into_iter().chain([source(Some(NEW)), remote(), settings()]).collect();
        let list = apps_of(&holding("hub", &objects));
        let row = list
            .apps
            .iter()
            .find(|row| row.app.name == "shop" && row.app.namespace == "flux-system")
            .unwrap();
        assert_eq!((&*row.app.target, row.health, row.counts.total()), ("hub", Status::Unknown, 1));
        assert!(row.message.contains(place), "{}", row.message);
        assert_eq!(row.sync.state, SyncState::Synced);
        assert_eq!(list.apps.len(), 2, "the object at home is unclaimed");
    }
    let mut failing = remote();
    failing["status"]["conditions"] = json!([ready("False", "BuildFailed", 3)]);
    let list = apps_of(&holding("hub", &[failing]));
    assert_eq!((list.apps[0].health, &*list.apps[0].message), (Status::Failed, "BuildFailed says Flux"));
}

#[test]
fn the_worst_object_decides_and_the_declaring_one_only_if_worse() {
    let object = |name: &str, since: &str| {
        json!({
            "apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"namespace": "shop", "name": name},
            "status": {"conditions": [{
                "type": "Ready", "status": "False", "reason": "Slow", "message": name, "lastTransitionTime": since,
            }]},
        })
    };
    let mut state = status(Some(OLD), Some(NEW), 3, &[ready("Unknown", "Progressing", 3)]);
    let ids = ["shop_b_example.com_Thing", "shop_a_example.com_Thing", "shop_b_example.com_Thing"];
    state["inventory"]["entries"] = ids.iter().map(|id| json!({"id": id, "v": "v1"})).collect();
    let (b, a) = (object("b", "2026-03-01T11:00:00Z"), object("a", "2026-03-01T11:30:00Z"));
    let list = apps_of(&holding("prod", &[kustomization(state), a, b]));
    let row = &list.apps[0];
    assert_eq!((&*row.message, row.counts.total()), ("b", 2));
    assert_eq!(row.worst.as_ref().map(ToString::to_string).as_deref(), Some("example.com/Thing/shop/b"));
}

#[test]
fn an_object_that_cannot_be_judged_is_unknown() {
    let mut state = status(Some(NEW), Some(NEW), 3, &[ready("True", "ReconciliationSucceeded", 3)]);
    state["inventory"]["entries"] = json!([{"id": "shop_web__Pod", "v": "v1"}]);
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "shop", "name": "web"}, "status": {"phase": "Odd"}});
    let list = apps_of(&holding("prod", &[kustomization(state), source(Some(NEW)), pod]));
    let expected = (Status::Unknown, "the object's status cannot be computed: unknown phase Odd");
    assert_eq!((list.apps[0].health, &*list.apps[0].message), expected);
}

#[test]
fn a_source_without_a_name_is_not_read() {
    let mut app = kustomization(json!({}));
    app["spec"]["sourceRef"] = json!({"kind": "GitRepository", "namespace": "sources"});
    let asked = ReadQuery { namespace: Some("flux-system".to_owned()), ..ReadQuery::default() };
    let (live, log) = Server::new(vec![app, source(None)]).read("cluster", &asked);
    assert!(
        log.all().all(|read| read.kind != "GitRepository" || read.namespace.as_deref() != Some("sources"))
    );
    let list = apps(&[&live], &ActiveRules::default(), NOW);
    assert_eq!(list.errors, []);
    assert_eq!((list.apps[0].sync.state, list.apps[0].sync.desired.as_deref()), (SyncState::Unknown, None));
}
