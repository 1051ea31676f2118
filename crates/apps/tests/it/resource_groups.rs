//! kpt and Config Sync: both list the objects that they manage in a ResourceGroup.
//!
//! The shapes are those of kpt `23c57d7` and Config Sync `bd5fadf`; each fixture names the type that it follows.

use serde_json::{Value, json};
use taffrail_apps::{App, SyncState};
use taffrail_status::Status;

use super::dump::{apps_of, holding};

/// ResourceGroup `kpt.dev/v1alpha1`, as `kpt live` and the reconcilers of Config Sync write it.
fn group(name: &str, resources: Value, status: Value) -> Value {
    let mut group = json!({
        "apiVersion": "kpt.dev/v1alpha1", "kind": "ResourceGroup",
        "metadata": {"namespace": "wiki", "name": name, "generation": 2},
        "spec": {"resources": resources},
    });
    if !status.is_null() {
        group["status"] = status;
    }
    group
}

fn settings() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "wiki", "name": "settings"}})
}

fn resources() -> Value {
    json!([{"group": "", "kind": "ConfigMap", "namespace": "wiki", "name": "settings"}])
}

/// ResourceStatus of that ResourceGroup: status, strategy, actuation and reconcile.
fn done(actuation: &str, reconcile: &str) -> Value {
    let mut entry = resources()[0].clone();
    entry["status"] = json!("Current");
    entry["strategy"] = json!("Apply");
    entry["actuation"] = json!(actuation);
    entry["reconcile"] = json!(reconcile);
    entry
}

/// ResourceGroupStatus, with the conditions of the ResourceGroup controller of Config Sync.
fn with(statuses: &[Value]) -> Value {
    json!({
        "observedGeneration": 2, "resourceStatuses": statuses,
        "conditions": [
            {"type": "Reconciling", "status": "False", "reason": "FinishReconciling", "message": "finish reconciling"},
            {"type": "Stalled", "status": "False", "reason": "FinishReconciling", "message": "finish reconciling"},
        ],
    })
}

fn only(objects: &[Value]) -> App {
    let mut list = apps_of(&holding("prod", objects));
    assert_eq!((list.apps.len(), list.errors.len()), (1, 0), "{list:?}");
    list.apps.remove(0)
}

#[test]
fn sync_of_a_package_follows_the_actuation_of_its_objects() {
    use SyncState::{Failed, OutOfSync, Synced, Syncing, Unknown};

    let well = || done("Succeeded", "Succeeded");
    let mut old = well();
    old.as_object_mut()
        .unwrap()
        .retain(|key, _| key != "actuation" && key != "strategy" && key != "reconcile");
    let mut behind = with(&[well()]);
    behind["observedGeneration"] = json!(1);
    for (status, sync, health, message) in [
        (with(&[well()]), Synced, Status::Current, "finish reconciling"),
        (with(&[well(), done("Succeeded", "Pending")]), Syncing, Status::Current, "finish reconciling"),
        (with(&[well(), done("Pending", "Pending")]), Syncing, Status::Current, "finish reconciling"),
        (with(&[well(), done("Skipped", "Skipped")]), OutOfSync, Status::Current, "finish reconciling"),
        (
            with(&[done("Succeeded", "Pending"), done("Failed", "Skipped")]),
            Failed,
            Status::Current,
            "kpt reports for ConfigMap wiki/settings: Apply Failed",
        ),
        (
            with(&[well(), done("Succeeded", "Timeout")]),
            Failed,
            Status::Current,
            "kpt reports for ConfigMap wiki/settings: reconcile Timeout",
        ),
        (with(&[old]), Unknown, Status::Current, "finish reconciling"),
        (
            behind,
            Syncing,
            Status::InProgress,
            "ResourceGroup generation is 2, but latest observed generation is 1",
        ),
        (Value::Null, Unknown, Status::Current, ""),
    ] {
        let row = only(&[group("inventory", resources(), status.clone()), settings()]);
        assert_eq!((row.sync.state, row.health, &*row.message), (sync, health, message), "{status}");
        assert_eq!(row.counts.total(), 1);
    }
}

#[test]
fn health_follows_the_live_objects_and_subgroups() {
    // The copy of the status says Current; the object is gone.
    let gone = only(&[group("inventory", resources(), with(&[done("Succeeded", "Succeeded")]))]);
    assert_eq!((gone.health, gone.sync.state), (Status::NotFound, SyncState::Synced));

    let mut child = group("child", json!([]), with(&[]));
    child["status"]["conditions"] = json!([
        {"type": "Stalled", "status": "True", "reason": "ExceedTimeout", "message": "too slow"},
    ]);
    let mut parent = group("parent", json!([]), with(&[]));
    parent["spec"]["subgroups"] = json!([{"namespace": "wiki", "name": "child"}]);
    let list = apps_of(&holding("prod", &[parent, child]));
    let rows: Vec<_> = list.apps.iter().map(|row| (&*row.app.name, row.health, &*row.message)).collect();
    assert_eq!(rows, [("child", Status::Failed, "too slow"), ("parent", Status::Failed, "too slow")]);
}

const OLD: &str = "1111111111111111111111111111111111111111";
const NEW: &str = "2222222222222222222222222222222222222222";

/// Config Sync `pkg/api/configsync/v1beta1/reposync_types.go`, RepoSync.
fn root_sync(status: Value) -> Value {
    let mut sync = json!({
        "apiVersion": "configsync.gke.io/v1beta1", "kind": "RepoSync",
        "metadata": {"namespace": "wiki", "name": "repo-sync", "generation": 1},
        "spec": {"sourceType": "git", "git": {"repo": "https://git.example.com/config", "dir": "wiki", "branch": "main"}},
    });
    if !status.is_null() {
        sync["status"] = status;
    }
    sync
}

/// `pkg/api/configsync/v1beta1/sync_types.go`, Status: SourceStatus, RenderingStatus and SyncStatus.
fn stages(source: &str, sync: &str, synced: &str, syncing: &str) -> Value {
    json!({
        "observedGeneration": 1, "lastSyncedCommit": synced,
        "source": {"commit": source}, "rendering": {"commit": source},
        "sync": {"commit": sync, "lastUpdate": "2026-03-01T11:20:00Z"},
        "conditions": [
            {"type": "Reconciling", "status": "False"},
            {"type": "Stalled", "status": "False"},
            {"type": "Syncing", "status": syncing, "reason": "Sync", "message": "Sync Completed"},
        ],
    })
}

#[test]
fn config_sync_errors_affect_sync_but_not_health() {
    use SyncState::{Failed, OutOfSync, Synced, Syncing, Unknown};

    let failing = |stage: &str, mut status: Value| {
        status[stage]["errors"] =
            json!([{"code": "1", "errorMessage": "KNV0001: no"}, {"errorMessage": "more"}]);
        status
    };
    let mut counted = stages(NEW, NEW, OLD, "False");
    counted["sync"]["errorSummary"] =
        json!({"totalCount": 40, "errorCountAfterTruncation": 0, "truncated": true});
    let mut stalled = stages(NEW, NEW, NEW, "False");
    stalled["conditions"] = json!([
        {"type": "Reconciling", "status": "True", "reason": "Deployment", "message": "reconciling"},
        {"type": "Stalled", "status": "True", "reason": "Deployment", "message": "stalled"},
    ]);
    for (case, status, sync, health, message) in [
        ("well", stages(NEW, NEW, NEW, "False"), Synced, Status::Current, "Sync Completed"),
        ("behind", stages(NEW, OLD, OLD, "False"), OutOfSync, Status::Current, "Sync Completed"),
        ("syncing", stages(NEW, OLD, OLD, "True"), Syncing, Status::Current, "Sync Completed"),
        (
            "bad source",
            failing("source", stages(NEW, NEW, NEW, "False")),
            Failed,
            Status::Current,
            "KNV0001: no",
        ),
        (
            "bad rendering",
            failing("rendering", stages(NEW, OLD, OLD, "False")),
            Failed,
            Status::Current,
            "KNV0001: no",
        ),
        ("bad sync", failing("sync", stages(NEW, NEW, OLD, "True")), Failed, Status::Current, "KNV0001: no"),
        (
            "bad sync before",
            failing("sync", stages(NEW, OLD, OLD, "True")),
            Syncing,
            Status::Current,
            "Sync Completed",
        ),
        ("cut errors", counted, Failed, Status::Current, "Config Sync reports 40 errors"),
        ("stalled", stalled, Failed, Status::Failed, "stalled"),
        ("new", Value::Null, Unknown, Status::InProgress, "waiting to be reconciled"),
    ] {
        let inventory = group("repo-sync", resources(), with(&[done("Succeeded", "Succeeded")]));
        let row = only(&[root_sync(status), inventory, settings()]);
        assert_eq!((row.sync.state, row.health, &*row.message), (sync, health, message), "{case}");
        assert_eq!(row.counts.total(), 1, "what it manages is in the ResourceGroup");
    }
}

#[test]
fn last_success_of_config_sync_is_known_while_its_source_or_rendering_fails() {
    let failing = |stage: &str, mut status: Value| {
        status[stage]["errors"] = json!([{"code": "1", "errorMessage": "KNV0001: no"}]);
        status
    };
    let told = |status: Value| {
        let inventory = group("repo-sync", resources(), with(&[done("Succeeded", "Succeeded")]));
        let sync = only(&[root_sync(status), inventory, settings()]).sync;
        (sync.applied, sync.last_success.map(|at| at.to_string()))
    };
    let at = Some("2026-03-01T11:20:00Z".to_owned());
    let applied = |commit: &str, at: &Option<String>| (Some(commit.to_owned()), at.clone());
    assert_eq!(told(stages(NEW, NEW, NEW, "False")), applied(NEW, &at));
    assert_eq!(told(failing("source", stages(NEW, NEW, NEW, "False"))), applied(NEW, &at));
    assert_eq!(told(failing("source", stages(NEW, OLD, OLD, "False"))), applied(OLD, &at));
    assert_eq!(told(failing("rendering", stages(NEW, OLD, OLD, "False"))), applied(OLD, &at));
    // The time of a sync that failed, or that is of another commit, is not that of a success.
    assert_eq!(told(failing("sync", stages(NEW, NEW, OLD, "True"))), applied(OLD, &None));
    assert_eq!(told(failing("sync", stages(NEW, NEW, NEW, "False"))), applied(NEW, &None));
    assert_eq!(told(stages(NEW, NEW, OLD, "True")), applied(OLD, &None));
    let by_condition = |of: Value| {
        let mut status = stages(NEW, NEW, NEW, "False");
        status["conditions"][2]["errorSummary"] = json!({"totalCount": 1});
        status["conditions"][2]["errorSourceRefs"] = of;
        told(status)
    };
    assert_eq!(by_condition(json!(["SourceError"])), applied(NEW, &at));
    assert_eq!(by_condition(json!(["SourceError", "SyncError"])), applied(NEW, &None));
    assert_eq!(by_condition(json!(null)), applied(NEW, &None));
}

#[test]
fn a_root_sync_without_inventory_has_no_objects_yet() {
    let row = only(&[root_sync(stages(NEW, "", "", "True"))]);
    assert_eq!((row.counts.total(), row.health, row.sync.applied), (0, Status::Current, None));
    let source = row.source.unwrap();
    assert_eq!(
        (source.url.as_deref(), source.path.as_deref(), source.reference.as_deref()),
        (Some("https://git.example.com/config"), Some("wiki"), Some("main"))
    );
}
