//! `actions` and `action`: the actions of an object, and the results of one.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use taffrail_object::ObjectKey;

use crate::{API_VERSION, ErrorRow, List, ListItem};

/// The actions that scripts offer for objects, one row for each action, object and cluster; disabled actions
/// included.
pub type ObjectActionList = List<ObjectActionRow>;

/// An action that a script offers for an object in one cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ObjectActionRow {
    /// Name of the cluster that has the object.
    pub cluster: String,
    /// The object that the action would change.
    pub object: ObjectKey,
    /// The name by which users call the action.
    pub name: String,
    /// The origin of the action's script: `user`, `cluster` or `shipped`.
    pub origin: Cow<'static, str>,
    /// The name of the action for people; empty if the script gives none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub display_name: String,
    /// The CSS class of the icon in Argo CD's pages; empty if the script gives none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub icon_class: String,
    /// True if the script reports that the action does not apply to the object in its present state.
    pub disabled: bool,
    /// The parameters of the action.
    pub parameters: Vec<ActionParameter>,
}

impl ListItem for ObjectActionRow {
    const LIST: &'static str = "ObjectActionList";
}

/// A parameter of an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ActionParameter {
    /// The name of the parameter.
    pub name: String,
    /// The current value; empty if the script does not state it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// The type of the value; empty if the script does not state it.
    #[serde(default, rename = "type", skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The default for a user interface; empty if the script does not state it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub default: String,
}

/// The results of an action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ActionRun {
    /// Always [`API_VERSION`].
    pub api_version: Cow<'static, str>,
    /// Always `ActionRun`.
    pub kind: Cow<'static, str>,
    /// The name of the action.
    pub action: String,
    /// The kind of dry run: `none`, `server` or `client`.
    pub dry_run: Cow<'static, str>,
    /// One row for each cluster that has the object.
    pub items: Vec<ActionRunRow>,
    /// The clusters that could not be read; the failure of an object is in its row.
    #[serde(default)]
    pub errors: Vec<ErrorRow>,
}

impl ActionRun {
    /// Makes the results of `action`; `dry_run` is `none`, `server` or `client`.
    pub fn new(
        action: &str,
        dry_run: &'static str,
        items: Vec<ActionRunRow>,
        errors: Vec<ErrorRow>,
    ) -> ActionRun {
        ActionRun {
            api_version: API_VERSION.into(),
            kind: "ActionRun".into(),
            action: action.to_owned(),
            dry_run: dry_run.into(),
            items,
            errors,
        }
    }
}

/// The result of an action for one object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ActionRunRow {
    /// Name of the cluster that has the object.
    pub cluster: String,
    /// The object for which the action was requested, even if it was refused.
    pub object: ObjectKey,
    /// The origin of the action's script: `user`, `cluster` or `shipped`; left out if the action was refused before a
    /// script was chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Cow<'static, str>>,
    /// For a script of a cluster, the object in the cluster that contains the script; left out for other scripts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script_of: Option<String>,
    /// The result: `Done`, `Unchanged`, `Refused`, `Error`, `Timeout` if the cluster did not answer in time, or `Interrupted` if
    /// a hub did not learn the result; of dry runs `Planned` or `Accepted`.
    pub result: Cow<'static, str>,
    /// The reason for the result. If the answer to a write was lost, it says that the change may or may not have been
    /// made.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The next step for the user; left out if there is nothing to suggest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The changes that were or would be written, in order.
    pub changes: Vec<ObjectChangeRow>,
}

/// A change of one object, and whether the server stored it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ObjectChangeRow {
    /// The operation: `patch` or `create`.
    pub operation: Cow<'static, str>,
    /// The object that is patched or created.
    pub object: ObjectKey,
    /// The JSON merge patch, or the new object.
    pub body: serde_json::Value,
    /// True if the server has accepted and stored it.
    pub written: bool,
}
