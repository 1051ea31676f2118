//! The order in which a cluster is asked for what apps of several clusters want of it.

use std::collections::{BTreeMap, BTreeSet};

use taffrail_object::{GroupKind, ObjectKey};

use super::{Elsewhere, Read, Target};

/// The homes that want something, by their numbers.
type Homes = BTreeSet<usize>;

/// The clusters whose apps want something of one cluster, and what each of them wants: of what one names in excess neither that
/// cluster's own reads nor those of another home have to wait.
#[derive(Debug, Clone, Default)]
pub struct Turns {
    objects: BTreeMap<ObjectKey, Homes>,
    places: BTreeMap<(GroupKind, String), Homes>,
    kinds: BTreeMap<GroupKind, Homes>,
    namespaces: BTreeMap<String, Homes>,
}

impl Turns {
    /// Returns those of a cluster.
    pub fn of(elsewhere: &Elsewhere, cluster: &str) -> Turns {
        let objects = || elsewhere.homes.get(cluster).into_iter().flatten();
        let dependents = || elsewhere.dependents_in.get(cluster).into_iter().flatten();
        let names = objects().map(|(_, homes)| homes).chain(dependents().map(|(_, homes)| homes));
        let names: Vec<&str> =
            names.flatten().map(String::as_str).collect::<BTreeSet<_>>().into_iter().collect();
        let numbers = |homes: &[String]| -> Homes {
            homes.iter().filter_map(|home| names.binary_search(&home.as_str()).ok()).collect()
        };
        let mut turns = Turns::default();
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

    /// Returns true if no app of another cluster wants anything.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.namespaces.is_empty()
    }

    /// Puts reads into the order in which they are to be made: first those that are the cluster's `own`, and then of each home one
    /// after the other.
    pub fn order(&self, own: &BTreeSet<Read>, reads: &mut [Read]) {
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        reads.sort_by_cached_key(|read| {
            if own.contains(read) {
                return 0;
            }
            // What several want is charged to the one that has had the least.
            let first = self.homes(read).min_by_key(|home| counts.get(home).copied().unwrap_or_default());
            let Some(home) = first else { return 1 };
            let count = counts.entry(home).or_default();
            *count += 1;
            *count
        });
    }

    /// The homes that want what a read brings; where none names it, those that have something in its namespace.
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
