//! Clusters that come, change and go while others are watched.

use std::collections::BTreeMap;
use std::time::Duration;

use taffrail_apps::{Objects as _, ScopeError, Snapshot};
use taffrail_cluster::Memory;
use tokio::time::Instant;

use super::light::own_member;
use super::{FleetWatcher, FollowedCluster};
use crate::members::Member;
use crate::rows::KeptRows;

/// The number of a watched cluster, by which events name it. No number is given twice, so that an event about a cluster
/// that is gone, or that was replaced, is never taken for one about another cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct MemberNumber(u64);

/// The numbers of two clusters that report the same identity, first that of the cluster with the higher index in the
/// fleet.
pub(super) type MemberPair = (MemberNumber, MemberNumber);

/// Source of the numbers of clusters; gives each number once.
#[derive(Debug, Default)]
pub(super) struct MemberNumbers(u64);

impl MemberNumbers {
    pub(super) fn next(&mut self) -> MemberNumber {
        self.0 += 1;
        MemberNumber(self.0)
    }
}

impl FleetWatcher {
    /// Returns the index of the cluster with this number; `None` if it is not watched any more.
    pub(super) fn place_of(&self, number: MemberNumber) -> Option<usize> {
        self.clusters.iter().position(|following| following.number == number)
    }

    /// Returns the index of the cluster with this name; `None` if it is not watched.
    pub(super) fn place_named(&self, name: &str) -> Option<usize> {
        self.fleet.snapshots.iter().position(|snapshot| snapshot.name() == name)
    }

    /// Starts to watch a cluster: replaces the watched one of the same name, whose objects are dropped; if there is
    /// none, inserts it at the index `at`, or at the end if `at` is beyond it. One whose context is unusable is only
    /// shown with its failure.
    pub(crate) fn set_member(&mut self, member: Member, at: usize) {
        let number = self.numbers.next();
        let unusable = member.context.as_ref().err().cloned();
        let is_usable = unusable.is_none();
        let known = self.place_named(&member.name);
        let full = || self.clusters.iter().filter(|following| !following.is_light).count();
        let is_light = known.map_or_else(
            || self.light.takes(&member.name, full()),
            |at| self.clusters.get(at).is_some_and(|following| following.is_light),
        );
        let following = FollowedCluster::new(number, member, is_light, Instant::now() + self.timeout);
        let snapshot = unusable.map_or_else(|| following.unread(), |failure| following.lost(failure));
        let at = match known {
            Some(at) => {
                self.clusters[at] = following;
                self.forget_snapshot(at);
                self.fleet.snapshots[at] = snapshot;
                at
            }
            None => {
                let at = at.min(self.clusters.len());
                self.clusters.insert(at, following);
                self.fleet.snapshots.insert(at, snapshot);
                at
            }
        };
        if is_usable {
            self.connect(at, Duration::ZERO);
        }
        self.members_changed();
    }

    /// Continues to watch a cluster, with the credentials of `member`, if its name and its server are the same and it
    /// is connected; else changes nothing and returns false.
    pub(crate) fn renew_member(&mut self, member: &Member) -> bool {
        let known = self.clusters.iter_mut().find(|following| following.member.name == member.name);
        let Some(following) = known else { return false };
        let (Ok(before), Ok(context)) = (&following.member.context, &member.context) else { return false };
        let Some(feeds) = following.feeds.as_mut().filter(|_| before.is_same_server(context)) else {
            return false;
        };
        let own = own_member(member.clone(), following.is_light);
        if let Ok(context) = &own.context {
            feeds.renew((**context).clone());
        }
        following.member = own;
        true
    }

    /// Sets the labels of the cluster with this name; does nothing if it is not watched.
    pub(crate) fn label_member(&mut self, name: &str, labels: &BTreeMap<String, String>) {
        let known = self.clusters.iter_mut().zip(&mut self.fleet.snapshots);
        for (following, snapshot) in known.filter(|(_, snapshot)| snapshot.name() == name) {
            following.member.labels.clone_from(labels);
            snapshot.set_labels(labels.clone());
        }
    }

    /// Ends the watches of the cluster with this name and removes its snapshot; does nothing if it is not watched.
    pub(crate) fn remove_member(&mut self, name: &str) {
        let Some(at) = self.place_named(name) else { return };
        self.forget_snapshot(at);
        self.clusters.remove(at);
        self.fleet.snapshots.remove(at);
        self.members_changed();
    }

    /// Removes from all snapshots the results of comparing them with the cluster with this index.
    fn forget_snapshot(&mut self, at: usize) {
        let name = self.fleet.snapshots[at].name().to_owned();
        self.fleet.snapshots.iter_mut().for_each(|other| other.forget_same_as(&name));
    }

    /// Marks all clusters to be planned again and all rows to be computed again, after clusters were added, changed or
    /// removed.
    fn members_changed(&mut self) {
        Memory::process().expect(self.clusters.len());
        let numbers: Vec<MemberNumber> = self.clusters.iter().map(|following| following.number).collect();
        self.compared.retain(|(one, other), _| numbers.contains(one) && numbers.contains(other));
        self.asked.follow = self.asked.declarations && self.clusters.len() > 1;
        self.clusters.iter_mut().for_each(|following| following.changed = true);
        self.fleet.rows = Some(KeptRows::new(self.fleet.labels.clone()));
        (self.has_moved, self.has_news) = (true, true);
    }

    /// Returns the snapshots, in the order of the clusters.
    pub(crate) fn snapshots(&self) -> &[Snapshot] {
        &self.fleet.snapshots
    }

    /// Returns true if something changed since the last call that may affect which Secrets of the cluster with this
    /// index name other clusters.
    pub(crate) fn take_may_name_others(&mut self, at: usize) -> bool {
        self.clusters.get_mut(at).is_some_and(|following| std::mem::take(&mut following.may_name_others))
    }

    /// Reports the errors `now` of the cluster with this index, and retracts those of `before` that are not among them.
    pub(crate) fn report_errors(&mut self, at: usize, before: &[ScopeError], now: &[ScopeError]) {
        let Some(snapshot) = self.fleet.snapshots.get_mut(at) else { return };
        for error in before.iter().filter(|error| !now.contains(error)) {
            snapshot.retract_error(error);
            self.has_news = true;
        }
        for error in now {
            if !snapshot.errors().contains(error) {
                snapshot.report(error.clone());
                self.has_news = true;
            }
        }
    }
}
