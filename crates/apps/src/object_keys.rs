//! Lists of objects that several apps share.

use std::collections::HashSet;
use std::ops::Deref;
use std::sync::Arc;

use taffrail_object::ObjectKey;

/// A list of object keys. Clones share the memory, because many small apps may name the same long list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ObjectKeys(Arc<Vec<ObjectKey>>);

impl Deref for ObjectKeys {
    type Target = [ObjectKey];

    fn deref(&self) -> &[ObjectKey] {
        &self.0
    }
}

impl From<Vec<ObjectKey>> for ObjectKeys {
    fn from(keys: Vec<ObjectKey>) -> ObjectKeys {
        ObjectKeys(Arc::new(keys))
    }
}

impl FromIterator<ObjectKey> for ObjectKeys {
    fn from_iter<I: IntoIterator<Item = ObjectKey>>(keys: I) -> ObjectKeys {
        keys.into_iter().collect::<Vec<_>>().into()
    }
}

impl<'k> IntoIterator for &'k ObjectKeys {
    type Item = &'k ObjectKey;
    type IntoIter = std::slice::Iter<'k, ObjectKey>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Removes repetitions and keeps the order.
pub(crate) fn dedup(keys: &mut Vec<ObjectKey>) {
    let mut seen = HashSet::with_capacity(keys.len());
    keys.retain(|key| seen.insert(key.clone()));
}
