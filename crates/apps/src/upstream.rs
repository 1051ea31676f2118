//! The apps upstream of an app, and the types of their relations.

use serde::{Deserialize, Serialize};

use crate::identity::AppName;

/// The type of a relation between two apps, in the words of the app downstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum RelationType {
    /// The app names the other one in `spec.dependsOn` (Flux): it is not applied before that one is ready.
    DependsOn,
    /// The other app delivers the object that declares the app: an app of apps.
    CreatedBy,
    /// The other app delivers the objects of the app: the sync that carries a package of Porch.
    DeliveredBy,
    /// The other app delivers the object that stands for the cluster with the app's objects, such as a `Cluster` of
    /// Cluster API.
    HostedBy,
}

impl RelationType {
    /// Returns the name used in JSON and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            RelationType::DependsOn => "dependsOn",
            RelationType::CreatedBy => "createdBy",
            RelationType::DeliveredBy => "deliveredBy",
            RelationType::HostedBy => "hostedBy",
        }
    }
}

/// An app upstream of another one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Upstream {
    /// The type of the relation.
    #[serde(rename = "type")]
    pub relation: RelationType,
    /// Name of the cluster that declares the app upstream.
    pub home: String,
    /// The name of the app upstream.
    #[serde(flatten)]
    pub app: AppName,
    /// True if the cluster `home` was read and does not have the object that would declare the app; left out if it has.
    #[serde(rename = "missing", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_missing: bool,
}

/// The apps upstream of one app.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Upstreams {
    /// The apps, by type of relation, then in the order in which the app names them; at most [`MAX_UPSTREAMS`] that it
    /// depends on.
    pub apps: Vec<Upstream>,
    /// Number of further apps that it depends on.
    pub left_out: usize,
}

/// The maximum number of apps that are kept of those on which one app depends, the first ones.
pub const MAX_UPSTREAMS: usize = 64;
