//! A list of pairs that shares most of its parts with the list from which it was made.

use std::cmp::Ordering;
use std::sync::Arc;

use super::pair::Pair;

/// The number of pairs in a part, except in the last one. Replacing a pair copies one part, and the list of parts.
const PART: usize = 16;

/// Pairs in an order. A copy shares all parts; replacing a pair then makes one part anew. To insert or remove pairs, a
/// new list is made.
#[derive(Debug, Clone, Default)]
pub(crate) struct PairList {
    parts: Vec<Arc<[Arc<Pair>]>>,
    len: usize,
}

impl FromIterator<Arc<Pair>> for PairList {
    fn from_iter<I: IntoIterator<Item = Arc<Pair>>>(pairs: I) -> PairList {
        let pairs: Vec<Arc<Pair>> = pairs.into_iter().collect();
        PairList { parts: pairs.chunks(PART).map(Arc::from).collect(), len: pairs.len() }
    }
}

impl PairList {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, at: usize) -> Option<&Arc<Pair>> {
        self.parts.get(at / PART)?.get(at % PART)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Pair>> {
        self.parts.iter().flat_map(|part| part.iter())
    }

    /// Replaces the pair with the index `at`, if there is one.
    pub(crate) fn replace(&mut self, at: usize, pair: Arc<Pair>) {
        let Some(part) = self.parts.get_mut(at / PART) else { return };
        if let Some(slot) = Arc::make_mut(part).get_mut(at % PART) {
            *slot = pair;
        }
    }

    /// Searches the sorted list like [`slice::binary_search_by`].
    pub(crate) fn search(&self, order: impl Fn(&Pair) -> Ordering) -> Result<usize, usize> {
        let is_before = |part: &Arc<[Arc<Pair>]>| part.last().is_some_and(|last| order(last).is_lt());
        let part = self.parts.partition_point(is_before);
        let first = part * PART;
        let found = self.parts.get(part).map_or(Err(0), |part| part.binary_search_by(|pair| order(pair)));
        found.map(|at| first + at).map_err(|at| (first + at).min(self.len))
    }
}

#[cfg(test)]
mod tests {
    use taffrail_status::Status;

    use super::*;
    use crate::index::samples::SampleFleet;

    #[test]
    fn list_finds_and_replaces_pairs_and_leaves_its_copy_as_it_was() {
        let names: Vec<String> = (0..3 * PART + 5).map(|number| format!("app-{number:03}")).collect();
        let apps: Vec<_> = names.iter().map(|name| (&**name, Status::Current, "")).collect();
        let published = SampleFleet::new().with("prod", &apps).index.published();
        let pairs: Vec<Arc<Pair>> =
            published.all().flat_map(|(_, cluster)| cluster.pairs.pairs.iter().cloned()).collect();
        assert_eq!(pairs.len(), names.len());
        for len in [0, 1, PART, PART + 1, pairs.len()] {
            let list: PairList = pairs.iter().take(len).cloned().collect();
            assert_eq!((list.iter().count(), list.len()), (len, len));
            for (at, pair) in pairs.iter().enumerate() {
                let expected = if at < len { Ok(at) } else { Err(len) };
                assert_eq!(list.search(|other| other.order(&pair.app)), expected, "{at} of {len}");
                assert_eq!(list.get(at).map(Arc::as_ptr), (at < len).then_some(Arc::as_ptr(pair)));
            }
            let mut changed = list.clone();
            changed.replace(PART, Arc::clone(&pairs[0]));
            let differ = list.iter().zip(changed.iter()).filter(|(one, other)| !Arc::ptr_eq(one, other));
            assert_eq!(differ.count(), usize::from(len > PART));
        }
    }
}
