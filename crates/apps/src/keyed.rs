//! Indexes of object keys by a property that several objects may share.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::Arc;

use taffrail_object::ObjectKey;

/// An index of object keys by a common property `K`; the keys of one property are sorted by namespace.
///
/// Any number of objects can share a property, so a change of one object must not move the others.
#[derive(Debug)]
pub(crate) struct Keyed<K>(HashMap<K, BTreeSet<ByNamespace>>);

/// An object key that sorts by namespace first. It shares the allocation of the object's own key.
#[derive(Debug, PartialEq, Eq)]
struct ByNamespace(Arc<ObjectKey>);

impl Ord for ByNamespace {
    fn cmp(&self, other: &ByNamespace) -> Ordering {
        self.0.namespace.cmp(&other.0.namespace).then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for ByNamespace {
    fn partial_cmp(&self, other: &ByNamespace) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K> Default for Keyed<K> {
    fn default() -> Keyed<K> {
        Keyed(HashMap::new())
    }
}

impl<K: Hash + Eq> Keyed<K> {
    /// Builds the index from pairs of a property and an object key.
    pub(crate) fn of<'a, P: Hash + Eq + Into<K>>(
        found: impl IntoIterator<Item = (P, &'a Arc<ObjectKey>)>,
    ) -> Keyed<K> {
        let mut places: HashMap<P, Vec<ByNamespace>> = HashMap::new();
        // Objects of one place often follow each other.
        let mut found = found.into_iter().peekable();
        while let Some((place, key)) = found.next() {
            let mut keys = vec![ByNamespace(key.clone())];
            while let Some((_, key)) = found.next_if(|(next, _)| *next == place) {
                keys.push(ByNamespace(key.clone()));
            }
            places.entry(place).or_default().append(&mut keys);
        }
        Keyed(places.into_iter().map(|(place, keys)| (place.into(), BTreeSet::from_iter(keys))).collect())
    }

    pub(crate) fn insert(&mut self, place: K, key: &Arc<ObjectKey>) {
        self.0.entry(place).or_default().insert(ByNamespace(key.clone()));
    }

    /// Removes an object key from those with the property `place`. Returns true if it was there.
    pub(crate) fn remove<Q: Hash + Eq + ?Sized>(&mut self, place: &Q, key: &Arc<ObjectKey>) -> bool
    where
        K: Borrow<Q>,
    {
        let Some(keys) = self.0.get_mut(place) else { return false };
        let was_there = keys.remove(&ByNamespace(key.clone()));
        if keys.is_empty() {
            self.0.remove(place);
        }
        was_there
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get<Q: Hash + Eq + ?Sized>(
        &self,
        place: &Q,
    ) -> impl DoubleEndedIterator<Item = &Arc<ObjectKey>> + use<'_, K, Q>
    where
        K: Borrow<Q>,
    {
        self.0.get(place).into_iter().flatten().map(|key| &key.0)
    }

    /// Returns the object keys with the property `place` in a namespace (`None`: in all).
    ///
    /// Any object can name any owner, so the keys in other namespaces are not even visited.
    pub(crate) fn within<Q: Hash + Eq + ?Sized>(
        &self,
        place: &Q,
        namespace: Option<&str>,
    ) -> impl Iterator<Item = &Arc<ObjectKey>> + use<'_, K, Q>
    where
        K: Borrow<Q>,
    {
        let keys = self.0.get(place).map(|keys| match (keys.first(), namespace) {
            (Some(first), Some(namespace)) if *first.0.namespace < *namespace => {
                keys.range(ByNamespace(Arc::new(ObjectKey::new("", "", namespace, "")))..)
            }
            _ => keys.range::<ByNamespace, _>(..),
        });
        let keys = keys.into_iter().flatten().map(|key| &key.0);
        let first = keys.clone().next();
        let first = first.filter(|first| namespace.is_none_or(|namespace| first.namespace == namespace));
        let in_all = namespace.is_none();
        keys.take_while(move |key| first.is_some_and(|first| in_all || key.namespace == first.namespace))
    }
}
