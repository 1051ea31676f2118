//! The rows of apps of watched clusters, of which only the changed ones are computed again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use taffrail_apps::{AppLabels, AppList, AppRows, ChangeBatch, ChangedRows, Objects, Snapshot};
use taffrail_status::ActiveRules;

/// The rows of apps of watched clusters, kept between two outputs so that only rows whose objects changed are
/// computed again.
#[derive(Debug)]
pub(crate) struct KeptRows {
    kept: Mutex<AppRows>,
    pending: Mutex<Vec<ChangeBatch>>,
    /// True once a view has requested the rows; before that changes are not recorded.
    is_wanted: AtomicBool,
}

impl KeptRows {
    /// Creates an empty set of rows.
    pub(crate) fn new(labels: AppLabels) -> KeptRows {
        KeptRows {
            kept: Mutex::new(AppRows::new(labels)),
            pending: Mutex::default(),
            is_wanted: AtomicBool::new(false),
        }
    }

    /// Takes the changed objects of each snapshot, so that the rows that depend on them are computed again; leaves those
    /// of a snapshot that is paired with true to a later call. Does nothing before a view has requested the rows.
    pub(crate) fn note<'s>(&mut self, snapshots: impl Iterator<Item = (&'s mut Snapshot, bool)>) {
        if !self.is_wanted.load(Ordering::Relaxed) {
            return;
        }
        let pending = self.pending.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (place, (snapshot, is_left)) in snapshots.enumerate() {
            let is_left = is_left && snapshot.records_changes();
            let changes = if is_left { ChangeBatch::default() } else { snapshot.take_changes() };
            match pending.get_mut(place) {
                Some(pending) => pending.add(changes),
                None => pending.push(changes),
            }
        }
    }

    /// Returns the first time at which a row may change without a change of an object, because a deadline passes;
    /// `None` if no row does.
    pub(crate) fn next_moment(&self) -> Option<Timestamp> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).next_moment()
    }

    /// Returns the apps of `clusters`, which are in the same order as in [`KeptRows::note`].
    pub(crate) fn apps(&self, clusters: &[&dyn Objects], rules: &ActiveRules<'_>, now: Timestamp) -> AppList {
        self.looked(clusters, rules, now).list().clone()
    }

    /// Passes the apps of `clusters` to `take`, with those that may differ since the last call.
    pub(crate) fn changed<T>(
        &self,
        clusters: &[&dyn Objects],
        rules: &ActiveRules<'_>,
        now: Timestamp,
        take: impl FnOnce(&AppList, &ChangedRows) -> T,
    ) -> T {
        let mut rows = self.looked(clusters, rules, now);
        let changed = rows.take_changed();
        take(rows.list(), &changed)
    }

    /// Passes the apps of `clusters` to `take`. Those that may differ are still returned by the next
    /// [`KeptRows::changed`].
    pub(crate) fn read<T>(
        &self,
        clusters: &[&dyn Objects],
        rules: &ActiveRules<'_>,
        now: Timestamp,
        take: impl FnOnce(&AppList) -> T,
    ) -> T {
        take(self.looked(clusters, rules, now).list())
    }

    /// Computes the rows whose objects changed or whose time has come, and returns the rows of all apps.
    fn looked(
        &self,
        clusters: &[&dyn Objects],
        rules: &ActiveRules<'_>,
        now: Timestamp,
    ) -> MutexGuard<'_, AppRows> {
        let mut rows = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = std::mem::take(&mut *self.pending.lock().unwrap_or_else(PoisonError::into_inner));
        // What changed between two looks is known from the second one on at which somebody asks.
        let is_known = self.is_wanted.swap(true, Ordering::Relaxed);
        let changes = match changes.is_empty() {
            true if is_known => clusters.iter().map(|_| ChangeBatch::default()).collect(),
            true => Vec::new(),
            false => changes,
        };
        rows.look(clusters, &changes, rules, now);
        rows
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use taffrail_object::Projection;
    use taffrail_object::json::OwnedDocument;

    use super::*;

    #[test]
    fn changes_that_are_left_come_with_a_later_call() {
        let insert = |snapshot: &mut Snapshot, name: &str| {
            let labels = json!({"app.kubernetes.io/instance": name});
            let metadata = json!({"namespace": "shop", "name": name, "labels": labels});
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
            let document = OwnedDocument::parse(object.to_string().into_bytes()).unwrap();
            snapshot.insert(document, Projection::Full).unwrap();
        };
        let mut rows = KeptRows::new(AppLabels::default());
        let mut snapshots =
            [Snapshot::dump("eu", Timestamp::UNIX_EPOCH), Snapshot::dump("us", Timestamp::UNIX_EPOCH)];
        let mut look = |snapshots: &mut [Snapshot; 2], is_left: bool| {
            rows.note(snapshots.iter_mut().map(|snapshot| (snapshot, is_left)));
            let clusters: Vec<&dyn Objects> = snapshots.iter().map(|it| it as &dyn Objects).collect();
            rows.apps(&clusters, &ActiveRules::default(), Timestamp::UNIX_EPOCH).apps.len()
        };
        assert_eq!(look(&mut snapshots, true), 0);
        // From here on changes are recorded.
        assert_eq!(look(&mut snapshots, true), 0);
        insert(&mut snapshots[0], "web");
        assert_eq!(look(&mut snapshots, true), 0);
        insert(&mut snapshots[1], "web");
        assert_eq!(look(&mut snapshots, false), 2);
    }
}
