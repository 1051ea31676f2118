//! Objects that are removed from a snapshot for a short time, so that a read plan shows if they are still needed.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use taffrail_object::{GroupKind, ObjectKey};

use super::marks::{ByBody, TakenOut};
use super::{Snapshot, Stored};
use crate::reads::read::Read;

/// The objects and lists that [`Snapshot::set_aside`] and [`Snapshot::set_aside_lists`] removed from a snapshot, to
/// be put back if they are still needed.
#[derive(Debug, Default)]
pub struct Aside {
    keys: Vec<ObjectKey>,
    objects: BTreeMap<Arc<ObjectKey>, Stored>,
    single_reads: HashMap<ObjectKey, ByBody<Option<String>>>,
    lists: BTreeMap<Read, TakenOut>,
}

impl Aside {
    /// Returns the keys of the objects that are still removed.
    pub fn keys(&self) -> &[ObjectKey] {
        &self.keys
    }

    /// Returns the lists whose results are still removed.
    pub fn lists(&self) -> impl Iterator<Item = &Read> {
        self.lists.keys()
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
            if let Some(read) = self.single_reads.remove_entry(key) {
                self.note_sought(key);
                aside.single_reads.extend([read]);
            }
        }
        aside
    }

    /// Removes the results of lists in single namespaces, so that a plan shows which of them are still needed; their
    /// objects are removed with [`Snapshot::set_aside`].
    pub fn set_aside_lists(&mut self, aside: &mut Aside, lists: impl IntoIterator<Item = Read>) {
        for read in lists {
            let kind = GroupKind::new(&*read.group, &*read.kind);
            let taken = self.kinds.get_mut(&kind).map(|marks| marks.take_out(&read)).unwrap_or_default();
            self.note_kind(&kind);
            aside.lists.insert(read, taken);
        }
    }

    /// Puts back the results of lists for which `is_wanted` is true; returns true if there were any.
    pub fn put_back_lists(&mut self, aside: &mut Aside, is_wanted: impl Fn(&Read) -> bool) -> bool {
        let back: Vec<(Read, TakenOut)> = aside.lists.extract_if(.., |read, _| is_wanted(read)).collect();
        let is_any = !back.is_empty();
        for (read, taken) in back {
            let kind = GroupKind::new(&*read.group, &*read.kind);
            self.note_kind(&kind);
            self.kinds.entry(kind).or_default().put_back(&read, taken);
        }
        is_any
    }

    /// Puts back the objects for which `is_wanted` is true; returns true if there were any.
    pub fn put_back(&mut self, aside: &mut Aside, is_wanted: impl Fn(&ObjectKey) -> bool) -> bool {
        let Aside { keys, objects, single_reads, .. } = aside;
        let (back, left) = std::mem::take(keys).into_iter().partition(|key| is_wanted(key));
        *keys = left;
        let back: Vec<ObjectKey> = back;
        for key in &back {
            if let Some((key, stored)) = objects.remove_entry(key) {
                self.store(key, stored);
            }
            if let Some(read) = single_reads.remove_entry(key) {
                self.note_sought(key);
                self.single_reads.extend([read]);
            }
        }
        !back.is_empty()
    }
}
