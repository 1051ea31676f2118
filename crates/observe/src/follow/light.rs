//! Clusters that are read lightly: of these only what declares apps is watched, over one connection.

use std::time::Duration;

use taffrail_apps::{KindCatalog, ReadQuery, Snapshot, declaring_kinds};
use taffrail_cluster::Discovery;

use super::FollowedCluster;
use crate::error::Failure;
use crate::look::catalog;
use crate::members::{Member, is_like};

/// Interval at which the kinds of a cluster that is read lightly are discovered again, to find new ones that declare
/// apps.
pub(super) const LIGHT_REDISCOVERY: Duration = Duration::from_secs(15 * 60);

/// Maximum number of clusters read lightly that are connected to at one time; further ones wait. What connecting takes
/// for a moment is many times what a cluster then needs.
pub(super) const CONNECTING_AT_ONCE: usize = 32;

/// The choice of clusters that are read lightly. A cluster that is watched in full stays so, whatever others come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LightReach {
    /// Names, and patterns such as `edge-*`, of the clusters that are read lightly.
    pub chosen: Vec<String>,
    /// Maximum number of clusters that are watched in full; further ones are read lightly.
    pub full_limit: usize,
}

impl Default for LightReach {
    /// Chooses no cluster.
    fn default() -> LightReach {
        LightReach { chosen: Vec::new(), full_limit: usize::MAX }
    }
}

impl LightReach {
    /// Returns true if the cluster of this name is read lightly, where `full` others are watched in full.
    pub(super) fn takes(&self, name: &str, full: usize) -> bool {
        full >= self.full_limit || self.chosen.iter().any(|pattern| is_like(pattern, name))
    }
}

/// Returns the member as it is followed: one that is read lightly is connected to by one connection.
pub(super) fn own_member(member: Member, is_light: bool) -> Member {
    let one = |context: Box<taffrail_cluster::Context>| match is_light {
        true => Box::new(context.with_one_connection()),
        false => context,
    };
    Member { context: member.context.map(one), ..member }
}

impl FollowedCluster {
    /// Returns the snapshot of the cluster while it does not answer.
    pub(super) fn lost(&self, failure: Failure) -> Snapshot {
        let mut snapshot = self.member.lost(failure);
        snapshot.set_light(self.is_light);
        snapshot
    }

    /// Returns the snapshot of the cluster before it is connected to.
    pub(super) fn unread(&self) -> Snapshot {
        let mut snapshot = self.member.unread();
        snapshot.set_light(self.is_light);
        snapshot
    }

    /// Returns the kinds of the cluster that its snapshot needs, and keeps the discovery if it is watched in full.
    pub(super) fn take_discovery(&mut self, discovery: Discovery) -> KindCatalog {
        let kinds = catalog(&discovery);
        if self.is_light {
            return declaring_kinds(&kinds);
        }
        self.discovery = Some(discovery);
        kinds
    }

    /// Returns the part of the query `asked` that is read of the cluster.
    pub(super) fn query(&self, asked: &ReadQuery) -> ReadQuery {
        if !self.is_light {
            return asked.clone();
        }
        ReadQuery {
            declaring_only: true,
            declarations: asked.declarations,
            app_labels: asked.app_labels.clone(),
            namespace: asked.namespace.clone(),
            label_groups: false,
            evidence: false,
            ..ReadQuery::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_beyond_the_limit_and_chosen_ones_are_read_lightly() {
        let reach = LightReach { chosen: vec!["edge-*".to_owned()], full_limit: 2 };
        let taken = [("eu", 0), ("us", 1), ("ap", 2), ("edge-1", 0)];
        assert_eq!(taken.map(|(name, full)| reach.takes(name, full)), [false, false, true, true]);
        assert!(!LightReach::default().takes("eu", 1_000_000));
    }
}
