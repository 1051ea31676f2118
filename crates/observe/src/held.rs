//! Live clusters that are looked at again and again: what was last seen of one that does not answer is kept.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use taffrail_apps::{
    AppList, Asked, Freshness, FreshnessState, Objects, Sameness, Scope, ScopeError, Snapshot,
    wanted_elsewhere,
};
use taffrail_cluster::Cluster;
use taffrail_object::ObjectKey;
use taffrail_status::ActiveRules;

use crate::connector::ClusterConnector;
use crate::error::Failure;
use crate::look;
use crate::members::Member;
use crate::rows::KeptRows;
use crate::rules::FleetRules;
use crate::sameness::{self, Pair};

/// Clusters, with what was last read of each.
pub struct Held {
    asked: Asked,
    rules: Arc<dyn FleetRules>,
    timeout: Duration,
    members: Vec<Kept>,
    /// What is proved of clusters that give one identity: whether they are one.
    compared: BTreeMap<Pair, bool>,
    rows: KeptRows,
}

struct Kept {
    live: ClusterConnector,
    /// Whom to ask further, as long as it answers.
    cluster: Option<Cluster>,
    snapshot: Snapshot,
}

impl Held {
    /// Holds nothing yet of these clusters, each of which may take `timeout` to answer.
    pub fn new(members: Vec<Member>, timeout: Duration, asked: Asked, rules: Arc<dyn FleetRules>) -> Held {
        let asked = Asked { follow: asked.declarations && members.len() > 1, ..asked };
        let kept = |member: Member| {
            let snapshot = member
                .lost(Failure { reason: "NotRead".to_owned(), message: "it was not read yet".to_owned() });
            Kept { live: ClusterConnector { member, timeout }, cluster: None, snapshot }
        };
        Held {
            rows: KeptRows::new(asked.app_labels.clone()),
            asked,
            rules,
            timeout,
            members: members.into_iter().map(kept).collect(),
            compared: BTreeMap::new(),
        }
    }

    /// Reads those among the clusters anew that `wanted` names by their place, all at once; then of all what the apps of
    /// others deliver into them.
    pub async fn read(&mut self, wanted: impl Fn(usize) -> bool, now: Timestamp) {
        let Held { asked, rules, members, compared, rows, .. } = self;
        let reads = members.iter_mut().enumerate().filter(|(place, _)| wanted(*place));
        let rules = rules.active();
        join_all(reads.map(|(_, kept)| kept.read(asked, now, &rules))).await;
        compare(members, compared, self.timeout).await;
        if !asked.follow {
            return rows.note(members.iter_mut().map(|kept| &mut kept.snapshot));
        }
        let clusters: Vec<_> = members.iter().map(|kept| &kept.snapshot as &dyn Objects).collect();
        let mut elsewhere: BTreeMap<String, Vec<ObjectKey>> = wanted_elsewhere(&clusters);
        let further = members.iter_mut().filter_map(|kept| {
            let objects = elsewhere.remove(kept.snapshot.name())?;
            let cluster = kept.cluster.as_ref()?.with_timeout(self.timeout);
            let asked = Asked { objects, ..asked.clone() };
            let snapshot = &mut kept.snapshot;
            let rules = &rules;
            Some(async move { look::go_on(snapshot, &cluster, &asked, rules).await })
        });
        join_all(further).await;
        rows.note(members.iter_mut().map(|kept| &mut kept.snapshot));
    }

    /// The apps as they are judged at a time.
    pub fn apps(&self, now: Timestamp) -> AppList {
        self.rows.apps(&self.clusters(), &self.rules.active(), now)
    }

    /// The clusters, as views take them.
    pub fn clusters(&self) -> Vec<&dyn Objects> {
        self.members.iter().map(|kept| &kept.snapshot as &dyn Objects).collect()
    }
}

/// Finds out whether clusters that give one identity are one. That is asked again when one of them did not answer: another may
/// answer in its place.
async fn compare(members: &mut [Kept], compared: &mut BTreeMap<Pair, bool>, timeout: Duration) {
    let cluster = |at: usize| members.get(at)?.cluster.clone();
    compared.retain(|(place, before), _| cluster(*place).is_some() && cluster(*before).is_some());
    let snapshots: Vec<&Snapshot> = members.iter().map(|kept| &kept.snapshot).collect();
    let mut pairs = sameness::pairs(&snapshots);
    pairs.retain(|pair| !compared.contains_key(pair));
    let mut clusters = BTreeMap::new();
    pairs.retain(|&(place, before)| {
        let both = cluster(place).zip(cluster(before));
        both.map(|(one, other)| clusters.extend([(place, one), (before, other)])).is_some()
    });
    for (pair, found) in sameness::compare(clusters, pairs, timeout).await.pairs {
        if found != Sameness::Unproven {
            compared.insert(pair, found == Sameness::One);
        }
    }
    for ((place, before), is_same) in &*compared {
        let name = members[*before].snapshot.name().to_owned();
        members[*place].snapshot.set_same_as(name, *is_same);
    }
}

impl Kept {
    /// A connection of its own each time: that it can be made is what shows that the cluster is in reach.
    async fn read(&mut self, asked: &Asked, now: Timestamp, rules: &ActiveRules<'_>) {
        let read = async {
            let cluster = self.live.connect().await?;
            let snapshot = look::read(&self.live.member.name, &cluster, asked, now, rules).await?;
            Ok::<_, Failure>((cluster, snapshot))
        };
        match read.await {
            Ok((cluster, snapshot)) => {
                self.cluster = Some(cluster);
                self.snapshot.replace(snapshot);
            }
            Err(failure) => {
                self.cluster = None;
                self.lost(failure);
            }
        }
    }

    /// What was read of it stays, as what was last observed: nothing of it is known to be true now.
    fn lost(&mut self, failure: Failure) {
        let Some(at) = self.snapshot.freshness().observed_at else {
            self.snapshot.replace(self.live.member.lost(failure));
            return;
        };
        self.snapshot.set_freshness(Freshness { state: FreshnessState::Lost, observed_at: Some(at) });
        self.snapshot.retract(&Scope::Cluster);
        let Failure { reason, message } = failure;
        self.snapshot.report(ScopeError { scope: Scope::Cluster, reason, message });
    }
}
