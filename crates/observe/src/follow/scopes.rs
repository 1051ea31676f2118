//! Converts reads of the plan to scopes that are listed and watched.

use taffrail_apps::{Read, Scope, Target};
use taffrail_object::{ObjectKey, Projection};

/// The kinds whose objects define kinds: group, version, kind, plural.
pub(super) const KINDS_OF_KINDS: [(&str, &str, &str, &str); 2] = [
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions"),
    ("apiregistration.k8s.io", "v1", "APIService", "apiservices"),
];

/// Returns the key of the object that a read requests by name; `None` for a list.
pub(super) fn named(read: &Read) -> Option<ObjectKey> {
    match read.scope() {
        Scope::Object(key) => Some(key),
        _ => None,
    }
}

/// Returns true if a read lists all objects of its kind, in all namespaces and without a selector.
pub(super) fn is_whole_kind(read: &Read) -> bool {
    read.namespace.is_none() && matches!(read.target, Target::List { labels: None, fields: None })
}

/// Returns the scope that watches all objects of a kind that defines kinds, as metadata, which shows that they
/// changed.
pub(super) fn definitions(
    (group, version, kind, plural): (&str, &str, &str, &str),
) -> taffrail_cluster::Scope {
    let resource = taffrail_cluster::ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        namespaced: false,
    };
    taffrail_cluster::Scope { projection: Projection::Metadata, ..taffrail_cluster::Scope::all(resource) }
}

pub(super) fn scope_of(read: &Read) -> taffrail_cluster::Scope {
    let (labels, fields) = match &read.target {
        Target::List { labels, fields } => (labels.clone(), fields.clone()),
        Target::Object(name) => (None, Some(format!("metadata.name={name}"))),
    };
    taffrail_cluster::Scope {
        resource: crate::read::resource(read),
        namespace: read.namespace.clone(),
        projection: read.projection,
        labels,
        fields,
    }
}
