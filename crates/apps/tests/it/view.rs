//! View models and texts.

use jiff::Timestamp;
use serde_json::{Value, json};
use taffrail_apps::{App, Freshness, FreshnessState, Objects, Snapshot, apps};
use taffrail_status::{ActiveRules, Status};

use super::dump::{NOW, apps_of, holding, release};
use taffrail_api::text;

fn before(seconds: i64) -> Timestamp {
    Timestamp::from_second(NOW.as_second() - seconds).unwrap()
}

#[test]
fn revisions_are_shortened() {
    let sha = "1e644628deb645c454f4db167e1041e95e2d0ba3";
    let digest = "bb52bb261f0a5a051b9bdb2a1d747da36cb240259c112e6e2ab811cd43baa6c1";
    for (revision, short) in [
        (sha.to_owned(), "1e644628"),
        (format!("main@sha1:{sha}"), "main@sha1:1e644628"),
        (format!("main/{sha}"), "main/1e644628"),
        (format!("6.5.4@sha256:{digest}"), "6.5.4@sha256:bb52bb26"),
        (format!("sha256:{digest}"), "sha256:bb52bb26"),
        (format!("1.2.0,{sha},{sha}"), "1.2.0,1e644628,1e644628"),
        ("6.5.4+821df151bf12".to_owned(), "6.5.4+821df151bf12"),
        (sha[..39].to_owned(), &sha[..39]),
        ("deadbeef".repeat(17), &*"deadbeef".repeat(17)),
        ("größe@".to_owned() + sha, "größe@1e644628"),
        (String::new(), ""),
    ] {
        assert_eq!(text::revision(&revision), short);
    }
}

#[test]
fn ages_are_shown_in_their_largest_unit() {
    for (seconds, ago) in [
        (-300, "just now"),
        (1, "just now"),
        (40, "40 s ago"),
        (60, "1 min ago"),
        (725, "12 min ago"),
        (3600, "1 h ago"),
        (86_399, "23 h ago"),
        (5 * 86_400, "5 d ago"),
    ] {
        assert_eq!(text::ago(before(seconds), NOW), ago);
    }
}

fn app() -> App {
    apps_of(&holding("prod", &[release("data", "pg", 1, "deployed", "")])).apps.remove(0)
}

#[test]
fn stale_health_shows_the_last_known_status() {
    let mut app = app();
    assert_eq!(text::health(&app, NOW), "Ready");
    app.suspended = true;
    assert_eq!(text::health(&app, NOW), "Ready (suspended)");
    app.suspended = false;
    app.freshness = Freshness { state: FreshnessState::Stale, observed_at: Some(before(725)) };
    assert_eq!(text::health(&app, NOW), "Unknown (was Ready, 12 min ago)");
    assert_eq!(app.effective(), Status::Unknown);
    app.freshness = Freshness::never();
    assert_eq!(text::health(&app, NOW), "Unknown");
}

#[test]
fn messages_are_folded_into_one_line() {
    for (message, line) in [
        ("", ""),
        ("\n KNV2004: error in\tthe  container \n\nFor more information", "KNV2004: error in the container"),
    ] {
        assert_eq!(text::line(message), line);
    }
}

fn json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap()
}

const MANIFEST: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: pg}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: pg}\n";

#[test]
fn lists_serialize_to_the_documented_json() {
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "data", "name": "pg"}});
    let mut cluster = holding("prod", &[release("data", "pg", 1, "deployed", MANIFEST), secret]);
    cluster.set_version("v1.34.1");
    let list = apps_of(&cluster);
    let problem = json!({
        "axis": "health", "state": "NotFound", "severity": "error", "message": "Deployment data/pg not found",
        "object": {"group": "apps", "kind": "Deployment", "namespace": "data", "name": "pg"},
    });
    assert_eq!(
        json(&taffrail_api::List::<taffrail_api::AppRow>::from(&list)),
        json!({
            "apiVersion": "cli.taffrail.dev/v1alpha1", "kind": "AppList", "errors": [],
            "items": [{
                "key": "helm/data/pg", "cluster": "prod", "home": "prod", "delivery": "helm", "namespace": "data", "name": "pg",
                "health": "NotFound", "effective": "NotFound", "message": "Deployment data/pg not found",
                "problem": problem, "problems": [problem],
                "worst": {"group": "apps", "kind": "Deployment", "namespace": "data", "name": "pg"},
                "counts": {"Current": 1, "InProgress": 0, "Failed": 0, "Terminating": 0, "NotFound": 1, "Unknown": 0},
                "objects": 2,
                "sync": {
                    "state": "Synced", "effective": "Synced", "desired": "pg-1.0.0", "attempted": "pg-1.0.0", "applied": "pg-1.0.0",
                    "lastSuccess": "2026-03-01T11:20:00Z", "freshness": {"state": "live", "observedAt": "2026-03-01T12:00:00Z"},
                },
                "suspended": false, "freshness": {"state": "live", "observedAt": "2026-03-01T12:00:00Z"},
                "source": {"kind": "HelmChart", "path": "pg"},
            }],
        })
    );
    let resources = json(&taffrail_api::ResourceList::from(&list));
    assert_eq!(resources["kind"], "ResourceList");
    assert_eq!(
        resources["items"][1],
        json!({
            "cluster": "prod", "group": "", "kind": "Secret", "namespace": "data", "name": "pg",
            "health": "Current", "effective": "Current", "status": "Current",
            "message": "Resource is always ready", "rule": "builtin/Secret",
            "app": {"delivery": "helm", "namespace": "data", "name": "pg"},
        })
    );
    let clusters = json(&taffrail_api::ClusterList::new(&[&cluster], &list));
    assert_eq!(
        clusters["items"][0],
        json!({
            "name": "prod", "version": "v1.34.1", "health": "NotFound", "effective": "NotFound", "status": "NotFound",
            "message": "Deployment data/pg not found",
            "worst": {"delivery": "helm", "namespace": "data", "name": "pg"}, "apps": 1, "problems": 1,
            "problem": {
                "axis": "health", "state": "NotFound", "severity": "error", "message": "Deployment data/pg not found",
                "object": {"group": "apps", "kind": "Deployment", "namespace": "data", "name": "pg"},
            },
            "counts": {"Current": 0, "InProgress": 0, "Failed": 0, "Terminating": 0, "NotFound": 1, "Unknown": 0},
            "errors": 0, "freshness": {"state": "live", "observedAt": "2026-03-01T12:00:00Z"},
        })
    );
}

#[test]
fn a_cluster_with_unreadable_apps_is_unknown() {
    let empty = Snapshot::dump("empty", NOW);
    let lost = Snapshot::lost("lost", "Timeout", "no answer within 5 s");
    let mut half = Snapshot::dump("half", NOW);
    half.report_unreadable("half.yaml:3", "no YAML");
    let clusters: [&dyn Objects; 3] = [&empty, &lost, &half];
    let list = taffrail_api::ClusterList::new(&clusters, &apps(&clusters, &ActiveRules::default(), NOW));
    let rows: Vec<_> =
        list.items.iter().map(|row| (&*row.name, row.status.as_str(), &*row.message)).collect();
    assert_eq!(
        rows,
        [
            ("empty", "Unknown", "the dump holds no objects"),
            ("lost", "Unknown", "does not answer: no answer within 5 s"),
            ("half", "Unknown", "no YAML")
        ]
    );
}
