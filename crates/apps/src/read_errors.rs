//! The errors of reading a fleet, each with the cluster that can do something about it.
//!
//! An app names the cluster and the kinds of its objects. What cannot be read only because an app of another cluster
//! names it says nothing about how completely a cluster is read: it is an error of that other cluster, its home.

use std::collections::{BTreeSet, HashSet};

use taffrail_object::GroupKind;
use taffrail_status::Trust;

use crate::delivery::Declarations;
use crate::fleet::Fleet;
use crate::scope::{Scope, ScopeError, without_repeats};

/// Returns the errors of reading clusters, each with the index of the cluster that shows it. A scope that only apps of
/// other clusters need is an error of these clusters, unless the user trusts one of them or none is in the fleet.
/// Leaves out errors that only repeat why a whole cluster could not be read.
pub(crate) fn read_errors(
    fleet: &Fleet<'_>,
    found: &Declarations,
    trust: &Trust,
) -> Vec<(usize, ScopeError)> {
    let mut told = Vec::new();
    for (cluster, member) in fleet.members.iter().enumerate() {
        let foreign = member.objects.foreign_scopes();
        let own =
            if foreign.is_empty() { HashSet::new() } else { needed_here(found, cluster, foreign.keys()) };
        for error in without_repeats(member.objects.errors()) {
            let names = foreign.get(&error.scope).filter(|_| !own.contains(&error.scope));
            let homes = names.map(|names| homes(fleet, cluster, names)).unwrap_or_default();
            if homes.is_empty() || homes.iter().any(|home| fleet.trusts(*home, trust)) {
                told.push((cluster, error.clone()));
                continue;
            }
            let place = format!("{} in {}", error.scope, member.objects.name());
            let message =
                format!("cannot read objects of {place}, which apps of this cluster name: {}", error.message);
            let moved = ScopeError { scope: Scope::Input(place), reason: error.reason.clone(), message };
            told.extend(homes.into_iter().map(|home| (home, moved.clone())));
        }
    }
    told
}

/// Returns the indices of the clusters with these names, without `cluster`.
fn homes(fleet: &Fleet<'_>, cluster: usize, names: &BTreeSet<String>) -> Vec<usize> {
    let is_named = |home: &usize| fleet.names(*home).any(|name| names.contains(name));
    (0..fleet.members.len()).filter(|home| *home != cluster).filter(is_named).collect()
}

/// Returns those of `scopes` that hold an object of an app whose home and target are both this cluster.
fn needed_here<'s>(
    found: &Declarations,
    cluster: usize,
    scopes: impl Iterator<Item = &'s Scope>,
) -> HashSet<&'s Scope> {
    let scopes: HashSet<&Scope> = scopes.collect();
    let kind = |scope: &&Scope| match scope {
        Scope::Kind { kind, .. } => Some(kind.clone()),
        Scope::Object(key) => Some(key.group_kind()),
        _ => None,
    };
    let kinds: HashSet<GroupKind> = scopes.iter().filter_map(kind).collect();
    let own = found.all().filter(|app| app.home == cluster && app.cluster() == Some(cluster));
    let mut needed = HashSet::new();
    for key in own.flat_map(|app| &app.objects).filter(|key| kinds.contains(&key.group_kind())) {
        let (kind, namespace) = (key.group_kind(), Some(key.namespace.clone()));
        let holding = [
            Scope::Kind { kind: kind.clone(), namespace },
            Scope::Kind { kind, namespace: None },
            Scope::Object(key.clone()),
        ];
        needed.extend(holding.iter().filter_map(|scope| scopes.get(scope)));
    }
    needed
}
