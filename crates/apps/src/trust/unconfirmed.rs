//! Findings: objects do not carry the mark of the app that lists them, or a cluster is not proved to be what it
//! says.

use std::collections::{BTreeMap, BTreeSet};

use super::cluster_context::ClusterContext;
use super::{Concerned, Finding, FindingCategory, Severity};
use crate::identity::Delivery;

/// Finds apps that list objects in this cluster, outside of their authors' own namespaces, although the objects do not
/// carry the apps' marks. Returns one finding for each delivery tool.
pub(super) fn look(cluster: &ClusterContext<'_>) -> Vec<Finding> {
    let mut unconfirmed: BTreeMap<Delivery, (BTreeSet<usize>, Concerned)> = BTreeMap::new();
    for (place, app) in cluster.apps() {
        for resource in app.resources.iter().filter(|resource| resource.unconfirmed) {
            let (places, objects) = unconfirmed.entry(app.app.delivery).or_default();
            places.insert(place);
            objects.push(((*resource.key).clone(), None));
        }
    }
    let made = |(delivery, (places, mut objects)): (Delivery, (BTreeSet<usize>, Concerned))| {
        objects.sort();
        objects.dedup();
        let message = match objects.len() {
            1 => "the object is unconfirmed: an app lists it, and its marks do not name that app".to_owned(),
            number => format!(
                "{number} objects are unconfirmed: apps list them, and the marks of the objects do not name those apps"
            ),
        };
        let next = cluster.taffrail(&["get", "resources", "-o", "json", "--delivery", delivery.as_str()], "");
        Finding::new(FindingCategory::Disagreeing, Severity::Medium, "Unconfirmed")
            .about(delivery)
            .objects(objects)
            .says(message)
            .of(places)
            .next(next)
    };
    unconfirmed.into_iter().map(made).collect()
}

/// Makes the finding for a cluster whose server was not verified, for the reason `why`.
pub(super) fn unverified(why: &str) -> Finding {
    let message = format!("{why}: anyone on the network may forge the data of this cluster");
    Finding::new(FindingCategory::Unread, Severity::Medium, "NotVerified").says(message)
}

/// Makes the finding for a cluster that reports the identity of the cluster `twin` without proof.
pub(super) fn twin(twin: &str) -> Finding {
    Finding::new(FindingCategory::Disagreeing, Severity::Medium, "SameIdentity").says(format!(
        "the cluster reports the identity of {twin} without proof: one may be a copy of the other, or report a false \
         identity"
    ))
}
