//! The objects of a cluster that stand for other clusters, in reports about it.

use std::collections::HashMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taffrail_apps::{Objects, StandingObject, declared_each, standing};
use taffrail_object::ObjectKey;
use taffrail_status::{ActiveRules, MAX_MESSAGE, NamedCluster, Status, cut};

/// The maximum number of objects that stand for other clusters in the report about one cluster; the others are dropped.
pub const MAX_MANAGED: usize = 1_000;

/// The maximum length of their texts together, in bytes.
const MAX_BYTES: usize = 96 * 1024;

/// An object of a cluster that stands for another cluster, such as a `Cluster` of Cluster API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedCluster {
    /// The object.
    pub object: ObjectKey,
    /// Its status by the rules.
    pub status: Status,
    /// Its message; empty if it is Current.
    pub message: String,
    /// The names of the cluster for which it stands: those that prove it, and those that claim it.
    pub named: NamedCluster,
}

impl ManagedCluster {
    /// Lists the objects of `cluster` that stand for other clusters with their statuses by `rules`, and counts those beyond
    /// the limits of a report.
    pub fn of(
        cluster: &dyn Objects,
        rules: &ActiveRules<'_>,
        now: Timestamp,
    ) -> (Vec<ManagedCluster>, usize) {
        let mut found = standing(cluster, rules.rules);
        let count = found.len();
        found.truncate(MAX_MANAGED);
        let keys: Vec<ObjectKey> = found.iter().map(|it| it.object.clone()).collect();
        let judged = match keys.is_empty() {
            true => Vec::new(),
            false => declared_each(cluster, &keys, rules, now).apps,
        };
        let judged: HashMap<&ObjectKey, (Status, &str)> = judged
            .iter()
            .filter_map(|app| Some((&*app.resources.first()?.key, (app.effective(), &*app.message))))
            .collect();
        let object = |StandingObject { object, named }: StandingObject| {
            let (status, message) = judged.get(&object).copied().unwrap_or((Status::Unknown, ""));
            let message = if status == Status::Current { String::new() } else { cut(message).into_owned() };
            ManagedCluster { object, status, message, named }
        };
        let mut managed: Vec<ManagedCluster> = found.into_iter().map(object).collect();
        limit(&mut managed);
        let left_out = count - managed.len();
        (managed, left_out)
    }

    fn size(&self) -> usize {
        let ManagedCluster { object, message, named, .. } = self;
        let ObjectKey { group, kind, namespace, name } = object;
        let texts = [group, kind, namespace, name, message].into_iter().map(String::len).sum::<usize>();
        texts + named.observed.size() + named.claimed.size()
    }
}

/// Drops names beyond their limits, and the last objects beyond [`MAX_MANAGED`] or [`MAX_BYTES`]; cuts messages. Returns true
/// if it dropped or cut anything.
pub(super) fn limit(managed: &mut Vec<ManagedCluster>) -> bool {
    let (count, mut bytes, mut is_cut) = (managed.len(), 0, false);
    managed.truncate(MAX_MANAGED);
    for own in &mut *managed {
        is_cut |= own.named.observed.limit() | own.named.claimed.limit();
        if own.message.len() > MAX_MESSAGE {
            own.message = cut(own.message.as_str()).into_owned();
            is_cut = true;
        }
    }
    let kept = managed.iter().take_while(|own| {
        bytes += own.size();
        bytes <= MAX_BYTES
    });
    let kept = kept.count();
    managed.truncate(kept);
    is_cut || managed.len() < count
}
