//! Restores the index from the store when a hub starts, and saves its changes to the store while it runs.

use std::collections::{BTreeMap, HashSet};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::SignedDuration;
use taffrail_api::hub::PairState;
use taffrail_api::report::{ClusterReport, HalfBody, Received};
use taffrail_apps::ClusterId;

use super::journal::{Journal, JournalCounts, moment_of, pair_id, time_of};
use super::pair::{ListedPair, Pair, Place};
use super::{FleetIndex, FleetView, ViewDifferences, lock, recent};
use crate::clock::{HubClock, HubTime};
use crate::fleet::{FleetState, KnownCluster, Source, Tells};
use crate::store::{
    ClusterRecord, PageQuery, PairId, PairRecord, PairTransition, Store, StoreError, finished,
};

/// The number of pairs that one read of the store returns. All of them are one value of SQLite, which holds 1 GB, and one
/// pair with as long texts as a hub keeps takes 125 KB of it.
const PAGE: NonZeroUsize = NonZeroUsize::new(4_000).unwrap();

/// The number by which the first epoch of a run exceeds the greatest saved one. So many streams of a cluster may be
/// opened while the store cannot be written, without the next run giving an epoch a second time.
const EPOCHS: u64 = 1 << 16;

/// The time without changes after which the store is told that history is recorded up to now.
const UNCHANGED: Duration = Duration::from_secs(15);

/// The shortest and the longest pause before a failed write is repeated; it doubles with each failure.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

/// The interval at which old history is dropped.
const RETENTION: Duration = Duration::from_secs(3600);

impl FleetIndex {
    /// Makes the index with the clusters of `store` whose name, an alias or a source `is_followed` returns true for and that
    /// once gave a sign of life, and their pairs. The index collects its changes for [`save`](FleetIndex::save). No cluster
    /// is live until a source reports it. Signs of life from before the start of `clock` count as given at its start.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn restore(
        clock: HubClock,
        store: &dyn Store,
        is_followed: impl Fn(&str) -> bool,
    ) -> Result<FleetIndex, StoreError> {
        let index = FleetIndex { journal: Some(Journal::default()), ..FleetIndex::new(clock) };
        let moment = index.clock.time();
        let mut fleet = FleetState::default();
        fleet.restore_clusters(store.clusters().await?, moment, is_followed);
        let mut pages = store.pairs(PAGE);
        let mut read = pages.next().await;
        while let Some(page) = read.transpose()? {
            let adding = tokio::task::spawn_blocking(move || {
                page.pairs.into_iter().for_each(|pair| fleet.restore_pair(pair, moment));
                fleet
            });
            let added;
            (added, read) = tokio::join!(finished(adding), pages.next());
            fleet = added?;
        }
        drop(pages);
        index.begin(fleet, moment);
        *lock(&index.restored) = Some(index.last_view());
        Ok(index)
    }

    /// Publishes the restored fleet, without recording transitions.
    fn begin(&self, fleet: FleetState, moment: HubTime) {
        let mut owner = lock(&self.owner);
        owner.fleet = fleet;
        let publication = owner.publish_first(moment.at);
        drop(owner);
        let published = publication.fleet;
        // What was known before is no change.
        let mut last = lock(&self.last);
        *last =
            Arc::new(last.next(Arc::clone(&published), moment, (&publication.heard, &publication.touched)));
        lock(&self.log).push(last.number().unwrap_or_default(), ViewDifferences::default());
        drop(last);
        self.published.send_replace(published);
        self.journal.iter().for_each(|journal| journal.restored(moment));
    }

    /// Adds a transition to the journal for each pair whose state in `view`, that of the restored fleet, differs from
    /// the last one in `store`, or that only one of them has, at the first microsecond after the time up to which the
    /// last run recorded history. Does nothing if no history is recorded. Repeats a failed read after a pause.
    async fn record_gap(&self, store: &dyn Store, journal: &Journal, view: &FleetView) {
        let Some(until) = repeated(journal, || store.recorded()).await.and_then(|it| it.until) else {
            return;
        };
        let at = until.checked_add(SignedDuration::from_micros(1)).unwrap_or(until);
        let mut met: HashSet<(Place, usize)> = HashSet::new();
        let mut query = PageQuery::first(PAGE);
        loop {
            let read = || store.states_at(until, query.clone());
            let Some(page) = repeated(journal, read).await else { return };
            let mut ended = Vec::new();
            let mut transitions = Vec::new();
            for (id, before) in page.items {
                let Some((place, number, pair, after)) = shown(view, &id) else {
                    ended.push(PairTransition { pair: id, at, before: Some(before), after: None });
                    continue;
                };
                met.insert((place, number));
                if before != after {
                    transitions.push((pair, Some(before), Some(after)));
                }
            }
            journal.gap(at, transitions, ended);
            let Some(next) = page.next else { break };
            query = query.next(next);
        }
        let mut new = Vec::new();
        for (place, cluster) in view.fleet().all() {
            for (number, ListedPair { pair, class, .. }) in cluster.pairs.iter().enumerate() {
                if !met.contains(&(place, number)) {
                    let state = recent::state(pair, view.now(place, class));
                    new.push((Arc::clone(pair), None, Some(state)));
                }
            }
        }
        journal.gap(at, new, Vec::new());
    }

    /// Saves changes to `store` in a loop; repeats a failed write after a pause. First records what the time changed in
    /// which no hub ran: nothing else is saved before, as the store would then claim to know that time. Never ends;
    /// without a journal it only waits.
    pub async fn save(&self, store: &dyn Store) {
        let Some(journal) = &self.journal else { return std::future::pending().await };
        let restored = lock(&self.restored).clone();
        if let Some(view) = restored {
            self.record_gap(store, journal, &view).await;
            *lock(&self.restored) = None;
        }
        let mut pause = PAUSES.0;
        loop {
            let moment = self.clock.time();
            let portion = journal.take(moment.at);
            let mut batch = portion.batch();
            {
                let owner = lock(&self.owner);
                let known = |id| Some((id, owner.fleet.known(id)?));
                let heard = portion.heard.iter().filter_map(known);
                // A sign of life changes no epoch.
                let heard = heard.map(|(id, known)| ClusterRecord {
                    epochs: BTreeMap::new(),
                    ..record(id, known, moment)
                });
                let clusters = portion.clusters.iter().filter_map(known);
                batch.clusters = heard.chain(clusters.map(|(id, known)| record(id, known, moment))).collect();
            }
            match store.write(batch).await {
                Ok(()) => {
                    pause = PAUSES.0;
                    journal.saved(portion.last());
                    drop(tokio::time::timeout(UNCHANGED, journal.news.notified()).await);
                }
                Err(_) => {
                    // The health of the store says why.
                    journal.put_back(portion);
                    rest(&mut pause).await;
                }
            }
        }
    }

    /// Waits until all changes published and all streams opened before the call are in the store, and returns true.
    /// Returns false as soon as the store cannot be written, and true at once without a store.
    pub async fn saved(&self) -> bool {
        match &self.journal {
            Some(journal) => journal.wait().await,
            None => true,
        }
    }

    /// Drops at once, and then every hour, the history in `store` that is older than `retain`, and forgets the sources
    /// that have opened no stream in this run and gave no sign of life for `retain`. Never ends.
    pub async fn keep_history(&self, store: &dyn Store, retain: Duration) {
        loop {
            let moment = self.clock.time();
            let since = time_of(moment.at.saturating_sub(retain), moment);
            // The health of the store says why it failed; the next attempt drops as much.
            drop(store.drop_history(since).await);
            let silent: Vec<(ClusterId, String)> = {
                let owner = lock(&self.owner);
                let found = owner.fleet.silent(moment.at, retain);
                found.map(|(id, source)| (id.clone(), source.to_owned())).collect()
            };
            silent.iter().for_each(|(id, source)| self.forget(id, source));
            tokio::time::sleep(RETENTION).await;
        }
    }

    /// Returns the number of changes that wait to be saved, and of transitions and syncs that were dropped; `None`
    /// without a store.
    pub(crate) fn unsaved(&self) -> Option<JournalCounts> {
        self.journal.as_ref().map(Journal::counts)
    }
}

/// Waits for the pause after a failure, and doubles it for the next one, up to the longest.
async fn rest(pause: &mut Duration) {
    tokio::time::sleep(*pause).await;
    *pause = (2 * *pause).min(PAUSES.1);
}

/// Reads from the store, and repeats a failed read after a pause. Returns `None` if the requested history was dropped.
async fn repeated<T, F: Future<Output = Result<T, StoreError>>>(
    journal: &Journal,
    read: impl Fn() -> F,
) -> Option<T> {
    let mut pause = PAUSES.0;
    loop {
        match read().await {
            Ok(found) => return Some(found),
            Err(StoreError::HistoryDropped { .. }) => return None,
            // The health of the store says why it failed.
            Err(_) => journal.failed(),
        }
        rest(&mut pause).await;
    }
}

/// Finds a pair in the view. Returns the place of the cluster that shows it, its index there, the pair and its state;
/// `None` if the view does not have it.
pub(super) fn shown(view: &FleetView, id: &PairId) -> Option<(Place, usize, Arc<Pair>, PairState)> {
    let fleet = view.fleet();
    let places = [&id.cluster, &id.app.home].map(|cluster| fleet.places.get(cluster).copied());
    places.into_iter().flatten().find_map(|place| {
        let pairs = &fleet.cluster(place)?.pairs;
        let number = pairs.find(&id.app)?;
        let ListedPair { pair, class, .. } = pairs.get(number)?;
        (pair_id(pair) == *id)
            .then(|| (place, number, Arc::clone(pair), recent::state(pair, view.now(place, class))))
    })
}

/// Makes the record of a cluster as it is known at `moment`: the names and labels from its best source, empty if it has
/// none, the time at which any source was last in contact with it, and the epoch of each source.
fn record(id: &ClusterId, known: &KnownCluster, moment: HubTime) -> ClusterRecord {
    let best = known.best_place(None, moment.at).and_then(|place| known.sources.get(place));
    let facts = best.map(|source| &**source.received.facts());
    let ages = known.sources.iter().filter_map(|source| source.received.age(moment.at));
    let heard = ages.min().map(|age| time_of(moment.at.saturating_sub(age), moment));
    let epoch = |source: &Source| (source.name.to_string(), source.received.epoch());
    ClusterRecord {
        id: id.clone(),
        name: facts.map(|facts| facts.name.clone()).unwrap_or_default(),
        aliases: facts.map(|facts| facts.aliases.clone()).unwrap_or_default(),
        labels: facts.map(|facts| facts.labels.clone()).unwrap_or_default(),
        heard,
        epochs: known.sources.iter().map(epoch).collect(),
    }
}

impl FleetState {
    fn restore_clusters(
        &mut self,
        records: Vec<ClusterRecord>,
        moment: HubTime,
        is_followed: impl Fn(&str) -> bool,
    ) {
        let last = records.iter().flat_map(|record| record.epochs.values()).max();
        self.first_epoch = last.map_or(self.first_epoch, |last| last.saturating_add(EPOCHS));
        let before = self.first_epoch.saturating_sub(1);
        for ClusterRecord { id, name, aliases, labels, heard, epochs } in records {
            let is_wanted = {
                let mut names = [&name].into_iter().chain(&aliases).chain(epochs.keys());
                names.any(|name| is_followed(name))
            };
            if !is_wanted {
                continue;
            }
            // Nothing was ever known of the others, and they may get another identity.
            let Some(heard) = heard else { continue };
            let heard = Some(moment_of(heard, moment));
            let source = |source: String| {
                let facts = ClusterReport {
                    name: name.clone(),
                    aliases: aliases.clone(),
                    labels: labels.clone(),
                    ..ClusterReport::default()
                };
                let received = Received::restored(id.clone(), before, facts, heard);
                Source { name: source.into(), tells: Tells::ALL, received, is_open: false }
            };
            let sources = epochs.into_keys().map(source).collect();
            self.add(id.clone(), sources);
        }
    }

    /// Adds the halves of a pair to the first sources of its home and its target, because the store does not know which
    /// source reported them. If it was another one, the digests differ, and what the first one sends then replaces them.
    fn restore_pair(&mut self, pair: PairRecord, moment: HubTime) {
        let PairRecord { id, declared, observed } = pair;
        let home = id.app.home.clone();
        let declared = declared.map(|half| (half.received, half.fingerprint, HalfBody::Declared(half.body)));
        let observed = observed.map(|half| (half.received, half.fingerprint, HalfBody::Observed(half.body)));
        for (cluster, half) in [(home, declared), (id.cluster, observed)] {
            let Some((received, fingerprint, mut body)) = half else { continue };
            self.parts.share(&mut body);
            if let Some(source) = self.first_source(&cluster) {
                let received = moment_of(received, moment);
                source.received.restore(id.app.clone(), body, fingerprint, received);
            }
        }
    }
}

#[cfg(test)]
mod tests;
