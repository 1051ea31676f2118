//! Parts that halves of many apps have alike: sources, labels and apps upstream. A fleet has the same apps in many clusters, so that
//! equal parts share their memory.

use std::collections::{BTreeMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use taffrail_api::report::{HalfBody, HalfUpstreams};
use taffrail_apps::Source;

/// The number of parts up to which unused ones are not searched.
const MIN_PARTS: usize = 1_000;

/// The parts that halves share.
#[derive(Debug, Default)]
pub(crate) struct SharedParts {
    sources: Parts<Source>,
    labels: Parts<BTreeMap<String, String>>,
    upstreams: Parts<HalfUpstreams>,
}

/// The parts of one type.
#[derive(Debug)]
struct Parts<T> {
    all: HashSet<Arc<T>>,
    /// The number of parts beyond which unused ones are dropped.
    most: usize,
}

impl<T> Default for Parts<T> {
    fn default() -> Parts<T> {
        Parts { all: HashSet::new(), most: MIN_PARTS }
    }
}

impl<T: Eq + Hash> Parts<T> {
    /// Replaces `part` by an equal one that another half has, if there is one.
    fn share(&mut self, part: &mut Arc<T>) {
        if let Some(known) = self.all.get(&**part) {
            *part = Arc::clone(known);
            return;
        }
        if self.all.len() >= self.most {
            self.all.retain(|known| Arc::strong_count(known) > 1);
            self.most = MIN_PARTS.max(2 * self.all.len());
        }
        self.all.insert(Arc::clone(part));
    }
}

impl SharedParts {
    /// Replaces the parts of a half by equal ones that other halves have. Leaves out parts that are longer than a hub
    /// keeps.
    pub(crate) fn share(&mut self, body: &mut HalfBody) {
        let HalfBody::Declared(body) = body else { return };
        let (has_short_source, has_short_labels) = (body.has_short_source(), body.has_short_labels());
        let has_short_upstreams = body.has_short_upstreams();
        if let Some(source) = body.source.as_mut().filter(|_| has_short_source) {
            self.sources.share(source);
        }
        if let Some(upstreams) = body.upstreams.as_mut().filter(|_| has_short_upstreams) {
            self.upstreams.share(upstreams);
        }
        if has_short_labels {
            self.labels.share(&mut body.labels);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_parts_share_their_memory_until_no_half_has_them() {
        let mut parts = Parts::<String>::default();
        let [mut one, mut two, mut other] = ["a", "a", "b"].map(|text| Arc::new(text.to_owned()));
        [&mut one, &mut two, &mut other].into_iter().for_each(|part| parts.share(part));
        assert!(Arc::ptr_eq(&one, &two) && !Arc::ptr_eq(&one, &other));
        for number in 0..5 * MIN_PARTS {
            parts.share(&mut Arc::new(number.to_string()));
        }
        assert!(parts.all.len() <= MIN_PARTS, "{}", parts.all.len());
        assert!(parts.all.contains(&*one) && parts.all.contains(&*other));
    }
}
