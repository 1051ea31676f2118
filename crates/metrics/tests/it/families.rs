//! Rows and unobserved parts of each family, as the table in `docs/metrics.md` has them.

use std::collections::BTreeMap;

use snapbox::{assert_data_eq, str};
use taffrail_api::metrics_text::{ClusterMetrics, MetricsText};
use taffrail_apps::FreshnessState;
use taffrail_status::Status;
use taffrail_status::rollup::Counts;

use crate::stage::{Stage, TARGET};

/// Scrapes a text thrice, and compares the rows.
async fn check(stage: &mut Stage, text: &str, expected: impl snapbox::IntoData) {
    stage.scrapes(text, 3).await;
    assert_data_eq!(stage.table(), expected);
}

pub(crate) const ARGO: &str = r#"
# HELP argocd_app_info Information about application.
# TYPE argocd_app_info gauge
argocd_app_info{autosync_enabled="true",dest_namespace="shop",dest_server="https://kubernetes.default.svc",health_status="Healthy",name="shop",namespace="argocd",operation="",project="default",repo="https://git.example/shop",sync_status="Synced"} 1
argocd_app_info{autosync_enabled="true",dest_namespace="pay",dest_server="https://10.1.1.1:6443",health_status="Degraded",name="pay",namespace="argocd",operation="",project="default",repo="https://git.example/pay",sync_status="OutOfSync"} 1
argocd_app_info{autosync_enabled="false",dest_namespace="mail",dest_server="https://kubernetes.default.svc",health_status="Progressing",name="mail",namespace="argocd",operation="sync",project="default",repo="https://git.example/mail",sync_status="OutOfSync"} 1
argocd_app_info{autosync_enabled="false",dest_namespace="x",dest_server="https://kubernetes.default.svc",health_status="Missing",name="x",namespace="teams",operation="",project="default",repo="",sync_status="Unknown"} 1
argocd_app_sync_total{dest_server="https://10.1.1.1:6443",name="pay",namespace="argocd",phase="Failed",project="default"} 3
argocd_app_sync_total{dest_server="https://kubernetes.default.svc",name="shop",namespace="argocd",phase="Succeeded",project="default"} 7
argocd_app_sync_total{dest_server="https://kubernetes.default.svc",name="alone",namespace="argocd",phase="Error",project="default"} 1
"#;

#[tokio::test]
async fn argo_cd_tells_health_and_sync_of_applications() {
    let mut stage = Stage::with("  destinations: {'https://10.1.1.1:6443/': us}\n", &[]).await;
    check(&mut stage, ARGO, str![[r#"
eu argo-application argocd/alone: Unknown, Failed ? - [the source of the row does not tell the health of the app] [argocd_app_sync_total: the last sync failed] - Health Objects Revisions Applied Suspended Source Message
eu argo-application argocd/mail: InProgress, Syncing ? - [argocd_app_info: health_status Progressing] - Objects Revisions Applied Suspended Message
us of eu argo-application argocd/pay: Failed, Failed ? - [argocd_app_info: health_status Degraded] [argocd_app_sync_total: the last sync failed] - Objects Revisions Applied Suspended Message
eu argo-application argocd/shop: Ready, Synced ? - - Objects Revisions Applied Suspended Message
eu argo-application teams/x: NotFound, Unknown ? - [argocd_app_info: health_status Missing] - Objects Revisions Applied Suspended Source Message

"#]]).await;
}

pub(crate) const FLUX: &str = r#"
gotk_reconcile_condition{kind="Kustomization",name="apps",namespace="flux-system",status="True",type="Ready"} 1
gotk_reconcile_condition{kind="Kustomization",name="apps",namespace="flux-system",status="False",type="Ready"} 0
gotk_reconcile_condition{kind="Kustomization",name="apps",namespace="flux-system",status="Unknown",type="Ready"} 0
gotk_reconcile_condition{kind="Kustomization",name="apps",namespace="flux-system",status="Deleted",type="Ready"} 0
gotk_reconcile_condition{kind="HelmRelease",name="db",namespace="data",status="True",type="Ready"} 0
gotk_reconcile_condition{kind="HelmRelease",name="db",namespace="data",status="False",type="Ready"} 1
gotk_reconcile_condition{kind="HelmRelease",name="db",namespace="data",status="Unknown",type="Ready"} 0
gotk_reconcile_condition{kind="HelmRelease",name="db",namespace="data",status="Deleted",type="Ready"} 0
gotk_reconcile_condition{kind="GitRepository",name="fleet",namespace="flux-system",status="True",type="Ready"} 1
gotk_suspend_status{kind="Kustomization",name="apps",namespace="flux-system"} 0
gotk_suspend_status{kind="HelmRelease",name="db",namespace="data"} 1
"#;

#[tokio::test]
async fn flux_controllers_tell_the_condition_ready_and_suspension() {
    let mut stage = Stage::new().await;
    check(&mut stage, FLUX, str![[r#"
eu flux-kustomization flux-system/apps: Unknown, Synced ? - [gotk_reconcile_condition: the declaring object is ready, and the objects are not observed] - Health Objects Revisions Applied Source Message
eu flux-helmrelease data/db: Failed (suspended), Suspended ? - [gotk_reconcile_condition: status False of Ready] [gotk_suspend_status: the app is suspended] - Health Objects Revisions Applied Source Message

"#]]).await;
}

pub(crate) const FLUX_INFO: &str = r#"
gotk_resource_info{customresource_group="kustomize.toolkit.fluxcd.io",customresource_kind="Kustomization",customresource_version="v1",exported_namespace="flux-system",name="apps",ready="True",revision="main@sha1:abc",source_name="fleet",suspended="false"} 1
gotk_resource_info{customresource_group="kustomize.toolkit.fluxcd.io",customresource_kind="Kustomization",customresource_version="v1",exported_namespace="flux-system",name="infra",ready="Unknown",revision="main@sha1:abc",source_name="fleet"} 1
gotk_resource_info{customresource_group="helm.toolkit.fluxcd.io",customresource_kind="HelmRelease",customresource_version="v2",exported_namespace="data",name="db",ready="True",revision="1.2.3",suspended="true"} 1
gotk_resource_info{customresource_group="source.toolkit.fluxcd.io",customresource_kind="GitRepository",customresource_version="v1",exported_namespace="flux-system",name="fleet",ready="True",revision="main@sha1:abc"} 1
gotk_resource_info{customresource_group="kustomize.toolkit.fluxcd.io",customresource_kind="Kustomization",customresource_version="v1",exported_namespace="flux-system",name="new"} 1
"#;

#[tokio::test]
async fn kube_state_metrics_of_flux_tell_the_revision_too() {
    let mut stage = Stage::new().await;
    check(&mut stage, FLUX_INFO, str![[r#"
eu flux-kustomization flux-system/apps: Unknown, Synced ? main@sha1:abc [gotk_resource_info: the declaring object is ready, and the objects are not observed] - Health Objects Revisions Source Message
eu flux-kustomization flux-system/infra: InProgress, Syncing ? main@sha1:abc [gotk_resource_info: ready Unknown of Ready] - Health Objects Revisions Suspended Source Message
eu flux-kustomization flux-system/new: Unknown, Unknown ? - [the source of the row does not tell the health of the app] - Health Objects Sync Revisions Applied Suspended Source Message
eu flux-helmrelease data/db: Unknown (suspended), Suspended ? 1.2.3 [gotk_resource_info: the declaring object is ready, and the objects are not observed] [gotk_resource_info: the app is suspended] - Health Objects Revisions Source Message

"#]]).await;
}

pub(crate) const CONFIG_SYNC: &str = r#"
config_sync_resource_count{resourcegroup="config-management-system/root-sync"} 40
config_sync_ready_resource_count{resourcegroup="config-management-system/root-sync"} 40
config_sync_last_sync_timestamp{commit="abc123",configsync_sync_kind="RootSync",configsync_sync_name="root-sync",configsync_sync_namespace="config-management-system",status="success"} 1.7999999e+09
config_sync_last_sync_timestamp{commit="old",configsync_sync_kind="RootSync",configsync_sync_name="root-sync",configsync_sync_namespace="config-management-system",status="error"} 1.7999998e+09
config_sync_reconciler_errors{component="source",configsync_sync_kind="RootSync",configsync_sync_name="root-sync",configsync_sync_namespace="config-management-system",errorclass="2xxx"} 0
resource_count{resourcegroup="shop/repo-sync"} 5
ready_resource_count{resourcegroup="shop/repo-sync"} 3
reconciler_errors{component="sync",configsync_sync_kind="RepoSync",configsync_sync_name="repo-sync",configsync_sync_namespace="shop",errorclass="1xxx"} 2
resource_count{resourcegroup="shop/half"} 5
"#;

#[tokio::test]
async fn config_sync_tells_objects_and_the_last_sync() {
    let mut stage = Stage::new().await;
    check(&mut stage, CONFIG_SYNC, str![[r#"
eu config-sync config-management-system/root-sync: Ready, Synced 40/40 abc123 - Revisions Suspended Source Message
eu config-sync shop/half: Unknown, Unknown ? - [the source of the row does not tell the health of the app] - Health Objects Sync Revisions Applied Suspended Source Message
eu config-sync shop/repo-sync: Unknown, Failed 3/5 - [ready_resource_count: 3 of 5 objects ready] [reconciler_errors: the last sync failed] - Revisions Applied Suspended Source Message

"#]]).await;
}

pub(crate) const CUSTOM_RESOURCES: &str = r#"
kube_customresource_status_condition{customresource_group="kustomize.toolkit.fluxcd.io",customresource_kind="Kustomization",customresource_version="v1",name="apps",namespace="flux-system",type="Ready",status="True"} 1
kube_customresource_status_condition{customresource_group="kustomize.toolkit.fluxcd.io",customresource_kind="Kustomization",customresource_version="v1",name="apps",namespace="flux-system",type="Ready",status="False"} 0
kube_customresource_status_condition{customresource_group="kpt.dev",customresource_kind="ResourceGroup",customresource_version="v1alpha1",name="pkg",namespace="shop",type="Stalled",status="False"} 1
kube_customresource_status_condition{customresource_group="kpt.dev",customresource_kind="ResourceGroup",customresource_version="v1alpha1",name="pkg",namespace="shop",type="Reconciling",status="False"} 1
kube_customresource_status_condition{customresource_group="kpt.dev",customresource_kind="ResourceGroup",customresource_version="v1alpha1",name="half",namespace="shop",type="Reconciling",status="False"} 1
kube_customresource_status_condition{customresource_group="configsync.gke.io",customresource_kind="RootSync",customresource_version="v1beta1",name="root-sync",namespace="config-management-system",type="Stalled",status="True"} 1
kube_customresource_app_info{customresource_group="argoproj.io",customresource_kind="Application",customresource_version="v1alpha1",name="shop",namespace="argocd",health_status="Healthy",sync_status="OutOfSync"} 1
kube_customresource_generation{customresource_group="argoproj.io",customresource_kind="Application",customresource_version="v1alpha1",name="shop",namespace="argocd"} 17
"#;

#[tokio::test]
async fn kube_state_metrics_tell_what_the_shape_of_a_series_means() {
    let mut stage = Stage::new().await;
    check(&mut stage, CUSTOM_RESOURCES, str![[r#"
eu flux-kustomization flux-system/apps: Unknown, Synced ? - [kube_customresource_status_condition: the declaring object is ready, and the objects are not observed] - Health Objects Revisions Applied Suspended Source Message
eu argo-application argocd/shop: Ready, OutOfSync ? - - Objects Revisions Applied Suspended Source Message
eu config-sync config-management-system/root-sync: Failed, Failed ? - [kube_customresource_status_condition: condition Stalled True] [kube_customresource_status_condition: the last sync failed] - Health Objects Revisions Applied Suspended Source Message
eu kpt shop/half: Unknown, Unknown ? - [the source of the row does not tell the health of the app] - Health Objects Sync Revisions Applied Suspended Source Message
eu kpt shop/pkg: Unknown, Unknown ? - [kube_customresource_status_condition: the declaring object is ready, and the objects are not observed] - Health Objects Sync Revisions Applied Suspended Source Message

"#]]).await;
}

pub(crate) fn hub(state: &str, current: u32, failed: u32) -> String {
    format!(
        r#"
taffrail_app_units{{app="flux-kustomization/flux-system/shop",state="Failed"}} {failed}
taffrail_app_units{{app="flux-kustomization/flux-system/shop",state="NotFound"}} 0
taffrail_app_units{{app="flux-kustomization/flux-system/shop",state="Unknown"}} 0
taffrail_app_units{{app="flux-kustomization/flux-system/shop",state="Terminating"}} 0
taffrail_app_units{{app="flux-kustomization/flux-system/shop",state="InProgress"}} 0
taffrail_app_units{{app="flux-kustomization/flux-system/shop",state="Current"}} {current}
taffrail_hub_series_omitted{{metric="taffrail_app_state"}} 0
taffrail_cluster_freshness{{cluster="us"}} 0
taffrail_cluster_freshness{{cluster="dark"}} 2
{state}
"#
    )
}

#[tokio::test]
async fn another_hub_tells_apps_that_are_not_well_and_by_counts_those_that_are_again() {
    let red = r#"taffrail_app_state{app="flux-kustomization/flux-system/shop",cluster="us"} 0"#;
    let mut stage = Stage::new().await;
    check(&mut stage, &hub(red, 4, 1), str![[r#"
us flux-kustomization flux-system/shop: Failed, Unknown ? - [taffrail_app_state: value 0 (Failed)] - Objects Sync Revisions Applied Suspended Source Message

"#]]).await;
    // Five clusters have it as before, and no other one is listed.
    check(&mut stage, &hub("", 5, 0), str![[r#"
us flux-kustomization flux-system/shop: Ready, Unknown ? - - Objects Sync Revisions Applied Suspended Source Message

"#]]).await;
    // An app is gone from a cluster, and nothing says from which.
    stage.scrapes(&hub("", 4, 0), 5).await;
    assert!(!stage.is_any_green(), "{}", stage.table());
}

/// Returns what an agent of the cluster `us` serves if its app `shop` has this status.
fn agent(status: Status) -> String {
    let mut text = MetricsText::default();
    let key = "flux-kustomization/flux-system/shop";
    let mut counts = Counts::default();
    counts.add(status);
    let unwell = (status != Status::Current).then_some((status, key, "us"));
    text.apps(&BTreeMap::from([(key, counts)]), unwell.into_iter().collect(), 1);
    let problems = usize::from(status != Status::Current);
    text.clusters(&[ClusterMetrics { name: "us", freshness: FreshnessState::Live, apps: 1, problems }]);
    text.into_text()
}

#[tokio::test]
async fn an_agent_tells_what_a_hub_tells() {
    let mut stage = Stage::new().await;
    check(&mut stage, &agent(Status::InProgress), str![[r#"
us flux-kustomization flux-system/shop: InProgress, Unknown ? - [taffrail_app_state: value 4 (InProgress)] - Objects Sync Revisions Applied Suspended Source Message

"#]]).await;
    check(&mut stage, &agent(Status::Current), str![[r#"
us flux-kustomization flux-system/shop: Ready, Unknown ? - - Objects Sync Revisions Applied Suspended Source Message

"#]]).await;
}

#[tokio::test]
async fn what_is_well_in_the_only_cluster_of_an_agent_needs_not_have_been_listed() {
    let mut stage = Stage::new().await;
    stage.scrape(&agent(Status::Current)).await;
    assert!(stage.is_any_green(), "{}", stage.table());
    // Down, and back.
    stage.prometheus.state().fail(TARGET);
    stage.read().await;
    assert!(!stage.is_any_green(), "{}", stage.table());
    stage.scrape(&agent(Status::Current)).await;
    assert!(stage.is_any_green(), "{}", stage.table());
    // A cluster more, and nobody knows in which of them the app is.
    let mut stage = Stage::new().await;
    let two = agent(Status::Current).replace(
        "taffrail_cluster_freshness{cluster=\"us\"} 0\n",
        "taffrail_cluster_freshness{cluster=\"us\"} 0\ntaffrail_cluster_freshness{cluster=\"eu\"} 0\n",
    );
    assert!(two.contains("\"eu\""), "{two}");
    stage.scrape(&two).await;
    assert!(!stage.is_any_green(), "{}", stage.table());
    // Nor if clusters are omitted.
    let mut stage = Stage::new().await;
    let omitting =
        agent(Status::Current).replace("taffrail_cluster_freshness\"} 0", "taffrail_cluster_freshness\"} 1");
    stage.scrape(&omitting).await;
    assert!(!stage.is_any_green(), "{}", stage.table());
}

#[tokio::test]
async fn apps_of_a_hub_that_was_down_are_known_again() {
    let red = r#"taffrail_app_state{app="flux-kustomization/flux-system/shop",cluster="us"} 0"#;
    let mut stage = Stage::new().await;
    stage.scrapes(&hub(red, 4, 1), 3).await;
    stage.scrapes(&hub("", 5, 0), 2).await;
    assert!(stage.is_any_green(), "{}", stage.table());
    stage.prometheus.state().fail(TARGET);
    stage.read().await;
    assert!(!stage.is_any_green(), "{}", stage.table());
    stage.scrapes(&hub("", 5, 0), 2).await;
    assert!(stage.is_any_green(), "{}", stage.table());
}

/// The labels of a target to which Prometheus adds no cluster.
const BARE: &str = r#"job="agents",instance="10.0.0.1:80""#;

#[tokio::test]
async fn an_agent_is_read_whose_target_has_no_label_of_the_cluster() {
    let mut stage = Stage::new().await;
    for status in [Status::InProgress, Status::Current] {
        stage.prometheus.scrape(BARE, &agent(status));
        stage.read().await;
        stage.pass(13);
    }
    assert!(stage.is_any_green(), "{}", stage.table());
    // What it told is stale at once when it cannot be scraped.
    stage.prometheus.state().fail(BARE);
    stage.read().await;
    assert!(!stage.is_any_green(), "{}", stage.table());
}

#[tokio::test]
async fn counts_that_leave_room_prove_nothing() {
    let red = r#"taffrail_app_state{app="flux-kustomization/flux-system/shop",cluster="us"} 0"#;
    for (state, current, failed) in [("", 4, 1), ("", 0, 0)] {
        let mut stage = Stage::new().await;
        stage.scrapes(&hub(red, 4, 1), 3).await;
        stage.scrapes(&hub(state, current, failed), 5).await;
        assert!(!stage.is_any_green(), "{}", stage.table());
    }
    let mut stage = Stage::new().await;
    stage.scrapes(&hub(red, 4, 1), 3).await;
    let omitting = hub("", 5, 0).replace("taffrail_app_state\"} 0", "taffrail_app_state\"} 3");
    stage.scrapes(&omitting, 5).await;
    assert!(!stage.is_any_green(), "{}", stage.table());
}

#[tokio::test]
async fn counts_of_other_scrapes_and_of_swapped_clusters_prove_nothing() {
    let red = r#"taffrail_app_state{app="flux-kustomization/flux-system/shop",cluster="us"} 0"#;
    // The cluster is gone, and another one has the app.
    let mut stage = Stage::new().await;
    stage.scrapes(&hub(red, 4, 1), 3).await;
    let swapped = hub("", 5, 0).replace("cluster=\"us\"", "cluster=\"new\"");
    stage.scrapes(&swapped, 5).await;
    assert!(!stage.is_any_green(), "{}", stage.table());
    // The counts are of an earlier scrape than what is listed.
    let mut stage = Stage::new().await;
    stage.scrapes(&hub(red, 4, 1), 3).await;
    let late = (stage.prometheus.state().now - 5.0) * 1_000.0;
    let is_count = |line: &str| line.contains("state=\"");
    let timed = |line: &str| if is_count(line) { format!("{line} {late}\n") } else { format!("{line}\n") };
    let text: String = hub("", 5, 0).lines().map(timed).collect();
    stage.scrape(&text).await;
    assert!(!stage.is_any_green(), "{}", stage.table());
}

#[tokio::test]
async fn mapping_tells_metrics_of_other_tools() {
    let more = "  mappings:
  - metric: deploy_state
    delivery: label
    labels: {cluster: site, namespace: ns, name: app}
    health: {label: state, values: {ok: Current, bad: Failed}}
    sync: {label: state, values: {ok: Synced}}
    revision: version
  - metric: deploy_paused
    delivery: label
    labels: {cluster: site, namespace: ns, name: app}
    suspended: {values: {'0': false, '1': true}}
";
    let text = r#"
deploy_state{site="edge-1",ns="shop",app="web",state="ok",version="7"} 1
deploy_state{site="edge-1",ns="shop",app="web",state="bad",version="7"} 0
deploy_state{site="edge-2",ns="shop",app="web",state="bad",version="6"} 1
deploy_state{site="edge-3",ns="shop",app="web",state="new word",version="6"} 1
deploy_paused{site="edge-2",ns="shop",app="web"} 1
"#;
    let mut stage = Stage::with(more, &[]).await;
    check(&mut stage, text, str![[r#"
edge-1 label shop/web: Ready, Synced ? 7 - Objects Revisions Suspended Source Message
edge-2 label shop/web: Failed (suspended), Suspended ? 6 [deploy_state: state bad] [deploy_paused: the app is suspended] - Objects Revisions Source Message
edge-3 label shop/web: Unknown, Unknown ? 6 [deploy_state: state new word] - Objects Sync Revisions Suspended Source Message

"#]]).await;
}
