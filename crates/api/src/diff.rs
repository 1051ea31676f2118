//! Changes between two answers, as a whole and row by row.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use taffrail_apps::trust::{CheckedCluster, FindingCategory};
use taffrail_apps::{Delivery, Freshness};
use taffrail_object::ObjectKey;

use crate::events::EventLikeness;
use crate::{
    AppDetail, AppName, AppRow, AppTree, ClusterRow, EventRow, Explanation, InClusters, List, ObjectRow,
    ResourceRow, TrustFinding, TrustReport,
};

/// An answer or a row of one, which is compared with an earlier one of the same subject.
pub trait Comparable: PartialEq {
    /// Returns true if the contents differ from those of `old`. A newer observation of the same contents is not a
    /// difference.
    fn differs(&self, old: &Self) -> bool {
        self != old
    }
}

/// A row of an answer, identified by a key that stays the same when its contents change.
pub trait KeyedRow: Clone + Comparable {
    /// The type of the key that identifies a row within an answer.
    type Key: Clone + Ord;

    /// Returns the key that identifies the row.
    fn key(&self) -> Self::Key;
}

/// The change of one row between two answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowChange<T, K> {
    /// A row whose key the old answer did not have.
    Added(T),
    /// A row whose contents changed; holds the new row.
    Changed(T),
    /// The key of a row that the new answer does not have.
    Removed(K),
}

/// Returns the changes that turn `old` into `new`: added and changed rows in the order of `new`, then the keys of
/// removed ones in the order of `old`.
///
/// Only the last of several rows with one key counts.
pub fn diff<T: KeyedRow>(old: &[T], new: &[T]) -> Vec<RowChange<T, T::Key>> {
    let known: BTreeMap<T::Key, &T> = old.iter().map(|row| (row.key(), row)).collect();
    let last: BTreeMap<T::Key, usize> = new.iter().enumerate().map(|(at, row)| (row.key(), at)).collect();
    let mut changes = Vec::new();
    for (at, row) in new.iter().enumerate() {
        let key = row.key();
        match known.get(&key) {
            _ if last.get(&key) != Some(&at) => {}
            None => changes.push(RowChange::Added(row.clone())),
            Some(old) if row.differs(old) => changes.push(RowChange::Changed(row.clone())),
            Some(_) => {}
        }
    }
    let mut gone = BTreeSet::new();
    let keys = old.iter().map(T::key).filter(|key| !last.contains_key(key) && gone.insert(key.clone()));
    changes.extend(keys.map(RowChange::Removed));
    changes
}

/// Applies `changes` to `rows`: changed rows keep their positions, added ones are appended, removed ones are dropped.
pub fn apply<T: KeyedRow>(rows: &mut Vec<T>, changes: Vec<RowChange<T, T::Key>>) {
    let mut places: BTreeMap<T::Key, usize> =
        rows.iter().enumerate().map(|(at, row)| (row.key(), at)).collect();
    let mut gone = BTreeSet::new();
    for change in changes {
        match change {
            RowChange::Added(row) | RowChange::Changed(row) => {
                match places.get(&row.key()).and_then(|at| rows.get_mut(*at)) {
                    Some(old) => *old = row,
                    None => {
                        places.insert(row.key(), rows.len());
                        rows.push(row);
                    }
                }
            }
            RowChange::Removed(key) => drop(gone.insert(key)),
        }
    }
    rows.retain(|row| !gone.contains(&row.key()));
}

/// Returns `freshness` with the observation time of `old`, if both have one, so that a later observation is
/// no difference.
fn observed_like(freshness: Freshness, old: Freshness) -> Freshness {
    let (now, before) = (freshness.observed_at, old.observed_at);
    Freshness { observed_at: now.and(before).or(now), ..freshness }
}

impl Comparable for AppRow {
    fn differs(&self, old: &AppRow) -> bool {
        let mut own = self.clone();
        own.freshness = observed_like(own.freshness, old.freshness);
        own.sync.freshness = observed_like(own.sync.freshness, old.sync.freshness);
        own != *old
    }
}

impl KeyedRow for AppRow {
    /// Target, home, delivery, namespace and name.
    type Key = (String, String, Delivery, String, String);

    fn key(&self) -> Self::Key {
        let AppRow { cluster, home, delivery, namespace, name, .. } = self.clone();
        (cluster, home, delivery, namespace, name)
    }
}

impl Comparable for ClusterRow {
    fn differs(&self, old: &ClusterRow) -> bool {
        let mut own = self.clone();
        own.freshness = observed_like(own.freshness, old.freshness);
        if let (Some(own), Some(old)) = (&mut own.reading, &old.reading) {
            own.take_statistics(old);
        }
        own != *old
    }
}

impl KeyedRow for ClusterRow {
    type Key = String;

    fn key(&self) -> String {
        self.name.clone()
    }
}

impl Comparable for ResourceRow {}

impl KeyedRow for ResourceRow {
    /// The cluster, the object, and the app that declares the object.
    type Key = (String, ObjectKey, Option<AppName>);

    fn key(&self) -> Self::Key {
        (self.cluster.clone(), self.object(), self.app.clone())
    }
}

impl Comparable for ObjectRow {}

impl Comparable for EventRow {}

impl KeyedRow for EventRow {
    /// The clusters, and the app, object, reason and message that equal warnings have in common.
    type Key = (InClusters, EventLikeness);

    fn key(&self) -> Self::Key {
        (self.place.clone(), self.likeness())
    }
}

impl Comparable for TrustFinding {}

impl KeyedRow for TrustFinding {
    /// Category, reason, clusters and scope.
    type Key = (FindingCategory, String, InClusters, String);

    fn key(&self) -> Self::Key {
        let TrustFinding { category, reason, place, scope, .. } = self;
        (*category, reason.to_string(), place.clone(), scope.clone())
    }
}

impl Comparable for TrustReport {
    fn differs(&self, old: &TrustReport) -> bool {
        // Each look judges for a later time.
        let extent =
            |checked: &CheckedCluster| CheckedCluster { as_of: Timestamp::UNIX_EPOCH, ..checked.clone() };
        self.items != old.items
            || self.errors != old.errors
            || !self.checked.iter().map(extent).eq(old.checked.iter().map(extent))
    }
}

impl Comparable for AppTree {}

impl Comparable for Explanation {}

impl Comparable for AppDetail {
    fn differs(&self, old: &AppDetail) -> bool {
        let AppDetail {
            app,
            application,
            reconciliation,
            relations,
            relations_left_out,
            unsynced,
            deployment,
        } = self;
        app.differs(&old.app)
            || *application != old.application
            || *reconciliation != old.reconciliation
            || *relations != old.relations
            || *relations_left_out != old.relations_left_out
            || *unsynced != old.unsynced
            || *deployment != old.deployment
    }
}

impl<T: Comparable> Comparable for List<T> {
    fn differs(&self, old: &List<T>) -> bool {
        let differ = |(new, old): (&T, &T)| new.differs(old);
        self.errors != old.errors
            || self.items.len() != old.items.len()
            || self.items.iter().zip(&old.items).any(differ)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;
    use serde_json::{Value, json};
    use taffrail_status::rollup::Counts;

    use super::*;

    impl Comparable for (u8, u8) {}

    /// A row called by a number that says a number.
    impl KeyedRow for (u8, u8) {
        type Key = u8;

        fn key(&self) -> u8 {
            self.0
        }
    }

    fn at(text: &str) -> Value {
        json!({"state": "live", "observedAt": text})
    }

    fn app(observed: &str, edit: impl FnOnce(&mut Value)) -> AppRow {
        let mut row = json!({"key": "k", "cluster": "one", "home": "hub", "delivery": "label", "namespace": "shop",
            "name": "web", "health": "Current", "effective": "Current", "message": "", "counts": Counts::default(),
            "objects": 1, "suspended": false, "freshness": at(observed),
            "sync": {"state": "Unknown", "effective": "Unknown", "freshness": at(observed)}});
        edit(&mut row);
        serde_json::from_value(row).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn an_app_observed_again_does_not_differ() {
        let old = app("2026-01-01T00:00:00Z", |_| {});
        let again = app("2026-01-01T00:00:09Z", |_| {});
        assert!(old != again && diff(&[old], &[again]).is_empty());
    }

    #[test]
    fn an_app_differs_by_what_it_says_and_is_another_in_another_cluster() {
        type Edit = fn(&mut Value);
        let old = [app("2026-01-01T00:00:00Z", |_| {})];
        let changes: [Edit; 5] = [
            |row| row["message"] = json!("0/1 available"),
            |row| row["effective"] = json!("Unknown"),
            |row| row["freshness"]["state"] = json!("stale"),
            |row| row["sync"]["freshness"]["state"] = json!("lost"),
            // It was never observed there.
            |row| row["freshness"] = json!({"state": "lost"}),
        ];
        for change in changes {
            let new = app("2026-01-01T00:00:09Z", change);
            assert_eq!(diff(&old, std::slice::from_ref(&new)), [RowChange::Changed(new)]);
        }
        let places: [Edit; 5] = [
            |row| row["cluster"] = json!("two"),
            |row| row["home"] = json!("two"),
            |row| row["delivery"] = json!("helm"),
            |row| row["namespace"] = json!("two"),
            |row| row["name"] = json!("two"),
        ];
        for place in places {
            let new = app("2026-01-01T00:00:00Z", place);
            let changes = [RowChange::Added(new.clone()), RowChange::Removed(old[0].key())];
            assert_eq!(diff(&old, &[new]), changes);
        }
    }

    #[test]
    fn a_cluster_does_not_differ_by_the_requests_that_observed_it() {
        let cluster = |observed: &str, requests: u64, protocol: &str| -> ClusterRow {
            let reading = json!({"lists": "pages", "protocol": protocol, "roundTripMicros": 10 - requests,
                "requests": requests, "bytes": requests});
            let row = json!({"name": "one", "health": "Current", "effective": "Current", "status": "Current",
                "message": "", "apps": 0, "problems": 0, "counts": Counts::default(), "errors": 0, "freshness": at(observed),
                "reading": reading});
            serde_json::from_value(row).unwrap_or_else(|error| panic!("{error}"))
        };
        let old = cluster("2026-01-01T00:00:00Z", 1, "HTTP/2");
        assert!(!cluster("2026-01-01T00:00:09Z", 2, "HTTP/2").differs(&old));
        assert!(cluster("2026-01-01T00:00:00Z", 1, "HTTP/1.1").differs(&old));
    }

    proptest! {
        #[test]
        fn applying_the_changes_to_the_old_rows_gives_the_new_ones(
            old in btree_map(0_u8..8, 0_u8..3, 0..8), new in btree_map(0_u8..8, 0_u8..3, 0..8)
        ) {
            let [old, new]: [Vec<(u8, u8)>; 2] = [old, new].map(|rows| rows.into_iter().collect());
            let changes = diff(&old, &new);
            let mut rows = old.clone();
            apply(&mut rows, changes.clone());
            rows.sort_unstable();
            prop_assert_eq!(&rows, &new);
            prop_assert!(diff(&rows, &new).is_empty());
            // Nothing is told that did not change.
            for change in changes {
                match change {
                    RowChange::Added(row) => prop_assert!(old.iter().all(|it| it.0 != row.0)),
                    RowChange::Changed(row) => prop_assert!(!old.contains(&row)),
                    RowChange::Removed(key) => prop_assert!(new.iter().all(|it| it.0 != key)),
                }
            }
        }

        #[test]
        fn rows_with_one_key_make_no_endless_news(rows in vec((0_u8..3, 0_u8..3), 0..8)) {
            let mut shown = Vec::new();
            apply(&mut shown, diff(&[], &rows));
            prop_assert!(diff(&shown, &rows).is_empty());
        }
    }
}
