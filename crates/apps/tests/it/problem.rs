//! Problems of a row: for each axis a state with a problem on it alone, in every view.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use taffrail_api::filter::Filter;
use taffrail_api::{Explanation, TrustReport};
use taffrail_apps::trust::TrustShape;
use taffrail_apps::{
    App, Axis, Freshness, FreshnessState, Objects, ProblemSeverity, Snapshot, SyncState, apps,
};
use taffrail_status::{ActiveRules, Status};

use super::dump::{NOW, holding, release};

pub(crate) fn git(conditions: Value, updated: &str, revision: &str) -> Value {
    json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
        "metadata": {"namespace": "flux-system", "name": "fleet"}, "spec": {"interval": "5m0s"},
        "status": {"conditions": conditions, "artifact": {"revision": revision, "lastUpdateTime": updated}},
    })
}

pub(crate) fn fetched() -> Value {
    git(json!([{"type": "Ready", "status": "True"}]), "2026-03-01T09:00:00Z", "main@sha1:1")
}

/// A source that keeps its last artifact and fails since then.
fn failing(kind: &str, status: &str, since: &str) -> Value {
    let message = "failed to checkout: authentication required";
    let failed = json!([
        {"type": kind, "status": status, "reason": "GitOperationFailed", "message": message, "lastTransitionTime": since},
        {"type": "Ready", "status": "False", "reason": "GitOperationFailed", "message": message, "lastTransitionTime": since},
    ]);
    git(failed, "2026-03-01T09:00:00Z", "main@sha1:1")
}

pub(crate) fn kustomization() -> Value {
    json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"namespace": "flux-system", "name": "shop", "generation": 1},
        "spec": {"sourceRef": {"kind": "GitRepository", "name": "fleet"}},
        "status": {
            "observedGeneration": 1, "lastAppliedRevision": "main@sha1:1", "lastAttemptedRevision": "main@sha1:1",
            "conditions": [{"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded",
                "message": "Applied revision: main@sha1:1", "observedGeneration": 1}],
            "inventory": {"entries": []},
        },
    })
}

pub(crate) fn application(status: Value) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"namespace": "argocd", "name": "shop"},
        "spec": {"destination": {"server": "https://kubernetes.default.svc"}, "syncPolicy": {"automated": {"selfHeal": true}}},
        "status": status,
    })
}

pub(crate) fn settings() -> Value {
    let mark = json!({"argocd.argoproj.io/tracking-id": "shop:/ConfigMap:shop/settings"});
    let metadata = json!({"namespace": "shop", "name": "settings", "annotations": mark});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
}

pub(crate) fn argo_status(sync: &str, phase: &str) -> Value {
    json!({
        "sync": {"status": sync, "revision": "c2"}, "health": {"status": "Healthy"}, "reconciledAt": "2026-03-01T11:59:00Z",
        "resources": [{"kind": "ConfigMap", "namespace": "shop", "name": "settings", "status": sync}],
        "operationState": {"phase": phase, "message": "one or more objects failed to apply", "finishedAt": "2026-03-01T11:30:00Z",
            "syncResult": {"revision": "c2", "resources": [
                {"group": "acme.dev", "kind": "Gear", "namespace": "shop", "name": "g", "status": "SyncFailed",
                 "message": "make sure the CRD is installed"}]}},
    })
}

fn controller(name: &str, namespace: &str, replicas: i64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"namespace": namespace, "name": name, "generation": 1}, "spec": {"replicas": replicas},
        "status": {"observedGeneration": 1, "replicas": replicas, "availableReplicas": replicas},
    })
}

pub(crate) fn row(cluster: &dyn Objects) -> App {
    let mut list = apps(&[cluster], &ActiveRules::default(), NOW);
    assert_eq!(list.apps.len(), 1, "{:?}", list.apps);
    list.apps.remove(0)
}

/// Returns the axis, state and severity of the worst problem of the only app.
pub(crate) fn worst(objects: &[Value]) -> Option<(Axis, String, ProblemSeverity)> {
    let row = row(&holding("prod", objects));
    row.problem().map(|problem| (problem.axis, problem.state.clone(), problem.severity))
}

/// Returns the text of each view for the only app of a cluster.
pub(crate) fn in_every_view(cluster: &dyn Objects, words: &str) {
    let list = apps(&[cluster], &ActiveRules::default(), NOW);
    let app = &list.apps[0];
    let problem = app.problem().unwrap();
    assert_eq!(taffrail_api::text::health(app, NOW), words);
    assert_ne!(words, "Ready");
    let json = serde_json::to_value(taffrail_api::List::<taffrail_api::AppRow>::from(&list)).unwrap();
    assert_eq!(json["items"][0]["problem"]["axis"], serde_json::to_value(problem.axis).unwrap());
    assert_eq!(json["items"][0]["problem"]["message"], *problem.message);

    let shown = |filter: Filter| {
        let mut list = list.clone();
        filter.apps(&mut list, &[cluster]);
        filter.by_status(&mut list);
        list.apps.len()
    };
    let by_status = |text: &str| shown(Filter { status: Some(text.parse().unwrap()), ..Filter::default() });
    assert_eq!(shown(Filter { problems: Some(BTreeSet::new()), ..Filter::default() }), 1, "{words}");
    assert_eq!(
        shown(Filter { sync: Some(app.effective_sync().as_str().parse().unwrap()), ..Filter::default() }),
        1,
        "{words}"
    );
    let pressing = usize::from(problem.is_pressing());
    assert_eq!((by_status("!Ready"), by_status("Ready")), (pressing, 1 - pressing), "{words}");
    assert_eq!(app.pressing().is_some(), problem.is_pressing(), "what --exit-status takes");

    let clusters = taffrail_api::ClusterList::new(&[cluster], &list);
    assert_eq!((clusters.items[0].problems, clusters.items[0].ready()), (pressing, 1 - pressing), "{words}");
    if problem.is_pressing() {
        assert_ne!(clusters.items[0].words(), "Ready");
        assert!(clusters.items[0].worst.is_some());
    }
    let explanation = Explanation::new(app, None);
    assert!(explanation.problems.iter().any(|it| it.axis == problem.axis), "{explanation:?}");
    let report = TrustReport::new(&[app], &list, &[cluster], NOW, TrustShape::default());
    let is_told = report.items.iter().any(|doubt| doubt.app_count == 1 || doubt.reason == "ClusterLost");
    assert!(is_told || app.health != Status::Current, "{words}: {:?}", report.items);
}

#[test]
fn each_axis_alone_shows_in_every_view() {
    let web = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "data", "name": "pg"},
    });
    let missing = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: gone}\n";
    in_every_view(&holding("prod", &[release("data", "pg", 1, "deployed", missing), web]), "NotFound");
    let mut unsynced = application(argo_status("OutOfSync", "Failed"));
    in_every_view(&holding("prod", &[unsynced.clone(), settings()]), "Ready, sync failed");
    unsynced["status"]["operationState"]["phase"] = json!("Succeeded");
    in_every_view(&holding("prod", &[unsynced.clone(), settings()]), "Ready, OutOfSync");
    unsynced["spec"]["syncPolicy"] = json!({});
    in_every_view(&holding("prod", &[unsynced, settings()]), "Ready, OutOfSync");
    let source = failing("FetchFailed", "True", "2026-03-01T11:00:00Z");
    in_every_view(&holding("prod", &[source, kustomization()]), "Ready, source failed");
    in_every_view(&holding("prod", &[kustomization()]), "Ready, source not found");
    let stopped = controller("kustomize-controller", "flux-system", 0);
    in_every_view(&holding("prod", &[fetched(), kustomization(), stopped]), "Ready, delivery stopped");
    let mut quiet = kustomization();
    quiet["spec"]["suspend"] = json!(true);
    in_every_view(&holding("prod", &[fetched(), quiet]), "Ready (suspended)");
    let mut dark = holding("prod", &[fetched(), kustomization()]);
    dark.set_freshness(Freshness { state: FreshnessState::Lost, observed_at: Some(NOW) });
    in_every_view(&dark, "Unknown (was Ready, just now)");
}

#[test]
fn an_app_without_a_problem_is_well() {
    let cluster = holding("prod", &[fetched(), kustomization()]);
    let own = row(&cluster);
    assert!(own.is_well(), "{:?}", own.problems);
    assert_eq!(taffrail_api::text::health(&own, NOW), "Ready");
}

#[test]
fn a_dark_home_is_a_problem_of_an_app_in_another_cluster() {
    let mut app = application(json!({
        "sync": {"status": "Synced", "revision": "c2"}, "health": {"status": "Healthy"},
        "resources": [{"kind": "ConfigMap", "namespace": "shop", "name": "settings", "status": "Synced"}],
    }));
    app["spec"]["destination"] = json!({"server": "https://edge.example.com"});
    let mut hub = holding("hub", &[app]);
    let mut edge = holding("edge", &[settings()]);
    edge.add_server("https://edge.example.com");
    let own = |hub: &Snapshot| apps(&[hub, &edge], &ActiveRules::default(), NOW).apps.remove(0);
    assert!(own(&hub).is_well());
    hub.set_freshness(Freshness { state: FreshnessState::Lost, observed_at: None });
    let row = own(&hub);
    assert_eq!(taffrail_api::text::health(&row, NOW), "Ready, home lost");
    assert_eq!(row.pressing().map(|problem| &*problem.message), Some("cluster hub does not answer"));
}

#[test]
fn severity_depends_on_whether_the_tool_will_retry() {
    use Axis::{Source, Sync};
    use ProblemSeverity::{Error, Notice, Waiting};

    let source = |kind, status, since| [failing(kind, status, since), kustomization()];
    let is = |axis, state: &str, severity| Some((axis, state.to_owned(), severity));
    // Within its interval of five minutes a source is tried again.
    let fresh = source("FetchFailed", "True", "2026-03-01T11:58:00Z");
    assert_eq!(worst(&fresh), is(Source, "FetchFailed", Waiting));
    let old = source("FetchFailed", "True", "2026-03-01T11:50:00Z");
    assert_eq!(worst(&old), is(Source, "FetchFailed", Error));
    let forged = source("SourceVerified", "False", "2026-03-01T11:59:00Z");
    assert_eq!(worst(&forged), is(Source, "VerificationFailed", Error));

    let newer = |updated: &str| {
        [git(json!([{"type": "Ready", "status": "True"}]), updated, "main@sha1:2"), kustomization()]
    };
    assert_eq!(worst(&newer("2026-03-01T11:49:00Z")), is(Sync, "OutOfSync", Error));
    assert_eq!(worst(&newer("2026-03-01T11:55:00Z")), None, "it may still be tried");

    let mut app = application(argo_status("OutOfSync", "Succeeded"));
    app["status"]["sync"]["revision"] = json!("c3");
    assert_eq!(worst(&[app.clone(), settings()]), is(Sync, "OutOfSync", Waiting), "compared a minute ago");
    app["status"]["reconciledAt"] = json!("2026-03-01T11:45:00Z");
    assert_eq!(worst(&[app.clone(), settings()]), is(Sync, "OutOfSync", Error));
    app["spec"]["syncPolicy"]["automated"]["enabled"] = json!(false);
    app["metadata"]["annotations"] = json!({});
    let manual = worst(&[app, settings()]);
    assert_eq!(manual.map(|it| it.2), Some(Notice));
}

#[test]
fn a_suspended_application_keeps_its_problem() {
    let mut app = application(argo_status("OutOfSync", "Failed"));
    app["metadata"]["annotations"] = json!({"argocd.argoproj.io/skip-reconcile": "true"});
    let row = row(&holding("prod", &[app, settings()]));
    assert_eq!(taffrail_api::text::health(&row, NOW), "Ready, sync failed (suspended)");
}

#[test]
fn a_suspended_flux_app_keeps_its_failed_sync() {
    let mut app = kustomization();
    app["spec"]["suspend"] = json!(true);
    app["status"]["conditions"][0] = json!({"type": "Ready", "status": "False", "reason": "BuildFailed",
        "message": "kustomize build failed", "lastTransitionTime": "2026-03-01T11:30:00Z", "observedGeneration": 1});
    let row = row(&holding("prod", &[fetched(), app]));
    let sync: Vec<_> = row.problems.iter().filter(|it| it.axis == Axis::Sync).collect();
    let told: Vec<_> = sync.iter().map(|it| (&*it.state, it.severity, &*it.message)).collect();
    assert_eq!(told[0], ("Failed", ProblemSeverity::Error, "kustomize build failed"));
    assert_eq!(sync[0].since, Some("2026-03-01T11:30:00Z".parse().unwrap()));
    assert_eq!((told[1].0, told[1].1), ("Suspended", ProblemSeverity::Notice));
}

#[test]
fn a_suspended_source_keeps_its_failure() {
    for (condition, status, state) in [
        ("FetchFailed", "True", "FetchFailed"),
        ("SourceVerified", "False", "VerificationFailed"),
        ("Ready", "False", "GitOperationFailed"),
    ] {
        // Nothing fetches it again, however short ago it failed.
        let mut source = failing(condition, status, "2026-03-01T11:58:00Z");
        source["spec"]["suspend"] = json!(true);
        let row = row(&holding("prod", &[source, kustomization()]));
        let told: Vec<_> = row.problems.iter().map(|it| (it.axis, &*it.state, it.severity)).collect();
        assert_eq!(told, [(Axis::Source, state, ProblemSeverity::Error)]);
        let says =
            "GitRepository flux-system/fleet: failed to checkout: authentication required; it is suspended";
        assert_eq!(row.problems[0].message, says);
    }
    let mut source = fetched();
    source["spec"]["suspend"] = json!(true);
    let expected = (Axis::Source, "Suspended".to_owned(), ProblemSeverity::Notice);
    assert_eq!(worst(&[source, kustomization()]), Some(expected), "its last fetch was good");
}

#[test]
fn an_app_that_is_being_deleted_is_not_late() {
    let mut app = kustomization();
    app["metadata"]["deletionTimestamp"] = json!("2026-03-01T11:59:00Z");
    let newer = git(json!([{"type": "Ready", "status": "True"}]), "2026-03-01T11:00:00Z", "main@sha1:2");
    let expected = Some((Axis::Health, "Terminating".to_owned(), ProblemSeverity::Waiting));
    assert_eq!(worst(&[newer, app.clone()]), expected);
    // Nor is it synced where its last reconciliation failed.
    app["status"]["conditions"][0]["status"] = json!("False");
    app["status"]["conditions"][0]["reason"] = json!("HealthCheckFailed");
    assert_ne!(row(&holding("prod", &[fetched(), app])).sync.state, SyncState::Synced);
}

#[test]
fn a_namesake_elsewhere_does_not_hide_a_stopped_controller() {
    let apps = |others: &[Value]| [&[fetched(), kustomization()][..], others].concat();
    let [running, stopped] =
        [1, 0].map(|replicas| controller("kustomize-controller", "flux-system", replicas));
    let impostor = |replicas| controller("kustomize-controller", "shop", replicas);
    assert_eq!(worst(&apps(&[running, impostor(0)])), None);
    let expected = Some((Axis::Sync, "ControllerStopped".to_owned(), ProblemSeverity::Error));
    assert_eq!(worst(&apps(&[stopped, impostor(1)])), expected);
}

#[test]
fn a_namesake_of_a_controller_is_not_a_stopped_controller() {
    let gitops = |replicas| controller("kustomize-controller", "gotk", replicas);
    let impostor = |replicas| controller("kustomize-controller", "shop", replicas);
    for others in [&[impostor(0)][..], &[gitops(0), impostor(1)], &[gitops(1), impostor(0)]] {
        assert_eq!(worst(&[&[fetched(), kustomization()][..], others].concat()), None);
    }
    // Argo CD says in which namespace it runs.
    let argo = |namespace: &str| {
        let mut app = application(argo_status("Synced", "Succeeded"));
        app["metadata"]["namespace"] = json!("team");
        app["status"]["controllerNamespace"] = json!(namespace);
        worst(&[app, settings(), controller("argocd-application-controller", "gitops", 0)])
    };
    let expected = Some((Axis::Sync, "ControllerStopped".to_owned(), ProblemSeverity::Error));
    assert_eq!(argo("gitops"), expected);
    assert_ne!(argo("elsewhere"), expected);
}

#[test]
fn a_failed_operation_is_reported_per_object() {
    let row = row(&holding("prod", &[application(argo_status("OutOfSync", "Failed")), settings()]));
    let problem = row.problem().unwrap();
    assert_eq!(problem.message, "Gear shop/g: make sure the CRD is installed");
    assert_eq!(problem.object.as_ref().map(|key| &*key.kind), Some("Gear"));
    let told: Vec<_> = row.unsynced.iter().map(|it| (&*it.key.name, it.state.as_str())).collect();
    assert_eq!(told, [("g", "SyncFailed"), ("settings", "OutOfSync")]);
}

#[test]
fn an_object_has_the_message_of_an_operation_that_could_not_sync_it() {
    let message = |phase: &str, result: &str| {
        let mut status = argo_status("OutOfSync", phase);
        let own = json!({"kind": "ConfigMap", "namespace": "shop", "name": "settings", "status": result, "message": "says Argo CD"});
        status["operationState"]["syncResult"]["resources"] = json!([own]);
        let row = row(&holding("prod", &[application(status), settings()]));
        let own = &row.unsynced[0];
        assert_eq!((row.unsynced.len(), &*own.key.name), (1, "settings"), "{:?}", row.unsynced);
        (own.state.as_str(), own.message.clone())
    };
    let said = "says Argo CD".to_owned();
    assert_eq!(message("Failed", "SyncFailed"), ("SyncFailed", said.clone()));
    // It failed, and Argo CD waits before it tries again.
    assert_eq!(message("Running", "SyncFailed"), ("OutOfSync", said.clone()));
    assert_eq!(message("Succeeded", "PruneSkipped"), ("OutOfSync", said));
    assert_eq!(message("Succeeded", "Synced"), ("OutOfSync", String::new()));
    // Skipping is no failure: the operation's own message tells what failed.
    let mut status = argo_status("OutOfSync", "Failed");
    status["operationState"]["syncResult"]["resources"] = json!([{"kind": "ConfigMap", "namespace": "shop",
        "name": "settings", "status": "PruneSkipped", "message": "ignored (no prune)"}]);
    let row = row(&holding("prod", &[application(status), settings()]));
    assert_eq!(row.problem().unwrap().message, "one or more objects failed to apply");
}

#[test]
fn a_remediated_release_shows_the_failure_and_not_the_rollback() {
    let remedied = json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"name": "web", "namespace": "shop", "generation": 1},
        "spec": {"chartRef": {"kind": "OCIRepository", "name": "web"}},
        "status": {"observedGeneration": 1, "inventory": {"entries": []}, "conditions": [
            {"type": "Stalled", "status": "True", "reason": "RetriesExceeded", "message": "Failed to upgrade"},
            {"type": "Ready", "status": "False", "reason": "RollbackSucceeded", "message": "rolled back to web.v1"},
            {"type": "Released", "status": "False", "reason": "UpgradeFailed", "message": "upgrade failed: timed out"},
            {"type": "Remediated", "status": "True", "reason": "RollbackSucceeded", "message": "rolled back to web.v1"}]},
    });
    let row = row(&holding("prod", &[remedied]));
    assert_eq!(row.delivery_message, "upgrade failed: timed out");
}

pub(crate) fn since(row: &App) -> Option<String> {
    row.problem().and_then(|problem| problem.since).map(|since| since.to_string())
}

pub(crate) fn wrote(part: &Value, at: &str) -> Value {
    json!([{"manager": "kubectl", "operation": "Update", "time": at, "fieldsV1": part}])
}

#[test]
fn a_controller_scaled_to_zero_is_dated_by_its_events() {
    let mut stopped = controller("kustomize-controller", "flux-system", 0);
    stopped["status"]["conditions"] =
        json!([{"type": "Available", "status": "True", "lastTransitionTime": "2026-02-26T12:00:00Z"}]);
    let told = |objects: &[Value]| {
        let own = row(&holding("prod", &[&[fetched(), kustomization()][..], objects].concat()));
        assert_eq!(own.problem().unwrap().state, "ControllerStopped");
        since(&own)
    };
    assert_eq!(told(&[stopped.clone()]), None, "its condition tells of something else");
    let scaled = |name: &str, reason: &str, at: &str| {
        json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"namespace": "flux-system", "name": name}, "type": "Normal",
            "involvedObject": {"kind": "Deployment", "namespace": "flux-system", "name": "kustomize-controller"},
            "reason": reason, "message": "Scaled down replica set kustomize-controller-1 from 1 to 0", "lastTimestamp": at,
        })
    };
    let events = [
        scaled("a", "ScalingReplicaSet", "2026-03-01T11:00:00Z"),
        scaled("b", "ScalingReplicaSet", "2026-03-01T11:40:00Z"),
        scaled("c", "Other", "2026-03-01T11:50:00Z"),
    ];
    let with_events = [&[stopped.clone()][..], &events].concat();
    assert_eq!(told(&with_events).as_deref(), Some("2026-03-01T11:40:00Z"));
    let mut managed = with_events;
    managed[0]["metadata"]["managedFields"] =
        wrote(&json!({"f:spec": {"f:replicas": {}}}), "2026-03-01T11:39:58Z");
    assert_eq!(told(&managed).as_deref(), Some("2026-03-01T11:39:58Z"));
}

#[test]
fn a_flux_app_is_out_of_sync_since_its_source_was_fetched() {
    let mut app = kustomization();
    app["status"]["conditions"][0]["lastTransitionTime"] = json!("2026-02-26T12:00:00Z");
    let newer = git(json!([{"type": "Ready", "status": "True"}]), "2026-03-01T11:49:00Z", "main@sha1:2");
    let own = row(&holding("prod", &[newer, app]));
    assert_eq!(since(&own).as_deref(), Some("2026-03-01T11:49:00Z"));
    assert!(own.problem().unwrap().message.contains("the source has main@sha1:2"), "{:?}", own.problems);
}

#[test]
fn an_unobserved_spec_is_not_reported_as_an_unapplied_revision() {
    let mut app = kustomization();
    app["metadata"]["generation"] = json!(3);
    app["status"]["conditions"][0]["lastTransitionTime"] = json!("2026-02-26T12:00:00Z");
    let told = |app: &Value| {
        let own = row(&holding("prod", &[fetched(), app.clone()]));
        assert_eq!(own.sync.state, SyncState::OutOfSync);
        let problem = own.problems.iter().find(|it| it.axis == Axis::Sync).cloned();
        (own, problem)
    };
    let (own, problem) = told(&app);
    let problem = problem.unwrap();
    assert_eq!(problem.message, "the controller of the app has not observed its newest spec");
    assert_eq!((problem.severity, problem.since), (ProblemSeverity::Waiting, None), "it may be new");
    assert_eq!(since(&own), None);
    app["metadata"]["managedFields"] = wrote(&json!({"f:spec": {"f:suspend": {}}}), "2026-03-01T11:40:00Z");
    let (own, problem) = told(&app);
    assert_eq!(problem.unwrap().severity, ProblemSeverity::Error);
    assert_eq!(since(&own).as_deref(), Some("2026-03-01T11:40:00Z"));
    app["metadata"]["managedFields"][0]["time"] = json!("2026-03-01T11:59:00Z");
    let (own, problem) = told(&app);
    assert_eq!((problem, own.health), (None, Status::InProgress), "its object says it");
    assert_eq!(since(&own).as_deref(), Some("2026-03-01T11:59:00Z"));
}

#[test]
fn a_failed_comparison_is_dated_by_its_condition() {
    let mut status = argo_status("Unknown", "Succeeded");
    status["operationState"]["finishedAt"] = json!("2026-02-26T12:00:00Z");
    status["conditions"] = json!([{"type": "ComparisonError", "message": "failed to list refs",
        "lastTransitionTime": "2026-03-01T11:50:00Z"}]);
    status["health"] = json!({"status": "Unknown", "lastTransitionTime": "2026-02-26T12:00:00Z"});
    let mut app = application(status);
    app["metadata"]["creationTimestamp"] = json!("2026-02-20T12:00:00Z");
    let told = |app: &Value| {
        let own = row(&holding("prod", &[app.clone(), settings()]));
        let sync = own.problems.iter().find(|it| it.axis == Axis::Sync).unwrap();
        assert_eq!((&*sync.state, &*sync.message), ("Unknown", "failed to list refs"));
        assert_eq!(sync.since, "2026-03-01T11:50:00Z".parse().ok());
        (own.health, since(&own))
    };
    let at = Some("2026-03-01T11:50:00Z".to_owned());
    assert_eq!(told(&app), (Status::Current, at.clone()));
    let mut skipped = app.clone();
    skipped["metadata"]["annotations"] = json!({"argocd.argoproj.io/skip-reconcile": "true"});
    assert_eq!(told(&skipped), (Status::Current, at.clone()));
    app["spec"]["destination"] = json!({"server": "https://edge.example.com"});
    assert_eq!(told(&app), (Status::Unknown, at), "out of reach");
}

/// Returns the next steps of the explanation of the only app.
fn next_steps(objects: &[Value]) -> Vec<String> {
    let row = row(&holding("prod", objects));
    Explanation::new(&row, None).remedied(&row, false).next
}

#[test]
fn next_step_of_an_app_out_of_sync_is_the_sync_that_its_tool_takes() {
    let sync = "taffrail reconcile --sync argo-application/argocd/shop";
    let resume = "taffrail resume argo-application/argocd/shop";
    let has = |next: &[String], command: &str| next.iter().any(|it| it == command);
    let mut app = application(argo_status("OutOfSync", "Succeeded"));
    app["spec"]["syncPolicy"] = json!({});
    let next = next_steps(&[app.clone(), settings()]);
    assert_eq!(next.last().map(String::as_str), Some(sync), "{next:?}");
    let named = row(&holding("prod", &[app.clone(), settings()]));
    let next = Explanation::new(&named, Some("prod")).remedied(&named, true).next;
    assert!(has(&next, &format!("{sync} --context prod")), "{next:?}");

    // Whoever switched automatic sync off may have a reason.
    let mut paused = app.clone();
    paused["spec"]["syncPolicy"] = json!({"automated": {"enabled": false}});
    let next = next_steps(&[paused, settings()]);
    assert!(has(&next, resume) && !has(&next, sync), "{next:?}");
    // Nothing would do it, and what would be left is left.
    let stopped = controller("argocd-application-controller", "argocd", 0);
    let next = next_steps(&[app.clone(), settings(), stopped]);
    assert!(!has(&next, sync), "{next:?}");
    let mut pruned = app.clone();
    pruned["status"]["resources"][0]["requiresPruning"] = json!(true);
    assert!(!has(&next_steps(&[pruned, settings()]), sync));
    app["status"]["sync"]["status"] = json!("Synced");
    assert!(!has(&next_steps(&[app, settings()]), sync), "it is synced");

    let newer = |updated: &str| git(json!([{"type": "Ready", "status": "True"}]), updated, "main@sha1:2");
    let reconcile = "taffrail reconcile flux-kustomization/flux-system/shop";
    assert!(has(&next_steps(&[newer("2026-03-01T11:40:00Z"), kustomization()]), reconcile));
    assert!(
        !has(&next_steps(&[newer("2026-03-01T11:55:00Z"), kustomization()]), reconcile),
        "it comes by itself"
    );
}

#[test]
fn drift_is_dated_by_the_write_that_its_explanation_names() {
    let entry = |manager: &str, subresource: &str, at: &str, fields: Value| json!({"manager": manager, "operation": "Update", "subresource": subresource, "time": at, "fieldsV1": fields});
    let drift = entry("kubectl-edit", "", "2026-03-01T11:40:00Z", json!({"f:data": {"f:LOG_LEVEL": {}}}));
    let told = |others: &[Value]| {
        let mut object = settings();
        object["metadata"]["managedFields"] = json!([std::slice::from_ref(&drift), others].concat());
        let mut app = application(argo_status("OutOfSync", "Succeeded"));
        app["spec"]["syncPolicy"] = json!({"automated": {}});
        app["status"]["operationState"]["finishedAt"] = json!("2026-03-01T11:30:00Z");
        let own = row(&holding("prod", &[app, object]));
        assert_eq!(own.problem().unwrap().severity, ProblemSeverity::Notice);
        since(&own)
    };
    let at = Some("2026-03-01T11:40:00Z".to_owned());
    assert_eq!(told(&[]), at);
    let later = "2026-03-01T11:50:00Z";
    for (what, other) in [
        ("a controller", entry("kube-controller-manager", "", later, json!({"f:spec": {"f:replicas": {}}}))),
        (
            "a restart",
            entry(
                "kubectl-rollout",
                "",
                later,
                json!({"f:metadata": {"f:annotations": {".": {}, "f:kubectl.kubernetes.io/restartedAt": {}}}}),
            ),
        ),
        ("a finalizer", entry("vault", "", later, json!({"f:metadata": {"f:finalizers": {}}}))),
        ("a status without subresource", entry("vault", "", later, json!({"f:status": {"f:phase": {}}}))),
    ] {
        assert_eq!(told(&[other]), at, "{what} makes no difference");
    }
    let mut scaled = entry("kubectl", "scale", later, json!({"f:spec": {"f:replicas": {}}}));
    assert_eq!(told(&[scaled.clone()]), None, "which of them is not known");
    scaled.as_object_mut().unwrap().remove("time");
    assert_eq!(told(&[scaled]), None, "the scale may have been first");
    let labelled = entry("vault", "", later, json!({"f:metadata": {"f:labels": {"f:team": {}}}}));
    assert_eq!(told(&[labelled]), None, "which of them is not known");
}

#[test]
fn drift_is_not_dated_by_a_time_to_come() {
    let mut object = settings();
    object["metadata"]["managedFields"] =
        wrote(&json!({"f:data": {"f:LOG_LEVEL": {}}}), "2026-03-01T12:00:01Z");
    let mut app = application(argo_status("OutOfSync", "Succeeded"));
    app["spec"]["syncPolicy"] = json!({"automated": {"selfHeal": true}});
    let own = row(&holding("prod", &[app, object]));
    assert_eq!((since(&own), own.problem().unwrap().severity), (None, ProblemSeverity::Error));
}

#[test]
fn drift_is_dated_by_the_field_manager_or_not_at_all() {
    let written = |manager: &str, at: &str| json!({"manager": manager, "operation": "Update", "time": at, "fieldsV1": {"f:data": {"f:LOG_LEVEL": {}}}});
    let argo = written("argocd-controller", "2026-03-01T11:59:40Z");
    let before = written("helm", "2026-03-01T11:29:00Z");
    let drift = written("kubectl-edit", "2026-03-01T11:59:10Z");
    let told = |policy: &Value, managed: &[&Value]| {
        let mut object = settings();
        object["metadata"]["managedFields"] = json!(managed);
        let mut app = application(argo_status("OutOfSync", "Succeeded"));
        app["spec"]["syncPolicy"] = policy.clone();
        let own = row(&holding("prod", &[app, object]));
        assert_eq!(own.sync.state, SyncState::OutOfSync);
        (since(&own), own.problem().unwrap().severity)
    };
    let at = Some("2026-03-01T11:59:10Z".to_owned());
    let heals = json!({"automated": {"selfHeal": true}});
    assert_eq!(
        told(&heals, &[&argo, &before, &drift]),
        (at.clone(), ProblemSeverity::Waiting),
        "a moment ago"
    );
    assert_eq!(told(&heals, &[]), (None, ProblemSeverity::Error), "never the end of the last sync");
    let other = written("vpa", "2026-03-01T11:58:00Z");
    assert_eq!(told(&heals, &[&drift, &other]).0, None, "which of them is not known");
    for rests in [json!({"automated": {}}), json!({})] {
        assert_eq!(told(&rests, &[&before, &drift]), (at.clone(), ProblemSeverity::Notice));
        assert_eq!(told(&rests, &[&before]), (None, ProblemSeverity::Notice));
    }
    let mut untried = application(argo_status("OutOfSync", "Succeeded"));
    untried["status"]["sync"]["revision"] = json!("c3");
    untried["status"]["reconciledAt"] = json!("2026-03-01T11:45:00Z");
    assert_eq!(
        since(&row(&holding("prod", &[untried, settings()]))),
        None,
        "the last comparison only found it so"
    );
}

/// Argo CD records no time for a new revision; before the end of the last operation it was not the desired one.
#[test]
fn a_revision_that_is_new_to_argo_cd_is_not_late() {
    let untried = |finished: &str| {
        let mut app = application(argo_status("OutOfSync", "Succeeded"));
        app["spec"]["syncPolicy"] = json!({"automated": {"selfHeal": true}});
        app["status"]["sync"]["revision"] = json!("c3");
        app["status"]["operationState"]["finishedAt"] = json!(finished);
        worst(&[app, settings()])
    };
    assert_eq!(untried("2026-03-01T11:59:40Z"), None);
    let late = (Axis::Sync, "OutOfSync".to_owned(), ProblemSeverity::Waiting);
    assert_eq!(untried("2026-03-01T11:45:00Z"), Some(late));
}

#[test]
fn new_apps_are_not_late() {
    let newer = git(json!([{"type": "Ready", "status": "True"}]), "2026-03-01T09:00:00Z", "main@sha1:2");
    let late = Some((Axis::Sync, "OutOfSync".to_owned(), ProblemSeverity::Error));
    assert_eq!(worst(&[newer.clone(), kustomization()]), late);
    let mut made = kustomization();
    made["metadata"]["creationTimestamp"] = json!("2026-03-01T11:59:58Z");
    assert_eq!(worst(&[newer.clone(), made]), None);
    let mut resumed = kustomization();
    resumed["metadata"]["managedFields"] =
        wrote(&json!({"f:spec": {"f:suspend": {}}}), "2026-03-01T11:59:58Z");
    assert_eq!(worst(&[newer.clone(), resumed]), None);
    // What waits for another says that, however long.
    let mut waiting = kustomization();
    waiting["status"]["conditions"] = json!([{"type": "Ready", "status": "False", "reason": "DependencyNotReady",
        "message": "dependency 'flux-system/infra' is not ready", "observedGeneration": 1}]);
    let waits = (Axis::Health, "InProgress".to_owned(), ProblemSeverity::Waiting);
    assert_eq!(worst(&[newer, waiting]), Some(waits));
}

#[test]
fn a_failed_source_without_artifact_is_the_only_problem() {
    let mut failing = failing("FetchFailed", "True", "2026-03-01T11:00:00Z");
    failing["status"].as_object_mut().unwrap().remove("artifact");
    let row = row(&holding("prod", &[failing, kustomization()]));
    let told: Vec<_> = row.problems.iter().map(|it| (it.axis, &*it.message)).collect();
    let says = "GitRepository flux-system/fleet: failed to checkout: authentication required";
    assert_eq!(told, [(Axis::Source, says)]);
    // Of a source that says nothing is wrong, that is the problem.
    for conditions in [json!([{"type": "Ready", "status": "True"}]), json!([])] {
        let mut empty = git(conditions, "2026-03-01T09:00:00Z", "main@sha1:1");
        empty["status"].as_object_mut().unwrap().remove("artifact");
        let expected = (Axis::Sync, "Unknown".to_owned(), ProblemSeverity::Error);
        assert_eq!(worst(&[empty, kustomization()]), Some(expected));
    }
}

#[test]
fn a_failed_comparison_without_a_message_is_a_problem() {
    let mut app = application(argo_status("Unknown", "Succeeded"));
    app["status"]["conditions"] = json!([{"type": "ComparisonError", "message": ""}]);
    let row = row(&holding("prod", &[app, settings()]));
    let problem = row.problem().unwrap();
    assert_eq!((problem.axis, &*problem.state), (Axis::Sync, "Unknown"));
    assert_eq!(problem.message, "the sync state is unknown, and the delivery tool does not say why");
}

/// Config Sync reports what it cannot fetch and what it cannot apply in one object.
#[test]
fn config_sync_fails_on_the_axis_of_its_failing_stage() {
    let axis = |stage: &str| {
        let commit = "2222222222222222222222222222222222222222";
        let mut sync = json!({
            "apiVersion": "configsync.gke.io/v1beta1", "kind": "RootSync",
            "metadata": {"namespace": "config-management-system", "name": "root-sync", "generation": 1},
            "spec": {"sourceType": "git", "git": {"repo": "https://git.example.com/fleet"}},
            "status": {
                "observedGeneration": 1, "lastSyncedCommit": commit, "source": {"commit": commit},
                "rendering": {"commit": commit}, "sync": {"commit": commit},
            },
        });
        sync["status"][stage]["errors"] = json!([{"code": "2004", "errorMessage": "no"}]);
        let edge = holding("edge", &[sync]);
        let list = apps(&[&edge], &ActiveRules::default(), NOW);
        let problem = list.apps[0].problem().cloned().unwrap();
        assert_eq!((&*problem.state, problem.severity), ("Failed", ProblemSeverity::Error));
        problem.axis
    };
    assert_eq!(axis("source"), Axis::Source);
    assert_eq!(axis("rendering"), Axis::Sync);
    assert_eq!(axis("sync"), Axis::Sync);
}
