//! Objects in one cluster (the target) that apps declared in another (the home) deliver.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use jiff::Timestamp;
use taffrail_object::ObjectKey;
use taffrail_status::{Presence, Trust};

use super::Dependents;
use super::dependents::dependent_namespaces;
use crate::declaration::Declaration;
use crate::delivery::{Declarations, DeclaredParts};
use crate::fleet::Fleet;
use crate::freshness::FreshnessState;
use crate::objects::Objects;
use crate::scope::{Scope, ScopeError};

/// The maximum number of kinds of which objects are read in a target for the apps of one home; objects of further kinds
/// are left out, see [`Elsewhere::left_out`].
///
/// Each may cost the cluster a list and a watch, made with its own credentials.
const MAX_KINDS: usize = 250;

/// The maximum number of lists, each of a kind in a namespace, in a target for the apps of one home with
/// [`ReadMode::OnceByNamespace`]; objects that need further lists are left out.
const MAX_NAMESPACED_LISTS: usize = 1_500;

/// The maximum number of objects of kinds that cannot be listed, which are read one by one in a target for the apps of
/// one home; further ones are left out.
const MAX_SINGLE_GETS: usize = 200;

/// The maximum number of namespaces in which dependents are listed in a target for the apps of one home with
/// [`ReadMode::OnceByNamespace`]; those in further namespaces are not read.
const MAX_NAMESPACES: usize = 100;

/// The maximum number of objects that are watched in a target for the apps of one home; further ones are left out.
///
/// Each is looked up whenever the reads of that cluster are planned.
const MAX_FOLLOWED: usize = 10_000;

/// The way in which target clusters are read for apps of other clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadMode {
    /// Clusters are read once; each kind is listed once, in all namespaces.
    Once,
    /// Clusters are read once; each kind is listed once in each namespace with needed objects.
    OnceByNamespace,
    /// Clusters are watched; a kind of which apps name many objects is watched in all namespaces.
    Followed,
}

/// The objects that the apps of each cluster have in other clusters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Elsewhere {
    /// The objects that apps of other clusters declare, whether they exist or not, by the name of the target cluster;
    /// without those beyond a limit.
    pub objects: BTreeMap<String, BTreeSet<ObjectKey>>,
    /// The exceeded limits, one entry for each limit, home and target cluster.
    pub left_out: Vec<LeftOut>,
    /// For each target cluster and each of its [`Elsewhere::objects`], the names of the home clusters whose apps
    /// declare it.
    pub homes: BTreeMap<String, BTreeMap<ObjectKey, Vec<String>>>,
    /// For each target cluster, the namespaces whose dependents are needed, each with the names of the home
    /// clusters; see [`crate::ReadQuery::dependents_in`].
    pub dependents_in: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

/// A limit that the apps of one home cluster exceed in a target cluster, so that not all of their objects are read
/// there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The name of the cluster that declares the apps.
    pub home: String,
    /// The name of the cluster that is not read in full.
    pub target: String,
    /// The limit that is exceeded.
    pub excess: Excess,
    /// Number of items that the apps name, of the sort that `excess` limits; those beyond the limit included.
    pub count: usize,
}

/// A limit on the reads in a target cluster for the apps of one home cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excess {
    /// Number of kinds of the apps' objects.
    Kinds,
    /// Number of pairs of a kind and a namespace, each of which is listed on its own.
    Places,
    /// Number of the apps' objects whose kinds do not support `list`.
    Singles,
    /// Number of namespaces in which dependents are read.
    Namespaces,
    /// Number of watched objects.
    Objects,
}

impl LeftOut {
    /// Returns the error about the exceeded limit, to be shown on the home cluster, whose apps exceed it.
    pub fn error(&self) -> ScopeError {
        let LeftOut { home, target, count, .. } = self;
        let message = match self.excess {
            Excess::Kinds => format!(
                "apps of {home} name objects of {count} kinds in {target}; Taffrail reads only {MAX_KINDS} of these kinds \
                 there"
            ),
            Excess::Places => format!(
                "apps of {home} name objects in {target} that take {count} lists, one per kind and namespace; Taffrail \
                 sends only {MAX_NAMESPACED_LISTS} of these (without -n it lists each kind once)"
            ),
            Excess::Singles => format!(
                "apps of {home} name {count} objects in {target} of kinds that cannot be listed; Taffrail reads only \
                 {MAX_SINGLE_GETS} of these objects"
            ),
            Excess::Namespaces => format!(
                "apps of {home} have objects in {count} namespaces of {target}; Taffrail reads the dependents of these \
                 objects in only {MAX_NAMESPACES} of these namespaces (without -n in all)"
            ),
            Excess::Objects => format!(
                "apps of {home} name {count} objects in {target}; Taffrail watches only {MAX_FOLLOWED} of these"
            ),
        };
        let scope = Scope::Input(format!("objects in {target}"));
        ScopeError { scope, reason: "OverLimit".to_owned(), message }
    }
}

/// The items that one home cluster needs, and those of them that fit into a limit.
struct Share<T> {
    wanted: HashSet<T>,
    granted: HashSet<T>,
    most: usize,
}

impl<T: std::hash::Hash + Eq + Copy> Share<T> {
    fn of(most: usize) -> Share<T> {
        Share { wanted: HashSet::new(), granted: HashSet::new(), most }
    }

    /// Counts an item as needed; returns true if the item fits into the limit or was accepted before.
    fn has_room(&mut self, one: T) -> bool {
        self.wanted.insert(one);
        self.granted.len() < self.most || self.granted.contains(&one)
    }
}

/// Collects the objects that apps have in other clusters than their home, within the limits for each home and
/// target.
///
/// The namespaces of a home take turns, so that none uses up a limit; within each namespace the apps with the
/// fewest objects come first.
pub fn elsewhere(clusters: &[&dyn Objects], dependents: &Dependents, mode: ReadMode) -> Elsewhere {
    let by_namespace = mode == ReadMode::OnceByNamespace;
    let fleet = Fleet::new(clusters);
    // The objects of a label group are all in one cluster.
    let parts = &mut DeclaredParts::default();
    let (found, _) = Declarations::by_tools(&fleet, Trust::NONE, Timestamp::UNIX_EPOCH, parts);
    let mut pairs: BTreeMap<(usize, usize), Vec<&Declaration>> = BTreeMap::new();
    for app in found.all() {
        let Some(cluster) = app.cluster().filter(|&cluster| cluster != app.home) else { continue };
        // Nothing of these objects is read there.
        if fleet.objects(cluster).is_light() {
            continue;
        }
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

/// Sorts apps by the number of objects that the apps before them in their namespace name; within a namespace, those
/// with the fewest objects come first.
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

/// Returns the namespaces of the target cluster in which dependents of these apps are needed, and the first `most` of
/// them as granted.
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

/// Returns the objects to read in each cluster because apps of other clusters deliver into it, by cluster name: those
/// of [`elsewhere()`] for [`ReadMode::Once`] that [`still_wanted`] leaves.
///
/// Once all clusters were read, these go into [`crate::ReadQuery::objects`], and the plan of each named cluster
/// continues.
pub fn wanted_elsewhere(clusters: &[&dyn Objects]) -> BTreeMap<String, Vec<ObjectKey>> {
    still_wanted(clusters, elsewhere(clusters, &Dependents::None, ReadMode::Once).objects)
}

/// Narrows `elsewhere` to the objects that still have to be read: those in `clusters` that are not known to be absent,
/// and were observed or are in a cluster that answers.
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
