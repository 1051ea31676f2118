//! Objects in one cluster that apps of another cluster deliver.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use jiff::Timestamp;
use taffrail_object::ObjectKey;
use taffrail_status::{Presence, Trust};

use super::Dependents;
use super::dependents::dependent_namespaces;
use crate::declaration::Declaration;
use crate::delivery::{AppLabels, Declarations};
use crate::fleet::Fleet;
use crate::freshness::FreshnessState;
use crate::objects::Objects;
use crate::scope::{Scope, ScopeError};

/// The maximum number of kinds of which objects are read in a cluster for the apps of another one.
///
/// Each may cost the cluster a list and a watch, made with its own credentials.
const MAX_KINDS: usize = 250;

/// The maximum number of lists, of a kind in a namespace, in a cluster for the apps of another one.
const MAX_NAMESPACED_LISTS: usize = 1_500;

/// The maximum number of objects of unlistable kinds that are read one by one in a cluster for the apps of
/// another one.
const MAX_SINGLE_GETS: usize = 200;

/// The maximum number of namespaces of a cluster in which dependents are listed for the apps of another one.
const MAX_NAMESPACES: usize = 100;

/// The maximum number of objects that are followed in a cluster for the apps of another one.
///
/// Each is looked up whenever the reads of that cluster are planned.
const MAX_FOLLOWED: usize = 10_000;

/// The way in which a cluster is read for the apps that other clusters deliver into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadMode {
    /// Clusters are read once; each kind is listed once, in all namespaces.
    Once,
    /// Clusters are read once; each kind is listed once per namespace that holds wanted objects.
    OnceByNamespace,
    /// Clusters are watched; a kind of which apps name many objects is watched in all namespaces.
    Followed,
}

/// The objects that the apps of each cluster have in other clusters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Elsewhere {
    /// The objects that apps of other clusters declare, present or absent, by the name of the cluster that
    /// holds them.
    pub objects: BTreeMap<String, BTreeSet<ObjectKey>>,
    /// One entry per home and target cluster whose limit is exceeded.
    pub left_out: Vec<LeftOut>,
    /// By the name of the cluster that holds the objects: each object, with the names of the clusters whose
    /// apps declare it.
    pub homes: BTreeMap<String, BTreeMap<ObjectKey, Vec<String>>>,
    /// By cluster: each namespace whose dependents are read because apps of other clusters deliver there,
    /// with the names of those clusters; for [`crate::ReadQuery::dependents_in`].
    pub dependents_in: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

/// A limit that the apps of one cluster exceed in another, so that some of their objects are not read there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The name of the cluster that declares the apps.
    pub home: String,
    /// The name of the cluster that is not read in full.
    pub target: String,
    /// The limit that is exceeded.
    pub excess: Excess,
    /// Number of items that the apps name, granted or not, in the unit of `excess`.
    pub count: usize,
}

/// A limit on what the apps of one cluster may cause to be read in another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excess {
    /// Number of kinds of the apps' objects.
    Kinds,
    /// Number of pairs of a kind and a namespace, each of which is listed separately.
    Places,
    /// Number of the apps' objects whose kinds do not support `list`.
    Singles,
    /// Number of namespaces in which dependents are read.
    Namespaces,
    /// Number of objects, where clusters are watched.
    Objects,
}

impl LeftOut {
    /// Returns the error to report for the home cluster: its apps name too much in the target, which cannot
    /// change that.
    pub fn error(&self) -> ScopeError {
        let LeftOut { target, count, .. } = self;
        let message = match self.excess {
            Excess::Kinds => format!(
                "its apps name objects of {count} kinds in {target}, of which {MAX_KINDS} are read there for it"
            ),
            Excess::Places => format!(
                "its apps name objects in {target} that take {count} lists, each of a kind in a namespace, of which \
                 {MAX_NAMESPACED_LISTS} are made there for it; without -n each kind is listed once"
            ),
            Excess::Singles => format!(
                "its apps name {count} objects in {target} of kinds that cannot be listed, of which {MAX_SINGLE_GETS} \
                 are read there for it"
            ),
            Excess::Namespaces => format!(
                "its apps have objects in {count} namespaces of {target}, in {MAX_NAMESPACES} of which it is read for \
                 it what became of them; without -n it is read in all"
            ),
            Excess::Objects => format!(
                "its apps name {count} objects in {target}, of which {MAX_FOLLOWED} are followed there for it"
            ),
        };
        let scope = Scope::Input(format!("objects in {target}"));
        ScopeError { scope, reason: "OverLimit".to_owned(), message }
    }
}

/// The items that one home cluster wants, and those granted to it under one limit.
struct Share<T> {
    wanted: HashSet<T>,
    granted: HashSet<T>,
    most: usize,
}

impl<T: std::hash::Hash + Eq + Copy> Share<T> {
    fn of(most: usize) -> Share<T> {
        Share { wanted: HashSet::new(), granted: HashSet::new(), most }
    }

    /// Counts `one` as wanted; returns true if it was granted before, or if the limit leaves room to grant
    /// it.
    fn has_room(&mut self, one: T) -> bool {
        self.wanted.insert(one);
        self.granted.len() < self.most || self.granted.contains(&one)
    }
}

/// Collects the objects that apps have in other clusters than their own, within limits for each pair of
/// clusters.
///
/// The namespaces of a home take turns, and within each namespace the apps with the fewest objects come
/// first.
pub fn elsewhere(clusters: &[&dyn Objects], dependents: &Dependents, mode: ReadMode) -> Elsewhere {
    let by_namespace = mode == ReadMode::OnceByNamespace;
    let fleet = Fleet::new(clusters);
    // The objects of a label group are all in one cluster.
    let found = Declarations::of(&fleet, &AppLabels::default(), Trust::NONE, Timestamp::UNIX_EPOCH);
    let mut pairs: BTreeMap<(usize, usize), Vec<&Declaration>> = BTreeMap::new();
    for app in found.all() {
        let Some(cluster) = app.cluster().filter(|&cluster| cluster != app.home) else { continue };
        pairs.entry((app.home, cluster)).or_default().push(app);
    }
    let mut all = Elsewhere::default();
    for ((home, target), mut apps) in pairs {
        in_turns(&mut apps);
        let there = fleet.objects(target);
        let (home, target) = (fleet.objects(home).name(), there.name());
        // For each kind: true if it is served, and true if it cannot be listed.
        let mut known: HashMap<(&str, &str), (bool, bool)> = HashMap::new();
        let mut kinds = Share::of(MAX_KINDS);
        let mut places = Share::of(MAX_NAMESPACED_LISTS);
        let mut singles = Share::of(MAX_SINGLE_GETS);
        let mut objects = Share::of(if mode == ReadMode::Followed { MAX_FOLLOWED } else { usize::MAX });
        for key in apps.iter().flat_map(|app| &app.objects) {
            if !objects.has_room(key) {
                continue;
            }
            let kind = (&*key.group, &*key.kind);
            let place = (kind, &*key.namespace);
            let (is_served, is_single) = *known.entry(kind).or_insert_with(|| {
                let is_served = there.is_served(&key.group, &key.kind) != Some(false);
                (is_served, there.is_listable(&key.group, &key.kind) == Some(false))
            });
            let is_place = by_namespace && !is_single;
            let has_room = [
                // A kind that is not served costs nothing.
                !is_served || kinds.has_room(kind),
                !is_place || places.has_room(place),
                !is_single || singles.has_room(key),
            ];
            if has_room.contains(&false) {
                continue;
            }
            if is_served {
                kinds.granted.insert(kind);
            }
            places.granted.extend(is_place.then_some(place));
            singles.granted.extend(is_single.then_some(key));
            objects.granted.insert(key);
        }
        let namespaces =
            namespaces(dependents, &apps, if by_namespace { MAX_NAMESPACES } else { usize::MAX });
        let counts = [
            (Excess::Kinds, kinds.wanted.len(), MAX_KINDS),
            (Excess::Places, places.wanted.len(), MAX_NAMESPACED_LISTS),
            (Excess::Singles, singles.wanted.len(), MAX_SINGLE_GETS),
            (Excess::Namespaces, namespaces.wanted.len(), namespaces.most),
            (Excess::Objects, objects.wanted.len(), objects.most),
        ];
        let over = counts.into_iter().filter(|(_, count, most)| count > most);
        all.left_out.extend(over.map(|(excess, count, _)| LeftOut {
            home: home.to_owned(),
            target: target.to_owned(),
            excess,
            count,
        }));
        let homes = all.homes.entry(target.to_owned()).or_default();
        let keys: BTreeSet<&ObjectKey> = objects.granted.into_iter().collect();
        for key in &keys {
            homes.entry((*key).clone()).or_default().push(home.to_owned());
        }
        all.objects.entry(target.to_owned()).or_default().extend(keys.into_iter().cloned());
        let wanted = all.dependents_in.entry(target.to_owned()).or_default();
        for namespace in namespaces.granted {
            wanted.entry(namespace.to_owned()).or_default().push(home.to_owned());
        }
    }
    all.objects.retain(|_, keys| !keys.is_empty());
    all.dependents_in.retain(|_, namespaces| !namespaces.is_empty());
    all
}

/// Sorts apps so that the namespaces that declare them take turns by the number of objects that they have
/// named so far.
///
/// So an author in one namespace gets no more than one share.
fn in_turns(apps: &mut [&Declaration]) {
    apps.sort_by_key(|app| app.objects.len());
    let mut named: HashMap<&str, usize> = HashMap::new();
    let mut turns: HashMap<*const Declaration, usize> = HashMap::with_capacity(apps.len());
    for app in apps.iter() {
        let before = named.entry(&app.namespace).or_default();
        turns.insert(std::ptr::from_ref(*app), *before);
        *before += app.objects.len();
    }
    apps.sort_by_key(|app| turns.get(&std::ptr::from_ref(*app)).copied());
}

/// Returns the namespaces, at most `most`, in which dependents of these apps, which deliver into another
/// cluster, are read.
fn namespaces<'a>(dependents: &Dependents, apps: &[&'a Declaration], most: usize) -> Share<&'a str> {
    let mut share = Share::of(most);
    for app in apps.iter().filter(|_| *dependents != Dependents::None) {
        let mut there = dependent_namespaces(dependents, &[*app]);
        // The declaring object is in the home cluster.
        if let Some(own) = app.declaring.as_ref()
            && !app.objects.iter().any(|key| key.namespace == own.namespace)
        {
            there.remove(&*own.namespace);
        }
        for namespace in there {
            if share.has_room(namespace) {
                share.granted.insert(namespace);
            }
        }
    }
    share
}

/// Returns the objects to read in each cluster because apps of another one deliver into it, by cluster name.
///
/// Once all clusters were read, these go into [`crate::ReadQuery::objects`], and the plan of each named cluster
/// continues.
pub fn wanted_elsewhere(clusters: &[&dyn Objects]) -> BTreeMap<String, Vec<ObjectKey>> {
    still_wanted(clusters, elsewhere(clusters, &Dependents::None, ReadMode::Once).objects)
}

/// Narrows the objects of [`elsewhere`] to those that [`wanted_elsewhere`] returns: all but the absent ones.
pub fn still_wanted(
    clusters: &[&dyn Objects],
    elsewhere: BTreeMap<String, BTreeSet<ObjectKey>>,
) -> BTreeMap<String, Vec<ObjectKey>> {
    let wanted = elsewhere.into_iter().filter_map(|(name, keys)| {
        let objects = clusters.iter().find(|objects| objects.name() == name)?;
        let lacking = |key: &ObjectKey| match objects.get(key.as_ref()) {
            // A present object that is not well may still have evidence to be read.
            Presence::Present(_) => true,
            Presence::Absent => false,
            Presence::Unobserved(_) => objects.freshness().state != FreshnessState::Lost,
        };
        let keys: Vec<ObjectKey> = keys.into_iter().filter(lacking).collect();
        (!keys.is_empty()).then_some((name, keys))
    });
    wanted.collect()
}
