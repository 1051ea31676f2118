//! The newest facts about each app, and the halves of rows that they make, with their freshness.
//!
//! Ages are measured by the server's clock: the time of its last answer, plus the time since the hub asked, minus that of
//! the sample. A fact is live for three intervals in which its target was seen to be scraped, at least for 45 s. It is stale at
//! once while its target is down, or while the answers that it comes from may lack series.

mod halves;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use taffrail_api::report::{LIVE, LOST, MAX_WINDOW, NotLive};
use taffrail_api::{AppName, ErrorRow};
use taffrail_apps::{ClusterId, FreshnessState, SyncState};

use crate::clock::ServerClock;
use crate::families::{AppPlace, CountedSyncs, Fact, FactName, NamedFacts, Scope};
use crate::sample::Target;

/// The beginning of the identity of a cluster that only metrics tell of; its name follows.
pub const METRICS_ID: &str = "metrics:";

/// Returns true if this is the identity of a cluster that only metrics tell of.
pub fn is_metrics_id(id: &ClusterId) -> bool {
    id.0.starts_with(METRICS_ID)
}

/// The number of scrape intervals for which a sample is live.
const INTERVALS: f64 = 3.0;

/// The number of scrape intervals that are remembered of a target. Their median counts: a missed scrape looks like a longer
/// one, and the scrapes of two replicas like shorter ones.
const OBSERVED: usize = 5;

/// The number of read intervals between two reads beyond which the scrapes between them were not observed.
const UNOBSERVED: u32 = 4;

/// The time for which a fact is kept that its target, which is up, no longer tells.
const KEPT: Duration = Duration::from_secs(3_600);

/// The maximum number of clusters, of apps and of targets of one server.
pub(crate) const MAX_CLUSTERS: usize = 20_000;
pub(crate) const MAX_APPS: usize = 300_000;

/// The maximum number of apps of one cluster, as of one that an agent reports.
pub(crate) const MAX_CLUSTER_APPS: usize = 20_000;

const MAX_TARGETS: usize = 100_000;

/// The clusters that one server tells of, and what is known of them.
#[derive(Debug, Default)]
pub(crate) struct MetricsFleet {
    /// The interval at which the server is read.
    every: Duration,
    /// The moment of the last read, if it was answered with what the server had then.
    read: Option<Duration>,
    pub(super) clusters: BTreeMap<Box<str>, MetricsCluster>,
    apps: usize,
    targets: HashMap<Target, ScrapedTarget>,
    clock: ServerClock,
    /// The time of the newest sample of each cluster that was passed on.
    pub(super) heard: HashMap<ClusterId, f64>,
    /// The scopes whose last answers may lack series, each with the reason.
    pub(super) partial: BTreeMap<Scope, String>,
    /// The series of each cluster that cannot be used, at the last read.
    pub(super) refused: BTreeMap<Box<str>, Vec<ScopeFailure>>,
    /// True if clusters or apps were left out because there are too many.
    pub(super) is_full: bool,
    /// The clusters of which apps were left out because the cluster has too many.
    pub(super) crowded: BTreeSet<Box<str>>,
}

#[derive(Debug, Default)]
pub(super) struct MetricsCluster {
    pub(super) apps: HashMap<AppName, MetricsApp>,
    /// The time of the newest sample about the cluster, by the server's clock.
    pub(super) newest: f64,
}

#[derive(Debug, Default)]
pub(super) struct MetricsApp {
    /// The facts, by the metric and the job that tell them.
    pub(super) facts: Vec<(Arc<FactName>, HeldFact)>,
    /// The moment since which the app is out of sync.
    pub(super) unsynced: Option<Duration>,
}

#[derive(Debug)]
pub(super) struct HeldFact {
    pub(super) fact: Fact,
    /// True if the last sync that a counter counted failed; `None` if it does not tell.
    pub(super) is_last_sync_failed: Option<bool>,
    /// The moment since which its target is up and does not tell the fact.
    pub(super) absent: Option<Duration>,
}

/// The scrapes of one target.
#[derive(Debug, Default)]
struct ScrapedTarget {
    /// The time of the last scrape, by the server's clock.
    last: f64,
    intervals: VecDeque<f64>,
    is_down: bool,
    /// The number of reads since the server last told of it.
    missed: u32,
}

/// The result of one read of a server.
pub(crate) struct ServerRead {
    /// The server's time, and the moment at which it was asked for.
    pub(crate) time: f64,
    pub(crate) asked: Duration,
    /// The newest sample of `up` of each target: its time, and whether the target is up; `None` if that was not answered.
    pub(crate) up: Option<Vec<(Target, f64, bool)>>,
    pub(crate) facts: HashMap<AppPlace, NamedFacts>,
    pub(crate) clusters: HashMap<Box<str>, f64>,
    /// The scopes of which every answer is whole.
    pub(crate) whole: HashSet<Scope>,
    /// The scopes of which an answer may lack series, with the reason.
    pub(crate) partial: BTreeMap<Scope, String>,
    /// The series of each cluster that cannot be used.
    pub(crate) refused: BTreeMap<Box<str>, Vec<ScopeFailure>>,
}

impl MetricsFleet {
    /// Makes the fleet of a server that is read at this interval.
    pub(crate) fn new(every: Duration) -> MetricsFleet {
        MetricsFleet { every, ..MetricsFleet::default() }
    }

    /// Notes that a read failed: the server may have scraped its targets any number of times until the next one.
    pub(crate) fn miss(&mut self) {
        self.read = None;
    }

    /// Takes the result of a read.
    pub(crate) fn take(&mut self, read: ServerRead) {
        let ServerRead { time, asked, up, facts, clusters, whole, partial, refused } = read;
        self.refused = refused;
        self.clock.set(time, asked);
        let observed = |before: Duration| asked.saturating_sub(before) <= self.every * UNOBSERVED;
        let is_observed = self.read.is_some_and(observed);
        self.read = (up.is_some() && self.clock.lag().is_zero()).then_some(asked);
        // A target of which the server does not tell whether it is up shows its scrapes by its samples.
        let mut scraped: HashMap<&Target, f64> = HashMap::new();
        for fact in facts.values().flat_map(BTreeMap::values) {
            let newest = scraped.entry(&fact.target).or_insert(fact.at);
            *newest = newest.max(fact.at);
        }
        let told: HashSet<&Target> = up.iter().flatten().map(|(target, ..)| target).collect();
        scraped.retain(|target, _| !told.contains(target));
        let silent: Vec<(Target, f64, bool)> = match up {
            Some(_) => scraped.into_iter().map(|(target, at)| (target.clone(), at, true)).collect(),
            None => Vec::new(),
        };
        self.take_targets(up.map(|up| up.into_iter().chain(silent).collect()), is_observed);
        for (scope, reason) in partial {
            self.partial.insert(scope, reason);
        }
        self.partial.retain(|scope, _| !whole.contains(scope));
        self.is_full = false;
        self.crowded.clear();
        let mut told: HashSet<(AppPlace, Arc<FactName>)> = HashSet::new();
        for ((cluster, app), facts) in facts {
            let Some(held) = self.cluster(&cluster) else { continue };
            let is_new = !held.apps.contains_key(&app);
            let is_crowded = is_new && held.apps.len() >= MAX_CLUSTER_APPS;
            if is_crowded {
                self.crowded.insert(cluster.clone());
            }
            if is_crowded || (is_new && self.apps >= MAX_APPS) {
                self.is_full |= !is_crowded;
                continue;
            }
            let Some(held) = self.clusters.get_mut(&cluster) else { continue };
            self.apps += usize::from(is_new);
            let newest = facts.values().map(|fact| fact.at).fold(held.newest, f64::max);
            held.newest = newest;
            let entry = held.apps.entry(app.clone()).or_default();
            for (name, fact) in facts {
                entry.set(Arc::clone(&name), fact);
                told.insert(((cluster.clone(), app.clone()), name));
            }
        }
        for (cluster, at) in clusters {
            if let Some(held) = self.cluster(&cluster) {
                held.newest = held.newest.max(at);
            }
        }
        self.forget(&told, &whole, asked);
    }

    /// Returns a cluster, which is added unless there are too many.
    fn cluster(&mut self, name: &str) -> Option<&mut MetricsCluster> {
        if !self.clusters.contains_key(name) {
            if self.clusters.len() >= MAX_CLUSTERS {
                self.is_full = true;
                return None;
            }
            self.clusters.insert(name.into(), MetricsCluster::default());
        }
        self.clusters.get_mut(name)
    }

    /// Takes the last scrape of each target. The time since the one before it is an interval only if `is_observed`: else
    /// there may have been others between them, and a fact would be live for the time of an outage.
    fn take_targets(&mut self, up: Option<Vec<(Target, f64, bool)>>, is_observed: bool) {
        let Some(up) = up else { return };
        self.targets.values_mut().for_each(|target| target.missed = target.missed.saturating_add(1));
        for (target, at, is_up) in up {
            if self.targets.len() >= MAX_TARGETS && !self.targets.contains_key(&target) {
                self.is_full = true;
                continue;
            }
            let held = self.targets.entry(target).or_default();
            if is_observed && held.last > 0.0 && at > held.last {
                held.intervals.push_back(at - held.last);
                if held.intervals.len() > OBSERVED {
                    held.intervals.pop_front();
                }
            }
            held.last = held.last.max(at);
            (held.is_down, held.missed) = (!is_up, 0);
        }
        // A target that the server no longer scrapes says nothing of itself.
        self.targets.retain(|_, target| target.missed < 1_000);
    }

    /// Drops facts that a target which is up has not told for [`KEPT`].
    fn forget(&mut self, told: &HashSet<(AppPlace, Arc<FactName>)>, whole: &HashSet<Scope>, now: Duration) {
        let targets = &self.targets;
        for (cluster, held) in &mut self.clusters {
            for (app, held) in &mut held.apps {
                held.facts.retain_mut(|(name, held)| {
                    let is_up = targets.get(&held.fact.target).is_none_or(|target| !target.is_down);
                    let is_told = told.contains(&((cluster.clone(), app.clone()), Arc::clone(name)));
                    if is_told || !is_up || !whole.contains(&held.fact.scope) {
                        held.absent = held.absent.filter(|_| !is_told);
                        return true;
                    }
                    let since = *held.absent.get_or_insert(now);
                    now.saturating_sub(since) < KEPT
                });
            }
            held.apps.retain(|_, app| !app.facts.is_empty());
        }
        // A cluster of which nothing has been told for so long is gone.
        let (clock, is_known) = (&self.clock, |at: f64| at > 0.0);
        let age = |at: f64| clock.time(now).map_or(0.0, |time| time - at);
        self.clusters.retain(|_, held| {
            !held.apps.is_empty() || !is_known(held.newest) || age(held.newest) < KEPT.as_secs_f64()
        });
        self.apps = self.clusters.values().map(|cluster| cluster.apps.len()).sum();
    }

    /// Returns the age up to which a sample of this target is live.
    pub(super) fn window(&self, target: &Target) -> Duration {
        let observed = self.targets.get(target).map(|target| &target.intervals);
        let mut intervals: Vec<f64> = observed.into_iter().flatten().copied().collect();
        intervals.sort_by(f64::total_cmp);
        // One interval may be a gap.
        let median = match intervals.len() {
            0 | 1 => None,
            2 => intervals.first(),
            count => intervals.get(count / 2),
        };
        let window = median.map_or(0.0, |interval| interval * INTERVALS);
        Duration::try_from_secs_f64(window).unwrap_or(MAX_WINDOW).clamp(LIVE, MAX_WINDOW)
    }

    /// Returns the age of a sample at the moment `now`; zero before the first answer.
    pub(super) fn age(&self, at: f64, now: Duration) -> Duration {
        let age = self.clock.time(now).map_or(0.0, |time| time - at);
        Duration::try_from_secs_f64(age.max(0.0)).unwrap_or(Duration::MAX)
    }

    /// Returns the freshness of a fact at the moment `now`.
    pub(super) fn freshness(&self, fact: &Fact, now: Duration) -> NotLive {
        let (age, window) = (self.age(fact.at, now), self.window(&fact.target));
        let is_down = self.targets.get(&fact.target).is_some_and(|target| target.is_down);
        let state = match () {
            () if age > window.max(LOST) => FreshnessState::Lost,
            () if age > window || is_down || self.partial.contains_key(&fact.scope) => FreshnessState::Stale,
            () => FreshnessState::Live,
        };
        NotLive { state, age: Some(age) }
    }

    /// Returns true if a fact would be live, had the answers from which it comes no gaps.
    pub(super) fn is_recent(&self, fact: &Fact, now: Duration) -> bool {
        let is_down = self.targets.get(&fact.target).is_some_and(|target| target.is_down);
        !is_down && self.age(fact.at, now) <= self.window(&fact.target)
    }

    /// Returns the first moment after `now` at which the freshness of a fact changes by its age alone, or an app has been
    /// out of sync for too long; `None` if there is none.
    pub(crate) fn next_change(&self, now: Duration) -> Option<Duration> {
        let facts = self.clusters.values().flat_map(|cluster| cluster.apps.values());
        let left = facts.flat_map(|app| &app.facts).flat_map(|(_, held)| {
            let (age, window) = (self.age(held.fact.at, now), self.window(&held.fact.target));
            [window, window.max(LOST)].map(|end| end.checked_sub(age))
        });
        left.flatten().min().map(|left| now + left + Duration::from_millis(1))
    }

    /// Returns true if the fleet has a cluster.
    pub(crate) fn is_empty(&self) -> bool {
        self.clusters.is_empty()
    }
}

impl MetricsApp {
    fn set(&mut self, name: Arc<FactName>, fact: Fact) {
        match self.facts.iter_mut().find(|(held, _)| *held == name) {
            // An answer from a cache, or of a replica that lags behind, is older than what is known.
            Some((_, held)) if held.fact.at > fact.at => {}
            Some((_, held)) => {
                let counted =
                    fact.told.syncs.map(|new| last_sync(held.fact.told.syncs, new, held.is_last_sync_failed));
                held.is_last_sync_failed = counted.unwrap_or(None);
                (held.fact, held.absent) = (fact, None);
            }
            None => {
                let is_last_sync_failed = fact.told.syncs.and_then(|new| last_sync(None, new, None));
                self.facts.push((name, HeldFact { fact, is_last_sync_failed, absent: None }));
            }
        }
    }
}

/// Returns true if the last sync that was counted failed; `None` if the numbers do not tell.
fn last_sync(before: Option<CountedSyncs>, now: CountedSyncs, was_failed: Option<bool>) -> Option<bool> {
    // A controller that started again counts from 0.
    let before = before.filter(|it| it.succeeded <= now.succeeded && it.failed <= now.failed);
    let (succeeded, failed) = match before {
        Some(before) => (now.succeeded > before.succeeded, now.failed > before.failed),
        None => (now.succeeded > 0.0, now.failed > 0.0),
    };
    match (succeeded, failed) {
        (true, true) => None,
        (true, false) => Some(false),
        (false, true) => Some(true),
        (false, false) => was_failed.filter(|_| before.is_some()),
    }
}

/// Returns the identity of the cluster that series name by `name`: that by which a closer source knows it, else one of
/// its own.
pub(super) fn identity(name: &str, known: &HashMap<String, ClusterId>) -> ClusterId {
    let closer = known.get(name).filter(|id| !is_metrics_id(id));
    closer.cloned().unwrap_or_else(|| ClusterId(format!("{METRICS_ID}{name}")))
}

/// A failure of a scope of a server.
#[derive(Debug, Clone)]
pub(crate) struct ScopeFailure {
    pub(crate) scope: String,
    /// The reason in one word.
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) hint: Option<&'static str>,
    /// True if apps of any cluster may be missing because of the failure.
    pub(crate) is_blinding: bool,
}

impl ScopeFailure {
    pub(crate) fn new(
        scope: String,
        reason: &'static str,
        message: String,
        hint: Option<&'static str>,
    ) -> ScopeFailure {
        ScopeFailure { scope, reason, message, hint, is_blinding: false }
    }

    /// Makes a failure because of which apps may be missing.
    pub(crate) fn blinding(
        scope: String,
        reason: &'static str,
        message: String,
        hint: Option<&'static str>,
    ) -> ScopeFailure {
        ScopeFailure { is_blinding: true, ..ScopeFailure::new(scope, reason, message, hint) }
    }

    /// Returns the failure as an error of the cluster of this name.
    pub(super) fn row(&self, cluster: &str) -> ErrorRow {
        ErrorRow {
            cluster: cluster.to_owned(),
            scope: self.scope.clone(),
            reason: self.reason.to_owned(),
            message: self.message.clone(),
        }
    }
}

/// The facts about a server that the reports of its clusters tell beside the apps.
#[derive(Debug, Default)]
pub(crate) struct ServerFacts {
    /// The name of the server.
    pub(crate) name: String,
    /// The failures of the last read.
    pub(crate) failures: Vec<ScopeFailure>,
    /// The reason why the last read failed as a whole; `None` if it did not.
    pub(crate) lost: Option<String>,
}

/// Returns true if a sync state is one in which the app waits to be synced.
pub(super) fn is_unsynced(state: SyncState) -> bool {
    state == SyncState::OutOfSync
}
