//! Objects that are removed from a snapshot for a short time, so that a read plan shows if they are still needed.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use taffrail_object::ObjectKey;

use super::marks::ByBody;
use super::{Snapshot, Stored};

/// Objects that [`Snapshot::set_aside`] removed from a snapshot, with the results of their reads.
#[derive(Debug, Default)]
pub struct Aside {
    keys: Vec<ObjectKey>,
    objects: BTreeMap<Arc<ObjectKey>, Stored>,
    unread: HashMap<ObjectKey, ByBody<Option<String>>>,
}

impl Aside {
    /// Returns the keys of the objects that are still removed.
    pub fn keys(&self) -> &[ObjectKey] {
        &self.keys
    }
}

impl Snapshot {
    /// Removes objects that were read one by one, so that a plan shows which of them are still needed. The
    /// metadata of objects for which `is_listed` is true stays, because a list contains it.
    pub fn set_aside(
        &mut self,
        keys: impl IntoIterator<Item = ObjectKey>,
        is_listed: impl Fn(&ObjectKey) -> bool,
    ) -> Aside {
        let mut aside = Aside { keys: keys.into_iter().collect(), ..Aside::default() };
        for key in &aside.keys {
            if let Some((key, stored)) = self.take(key) {
                if let Some(changes) = &mut self.changes {
                    changes.note(&key, Some(stored.clone()));
                }
                if is_listed(&key)
                    && let Some(metadata) = stored.metadata()
                {
                    self.store(key.clone(), metadata);
                }
                aside.objects.insert(key, stored);
            }
            if let Some(read) = self.unread.remove_entry(key) {
                self.note_sought(key);
                aside.unread.extend([read]);
            }
        }
        aside
    }

    /// Puts back the objects for which `is_wanted` is true; returns true if there were any.
    pub fn put_back(&mut self, aside: &mut Aside, is_wanted: impl Fn(&ObjectKey) -> bool) -> bool {
        let Aside { keys, objects, unread } = aside;
        let (back, left) = std::mem::take(keys).into_iter().partition(|key| is_wanted(key));
        *keys = left;
        let back: Vec<ObjectKey> = back;
        for key in &back {
            if let Some((key, stored)) = objects.remove_entry(key) {
                self.store(key, stored);
            }
            if let Some(read) = unread.remove_entry(key) {
                self.note_sought(key);
                self.unread.extend([read]);
            }
        }
        !back.is_empty()
    }
}
