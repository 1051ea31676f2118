//! What changed in a snapshot since somebody asked last.

use std::collections::{BTreeMap, HashSet};

use taffrail_object::{GroupKind, ObjectKey};
use taffrail_status::Observed;

use super::{Snapshot, Stored};

/// Beyond so many objects it is cheaper to look at all of them than to keep what each of them was.
const MOST_OBJECTS: usize = 10_000;

/// What changed in a snapshot between two calls of [`Snapshot::take_changes`].
#[derive(Debug, Default)]
pub struct ChangeBatch {
    /// The objects that came, changed or went; each with what it was, if it was there.
    objects: BTreeMap<ObjectKey, Option<Stored>>,
    /// The kinds of which something else is known than objects: that all were listed, that they may not be.
    pub(crate) kinds: HashSet<GroupKind>,
    /// The objects that were looked for one by one.
    pub(crate) sought: HashSet<ObjectKey>,
    /// What could not be read.
    pub(crate) has_errors: bool,
    /// More than can be told.
    pub(crate) is_all: bool,
}

impl ChangeBatch {
    /// Everything, as far as anybody knows.
    pub fn all() -> ChangeBatch {
        ChangeBatch { is_all: true, ..ChangeBatch::default() }
    }

    /// Returns true if nothing changed.
    pub fn is_empty(&self) -> bool {
        let ChangeBatch { objects, kinds, sought, has_errors, is_all } = self;
        objects.is_empty() && kinds.is_empty() && sought.is_empty() && !has_errors && !is_all
    }

    /// The objects that came, changed or went, as they were; nothing where one was not there.
    pub(crate) fn objects(&self) -> impl Iterator<Item = (&ObjectKey, Option<Observed<'_>>)> {
        self.objects.iter().map(|(key, old)| (key, old.as_ref().and_then(|old| old.observed(key))))
    }

    /// Takes in what an object was before it came (nothing), changed or went.
    pub(super) fn note(&mut self, key: &ObjectKey, old: Option<Stored>) {
        if self.is_all || self.objects.contains_key(key) {
            return;
        }
        if self.objects.len() >= MOST_OBJECTS {
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

    /// Adds what changed after that.
    pub fn add(&mut self, later: ChangeBatch) {
        let ChangeBatch { objects, kinds, sought, has_errors, is_all } = later;
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
    /// Returns what changed since the last call; everything at the first one. What changed is recorded from then on.
    pub fn take_changes(&mut self) -> ChangeBatch {
        let mut changes = self.changes.replace(ChangeBatch::default()).unwrap_or_else(ChangeBatch::all);
        // What was set aside and put back is as it was.
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

    /// Takes in that something changed that concerns more than objects.
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

    /// Puts an object in the place of what is known of it, if anything is.
    pub(super) fn store(&mut self, key: ObjectKey, stored: Stored) {
        self.size += stored.size();
        let old = self.take(&key);
        if self.indexes.are_built() {
            self.indexes.replace(None, stored.observed(&key).as_ref());
        }
        if let Some(changes) = &mut self.changes {
            changes.note(&key, old.map(|(_, old)| old));
        }
        self.objects.insert(key, stored);
    }

    /// Takes an object out.
    pub(super) fn take(&mut self, key: &ObjectKey) -> Option<(ObjectKey, Stored)> {
        let (key, old) = self.objects.remove_entry(key)?;
        self.size = self.size.saturating_sub(old.size());
        if self.indexes.are_built() {
            self.indexes.replace(old.observed(&key).as_ref(), None);
        }
        Some((key, old))
    }
}
