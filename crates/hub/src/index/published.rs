//! The immutable state of a fleet that the index publishes for its readers.
//!
//! Each state shares unchanged parts with the one before: a report about one app copies only a part of the list of its
//! cluster's pairs, their summaries, and a part of the list of clusters.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use taffrail_api::ErrorRow;
use taffrail_api::report::{AppId, ClusterReport, Received};
use taffrail_apps::ClusterId;

use super::classes::{ClassCounter, PairClasses};
use super::names::{NameTable, Names};
use super::pair::{ListedPair, Pair, Place, Summary};
use super::shared_list::SharedList;
use crate::clock::HubTime;
use crate::fleet::KnownCluster;

/// If more than a quarter of a cluster's pairs change, its list is made again instead of changed.
const MAX_SHARE: usize = 4;

/// If more pairs than this join or leave a cluster at once, its list is made again: each of them moves all pairs after
/// its place.
const MAX_MOVES: usize = 100;

/// An immutable state of the fleet, as the index published it. Freshness is not part of it: a
/// [`FleetView`](super::FleetView) adds it for a moment.
#[derive(Debug, Default)]
pub struct PublishedFleet {
    /// The number of the publication: 0 before the first.
    pub(crate) version: u64,
    /// The moment at which the index was made; `None` before the first publication.
    pub(crate) begun: Option<HubTime>,
    /// The clusters, indexed by place; `None` at places of forgotten clusters.
    pub(crate) clusters: SharedList<Option<Arc<PublishedCluster>>>,
    /// The number of pairs in all clusters.
    pub(crate) pairs: usize,
    /// The number of pairs whose target cluster the fleet does not have.
    pub(crate) strays: usize,
    /// The places of the clusters that show pairs of others: such a pair also changes when its home does.
    pub(crate) hosts: Arc<BTreeSet<Place>>,
    pub(crate) called: Arc<CalledClusters>,
    pub(crate) places: Arc<HashMap<ClusterId, Place>>,
    pub(crate) names: Arc<NameTable>,
    pub(crate) unheard: Arc<UnheardClusters>,
}

/// The names of the expected clusters about which no source has reported yet, in the order of expectation, each with
/// the moment of the hub's clock since which it is expected.
#[derive(Debug, Default)]
pub(crate) struct UnheardClusters(pub(crate) Vec<(String, Duration)>);

impl UnheardClusters {
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(unheard, _)| unheard == name)
    }
}

/// The places of clusters by each name and alias that any source of theirs reports.
#[derive(Debug, Clone, Default)]
pub(crate) struct CalledClusters(HashMap<String, Vec<Place>>);

impl CalledClusters {
    pub(crate) fn places(&self, name: &str) -> &[Place] {
        self.0.get(name).map_or(&[], |places| places)
    }

    /// Replaces the names of the cluster at `place`, which had the sources `old`, by those that the sources `new`
    /// report; `None` if there was or is no such cluster.
    pub(crate) fn rename(
        called: &mut Arc<CalledClusters>,
        place: Place,
        old: Option<&PublishedCluster>,
        new: Option<&PublishedCluster>,
    ) {
        let [old, new] = [old, new].map(|cluster| cluster.map_or(&[][..], |cluster| &*cluster.sources));
        let mut both = old.iter().zip(new);
        if old.len() == new.len() && both.all(|(old, new)| Arc::ptr_eq(&old.facts, &new.facts)) {
            return;
        }
        let names = |sources: &[PublishedSource]| -> BTreeSet<String> {
            let facts = sources.iter().map(|source| &source.facts);
            facts.flat_map(|facts| facts.aliases.iter().chain([&facts.name])).cloned().collect()
        };
        let (old, new) = (names(old), names(new));
        if old == new {
            return;
        }
        let CalledClusters(called) = Arc::make_mut(called);
        for name in old.difference(&new) {
            if let Some(places) = called.get_mut(name) {
                places.retain(|other| *other != place);
                if places.is_empty() {
                    called.remove(name);
                }
            }
        }
        for name in new.difference(&old) {
            let places = called.entry(name.clone()).or_default();
            places.insert(places.partition_point(|other| *other < place), place);
        }
    }
}

/// A cluster with the pairs that its list shows: those that target it, and its own with unknown targets.
#[derive(Debug)]
pub(crate) struct PublishedCluster {
    pub(crate) id: ClusterId,
    pub(crate) place: Place,
    /// The moment of the hub's clock at which the cluster was added.
    pub(crate) opened: Duration,
    pub(crate) sources: Arc<[PublishedSource]>,
    pub(crate) pairs: Arc<ClusterPairs>,
}

/// The latest facts and errors that one source reported about a cluster as a whole. Its signs of life come far more
/// often: a [`FleetView`](super::FleetView) has them.
#[derive(Debug, Clone)]
pub(crate) struct PublishedSource {
    pub(crate) name: Arc<str>,
    pub(crate) facts: Arc<ClusterReport>,
    pub(crate) errors: Arc<[ErrorRow]>,
    pub(crate) is_whole: bool,
    /// The number of halves that the hub refused, as [`Received::refused`] counts them.
    pub(crate) refused: usize,
}

/// The pairs of a cluster, sorted by namespace, name, delivery and home, with their summaries at the same indices.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClusterPairs {
    pub(crate) pairs: SharedList<Arc<Pair>>,
    pub(crate) summaries: Vec<Summary>,
    pub(crate) classes: PairClasses,
    /// The number of pairs whose target cluster the fleet does not have.
    pub(crate) strays: usize,
    /// The number of pairs that another cluster declares.
    pub(crate) guests: usize,
}

/// The change of one pair in the list of the cluster at `place`: `before` is `None` if it is new there, `after` if it
/// left.
#[derive(Debug, Clone)]
pub(crate) struct PairChange {
    pub(crate) place: Place,
    pub(crate) before: Option<Arc<Pair>>,
    pub(crate) after: Option<Arc<Pair>>,
}

impl PublishedFleet {
    pub(crate) fn cluster(&self, place: Place) -> Option<&Arc<PublishedCluster>> {
        self.clusters.get(place)?.as_ref()
    }

    /// Iterates over the clusters with their places, the first opened first.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Place, &Arc<PublishedCluster>)> {
        self.clusters.iter().enumerate().filter_map(|(place, cluster)| Some((place, cluster.as_ref()?)))
    }

    /// Iterates over the clusters at `places`, or over all, with their places.
    pub(crate) fn among<P: IntoIterator<Item = Place>>(
        &self,
        places: Option<P>,
    ) -> impl Iterator<Item = (Place, &Arc<PublishedCluster>)> + use<'_, P> {
        let all = places.is_none().then(|| self.all());
        let some = places.into_iter().flatten().filter_map(|place| Some((place, self.cluster(place)?)));
        all.into_iter().flatten().chain(some)
    }

    /// Iterates over the clusters at `places`, and those that show pairs of other clusters, each once.
    pub(crate) fn with_hosts(
        &self,
        places: impl IntoIterator<Item = Place>,
    ) -> impl Iterator<Item = (Place, &Arc<PublishedCluster>)> {
        let places: BTreeSet<Place> = places.into_iter().chain(self.hosts.iter().copied()).collect();
        places.into_iter().filter_map(|place| Some((place, self.cluster(place)?)))
    }

    /// Returns the places of all clusters.
    pub(crate) fn all_places(&self) -> Vec<Place> {
        self.all().map(|(place, _)| place).collect()
    }

    /// Returns the number of the publication: 0 before the first.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns the number of pairs in all clusters: an app counts once for each of its target clusters.
    pub fn pairs(&self) -> usize {
        self.pairs
    }
}

impl PublishedCluster {
    /// Returns a copy of the cluster with these pairs in place of its own.
    pub(crate) fn with(&self, pairs: Arc<ClusterPairs>) -> PublishedCluster {
        let PublishedCluster { id, place, opened, sources, .. } = self;
        PublishedCluster {
            id: id.clone(),
            place: *place,
            opened: *opened,
            sources: Arc::clone(sources),
            pairs,
        }
    }
}

impl PublishedSource {
    pub(crate) fn all(known: &KnownCluster) -> Arc<[PublishedSource]> {
        let source = |source: &crate::fleet::Source| PublishedSource {
            name: Arc::clone(&source.name),
            facts: Arc::clone(source.received.facts()),
            errors: errors(&source.received),
            is_whole: source.received.is_whole(),
            refused: source.received.refused(),
        };
        known.sources.iter().map(source).collect()
    }
}

/// Returns the errors that a source reported, after one that says how many of its halves were cut, if any were.
fn errors(received: &Received) -> Arc<[ErrorRow]> {
    let errors = received.errors();
    if received.cut() == 0 {
        return Arc::clone(errors);
    }
    let message = format!(
        "the hub shortened {} reports about apps, because their texts or labels are too long or too many",
        received.cut()
    );
    let (cluster, scope) = (received.facts().name.clone(), "cluster".to_owned());
    let cut = ErrorRow { cluster, scope, reason: "TooLong".to_owned(), message };
    [cut].into_iter().chain(errors.iter().cloned()).collect()
}

/// Returns true if the fleet does not have the pair's target.
fn is_stray(pair: &Pair) -> bool {
    pair.target.is_none()
}

/// Returns true if another cluster declares the pair than the one that shows it.
fn is_guest(pair: &Pair) -> bool {
    pair.shown() != pair.home.cluster
}

impl ClusterPairs {
    /// Sorts the pairs, and makes their summaries; adds their names to `names`.
    pub(crate) fn new(mut pairs: Vec<Arc<Pair>>, names: &mut Names) -> ClusterPairs {
        pairs.sort_by(|one, other| one.order(&other.app));
        let mut classes = ClassCounter::default();
        let summaries =
            pairs.iter().map(|pair| Summary::of(pair, names, |class| classes.add(class))).collect();
        let strays = pairs.iter().filter(|pair| is_stray(pair)).count();
        let guests = pairs.iter().filter(|pair| is_guest(pair)).count();
        ClusterPairs {
            pairs: pairs.into_iter().collect(),
            summaries,
            classes: classes.finish(),
            strays,
            guests,
        }
    }

    /// Returns a new list with `changes` applied: without the pairs before, and with those after them.
    pub(crate) fn changed(&self, changes: &[PairChange], names: &mut Names) -> ClusterPairs {
        let moves = changes.iter().filter(|change| change.before.is_none() || change.after.is_none());
        let are_many = changes.len() > self.pairs.len() / MAX_SHARE || moves.count() > MAX_MOVES;
        if are_many || self.classes.is_sparse() {
            return self.rebuilt(changes, names);
        }
        let ClusterPairs { mut pairs, mut summaries, classes, mut strays, mut guests } = self.clone();
        let mut classes = ClassCounter::of(&classes);
        let mut moves = Vec::new();
        for change in changes {
            let Some(app) = change.after.as_ref().or(change.before.as_ref()).map(|pair| &pair.app) else {
                continue;
            };
            let found = pairs.search(|pair| pair.order(app)).ok();
            if let Some((old, summary)) = found.and_then(|at| Some((pairs.get(at)?, summaries.get(at)?))) {
                strays -= usize::from(is_stray(old));
                guests -= usize::from(is_guest(old));
                classes.remove(summary.class);
            }
            let Some(new) = &change.after else {
                moves.push((app, None));
                continue;
            };
            strays += usize::from(is_stray(new));
            guests += usize::from(is_guest(new));
            let summary = Summary::of(new, names, |class| classes.add(class));
            match found {
                Some(at) => {
                    pairs.replace(at, Arc::clone(new));
                    summaries.get_mut(at).into_iter().for_each(|slot| *slot = summary);
                }
                None => moves.push((app, Some((new, summary)))),
            }
        }
        if !moves.is_empty() {
            let mut all: Vec<Arc<Pair>> = pairs.iter().cloned().collect();
            for (app, new) in moves {
                match (all.binary_search_by(|pair| pair.order(app)), new) {
                    (Err(at), Some((pair, summary))) => {
                        all.insert(at, Arc::clone(pair));
                        summaries.insert(at, summary);
                    }
                    (Ok(at), None) => {
                        all.remove(at);
                        summaries.remove(at);
                    }
                    _ => {}
                }
            }
            pairs = all.into_iter().collect();
        }
        ClusterPairs { pairs, summaries, classes: classes.finish(), strays, guests }
    }

    /// Does the same as [`changed`](ClusterPairs::changed) by sorting all pairs and making all summaries again.
    fn rebuilt(&self, changes: &[PairChange], names: &mut Names) -> ClusterPairs {
        let gone = changes.iter().filter_map(|change| self.find(&change.before.as_ref()?.app));
        let mut is_kept = vec![true; self.pairs.len()];
        gone.for_each(|at| {
            if let Some(is_kept) = is_kept.get_mut(at) {
                *is_kept = false;
            }
        });
        let kept = self.pairs.iter().zip(is_kept).filter(|(_, is_kept)| *is_kept);
        let kept = kept.map(|(pair, _)| Arc::clone(pair));
        let new = changes.iter().filter_map(|change| change.after.clone());
        ClusterPairs::new(kept.chain(new).collect(), names)
    }

    /// Returns the index of an app; `None` if the list does not have it.
    pub(crate) fn find(&self, app: &AppId) -> Option<usize> {
        self.pairs.search(|pair| pair.order(app)).ok()
    }

    /// Returns the index of the first pair that sorts after `app`, which need not be in the list.
    pub(crate) fn after(&self, app: &AppId) -> usize {
        self.pairs.search(|pair| pair.order(app)).map_or_else(|at| at, |at| at + 1)
    }

    /// Returns the pair of an app; `None` if the list does not have it.
    pub(crate) fn listed_of(&self, app: &AppId) -> Option<ListedPair<'_>> {
        self.get(self.find(app)?)
    }

    pub(crate) fn get(&self, at: usize) -> Option<ListedPair<'_>> {
        self.listed((self.pairs.get(at)?, self.summaries.get(at)?))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = ListedPair<'_>> {
        self.pairs.iter().zip(&self.summaries).filter_map(|found| self.listed(found))
    }

    fn listed<'c>(&'c self, (pair, summary): (&'c Arc<Pair>, &'c Summary)) -> Option<ListedPair<'c>> {
        Some(ListedPair { pair, summary, class: self.classes.get(summary.class)? })
    }
}
