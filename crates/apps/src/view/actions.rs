//! `reconcile`, `suspend` and `resume`: what was written, and what came of it.

use serde::Serialize;
use taffrail_object::ObjectKey;

use super::API_VERSION;
use crate::identity::AppRef;
use crate::verbs::{Patch, Verb};

/// What was done with apps.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ActionList {
    /// [`API_VERSION`].
    pub api_version: &'static str,
    /// `ActionList`.
    pub kind: &'static str,
    /// `reconcile`, `suspend` or `resume`.
    pub verb: &'static str,
    /// Whether nothing was to change: `none` where it was, `server` or `client`.
    pub dry_run: &'static str,
    /// A row for each app that was meant, in each cluster that holds its declaring object.
    pub items: Vec<ActionRow>,
}

impl ActionList {
    /// What `verb` came to.
    pub fn new(verb: Verb, dry_run: &'static str, items: Vec<ActionRow>) -> ActionList {
        ActionList { api_version: API_VERSION, kind: "ActionList", verb: verb.as_str(), dry_run, items }
    }
}

/// What was done with one app.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ActionRow {
    /// The cluster that its objects land in.
    pub cluster: String,
    /// The cluster that holds the declaring object, which is the one that was written.
    pub home: String,
    /// How it is delivered.
    pub delivery: &'static str,
    /// Of the declaring object.
    pub namespace: String,
    /// Of the declaring object.
    pub name: String,
    /// One word: `Ready`, `Failed`, `Timeout`; `Requested`, `Suspended`, `Resumed` where that was all that was asked;
    /// `Unchanged`, `Refused`, `Error`; of dry runs `Planned` and `Accepted`.
    pub result: &'static str,
    /// Why, or what its tool says.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// How long it took until that was known, where it was waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// What was written, or would be, one after the other.
    pub patches: Vec<PatchRow>,
    /// What people should know besides: who may undo it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl ActionRow {
    /// A row about `app` in which nothing was written.
    pub fn new(app: &AppRef, result: &'static str, message: impl Into<String>) -> ActionRow {
        ActionRow {
            cluster: app.target.clone(),
            home: app.home.clone(),
            delivery: app.delivery.as_str(),
            namespace: app.namespace.clone(),
            name: app.name.clone(),
            result,
            message: message.into(),
            hint: None,
            seconds: None,
            patches: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// A change of one object.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PatchRow {
    /// Of which.
    pub object: ObjectKey,
    /// A JSON merge patch.
    pub patch: serde_json::Value,
    /// Whether the server has taken it and kept it.
    pub written: bool,
}

impl PatchRow {
    /// A patch of `object` that was not written yet.
    pub fn new(object: &ObjectKey, patch: &Patch) -> PatchRow {
        PatchRow { object: object.clone(), patch: patch.tree(), written: false }
    }
}
