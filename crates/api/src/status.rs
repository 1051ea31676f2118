//! Rows of `status`: the status of single objects.

use serde::{Deserialize, Serialize};
use taffrail_status::Status;

use crate::ListItem;

/// The status of one object, or of an input that could not be judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StatusRow {
    /// API group; empty for the core group.
    pub group: String,
    /// API version, without the group.
    pub version: String,
    /// Name of the kind.
    pub kind: String,
    /// Namespace of the object; empty for cluster-scoped objects.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// The status of the object.
    pub status: Status,
    /// The message of the status; may be empty.
    pub message: String,
    /// The conditions that kstatus would add to the object: `Reconciling`, `Stalled`, or none.
    pub conditions: Vec<StatusCondition>,
    /// Name of the rule that decided the status.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rule: String,
    /// True if a user suspended the object: `spec.suspend` is set, or the rules of its kind find so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
    /// The reason why the object or input could not be read or judged; left out if it was judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl ListItem for StatusRow {
    const LIST: &'static str = "StatusList";
}

/// A condition that kstatus would add to an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatusCondition {
    /// `Reconciling` or `Stalled`.
    #[serde(rename = "type")]
    pub condition: String,
    /// Always `True`.
    pub status: String,
    /// The reason of the condition in one CamelCase word.
    pub reason: String,
    /// The message of the condition.
    pub message: String,
}
