//! A list that shares most of its parts with the list from which it was made.

use std::cmp::Ordering;
use std::sync::Arc;

/// The number of items in a part, except in the last one. Replacing an item copies one part, and the list of parts.
const PART: usize = 16;

/// Items in an order. A copy shares all parts; replacing an item then copies one part. To insert or remove items, a
/// new list is made.
#[derive(Debug, Clone)]
pub(crate) struct SharedList<T> {
    parts: Vec<Arc<[T]>>,
    len: usize,
}

impl<T> Default for SharedList<T> {
    fn default() -> SharedList<T> {
        SharedList { parts: Vec::new(), len: 0 }
    }
}

impl<T: Clone> FromIterator<T> for SharedList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> SharedList<T> {
        let items: Vec<T> = items.into_iter().collect();
        SharedList { parts: items.chunks(PART).map(Arc::from).collect(), len: items.len() }
    }
}

impl<T: Clone> SharedList<T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        self.parts.get(at / PART)?.get(at % PART)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.parts.iter().flat_map(|part| part.iter())
    }

    /// Replaces the item with the index `at`, if there is one.
    pub(crate) fn replace(&mut self, at: usize, item: T) {
        let Some(part) = self.parts.get_mut(at / PART) else { return };
        if let Some(slot) = Arc::make_mut(part).get_mut(at % PART) {
            *slot = item;
        }
    }

    /// Appends items until the list has at least `len`.
    pub(crate) fn grow(&mut self, len: usize, item: &T) {
        if len > self.len {
            let new = std::iter::repeat_n(item, len - self.len);
            *self = self.iter().chain(new).cloned().collect();
        }
    }

    /// Searches the sorted list like [`slice::binary_search_by`].
    pub(crate) fn search(&self, order: impl Fn(&T) -> Ordering) -> Result<usize, usize> {
        let is_before = |part: &Arc<[T]>| part.last().is_some_and(|last| order(last).is_lt());
        let part = self.parts.partition_point(is_before);
        let first = part * PART;
        let found = self.parts.get(part).map_or(Err(0), |part| part.binary_search_by(&order));
        found.map(|at| first + at).map_err(|at| (first + at).min(self.len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_finds_and_replaces_items_and_leaves_its_copy_as_it_was() {
        // Even numbers, so that the odd ones lie between them.
        let items: Vec<usize> = (0..3 * PART + 5).map(|at| 2 * at).collect();
        for len in [0, 1, PART, PART + 1, items.len()] {
            let list: SharedList<usize> = items.iter().take(len).copied().collect();
            assert_eq!((list.iter().count(), list.len()), (len, len));
            for (at, item) in items.iter().enumerate() {
                let expected = if at < len { Ok(at) } else { Err(len) };
                assert_eq!(list.search(|other| other.cmp(item)), expected, "{at} of {len}");
                assert_eq!(
                    list.search(|other| other.cmp(&(item + 1))),
                    Err(len.min(at + 1)),
                    "{at} of {len}"
                );
                assert_eq!(list.get(at), (at < len).then_some(item));
            }
            let mut changed = list.clone();
            changed.replace(PART, 1);
            let differ = list.iter().zip(changed.iter()).filter(|(one, other)| one != other);
            assert_eq!(differ.count(), usize::from(len > PART));
        }
    }

    #[test]
    fn list_grows_to_a_length_and_never_shrinks() {
        let mut list: SharedList<u8> = [1, 2].into_iter().collect();
        list.grow(PART + 1, &0);
        list.grow(1, &9);
        assert_eq!(
            (list.len(), list.get(1), list.get(2), list.get(PART)),
            (PART + 1, Some(&2), Some(&0), Some(&0))
        );
    }
}
