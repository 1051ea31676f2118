//! `/metrics`: the fleet in the text format of Prometheus.
//!
//! An app in a cluster has a series of its own only while it is not Ready; the others are counted by app and by
//! cluster. So a fleet of 10,000 clusters with 100 apps, 2 % of them not Ready, has about 41,000 series instead of
//! 6,000,000.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Display;

use rustc_hash::FxHashMap;
use taffrail_apps::FreshnessState;
use taffrail_status::Status;
use taffrail_status::rollup::Counts;

use crate::index::{AppFilter, FleetIndex, FleetView, JournalCounts};
use crate::store::StoreHealth;

/// The greatest number of apps (in all clusters) for which the numbers by status are written, the first by key; the
/// others are only counted as omitted.
const MAX_APPS: usize = 2_000;

/// The greatest number of pairs of app and cluster that have a series of their own because they are not Current; the
/// worst come first, and the others are only counted as omitted.
const MAX_UNWELL: usize = 20_000;

/// The greatest number of clusters with series of their own, those that the hub learned of first; the others are only
/// counted as omitted.
const MAX_CLUSTERS: usize = 20_000;

/// Returns all metrics in the text format of Prometheus; without those of the store if `store` is `None`.
pub(super) fn write(
    index: &FleetIndex,
    view: &FleetView,
    store: Option<&StoreHealth>,
    in_flight: usize,
    streams: usize,
    agents: Option<usize>,
) -> String {
    let mut text = MetricsText::default();
    let names = names(view);
    apps(view, &names, &mut text);
    clusters(view, &names, &mut text);
    let (latencies, reports, refused) = index.measured();
    let visible = "taffrail_hub_change_visible_seconds";
    text.family(visible, "histogram", "Time from the receipt of a change to the first answer that shows it.");
    for (end, count) in latencies.cumulative() {
        text.sample(&format!("{visible}_bucket"), &[("le", &end)], count);
    }
    text.sample(&format!("{visible}_bucket"), &[("le", &"+Inf")], latencies.count);
    text.sample(&format!("{visible}_sum"), &[], latencies.sum);
    text.sample(&format!("{visible}_count"), &[], latencies.count);
    text.one("taffrail_hub_reports_total", "counter", "Reports of sources that the hub accepted.", reports);
    text.one(
        "taffrail_hub_reports_refused_total",
        "counter",
        "Reports of sources that the hub refused: of a replaced stream, repeated, or about another cluster.",
        refused,
    );
    text.one(
        "taffrail_hub_requests_in_flight",
        "gauge",
        "HTTP requests that the hub is answering.",
        in_flight,
    );
    text.one("taffrail_hub_streams", "gauge", "Open event streams.", streams);
    if let Some(agents) = agents {
        text.one("taffrail_hub_agents", "gauge", "Agents that are connected.", agents);
    }
    if let Some(store) = store {
        saving(index, store, &mut text);
    }
    text.0
}

fn saving(index: &FleetIndex, store: &StoreHealth, text: &mut MetricsText) {
    let writable = u8::from(store.is_writable);
    text.one("taffrail_hub_store_writable", "gauge", "1 if the last write to the store succeeded.", writable);
    let full = u8::from(store.is_full);
    text.one(
        "taffrail_hub_store_full",
        "gauge",
        "1 if the last write failed because no space is left.",
        full,
    );
    text.one("taffrail_hub_store_bytes", "gauge", "Size of the store on disk, in bytes.", store.bytes);
    let Some(JournalCounts { pending, lost }) = index.unsaved() else { return };
    text.one(
        "taffrail_hub_store_pending",
        "gauge",
        "Changes of apps and clusters that the hub has not saved yet.",
        pending,
    );
    let about = "Entries of history that were dropped because the store could not be written for too long.";
    text.one("taffrail_hub_store_lost_total", "counter", about, lost);
}

fn apps(view: &FleetView, names: &BTreeMap<usize, String>, text: &mut MetricsText) {
    let mut of_name: FxHashMap<u32, Counts> = FxHashMap::default();
    let mut unwell: Vec<(Status, &str, usize)> = Vec::new();
    // Of two apps of one key in a cluster the worse one counts. All apps of a cluster come one after the other.
    let (mut here, mut worst_here) = (usize::MAX, FxHashMap::<u32, Status>::default());
    let mut count = |worst: &mut FxHashMap<u32, Status>| {
        worst.drain().for_each(|(name, status)| of_name.entry(name).or_default().add(status));
    };
    view.each(&AppFilter::default(), |(place, _), listed, now| {
        if std::mem::replace(&mut here, place) != place {
            count(&mut worst_here);
        }
        let worst = worst_here.entry(listed.summary.key).or_insert(now.effective);
        *worst = (*worst).min(now.effective);
        if now.effective != Status::Current {
            unwell.push((now.effective, &listed.pair.declared.body.key, place));
        }
    });
    count(&mut worst_here);
    let table = &view.fleet().names;
    let units: BTreeMap<&str, Counts> =
        of_name.into_iter().map(|(name, counts)| (table.text(name), counts)).collect();
    let family = "taffrail_app_units";
    text.family(family, "gauge", "Clusters that have the app, by its present status there.");
    for (key, counts) in units.iter().take(MAX_APPS) {
        for status in Status::ALL {
            text.sample(family, &[("app", key), ("state", &status.as_str())], counts.get(status));
        }
    }
    let mut omitted = vec![(family, units.len().saturating_sub(MAX_APPS))];
    unwell.sort_unstable();
    let mut told: HashSet<(&str, usize)> = HashSet::new();
    unwell.retain(|(_, key, place)| told.insert((key, *place)));
    let family = "taffrail_app_state";
    let about = "Present status of an app in a cluster where it is not Current: 0 Failed, 1 NotFound, 2 Unknown, 3 Terminating, 4 InProgress.";
    text.family(family, "gauge", about);
    for (status, key, place) in unwell.iter().take(MAX_UNWELL) {
        let cluster = names.get(place).map_or("", String::as_str);
        text.sample(family, &[("app", key), ("cluster", &cluster)], *status as u8);
    }
    omitted.push((family, unwell.len().saturating_sub(MAX_UNWELL)));
    omitted.push(("taffrail_cluster_freshness", view.fleet().all().count().saturating_sub(MAX_CLUSTERS)));
    let family = "taffrail_hub_series_omitted";
    text.family(family, "gauge", "Apps or clusters that a metric leaves out, because there are too many.");
    for (metric, count) in omitted {
        text.sample(family, &[("metric", &metric)], count);
    }
}

fn clusters(view: &FleetView, names: &BTreeMap<usize, String>, text: &mut MetricsText) {
    let shown = || view.fleet().all().take(MAX_CLUSTERS);
    let name = |place: usize| names.get(&place).map_or("", String::as_str);
    let family = "taffrail_cluster_freshness";
    text.family(family, "gauge", "Freshness of a cluster: 0 live, 1 stale, 2 lost.");
    for (place, cluster) in shown() {
        let source = view.speaker(cluster);
        let state = source.map_or(FreshnessState::Lost, |source| view.freshness(source).state);
        text.sample(family, &[("cluster", &name(place))], state as u8);
    }
    let family = "taffrail_cluster_apps";
    let about =
        "Apps whose objects a cluster holds, and those that it declares for one that the hub does not know.";
    text.family(family, "gauge", about);
    for (place, cluster) in shown() {
        text.sample(family, &[("cluster", &name(place))], cluster.pairs.pairs.len());
    }
    let family = "taffrail_cluster_problems";
    text.family(family, "gauge", "Apps of a cluster with a problem that is more than a notice.");
    for (place, _) in shown() {
        let problems = view.cluster_status(place).map_or(0, |it| it.1);
        text.sample(family, &[("cluster", &name(place))], problems);
    }
}

/// Returns a unique label for each cluster, by its place: its name, with its identity where a cluster of a lesser place
/// has that name. Two series with the same labels would make Prometheus refuse all of them.
fn names(view: &FleetView) -> BTreeMap<usize, String> {
    let mut taken: HashSet<String> = HashSet::new();
    let mut names = BTreeMap::new();
    for (place, cluster) in view.fleet().all() {
        let mut name = view.name(cluster).to_owned();
        while !taken.insert(name.clone()) {
            name = format!("{name} ({})", cluster.id.0);
        }
        names.insert(place, name);
    }
    names
}

/// Text in the format of Prometheus, version 0.0.4.
#[derive(Default)]
struct MetricsText(String);

impl MetricsText {
    fn family(&mut self, name: &str, kind: &str, about: &str) {
        self.0.push_str(&format!("# HELP {name} {about}\n# TYPE {name} {kind}\n"));
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &dyn Display)], value: impl Display) {
        self.0.push_str(name);
        for (at, (label, text)) in labels.iter().enumerate() {
            self.0.push(if at == 0 { '{' } else { ',' });
            let text = text.to_string().replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            self.0.push_str(&format!("{label}=\"{text}\""));
        }
        let end = if labels.is_empty() { "" } else { "}" };
        self.0.push_str(&format!("{end} {value}\n"));
    }

    fn one(&mut self, name: &str, kind: &str, about: &str, value: impl Display) {
        self.family(name, kind, about);
        self.sample(name, &[], value);
    }
}
