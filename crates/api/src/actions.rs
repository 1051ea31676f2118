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
    /// The kind of the answer, always `ActionList`.
    pub kind: Cow<'static, str>,
    /// The verb that was applied: `reconcile`, `suspend` or `resume`.
    pub verb: Cow<'static, str>,
    /// The kind of dry run: `none`, `server` or `client`.
    pub dry_run: Cow<'static, str>,
    /// One row for each matching app, in each cluster that holds its declaring object.
    pub items: Vec<ActionRow>,
    /// Always empty: each row has its own failure.
    #[serde(default)]
    pub errors: Vec<ErrorRow>,
}

impl ActionList {
    /// Makes the answer to `verb` from the rows of the apps; `dry_run` is `none`, `server` or `client`.
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
    /// Name of the cluster that holds the app's objects; the same as `home` if that cluster was not queried.
    pub cluster: String,
    /// Name of the cluster that holds the declaring object; the verb writes to this one.
    pub home: String,
    /// The delivery of the app, such as a Flux Kustomization.
    pub delivery: Delivery,
    /// Namespace of the declaring object.
    pub namespace: String,
    /// Name of the declaring object.
    pub name: String,
    /// One word: `Ready`, `Failed`, `Timeout`; `Unobservable` if the cluster of the app's objects cannot be read;
    /// `Requested`, `Suspended`, `Resumed` if nothing was waited for; `Interrupted` if a hub ended before it knew
    /// the result; `Unchanged`, `Refused`, `Error`; for dry runs
    /// `Planned` and `Accepted`.
    pub result: Cow<'static, str>,
    /// The reason for the result, or the message of the delivery tool.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The next step for the user; left out if there is nothing to suggest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Seconds from the start until the result was known; left out unless that is `Ready`, `Failed` or `Timeout`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// The patches that were or would be written, in order.
    pub patches: Vec<PatchRow>,
    /// Warnings for the user, such as that another tool may revert the change; empty if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl ActionRow {
    /// Makes the row of `app` with a result and a message, and without patches.
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

/// A patch of one object, as sent to the server or planned in a dry run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PatchRow {
    /// The object that the patch changes.
    pub object: ObjectKey,
    /// The JSON merge patch.
    pub patch: serde_json::Value,
    /// True if the server has accepted and stored it.
    pub written: bool,
}

impl PatchRow {
    /// Makes the row of a patch of `object` that was not sent yet.
    pub fn new(object: &ObjectKey, patch: &Patch) -> PatchRow {
        PatchRow { object: object.clone(), patch: patch.tree(), written: false }
    }
}
