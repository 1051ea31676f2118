//! Keys under which queries find objects. An object may have several keys, and a key several objects: marks, claims,
//! definitions.

use std::sync::Arc;

use super::chunked::{Chunked, Vacant};
use super::table::Table;

/// A key's entry: the objects that have the key.
#[derive(Debug, Clone)]
pub(super) struct Posting {
    key: u128,
    /// The text of the key, for types of keys that queries list; `None` for other types.
    pub(super) name: Option<Arc<str>>,
    /// The slots of the objects, unsorted.
    pub(super) members: Arc<Vec<u32>>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Postings {
    values: Chunked<Option<Posting>>,
    table: Table,
}

impl Postings {
    fn find(&self, key: u128) -> Option<u32> {
        let is_it = |at| self.values.get(at).and_then(Option::as_ref).is_some_and(|own| own.key == key);
        self.table.find(key as u64, is_it)
    }

    pub(super) fn get(&self, key: u128) -> Option<&Posting> {
        self.values.get(self.find(key)?)?.as_ref()
    }

    /// Returns the slots of the objects that have `key`.
    pub(super) fn members(&self, key: u128) -> &[u32] {
        self.get(key).map_or(&[], |posting| &posting.members)
    }

    /// Lists the keys that have a text, each with the number of its objects.
    pub(super) fn named(&self) -> impl Iterator<Item = (&Arc<str>, usize)> {
        let postings = (0..self.values.len()).filter_map(|at| self.values.get(at)?.as_ref());
        postings.filter_map(|posting| Some((posting.name.as_ref()?, posting.members.len())))
    }

    pub(super) fn add(&mut self, vacant: &mut Vacant, key: u128, name: Option<&str>, member: u32) {
        if let Some(at) = self.find(key) {
            if let Some(Some(posting)) = self.values.get_mut(at) {
                Arc::make_mut(&mut posting.members).push(member);
            }
            return;
        }
        let at = vacant.take(&mut self.values);
        if let Some(slot) = self.values.get_mut(at) {
            *slot = Some(Posting { key, name: name.map(Arc::from), members: Arc::new(vec![member]) });
        }
        let values = &self.values;
        let rehash = |at| values.get(at).and_then(Option::as_ref).map_or(0, |own| own.key as u64);
        self.table.insert(key as u64, at, rehash);
    }

    pub(super) fn remove(&mut self, vacant: &mut Vacant, key: u128, member: u32) {
        let Some(at) = self.find(key) else { return };
        let Some(slot) = self.values.get_mut(at) else { return };
        let Some(posting) = slot else { return };
        let members = Arc::make_mut(&mut posting.members);
        if let Some(found) = members.iter().position(|own| *own == member) {
            members.swap_remove(found);
        }
        if members.is_empty() {
            let values = &self.values;
            let rehash = |at| values.get(at).and_then(Option::as_ref).map_or(0, |own| own.key as u64);
            self.table.remove(key as u64, at, rehash);
            if let Some(slot) = self.values.get_mut(at) {
                *slot = None;
            }
            vacant.give(at);
        } else if members.capacity() > 64 && members.len() < members.capacity() / 4 {
            members.shrink_to_fit();
        }
    }
}
