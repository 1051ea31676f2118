//! A vector in chunks that are shared until they are written to.

use std::sync::Arc;

/// Number of values in a chunk; a write to a chunk that a snapshot shares copies all of them.
const CHUNK: usize = 16;
/// Number of chunks in a group; the first write to a group after a snapshot copies as many pointers.
const GROUP: usize = 64;

/// A vector whose clones share their chunks; a shared chunk is copied when it is written to.
///
/// There are two levels of pointers above the chunks, so that a clone costs one pointer for 1,024 values.
#[derive(Debug)]
pub(super) struct Chunked<T> {
    groups: Vec<Arc<[Arc<[T]>]>>,
    len: u32,
}

impl<T> Clone for Chunked<T> {
    fn clone(&self) -> Chunked<T> {
        Chunked { groups: self.groups.clone(), len: self.len }
    }
}

impl<T> Default for Chunked<T> {
    fn default() -> Chunked<T> {
        Chunked { groups: Vec::new(), len: 0 }
    }
}

/// Returns the location of the value at slot `at`: group, chunk in the group, value in the chunk.
fn slot(at: u32) -> (usize, usize, usize) {
    let at = at as usize;
    (at / (CHUNK * GROUP), at / CHUNK % GROUP, at % CHUNK)
}

impl<T> Chunked<T> {
    /// Returns the number of slots, vacant ones included.
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    pub(super) fn get(&self, at: u32) -> Option<&T> {
        let (group, chunk, slot) = slot(at);
        self.groups.get(group)?.get(chunk)?.get(slot)
    }
}

impl<T: Clone + Default> Chunked<T> {
    /// Returns a mutable reference to the value at slot `at`, after copying the chunk if it is shared; `None` past the
    /// last chunk.
    #[inline]
    pub(super) fn get_mut(&mut self, at: u32) -> Option<&mut T> {
        let (group, chunk, slot) = slot(at);
        let group = Arc::make_mut(self.groups.get_mut(group)?);
        Arc::make_mut(group.get_mut(chunk)?).get_mut(slot)
    }

    /// Appends a slot with the default value and returns its number.
    pub(super) fn grow(&mut self) -> u32 {
        let at = self.len;
        let (group, chunk, slot) = slot(at);
        if slot == 0 {
            let fresh: Arc<[T]> = (0..CHUNK).map(|_| T::default()).collect();
            if chunk == 0 {
                self.groups.push([fresh].into());
            } else if let Some(group) = self.groups.get_mut(group) {
                *group = group.iter().cloned().chain([fresh]).collect();
            }
        }
        self.len += 1;
        at
    }
}

/// The slots that are vacant and can be reused.
#[derive(Debug, Default)]
pub(super) struct Vacant(Vec<u32>);

impl Vacant {
    /// Takes a vacant slot of `values` and returns its number; appends a slot if none is vacant.
    pub(super) fn take<T: Clone + Default>(&mut self, values: &mut Chunked<T>) -> u32 {
        self.0.pop().unwrap_or_else(|| values.grow())
    }

    /// Adds slot `at` to the vacant slots.
    pub(super) fn give(&mut self, at: u32) {
        self.0.push(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_keeps_what_it_saw() {
        let mut values = Chunked::<u32>::default();
        for at in 0..10_000 {
            assert_eq!(values.grow(), at);
            *values.get_mut(at).unwrap() = at;
        }
        let seen = values.clone();
        *values.get_mut(5_000).unwrap() = 1;
        values.grow();
        assert_eq!((values.get(5_000), values.get(10_000), values.len()), (Some(&1), Some(&0), 10_001));
        assert_eq!((seen.get(5_000), seen.len()), (Some(&5_000), 10_000));
        // The rest of a chunk is there, but nobody was given a slot in it.
        assert_eq!(seen.get(20_000), None);
        let shared = |one: &Chunked<u32>, at: u32| one.get(at).map(std::ptr::from_ref);
        assert_eq!(shared(&values, 4_000), shared(&seen, 4_000));
    }
}
