//! `/metrics`: the fleet in the text format of Prometheus.

use std::collections::{BTreeMap, HashSet};

use rustc_hash::FxHashMap;
use taffrail_api::metrics_text::{ClusterMetrics, MetricsText};
use taffrail_apps::FreshnessState;
use taffrail_status::Status;
use taffrail_status::rollup::Counts;

use crate::index::{AppFilter, FleetIndex, FleetView, JournalCounts};
use crate::store::StoreHealth;

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
    text.into_text()
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
    let unwell = unwell.into_iter().map(|(status, key, place)| (status, key, name(names, place)));
    text.apps(&units, unwell.collect(), view.fleet().all().count());
}

fn clusters(view: &FleetView, names: &BTreeMap<usize, String>, text: &mut MetricsText) {
    let shown = view.fleet().all().map(|(place, cluster)| {
        let source = view.speaker(cluster);
        ClusterMetrics {
            name: name(names, place),
            freshness: source.map_or(FreshnessState::Lost, |source| view.freshness(source).state),
            apps: cluster.pairs.pairs.len(),
            problems: view.cluster_status(place).map_or(0, |it| it.1),
        }
    });
    text.clusters(&shown.collect::<Vec<_>>());
}

fn name(names: &BTreeMap<usize, String>, place: usize) -> &str {
    names.get(&place).map_or("", String::as_str)
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
