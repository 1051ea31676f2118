//! Clusters that are read lightly: what a hub is told of their apps.

use std::time::Duration;

use serde_json::{Value, json};
use taffrail_api::report::LIGHT;
use taffrail_api::{AppRow, RowPart};
use taffrail_apps::FreshnessState;
use taffrail_observe::LightReach;
use taffrail_sim::Cluster;
use taffrail_status::Status;
use taffrail_testkit::objects::{definition, with_spec_and_status};

use crate::reporting::{Stage, application, kustomization};

fn all() -> LightReach {
    LightReach { chosen: vec!["*".to_owned()], ..LightReach::default() }
}

/// Returns the parts of a row that tell how its objects are: health, the health now, whether a controller says it, and the
/// number of objects.
fn told(row: &AppRow) -> (Status, Status, bool, usize) {
    (row.health, row.effective, row.said, row.objects)
}

/// Returns a ResourceGroup of two objects, of which the second has this status.
fn resource_group(status: &str, conditions: Value) -> Value {
    let object = |name: &str| json!({"group": "", "kind": "ConfigMap", "namespace": "shop", "name": name});
    let stating = |name: &str, status: &str| {
        let mut object = object(name);
        object["status"] = json!(status);
        object
    };
    json!({
        "apiVersion": "kpt.dev/v1alpha1", "kind": "ResourceGroup",
        "metadata": {"namespace": "shop", "name": "package", "generation": 3},
        "spec": {"resources": [object("one"), object("two")]},
        "status": {"observedGeneration": 3, "conditions": conditions,
            "resourceStatuses": [stating("one", "Current"), stating("two", status)]},
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn light_cluster_tells_what_argo_cd_says_and_no_more() {
    let mut stage = Stage::reaching(8, all(), |_| {}).await;
    let [eu, us] = stage.clusters.clone();
    stage.until("all apps are known", |stage| stage.rows().len() == 3).await;
    let rows = stage.rows();
    // The Deployments are well, and nobody looked at them.
    let (far, web) = (&rows["eu us far"], &rows["us us web"]);
    assert_eq!(told(far), (Status::Current, Status::Current, true, 0));
    assert_eq!(far.unobserved, [RowPart::Objects]);
    assert_eq!(told(web), (Status::Unknown, Status::Unknown, false, 0));
    assert_eq!(web.unobserved, [RowPart::Health, RowPart::Objects]);
    let problem = web.problem.as_ref().unwrap();
    assert!(problem.is_pressing() && problem.object.is_none(), "{problem:?}");
    for name in ["eu", "us"] {
        let facts = stage.of(name).unwrap().facts();
        assert!(facts.is_light, "{facts:?}");
        // Kustomizations and Applications.
        assert_eq!(facts.reading.as_ref().and_then(|reading| reading.scopes), Some(2));
        assert_eq!(stage.of(name).unwrap().cluster().0, format!("uid-of-{name}"));
    }
    let mut degraded = application(&us, "OutOfSync");
    degraded["status"]["health"] = json!({"status": "Degraded", "message": "2 of 3 replicas"});
    eu.apply(degraded).unwrap();
    stage.until("it is degraded", |stage| stage.rows()["eu us far"].health == Status::Failed).await;
    let far = &stage.rows()["eu us far"];
    assert_eq!(told(far), (Status::Failed, Status::Failed, true, 0));
    assert_eq!(&*far.message, "Argo CD says that the app is Degraded: 2 of 3 replicas");
    // The declaring object itself is read, and may be worse than what is unobserved.
    let mut failed = kustomization("web", &["web"]);
    failed["status"]["conditions"] = json!([
        {"type": "Ready", "status": "False", "reason": "BuildFailed", "message": "no such file", "observedGeneration": 1}]);
    us.apply(failed).unwrap();
    stage.until("it failed", |stage| stage.rows()["us us web"].health == Status::Failed).await;
    assert!(!stage.rows()["us us web"].said);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_that_argo_cd_keeps_without_reaching_the_cluster_is_unknown() {
    let prepare = |[eu, us]: &[Cluster; 2]| eu.apply(application(us, "Unknown")).unwrap();
    let mut stage = Stage::reaching(8, all(), prepare).await;
    stage.until("the app is known", |stage| stage.rows().contains_key("eu us far")).await;
    assert_eq!(told(&stage.rows()["eu us far"]), (Status::Unknown, Status::Unknown, true, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_argo_cd_said_half_an_hour_ago_counts_only_if_it_is_worse() {
    let prepare = |[eu, us]: &[Cluster; 2]| {
        let mut old = application(us, "Synced");
        // It comes of age while it is watched, without any event.
        old["status"]["reconciledAt"] =
            json!((jiff::Timestamp::now() - jiff::SignedDuration::from_secs(30 * 60 - 3)).to_string());
        eu.apply(old).unwrap();
    };
    let mut stage = Stage::reaching(8, all(), prepare).await;
    let [eu, us] = stage.clusters.clone();
    let far = |stage: &Stage| stage.rows().get("eu us far").map(told);
    let is_unknown = |stage: &Stage| far(stage) == Some((Status::Unknown, Status::Unknown, true, 0));
    stage.until("it is of age", is_unknown).await;
    assert_eq!(
        &*stage.rows()["eu us far"].message,
        "Argo CD says that the app is Healthy, but has not compared it for more than 30 min"
    );
    let mut degraded = application(&us, "Synced");
    degraded["status"]["health"] = json!({"status": "Degraded"});
    degraded["status"]["reconciledAt"] = json!("2026-01-01T00:00:00Z");
    eu.apply(degraded).unwrap();
    stage.until("it is degraded", |stage| far(stage).is_some_and(|told| told.0 == Status::Failed)).await;
    // Only Argo CD knows whether this one is well, and it never compared it.
    let mut never = application(&us, "Synced");
    never["status"]["reconciledAt"] = Value::Null;
    eu.apply(never).unwrap();
    stage.until("it was never compared", is_unknown).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resource_group_counts_where_its_controller_writes_it() {
    let well = json!([{"type": "Stalled", "status": "False"}, {"type": "Reconciling", "status": "False"}]);
    let prepare = |[eu, _]: &[Cluster; 2]| {
        eu.apply(definition("kpt.dev", "v1alpha1", "ResourceGroup", with_spec_and_status())).unwrap();
        // As `kpt live apply` leaves it, nothing keeps the statuses up to date.
        eu.apply(resource_group("Current", json!([]))).unwrap();
    };
    let mut stage = Stage::reaching(8, all(), prepare).await;
    let eu = stage.clusters[0].clone();
    let package = "eu eu package";
    stage.until("it is known", |stage| stage.rows().contains_key(package)).await;
    assert_eq!(told(&stage.rows()[package]), (Status::Unknown, Status::Unknown, false, 0));
    for (status, expected) in
        [("Current", Status::Current), ("Failed", Status::Failed), ("what", Status::Unknown)]
    {
        eu.apply(resource_group(status, well.clone())).unwrap();
        let is_said = move |stage: &Stage| told(&stage.rows()[package]) == (expected, expected, true, 0);
        stage.until(status, is_said).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_beyond_the_limit_are_read_lightly_and_those_before_stay_full() {
    let light = LightReach { full_limit: 1, ..LightReach::default() };
    let mut stage = Stage::reaching(8, light, |_| {}).await;
    let is_said = |stage: &Stage| stage.rows().get("eu us far").is_some_and(|row| told(row).2);
    stage.until("all apps are known", |stage| stage.rows().len() == 3 && is_said(stage)).await;
    let rows = stage.rows();
    assert_eq!(told(&rows["eu eu web"]), (Status::Current, Status::Current, false, 1));
    assert_eq!(told(&rows["us us web"]), (Status::Unknown, Status::Unknown, false, 0));
    // The cluster that declares it is read in full, and the one with its objects lightly.
    assert_eq!(told(&rows["eu us far"]), (Status::Current, Status::Current, true, 0));
    let lightly = ["eu", "us"].map(|name| stage.of(name).unwrap().facts().is_light);
    assert_eq!(lightly, [false, true]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn light_cluster_is_live_for_two_minutes_without_a_proof() {
    let mut stage = Stage::reaching(8, all(), |_| {}).await;
    stage.until("all apps are known", |stage| stage.rows().len() == 3).await;
    let (at, us) = (stage.at(), stage.of("us").unwrap());
    let proved = at - us.age(at).unwrap();
    let states = [LIGHT, LIGHT + Duration::from_secs(1)].map(|age| us.state(proved + age));
    assert_eq!(states, [FreshnessState::Live, FreshnessState::Stale]);
}
