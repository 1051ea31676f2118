//! Finds out which live clusters are one.
//!
//! The rule: two contexts with one address are one cluster. Two addresses are one cluster only if the same certificate
//! authorities vouch for both servers ([`Cluster::is_verified_like`]), and the Leases that both renew prove it
//! ([`taffrail_apps::Renewals`]). Nothing else is proof, because the operator of a server chooses it: the UID of
//! `kube-system`, which a copy has too, objects, Leases that the server reads from the other cluster and passes on, and
//! Leases that may not be read, come late, never, or do not move. Such clusters are both shown, with a problem that
//! says that they have one identity.
//!
//! Each cluster is read by itself and charged for its own requests. A cluster that answers late proves nothing, and
//! takes no time from others.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use taffrail_apps::{Objects, Read, Renewals, Sameness, Snapshot, Target};
use taffrail_cluster::Cluster;
use taffrail_object::Projection;
use taffrail_object::json::OwnedDocument;
use tokio::time::Instant;

use crate::read::read_one;

/// Time after which a comparison ends without proof if neither cluster has renewed a Lease since it began: the
/// controllers of Kubernetes renew theirs every two seconds.
const PATIENCE: Duration = Duration::from_millis(2500);

/// Maximum duration of a comparison of two clusters, even if the caller allows more.
const MOST_PATIENCE: Duration = Duration::from_secs(5);

/// Pause between two reads of a cluster's Leases.
const PAUSE: Duration = Duration::from_millis(500);

/// Time limit of one read of the Leases. The longer a read takes, the less precisely its time is known.
const READ_WITHIN: Duration = Duration::from_secs(1);

/// Maximum number of Leases in `kube-system`; a cluster with more counts as one whose Leases cannot be read.
const MOST_LEASES: usize = 1000;

/// The indexes of two clusters in the fleet, the higher one first.
pub(crate) type Pair = (usize, usize);

/// Returns true if two clusters report one identity (UID of `kube-system`) at different addresses.
pub(crate) fn are_twins(one: &Snapshot, other: &Snapshot) -> bool {
    one.id().is_some() && one.id() == other.id() && one.servers() != other.servers()
}

/// Returns the pairs of clusters that report one identity at different addresses, as indexes in `snapshots`: the later
/// cluster, then the earlier.
pub(crate) fn pairs(snapshots: &[&Snapshot]) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (place, snapshot) in snapshots.iter().enumerate() {
        let before = snapshots.iter().take(place).enumerate();
        let twins = before.filter(|(_, other)| are_twins(snapshot, other));
        pairs.extend(twins.map(|(before, _)| (place, before)));
    }
    pairs
}

/// The results of comparing pairs of clusters.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    /// Each pair with the result of its comparison.
    pub(crate) pairs: Vec<(Pair, Sameness)>,
    /// The time that the requests to each cluster took, by its index.
    pub(crate) spent: BTreeMap<usize, Duration>,
}

/// Compares each pair of clusters: if the same certificate authorities vouch for both, reads the Leases of both
/// repeatedly, for at most `within` and [`MOST_PATIENCE`]; all other pairs are unproven. `clusters` has the connections
/// by index.
pub(crate) async fn compare(
    clusters: BTreeMap<usize, Cluster>,
    pairs: Vec<Pair>,
    within: Duration,
) -> Compared {
    let within = within.min(MOST_PATIENCE);
    let may_be_one = |(one, other): &Pair| match (clusters.get(one), clusters.get(other)) {
        (Some(one), Some(other)) => one.is_verified_like(other),
        _ => false,
    };
    let (open, unproven): (Vec<Pair>, Vec<Pair>) = pairs.into_iter().partition(may_be_one);
    let compared = Compared {
        pairs: unproven.into_iter().map(|pair| (pair, Sameness::Unproven)).collect(),
        ..Compared::default()
    };
    if open.is_empty() {
        return compared;
    }
    let (begun, count) = (Instant::now(), u32::try_from(clusters.len()).unwrap_or(u32::MAX));
    let clusters: BTreeMap<usize, Cluster> =
        clusters.into_iter().map(|(place, cluster)| (place, cluster.with_timeout(within))).collect();
    let mut comparison = Comparison { open, compared, ..Comparison::default() };
    let comparing = async {
        let mut readings = FuturesUnordered::new();
        for (number, (place, cluster)) in (0..).zip(&clusters) {
            // One after the other, so that one is read between two readings of another.
            let pause = PAUSE * number / count;
            readings.push(read(*place, cluster, pause, begun));
        }
        while let Some(reading) = readings.next().await {
            let place = reading.place;
            comparison.take(reading, begun.elapsed());
            if let Some(cluster) = clusters.get(&place).filter(|_| comparison.waits_for(place)) {
                readings.push(read(place, cluster, PAUSE, begun));
            }
        }
    };
    // What is not sure by then is not proved.
    let _ = tokio::time::timeout(within, comparing).await;
    let Comparison { open, mut compared, .. } = comparison;
    compared.pairs.extend(open.into_iter().map(|pair| (pair, Sameness::Unproven)));
    compared
}

/// A comparison of clusters in progress: the readings so far, and the results.
#[derive(Default)]
struct Comparison {
    /// The pairs for which nothing was proved yet.
    open: Vec<Pair>,
    renewals: BTreeMap<usize, Renewals>,
    compared: Compared,
}

impl Comparison {
    /// Compares a new reading of one cluster's Leases with the earlier ones of the other clusters, and moves the pairs
    /// that this decides to the results; `elapsed` is the time since the comparison began.
    fn take(&mut self, reading: Reading, elapsed: Duration) {
        let Reading { place, asked, answered, leases } = reading;
        let Comparison { open, renewals, compared } = self;
        *compared.spent.entry(place).or_default() += answered.saturating_sub(asked);
        let has_failed = match leases {
            LeaseRead::Read(leases) => {
                renewals.entry(place).or_default().read(asked, answered, &leases);
                false
            }
            LeaseRead::Late => false,
            LeaseRead::Unreadable => true,
        };
        open.retain(|&(later, earlier)| {
            if later != place && earlier != place {
                return true;
            }
            let found = match (renewals.get(&later), renewals.get(&earlier)) {
                (Some(one), Some(other)) => {
                    let is_over = elapsed >= PATIENCE && one.are_still() && other.are_still();
                    Some(one.compare(other)).filter(|found| *found != Sameness::Unproven || is_over)
                }
                _ => None,
            };
            let found = found.or(has_failed.then_some(Sameness::Unproven));
            compared.pairs.extend(found.map(|found| ((later, earlier), found)));
            found.is_none()
        });
    }

    /// Returns true if a pair with the cluster of this index is still undecided, so that its Leases must be read
    /// again.
    fn waits_for(&self, place: usize) -> bool {
        self.open.iter().any(|&(later, earlier)| later == place || earlier == place)
    }
}

/// The Leases of one cluster, and the times from the beginning of the comparison to their request and its answer.
struct Reading {
    place: usize,
    asked: Duration,
    answered: Duration,
    leases: LeaseRead,
}

/// The result of one read of a cluster's Leases.
enum LeaseRead {
    Read(Vec<OwnedDocument>),
    /// The answer did not arrive within [`READ_WITHIN`].
    Late,
    /// The read failed, such as because the user may not read the Leases, or there are more than [`MOST_LEASES`].
    Unreadable,
}

async fn read(place: usize, cluster: &Cluster, pause: Duration, begun: Instant) -> Reading {
    tokio::time::sleep(pause).await;
    let asked = begun.elapsed();
    let read = Read {
        group: "coordination.k8s.io".to_owned(),
        version: "v1".to_owned(),
        kind: "Lease".to_owned(),
        plural: "leases".to_owned(),
        namespace: Some("kube-system".to_owned()),
        target: Target::List { labels: None, fields: None },
        projection: Projection::Metadata,
    };
    let leases = match tokio::time::timeout(READ_WITHIN, read_one(cluster, &read)).await {
        Ok(Ok(Some((leases, _)))) if leases.len() <= MOST_LEASES => LeaseRead::Read(leases),
        Ok(_) => LeaseRead::Unreadable,
        Err(_) => LeaseRead::Late,
    };
    Reading { place, asked, answered: begun.elapsed(), leases }
}
