//! Whose is an object: who declares it in words that need no guessing.

use std::collections::BTreeMap;

use crate::delivery::Declaration;
use crate::fleet::Fleet;
use crate::identity::ObjectKey;
use crate::objects::{Scope, ScopeError};

/// The objects named by inventories, lists of managed resources and Helm's storage, per cluster, each with the
/// apps that name it. Weaker claims (labels) give way to these.
pub(crate) struct Claims(BTreeMap<usize, BTreeMap<ObjectKey, Vec<usize>>>);

impl Claims {
    /// The claims of `apps`; an app is known by its place in the list.
    pub(crate) fn of(apps: &[Declaration]) -> Claims {
        let mut claims: BTreeMap<usize, BTreeMap<ObjectKey, Vec<usize>>> = BTreeMap::new();
        for (place, app) in apps.iter().enumerate() {
            let Some(cluster) = app.cluster() else { continue };
            let claims = claims.entry(cluster).or_default();
            for object in &app.objects {
                claims.entry(object.clone()).or_default().push(place);
            }
        }
        Claims(claims)
    }

    /// Whether an object of a cluster is claimed.
    pub(crate) fn contains(&self, cluster: usize, object: &ObjectKey) -> bool {
        self.0.get(&cluster).is_some_and(|claims| claims.contains_key(object))
    }

    /// The objects that two or more apps claim: each is shown in all of them and reported once.
    pub(crate) fn overlaps(&self, apps: &[Declaration], fleet: &Fleet<'_>) -> Vec<(usize, ScopeError)> {
        let mut overlaps = Vec::new();
        for (&cluster, claims) in &self.0 {
            for (object, claimants) in claims {
                let names = claimants.iter().filter_map(|&place| apps.get(place));
                let names: Vec<String> = names.map(|app| name(app, cluster, fleet)).collect();
                let Some((last, others @ [_, ..])) = names.split_last() else { continue };
                let message = format!("{object} is claimed by {} and {last}", others.join(", "));
                let scope = Scope::Object(object.clone());
                overlaps.push((cluster, ScopeError { scope, reason: "Overlap".to_owned(), message }));
            }
        }
        overlaps
    }
}

fn name(app: &Declaration, cluster: usize, fleet: &Fleet<'_>) -> String {
    let Declaration { home, delivery, namespace, name, .. } = app;
    if *home == cluster {
        format!("{delivery} {namespace}/{name}")
    } else {
        format!("{delivery} {namespace}/{name} of {}", fleet.objects(*home).name())
    }
}
