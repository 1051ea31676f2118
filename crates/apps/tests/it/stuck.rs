//! Apps that are green by their objects while their tool is stuck, has given up, or reports worse.

use serde_json::{Value, json};
use taffrail_apps::{Axis, ProblemSeverity, SyncState};

use super::dump::{holding, release};
use super::problem::{
    application, argo_status, fetched, git, in_every_view, kustomization, row, settings, since, worst, wrote,
};

const JUST_NOW: &str = "2026-03-01T11:55:00Z";
const FOR_LONG: &str = "2026-03-01T11:30:00Z";
const SINCE_JANUARY: &str = "2026-01-01T00:00:00Z";

/// Checks that an operation is a problem only after ten minutes, and an error after an hour, with its time.
#[track_caller]
fn is_stuck_in_time(axis: Axis, state: &str, of: impl Fn(&str) -> Vec<Value>) {
    let told = |at: &str| worst(&of(at));
    assert_eq!(told(JUST_NOW), None, "{state}: it goes on for five minutes");
    let at = |severity| Some((axis, state.to_owned(), severity));
    assert_eq!(told(FOR_LONG), at(ProblemSeverity::Waiting));
    assert_eq!(told(SINCE_JANUARY), at(ProblemSeverity::Error));
    let own = row(&holding("prod", &of(SINCE_JANUARY)));
    assert_eq!(since(&own).as_deref(), Some(SINCE_JANUARY));
}

fn running(at: &str) -> Vec<Value> {
    let mut status = argo_status("Synced", "Running");
    status["operationState"] = json!({"phase": "Running", "startedAt": at,
        "message": "waiting for completion of hook batch/Job/x", "operation": {"sync": {"revision": "c2"}}});
    vec![application(status), settings()]
}

/// Returns an Application with a sync that was requested at this time and has not begun.
fn requested(at: &str) -> Vec<Value> {
    let mut app = application(argo_status("Synced", "Succeeded"));
    app["operation"] = json!({"sync": {"revision": "c2"}});
    app["metadata"]["managedFields"] = wrote(&json!({"f:operation": {}}), at);
    vec![app, settings()]
}

#[test]
fn a_never_ending_argo_cd_operation_is_a_problem() {
    is_stuck_in_time(Axis::Sync, "Syncing", running);
    is_stuck_in_time(Axis::Sync, "Syncing", requested);
    let own = row(&holding("prod", &running(SINCE_JANUARY)));
    assert_eq!(own.sync.state, SyncState::Syncing);
    assert!(own.problem().unwrap().message.contains("hook batch/Job/x"), "{:?}", own.problems);
    in_every_view(&holding("prod", &running(SINCE_JANUARY)), "Ready, still syncing");
    let mut silent = running(SINCE_JANUARY);
    silent[0]["status"]["operationState"]["message"] = json!("");
    let own = row(&holding("prod", &silent));
    assert_eq!(own.problem().unwrap().message, "the sync operation of the Application is still running");
    let mut skipped = running(SINCE_JANUARY);
    skipped[0]["metadata"]["annotations"] = json!({"argocd.argoproj.io/skip-reconcile": "true"});
    assert_eq!(worst(&skipped), Some((Axis::Sync, "Syncing".to_owned(), ProblemSeverity::Error)));
}

#[test]
fn a_long_reconciliation_of_flux_is_a_problem_even_if_flux_says_nothing() {
    let mut silent = kustomization();
    silent["status"]["conditions"] = json!([{"type": "Ready", "status": "Unknown", "reason": "Progressing",
        "lastTransitionTime": SINCE_JANUARY}]);
    let own = row(&holding("prod", &[fetched(), silent]));
    assert_eq!(own.sync.state, SyncState::Syncing);
    assert_eq!(own.problem().unwrap().message, "the reconciliation of the app takes long");
}

#[test]
fn an_unfinished_helm_release_is_a_problem() {
    for status in ["pending-install", "pending-upgrade", "pending-rollback", "uninstalling"] {
        let of = |at: &str| {
            let mut stored =
                release("data", "pg", 2, status, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: pg}\n");
            stored["metadata"]["creationTimestamp"] = json!(at);
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "data", "name": "pg"}});
            vec![stored, object]
        };
        is_stuck_in_time(Axis::Sync, "Syncing", of);
        in_every_view(&holding("prod", &of(SINCE_JANUARY)), "Ready, still syncing");
        // Helm writes an old version again where it begins to uninstall it.
        let mut begun = of(SINCE_JANUARY);
        begun[0]["metadata"]["labels"]["modifiedAt"] = json!("1772366100");
        assert_eq!(worst(&begun), None, "{status}");
    }
}

fn root_sync(part: &Value) -> Vec<Value> {
    let mut sync = json!({
        "apiVersion": "configsync.gke.io/v1beta1", "kind": "RootSync",
        "metadata": {"namespace": "config-management-system", "name": "root-sync", "generation": 1},
        "spec": {"git": {"repo": "https://x"}},
        "status": {"observedGeneration": 1, "source": {"commit": "a"}, "sync": {"commit": "a"}, "lastSyncedCommit": "a"},
    });
    sync["status"]["conditions"] = json!([part]);
    vec![sync]
}

#[test]
fn a_long_syncing_root_sync_is_a_problem() {
    let of = |at: &str| {
        root_sync(&json!({"type": "Syncing", "status": "True", "reason": "Sync", "lastTransitionTime": at}))
    };
    is_stuck_in_time(Axis::Sync, "Syncing", of);
    in_every_view(&holding("prod", &of(SINCE_JANUARY)), "Ready, still syncing");
}

#[test]
fn errors_in_the_syncing_condition_of_a_root_sync_fail_its_sync() {
    let counted = |part: Value| {
        let mut syncing =
            json!({"type": "Syncing", "status": "False", "message": "boom", "lastTransitionTime": FOR_LONG});
        for (key, value) in part.as_object().unwrap() {
            syncing[key] = value.clone();
        }
        row(&holding("prod", &root_sync(&syncing)))
    };
    let failed = counted(json!({"errorSummary": {"totalCount": 3}}));
    assert_eq!(failed.sync.state, SyncState::Failed);
    assert_eq!(failed.problem().unwrap().message, "Config Sync reports 3 errors: boom");
    assert_eq!(since(&failed).as_deref(), Some(FOR_LONG));
    assert_eq!(counted(json!({"errorSummary": {"totalCount": 0}})).sync.state, SyncState::Synced);
    let older = counted(json!({"errorSummary": {"totalCount": 3}, "commit": "0"}));
    assert_eq!(older.sync.state, SyncState::Synced, "of an older commit");
    let kept = root_sync(
        &json!({"type": "ReconcilerFinalizerFailure", "status": "True", "message": "boom", "lastTransitionTime": FOR_LONG}),
    );
    let kept = row(&holding("prod", &kept));
    assert_eq!((kept.sync.state, since(&kept).as_deref()), (SyncState::Failed, Some(FOR_LONG)));
}

#[test]
fn worse_health_reported_by_argo_cd_is_shown() {
    let of = |word: &str, lists: bool| {
        let mut status = argo_status("Synced", "Succeeded");
        status["health"] = json!({"status": word, "lastTransitionTime": FOR_LONG});
        if !lists {
            status["resources"] = json!([]);
        }
        vec![application(status), settings()]
    };
    for word in ["Degraded", "Missing"] {
        let own = |lists, severity| {
            assert_eq!(worst(&of(word, lists)), Some((Axis::Health, word.to_owned(), severity)));
            in_every_view(&holding("prod", &of(word, lists)), &format!("Ready, {word} by Argo CD"));
            assert_eq!(since(&row(&holding("prod", &of(word, lists)))).as_deref(), Some(FOR_LONG));
        };
        own(false, ProblemSeverity::Error);
        own(true, ProblemSeverity::Notice);
    }
    for word in ["Healthy", "Progressing", "Suspended", "Unknown"] {
        assert_eq!(worst(&of(word, false)), None, "{word}");
    }
}

#[test]
fn a_sync_error_of_automated_sync_fails_the_sync() {
    for condition in ["SyncError", "DeletionError"] {
        let mut status = argo_status("Synced", "Succeeded");
        status["conditions"] = json!([{"type": condition, "message": "Failed last sync attempt: boom", "lastTransitionTime": FOR_LONG}]);
        let cluster = holding("prod", &[application(status.clone()), settings()]);
        let own = row(&cluster);
        assert_eq!(own.sync.state, SyncState::Failed, "{condition}");
        assert_eq!(own.problem().unwrap().message, "Failed last sync attempt: boom");
        assert_eq!(since(&own).as_deref(), Some(FOR_LONG));
        in_every_view(&cluster, "Ready, sync failed");
        status["operationState"]["phase"] = json!("Running");
        status["operationState"]["startedAt"] = json!(JUST_NOW);
        let again = row(&holding("prod", &[application(status), settings()]));
        assert_eq!(again.sync.state, SyncState::Syncing, "it is tried again");
    }
}

#[test]
fn an_unfetched_source_is_a_problem() {
    let of = |conditions: Value| {
        let mut source = git(conditions, "2026-03-01T09:00:00Z", "main@sha1:1");
        source["metadata"]["finalizers"] = json!(["finalizers.fluxcd.io"]);
        source
    };
    let unknown = |at: &str| {
        let ready = json!({"type": "Ready", "status": "Unknown", "reason": "Progressing", "message": "boom", "lastTransitionTime": at});
        vec![of(json!([ready])), kustomization()]
    };
    assert_eq!(worst(&unknown("2026-03-01T11:56:00Z")), None, "within its interval of five minutes");
    let is = |state: &str, severity| Some((Axis::Source, state.to_owned(), severity));
    assert_eq!(worst(&unknown("2026-03-01T11:54:00Z")), is("NotFetched", ProblemSeverity::Waiting));
    assert_eq!(worst(&unknown(SINCE_JANUARY)), is("NotFetched", ProblemSeverity::Error));
    in_every_view(&holding("prod", &unknown(SINCE_JANUARY)), "Ready, source not fetched");

    let deleted = |at: &str| {
        let mut source = fetched();
        source["metadata"]["deletionTimestamp"] = json!(at);
        vec![source, kustomization()]
    };
    assert_eq!(worst(&deleted(JUST_NOW)), is("Terminating", ProblemSeverity::Waiting));
    assert_eq!(worst(&deleted(SINCE_JANUARY)), is("Terminating", ProblemSeverity::Error));
    in_every_view(&holding("prod", &deleted(SINCE_JANUARY)), "Ready, source terminating");

    let stalled = json!([{"type": "Ready", "status": "True"},
        {"type": "Stalled", "status": "True", "reason": "URLInvalid", "message": "boom", "lastTransitionTime": JUST_NOW}]);
    let stalled = [of(stalled), kustomization()];
    assert_eq!(worst(&stalled), is("Stalled", ProblemSeverity::Error), "nothing tries it again");
    in_every_view(&holding("prod", &stalled), "Ready, source failed");
}
