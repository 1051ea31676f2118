//! Another hub of Taffrail: `taffrail_app_state` of apps that are not well, and `taffrail_app_units`, which counts all.

use std::collections::{BTreeSet, HashMap, HashSet};

use taffrail_api::AppName;
use taffrail_apps::Delivery;
use taffrail_status::Status;

use super::{AppPlace, Samples, Selector, Telling, Told, ToldHealth, is_name};
use crate::sample::{CLUSTER, Sample, Target};

pub(crate) const APP_STATE: &str = "taffrail_app_state";
const APP_UNITS: &str = "taffrail_app_units";
const CLUSTER_FRESHNESS: &str = "taffrail_cluster_freshness";
const OMITTED: &str = "taffrail_hub_series_omitted";

/// The number of reads for which the apps of a target that tells nothing are remembered: in a longer time they may have
/// moved to other clusters.
const MAX_SILENT: u32 = 4;

/// The number of apps from which on those of targets that tell nothing are forgotten.
const MAX_KEYS: usize = 100_000;

/// The maximum number of pairs of app and cluster that are remembered.
const MAX_PAIRS: usize = 200_000;

/// The pairs of app and cluster that a hub has listed, because they were not well.
#[derive(Debug, Default)]
pub(crate) struct HubMemory {
    keys: HashMap<(Target, Box<str>), KnownPairs>,
    pairs: usize,
}

/// The clusters that are known to have one app.
#[derive(Debug, Default)]
struct KnownPairs {
    clusters: BTreeSet<Box<str>>,
    /// The number of clusters with the app at the last read.
    total: f64,
    /// The number of reads since the target told something.
    silent: u32,
}

/// The numbers of clusters with one app, by status, as one scrape of a hub told them.
#[derive(Debug, Default)]
struct Units {
    counts: HashMap<Status, f64>,
    /// The times of the oldest and of the newest sample.
    at: Option<(f64, f64)>,
}

/// The clusters in which one app is not well, with its statuses there, and the times of the samples.
#[derive(Debug, Default)]
struct Listed {
    clusters: BTreeSet<Box<str>>,
    counts: HashMap<Status, f64>,
    times: Vec<f64>,
}

/// The facts beside counts that one scrape of a hub tells.
#[derive(Debug, Default)]
struct Scrape {
    /// The time at which it told that it omits no app; `None` if it did not.
    is_whole: Option<f64>,
    /// The time at which it told that it omits no cluster; `None` if it did not.
    is_whole_of_clusters: Option<f64>,
    /// The clusters that are live, with the times of the samples.
    live: HashMap<Box<str>, f64>,
    /// All clusters, with the times of the samples.
    clusters: HashMap<Box<str>, f64>,
}

pub(super) fn selectors() -> Vec<Selector> {
    [APP_STATE, APP_UNITS, CLUSTER_FRESHNESS, OMITTED].map(Selector::of).into()
}

pub(super) fn tell(samples: &[Option<Samples>], telling: &mut Telling<'_>) {
    let of = |place: usize| samples.get(place).and_then(Option::as_deref).unwrap_or_default();
    let mut listed: HashMap<(Target, Box<str>), Listed> = HashMap::new();
    for sample in of(0) {
        if !telling.is_number(sample) {
            continue;
        }
        let key = sample.series.own("app");
        let Some(place) = place(sample.series.own(CLUSTER), key, telling) else { continue };
        let Some(status) = UNWELL.into_iter().find(|it| f64::from(*it as u8) == sample.series.value) else {
            telling.refuse(&place.0, "have a value that is not a status");
            continue;
        };
        let target = sample.series.target_of_named(&telling.config.cluster_label);
        let of_key = listed.entry((target.clone(), key.into())).or_default();
        of_key.clusters.insert(place.0.clone());
        *of_key.counts.entry(status).or_default() += 1.0;
        of_key.times.push(sample.at);
        add(sample.at, target, place, key, status, telling);
    }
    let mut scrapes: HashMap<Target, Scrape> = HashMap::new();
    for sample in of(2) {
        if !telling.is_number(sample) {
            continue;
        }
        let Some(cluster) = telling.checked_cluster(sample.series.own(CLUSTER)) else { continue };
        let target = sample.series.target_of_named(&telling.config.cluster_label);
        let scrape = scrapes.entry(target).or_default();
        scrape.clusters.insert(cluster.clone(), sample.at);
        // A cluster that the hub does not reach gives no sign of life.
        if sample.series.value == 0.0 {
            let newest = telling.clusters.entry(cluster.clone()).or_insert(sample.at);
            *newest = newest.max(sample.at);
            scrape.live.insert(cluster, sample.at);
        }
    }
    for sample in of(3).iter().filter(|it| it.series.value == 0.0) {
        let target = sample.series.target(&telling.config.cluster_label);
        match sample.series.label("metric") {
            APP_STATE => scrapes.entry(target).or_default().is_whole = Some(sample.at),
            CLUSTER_FRESHNESS => {
                scrapes.entry(target).or_default().is_whole_of_clusters = Some(sample.at);
            }
            _ => {}
        }
    }
    if telling.is_whole {
        well(of(1), &scrapes, &listed, telling);
    }
}

/// The statuses by which a hub lists apps that are not well.
const UNWELL: [Status; 5] =
    [Status::Failed, Status::NotFound, Status::Unknown, Status::Terminating, Status::InProgress];

/// Tells of apps that are well: those that were listed before, and those of a target with one cluster. The numbers by status
/// leave no room for another one.
fn well(
    units: &[Sample],
    scrapes: &HashMap<Target, Scrape>,
    listed: &HashMap<(Target, Box<str>), Listed>,
    telling: &mut Telling<'_>,
) {
    let label = telling.config.cluster_label.clone();
    let mut counted: HashMap<(Target, Box<str>), Units> = HashMap::new();
    for sample in units {
        let status = Status::ALL.into_iter().find(|status| status.as_str() == sample.series.own("state"));
        let (Some(status), true) = (status, telling.is_number(sample)) else { continue };
        if !is_name(sample.series.own("app")) {
            continue;
        }
        let of_key =
            counted.entry((sample.series.target(&label), sample.series.own("app").into())).or_default();
        of_key.counts.insert(status, sample.series.value);
        let (oldest, newest) = of_key.at.unwrap_or((sample.at, sample.at));
        of_key.at = Some((oldest.min(sample.at), newest.max(sample.at)));
    }
    let nothing = Scrape::default();
    // A target that tells nothing, since it is down, says the same again later. An exporter that tells of other apps each
    // time takes no more memory.
    let told: HashSet<&Target> = counted.keys().map(|(target, _)| target).collect();
    let has_room = telling.memory.keys.len() < MAX_KEYS;
    telling.memory.keys.retain(|id, known| {
        known.silent = if counted.contains_key(id) { 0 } else { known.silent + 1 };
        known.silent == 0 || has_room && known.silent <= MAX_SILENT && !told.contains(&id.0)
    });
    telling.memory.pairs = telling.memory.keys.values().map(|known| known.clusters.len()).sum();
    for (id, Units { counts, at }) in counted {
        let Some((oldest, newest)) = at.filter(|_| counts.len() == Status::ALL.len()) else { continue };
        let none = Listed::default();
        let listed = listed.get(&id).unwrap_or(&none);
        let memory = &mut *telling.memory;
        let known = memory.keys.entry(id.clone()).or_default();
        let before = known.clusters.len();
        let total: f64 = counts.values().sum();
        // The app is gone from some cluster, and no metric says from which.
        if total < known.total {
            known.clusters.clear();
        }
        known.total = total;
        let room = MAX_PAIRS.saturating_sub(memory.pairs.saturating_sub(before));
        known.clusters.extend(listed.clusters.iter().take(room).cloned());
        memory.pairs = memory.pairs.saturating_sub(before) + known.clusters.len();
        let unlisted: Vec<Box<str>> = known.clusters.difference(&listed.clusters).cloned().collect();
        let get = |counts: &HashMap<Status, f64>, status| counts.get(&status).copied().unwrap_or_default();
        // What another scrape told does not fit these numbers.
        let is_same = |at: f64| (at - oldest).abs() < 1.0;
        let scrape = scrapes.get(&id.0).unwrap_or(&nothing);
        // What an agent counts is in its only cluster.
        let is_there = scrape.is_whole_of_clusters.is_some_and(is_same)
            && scrape.clusters.len() == 1
            && scrape.clusters.values().copied().all(is_same)
            && total == 1.0;
        let unlisted = match is_there {
            true => scrape.clusters.keys().filter(|it| !listed.clusters.contains(*it)).cloned().collect(),
            false => unlisted,
        };
        let is_told = is_same(newest)
            && scrape.is_whole.is_some_and(is_same)
            && listed.times.iter().copied().all(is_same)
            && UNWELL.into_iter().all(|status| get(&counts, status) == get(&listed.counts, status))
            && unlisted.len() as f64 <= get(&counts, Status::Current);
        if !is_told {
            continue;
        }
        // A cluster that the hub has lost may have left the app's clusters while another one came.
        let is_live = |cluster: &str| scrape.live.get(cluster).copied().is_some_and(is_same);
        for cluster in unlisted.into_iter().filter(|cluster| is_live(cluster)) {
            let Some(place) = place(&cluster, &id.1, telling) else { continue };
            add(oldest, id.0.clone(), place, &id.1, Status::Current, telling);
        }
    }
}

fn add(at: f64, target: Target, place: AppPlace, key: &str, status: Status, telling: &mut Telling<'_>) {
    let words = format!("value {} ({})", status as u8, status.as_str());
    let health = ToldHealth { status, is_of_objects: true, words };
    let told = Told { health: Some(health), ..Told::default() };
    if let Some(fact) = telling.add_fact(APP_STATE, place, at, target, told) {
        fact.key = Some(key.to_owned());
    }
}

/// Returns the cluster and the app of a key: the one that it names, or for a key of several apps a stand-in for them.
fn place(cluster: &str, key: &str, telling: &mut Telling<'_>) -> Option<AppPlace> {
    let cluster = telling.checked_cluster(cluster)?;
    let mut parts = key.splitn(3, '/');
    let (first, second, third) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    let (delivery, namespace, name) = match (first, second, third) {
        ("applicationset", Some(namespace), Some(name)) => (Delivery::ArgoApplication, namespace, name),
        ("package", Some(name), None) => (Delivery::Kpt, "", name),
        (delivery, Some(namespace), Some(name)) if delivery.parse::<Delivery>().is_ok() => {
            (delivery.parse().ok()?, namespace, name)
        }
        _ => (Delivery::Label, "", key),
    };
    let app = telling.app(&cluster, delivery, namespace, name)?;
    Some((cluster, app))
}

/// Returns true if `key` is that of the app `app` alone, and that app's home is the cluster with its objects: then a source that
/// reads the cluster knows it by the same identity.
pub(crate) fn is_of_one_app(key: &str, app: &AppName) -> bool {
    app.delivery != Delivery::ArgoApplication
        && key == format!("{}/{}/{}", app.delivery, app.namespace, app.name)
}
