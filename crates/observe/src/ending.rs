//! Finds out that a dump in YAML ends with a part of an object: a text that was cut between two lines is YAML as well.

use taffrail_object::Object;

/// The last field that an API server always prints for objects of these kinds, even if empty: group, kinds,
/// field. Fields stand in alphabetical order. Flux does not require the `spec` of its objects.
const LAST: [(&str, &[&str], &str); 8] = [
    ("apps", &["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"], "status"),
    (
        "",
        &[
            "Pod",
            "Service",
            "Namespace",
            "Node",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "ResourceQuota",
        ],
        "status",
    ),
    ("batch", &["Job", "CronJob"], "status"),
    ("autoscaling", &["HorizontalPodAutoscaler"], "status"),
    ("policy", &["PodDisruptionBudget"], "status"),
    ("networking.k8s.io", &["Ingress"], "status"),
    ("", &["Secret"], "type"),
    ("argoproj.io", &["Application"], "spec"),
];

/// Facts about the last object of a dump and those before it, to detect a cut dump. Items of a list with a
/// `kind` are left out: kubectl prints the kind below the items.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    /// True if the last object lacks a field that a server prints: with a UID, the one that [`LAST`] names for its kind
    /// (`status` of a Pod); with a `creationTimestamp`, the UID.
    last: bool,
    /// True if an object before the last one lacks its UID or the field of [`LAST`] too, so that these fields were
    /// probably removed on purpose.
    before: bool,
    /// True if an object has a UID, so that a server printed the objects.
    is_of_server: bool,
}

impl Ending {
    /// Takes `object` as the new last object: records if it lacks fields that a server prints, and keeps that
    /// fact about the one before.
    pub(crate) fn see(&mut self, object: &Object<'_>) {
        self.before |= self.last;
        let has = |field: &str| object.at(&["metadata", field]).is_some_and(|value| !value.is_null());
        // The UID is the last of the metadata that every object has.
        let has_uid = has("uid");
        self.is_of_server |= has_uid;
        self.last = if has_uid { lacks_last(object) } else { has("creationTimestamp") };
    }

    /// Returns true if only the last object lacks a field that a server always prints, and an object has a UID: the
    /// dump ends inside that object. A cut inside that object's last field is not detected.
    pub(crate) fn is_cut(&self) -> bool {
        self.last && !self.before && self.is_of_server
    }
}

/// Returns true if an object lacks the field that [`LAST`] names for its kind.
fn lacks_last(object: &Object<'_>) -> bool {
    let of_kind = LAST.iter().find(|(group, kinds, _)| {
        *group == object.group() && kinds.iter().any(|kind| *kind == object.kind())
    });
    of_kind.is_some_and(|(.., field)| object.root().get(field).is_none())
}
