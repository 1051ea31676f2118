//! The index of a fleet: applies the reports of sources, and publishes immutable states for readers.
//!
//! One lock guards the reports. Readers never take it: they have the last [`PublishedFleet`], and compute their answers
//! from it at a moment of the hub's clock ([`FleetView`]).

mod attention;
mod change_log;
mod checks;
mod classes;
mod coverage;
mod filter;
mod groups;
mod journal;
mod late;
mod late_states;
pub(crate) mod latency;
mod managed;
mod matrix;
mod names;
pub(crate) mod page;
pub(crate) mod page_watch;
mod pair;
mod published;
pub(crate) mod recent;
#[cfg(test)]
pub(crate) mod samples;
mod saving;
mod shared_list;
mod view;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rustc_hash::FxHashMap;
use taffrail_api::hub::AppChange;
use taffrail_api::report::{AppId, Consequences, Report, Vitals};
use taffrail_apps::{ClusterId, FreshnessState};
use tokio::sync::{Notify, watch};

use change_log::ChangeLog;
pub(crate) use change_log::ViewDifferences;
pub use checks::AppChecks;
pub use filter::{AppFilter, InvalidName, NameFilter};
pub use groups::GroupBy;
use journal::Journal;
pub(crate) use journal::JournalCounts;
pub(crate) use late::{LateEntries, LateEntry};
use latency::Latencies;
pub use managed::ManagedClusters;
pub(crate) use matrix::{matrix_code, matrix_legend};
use names::Names;
use pair::Place;
pub(crate) use pair::{ListedPair, Pair};
pub(crate) use published::PairChange;
pub(crate) use published::PublishedCluster;
pub use published::PublishedFleet;
use published::{CalledClusters, ClusterPairs, PublishedSource, UnheardClusters};
use recent::RecentChanges;
pub(crate) use recent::{UNRECORDED, past_freshness};
use shared_list::SharedList;
pub(crate) use view::AppCounts;
pub use view::{FleetView, ReportedCluster};

use crate::clock::{HubClock, HubTime};
use crate::fleet::{Disagreement, FleetError, FleetState, Taken, Tells};

/// The time from a first change to the publication, so that changes are published together.
const COLLECTED: Duration = Duration::from_millis(50);

/// The time after which [`FleetIndex::run`] publishes if nothing but signs of life came.
const UNCHANGED: Duration = Duration::from_millis(500);

/// The greatest number of reports between two publications whose time to publication is measured; that of further ones
/// is not.
const MAX_RECEIVED: usize = 10_000;

/// The number of names that the table may hold beyond six for each pair before it is made again without unused ones; a
/// pair uses three.
const MIN_NAMES: usize = 1_000;

/// The fleet of a hub: holds the reports of all sources, and publishes states made of them.
#[derive(Debug)]
pub struct FleetIndex {
    owner: Mutex<Owner>,
    published: watch::Sender<Arc<PublishedFleet>>,
    /// Held during a publication, so that one follows the other. Readers do not wait for it.
    publishing: Mutex<()>,
    /// The view of the published fleet at the moment of the last publication.
    last: Mutex<Arc<FleetView>>,
    recent: Mutex<RecentChanges>,
    log: Mutex<ChangeLog>,
    latencies: Mutex<Latencies>,
    clock: HubClock,
    /// The changes that are not saved yet; `None` without a store.
    journal: Option<Journal>,
    /// The view of the restored fleet, until [`FleetIndex::save`] has compared it with the history.
    restored: Mutex<Option<Arc<FleetView>>>,
    /// Wakes [`FleetIndex::run`] when a report changed more than a sign of life, or a source was opened or forgotten.
    changed: Notify,
}

/// The reports of all sources, and marks on what changed since the last publication.
#[derive(Debug, Default)]
struct Owner {
    fleet: FleetState,
    opened: HashMap<ClusterId, Duration>,
    /// The apps whose pairs may have changed.
    apps: HashSet<AppId>,
    /// The clusters to publish again.
    clusters: HashSet<ClusterId>,
    /// The signs of life of each source of a cluster, by the cluster's place, if any came since the last publication.
    heard: FxHashMap<Place, Box<[Vitals]>>,
    /// The clusters that the fleet did not have before they were opened since the last publication.
    new: HashSet<ClusterId>,
    /// For each app that is shown in another cluster than its home, the place of that cluster.
    elsewhere: HashMap<AppId, Place>,
    /// The moments at which the changes that are not published yet were received: of the first 10,000.
    received: Vec<Duration>,
    names: Names,
    /// The number of reports that were accepted.
    reports: u64,
    /// The number of reports that were refused.
    refused: u64,
    /// The freshness of each source, as of the last publication, of each cluster that has several, and of some that
    /// had.
    states: HashMap<ClusterId, Vec<FreshnessState>>,
    unheard: Arc<UnheardClusters>,
    /// The pairs of the apps that declare checks, as they were published last.
    checked: HashMap<AppId, Arc<Pair>>,
    /// The moment at which the index was made.
    begun: Option<HubTime>,
}

/// A state to publish, and its differences from the one before.
struct Publication {
    fleet: Arc<PublishedFleet>,
    changes: Vec<PairChange>,
    heard: FxHashMap<Place, Box<[Vitals]>>,
    /// The places at which the fleet has another cluster, or other pairs, facts, errors or signs of life of one.
    touched: Vec<Place>,
}

impl Publication {
    fn unchanged(fleet: Arc<PublishedFleet>) -> Publication {
        Publication { fleet, changes: Vec::new(), heard: FxHashMap::default(), touched: Vec::new() }
    }
}

impl FleetIndex {
    /// Makes the index of a fleet without clusters and without a store.
    pub fn new(clock: HubClock) -> FleetIndex {
        let published = watch::Sender::new(Arc::default());
        let begun = clock.time();
        FleetIndex {
            owner: Mutex::new(Owner { begun: Some(begun), ..Owner::default() }),
            published,
            publishing: Mutex::default(),
            last: Mutex::new(Arc::new(FleetView::empty(begun))),
            recent: Mutex::default(),
            log: Mutex::default(),
            latencies: Mutex::default(),
            clock,
            journal: None,
            restored: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// Returns the clock by which the index measures moments and ages.
    pub fn clock(&self) -> &HubClock {
        &self.clock
    }

    /// Sets the names of clusters about which reports will come, and publishes. Until a source reports a cluster of
    /// such a name or alias, answers list it as missing. Replaces the names of an earlier call; a name of both is
    /// expected since then.
    pub fn expect(&self, names: impl IntoIterator<Item = String>) {
        let now = self.clock.time().at;
        let mut owner = lock(&self.owner);
        let before: HashMap<String, Duration> = owner.unheard.0.iter().cloned().collect();
        let since = |name: String| {
            let since = before.get(&name).copied().unwrap_or(now);
            (name, since)
        };
        owner.unheard = Arc::new(UnheardClusters(names.into_iter().map(since).collect()));
        owner.note_heard();
        drop(owner);
        self.publish();
    }

    /// Returns the identity of each cluster, keyed by each name and alias that sources reported; of clusters with the
    /// same name, any one.
    pub fn identities(&self) -> HashMap<String, ClusterId> {
        let owner = lock(&self.owner);
        let named = owner.fleet.names().map(|(id, name)| (name.to_owned(), id.clone()));
        named.collect()
    }

    /// Returns the identity of each cluster that a source tells everything of, keyed by that identity and by each name and alias
    /// that sources reported; without names that several clusters have.
    pub fn closely_known(&self) -> HashMap<String, ClusterId> {
        let owner = lock(&self.owner);
        let mut named: HashMap<String, Option<ClusterId>> = HashMap::new();
        for (name, id) in owner.fleet.closely_known() {
            let held = named.entry(name.to_owned()).or_insert_with(|| Some(id.clone()));
            if held.as_ref() != Some(id) {
                *held = None;
            }
        }
        named.into_iter().filter_map(|(name, id)| Some((name, id?))).collect()
    }

    /// Opens a new stream of reports of `source` about `cluster`, which ends the source's previous one. Returns the
    /// epoch that its reports must carry.
    pub fn open(&self, cluster: &ClusterId, source: &str, tells: Tells) -> u64 {
        let at = self.clock.time().at;
        let mut owner = lock(&self.owner);
        if owner.fleet.known(cluster).is_none() {
            owner.new.insert(cluster.clone());
            owner.opened.insert(cluster.clone(), at);
        }
        let epoch = owner.fleet.open(cluster, source, tells);
        owner.note_sources(cluster);
        owner.touch(cluster, source);
        drop(owner);
        if let Some(journal) = &self.journal {
            journal.cluster(cluster);
        }
        self.changed.notify_one();
        epoch
    }

    /// Removes `source` and its reports from `cluster`, and removes the cluster, also from the store, if it has no
    /// other source.
    pub fn forget(&self, cluster: &ClusterId, source: &str) {
        let published = self.published();
        let mut owner = lock(&self.owner);
        // The sources after it get other places.
        owner.touch_all(cluster);
        owner.clusters.insert(cluster.clone());
        owner.fleet.forget(cluster, source);
        if owner.fleet.known(cluster).is_none() {
            owner.opened.remove(cluster);
            owner.new.remove(cluster);
            // What others declare for the cluster is shown in their own.
            let place = published.places.get(cluster);
            let shown = place.and_then(|place| published.cluster(*place));
            let apps =
                shown.iter().flat_map(|shown| shown.pairs.pairs.iter()).map(|pair| AppId::clone(&pair.app));
            owner.apps.extend(apps);
        }
        let is_forgotten = owner.fleet.known(cluster).is_none();
        drop(owner);
        if let Some(journal) = &self.journal {
            match is_forgotten {
                true => journal.forget(cluster),
                false => journal.cluster(cluster),
            }
        }
        self.changed.notify_one();
    }

    /// Applies a report of `source`, received now. It becomes visible with the next publication. Returns its
    /// consequences without the syncs.
    ///
    /// # Errors
    /// If the source has no stream about the cluster, or the report does not fit into it.
    pub fn take(&self, source: &str, report: Report) -> Result<Consequences, FleetError> {
        let at = self.clock.time().at;
        let cluster = report.cluster.clone();
        let mut owner = lock(&self.owner);
        let Taken { mut consequences, is_extent_changed, is_heard, known } =
            match owner.fleet.take(source, report, at) {
                Ok(taken) => taken,
                Err(error) => {
                    owner.refused += 1;
                    return Err(error);
                }
            };
        let (place, vitals, are_several) = (known.place, known.vitals(), known.sources.len() > 1);
        // The first one decides whether a later run of the hub knows the cluster.
        let is_first = is_heard && known.noted.is_none();
        let is_due = is_heard && known.noted.is_some_and(|noted| at.saturating_sub(noted) >= journal::HEARD);
        if is_first || is_due {
            known.noted = Some(at);
        }
        owner.heard.insert(place, vitals);
        owner.reports += 1;
        let is_only_life = consequences.changed.is_empty() && !consequences.is_cluster_changed;
        if !is_only_life && owner.received.len() < MAX_RECEIVED {
            owner.received.push(at);
        }
        // What was renewed looks the same; it is saved.
        owner.apps.extend(consequences.changed.iter().chain(&consequences.renewed).cloned());
        // With every proof of life another source may become the freshest.
        if are_several {
            owner.touch_all(&cluster);
        }
        if are_several || is_extent_changed || consequences.is_cluster_changed {
            owner.clusters.insert(cluster.clone());
        }
        drop(owner);
        let syncs = std::mem::take(&mut consequences.syncs);
        // Without a store nobody keeps the syncs.
        if let Some(journal) = &self.journal {
            if is_due {
                journal.heard(&cluster);
            }
            if is_first || consequences.is_cluster_changed {
                journal.cluster(&cluster);
            }
            journal.syncs(syncs);
        }
        if !is_only_life || !consequences.renewed.is_empty() {
            self.changed.notify_one();
        }
        Ok(consequences)
    }

    /// Returns the halves of rows about which sources have differed for 10 s or longer, if more than one source that
    /// tells such halves of the cluster is live.
    pub fn disagreements(&self) -> Vec<Disagreement> {
        lock(&self.owner).fleet.disagreements(self.clock.time().at)
    }

    /// Returns the state of the fleet that was published last.
    pub fn published(&self) -> Arc<PublishedFleet> {
        Arc::clone(&self.published.borrow())
    }

    /// Returns a receiver that holds the last published state, and is notified of each new one.
    pub fn subscribe(&self) -> watch::Receiver<Arc<PublishedFleet>> {
        self.published.subscribe()
    }

    /// Makes the view of the last published state at the present moment.
    pub fn view(&self) -> FleetView {
        self.last_view().at(self.clock.time())
    }

    /// Publishes in a loop: 50 ms after a change, or after about half a second without one. Never ends.
    pub async fn run(&self) {
        loop {
            self.publish();
            drop(tokio::time::timeout(UNCHANGED, self.changed.notified()).await);
            tokio::time::sleep(COLLECTED).await;
        }
    }

    /// Publishes now: applies the reports since the last publication and the passing of time, and records the
    /// transitions that both caused. Publishes a new version at the first call, and else only if a report came, a
    /// source was opened or forgotten, the expected names changed, or the freshness of a source of a cluster with
    /// several changed.
    pub fn publish(&self) {
        let _in_order = lock(&self.publishing);
        let last = self.last_view();
        let moment = self.clock.time();
        let mut owner = lock(&self.owner);
        let received = std::mem::take(&mut owner.received);
        let published = owner.publish(&self.published(), moment.at);
        drop(owner);
        let Publication { fleet, changes, heard, touched } = match published {
            Some(publication) => publication,
            None => Publication::unchanged(self.published()),
        };
        // The others are as in the last view.
        let different = match last.turns_by(moment.at) {
            true => fleet.all_places(),
            false => touched.clone(),
        };
        let (mut turned, mut news, mut places) = (Vec::new(), Vec::new(), HashSet::new());
        // What turned meanwhile by time alone was shown from that moment on, and reports are shown from now on.
        let mut before = Arc::clone(&last);
        for (at, place) in last.turns_until(moment.at) {
            let now = journal::time_of(at, moment).max(last.moment().now);
            let view = Arc::make_mut(&mut before);
            let found = recent::turn(view, place, HubTime { at, now });
            places.insert(place);
            news.extend(found.iter().filter_map(|transition| recent::row(view, transition)));
            turned.extend(found);
        }
        let view = Arc::new(last.next(Arc::clone(&fleet), moment, (&heard, &touched)));
        let since = view.turned(&before, &different);
        let transitions = recent::transitions(&before, &view, &changes, &since);
        places.extend(since);
        news.extend(transitions.iter().filter_map(|transition| recent::row(&view, transition)));
        // Before anybody can see the changes: nobody may see one, and then hear that nothing is unsaved.
        if let Some(journal) = &self.journal {
            journal.publication(moment, &turned, &changes, &transitions, fleet.pairs());
            late::settle(journal, &view, moment);
        }
        lock(&self.recent).extend(news);
        let are_renamed = view.is_renamed(&last, &touched);
        let has_other_facts = !view.tells_the_same(&last, &touched);
        let (changes, judged) = (changes.into(), OnceLock::new());
        let differences = ViewDifferences { changes, judged, places, are_renamed, has_other_facts };
        lock(&self.log).push(view.number().unwrap_or_default(), differences);
        let is_new = fleet.version != last.fleet().version;
        *lock(&self.last) = view;
        if is_new {
            self.published.send_replace(fleet);
        }
        let visible = self.clock.time().at;
        let mut latencies = lock(&self.latencies);
        received.into_iter().for_each(|received| latencies.add(visible.saturating_sub(received)));
    }

    /// Returns the view of the last publication, which is about half a second old at most while
    /// [`run`](FleetIndex::run) runs.
    pub(crate) fn last_view(&self) -> Arc<FleetView> {
        Arc::clone(&lock(&self.last))
    }

    /// Returns the differences of each publication after that of `old` up to that of `new`; `None` if some were
    /// dropped, or one of the views is not that of a publication.
    pub(crate) fn differences(&self, old: &FleetView, new: &FleetView) -> Option<Vec<Arc<ViewDifferences>>> {
        lock(&self.log).between(old.number(), new.number())
    }

    /// Returns the histogram of times from the receipt of a change to its publication, the number of accepted reports,
    /// and that of refused ones.
    pub(crate) fn measured(&self) -> (Latencies, u64, u64) {
        let latencies = lock(&self.latencies).clone();
        let owner = lock(&self.owner);
        (latencies, owner.reports, owner.refused)
    }

    /// Returns the kept changes of apps with their numbers, the latest first: those with numbers below `before`, or
    /// all.
    pub(crate) fn recent(&self, before: Option<u64>) -> Vec<(u64, Arc<AppChange>)> {
        lock(&self.recent).before(before)
    }
}

/// Locks a mutex, ignoring that a thread panicked while it held it: a report that panicked is refused the next time.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Owner {
    /// Marks `cluster`, and all apps of which `source` reports a half in it, as changed.
    fn touch(&mut self, cluster: &ClusterId, source: &str) {
        let known = self.fleet.known(cluster);
        let source = known.and_then(|known| known.sources.iter().find(|known| *known.name == *source));
        self.apps.extend(source.into_iter().flat_map(|source| source.received.apps()).cloned());
        self.clusters.insert(cluster.clone());
    }

    /// Marks all apps of which any source reports a half in `cluster` as changed.
    fn touch_all(&mut self, cluster: &ClusterId) {
        let sources = self.fleet.known(cluster).into_iter().flat_map(|known| &known.sources);
        self.apps.extend(sources.flat_map(|source| source.received.apps()).cloned());
    }

    /// Makes the state to publish after `old` from what is marked as changed, and clears the marks. Returns `None` if
    /// nothing is marked and `old` is not the state before the first publication.
    fn publish(&mut self, old: &PublishedFleet, at: Duration) -> Option<Publication> {
        self.turn_sources(at);
        self.apps.extend(self.fleet.checks.ended(at));
        self.find_strays(old);
        if !self.clusters.is_empty() {
            self.note_heard();
        }
        let has_all = Arc::ptr_eq(&self.unheard, &old.unheard);
        let is_silent = self.heard.is_empty() && self.clusters.is_empty();
        if self.apps.is_empty() && is_silent && has_all && old.version > 0 {
            return None;
        }
        let mut changes: BTreeMap<Place, Vec<PairChange>> = BTreeMap::new();
        for app in std::mem::take(&mut self.apps) {
            self.change(app, old, at, &mut changes);
        }
        Some(self.assemble(changes, old, at))
    }

    /// Makes the first state to publish, of all clusters and apps that the fleet has at the moment `at`.
    fn publish_first(&mut self, at: Duration) -> Publication {
        let ids: Vec<ClusterId> = self.fleet.ids().cloned().collect();
        for id in &ids {
            self.opened.insert(id.clone(), at);
            self.note_sources(id);
        }
        self.clusters.extend(ids);
        self.note_heard();
        let mut changes: BTreeMap<Place, Vec<PairChange>> = BTreeMap::new();
        for pair in Pair::all(&self.fleet, at) {
            let place = pair.shown();
            if place != pair.home.cluster {
                self.elsewhere.insert(AppId::clone(&pair.app), place);
            }
            let pair = Arc::new(pair);
            if pair.checks.is_some() {
                self.checked.insert(AppId::clone(&pair.app), Arc::clone(&pair));
            }
            let change = PairChange { place, before: None, after: Some(pair) };
            changes.entry(place).or_default().push(change);
        }
        self.assemble(changes, &PublishedFleet::default(), at)
    }

    /// Makes the state that follows `old` at the moment `at`, with these changes of pairs, by the place of the cluster
    /// that shows them, and with the clusters that are marked; clears their marks.
    fn assemble(
        &mut self,
        changes: BTreeMap<Place, Vec<PairChange>>,
        old: &PublishedFleet,
        at: Duration,
    ) -> Publication {
        let mut heard = std::mem::take(&mut self.heard);
        let mut touched: Vec<Place> = changes.keys().chain(heard.keys()).copied().collect();
        let mut clusters = old.clusters.clone();
        let mut places = Arc::clone(&old.places);
        for id in std::mem::take(&mut self.clusters) {
            let before = old.places.get(&id).copied();
            let known = self.fleet.known(&id);
            if let Some(gone) = before.filter(|place| known.is_none_or(|known| known.place != *place)) {
                clusters.replace(gone, None);
                Arc::make_mut(&mut places).remove(&id);
                touched.push(gone);
            }
            let Some(known) = known else { continue };
            touched.push(known.place);
            heard.insert(known.place, known.vitals());
            let pairs = before.filter(|before| *before == known.place);
            let pairs = pairs.and_then(|place| Some(Arc::clone(&old.cluster(place)?.pairs)));
            let cluster = PublishedCluster {
                id: id.clone(),
                place: known.place,
                opened: self.opened.get(&id).copied().unwrap_or(at),
                sources: PublishedSource::all(known),
                pairs: pairs.unwrap_or_default(),
            };
            clusters.grow(known.place + 1, &None);
            clusters.replace(known.place, Some(Arc::new(cluster)));
            if before != Some(known.place) {
                Arc::make_mut(&mut places).insert(id, known.place);
            }
        }
        for (place, changes) in &changes {
            let Some(Some(cluster)) = clusters.get(*place) else { continue };
            let pairs = cluster.pairs.changed(changes, &mut self.names);
            let cluster = cluster.with(Arc::new(pairs));
            clusters.replace(*place, Some(Arc::new(cluster)));
        }
        touched.sort_unstable();
        touched.dedup();
        let (mut pairs, mut strays) = (old.pairs, old.strays);
        let (mut called, mut hosts) = (Arc::clone(&old.called), Arc::clone(&old.hosts));
        for place in &touched {
            let [gone, new] = [old.cluster(*place), clusters.get(*place).and_then(Option::as_ref)];
            // Most only gave a sign of life.
            if gone.zip(new).is_some_and(|(gone, new)| Arc::ptr_eq(gone, new)) {
                continue;
            }
            let [gone, new] = [gone, new].map(|cluster| cluster.map(|cluster| &**cluster));
            let counts = |cluster: &PublishedCluster| (cluster.pairs.pairs.len(), cluster.pairs.strays);
            let [less, more] = [gone, new].map(|cluster| cluster.map_or((0, 0), counts));
            (pairs, strays) = (pairs + more.0 - less.0, strays + more.1 - less.1);
            CalledClusters::rename(&mut called, *place, gone, new);
            let is_host = new.is_some_and(|cluster| cluster.pairs.guests > 0);
            if is_host != hosts.contains(place) {
                let hosts = Arc::make_mut(&mut hosts);
                match is_host {
                    true => hosts.insert(*place),
                    false => hosts.remove(place),
                };
            }
        }
        self.forget_names(&mut clusters, pairs);
        let changes = changes.into_values().flatten().collect();
        let (names, unheard) = (self.names.table(), Arc::clone(&self.unheard));
        let (version, begun) = (old.version + 1, self.begun);
        let fleet =
            PublishedFleet { version, begun, clusters, pairs, strays, hosts, called, places, names, unheard };
        Publication { fleet: Arc::new(fleet), changes, heard, touched }
    }

    /// Removes the names and aliases that sources reported from the expected ones.
    fn note_heard(&mut self) {
        if self.unheard.0.is_empty() {
            return;
        }
        let told: HashSet<&str> = self.fleet.names().map(|(_, name)| name).collect();
        if self.unheard.0.iter().any(|(name, _)| told.contains(&**name)) {
            let unheard = self.unheard.0.iter().filter(|(name, _)| !told.contains(&**name));
            self.unheard = Arc::new(UnheardClusters(unheard.cloned().collect()));
        }
    }

    /// Makes the table of names again without unused names, if it has more than 6 for each of the `pairs` of all
    /// clusters, and 1,000 more.
    fn forget_names(&mut self, clusters: &mut SharedList<Option<Arc<PublishedCluster>>>, pairs: usize) {
        // A pair has three names.
        if self.names.table().len() <= 6 * pairs + MIN_NAMES {
            return;
        }
        self.names = Names::default();
        let mut renumbered = |cluster: &Arc<PublishedCluster>| {
            let pairs = ClusterPairs::new(cluster.pairs.pairs.iter().cloned().collect(), &mut self.names);
            Arc::new(cluster.with(Arc::new(pairs)))
        };
        *clusters = clusters.iter().map(|cluster| cluster.as_ref().map(&mut renumbered)).collect();
    }

    /// Adds the change of one app since `old` to `changes`, by the place of the cluster that shows it. A pair that
    /// moved to another cluster is two changes: gone there, new here.
    fn change(
        &mut self,
        app: AppId,
        old: &PublishedFleet,
        at: Duration,
        changes: &mut BTreeMap<Place, Vec<PairChange>>,
    ) {
        let before = self.elsewhere.get(&app).or_else(|| old.places.get(&app.home)).copied();
        let before = before.and_then(|place| {
            let pairs = &old.cluster(place)?.pairs;
            Some((place, Arc::clone(pairs.pairs.get(pairs.find(&app)?)?)))
        });
        let after = Pair::of(&self.fleet, &app, at).map(Arc::new);
        self.fleet.checks.keep(&app, after.as_ref().map(|pair| &*pair.declared.body));
        match after.as_ref().filter(|pair| pair.checks.is_some()) {
            Some(pair) => drop(self.checked.insert(app.clone(), Arc::clone(pair))),
            None => drop(self.checked.remove(&app)),
        }
        match &after {
            Some(pair) if pair.shown() != pair.home.cluster => {
                self.elsewhere.insert(app, pair.shown());
            }
            _ => {
                self.elsewhere.remove(&app);
            }
        }
        let place = after.as_ref().map(|pair| pair.shown());
        let (from, before) = before.unzip();
        if from.is_some() && from != place {
            let gone = PairChange { place: from.unwrap_or_default(), before, after: None };
            changes.entry(gone.place).or_default().push(gone);
            let new = PairChange { place: place.unwrap_or_default(), before: None, after };
            if new.after.is_some() {
                changes.entry(new.place).or_default().push(new);
            }
        } else if let Some(place) = place {
            changes.entry(place).or_default().push(PairChange { place, before, after });
        }
    }

    /// Marks each cluster of several sources, and its apps, as changed if the freshness of a source changed since the
    /// last publication: another source may now be the best.
    fn turn_sources(&mut self, at: Duration) {
        let fleet = &self.fleet;
        self.states.retain(|id, _| fleet.known(id).is_some());
        let mut turned = Vec::new();
        for (id, before) in &mut self.states {
            let Some(known) = fleet.known(id).filter(|known| known.sources.len() > 1) else { continue };
            let states: Vec<_> = known.sources.iter().map(|source| source.received.state(at)).collect();
            if *before != states {
                turned.push(id.clone());
                *before = states;
            }
        }
        for id in turned {
            self.touch_all(&id);
            self.clusters.insert(id);
        }
    }

    /// Marks a cluster for [`turn_sources`](Owner::turn_sources) if it has several sources.
    fn note_sources(&mut self, cluster: &ClusterId) {
        if self.fleet.known(cluster).is_some_and(|known| known.sources.len() > 1) {
            self.states.entry(cluster.clone()).or_default();
        }
    }

    /// Marks the apps as changed whose target cluster was unknown, and was opened since the last publication.
    fn find_strays(&mut self, old: &PublishedFleet) {
        let new = std::mem::take(&mut self.new);
        if new.is_empty() {
            return;
        }
        let waiting = old.all().filter(|(_, cluster)| cluster.pairs.strays > 0);
        let pairs = waiting.flat_map(|(_, cluster)| cluster.pairs.pairs.iter());
        let found = pairs.filter(|pair| pair.target.is_none() && new.contains(&pair.declared.body.target));
        self.apps.extend(found.map(|pair| AppId::clone(&pair.app)));
    }
}

#[cfg(test)]
mod tests;
