//! Rows of `diff`: how the objects of manifests differ from the live ones.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use taffrail_object::ObjectKey;

use crate::{List, ListItem};

/// The answer of `diff`.
pub type DiffList = List<DiffRow>;

impl ListItem for DiffRow {
    const LIST: &'static str = "DiffList";
}

/// An object of the manifests, compared with the live one of a cluster. Values that must not be shown are masked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DiffRow {
    /// The cluster.
    pub cluster: String,
    /// The object.
    pub object: ObjectKey,
    /// The file of the manifest, with the line on which the object begins: `deploy/web.yaml:12`.
    pub place: String,
    /// The result of the comparison.
    pub result: DiffResult,
    /// The object with which the live one was compared.
    pub diff: DiffMethod,
    /// The reason for `diff`, such as the server's message; left out if the server answered a dry run, and of a dump, about
    /// which no server is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The fields that differ, sorted by path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<DiffFieldRow>,
    /// The number of further fields that differ; left out if there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub fields_left_out: usize,
    /// The paths of fields that differ and that a rule ignores, each with the rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<DiffIgnoredRow>,
    /// The paths of fields that the server, or a webhook, stores with another value than the manifest has: they may differ
    /// after an apply, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rewritten: Vec<String>,
    /// Limits of the comparison, and the reasons for which its result is unknown, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The result of the comparison of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DiffResult {
    /// The object does not exist: an apply would create it.
    Create,
    /// An apply would change fields.
    Change,
    /// An apply would change nothing.
    Unchanged,
    /// The comparison was not possible.
    Unknown,
}

/// The object with which the live one is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DiffMethod {
    /// The API server's answer to the dry run of a server-side apply.
    Server,
    /// A merge of the manifest into the live object, made by the rules of server-side apply without the server.
    Merged,
    /// The manifest alone: its namespace or its kind comes with the other manifests.
    CreatedLater,
    /// None: the API server refused the manifest.
    Refused,
}

/// A field that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DiffFieldRow {
    /// The path, in which items of lists are named by their keys: `spec.template.spec.containers[name=web].image`.
    pub path: String,
    /// The relation of other managers to the field.
    pub class: DiffClass,
    /// The value after an apply; left out if the field would be removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<Value>,
    /// The live value; left out if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<Value>,
    /// The other field managers that own the field, or a part of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<DiffOwnerRow>,
}

/// The relation of other managers to a field that differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DiffClass {
    /// No other manager owns the field.
    Change,
    /// It was applied before, and another manager has changed or removed it since.
    Drift,
    /// Another manager owns it.
    Conflict,
}

/// A field manager that owns a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DiffOwnerRow {
    /// The name.
    pub manager: String,
    /// The subresource by which the manager wrote the field, such as `status`; left out for the object itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subresource: Option<String>,
    /// The time at which the manager's fields changed last, by the clock of the API server; left out if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

/// A field that differs and that a rule ignores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DiffIgnoredRow {
    /// The path.
    pub path: String,
    /// The rule, such as `ignoreDifferences[0]`.
    pub rule: String,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}
