//! Whether two names are those of one cluster: the identity that both give is no proof, for a copy gives it too.

use std::time::Duration;

use taffrail_apps::{Body, Objects, Read, Renewals, Snapshot, Target};
use taffrail_cluster::Cluster;
use taffrail_status::json::OwnedDocument;

use super::live::read_one;

/// How long what two clusters renew is looked at: the controllers of Kubernetes renew theirs every two seconds.
const PATIENCE: Duration = Duration::from_millis(2500);

/// How long between two looks.
const PAUSE: Duration = Duration::from_millis(500);

/// The places of two clusters that give one identity at different addresses, the later one first.
pub(super) fn pairs(snapshots: &[&Snapshot]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for (place, snapshot) in snapshots.iter().enumerate() {
        let twin = |other: &&Snapshot| other.id() == snapshot.id() && other.servers() != snapshot.servers();
        let before = snapshots.iter().take(place).position(twin).filter(|_| snapshot.id().is_some());
        pairs.extend(before.map(|before| (place, before)));
    }
    pairs
}

/// Whether two clusters renew the same Leases; nothing where neither renews any.
///
/// A cluster whose Leases may not be read is another one: whoever answers for it chooses what may be read.
pub(super) async fn compare(one: &Cluster, other: &Cluster) -> Option<bool> {
    let mut renewals = Renewals::default();
    let started = tokio::time::Instant::now();
    loop {
        for cluster in [one, other] {
            let Some(leases) = leases(cluster).await else { return Some(false) };
            if let Some(found) = renewals.read(&leases) {
                return Some(found);
            }
        }
        let elapsed = started.elapsed();
        if elapsed >= PATIENCE && renewals.are_still() {
            return None;
        }
        // What moved in one of them moves in the other by the next look, if they are one.
        if elapsed >= PATIENCE * 2 {
            return Some(false);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn leases(cluster: &Cluster) -> Option<Vec<OwnedDocument>> {
    let read = Read {
        group: "coordination.k8s.io".to_owned(),
        version: "v1".to_owned(),
        kind: "Lease".to_owned(),
        plural: "leases".to_owned(),
        namespace: Some("kube-system".to_owned()),
        target: Target::List { labels: None, fields: None },
        body: Body::Whole,
    };
    read_one(cluster, &read).await.ok().flatten().map(|(documents, _)| documents)
}
