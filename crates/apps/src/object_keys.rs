//! Lists of objects that several apps share.

use std::collections::HashSet;
use std::sync::Arc;

use taffrail_object::ObjectKey;

/// A list of object keys. Clones share the memory, because many small apps may name the same long list; the rows of the
/// objects share the keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ObjectKeys(Arc<Vec<Arc<ObjectKey>>>);

type Keys<'k> = std::iter::Map<std::slice::Iter<'k, Arc<ObjectKey>>, fn(&Arc<ObjectKey>) -> &ObjectKey>;

impl ObjectKeys {
    /// Returns the keys, each of which rows may share.
    pub(crate) fn shared(&self) -> &[Arc<ObjectKey>] {
        &self.0
    }

    /// Returns the keys in their order.
    pub(crate) fn iter(&self) -> Keys<'_> {
        self.0.iter().map(Arc::as_ref)
    }

    /// Returns the key at the position `at`, from 0; `None` beyond the last.
    pub(crate) fn get(&self, at: usize) -> Option<&ObjectKey> {
        self.0.get(at).map(Arc::as_ref)
    }

    /// Returns the number of keys.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if the list has no keys.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Vec<ObjectKey>> for ObjectKeys {
    fn from(keys: Vec<ObjectKey>) -> ObjectKeys {
        keys.into_iter().collect()
    }
}

impl FromIterator<ObjectKey> for ObjectKeys {
    fn from_iter<I: IntoIterator<Item = ObjectKey>>(keys: I) -> ObjectKeys {
        keys.into_iter().map(Arc::new).collect()
    }
}

impl FromIterator<Arc<ObjectKey>> for ObjectKeys {
    fn from_iter<I: IntoIterator<Item = Arc<ObjectKey>>>(keys: I) -> ObjectKeys {
        ObjectKeys(Arc::new(keys.into_iter().collect()))
    }
}

impl<'k> IntoIterator for &'k ObjectKeys {
    type Item = &'k ObjectKey;
    type IntoIter = Keys<'k>;

    fn into_iter(self) -> Keys<'k> {
        self.iter()
    }
}

/// Removes repetitions and keeps the order.
pub(crate) fn dedup(keys: &mut Vec<ObjectKey>) {
    let mut seen = HashSet::with_capacity(keys.len());
    keys.retain(|key| seen.insert(key.clone()));
}
