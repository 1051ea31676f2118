//! The part of the read plan for the cluster as a whole: its nodes, and its objects that stand for other clusters.

use taffrail_object::{GroupKind, Projection};
use taffrail_status::ActiveRules;

use super::read::Read;
use super::{Plan, list};
use crate::kinds::KindCatalog;
use crate::snapshot::Listed;

impl Plan<'_> {
    /// Plans the lists of the nodes, and of the kinds that stand for clusters by `rules`, if the query sets
    /// [`ReadQuery::cluster_status`](super::ReadQuery::cluster_status) and has no namespace.
    pub(super) fn cluster_status(&self, catalog: &KindCatalog, rules: &ActiveRules<'_>) -> Vec<Read> {
        if !self.asked.cluster_status || self.namespace.is_some() {
            return Vec::new();
        }
        let kinds = [GroupKind::new("", "Node")].into_iter().chain(rules.rules.cluster_kinds());
        let new = kinds.filter_map(|kind| {
            let is_new = self.snapshot.listed(&kind, None, Projection::Full) != Listed::Done;
            catalog.get(&kind).filter(|served| is_new && served.is_listable())
        });
        new.map(|served| list(served, None, None, Projection::Full)).collect()
    }
}
