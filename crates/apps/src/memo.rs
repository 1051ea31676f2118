//! Answers that are found out once, however many apps want them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use crate::objects::Objects;
use crate::rows::Asked;

/// An answer, with what was asked for it where that is noted.
type Known<V> = (V, Option<Arc<Asked>>);

/// Answers by what they are about.
#[derive(Debug)]
pub(crate) struct Memo<K, V>(RefCell<HashMap<K, Known<V>>>);

impl<K, V> Default for Memo<K, V> {
    fn default() -> Memo<K, V> {
        Memo(RefCell::default())
    }
}

impl<K: Hash + Eq, V: Clone> Memo<K, V> {
    /// Returns the answer about `place`, which `find` finds out if it is not known; questions are asked of `objects`.
    pub(crate) fn get(&self, objects: &dyn Objects, place: K, find: impl FnOnce() -> V) -> V {
        if let Some(found) = self.known(objects, &place) {
            return found;
        }
        self.find(objects, || place, find, |_| true)
    }

    /// Returns the answer about `place`, if it is known.
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

    /// Finds the answer about `place` out, and keeps it if it `is_kept`.
    pub(crate) fn find(
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
