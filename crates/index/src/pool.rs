//! Pools: each value that many objects share is stored once, with a reference count.

use std::hash::Hash;
use std::sync::Arc;

use hashbrown::HashTable;

use super::chunked::{Chunked, Vacant};
use super::table::Seed;

/// The slot number that stands for the absence of a slot.
pub(super) const NONE: u32 = u32::MAX;

/// The values of a pool by slot, in the form that snapshots share; `None` for a vacant slot.
#[derive(Debug)]
pub(super) struct PoolValues<T: ?Sized>(Chunked<Option<Arc<T>>>);

impl<T: ?Sized> Clone for PoolValues<T> {
    fn clone(&self) -> PoolValues<T> {
        PoolValues(self.0.clone())
    }
}

impl<T: ?Sized> Default for PoolValues<T> {
    fn default() -> PoolValues<T> {
        PoolValues(Chunked::default())
    }
}

impl<T: ?Sized> PoolValues<T> {
    pub(super) fn get(&self, at: u32) -> Option<&Arc<T>> {
        self.0.get(at)?.as_ref()
    }

    /// Iterates over the slots in order; `None` for a vacant one.
    pub(super) fn slots(&self) -> impl Iterator<Item = Option<&Arc<T>>> {
        (0..self.0.len()).map(|at| self.get(at))
    }
}

/// The reference counts of a pool's values, and the table that finds a value's slot; for the writer of the index
/// only.
///
/// A value is dropped with its last use, and its slot is reused, so memory follows the present contents.
#[derive(Debug)]
pub(super) struct Pool {
    seed: Seed,
    uses: Vec<u32>,
    table: HashTable<u32>,
    vacant: Vacant,
}

impl Pool {
    pub(super) fn new(seed: Seed) -> Pool {
        Pool { seed, uses: Vec::new(), table: HashTable::new(), vacant: Vacant::default() }
    }

    /// Returns the number of distinct values in use.
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// Adds one use of `value`, stored as `make` returns it; returns its slot, and true if the value is new.
    pub(super) fn take<T, Q>(
        &mut self,
        kept: &mut PoolValues<T>,
        value: &Q,
        make: impl FnOnce() -> Arc<T>,
    ) -> (u32, bool)
    where
        T: ?Sized + Hash + PartialEq<Q>,
        Q: ?Sized + Hash,
    {
        let hash = self.seed.value(value);
        let is_it = |&at: &u32| kept.get(at).is_some_and(|own| **own == *value);
        if let Some(&at) = self.table.find(hash, is_it) {
            if let Some(uses) = self.uses.get_mut(at as usize) {
                *uses += 1;
            }
            return (at, false);
        }
        let at = self.vacant.take(&mut kept.0);
        if let Some(slot) = kept.0.get_mut(at) {
            *slot = Some(make());
        }
        if self.uses.len() <= at as usize {
            self.uses.resize(at as usize + 1, 0);
        }
        self.uses[at as usize] = 1;
        let seed = self.seed;
        let rehash = |&at: &u32| kept.get(at).map_or(0, |own| seed.value(&**own));
        self.table.insert_unique(hash, at, rehash);
        (at, true)
    }

    /// Removes one use of the value at slot `at`; returns the value if that was its last use, else `None`.
    pub(super) fn drop_use<T: ?Sized + Hash>(&mut self, kept: &mut PoolValues<T>, at: u32) -> Option<Arc<T>> {
        let uses = self.uses.get_mut(at as usize)?;
        *uses = uses.checked_sub(1)?;
        if *uses > 0 {
            return None;
        }
        let value = kept.0.get_mut(at)?.take()?;
        let seed = self.seed;
        if let Ok(entry) = self.table.find_entry(seed.value(&*value), |&own| own == at) {
            entry.remove();
        }
        self.vacant.give(at);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_go_with_their_last_use_and_their_places_are_used_again() {
        let mut kept = PoolValues::<str>::default();
        let mut pool = Pool::new(Seed::random());
        let take =
            |pool: &mut Pool, kept: &mut PoolValues<str>, text: &str| pool.take(kept, text, || text.into());
        let (a, is_new) = take(&mut pool, &mut kept, "a");
        assert!(is_new);
        assert_eq!(take(&mut pool, &mut kept, "a"), (a, false));
        assert_eq!(pool.drop_use(&mut kept, a), None);
        let seen = kept.clone();
        assert_eq!(pool.drop_use(&mut kept, a).as_deref(), Some("a"));
        assert_eq!((pool.drop_use(&mut kept, a), pool.drop_use(&mut kept, NONE)), (None, None));
        assert_eq!((seen.get(a).map(|text| &**text), kept.get(a)), (Some("a"), None));
        assert_eq!(take(&mut pool, &mut kept, "b"), (a, true));
        for number in 0..100_000 {
            let (at, _) = take(&mut pool, &mut kept, &number.to_string());
            pool.drop_use(&mut kept, at);
        }
        assert_eq!((pool.len(), kept.0.len()), (1, 2));
    }
}
