//! A cache of values that many apps need. When an app uses a cached value, the lookups made to compute it count as
//! made for this app.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use crate::objects::Objects;
use crate::questions::QuestionRecord;

/// A cached value, with the lookups made to compute it; `None` if lookups are not recorded.
type CachedValue<V> = (V, Option<Arc<QuestionRecord>>);

/// A cache of computed values by key, each with the lookups made to compute it, if lookups are recorded.
#[derive(Debug)]
pub(crate) struct Memo<K, V>(RefCell<HashMap<K, CachedValue<V>>>);

impl<K, V> Default for Memo<K, V> {
    fn default() -> Memo<K, V> {
        Memo(RefCell::default())
    }
}

impl<K: Hash + Eq, V: Clone> Memo<K, V> {
    /// Drops all values.
    pub(crate) fn clear(&self) {
        self.0.take();
    }

    /// Returns the value for the key `place`, computed by `find` at the first call; at each call the lookups of `find`
    /// are recorded in the log of `objects`.
    pub(crate) fn get(&self, objects: &dyn Objects, place: K, find: impl FnOnce() -> V) -> V {
        if let Some(found) = self.known(objects, &place) {
            return found;
        }
        self.compute(objects, || place, find, |_| true)
    }

    /// Returns the cached value for the key `place`, and records the lookups made to compute it in the log of
    /// `objects`; `None` if it is not cached.
    pub(crate) fn known(&self, objects: &dyn Objects, place: &K) -> Option<V> {
        let known = self.0.borrow();
        let (found, asked) = known.get(place)?;
        if let Some((log, _)) = objects.question_log()
            && let Some(asked) = asked
        {
            log.remember(asked);
        }
        Some(found.clone())
    }

    /// Computes the value for the key `place` with `find`, even if one is cached, and caches it if `is_kept` is true
    /// for it. Records the lookups of `find` in the log of `objects`.
    pub(crate) fn compute(
        &self,
        objects: &dyn Objects,
        place: impl FnOnce() -> K,
        find: impl FnOnce() -> V,
        is_kept: impl FnOnce(&V) -> bool,
    ) -> V {
        let Some((log, _)) = objects.question_log() else {
            let found = find();
            if is_kept(&found) {
                self.0.borrow_mut().insert(place(), (found.clone(), None));
            }
            return found;
        };
        let (found, asked) = log.record(find);
        if is_kept(&found) {
            let asked = Arc::new(asked);
            log.remember(&asked);
            self.0.borrow_mut().insert(place(), (found.clone(), Some(asked)));
        } else {
            log.add(asked);
        }
        found
    }
}
