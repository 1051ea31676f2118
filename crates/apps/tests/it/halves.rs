//! The two halves of a row, where one of their clusters is dark: what the home declares, and what was observed in the target.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use taffrail_api::filter::Filter;
use taffrail_api::text;
use taffrail_apps::verbs::{Progress, settled};
use taffrail_apps::wait::{Options, Seen, Wait, WaitState};
use taffrail_apps::{
    App, AppLabels, AppList, AppRows, Freshness, FreshnessState, Objects, Scope, Snapshot, SyncState, apps,
};
use taffrail_object::GroupKind;
use taffrail_status::{ActiveRules, Status};

use super::dump::{NOW, holding};
use super::problem::{application, settings};

/// An app of `hub` whose objects are in `edge`, Synced and Ready.
fn fleet() -> [Snapshot; 2] {
    let mut app = application(json!({
        "sync": {"status": "Synced", "revision": "c2"}, "health": {"status": "Healthy"},
        "resources": [{"kind": "ConfigMap", "namespace": "shop", "name": "settings", "status": "Synced"}],
    }));
    app["spec"]["destination"] = json!({"server": "https://edge.example.com"});
    app["spec"]["source"] = json!({"repoURL": "https://git.example/fleet", "path": "shop"});
    let mut edge = holding("edge", &[settings()]);
    edge.add_server("https://edge.example.com");
    [holding("hub", &[app]), edge]
}

fn seen_last() -> Timestamp {
    NOW - jiff::SignedDuration::from_mins(12)
}

fn darken(cluster: &mut Snapshot, state: FreshnessState) {
    cluster.set_freshness(Freshness { state, observed_at: Some(seen_last()) });
}

fn list(fleet: &[Snapshot; 2]) -> AppList {
    let clusters: [&dyn Objects; 2] = [&fleet[0], &fleet[1]];
    apps(&clusters, &ActiveRules::default(), NOW)
}

fn row(fleet: &[Snapshot; 2]) -> App {
    list(fleet).apps.remove(0)
}

/// The row as programs get it.
fn answer(fleet: &[Snapshot; 2]) -> Value {
    serde_json::to_value(taffrail_api::List::<taffrail_api::AppRow>::from(&list(fleet))).unwrap()["items"][0]
        .clone()
}

/// Returns whether `--sync` of these words leaves the row.
fn admits(fleet: &[Snapshot; 2], words: &str) -> bool {
    let mut list = list(fleet);
    let filter = Filter { sync: Some(words.parse().unwrap()), ..Filter::default() };
    filter.apps(&mut list, &[&fleet[0], &fleet[1]]);
    !list.apps.is_empty()
}

fn verdict(fleet: &[Snapshot; 2], until: &str) -> WaitState {
    let options = Options { stable_for: Duration::ZERO, fail_fast: true, deadline: Duration::from_secs(60) };
    let app = "argocd/shop".parse().unwrap();
    let mut wait = Wait::new(until.parse().unwrap(), options, vec![app]);
    let seen = |snapshot| Seen { snapshot, targets: &[], is_settled: true, is_lost: false };
    let seen = [seen(&fleet[0]), seen(&fleet[1])];
    wait.look(&seen, || list(fleet), &ActiveRules::default(), NOW, Duration::ZERO);
    wait.rows().next().unwrap().judgement.verdict
}

#[test]
fn a_live_row_says_the_freshness_of_both_halves() {
    let fleet = fleet();
    let live = json!({"state": "live", "observedAt": "2026-03-01T12:00:00Z"});
    let answer = answer(&fleet);
    assert_eq!((&answer["health"], &answer["effective"]), (&json!("Current"), &json!("Current")));
    assert_eq!(
        (&answer["sync"]["state"], &answer["sync"]["effective"]),
        (&json!("Synced"), &json!("Synced"))
    );
    assert_eq!((&answer["freshness"], &answer["sync"]["freshness"]), (&live, &live));
    assert_eq!(text::sync(&row(&fleet)), "Synced");
}

#[test]
fn a_dark_home_makes_sync_unknown_and_leaves_the_health_of_the_live_target() {
    for state in [FreshnessState::Stale, FreshnessState::Lost] {
        let mut fleet = fleet();
        darken(&mut fleet[0], state);
        let answer = answer(&fleet);
        assert_eq!((&answer["health"], &answer["effective"]), (&json!("Current"), &json!("Current")));
        assert_eq!(answer["freshness"]["state"], "live");
        assert_eq!(
            (&answer["sync"]["state"], &answer["sync"]["effective"], &answer["sync"]["freshness"]),
            (
                &json!("Synced"),
                &json!("Unknown"),
                &json!({"state": state.as_str(), "observedAt": seen_last().to_string()})
            )
        );
        let row = row(&fleet);
        assert_eq!(text::sync(&row), "Unknown (was Synced)");
        assert!(text::health(&row, NOW).starts_with("Ready, home "), "{}", text::health(&row, NOW));
        assert!(admits(&fleet, "Unknown") && !admits(&fleet, "Synced"));
    }
}

#[test]
fn a_dark_target_makes_health_unknown_and_leaves_the_sync_of_the_live_home() {
    let mut fleet = fleet();
    darken(&mut fleet[1], FreshnessState::Lost);
    let answer = answer(&fleet);
    assert_eq!((&answer["health"], &answer["effective"]), (&json!("Current"), &json!("Unknown")));
    assert_eq!(answer["freshness"], json!({"state": "lost", "observedAt": seen_last().to_string()}));
    assert_eq!(
        (&answer["sync"]["state"], &answer["sync"]["effective"], &answer["sync"]["freshness"]["state"]),
        (&json!("Synced"), &json!("Synced"), &json!("live"))
    );
    let row = row(&fleet);
    assert_eq!(
        (&*text::health(&row, NOW), &*text::sync(&row)),
        ("Unknown (was Ready, 12 min ago)", "Synced")
    );
    assert!(admits(&fleet, "Synced") && !admits(&fleet, "Unknown"));
}

#[test]
fn a_home_that_was_never_observed_has_no_sync_to_remember() {
    let mut fleet = fleet();
    fleet[0].set_freshness(Freshness::never());
    assert_eq!(text::sync(&row(&fleet)), "Unknown");
    assert_eq!(answer(&fleet)["sync"]["freshness"], json!({"state": "lost"}));
}

#[test]
fn rows_of_a_dark_target_keep_the_health_that_was_last_observed() {
    let mut fleet = fleet();
    darken(&mut fleet[1], FreshnessState::Lost);
    let (list, clusters) = (list(&fleet), [&fleet[0] as &dyn Objects, &fleet[1]]);
    let rows = [
        serde_json::to_value(taffrail_api::ClusterList::new(&clusters, &list)).unwrap()["items"][1].clone(),
        serde_json::to_value(taffrail_api::ResourceList::from(&list)).unwrap()["items"][0].clone(),
    ];
    for row in rows {
        let statuses = ["health", "effective", "status"].map(|field| row[field].as_str().unwrap().to_owned());
        assert_eq!(statuses, ["Current", "Unknown", "Unknown"], "{row}");
    }
}

#[test]
fn both_halves_of_a_dark_cluster_are_unknown() {
    let mut fleet = fleet();
    darken(&mut fleet[0], FreshnessState::Lost);
    darken(&mut fleet[1], FreshnessState::Lost);
    let row = row(&fleet);
    assert_eq!((row.effective(), row.effective_sync()), (Status::Unknown, SyncState::Unknown));
}

#[test]
fn wait_takes_no_word_of_a_dark_home_for_now() {
    let mut fleet = fleet();
    for until in ["current", "exists"] {
        assert_eq!(verdict(&fleet, until), WaitState::Met, "{until}");
    }
    darken(&mut fleet[0], FreshnessState::Lost);
    for until in ["current", "exists", "failed", "deleted", "revision=c2"] {
        assert_eq!(verdict(&fleet, until), WaitState::Unobserved, "{until}");
    }
}

#[test]
fn a_verb_does_not_end_by_what_a_dark_home_said_last() {
    let mut fleet = fleet();
    assert_eq!(settled(&row(&fleet)), Progress::Done);
    darken(&mut fleet[0], FreshnessState::Lost);
    let waiting = Progress::Waiting("the home cluster hub of the app does not answer".to_owned());
    assert_eq!(settled(&row(&fleet)), waiting);
}

#[test]
fn details_of_a_dark_home_are_not_ready() {
    let mut fleet = fleet();
    let ready = |fleet: &[Snapshot; 2]| {
        let list = list(fleet);
        let clusters: [&dyn Objects; 2] = [&fleet[0], &fleet[1]];
        let asked: Vec<&App> = list.apps.iter().collect();
        let details =
            taffrail_api::AppDetailList::new(&asked, &list, &clusters, &ActiveRules::default(), NOW);
        let details = serde_json::to_value(&details).unwrap();
        let reconciliation = &details["items"][0]["reconciliation"];
        ["sources", "delivery"].map(|rows| reconciliation[rows][0]["ready"].clone())
    };
    assert_eq!(ready(&fleet), ["True", "True"]);
    darken(&mut fleet[0], FreshnessState::Lost);
    assert_eq!(ready(&fleet), ["Unknown", "Unknown"]);
    darken(&mut fleet[1], FreshnessState::Lost);
    fleet[0].set_freshness(Freshness::live(NOW));
    assert_eq!(ready(&fleet), ["True", "True"]);
}

fn kind(group: &str, kind: &str, namespace: Option<&str>) -> (Scope, Timestamp) {
    let scope = Scope::Kind { kind: GroupKind::new(group, kind), namespace: namespace.map(str::to_owned) };
    (scope, seen_last())
}

#[test]
fn a_half_is_as_fresh_as_the_least_known_scope_that_it_stands_on() {
    let stale = |home: Vec<(Scope, Timestamp)>, target: Vec<(Scope, Timestamp)>| {
        let mut fleet = fleet();
        fleet[0].set_stale_scopes(home);
        fleet[1].set_stale_scopes(target);
        let row = row(&fleet);
        (text::status(row.health, row.freshness, NOW), text::sync(&row).into_owned())
    };
    let (ready, synced) = (|| "Ready".to_owned(), || "Synced".to_owned());
    let was_ready = "Unknown (was Ready, 12 min ago)".to_owned();
    let was_synced = "Unknown (was Synced)".to_owned();
    assert_eq!(stale(vec![kind("argoproj.io", "Application", None)], vec![]), (ready(), was_synced));
    assert_eq!(stale(vec![], vec![kind("", "ConfigMap", Some("shop"))]), (was_ready, synced()));
    // Other kinds and namespaces, and the kind of the objects where none of them is.
    let others = vec![kind("", "Secret", None), kind("", "ConfigMap", Some("pay"))];
    assert_eq!(stale(vec![kind("", "ConfigMap", None)], others), (ready(), synced()));
}

#[test]
fn a_stale_kind_that_a_tool_reads_makes_the_sync_of_its_apps_unknown() {
    let kustomization = json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"namespace": "flux-system", "name": "shop", "generation": 1},
        "spec": {"sourceRef": {"kind": "GitRepository", "name": "fleet"}, "path": "./shop", "prune": true},
        "status": {"observedGeneration": 1, "lastAppliedRevision": "main@sha1:c2", "lastAttemptedRevision": "main@sha1:c2",
            "conditions": [{"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "message": "ok"}],
            "inventory": {"entries": []}}});
    let source = json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
        "metadata": {"namespace": "flux-system", "name": "fleet", "generation": 1},
        "spec": {"url": "https://git.example/fleet"},
        "status": {"observedGeneration": 1, "artifact": {"revision": "main@sha1:c2"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "Succeeded", "message": "ok"}]}});
    let sync = |stale: Vec<(Scope, Timestamp)>| {
        let mut cluster = holding("eu", &[kustomization.clone(), source.clone()]);
        cluster.set_stale_scopes(stale);
        let clusters: [&dyn Objects; 1] = [&cluster];
        text::sync(&apps(&clusters, &ActiveRules::default(), NOW).apps[0]).into_owned()
    };
    assert_eq!(sync(vec![]), "Synced");
    let sources = |namespace| vec![kind("source.toolkit.fluxcd.io", "GitRepository", namespace)];
    assert_eq!(sync(sources(None)), "Unknown (was Synced)");
    assert_eq!(sync(sources(Some("flux-system"))), "Unknown (was Synced)");
    assert_eq!(sync(sources(Some("team-b"))), "Synced");
    assert_eq!(sync(vec![kind("", "Secret", None)]), "Synced");
}

/// A cluster with a label app of a Deployment, and the Pod of its ReplicaSet.
fn workload(available: u64, container: &Value) -> Snapshot {
    let owner = |kind: &str, name: &str| json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": name, "controller": true}]);
    let meta = |name: &str| {
        json!({"namespace": "shop", "name": name, "uid": name, "generation": 1,
        "creationTimestamp": "2026-03-01T11:00:00Z"})
    };
    let mut deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta("web"),
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}},
        "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": available,
            "availableReplicas": available,
            "conditions": [{"type": "Available", "status": if available > 0 { "True" } else { "False" }}]}});
    deployment["metadata"]["labels"] = json!({"app.kubernetes.io/instance": "web"});
    let mut set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta("web-1"),
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}},
        "status": {"observedGeneration": 1, "replicas": 1, "readyReplicas": available, "availableReplicas": available}});
    set["metadata"]["ownerReferences"] = owner("Deployment", "web");
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": meta("web-1-x"),
        "spec": {"containers": [{"name": "web", "image": "registry.example/web:2"}]},
        "status": {"phase": "Pending", "containerStatuses": [container]}});
    pod["metadata"]["ownerReferences"] = owner("ReplicaSet", "web-1");
    holding("eu", &[deployment, set, pod])
}

#[test]
fn a_verdict_that_rests_on_pods_is_as_fresh_as_they_are() {
    let refused = json!({"name": "web", "ready": false, "restartCount": 0,
        "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}});
    let running = json!({"name": "web", "ready": true, "restartCount": 0, "state": {"running": {}}});
    let status = |mut cluster: Snapshot, stale: Vec<(Scope, Timestamp)>| {
        let rules = ActiveRules::default();
        let mut rows = AppRows::new(AppLabels::default());
        for stale in [Vec::new(), stale] {
            cluster.set_stale_scopes(stale);
            let changes = [cluster.take_changes()];
            rows.look(&[&cluster], &changes, &rules, NOW);
            assert_eq!(*rows.list(), apps(&[&cluster], &rules, NOW));
        }
        let row = &rows.list().apps[0];
        text::status(row.health, row.freshness, NOW)
    };
    let pods = |namespace| vec![kind("", "Pod", namespace)];
    assert_eq!(status(workload(0, &refused), vec![]), "Failed");
    assert_eq!(status(workload(0, &refused), pods(None)), "Unknown (was Failed, 12 min ago)");
    assert_eq!(status(workload(0, &refused), pods(Some("shop"))), "Unknown (was Failed, 12 min ago)");
    assert_eq!(status(workload(0, &refused), pods(Some("pay"))), "Failed");
    // What its own status says is so whatever its Pods are.
    assert_eq!(status(workload(1, &running), pods(None)), "Ready");
}

#[test]
fn a_stale_scope_is_told_as_a_part_of_its_cluster() {
    let mut fleet = fleet();
    fleet[1].set_stale_scopes(vec![kind("", "ConfigMap", None)]);
    let message = row(&fleet).problem().unwrap().message.to_string();
    assert_eq!(message, "a part of cluster edge has not been observed for some time");
    assert_eq!(verdict(&fleet, "current"), WaitState::Unobserved);
}
