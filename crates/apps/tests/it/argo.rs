//! Argo CD: Applications, and the clusters of their objects.
//!
//! The shapes are those of Argo CD v3.6 (`37ee0097`), `pkg/apis/application/v1alpha1/types.go`; each fixture names the
//! type that it follows.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use taffrail_api::AppDetailList;
use taffrail_apps::{App, Objects, Read, ReadQuery, SyncState, apps};
use taffrail_status::{ActiveRules, Status};

use super::dump::{NOW, apps_of, holding};
use super::reads::object;
use super::server::Server;

const OLD: &str = "1111111111111111111111111111111111111111";
const NEW: &str = "2222222222222222222222222222222222222222";

/// Application, with ApplicationSpec and ApplicationDestination.
fn application(name: &str, destination: Value, status: Value) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"namespace": "argocd", "name": name, "generation": 12},
        "spec": {
            "destination": destination,
            "source": {"repoURL": "https://git.example.com/deploy.git", "path": "apps/shop", "targetRevision": "main"},
        },
        "status": status,
    })
}

fn here() -> Value {
    json!({"server": "https://kubernetes.default.svc", "namespace": "shop"})
}

/// ApplicationStatus: SyncStatus, RevisionHistories and ResourceStatus.
fn status(compared: &str, desired: &str, applied: Option<&str>, operation: Value) -> Value {
    let history: Vec<Value> = applied
        .into_iter()
        .map(|revision| json!({"id": 7, "revision": revision, "deployedAt": "2026-03-01T11:20:00Z"}))
        .chain([json!({"id": 6, "revision": "older"})])
        .collect();
    json!({
        "sync": {"status": compared, "revision": desired}, "history": history, "operationState": operation,
        "resources": [{"version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "settings", "status": "Synced"}],
    })
}

/// OperationState and SyncOperationResult.
fn operation(phase: &str, revision: &str) -> Value {
    json!({"phase": phase, "message": format!("{phase} says Argo CD"), "syncResult": {"revision": revision}})
}

fn settings() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": "settings"}})
}

fn row(app: Value) -> App {
    let mut list = apps_of(&holding("prod", &[app, settings()]));
    assert_eq!((list.apps.len(), list.errors.len()), (1, 0), "{list:?}");
    list.apps.remove(0)
}

#[test]
fn operations_affect_sync_but_not_health() {
    use SyncState::{Failed, OutOfSync, Synced, Syncing, Unknown};

    let with = |condition: &str| {
        let mut status = status("Synced", NEW, Some(NEW), operation("Succeeded", NEW));
        status["conditions"] = json!([{"type": condition, "message": format!("{condition} says Argo CD")}]);
        status
    };
    let no_revision = json!({"phase": "Error", "message": "Error says Argo CD"});
    let asked = json!({"phase": "Failed", "message": "Failed says Argo CD", "operation": {"sync": {"revision": NEW}}});
    for (case, status, sync, message) in [
        ("well", status("Synced", NEW, Some(NEW), operation("Succeeded", NEW)), Synced, "Synced to 22222222"),
        (
            "moved on",
            status("OutOfSync", NEW, Some(OLD), operation("Succeeded", OLD)),
            OutOfSync,
            "Synced to 11111111",
        ),
        (
            "running",
            status("OutOfSync", NEW, Some(OLD), operation("Running", NEW)),
            Syncing,
            "Synced to 11111111",
        ),
        (
            "stopping",
            status("OutOfSync", NEW, Some(OLD), operation("Terminating", NEW)),
            Syncing,
            "Synced to 11111111",
        ),
        (
            "failed",
            status("OutOfSync", NEW, Some(OLD), operation("Failed", NEW)),
            Failed,
            "Failed says Argo CD",
        ),
        (
            "failed hook",
            status("Synced", NEW, Some(NEW), operation("Failed", NEW)),
            Failed,
            "Failed says Argo CD",
        ),
        (
            "failed before",
            status("OutOfSync", NEW, Some(OLD), operation("Failed", OLD)),
            OutOfSync,
            "Synced to 11111111",
        ),
        ("failed at once", status("OutOfSync", NEW, Some(OLD), no_revision), Failed, "Error says Argo CD"),
        ("failed without result", status("OutOfSync", NEW, Some(OLD), asked), Failed, "Failed says Argo CD"),
        ("not compared", with("ComparisonError"), Unknown, "ComparisonError says Argo CD"),
        ("bad spec", with("InvalidSpecError"), Unknown, "InvalidSpecError says Argo CD"),
        ("warned", with("OrphanedResourceWarning"), Synced, "Synced to 22222222"),
        (
            "unknown",
            status("Unknown", NEW, Some(NEW), operation("Succeeded", NEW)),
            Unknown,
            "Synced to 22222222",
        ),
        ("never synced", status("Synced", NEW, None, json!(null)), Synced, "Synced to 22222222"),
    ] {
        let row = row(application("shop", here(), status));
        assert_eq!((row.sync.state, &*row.message, row.health), (sync, message, Status::Current), "{case}");
    }
    let mut requested =
        application("shop", here(), status("Synced", NEW, Some(NEW), operation("Succeeded", NEW)));
    requested["operation"] = json!({"sync": {}});
    assert_eq!(row(requested).sync.state, Syncing);
    let mut skipped =
        application("shop", here(), status("OutOfSync", NEW, Some(OLD), operation("Failed", NEW)));
    skipped["metadata"]["annotations"] = json!({"argocd.argoproj.io/skip-reconcile": "true"});
    let skipped = row(skipped);
    assert_eq!((skipped.sync.state, skipped.suspended), (SyncState::Suspended, true));
}

#[test]
fn revisions_of_several_sources_are_joined() {
    let mut status = status("OutOfSync", "", None, json!(null));
    status["sync"] = json!({"status": "OutOfSync", "revisions": ["1.2.0", NEW]});
    status["history"] = json!([{"id": 0, "revisions": ["1.2.0", OLD], "deployedAt": "2026-03-01T11:20:00Z"}]);
    status["operationState"] = json!({"phase": "Failed", "message": "no", "syncResult": {"revision": "", "revisions": ["1.2.0", OLD]}});
    let mut app = application("shop", here(), status);
    app["spec"]["sources"] = json!([
        {"ref": "values", "repoURL": "https://git.example.com/values.git"},
        {"chart": "shop", "repoURL": "https://charts.example.com", "targetRevision": "1.*"},
    ]);
    app["status"]["sourceTypes"] = json!(["Directory", "Helm"]);
    let cluster = holding("prod", &[app.clone(), settings()]);
    let list = apps_of(&cluster);
    let detail = AppDetailList::new(&[&list.apps[0]], &list, &[&cluster], &ActiveRules::default(), NOW)
        .items
        .remove(0);
    let sources: Vec<_> =
        detail.reconciliation.sources.iter().map(|row| (&*row.name, row.revision.as_deref())).collect();
    assert_eq!(sources, [("values", Some("1.2.0")), ("charts.example.com", Some(NEW))]);
    assert_eq!(detail.application.deployment_type.as_deref(), Some("directory,helm"));
    let row = row(app);
    assert_eq!(row.sync.state, SyncState::OutOfSync, "what failed was another revision");
    assert_eq!(row.sync.desired, Some(format!("1.2.0,{NEW}")));
    assert_eq!(row.sync.applied, Some(format!("1.2.0,{OLD}")));
    assert_eq!(row.message, "Synced to 1.2.0,11111111");
    let source = row.source.unwrap();
    assert_eq!((source.path.as_deref(), source.kind.as_str()), (Some("shop"), "helm"));
}

#[test]
fn a_hydrated_source_is_the_branch_that_it_is_written_to() {
    let mut app = application("shop", here(), status("Synced", NEW, Some(NEW), json!(null)));
    app["spec"].as_object_mut().unwrap().remove("source");
    app["spec"]["sourceHydrator"] = json!({
        "drySource": {"repoURL": "https://git.example.com/deploy.git", "path": "dry/shop", "targetRevision": "HEAD"},
        "syncSource": {"targetBranch": "env/prod", "path": "shop"},
    });
    let source = row(app).source.unwrap();
    assert_eq!(source.url.as_deref(), Some("https://git.example.com/deploy.git"));
    assert_eq!((source.path.as_deref(), source.reference.as_deref()), (Some("shop"), Some("env/prod")));
}

#[test]
fn hooks_do_not_count_as_managed_resources() {
    let mut status = status("OutOfSync", NEW, Some(NEW), json!(null));
    status["resources"] = json!([
        {"kind": "ConfigMap", "namespace": "shop", "name": "settings"},
        {"kind": "ConfigMap", "namespace": "shop", "name": "old", "status": "OutOfSync", "requiresPruning": true},
        {"group": "batch", "kind": "Job", "namespace": "shop", "name": "migrate", "hook": true},
        {"kind": "ConfigMap", "namespace": "shop"},
    ]);
    let list = apps_of(&holding("prod", &[application("shop", here(), status), settings()]));
    let row = &list.apps[0];
    assert_eq!((row.counts.total(), row.health), (2, Status::NotFound));
    assert_eq!(row.message, "ConfigMap shop/old not found");
    let [error] = list.errors.as_slice() else { panic!("{:?}", list.errors) };
    assert_eq!(
        error.error.message,
        "Application argocd/shop: entry 3 of its object list has no kind or name"
    );
}

#[test]
fn an_unreconciled_application_is_in_progress_without_holding_up_its_parent() {
    let mut fresh = application("child", here(), json!(null));
    fresh.as_object_mut().unwrap().remove("status");
    let mut status = status("Synced", NEW, Some(NEW), json!(null));
    status["resources"] =
        json!([{"group": "argoproj.io", "kind": "Application", "namespace": "argocd", "name": "child"}]);
    let list = apps_of(&holding("prod", &[application("parent", here(), status), fresh]));
    let rows: Vec<_> = list.apps.iter().map(|row| (&*row.app.name, row.health, row.sync.state)).collect();
    assert_eq!(
        rows,
        [("child", Status::InProgress, SyncState::Unknown), ("parent", Status::Current, SyncState::Synced)]
    );
}

#[test]
fn an_application_deleted_before_its_first_reconciliation_is_terminating() {
    let mut app = application("shop", here(), json!({}));
    app["metadata"]["deletionTimestamp"] = json!("2026-03-01T11:00:00Z");
    assert_eq!(row(app).health, Status::Terminating);
}

/// `docs/operator-manual/declarative-setup.md`, "Clusters": the Secret that holds a cluster.
fn cluster_secret(name: &str, server: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {
            "namespace": "argocd", "name": format!("cluster-{name}"),
            "labels": {"argocd.argoproj.io/secret-type": "cluster"},
        },
        "data": {"name": STANDARD.encode(name), "server": STANDARD.encode(server)},
    })
}

/// Argo CD reads only the cluster Secrets in its own namespace.
#[test]
fn cluster_secrets_of_other_namespaces_do_not_redirect_applications() {
    let mut forged = cluster_secret("edge", "https://dead.example.com");
    forged["metadata"]["namespace"] = json!("aaa");
    let honest = cluster_secret("edge", "https://edge.example.com:6443");
    let app = application("web", json!({"name": "edge"}), status("Synced", NEW, Some(NEW), json!(null)));
    let mut edge = holding("edge", &[]);
    edge.add_server("https://edge.example.com:6443");
    for (secrets, target) in [(vec![forged.clone(), honest], "edge"), (vec![forged], "hub")] {
        let hub = holding("hub", &[std::slice::from_ref(&app), &secrets[..]].concat());
        let clusters: [&dyn Objects; 2] = [&hub, &edge];
        let list = apps(&clusters, &ActiveRules::default(), NOW);
        assert_eq!(list.apps[0].app.target, target);
        assert!(!list.apps[0].message.contains("dead.example.com"), "{}", list.apps[0].message);
    }
}

#[test]
fn the_destination_decides_the_target_cluster() {
    let well = || status("Synced", NEW, Some(NEW), json!(null));
    let edge_server = "https://edge.example.com:6443";
    let secrets = [
        cluster_secret("edge", edge_server),
        cluster_secret("far", "https://far.example.com"),
        cluster_secret("own", "https://kubernetes.default.svc"),
        // A Secret of that name without the label is none of Argo CD's.
        {
            let mut secret = cluster_secret("stray", edge_server);
            secret["metadata"]["labels"] = json!({});
            secret
        },
    ];
    for (destination, target, health, message) in [
        (here(), "hub", Status::NotFound, "not found"),
        (json!({"name": "in-cluster"}), "hub", Status::NotFound, "not found"),
        (json!({"server": "https://hub.example.com"}), "hub", Status::NotFound, "not found"),
        (json!({"server": format!("{edge_server}/")}), "edge", Status::Current, "Synced to"),
        (json!({"name": "edge"}), "edge", Status::Current, "Synced to"),
        // The cluster of Argo CD itself may be given a name as well.
        (json!({"name": "own"}), "hub", Status::NotFound, "not found"),
        (
            json!({"name": "far"}),
            "hub",
            Status::Unknown,
            "deploys to far at https://far.example.com, which was not queried (add --context far)",
        ),
        (
            json!({"name": "stray"}),
            "hub",
            Status::Unknown,
            "deploys to stray, which was not queried (add --context stray)",
        ),
        (json!({"server": "https://gone.example.com"}), "hub", Status::Unknown, "https://gone.example.com"),
        (json!({}), "hub", Status::Unknown, "an unnamed cluster"),
        // It stands in a command that people copy.
        (json!({"name": "c;touch${IFS}/tmp/x"}), "hub", Status::Unknown, "(add --context NAME)"),
        (json!({"name": "--kubeconfig=x"}), "hub", Status::Unknown, "(add --context NAME)"),
    ] {
        let mut objects = secrets.to_vec();
        objects.push(application("shop", destination.clone(), well()));
        let mut hub = holding("hub", &objects);
        hub.add_server("https://hub.example.com");
        let mut edge = holding("edge", &[settings()]);
        edge.add_server(edge_server);
        let list = apps(&[&hub, &edge], &ActiveRules::default(), NOW);
        let [row] = list.apps.as_slice() else { panic!("{list:?}") };
        assert_eq!((&*row.app.home, &*row.app.target, row.health), ("hub", target, health), "{destination}");
        assert!(row.message.contains(message), "{destination}: {}", row.message);
        assert_eq!((row.sync.state, row.counts.total()), (SyncState::Synced, 1));
    }
}

/// Each namespace with an Application costs a read of the settings of its Argo CD.
#[test]
fn the_search_for_argo_cds_is_limited_and_the_rest_is_reported() {
    let named = |namespace: &str, name: &str| {
        let mut app = object("argoproj.io/v1alpha1", "Application", namespace, name);
        (app["spec"], app["status"]) = (json!({}), json!({}));
        app
    };
    let mut objects: Vec<Value> = (0..2000).map(|at| named(&format!("n{at}"), "a")).collect();
    objects.extend([named("zz", "a"), named("zz", "b"), named("argocd", "a")]);
    objects.extend([object("v1", "ConfigMap", "zz", "x"), object("apps/v1", "StatefulSet", "zz", "x")]);
    let (live, log) = Server::new(objects).read("cluster", &ReadQuery::default());
    let settings: Vec<String> =
        log.all().map(Read::path).filter(|path| path.ends_with("/argocd-cm")).collect();
    assert_eq!(settings.len(), 500);
    for own in ["argocd", "zz"] {
        assert!(settings.contains(&format!("/api/v1/namespaces/{own}/configmaps/argocd-cm")), "{own}");
    }
    let workloads = log.all().filter(|read| read.kind == "StatefulSet").count();
    assert!(workloads <= 3, "{workloads}");
    let list = apps(&[&live], &ActiveRules::default(), NOW);
    let told: Vec<_> = list.errors.iter().filter(|it| it.error.reason == "OverLimit").collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0]
            .error
            .message
            .contains("in 2002 namespaces; Taffrail looks for Argo CD settings in only 500 of them"),
        "{told:?}"
    );
}
