//! Finds out that a dump in YAML ends with a part of an object: a text that was cut between two lines is YAML as well.

use taffrail_object::Object;

/// The last field that an API server always prints of these kinds, also where it is empty: fields stand in the order of the
/// alphabet. Flux does not require the `spec` of its objects.
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

/// The last object of a dump, beside those before it. Items of a list that has its `kind` are no part of it: in what kubectl
/// prints that stands below them.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    /// Whether the last object lacks what a server prints.
    last: bool,
    /// Whether another does as well: then somebody left such fields out.
    before: bool,
    /// Whether an object has a UID: then a server printed them.
    is_of_server: bool,
}

impl Ending {
    /// Takes in the next object.
    pub(crate) fn see(&mut self, object: &Object<'_>) {
        self.before |= self.last;
        let has = |field: &str| object.at(&["metadata", field]).is_some_and(|value| !value.is_null());
        // The UID is the last of the metadata that every object has.
        let has_uid = has("uid");
        self.is_of_server |= has_uid;
        self.last = if has_uid { lacks_last(object) } else { has("creationTimestamp") };
    }

    /// Returns true if the last object is a part of one. Of one that was cut inside its last field that cannot be known.
    pub(crate) fn is_cut(&self) -> bool {
        self.last && !self.before && self.is_of_server
    }
}

/// Whether an object lacks the last field of its kind.
fn lacks_last(object: &Object<'_>) -> bool {
    let of_kind = LAST.iter().find(|(group, kinds, _)| {
        *group == object.group() && kinds.iter().any(|kind| *kind == object.kind())
    });
    of_kind.is_some_and(|(.., field)| object.root().get(field).is_none())
}
