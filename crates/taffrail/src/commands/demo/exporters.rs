//! The metrics of clusters that nobody reads: a stand-in for Prometheus scrapes them as Argo CD and Flux export them.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use taffrail_api::metrics_text::MetricsText;
use taffrail_metrics::MetricsConfig;
use taffrail_sim::{Cluster, PrometheusApi, seconds_now};

use crate::command_error::CommandError;

/// The time between two scrapes, and between two reads of the hub: the shortest that a hub may have.
const SCRAPE: Duration = Duration::from_secs(5);

/// The metrics of a cluster in the text format, as one exporter has them.
type Export = fn(&Cluster) -> String;

/// A stand-in for Prometheus that scrapes clusters.
pub(super) struct ScrapedClusters {
    api: PrometheusApi,
    clusters: Vec<Cluster>,
}

impl ScrapedClusters {
    /// Starts the stand-in, which has scraped all clusters once.
    pub(super) async fn start(clusters: Vec<Cluster>) -> Result<ScrapedClusters, CommandError> {
        let api = PrometheusApi::start().await.map_err(|error| cannot(&error))?;
        let scraped = ScrapedClusters { api, clusters };
        scraped.scrape();
        Ok(scraped)
    }

    /// Returns the list of servers with which a hub reads the stand-in.
    pub(super) fn config(&self) -> Result<MetricsConfig, CommandError> {
        let (url, interval) = (self.api.url(), SCRAPE.as_secs());
        let text = format!(
            "servers:\n- {{name: vendor, url: '{url}', interval: {interval}s, families: [argo-cd, flux]}}\n"
        );
        MetricsConfig::parse(&text, Path::new("metrics.yaml")).map_err(|error| cannot(&error))
    }

    /// Scrapes all clusters again and again, for ever.
    pub(super) async fn keep_scraping(self) {
        let mut due = tokio::time::interval(SCRAPE);
        loop {
            due.tick().await;
            self.scrape();
        }
    }

    fn scrape(&self) {
        let now = seconds_now();
        for cluster in &self.clusters {
            let name = cluster.name();
            for (job, export) in [("argocd-metrics", argo_cd as Export), ("kube-state-metrics", flux)] {
                let target = format!("job=\"{job}\",instance=\"{job}.{name}:8080\",cluster=\"{name}\"");
                let mut scrapes = self.api.scrapes();
                // The names of the demo's own clusters need no escapes, and the text has them.
                drop(match cluster.is_reachable() {
                    true => scrapes.scrape(&target, &export(cluster), now),
                    false => scrapes.fail(&target, now),
                });
            }
        }
    }
}

fn cannot(error: &dyn std::error::Error) -> CommandError {
    CommandError::unreadable("cannot serve the metrics of the demo").with_source(error)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns the metrics of Argo CD's application controller.
fn argo_cd(cluster: &Cluster) -> String {
    let mut metrics = MetricsText::default();
    metrics.family("argocd_app_info", "gauge", "Information about application.");
    for object in cluster.list("argoproj.io/v1alpha1", "Application") {
        let (metadata, spec, status) = (&object["metadata"], &object["spec"], &object["status"]);
        let is_deleted = metadata.get("deletionTimestamp").is_some();
        let is_syncing = object.get("operation").is_some() || status["operationState"]["phase"] == "Running";
        let operation = match (is_deleted, is_syncing) {
            (true, _) => "delete",
            (false, true) => "sync",
            (false, false) => "",
        };
        metrics.sample(
            "argocd_app_info",
            &[
                ("namespace", &text(&metadata["namespace"])),
                ("name", &text(&metadata["name"])),
                ("project", &text(&spec["project"])),
                ("repo", &text(&spec["source"]["repoURL"])),
                ("dest_server", &text(&spec["destination"]["server"])),
                ("dest_namespace", &text(&spec["destination"]["namespace"])),
                ("sync_status", &text(&status["sync"]["status"])),
                ("health_status", &text(&status["health"]["status"])),
                ("operation", &operation),
            ],
            1,
        );
    }
    metrics.into_text()
}

/// Returns the metrics of kube-state-metrics with the configuration that Flux documents.
fn flux(cluster: &Cluster) -> String {
    let mut metrics = MetricsText::default();
    metrics.family("gotk_resource_info", "info", "The current state of a Flux resource.");
    for (group, version, kind) in [
        ("kustomize.toolkit.fluxcd.io", "v1", "Kustomization"),
        ("helm.toolkit.fluxcd.io", "v2", "HelmRelease"),
    ] {
        for object in cluster.list(&format!("{group}/{version}"), kind) {
            let (metadata, status) = (&object["metadata"], &object["status"]);
            let mut conditions = status["conditions"].as_array().into_iter().flatten();
            let ready = conditions.find(|condition| condition["type"] == "Ready");
            let suspended = object["spec"]["suspend"].as_bool().map(|it| it.to_string()).unwrap_or_default();
            metrics.sample(
                "gotk_resource_info",
                &[
                    ("customresource_group", &group),
                    ("customresource_version", &version),
                    ("customresource_kind", &kind),
                    ("exported_namespace", &text(&metadata["namespace"])),
                    ("name", &text(&metadata["name"])),
                    ("ready", &ready.map_or("", |ready| text(&ready["status"]))),
                    ("suspended", &suspended),
                    ("revision", &text(&status["lastAppliedRevision"])),
                ],
                1,
            );
        }
    }
    metrics.into_text()
}

#[cfg(test)]
mod tests {
    use taffrail_sim::Trouble;

    use super::super::world::World;
    use super::*;

    /// Returns the labels of the series that a query finds, by name of the app.
    fn series(scraped: &ScrapedClusters, query: &str) -> Vec<Value> {
        let answer = scraped.api.scrapes().answer(query, seconds_now() + 1.0).unwrap();
        let mut found = answer["data"]["result"].as_array().unwrap().clone();
        found.sort_by_key(|series| text(&series["metric"]["name"]).to_owned());
        found
    }

    #[tokio::test]
    async fn exporters_tell_of_apps_until_their_cluster_cannot_be_reached() {
        let world = World::start(1, Duration::from_secs(60), true).await.unwrap();
        let scraped = ScrapedClusters::start(world.of_metrics()).await.unwrap();
        assert!(scraped.config().is_ok());
        let apps = series(&scraped, r#"argocd_app_info{cluster="vendor-1"}"#);
        let words = |series: &Value| {
            ["name", "health_status", "sync_status", "operation"]
                .map(|label| text(&series["metric"][label]).to_owned())
                .join(" ")
        };
        let told: Vec<String> = apps.iter().map(words).collect();
        assert_eq!(told, ["invoices Degraded Synced sync", "mailer Healthy Synced "]);
        let [backups] = &series(&scraped, "gotk_resource_info")[..] else { panic!("one is expected") };
        assert_eq!(text(&backups["metric"]["ready"]), "True");
        assert!(text(&backups["metric"]["revision"]).starts_with("main@sha1:"), "{backups}");

        scraped.clusters[0].trouble(Trouble::Unreachable);
        scraped.scrape();
        assert!(series(&scraped, "argocd_app_info").is_empty());
        let up = series(&scraped, r#"up{cluster="vendor-1"}"#);
        assert!(up.len() == 2 && up.iter().all(|series| series["value"][1] == "0"), "{up:?}");
    }
}
