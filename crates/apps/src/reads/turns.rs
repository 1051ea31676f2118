//! The order of the reads in a target cluster that apps of several home clusters need.

use std::collections::{BTreeMap, BTreeSet};

use taffrail_object::{GroupKind, ObjectKey};

use super::{Elsewhere, Read, Target};

/// The numbers of the home clusters that need an object, kind or namespace.
type Homes = BTreeSet<usize>;

/// The home clusters whose apps need objects of one target cluster, from which the order of the reads follows: the
/// excess of one home delays neither the target's own reads nor those of another home.
#[derive(Debug, Clone, Default)]
pub struct Turns {
    /// The names of the home clusters, by their number.
    names: Vec<String>,
    objects: BTreeMap<ObjectKey, Homes>,
    places: BTreeMap<(GroupKind, String), Homes>,
    kinds: BTreeMap<GroupKind, Homes>,
    namespaces: BTreeMap<String, Homes>,
}

impl Turns {
    /// Collects what each home cluster needs in the target `cluster`.
    pub fn of(elsewhere: &Elsewhere, cluster: &str) -> Turns {
        let objects = || elsewhere.homes.get(cluster).into_iter().flatten();
        let dependents = || elsewhere.dependents_in.get(cluster).into_iter().flatten();
        let names = objects().map(|(_, homes)| homes).chain(dependents().map(|(_, homes)| homes));
        let names: Vec<&str> =
            names.flatten().map(String::as_str).collect::<BTreeSet<_>>().into_iter().collect();
        let numbers = |homes: &[String]| -> Homes {
            homes.iter().filter_map(|home| names.binary_search(&home.as_str()).ok()).collect()
        };
        let own = names.iter().map(|name| (*name).to_owned()).collect();
        let mut turns = Turns { names: own, ..Turns::default() };
        for (key, homes) in objects() {
            let homes = numbers(homes);
            turns.places.entry((key.group_kind(), key.namespace.clone())).or_default().extend(&homes);
            turns.kinds.entry(key.group_kind()).or_default().extend(&homes);
            turns.namespaces.entry(key.namespace.clone()).or_default().extend(&homes);
            turns.objects.insert(key.clone(), homes);
        }
        for (namespace, homes) in dependents() {
            turns.namespaces.entry(namespace.clone()).or_default().extend(numbers(homes));
        }
        turns
    }

    /// Returns true if no app of another cluster needs objects of the target cluster or their dependents.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.namespaces.is_empty()
    }

    /// Sorts reads: first those in `own`, which the target cluster needs itself, then one of each home cluster in turn;
    /// those that no home needs together with the first ones.
    pub fn order(&self, own: &BTreeSet<Read>, reads: &mut [Read]) {
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        reads.sort_by_cached_key(|read| {
            if own.contains(read) {
                return 0;
            }
            // A read for several homes is charged to the one that has had the fewest.
            let first = self.homes(read).min_by_key(|home| counts.get(home).copied().unwrap_or_default());
            let Some(home) = first else { return 1 };
            let count = counts.entry(home).or_default();
            *count += 1;
            *count
        });
    }

    /// Returns the names of the home clusters that need the object or kind of a read; if there are none, of those that
    /// need its namespace.
    pub fn names(&self, read: &Read) -> impl Iterator<Item = &str> {
        self.homes(read).filter_map(|home| self.names.get(home)).map(String::as_str)
    }

    /// Returns the numbers of the home clusters that need the object or kind of a read; if there are none, of those
    /// that need an object or dependents in its namespace.
    fn homes(&self, read: &Read) -> impl Iterator<Item = usize> {
        let kind = GroupKind::new(&*read.group, &*read.kind);
        let namespace = read.namespace.clone().unwrap_or_default();
        let named = match &read.target {
            Target::Object(name) => {
                self.objects.get(&ObjectKey::new(kind.group, kind.kind, &*namespace, &**name))
            }
            Target::List { .. } if read.namespace.is_none() => self.kinds.get(&kind),
            Target::List { .. } => self.places.get(&(kind, namespace.clone())),
        };
        let inside = || self.namespaces.get(&namespace).filter(|_| !namespace.is_empty());
        named.or_else(inside).into_iter().flatten().copied()
    }
}
