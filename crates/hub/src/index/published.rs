//! The immutable state of a fleet that the index publishes for its readers.
//!
//! Each state shares with the one before what did not change: a report about one cluster copies the list of that
//! cluster's pairs, and the list of clusters.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use taffrail_api::ErrorRow;
use taffrail_api::report::{AppId, ClusterReport, Received, Vitals};
use taffrail_apps::ClusterId;

use super::names::{NameTable, Names};
use super::pair::{Pair, Place, Summary, order};
use crate::fleet::KnownCluster;

/// A fleet as the index published it. It does not change; only freshness depends on the moment at which it is
/// read.
#[derive(Debug, Default)]
pub struct PublishedFleet {
    /// The number of the publication: 0 before the first.
    pub(crate) version: u64,
    /// The clusters by their places, with gaps where one was forgotten.
    pub(crate) clusters: Vec<Option<Arc<PublishedCluster>>>,
    pub(crate) places: Arc<HashMap<ClusterId, Place>>,
    pub(crate) names: Arc<NameTable>,
    pub(crate) unheard: Arc<UnheardClusters>,
}

/// The clusters that a source is about to report, and of which it has told nothing yet.
#[derive(Debug, Default)]
pub(crate) struct UnheardClusters {
    pub(crate) names: Vec<String>,
    /// The moment since when they are expected.
    pub(crate) since: Duration,
}

/// A cluster, with the pairs whose objects it holds.
#[derive(Debug)]
pub(crate) struct PublishedCluster {
    pub(crate) id: ClusterId,
    /// The moment at which the first stream about the cluster was opened.
    pub(crate) opened: Duration,
    pub(crate) sources: Vec<PublishedSource>,
    pub(crate) pairs: Arc<ClusterPairs>,
}

/// The report of one source about a cluster as a whole.
#[derive(Debug, Clone)]
pub(crate) struct PublishedSource {
    pub(crate) vitals: Vitals,
    pub(crate) facts: Arc<ClusterReport>,
    pub(crate) errors: Arc<[ErrorRow]>,
    pub(crate) is_whole: bool,
    /// The number of halves that were refused.
    pub(crate) refused: usize,
}

/// The pairs of a cluster, in the order of lists.
#[derive(Debug, Default)]
pub(crate) struct ClusterPairs {
    pub(crate) pairs: Vec<Arc<Pair>>,
    pub(crate) summaries: Vec<Summary>,
    /// The number of pairs whose target no source reports.
    pub(crate) strays: usize,
    /// The number of pairs that another cluster declares.
    pub(crate) guests: usize,
}

/// The change of one pair.
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

    /// Iterates over the clusters, in the order in which they were opened.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Place, &Arc<PublishedCluster>)> {
        self.clusters.iter().enumerate().filter_map(|(place, cluster)| Some((place, cluster.as_ref()?)))
    }

    /// Returns the number of the publication: 0 before the first.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns the number of apps in all clusters.
    pub fn pairs(&self) -> usize {
        self.all().map(|(_, cluster)| cluster.pairs.pairs.len()).sum()
    }
}

impl PublishedCluster {
    /// Returns the cluster with other pairs.
    pub(crate) fn with(&self, pairs: Arc<ClusterPairs>) -> PublishedCluster {
        let PublishedCluster { id, opened, sources, .. } = self;
        PublishedCluster { id: id.clone(), opened: *opened, sources: sources.clone(), pairs }
    }
}

impl PublishedSource {
    pub(crate) fn all(known: &KnownCluster) -> Vec<PublishedSource> {
        let source = |source: &crate::fleet::Source| PublishedSource {
            vitals: source.received.vitals(),
            facts: Arc::clone(source.received.facts()),
            errors: errors(&source.received),
            is_whole: source.received.is_whole(),
            refused: source.received.refused(),
        };
        known.sources.iter().map(source).collect()
    }
}

/// Returns the failures that a source reported, with one for each limit that its reports exceeded.
fn errors(received: &Received) -> Arc<[ErrorRow]> {
    let errors = received.errors();
    if received.cut() == 0 {
        return Arc::clone(errors);
    }
    let message = format!(
        "texts or labels in {} reports about apps are too long or too many, and are cut",
        received.cut()
    );
    let (cluster, scope) = (received.facts().name.clone(), "cluster".to_owned());
    let cut = ErrorRow { cluster, scope, reason: "TooLong".to_owned(), message };
    [cut].into_iter().chain(errors.iter().cloned()).collect()
}

impl ClusterPairs {
    /// Makes the list from pairs in any order.
    pub(crate) fn new(mut pairs: Vec<Arc<Pair>>, names: &mut Names) -> ClusterPairs {
        pairs.sort_by(|one, other| one.order(&other.app));
        let summaries = pairs.iter().map(|pair| Summary::of(pair, names)).collect();
        let strays = pairs.iter().filter(|pair| pair.target.is_none()).count();
        let is_guest = |pair: &&Arc<Pair>| pair.shown() != pair.home.cluster;
        let guests = pairs.iter().filter(is_guest).count();
        ClusterPairs { pairs, summaries, strays, guests }
    }

    /// Returns the list after changes to pairs of this cluster, in any order.
    pub(crate) fn changed(&self, changes: &[PairChange], names: &mut Names) -> ClusterPairs {
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

    /// Returns the position of an app; `None` if the cluster does not have it.
    pub(crate) fn find(&self, app: &AppId) -> Option<usize> {
        self.pairs.binary_search_by(|pair| pair.order(app)).ok()
    }

    /// Returns the position of the first pair after an app in the order of lists.
    pub(crate) fn after(&self, app: &AppId) -> usize {
        self.pairs.partition_point(|pair| order(&pair.app, app).is_le())
    }

    pub(crate) fn get(&self, at: usize) -> Option<(&Arc<Pair>, &Summary)> {
        Some((self.pairs.get(at)?, self.summaries.get(at)?))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Arc<Pair>, &Summary)> {
        self.pairs.iter().zip(&self.summaries)
    }
}
