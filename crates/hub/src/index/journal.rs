//! The changes of a fleet that are not saved in the store yet.
//!
//! Their number is bounded, however long the store cannot be written: the journal keeps only the last halves of each
//! pair, and when too many transitions wait, only the first and the last of each pair, with a state "not recorded"
//! between them.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use taffrail_api::Unobserved;
use taffrail_api::hub::PairState;
use taffrail_api::report::{AppId, KeptHalf, ToldSyncs};
use taffrail_apps::ClusterId;
use tokio::sync::{Notify, watch};

use super::late_states::LateStates;
use super::pair::Pair;
use super::published::PairChange;
use super::recent::{Transition, is_dark, unrecorded};
use crate::clock::HubTime;
use crate::store::{Batch, PairId, PairRecord, PairTransition, SavedHalf, SpoolRecord, SyncRecord};

/// The greatest number of transitions, of syncs, and of pairs of one cluster in one batch; the rest waits for the next
/// one. The [last transitions](UnsavedChanges::ended) of pairs that are gone do not count.
const MAX_BATCH: usize = 10_000;

/// The number of pairs from which on the pairs of no further cluster are added to a batch.
const FULL_BATCH: usize = 10_000;

/// The number of waiting transitions up to which none are dropped, beside two for each pair of the fleet.
const MAX_TRANSITIONS: usize = 100_000;

/// The greatest number of syncs that wait to be saved; the earliest are dropped beyond it.
const MAX_SYNCS: usize = 50_000;

/// The greatest number of removed pairs that wait to be removed from the store; beyond it all of them are dropped.
const MAX_GONE: usize = 100_000;

/// The least interval at which the time of a cluster's last sign of life is saved.
pub(super) const HEARD: Duration = Duration::from_secs(60);

/// The least interval at which pairs with late transitions are looked through.
const UNSETTLED: Duration = Duration::from_secs(5);

/// The least interval at which the times of the last signs of life of several clusters are saved together: a few at a
/// time would write as many pages as all of them.
const HEARD_TOGETHER: Duration = Duration::from_secs(15);

/// The changes that are not saved yet, with the progress of the task that saves them.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    pending: Mutex<UnsavedChanges>,
    /// Wakes the writer when there is something to save.
    pub(crate) news: Notify,
    progress: watch::Sender<SaveProgress>,
}

/// The progress of the task that saves changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct SaveProgress {
    /// The number of the last change that is saved together with all before it.
    saved: u64,
    /// True if the last attempt to write failed.
    is_failing: bool,
}

/// The changes that are not saved yet.
#[derive(Debug, Default)]
struct UnsavedChanges {
    /// The number of the last change that was added.
    noted: u64,
    pairs: UnsavedPairs,
    clusters: HashSet<ClusterId>,
    /// The clusters of which only a sign of life is to be saved, and the moment at which such clusters were taken last.
    heard: HashSet<ClusterId>,
    heard_taken: Option<Duration>,
    forgotten: HashSet<ClusterId>,
    transitions: VecDeque<PendingTransition>,
    /// The last transitions of pairs that the store has and the fleet no longer shows.
    ended: Vec<PairTransition>,
    syncs: VecDeque<SyncRecord>,
    /// The transitions that agents noted while they were not connected, and their spools, by cluster.
    late: Vec<PairTransition>,
    spools: HashMap<ClusterId, SpoolRecord>,
    late_states: LateStates,
    /// The moment of the last publication; `None` before the first one.
    published: Option<HubTime>,
    /// The number of changes in the portion that is being saved.
    taken: usize,
    /// The number of transitions and syncs that were dropped because the store could not be written.
    lost: u64,
}

/// The pairs to save (false) or to remove from the store (true), by target cluster: the rows of a cluster lie beside
/// each other in a store, so that saving them together writes fewer pages.
#[derive(Debug, Default)]
struct UnsavedPairs {
    of_cluster: HashMap<ClusterId, HashMap<PairRef, bool>>,
    /// The clusters with unsaved pairs, in the order in which they got the first one.
    order: VecDeque<ClusterId>,
    count: usize,
    gone: usize,
}

impl UnsavedPairs {
    /// Adds a pair in place of one of the same app and target cluster.
    fn insert(&mut self, pair: PairRef, is_gone: bool) {
        let (_, cluster) = pair.key();
        let pairs = match self.of_cluster.get_mut(cluster) {
            Some(pairs) => pairs,
            None => {
                self.order.push_back(cluster.clone());
                self.of_cluster.entry(cluster.clone()).or_default()
            }
        };
        // The new one takes the place of the old one also as key.
        let old = pairs.remove(&pair);
        pairs.insert(pair, is_gone);
        self.count += usize::from(old.is_none());
        self.gone = self.gone + usize::from(is_gone) - usize::from(old == Some(true));
    }

    fn has(&self, pair: &PairRef) -> bool {
        self.of_cluster.get(pair.key().1).is_some_and(|pairs| pairs.contains_key(pair))
    }

    /// Removes and returns the pairs of the first clusters, until they are [`FULL_BATCH`] or more, of each at most
    /// [`MAX_BATCH`].
    fn take(&mut self) -> Vec<(PairRef, bool)> {
        let mut taken = Vec::new();
        while taken.len() < FULL_BATCH {
            let Some(cluster) = self.order.pop_front() else { break };
            let Some(mut pairs) = self.of_cluster.remove(&cluster) else { continue };
            if pairs.len() <= MAX_BATCH {
                taken.extend(pairs);
                continue;
            }
            let first: Vec<PairRef> = pairs.keys().take(MAX_BATCH).cloned().collect();
            taken.extend(first.iter().filter_map(|pair| pairs.remove_entry(pair)));
            self.of_cluster.insert(cluster.clone(), pairs);
            self.order.push_back(cluster);
        }
        self.count -= taken.len();
        self.gone -= taken.iter().filter(|(_, is_gone)| *is_gone).count();
        if self.of_cluster.is_empty() {
            *self = UnsavedPairs::default();
        }
        taken
    }

    /// Drops all pairs that are to be removed from the store.
    fn drop_gone(&mut self) {
        self.of_cluster.retain(|_, pairs| {
            pairs.retain(|_, is_gone| !*is_gone);
            !pairs.is_empty()
        });
        self.order.retain(|cluster| self.of_cluster.contains_key(cluster));
        self.count -= self.gone;
        self.gone = 0;
    }
}

/// A pair that equals another one of the same app and target cluster, whatever its halves.
#[derive(Debug, Clone)]
struct PairRef(Arc<Pair>);

impl PairRef {
    fn key(&self) -> (&AppId, &ClusterId) {
        (&self.0.app, &self.0.declared.body.target)
    }
}

impl PartialEq for PairRef {
    fn eq(&self, other: &PairRef) -> bool {
        self.key() == other.key()
    }
}

impl Eq for PairRef {}

impl Hash for PairRef {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.key().hash(hasher);
    }
}

/// A change of the state of a pair that is not saved yet.
#[derive(Debug, Clone)]
struct PendingTransition {
    pair: PairRef,
    at: Timestamp,
    before: Option<PairState>,
    after: Option<PairState>,
}

/// A pair with its states before and after a time in which no hub ran; a state is `None` if the pair did not exist.
pub(crate) type GapTransition = (Arc<Pair>, Option<PairState>, Option<PairState>);

/// A part of the changes, to save in one batch.
#[derive(Debug, Default)]
pub(crate) struct Portion {
    pairs: Vec<(PairRef, bool)>,
    pub(crate) clusters: Vec<ClusterId>,
    /// The clusters of which only the time of the last sign of life is saved.
    pub(crate) heard: Vec<ClusterId>,
    forgotten: HashSet<ClusterId>,
    transitions: Vec<PendingTransition>,
    ended: Vec<PairTransition>,
    syncs: Vec<SyncRecord>,
    late: Vec<PairTransition>,
    spools: HashMap<ClusterId, SpoolRecord>,
    moment: Option<HubTime>,
    /// The number of the last change; `None` if further pairs, transitions or syncs wait.
    last: Option<u64>,
}

/// The number of changes that wait to be saved, and of the transitions and syncs that were dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct JournalCounts {
    pub(crate) pending: usize,
    pub(crate) lost: u64,
}

/// Returns the identity of a pair in the store: app and declared target cluster.
pub(crate) fn pair_id(pair: &Pair) -> PairId {
    PairId { cluster: pair.declared.body.target.clone(), app: AppId::clone(&pair.app) }
}

impl Journal {
    fn pending(&self) -> MutexGuard<'_, UnsavedChanges> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a cluster whose attributes or epochs must be saved.
    pub(crate) fn cluster(&self, cluster: &ClusterId) {
        let mut pending = self.pending();
        pending.noted += 1;
        pending.clusters.insert(cluster.clone());
        drop(pending);
        self.news.notify_one();
    }

    /// Adds a cluster that gave a sign of life. Its time is given to the store within 30 s.
    pub(crate) fn heard(&self, cluster: &ClusterId) {
        self.pending().heard.insert(cluster.clone());
    }

    /// Adds a cluster to remove from the store.
    pub(crate) fn forget(&self, cluster: &ClusterId) {
        let mut pending = self.pending();
        pending.noted += 1;
        pending.clusters.remove(cluster);
        pending.heard.remove(cluster);
        pending.forgotten.insert(cluster.clone());
        drop(pending);
        self.news.notify_one();
    }

    /// Adds syncs that a source reported; drops and counts the earliest beyond 50,000.
    pub(crate) fn syncs(&self, told: Vec<ToldSyncs>) {
        if told.is_empty() {
            return;
        }
        let mut pending = self.pending();
        pending.noted += 1;
        for (app, cluster, attempts) in told {
            let pair = PairId { cluster, app };
            let record = |it: taffrail_apps::SyncAttempt| SyncRecord {
                pair: pair.clone(),
                revision: it.revision,
                began: it.began,
                ended: it.ended,
                result: it.result,
                message: it.message.to_string(),
            };
            pending.syncs.extend(attempts.into_iter().map(record));
        }
        let surplus = pending.syncs.len().saturating_sub(MAX_SYNCS);
        pending.syncs.drain(..surplus);
        pending.lost += surplus as u64;
        drop(pending);
        self.news.notify_one();
    }

    /// Adds the changes of a publication at `moment`: the transitions that time alone caused before it (`turned`), the
    /// changed pairs, and the transitions at `moment`. `pairs` is the number of pairs of the fleet, which sets the
    /// limit.
    pub(crate) fn publication(
        &self,
        moment: HubTime,
        turned: &[Transition],
        changes: &[PairChange],
        transitions: &[Transition],
        pairs: usize,
    ) {
        let mut pending = self.pending();
        pending.published = Some(moment);
        for Transition { at, pair, before, after, .. } in turned {
            let (pair, before, after) = (PairRef(Arc::clone(pair)), before.clone(), after.clone());
            pending.transitions.push_back(PendingTransition { pair, at: *at, before, after });
        }
        let is_new = |change: &&PairChange| match (&change.before, &change.after) {
            (Some(before), Some(after)) => !is_same(before, after),
            _ => true,
        };
        let target = |pair: &Arc<Pair>| pair.declared.body.target.clone();
        // A pair that another cluster shows now is gone there and new here: what is gone comes first.
        for PairChange { before, after, .. } in changes.iter().filter(is_new) {
            let is_gone = |before: &&Arc<Pair>| after.as_ref().map(target) != Some(target(before));
            if let Some(gone) = before.as_ref().filter(is_gone) {
                pending.pairs.insert(PairRef(Arc::clone(gone)), true);
            }
        }
        for after in changes.iter().filter(is_new).filter_map(|change| change.after.as_ref()) {
            pending.pairs.insert(PairRef(Arc::clone(after)), false);
        }
        let at = moment.now;
        let mut gone: HashMap<PairRef, Option<PairState>> = HashMap::new();
        for Transition { pair, moved, before, after, .. } in transitions {
            let old = moved.as_ref().or(Some(pair).filter(|_| after.is_none()));
            gone.extend(old.map(|old| (PairRef(Arc::clone(old)), before.clone())));
        }
        for Transition { pair, moved, before, after, .. } in
            transitions.iter().filter(|it| it.after.is_some())
        {
            let pair = PairRef(Arc::clone(pair));
            let elsewhere = gone.remove(&pair).flatten();
            let before = before.clone().filter(|_| moved.is_none()).or(elsewhere);
            let before = pending.before(&pair, before);
            if before != *after {
                let after = after.clone();
                pending.transitions.push_back(PendingTransition { pair, at, before, after });
            }
        }
        for (pair, before) in gone {
            let before = pending.before(&pair, before);
            pending.transitions.push_back(PendingTransition { pair, at, before, after: None });
        }
        let has_moved = !turned.is_empty() || !transitions.is_empty();
        let changed = has_moved || changes.iter().any(|change| is_new(&change));
        pending.bound(pairs);
        if changed {
            pending.noted += 1;
            drop(pending);
            self.news.notify_one();
        }
    }

    /// Adds the transitions of pairs at the time `at`, since which no hub ran, before all others, and `ended`: those of
    /// pairs that the fleet no longer shows. Does not wake the writer.
    pub(crate) fn gap(&self, at: Timestamp, transitions: Vec<GapTransition>, ended: Vec<PairTransition>) {
        let mut pending = self.pending();
        pending.noted += 1;
        for (pair, before, after) in transitions {
            pending.transitions.push_front(PendingTransition { pair: PairRef(pair), at, before, after });
        }
        pending.ended.extend(ended);
    }

    /// Adds transitions that an agent noted while it was not connected, and the place in its spool up to which history then
    /// has them, at the moment `at`. `states` has the state of each pair after its last one. Returns false, and adds
    /// nothing, if too many wait to be saved.
    pub(crate) fn late(
        &self,
        transitions: Vec<PairTransition>,
        states: Vec<(PairId, Option<PairState>)>,
        spool: SpoolRecord,
        at: Duration,
    ) -> bool {
        let mut pending = self.pending();
        if pending.late.len() > MAX_TRANSITIONS || !pending.late_states.has_room(&spool.cluster) {
            return false;
        }
        pending.noted += 1;
        pending.late.extend(transitions);
        pending.late_states.extend(states, &spool.cluster, at);
        let gap = pending.spools.remove(&spool.cluster).and_then(|earlier| earlier.gap);
        pending.spools.insert(spool.cluster.clone(), SpoolRecord { gap: spool.gap.clone().or(gap), ..spool });
        drop(pending);
        self.news.notify_one();
        true
    }

    /// Returns the pairs whose last late transition came longer than `settled` before the moment `at`, and was followed by
    /// no transition; forgets those for which that is longer than `forgotten`. Looks through them every
    /// [`UNSETTLED`] at most, and returns none in between.
    pub(crate) fn unsettled(&self, at: Duration, settled: Duration, forgotten: Duration) -> Vec<PairId> {
        self.pending().late_states.unsettled(at, UNSETTLED, settled, forgotten)
    }

    /// Adds the transition of a pair that had a late one to the state that it has at the time `at`, if that is another one.
    pub(crate) fn settle(&self, id: &PairId, shown: Option<(Arc<Pair>, PairState)>, at: Timestamp) {
        let mut pending = self.pending();
        let Some(before) = pending.late_states.remove(id) else { return };
        let Some((pair, after)) = shown.filter(|(_, after)| before.as_ref() != Some(after)) else { return };
        pending.noted += 1;
        let pair = PairRef(pair);
        pending.transitions.push_back(PendingTransition { pair, at, before, after: Some(after) });
        drop(pending);
        self.news.notify_one();
    }

    /// Sets the moment of the publication of the restored fleet as that of the last one. What the time without a hub
    /// changed counts as a change that is not saved.
    pub(crate) fn restored(&self, moment: HubTime) {
        let mut pending = self.pending();
        pending.published = Some(moment);
        pending.noted += 1;
    }

    /// Removes and returns the next portion to save at the moment `at`: up to 10,000 transitions and syncs each, less
    /// than 20,000 pairs, all changes of clusters, all last transitions of pairs that the fleet no longer shows, and at
    /// most every [`HEARD_TOGETHER`] the clusters of which only a sign of life is to be saved.
    pub(crate) fn take(&self, at: Duration) -> Portion {
        let mut pending = self.pending();
        let mut heard = Vec::new();
        if pending.heard_taken.is_none_or(|taken| at.saturating_sub(taken) >= HEARD_TOGETHER) {
            heard.extend(pending.heard.drain());
            pending.heard_taken = Some(at);
        }
        let pairs = pending.pairs.take();
        let transitions = pending.transitions.len().min(MAX_BATCH);
        let syncs = pending.syncs.len().min(MAX_BATCH);
        let mut portion = Portion {
            pairs,
            clusters: pending.clusters.drain().collect(),
            heard,
            forgotten: std::mem::take(&mut pending.forgotten),
            transitions: pending.transitions.drain(..transitions).collect(),
            ended: std::mem::take(&mut pending.ended),
            syncs: pending.syncs.drain(..syncs).collect(),
            late: std::mem::take(&mut pending.late),
            spools: std::mem::take(&mut pending.spools),
            moment: pending.published,
            last: None,
        };
        let is_all = pending.pairs.count == 0 && pending.transitions.is_empty() && pending.syncs.is_empty();
        pending.taken = portion.len();
        portion.last = is_all.then_some(pending.noted);
        portion
    }

    /// Puts back a portion that could not be saved, before the changes that were added since; newer changes of the same
    /// pair or cluster win. Marks the writer as failing.
    pub(crate) fn put_back(&self, portion: Portion) {
        let mut pending = self.pending();
        pending.taken = 0;
        for (pair, is_gone) in portion.pairs {
            if !pending.pairs.has(&pair) {
                pending.pairs.insert(pair, is_gone);
            }
        }
        // One that was forgotten since stays so; one of the portion may have been opened again after that.
        let is_left = |cluster: &ClusterId| !pending.forgotten.contains(cluster);
        let clusters: Vec<ClusterId> = portion.clusters.into_iter().filter(is_left).collect();
        let heard: Vec<ClusterId> = portion.heard.into_iter().filter(is_left).collect();
        pending.clusters.extend(clusters);
        pending.heard.extend(heard);
        pending.heard_taken = None;
        pending.forgotten.extend(portion.forgotten);
        portion.transitions.into_iter().rev().for_each(|it| pending.transitions.push_front(it));
        pending.ended.extend(portion.ended);
        portion.syncs.into_iter().rev().for_each(|it| pending.syncs.push_front(it));
        let newer = std::mem::replace(&mut pending.late, portion.late);
        pending.late.extend(newer);
        for (cluster, mut spool) in portion.spools {
            if let Some(newer) = pending.spools.remove(&cluster) {
                spool = SpoolRecord { gap: newer.gap.or(spool.gap), ..newer };
            }
            pending.spools.insert(cluster, spool);
        }
        drop(pending);
        self.failed();
    }

    /// Marks the writer as failing.
    pub(crate) fn failed(&self) {
        self.progress.send_modify(|progress| progress.is_failing = true);
    }

    /// Records that a portion is saved; `last` is what [`Portion::last()`] returned. If that is `None`, wakes the
    /// writer for the rest.
    pub(crate) fn saved(&self, last: Option<u64>) {
        self.pending().taken = 0;
        self.progress.send_modify(|progress| {
            progress.is_failing = false;
            progress.saved = last.unwrap_or(progress.saved);
        });
        if last.is_none() {
            self.news.notify_one();
        }
    }

    /// Waits until all changes added before the call are saved, and returns true. Returns false as soon as a write
    /// fails, or at once if the last one failed.
    pub(crate) async fn wait(&self) -> bool {
        let noted = self.pending().noted;
        let mut progress = self.progress.subscribe();
        let end = progress.wait_for(|progress| progress.saved >= noted || progress.is_failing).await;
        end.is_ok_and(|progress| progress.saved >= noted)
    }

    pub(crate) fn counts(&self) -> JournalCounts {
        let pending = self.pending();
        let waiting = pending.pairs.count + pending.transitions.len() + pending.syncs.len();
        let waiting = waiting + pending.ended.len() + pending.late.len() + pending.spools.len();
        let waiting = waiting + pending.clusters.len() + pending.forgotten.len();
        JournalCounts { pending: waiting + pending.taken, lost: pending.lost }
    }
}

impl UnsavedChanges {
    /// Returns the state before a transition of a pair whose state was `before` as far as reports told: the one after its
    /// last late transition, unless a time is known in between in which the pair was not live.
    fn before(&mut self, pair: &PairRef, before: Option<PairState>) -> Option<PairState> {
        if self.late_states.is_empty() {
            return before;
        }
        let late = self.late_states.remove(&pair_id(&pair.0));
        match late {
            Some(late) if !before.as_ref().is_some_and(is_dark) => late,
            _ => before,
        }
    }

    /// Drops removals beyond the limit. Merges the transitions if they are too many for `pairs`, the number of pairs of
    /// the fleet, and drops the earliest until three quarters of the limit are left.
    fn bound(&mut self, pairs: usize) {
        if self.pairs.gone > MAX_GONE {
            // The next start shows them as lost until their clusters were heard.
            self.pairs.drop_gone();
        }
        let most = MAX_TRANSITIONS + 2 * pairs;
        if self.transitions.len() <= most {
            return;
        }
        let count = self.transitions.len();
        self.merge();
        // Those of pairs that come and go.
        let surplus = self.transitions.len().saturating_sub(most - most / 4);
        self.transitions.drain(..surplus);
        self.lost += (count - self.transitions.len()) as u64;
    }

    /// Keeps only the first and the last transition of each pair, and sets the state between them to "not recorded".
    fn merge(&mut self) {
        let mut of_pair: HashMap<PairRef, (PendingTransition, Option<PendingTransition>)> = HashMap::new();
        for transition in self.transitions.drain(..) {
            match of_pair.get_mut(&transition.pair) {
                Some((_, last)) => *last = Some(transition),
                None => drop(of_pair.insert(transition.pair.clone(), (transition, None))),
            }
        }
        let mut merged: Vec<PendingTransition> = Vec::with_capacity(2 * of_pair.len());
        for (first, last) in of_pair.into_values() {
            match last {
                None => merged.push(first),
                Some(last) => {
                    merged.push(PendingTransition { after: Some(unrecorded()), ..first });
                    merged.push(PendingTransition { before: Some(unrecorded()), ..last });
                }
            }
        }
        merged.sort_by_key(|transition| transition.at);
        self.transitions = merged.into();
    }
}

/// Returns true if two pairs share the bodies of both halves (by pointer) and have their fingerprints, so that the second
/// one need not be saved.
fn is_same(one: &Pair, other: &Pair) -> bool {
    fn is_same<T>(one: &KeptHalf<T>, other: &KeptHalf<T>) -> bool {
        Arc::ptr_eq(&one.body, &other.body) && one.fingerprint == other.fingerprint
    }
    let is_same_observed = match (&one.observed, &other.observed) {
        (Some((_, one)), Some((_, other))) => is_same(one, other),
        (None, None) => true,
        _ => false,
    };
    is_same_observed && is_same(&one.declared, &other.declared)
}

impl Portion {
    fn len(&self) -> usize {
        let of_clusters = self.clusters.len() + self.forgotten.len();
        let of_spools = self.late.len() + self.spools.len();
        self.pairs.len()
            + of_clusters
            + self.transitions.len()
            + self.ended.len()
            + self.syncs.len()
            + of_spools
    }

    /// Makes the batch that saves this portion, without its `clusters` and `heard`.
    pub(crate) fn batch(&self) -> Batch {
        let mut batch = Batch {
            forgotten: self.forgotten.iter().cloned().collect(),
            transitions: self.ended.clone(),
            syncs: self.syncs.clone(),
            spools: self.spools.values().cloned().collect(),
            recorded: self.last.and(self.moment).map(|moment| moment.now),
            ..Batch::default()
        };
        batch.transitions.extend(self.late.iter().cloned());
        for PendingTransition { pair, at, before, after } in &self.transitions {
            let pair = pair_id(&pair.0);
            let (before, after) = (before.clone(), after.clone());
            batch.transitions.push(PairTransition { pair, at: *at, before, after });
        }
        let Some(moment) = self.moment else { return batch };
        for (PairRef(pair), is_gone) in &self.pairs {
            match is_gone {
                true => drop(batch.gone.insert(pair_id(pair))),
                false => batch.pairs.push(record(pair, moment)),
            }
        }
        batch
    }

    /// Returns the number of the last change if this portion and those before it hold all changes, else `None`.
    pub(crate) fn last(&self) -> Option<u64> {
        self.last
    }
}

fn record(pair: &Pair, moment: HubTime) -> PairRecord {
    // What a store does not keep no fingerprint may stand for.
    fn half<T: Clone>(kept: &KeptHalf<T>, unobserved: Unobserved, moment: HubTime) -> SavedHalf<T> {
        let fingerprint = Some(kept.fingerprint).filter(|it| *it != 0 && unobserved.is_empty());
        let (body, received) = (Box::new((*kept.body).clone()), time_of(kept.received, moment));
        SavedHalf { body, fingerprint, received }
    }
    let observed = pair.observed.as_ref().map(|(_, kept)| half(kept, kept.body.unobserved, moment));
    let declared = Some(half(&pair.declared, pair.declared.body.unobserved, moment));
    PairRecord { id: pair_id(pair), declared, observed }
}

/// Converts the moment `at` to wall-clock time, given the present `moment`. A later `at` counts as `moment`.
pub(crate) fn time_of(at: Duration, moment: HubTime) -> Timestamp {
    let passed = SignedDuration::try_from(moment.at.saturating_sub(at)).unwrap_or_default();
    moment.now.checked_sub(passed).unwrap_or(Timestamp::MIN)
}

/// Converts a wall-clock time to a moment of the hub's clock, given the present `moment`: 0 for a time before the
/// beginning of that clock, `moment` for a later time.
pub(crate) fn moment_of(time: Timestamp, moment: HubTime) -> Duration {
    let passed = Duration::try_from(moment.now.duration_since(time)).unwrap_or_default();
    moment.at.saturating_sub(passed)
}

#[cfg(test)]
mod tests;
