//! The changes of a snapshot between two updates of the rows.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use taffrail_object::{GroupKind, ObjectKey};
use taffrail_status::Observed;

use super::{Snapshot, Stored};

/// The maximum number of changed objects that are recorded, and likewise of objects with a recorded read by name;
/// beyond either, everything is computed again, which is cheaper.
const MOST_OBJECTS: usize = 10_000;

/// The maximum size in bytes of the recorded former states of objects; beyond it, everything is computed again.
const MAX_KEPT_BYTES: u64 = 32 << 20;

/// The changes of a snapshot between two calls of [`Snapshot::take_changes`].
#[derive(Debug, Default)]
pub struct ChangeBatch {
    /// The objects that were created, changed or deleted, each with its former state, which is `None` for a
    /// created one.
    objects: BTreeMap<ObjectKey, Option<Stored>>,
    /// The size of the former states, in bytes.
    kept: u64,
    /// The kinds whose lists have a new result.
    pub(crate) kinds: HashSet<GroupKind>,
    /// The objects of which the result of a read by name was recorded or removed.
    pub(crate) sought: HashSet<ObjectKey>,
    /// True if the errors of reading changed.
    pub(crate) has_errors: bool,
    /// True if anything may have changed; then the other fields do not matter.
    pub(crate) is_all: bool,
}

impl ChangeBatch {
    /// Makes a batch according to which anything may have changed.
    pub fn all() -> ChangeBatch {
        ChangeBatch { is_all: true, ..ChangeBatch::default() }
    }

    /// Returns true if nothing changed.
    pub fn is_empty(&self) -> bool {
        let ChangeBatch { objects, kept: _, kinds, sought, has_errors, is_all } = self;
        objects.is_empty() && kinds.is_empty() && sought.is_empty() && !has_errors && !is_all
    }

    /// Iterates over the objects that were created, changed or deleted, each with its former state; `None`
    /// for a created one.
    pub(crate) fn objects(&self) -> impl Iterator<Item = (&ObjectKey, Option<Observed<'_>>)> {
        self.objects.iter().map(|(key, old)| (key, old.as_ref().and_then(|old| old.observed(key))))
    }

    /// Records the former state of an object, unless one is recorded already: `None` before it was created, otherwise
    /// its state before the change or deletion.
    pub(super) fn note(&mut self, key: &ObjectKey, old: Option<Stored>) {
        if self.is_all || self.objects.contains_key(key) {
            return;
        }
        self.kept = self.kept.saturating_add(old.as_ref().map_or(0, Stored::size));
        if self.objects.len() >= MOST_OBJECTS || self.kept > MAX_KEPT_BYTES {
            self.note_all();
            return;
        }
        self.objects.insert(key.clone(), old);
    }

    fn note_all(&mut self) {
        *self = ChangeBatch::all();
    }

    pub(super) fn note_kind(&mut self, kind: &GroupKind) {
        if !self.kinds.contains(kind) {
            self.kinds.insert(kind.clone());
        }
    }

    fn note_sought(&mut self, key: &ObjectKey) {
        if self.is_all || self.sought.contains(key) {
            return;
        }
        self.sought.insert(key.clone());
        if self.sought.len() > MOST_OBJECTS {
            self.note_all();
        }
    }

    /// Adds the changes of a later batch to this one.
    pub fn add(&mut self, later: ChangeBatch) {
        let ChangeBatch { objects, kept: _, kinds, sought, has_errors, is_all } = later;
        if self.is_all || is_all {
            return self.note_all();
        }
        for (key, old) in objects {
            self.note(&key, old);
        }
        self.kinds.extend(kinds);
        for key in sought {
            self.note_sought(&key);
        }
        self.has_errors |= has_errors;
    }
}

impl Snapshot {
    /// Returns the changes since the last call, and starts to record new ones. The first call returns a batch according
    /// to which anything may have changed.
    pub fn take_changes(&mut self) -> ChangeBatch {
        let mut changes = self.changes.replace(ChangeBatch::default()).unwrap_or_else(ChangeBatch::all);
        // An object that was set aside and put back is unchanged.
        let objects = &self.objects;
        changes.objects.retain(|key, old| match (&old, objects.get(key)) {
            (Some(old), Some(new)) => {
                old.projection != new.projection || old.document.text() != new.document.text()
            }
            (None, None) => false,
            _ => true,
        });
        changes
    }

    /// Returns true if changes are recorded: since the first call of [`Snapshot::take_changes`].
    pub fn records_changes(&self) -> bool {
        self.changes.is_some()
    }

    /// Records that anything may have changed.
    pub(super) fn note_all(&mut self) {
        if let Some(changes) = &mut self.changes {
            changes.note_all();
        }
    }

    pub(super) fn note_errors(&mut self) {
        if let Some(changes) = &mut self.changes {
            changes.has_errors = true;
        }
    }

    pub(super) fn note_kind(&mut self, kind: &GroupKind) {
        if let Some(changes) = &mut self.changes {
            changes.note_kind(kind);
        }
    }

    pub(super) fn note_sought(&mut self, key: &ObjectKey) {
        if let Some(changes) = &mut self.changes {
            changes.note_sought(key);
        }
    }

    /// Stores an object under its key, and records the change.
    pub(super) fn store(&mut self, key: Arc<ObjectKey>, stored: Stored) {
        self.size += stored.size();
        let old = self.take(&key);
        self.indexes.replace(&key, None, Some(&stored));
        if let Some(changes) = &mut self.changes {
            changes.note(&key, old.map(|(_, old)| old));
        }
        self.objects.insert(key, stored);
    }

    /// Removes an object from the snapshot and its indexes, and returns it; `None` if there is none. The caller records
    /// the change.
    pub(super) fn take(&mut self, key: &ObjectKey) -> Option<(Arc<ObjectKey>, Stored)> {
        let (key, old) = self.objects.remove_entry(key)?;
        self.size = self.size.saturating_sub(old.size());
        self.indexes.replace(&key, Some(&old), None);
        Some((key, old))
    }
}
