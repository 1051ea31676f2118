//! Reads chosen objects of a cluster once its kinds are discovered.

use jiff::Timestamp;
use taffrail_apps::wait::Selection;
use taffrail_apps::{KindCatalog, ReadQuery, Scope, Snapshot};
use taffrail_cluster::{Cluster, Discovery};
use taffrail_object::ObjectKey;
use taffrail_status::{ActiveRules, ClusterState as _};

use crate::connector::ClusterConnector;
use crate::error::Failure;
use crate::look::{begun, catalog, go_on};

/// The result of reading chosen objects of one cluster.
#[derive(Debug)]
pub struct ObjectLook {
    /// The objects and the evidence about them; for a cluster that does not answer, the error.
    pub snapshot: Snapshot,
    /// The kinds that the server serves; `None` if connecting or discovery failed.
    pub discovery: Option<Discovery>,
    /// The connection; `None` if connecting failed.
    pub cluster: Option<Cluster>,
}

impl ClusterConnector {
    /// Reads the single objects and selections of objects that `choose` returns once the kinds are known, in place of
    /// those in `asked`, and the evidence that `asked` needs about them.
    ///
    /// A group that could not be discovered is not an error of the snapshot, because it matters only if the user named
    /// a kind of it.
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
