//! Rows of `impact`: what a change of a repository does to the objects of clusters.

use serde::{Deserialize, Serialize};
use taffrail_object::ObjectKey;

use crate::{AppOfHome, DiffRow, List, ListItem};

/// The answer of `impact`.
pub type ImpactList = List<ImpactRow>;

impl ListItem for ImpactRow {
    const LIST: &'static str = "ImpactList";
}

/// An object of a cluster, and what becomes of it once the newer commit is applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImpactRow {
    /// The cluster.
    pub cluster: String,
    /// The app that is delivered from the folder; left out where no app of the asked clusters is delivered from the
    /// repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<AppOfHome>,
    /// The folder of the repository that the app is delivered from, `.` for the root; left out without an app.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The object.
    pub object: ObjectKey,
    /// What becomes of it.
    pub effect: ImpactEffect,
    /// True if the manifest is the same before and after the change, so that what differs in the cluster differs already; left
    /// out if false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub differs_already: bool,
    /// The reason why the object stays, for people; left out for objects that do not stay undeclared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The comparison of the manifest at the newer commit with the live object; left out for an object that has no manifest
    /// there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<DiffRow>,
}

/// What becomes of an object once a commit is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ImpactEffect {
    /// It is created.
    Create,
    /// It changes.
    Change,
    /// It changes, its Pod template too, so that its Pods are replaced.
    Restart,
    /// Its tool deletes it, because the commit no longer declares it.
    Delete,
    /// It stays, although the commit no longer declares it: its tool deletes nothing, or not this object.
    Leave,
    /// It does not change.
    Unchanged,
    /// This cannot be told.
    Unknown,
}
