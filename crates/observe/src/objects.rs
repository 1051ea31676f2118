//! Objects that can be named only when the kinds of their cluster are known.

use jiff::Timestamp;
use taffrail_apps::wait::Selection;
use taffrail_apps::{KindCatalog, ReadQuery, Scope, Snapshot};
use taffrail_cluster::{Cluster, Discovery};
use taffrail_object::ObjectKey;
use taffrail_status::{ActiveRules, ClusterState as _};

use crate::connector::ClusterConnector;
use crate::error::Failure;
use crate::look::{begun, catalog, go_on};

/// One cluster of which chosen objects were read.
#[derive(Debug)]
pub struct ObjectLook {
    /// The objects, and the evidence behind them; for a cluster that does not answer, the reason.
    pub snapshot: Snapshot,
    /// The kinds of the server, if they were discovered.
    pub discovery: Option<Discovery>,
    /// The connection, where there is one.
    pub cluster: Option<Cluster>,
}

impl ClusterConnector {
    /// Reads the objects that `choose` returns, single ones and selections, and the evidence that `asked` needs for
    /// them.
    ///
    /// A group that could not be discovered is not an error of the snapshot: it matters only if a kind of it was named.
    pub async fn read_objects(
        &self,
        asked: ReadQuery,
        now: Timestamp,
        rules: &ActiveRules<'_>,
        choose: impl FnOnce(&Cluster, &Discovery) -> (Vec<ObjectKey>, Vec<Selection>),
    ) -> ObjectLook {
        let lost = |failure: Failure, cluster| {
            let snapshot = Snapshot::lost(&*self.member.name, failure.reason, failure.message);
            ObjectLook { snapshot, discovery: None, cluster }
        };
        let cluster = match self.connect().await {
            Ok(cluster) => cluster,
            Err(failure) => return lost(failure, None),
        };
        let discovery = match cluster.discover().await {
            Ok(discovery) => discovery,
            Err(error) => {
                return lost(Failure::of_read(&error), Some(cluster));
            }
        };
        let mut snapshot = begun(&self.member.name, &cluster, now);
        snapshot.set_kinds(catalog(&discovery));
        for group in discovery.broken().iter().filter_map(|group| group.group()) {
            snapshot.retract(&Scope::Group(group.to_owned()));
        }
        snapshot.retract(&Scope::Group(KindCatalog::ALL_GROUPS.to_owned()));
        let (mut objects, selections) = choose(&cluster, &discovery);
        let first = ReadQuery { objects: objects.clone(), selections, ..asked };
        go_on(&mut snapshot, &cluster, &first, rules).await;
        // What stands behind those that a list brought is known only when they are.
        for Selection { kind, namespace, .. } in &first.selections {
            let all = snapshot.of_kind(&kind.group, &kind.kind, None).map(|observed| observed.key);
            let inside = all.filter(|key| namespace.as_ref().is_none_or(|own| *own == key.namespace));
            objects.extend(inside.map(|key| key.to_owned()));
        }
        let second = ReadQuery { objects, ..first };
        go_on(&mut snapshot, &cluster, &second, rules).await;
        ObjectLook { snapshot, discovery: Some(discovery), cluster: Some(cluster) }
    }
}
