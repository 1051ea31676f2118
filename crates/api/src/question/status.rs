//! The question of `status`: the statuses of single objects.

use serde::{Deserialize, Serialize};
use taffrail_apps::ScopeError;

use super::FleetProblem;
use crate::StatusRow;

/// The question of `status`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct StatusView {
    /// The objects, as words of a command line: `KIND/NAME`, `[CLUSTER/]group/Kind/namespace/name`, a kind and then names,
    /// or kinds separated by commas.
    pub objects: Vec<String>,
    /// The namespace of the objects; `null` for that of the context of each cluster.
    pub namespace: Option<String>,
    /// True for objects of all namespaces.
    pub all_namespaces: bool,
    /// The labels of the objects of a kind, as a label selector; `null` for any.
    pub selector: Option<String>,
}

/// The answer of `status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StatusAnswer {
    /// The statuses in each cluster.
    pub clusters: Vec<ClusterStatuses>,
    /// Failures outside of any cluster, such as in a kubeconfig.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<FleetProblem>,
    /// The namespaces that the question names, and that do not exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_namespaces: Vec<String>,
}

/// The statuses of objects in a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatuses {
    /// The name of the cluster.
    pub cluster: String,
    /// True if the cluster was never observed.
    #[serde(default)]
    pub is_unobserved: bool,
    /// Failures to read the cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ScopeError>,
    /// The objects, in the order of the question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<StatusItem>,
}

/// What a cluster has for a word of the question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum StatusItem {
    /// The status of an object.
    Object(Box<StatusRow>),
    /// A kind that the cluster does not serve.
    NoKind(String),
    /// The reason why nothing can have the name.
    Nothing(String),
}
