//! The objects that must be read one by one to know the declarations of apps.

use std::collections::{BTreeMap, BTreeSet};

use taffrail_object::ObjectKey;

/// The maximum number of unread objects that the apps of one namespace may need so that these are read first. Objects
/// needed only by namespaces that need more are all read last.
const MAX_FIRST_READS: usize = 200;

/// Objects that were not read yet, each with its cluster and the namespaces of the apps that need it.
#[derive(Debug, Default)]
pub(crate) struct Lacking(BTreeMap<(usize, ObjectKey), BTreeSet<String>>);

impl Lacking {
    /// Adds an object of the cluster with this index that apps in its own namespace need.
    pub(crate) fn insert(&mut self, (cluster, key): (usize, ObjectKey)) {
        let namespace = key.namespace.clone();
        self.insert_for(&namespace, (cluster, key));
    }

    /// Adds an object of the cluster with this index that an app in the namespace `asker` needs.
    pub(crate) fn insert_for(&mut self, asker: &str, place: (usize, ObjectKey)) {
        self.0.entry(place).or_default().insert(asker.to_owned());
    }

    /// Adds objects, each with the index of its cluster, that apps in the objects' own namespaces need.
    pub(crate) fn extend(&mut self, places: impl IntoIterator<Item = (usize, ObjectKey)>) {
        places.into_iter().for_each(|place| self.insert(place));
    }

    /// Merges another list into this one.
    pub(crate) fn add(&mut self, other: Lacking) {
        for (place, askers) in other.0 {
            self.0.entry(place).or_default().extend(askers);
        }
    }

    /// Lists the objects, each with the namespaces of the apps that need it.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &BTreeSet<String>)> {
        self.0.iter().map(|((_, key), askers)| (key, askers))
    }

    /// Splits the objects for which `is_wanted` is true into those to read first and the rest. The rest are the objects
    /// needed only by namespaces that need more than [`MAX_FIRST_READS`] objects each.
    pub(crate) fn parted(
        &self,
        is_wanted: impl Fn(&ObjectKey) -> bool,
    ) -> (Vec<&ObjectKey>, Vec<&ObjectKey>) {
        let wanted: Vec<_> = self.0.iter().filter(|((_, key), _)| is_wanted(key)).collect();
        let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
        for asker in wanted.iter().flat_map(|(_, askers)| *askers) {
            *numbers.entry(asker).or_default() += 1;
        }
        let is_modest = |asker: &String| numbers.get(asker.as_str()).is_none_or(|it| *it <= MAX_FIRST_READS);
        let (mut first, mut rest) = (Vec::new(), Vec::new());
        for ((_, key), askers) in wanted {
            let part = if askers.iter().any(is_modest) { &mut first } else { &mut rest };
            part.push(key);
        }
        (first, rest)
    }
}
