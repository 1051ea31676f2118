//! The question of `taffrail status`: the statuses of single objects.

use serde::{Deserialize, Serialize};
use taffrail_apps::ScopeError;

use super::FleetProblem;
use crate::StatusRow;

/// The parameters of `status`: the objects whose statuses are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct StatusView {
    /// The arguments of the command that name objects: each `KIND/NAME` or `[CLUSTER/]group/Kind/namespace/name`; or a
    /// kind and then names; or kinds separated by commas, for all of their objects.
    pub objects: Vec<String>,
    /// The namespace in which objects are looked for; `null` for the namespace of each cluster's context.
    pub namespace: Option<String>,
    /// True to look for objects in all namespaces.
    pub all_namespaces: bool,
    /// The label selector that objects must match, such as `team=blue`; only for kinds without names. `null` for any
    /// labels.
    pub selector: Option<String>,
}

/// The answer of `status`: the statuses of the objects, for each cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StatusAnswer {
    /// The clusters that were asked, with the statuses of the objects there.
    pub clusters: Vec<ClusterStatuses>,
    /// Failures outside of any cluster, such as in a kubeconfig.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<FleetProblem>,
    /// The namespace of the question, if it exists in no cluster; else empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_namespaces: Vec<String>,
}

/// The statuses of the objects in one cluster.
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
    /// The results, in the order of the question's arguments; one for each object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<StatusItem>,
}

/// A result for an argument of the question in one cluster: an object's status, or the reason why there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum StatusItem {
    /// The status of an object; `NotFound` if it does not exist, `Unknown` if it was not read.
    Object(Box<StatusRow>),
    /// The argument names a kind that the cluster does not serve; holds the kind as the argument has it.
    NoKind(String),
    /// The argument selects nothing in the cluster; holds the reason, for people.
    Nothing(String),
}
