//! Objects that apps of one cluster have in another.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use jiff::Timestamp;
use taffrail_object::ObjectKey;
use taffrail_status::{Presence, Trust};

use super::Dependents;
use super::dependents::dependent_namespaces;
use crate::delivery::{AppLabels, Declaration, Declarations};
use crate::fleet::Fleet;
use crate::freshness::FreshnessState;
use crate::objects::{Objects, Scope, ScopeError};

/// The most kinds of which the apps of one cluster have objects read in another. Each may cost the other cluster a list and
/// a watch, asked for with its own credentials.
const MOST_KINDS: usize = 250;

/// The most lists, of a kind in a namespace, that are made in a cluster for the apps of another one.
const MOST_PLACES: usize = 1_500;

/// The most objects, of kinds that cannot be listed, that are read one by one in a cluster for the apps of another one.
const MOST_SINGLES: usize = 200;

/// The most namespaces of a cluster in each of which dependents are listed for the apps of another one.
const MOST_NAMESPACES: usize = 100;

/// The most objects that are followed in a cluster for the apps of another one. Each is looked for whenever it is planned what to
/// read there.
const MOST_FOLLOWED: usize = 10_000;

/// How clusters are read for apps of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadMode {
    /// Once; each kind by one list.
    Once,
    /// Once; each namespace of a kind by a list of its own.
    OnceByNamespace,
    /// They are followed; kinds of which apps have many objects as a whole.
    Followed,
}

/// The objects that apps of all clusters have in others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Elsewhere {
    /// The objects that they declare, found or not, by the name of the cluster that they are in.
    pub objects: BTreeMap<String, BTreeSet<ObjectKey>>,
    /// The pairs of clusters where that is too much.
    pub left_out: Vec<LeftOut>,
    /// The names of the clusters whose apps want each of those, by cluster.
    pub homes: BTreeMap<String, BTreeMap<ObjectKey, Vec<String>>>,
    /// The namespaces in which dependents are wanted because such apps deliver there, with the names of the clusters whose apps
    /// these are, by cluster; they go into [`crate::Asked::dependents_in`].
    pub dependents_in: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

/// A part of what the apps of one cluster want of another, which is not read there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The name of the cluster that declares the apps.
    pub home: String,
    /// The name of the cluster that would be asked.
    pub target: String,
    /// What there is too much of.
    pub excess: Excess,
    /// How many of that they name in all.
    pub count: usize,
}

/// A measure of what the apps of one cluster want of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excess {
    /// The kinds of their objects.
    Kinds,
    /// The kinds in each namespace, where each is a list of its own.
    Places,
    /// Their objects of kinds that cannot be listed.
    Singles,
    /// The namespaces where their dependents are wanted.
    Namespaces,
    /// The objects, where they are followed.
    Objects,
}

impl LeftOut {
    /// Returns what is reported of the home: it asks for too much, and the other cluster can do nothing for it.
    pub fn error(&self) -> ScopeError {
        let LeftOut { target, count, .. } = self;
        let message = match self.excess {
            Excess::Kinds => format!(
                "its apps name objects of {count} kinds in {target}, of which {MOST_KINDS} are read there for it"
            ),
            Excess::Places => format!(
                "its apps name objects in {target} that take {count} lists, each of a kind in a namespace, of which \
                 {MOST_PLACES} are made there for it; without -n each kind is listed once"
            ),
            Excess::Singles => format!(
                "its apps name {count} objects in {target} of kinds that cannot be listed, of which {MOST_SINGLES} \
                 are read there for it"
            ),
            Excess::Namespaces => format!(
                "its apps have objects in {count} namespaces of {target}, in {MOST_NAMESPACES} of which it is read for \
                 it what became of them; without -n it is read in all"
            ),
            Excess::Objects => format!(
                "its apps name {count} objects in {target}, of which {MOST_FOLLOWED} are followed there for it"
            ),
        };
        let scope = Scope::Input(format!("objects in {target}"));
        ScopeError { scope, reason: "OverLimit".to_owned(), message }
    }
}

/// A count of what is wanted, and what of it is granted.
struct Share<T> {
    wanted: HashSet<T>,
    granted: HashSet<T>,
    most: usize,
}

impl<T: std::hash::Hash + Eq + Copy> Share<T> {
    fn of(most: usize) -> Share<T> {
        Share { wanted: HashSet::new(), granted: HashSet::new(), most }
    }

    /// Returns true if there is room for one more, or it is granted already.
    fn has_room(&mut self, one: T) -> bool {
        self.wanted.insert(one);
        self.granted.len() < self.most || self.granted.contains(&one)
    }
}

/// Collects what apps have in other clusters than their own, up to so much for each pair of clusters: their namespaces take turns, and
/// in each of them who names little is served before who names much.
pub fn elsewhere(clusters: &[&dyn Objects], dependents: &Dependents, mode: ReadMode) -> Elsewhere {
    let by_namespace = mode == ReadMode::OnceByNamespace;
    let fleet = Fleet::new(clusters);
    // What labels hold together is in one cluster.
    let found = Declarations::of(&fleet, &AppLabels::default(), Trust::NONE, Timestamp::UNIX_EPOCH);
    let mut pairs: BTreeMap<(usize, usize), Vec<&Declaration>> = BTreeMap::new();
    for app in &found.apps {
        let Some(cluster) = app.cluster().filter(|&cluster| cluster != app.home) else { continue };
        pairs.entry((app.home, cluster)).or_default().push(app);
    }
    let mut all = Elsewhere::default();
    for ((home, target), mut apps) in pairs {
        in_turns(&mut apps);
        let there = fleet.objects(target);
        let (home, target) = (fleet.objects(home).name(), there.name());
        // Whether a kind is served, and cannot be listed.
        let mut known: HashMap<(&str, &str), (bool, bool)> = HashMap::new();
        let mut kinds = Share::of(MOST_KINDS);
        let mut places = Share::of(MOST_PLACES);
        let mut singles = Share::of(MOST_SINGLES);
        let mut objects = Share::of(if mode == ReadMode::Followed { MOST_FOLLOWED } else { usize::MAX });
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
            namespaces(dependents, &apps, if by_namespace { MOST_NAMESPACES } else { usize::MAX });
        let counts = [
            (Excess::Kinds, kinds.wanted.len(), MOST_KINDS),
            (Excess::Places, places.wanted.len(), MOST_PLACES),
            (Excess::Singles, singles.wanted.len(), MOST_SINGLES),
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

/// Sorts apps so that each namespace in which some are declared has named about as many objects as every other when its next one has
/// its turn: whoever writes in one has no more than one share.
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

/// The namespaces in which dependents of these apps are wanted, which have their objects in another cluster.
fn namespaces<'a>(dependents: &Dependents, apps: &[&'a Declaration], most: usize) -> Share<&'a str> {
    let mut share = Share::of(most);
    for app in apps.iter().filter(|_| *dependents != Dependents::None) {
        let mut there = dependent_namespaces(dependents, &[*app]);
        // What declares it is where it is declared.
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

/// What is wanted in a cluster because apps of another one deliver into it, by cluster.
///
/// When all clusters were read, these go into [`crate::Asked::objects`], and the plan of each cluster that is named
/// goes on.
pub fn wanted_elsewhere(clusters: &[&dyn Objects]) -> BTreeMap<String, Vec<ObjectKey>> {
    still_wanted(clusters, elsewhere(clusters, &Dependents::None, ReadMode::Once).objects)
}

/// Narrows what is [`elsewhere`] to what [`wanted_elsewhere`] returns.
pub fn still_wanted(
    clusters: &[&dyn Objects],
    elsewhere: BTreeMap<String, BTreeSet<ObjectKey>>,
) -> BTreeMap<String, Vec<ObjectKey>> {
    let wanted = elsewhere.into_iter().filter_map(|(name, keys)| {
        let objects = clusters.iter().find(|objects| objects.name() == name)?;
        let lacking = |key: &ObjectKey| match objects.get(key.as_ref()) {
            // One that is there and not well has something behind it that is still to be read.
            Presence::Present(_) => true,
            Presence::Absent => false,
            Presence::Unobserved(_) => objects.freshness().state != FreshnessState::Lost,
        };
        let keys: Vec<ObjectKey> = keys.into_iter().filter(lacking).collect();
        (!keys.is_empty()).then_some((name, keys))
    });
    wanted.collect()
}
