//! Metrics in the text format of Prometheus, with the names and labels that hubs and agents share.
//!
//! An app in a cluster has a series of its own only while it is not Ready; the others are counted by app and by
//! cluster. So a fleet of 10,000 clusters with 100 apps, 2 % of them not Ready, has about 41,000 series instead of
//! 6,000,000.

use std::collections::{BTreeMap, HashSet};
use std::fmt::{Display, Write as _};

use taffrail_apps::FreshnessState;
use taffrail_status::Status;
use taffrail_status::rollup::Counts;

use crate::report::ClusterSummary;

/// The greatest number of apps (in all clusters) for which the numbers by status are written, the first by key; the
/// others are only counted as omitted.
const MAX_APPS: usize = 2_000;

/// The greatest number of pairs of app and cluster that have a series of their own because they are not Current; the
/// worst come first, and the others are only counted as omitted.
const MAX_UNWELL: usize = 20_000;

/// The greatest number of clusters with series of their own, the first ones; the others are only counted as omitted.
const MAX_CLUSTERS: usize = 20_000;

/// A cluster as metrics tell of it.
#[derive(Debug, Clone, Copy)]
pub struct ClusterMetrics<'c> {
    /// The name, which no other cluster has: two series with the same labels would make Prometheus refuse all of them.
    pub name: &'c str,
    /// The freshness of the cluster.
    pub freshness: FreshnessState,
    /// The number of its apps.
    pub apps: usize,
    /// The number of its apps with a problem that is more than a notice.
    pub problems: usize,
}

/// Text in the format of Prometheus, version 0.0.4.
#[derive(Debug, Default)]
pub struct MetricsText(String);

impl MetricsText {
    /// Begins a metric.
    pub fn family(&mut self, name: &str, kind: &str, about: &str) {
        self.put(format_args!("# HELP {name} {about}\n# TYPE {name} {kind}\n"));
    }

    /// Adds a series of the metric that was begun last.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &dyn Display)], value: impl Display) {
        self.0.push_str(name);
        for (at, (label, text)) in labels.iter().enumerate() {
            self.0.push(if at == 0 { '{' } else { ',' });
            let text = text.to_string().replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            self.put(format_args!("{label}=\"{text}\""));
        }
        let end = if labels.is_empty() { "" } else { "}" };
        self.put(format_args!("{end} {value}\n"));
    }

    /// Adds a metric with one series without labels.
    pub fn one(&mut self, name: &str, kind: &str, about: &str, value: impl Display) {
        self.family(name, kind, about);
        self.sample(name, &[], value);
    }

    /// Returns the text.
    pub fn into_text(self) -> String {
        self.0
    }

    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        // A text has room for everything.
        let _ = self.0.write_fmt(text);
    }

    /// Adds the metrics of apps: `units` has for each key the numbers of clusters with the app, by its present status
    /// there; `unwell` has the status, the key and the cluster of each app that is not Current. `clusters` is the number
    /// of all clusters.
    pub fn apps(
        &mut self,
        units: &BTreeMap<&str, Counts>,
        mut unwell: Vec<(Status, &str, &str)>,
        clusters: usize,
    ) {
        let family = "taffrail_app_units";
        self.family(family, "gauge", "Clusters that have the app, by its present status there.");
        for (key, counts) in units.iter().take(MAX_APPS) {
            for status in Status::ALL {
                self.sample(family, &[("app", key), ("state", &status.as_str())], counts.get(status));
            }
        }
        let mut omitted = vec![(family, units.len().saturating_sub(MAX_APPS))];
        unwell.sort_unstable();
        // Of two apps of one key in a cluster the worse one counts.
        let mut told: HashSet<(&str, &str)> = HashSet::new();
        unwell.retain(|(_, key, cluster)| told.insert((key, cluster)));
        let family = "taffrail_app_state";
        let about = "Present status of an app in a cluster where it is not Current: 0 Failed, 1 NotFound, 2 Unknown, 3 Terminating, 4 InProgress.";
        self.family(family, "gauge", about);
        for (status, key, cluster) in unwell.iter().take(MAX_UNWELL) {
            self.sample(family, &[("app", key), ("cluster", cluster)], *status as u8);
        }
        omitted.push((family, unwell.len().saturating_sub(MAX_UNWELL)));
        omitted.push(("taffrail_cluster_freshness", clusters.saturating_sub(MAX_CLUSTERS)));
        let family = "taffrail_hub_series_omitted";
        self.family(
            family,
            "gauge",
            "Apps or clusters that a metric leaves out, because there are too many.",
        );
        for (metric, count) in omitted {
            self.sample(family, &[("metric", &metric)], count);
        }
    }

    /// Adds the metrics of clusters and their apps, as their source knows them.
    pub fn summaries(&mut self, clusters: &[ClusterSummary]) {
        let mut units: BTreeMap<&str, Counts> = BTreeMap::new();
        let mut unwell = Vec::new();
        for cluster in clusters {
            // Of two apps of one key in a cluster the worse one counts.
            let mut of_key: BTreeMap<&str, Status> = BTreeMap::new();
            for (key, status) in &cluster.apps {
                let worst = of_key.entry(key).or_insert(*status);
                *worst = (*worst).min(*status);
            }
            for (key, status) in of_key {
                units.entry(key).or_default().add(status);
                if status != Status::Current {
                    unwell.push((status, key, &*cluster.name));
                }
            }
        }
        self.apps(&units, unwell, clusters.len());
        let numbers = clusters.iter().map(|cluster| ClusterMetrics {
            name: &cluster.name,
            freshness: cluster.freshness,
            apps: cluster.apps.len(),
            problems: cluster.problems,
        });
        self.clusters(&numbers.collect::<Vec<_>>());
    }

    /// Adds the metrics of clusters.
    pub fn clusters(&mut self, clusters: &[ClusterMetrics<'_>]) {
        let shown = clusters.get(..MAX_CLUSTERS).unwrap_or(clusters);
        let family = "taffrail_cluster_freshness";
        self.family(family, "gauge", "Freshness of a cluster: 0 live, 1 stale, 2 lost.");
        for cluster in shown {
            self.sample(family, &[("cluster", &cluster.name)], cluster.freshness as u8);
        }
        let family = "taffrail_cluster_apps";
        let about = "Apps whose objects a cluster holds, and those that it declares for one that the hub does not know.";
        self.family(family, "gauge", about);
        for cluster in shown {
            self.sample(family, &[("cluster", &cluster.name)], cluster.apps);
        }
        let family = "taffrail_cluster_problems";
        self.family(family, "gauge", "Apps of a cluster with a problem that is more than a notice.");
        for cluster in shown {
            self.sample(family, &[("cluster", &cluster.name)], cluster.problems);
        }
    }
}
