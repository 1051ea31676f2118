//! Finds out which of the requested namespaces do not exist.

use std::sync::Arc;

use jiff::Timestamp;
use taffrail_apps::ReadQuery;
use taffrail_object::ObjectKey;
use taffrail_status::{ClusterState as _, Presence};

use crate::connector::ClusterConnector;
use crate::rules::FleetRules;

/// Reads `namespaces` in a cluster, and returns those that do not exist, in the given order. One that cannot be read is
/// not returned.
pub async fn absent_namespaces(
    live: ClusterConnector,
    namespaces: Arc<[String]>,
    now: Timestamp,
    rules: Arc<dyn FleetRules>,
) -> Vec<String> {
    let key = |name: &String| ObjectKey::new("", "Namespace", "", name.as_str());
    let keys: Vec<ObjectKey> = namespaces.iter().map(key).collect();
    let query = ReadQuery { declarations: false, label_groups: false, ..ReadQuery::default() };
    let look = live.read_objects(query, now, &rules.active(), |_, _| (keys, Vec::new())).await;
    let is_absent = |name: &&String| matches!(look.snapshot.get(key(name).as_ref()), Presence::Absent);
    namespaces.iter().filter(is_absent).cloned().collect()
}
