//! Objects that apps of one cluster have in another.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use taffrail_status::Trust;

use crate::delivery::{AppLabels, Declarations};
use crate::fleet::Fleet;
use crate::freshness::FreshnessState;
use crate::identity::{GroupKind, ObjectKey};
use crate::objects::{Lookup, Objects, Scope, ScopeError};

/// The most kinds of which the apps of one cluster have objects read in another. Each may cost the other cluster a list and
/// a watch, asked for with its own credentials.
const MOST_KINDS: usize = 250;

/// The objects that apps of all clusters have in others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Elsewhere {
    /// The objects that they declare, found or not, by the name of the cluster that they are in.
    pub objects: BTreeMap<String, BTreeSet<ObjectKey>>,
    /// The pairs of clusters where that is too much.
    pub left_out: Vec<LeftOut>,
    /// The names of the clusters whose apps want each of those, by cluster.
    pub homes: BTreeMap<String, BTreeMap<ObjectKey, Vec<String>>>,
}

/// Kinds that the apps of one cluster name in another, and that are not read there for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The name of the cluster that declares the apps.
    pub home: String,
    /// The name of the cluster that would be asked.
    pub target: String,
    /// How many kinds they name in all.
    pub kinds: usize,
}

impl LeftOut {
    /// Returns what is reported of the home: it asks for too much, and the other cluster can do nothing for it.
    pub fn error(&self) -> ScopeError {
        let LeftOut { target, kinds, .. } = self;
        let message = format!(
            "its apps name objects of {kinds} kinds in {target}, of which {MOST_KINDS} are read there for it"
        );
        let scope = Scope::Input(format!("objects in {target}"));
        ScopeError { scope, reason: "OverLimit".to_owned(), message }
    }
}

/// Collects what apps have in other clusters than their own, up to so many kinds for each pair of clusters.
pub fn elsewhere(clusters: &[&dyn Objects]) -> Elsewhere {
    let fleet = Fleet::new(clusters);
    // What labels hold together is in one cluster.
    let found = Declarations::of(&fleet, &AppLabels::default(), Trust::NONE, Timestamp::UNIX_EPOCH);
    let mut pairs: BTreeMap<(usize, usize), BTreeMap<GroupKind, BTreeSet<&ObjectKey>>> = BTreeMap::new();
    for app in &found.apps {
        let Some(cluster) = app.cluster().filter(|&cluster| cluster != app.home) else { continue };
        let kinds = pairs.entry((app.home, cluster)).or_default();
        for key in &app.objects {
            kinds.entry(key.group_kind()).or_default().insert(key);
        }
    }
    let mut all = Elsewhere::default();
    for ((home, target), kinds) in pairs {
        let name = |cluster: usize| fleet.objects(cluster).name().to_owned();
        if kinds.len() > MOST_KINDS {
            all.left_out.push(LeftOut { home: name(home), target: name(target), kinds: kinds.len() });
        }
        let keys: Vec<&ObjectKey> = kinds.into_values().take(MOST_KINDS).flatten().collect();
        let homes = all.homes.entry(name(target)).or_default();
        for key in &keys {
            homes.entry((*key).clone()).or_default().push(name(home));
        }
        all.objects.entry(name(target)).or_default().extend(keys.into_iter().cloned());
    }
    all.objects.retain(|_, keys| !keys.is_empty());
    all
}

/// What is wanted in a cluster because apps of another one deliver into it, by cluster.
///
/// When all clusters were read, these go into [`crate::Asked::objects`], and the plan of each cluster that is named
/// goes on.
pub fn wanted_elsewhere(clusters: &[&dyn Objects]) -> BTreeMap<String, Vec<ObjectKey>> {
    still_wanted(clusters, elsewhere(clusters).objects)
}

/// Narrows what is [`elsewhere`] to what [`wanted_elsewhere`] returns.
pub fn still_wanted(
    clusters: &[&dyn Objects],
    elsewhere: BTreeMap<String, BTreeSet<ObjectKey>>,
) -> BTreeMap<String, Vec<ObjectKey>> {
    let wanted = elsewhere.into_iter().filter_map(|(name, keys)| {
        let objects = clusters.iter().find(|objects| objects.name() == name)?;
        let lacking = |key: &ObjectKey| match objects.get(key) {
            // One that is there and not well has something behind it that is still to be read.
            Lookup::Found(_) => true,
            Lookup::Absent => false,
            Lookup::Unobserved(_) => objects.freshness().state != FreshnessState::Lost,
        };
        let keys: Vec<ObjectKey> = keys.into_iter().filter(lacking).collect();
        (!keys.is_empty()).then_some((name, keys))
    });
    wanted.collect()
}
