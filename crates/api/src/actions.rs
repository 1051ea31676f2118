//! Rows of `reconcile`, `suspend` and `resume`: the patches written, and their results.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use taffrail_apps::{
    AppRef, Delivery,
    verbs::{Patch, Verb},
};
use taffrail_object::ObjectKey;

use crate::{API_VERSION, ErrorRow};

/// The results of a verb for apps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ActionList {
    /// Always [`API_VERSION`].
    pub api_version: Cow<'static, str>,
    /// Always `ActionList`.
    pub kind: Cow<'static, str>,
    /// `reconcile`, `suspend` or `resume`.
    pub verb: Cow<'static, str>,
    /// The dry run: `none`, `server` or `client`.
    pub dry_run: Cow<'static, str>,
    /// A row for each matching app, in each cluster that holds its declaring object.
    pub items: Vec<ActionRow>,
    /// Always empty: each row has its own failure.
    #[serde(default)]
    pub errors: Vec<ErrorRow>,
}

impl ActionList {
    /// Makes the list of the results of `verb`.
    pub fn new(verb: Verb, dry_run: &'static str, items: Vec<ActionRow>) -> ActionList {
        ActionList {
            api_version: API_VERSION.into(),
            kind: "ActionList".into(),
            verb: verb.as_str().into(),
            dry_run: dry_run.into(),
            items,
            errors: Vec::new(),
        }
    }
}

/// The result of a verb for one app.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ActionRow {
    /// The cluster that its objects land in.
    pub cluster: String,
    /// The cluster that holds the declaring object, which is the one written to.
    pub home: String,
    /// The way in which it is delivered.
    pub delivery: Delivery,
    /// Namespace of the declaring object.
    pub namespace: String,
    /// Name of the declaring object.
    pub name: String,
    /// One word: `Ready`, `Failed`, `Timeout`; `Requested`, `Suspended`, `Resumed` if nothing was waited for;
    /// `Unchanged`, `Refused`, `Error`; for dry runs `Planned` and `Accepted`.
    pub result: Cow<'static, str>,
    /// The reason, or the message of its tool.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The next step for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Seconds until the result was known, if it was waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// The patches that were or would be written, in order.
    pub patches: Vec<PatchRow>,
    /// Warnings for the user, such as that another tool may revert the change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl ActionRow {
    /// Makes a row about `app` without patches.
    pub fn new(app: &AppRef, result: impl Into<Cow<'static, str>>, message: impl Into<String>) -> ActionRow {
        ActionRow {
            cluster: app.target.clone(),
            home: app.home.clone(),
            delivery: app.delivery,
            namespace: app.namespace.clone(),
            name: app.name.clone(),
            result: result.into(),
            message: message.into(),
            hint: None,
            seconds: None,
            patches: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// A patch of one object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PatchRow {
    /// The object.
    pub object: ObjectKey,
    /// The JSON merge patch.
    pub patch: serde_json::Value,
    /// True if the server has accepted and stored it.
    pub written: bool,
}

impl PatchRow {
    /// Makes a row for a patch of `object` that was not written yet.
    pub fn new(object: &ObjectKey, patch: &Patch) -> PatchRow {
        PatchRow { object: object.clone(), patch: patch.tree(), written: false }
    }
}
