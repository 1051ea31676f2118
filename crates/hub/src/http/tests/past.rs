//! Answers from history.

use taffrail_api::report::HalfSide;
use taffrail_apps::{SyncAttempt, SyncResult};

use super::*;
use crate::store::sqlite::SqliteStore;

struct Past {
    fleet: SampleFleet,
    router: Router,
    _folder: tempfile::TempDir,
}

impl Past {
    /// A fleet of which web failed, was repaired, and is gone; at seconds 1,010, 1,020 and 1,030 of the clock.
    async fn new() -> Past {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open_quick(&folder.path().join("hub.db"), None).await.unwrap();
        let fleet = SampleFleet::restored(None, &store).await;
        let fleet = fleet
            .with("eu-1", &[("shop/web", Status::Current, ""), ("shop/db", Status::Current, "")])
            .with("us-1", &[("shop/web", Status::InProgress, "1 of 3 Pods")]);
        save(&fleet, &store).await;
        let web = app("eu-1", "shop/web");
        fleet.pass(10);
        let attempt = |result, message: &str| SyncAttempt {
            revision: "main@sha1:5f2c".to_owned(),
            began: fleet.now(),
            ended: None,
            result,
            message: message.into(),
        };
        let failed = attempt(SyncResult::Failed, "hook failed");
        fleet.change(
            "eu-1",
            "observer",
            vec![
                observed(&web, Status::Failed, "no such image"),
                declared(&web, "eu-1", |half| half.syncs = vec![failed]),
            ],
        );
        fleet.index.publish();
        fleet.pass(10);
        fleet.change("eu-1", "observer", vec![observed(&web, Status::Current, "")]);
        fleet.index.publish();
        fleet.pass(10);
        fleet.remove("eu-1", &web, HalfSide::Declared);
        fleet.index.publish();
        save(&fleet, &store).await;
        Past::of(fleet, store, folder)
    }

    fn of(fleet: SampleFleet, store: SqliteStore, folder: tempfile::TempDir) -> Past {
        let hub = HubApi::of(Arc::clone(&fleet.index), None, Limits::default()).unwrap();
        let router = router(Arc::new(hub.with_store(Arc::new(store))));
        Past { fleet, router, _folder: folder }
    }

    async fn fetch(&self, path: &str) -> Got {
        send(&self.router, http::Request::get(path).body(Body::empty()).unwrap()).await
    }

    /// Returns the parameter for a time so many seconds before now.
    fn ago(&self, seconds: i64) -> String {
        (self.fleet.now() - jiff::SignedDuration::from_secs(seconds)).to_string()
    }
}

async fn save(fleet: &SampleFleet, store: &SqliteStore) {
    tokio::select! {
        () = fleet.index.save(store) => {}
        is_saved = fleet.index.saved() => assert!(is_saved),
    }
}

const WEB: &str = "/api/v1/history/eu-1/ks/shop/web";

/// Returns the entries of a history, in words.
fn entries(got: &Got) -> Vec<String> {
    let items = got.body["items"].as_array().unwrap_or_else(|| panic!("{got:?}"));
    let state = |state: &Value| match state["effective"].as_str() {
        Some(effective) => format!("{effective} {}", state["problem"].as_str().unwrap_or("well")),
        None => "none".to_owned(),
    };
    let entry = |item: &Value| match item["type"].as_str().unwrap() {
        "sync" => format!("sync {} {}", item["result"].as_str().unwrap(), item["message"].as_str().unwrap()),
        _ => format!("{} -> {}", state(&item["before"]), state(&item["after"])),
    };
    items.iter().map(entry).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn history_of_an_app_is_told_page_by_page_even_after_it_is_gone() {
    let past = Past::new().await;
    let got = past.fetch(WEB).await;
    let all = [
        "Current well -> none",
        "Failed Failed -> Current well",
        "Current well -> Failed Failed",
        "sync Failed hook failed",
        "none -> Current well",
    ];
    assert_eq!(entries(&got), all);
    assert_eq!((&got.body["kind"], &got.body["cluster"]), (&json!("AppHistory"), &json!("eu-1")));
    assert_eq!(got.body["historySince"], past.ago(30));
    let mut paged = Vec::new();
    let mut cursor = String::new();
    loop {
        let got = past.fetch(&format!("{WEB}?limit=2{cursor}")).await;
        paged.extend(entries(&got));
        let Some(next) = got.body["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(paged, all);
    let got = past.fetch(&format!("{WEB}?from={}&to={}", past.ago(20), past.ago(10))).await;
    assert_eq!(entries(&got), all[2..4]);
    let document = openapi::document();
    let schema = json!({ "$ref": "#/components/schemas/AppHistory" });
    let got = past.fetch(WEB).await;
    assert_eq!(openapi::faults(&document, &schema, &got.body, "history"), [""; 0]);

    let got = past.fetch("/api/v1/history/eu-1/ks/shop/nothing").await;
    assert_eq!(
        (got.status, &got.body["detail"]),
        (StatusCode::NOT_FOUND, &json!("cluster 'eu-1' has no app flux-kustomization/shop/nothing"))
    );
    for wrong in ["from=yesterday", "to=2020-01-01T00:00:00Z&from=2021-01-01T00:00:00Z", "cursor=x"] {
        assert_eq!(past.fetch(&format!("{WEB}?{wrong}")).await.status, StatusCode::BAD_REQUEST, "{wrong}");
    }
    // A hub without a store says so.
    let got = fetch(&past.fleet, WEB).await;
    assert_eq!(
        (got.status, &got.body["detail"]),
        (StatusCode::NOT_FOUND, &json!("the hub keeps no history"))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_answer_for_a_past_time_as_far_as_history_reaches_back() {
    let past = Past::new().await;
    let rows = |got: &Got| -> Vec<String> {
        let items = got.body["items"].as_array().unwrap_or_else(|| panic!("{got:?}"));
        let row = |item: &Value| {
            ["cluster", "name", "effective"].map(|it| item[it].as_str().unwrap().to_owned()).join(" ")
        };
        items.iter().map(row).collect()
    };
    let at = |list: &str, seconds, more: &str| format!("/api/v1/{list}?at={}{more}", past.ago(seconds));
    let got = past.fetch(&at("apps", 20, "")).await;
    assert_eq!(rows(&got), ["eu-1 db Current", "eu-1 web Failed", "us-1 web InProgress"]);
    assert_eq!((&got.body["total"], &got.body["asOf"]), (&json!(3), &json!(past.ago(20))));
    assert_eq!(got.body["historySince"], past.ago(30));
    assert_eq!(rows(&past.fetch(&at("apps", 21, "&status=Failed")).await), [""; 0]);
    assert_eq!(rows(&past.fetch(&at("apps", 11, "&status=Failed")).await), ["eu-1 web Failed"]);
    assert_eq!(rows(&past.fetch(&at("apps", 0, "")).await), ["eu-1 db Current", "us-1 web InProgress"]);
    assert_eq!(rows(&past.fetch(&at("apps", 11, "&cluster=us-1&text=WEB")).await), ["us-1 web InProgress"]);
    // Page by page.
    let first = past.fetch(&at("apps", 20, "&limit=2")).await;
    let next = first.body["next"].as_str().unwrap();
    let second = past.fetch(&at("apps", 20, &format!("&limit=2&cursor={next}"))).await;
    assert_eq!([rows(&first), rows(&second)].concat(), rows(&got));
    assert!(second.body["next"].is_null());

    let clusters = past.fetch(&at("clusters", 20, "")).await;
    let line = |item: &Value| format!("{} {} {}", item["cluster"], item["apps"], item["problems"]);
    let lines: Vec<String> = clusters.body["items"].as_array().unwrap().iter().map(line).collect();
    assert_eq!(lines, ["\"eu-1\" 2 1", "\"us-1\" 1 1"]);
    let matrix = past.fetch(&at("matrix", 20, "")).await;
    assert_eq!(matrix.body["columns"].as_array().unwrap().len(), 2);
    let cells: Vec<&str> =
        matrix.body["rows"].as_array().unwrap().iter().map(|row| row["cells"].as_str().unwrap()).collect();
    assert_eq!(cells.iter().map(|cells| cells.len()).collect::<Vec<_>>(), [2, 2, 2][..cells.len()]);
    assert_eq!(matrix.body["legend"].as_array().unwrap().len(), 3);
    let document = openapi::document();
    for (got, name) in [(&got, "PastAppList"), (&clusters, "PastClusterList"), (&matrix, "Matrix")] {
        let schema = json!({ "$ref": format!("#/components/schemas/{name}") });
        assert_eq!(openapi::faults(&document, &schema, &got.body, name), [""; 0]);
    }

    let got = past.fetch(&at("apps", 31, "")).await;
    assert_eq!(got.status, StatusCode::BAD_REQUEST);
    let detail =
        format!("parameter 'at': the hub keeps no history before {}; ask for a later time", past.ago(30));
    assert_eq!(got.body["detail"], detail);
    for wrong in ["&sort=name", "&selector=team%3Dweb", "&group-by=cluster", "&problems=sync"] {
        assert_eq!(past.fetch(&at("apps", 20, wrong)).await.status, StatusCode::BAD_REQUEST, "{wrong}");
    }
    assert_eq!(past.fetch(&at("apps", -60, "")).await.status, StatusCode::BAD_REQUEST);
    let ready = past.fetch("/readyz").await;
    assert_eq!(ready.body, json!({ "ready": true, "store": { "writable": true, "full": false } }));
}

/// A past time may have more clusters than the hub knows now.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn past_matrix_is_bounded_by_its_own_columns() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open_quick(&folder.path().join("hub.db"), None).await.unwrap();
    let fleet = SampleFleet::restored(None, &store).await;
    let clusters: Vec<String> = (0..2_100).map(|number| format!("c{number}")).collect();
    for cluster in &clusters {
        fleet.open(cluster, "observer");
        let app = app(cluster, cluster);
        fleet.snapshot(cluster, vec![declared(&app, cluster, |_| {}), observed(&app, Status::Current, "")]);
    }
    fleet.index.publish();
    save(&fleet, &store).await;
    fleet.pass(10);
    clusters.iter().for_each(|cluster| fleet.forget(cluster, "observer"));
    fleet.index.publish();
    save(&fleet, &store).await;
    let past = Past::of(fleet, store, folder);
    let matrix = past.fetch(&format!("/api/v1/matrix?limit=500&at={}", past.ago(10))).await.body;
    let length = |key: &str| matrix[key].as_array().unwrap().len();
    assert_eq!((length("columns"), length("rows")), (2_100, 1_000_000 / 2_100));
    assert!(matrix["next"].is_string());
}

/// History keeps apps: that a cluster has none in it does not mean that it had none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_history_does_not_hold_is_missing_from_answers_for_a_past_time() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open_quick(&folder.path().join("hub.db"), None).await.unwrap();
    let fleet = SampleFleet::restored(None, &store).await;
    let fleet = fleet.with("eu-1", &[("shop/web", Status::Current, "")]).with("empty", &[]);
    fleet.open("never-read", "observer");
    fleet.index.publish();
    save(&fleet, &store).await;
    fleet.pass(10);
    // Its first app is seen after the time that is asked for.
    let fleet = fleet.with("late", &[("shop/web", Status::Current, "")]);
    save(&fleet, &store).await;
    let past = Past::of(fleet, store, folder);
    let missing = async |query: &str| {
        let got = past.fetch(&format!("/api/v1/apps?at={}{query}", past.ago(5))).await;
        let missing = got.body["missing"].as_array().unwrap_or_else(|| panic!("{got:?}"));
        let named =
            missing.iter().map(|it| format!("{} {}", it["cluster"], it["reason"])).collect::<Vec<_>>();
        (got.body["state"].clone(), got.body["clusters"].clone(), named.join(", ").replace('"', ""))
    };
    let all = "never-read NotRecorded, late NotRecorded".to_owned();
    assert_eq!(missing("").await, (json!("partial"), json!(3), all));
    assert_eq!(missing("&cluster=eu-1").await, (json!("complete"), json!(1), String::new()));
    assert_eq!(missing("&cluster=empty").await, (json!("complete"), json!(0), String::new()));
    let unknown = (json!("partial"), json!(0), "mars NotRecorded".to_owned());
    assert_eq!(missing("&cluster=mars").await, unknown);
}
