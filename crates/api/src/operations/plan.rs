//! The plan of an operation: its targets, writes and digest.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use taffrail_apps::verbs::{DiffLine, Patch};
use taffrail_apps::{AppError, AppRef, full_name};
use taffrail_object::ObjectKey;

use super::OperationError;
use crate::question::FleetFacts;

/// One write of a plan: a patch or a creation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlannedWrite {
    /// The key of the object that is written; its name is empty if the server generates it.
    pub object: ObjectKey,
    /// The change that is sent.
    pub change: PlannedChange,
    /// The difference that the write makes, as lines of YAML; all lines of a new object are added ones.
    pub lines: Vec<DiffLine>,
}

/// The change that a [`PlannedWrite`] sends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum PlannedChange {
    /// A patch of an existing object or of its fields.
    Patch {
        /// The patch to send.
        patch: Patch,
        /// The patch to send if the server does not know a field of `patch`; left out if there is no other.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        alternative: Option<Patch>,
    },
    /// The creation of a new object.
    Create {
        /// The whole new object.
        body: Value,
    },
}

impl PlannedWrite {
    /// Makes the write of a patch.
    pub fn patch(object: ObjectKey, patch: Patch, alternative: Option<Patch>) -> PlannedWrite {
        let lines = patch.lines();
        PlannedWrite { object, change: PlannedChange::Patch { patch, alternative }, lines }
    }

    /// Makes the write of a new object; `yaml` is its text for people.
    pub fn create(object: ObjectKey, body: Value, yaml: &str) -> PlannedWrite {
        let lines = yaml.lines().map(|line| DiffLine::Added(line.to_owned())).collect();
        PlannedWrite { object, change: PlannedChange::Create { body }, lines }
    }

    /// Returns the namespace and name of the object; if the server generates the name, its prefix and `…`.
    pub fn called(&self) -> String {
        match &self.change {
            PlannedChange::Patch { .. } => self.object.path().to_string(),
            PlannedChange::Create { body } => called(&self.object, body),
        }
    }

    /// Returns the JSON merge patch, or the new object.
    pub fn body(&self) -> Value {
        match &self.change {
            PlannedChange::Patch { patch, .. } => patch.tree(),
            PlannedChange::Create { body } => body.clone(),
        }
    }

    /// Returns everything that identifies the write. The resource version that a patch is based on is left out: it
    /// differs whenever a controller writes the status.
    fn identity(&self) -> Value {
        let changes = |patch: &Patch| -> Value {
            let fields = patch.changes().iter();
            fields.map(|change| json!([change.path, change.before, change.after])).collect()
        };
        let object = &self.object;
        match &self.change {
            PlannedChange::Patch { patch, alternative } => {
                json!(["patch", object, changes(patch), alternative.as_ref().map(changes)])
            }
            PlannedChange::Create { body } => json!(["create", object, body]),
        }
    }
}

/// Returns the namespace and name of a new object, or the prefix and `…` if the server generates the name.
pub fn called(key: &ObjectKey, object: &Value) -> String {
    match object.pointer("/metadata/generateName").and_then(Value::as_str) {
        Some(begin) if key.name.is_empty() => {
            ObjectKey { name: format!("{begin}…"), ..key.clone() }.path().to_string()
        }
        _ => key.path().to_string(),
    }
}

/// The writes that an operation makes for one target: an app, or an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlannedItem<T> {
    /// The cluster that is written to.
    pub cluster: String,
    /// The app or object that the operation is applied to.
    pub target: T,
    /// The writes in order; none if there is nothing to do.
    pub writes: Vec<PlannedWrite>,
    /// Warnings for the user, such as that another tool may revert the change; empty if there are none.
    pub warnings: Vec<String>,
    /// The reason why there is nothing to do, if `writes` is empty.
    pub unchanged: String,
    /// The reason why the API server would refuse a write, as it says if it is asked; left out if it would not, and
    /// if it was not asked or did not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forbidden: Option<String>,
}

/// A target to which an operation cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RefusedItem<T> {
    /// The app or object.
    pub target: T,
    /// The reason.
    pub error: OperationError,
}

/// Everything that an operation would write, in all clusters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OperationPlan<T> {
    /// The name of the operation: `reconcile`, `suspend`, `resume`, or that of an action.
    pub operation: String,
    /// The targets that the operation can be applied to, also those with nothing to do.
    pub items: Vec<PlannedItem<T>>,
    /// The targets that the operation cannot be applied to.
    pub refused: Vec<RefusedItem<T>>,
}

impl<T> OperationPlan<T> {
    /// Makes a plan without targets.
    pub fn new(operation: impl Into<String>) -> OperationPlan<T> {
        OperationPlan { operation: operation.into(), items: Vec::new(), refused: Vec::new() }
    }

    /// Returns the digest of the operation's name and of all writes: their clusters, objects, and fields before and
    /// after.
    pub fn digest(&self) -> PlanDigest {
        let item = |item: &PlannedItem<T>| -> Value {
            json!([item.cluster, item.writes.iter().map(PlannedWrite::identity).collect::<Value>()])
        };
        let all = json!([self.operation, self.items.iter().map(item).collect::<Value>()]);
        let hash = Sha256::digest(all.to_string());
        PlanDigest(hash.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Checks that the plan has this digest.
    ///
    /// # Errors
    /// If the plan has changed since the digest was made.
    pub fn check(&self, digest: &PlanDigest) -> Result<(), OperationError> {
        if self.digest() == *digest {
            return Ok(());
        }
        let error = OperationError::unreadable(format!(
            "cannot run {}: the plan has changed since it was confirmed",
            self.operation
        ));
        Err(error.hint("check the new plan, and run that if the change is still needed"))
    }
}

/// A target of an operation, which a confirmation counts.
pub trait Target {
    /// Returns the name under which the target is counted: an app has one in all clusters.
    fn counted(&self) -> String;
}

impl Target for AppRef {
    fn counted(&self) -> String {
        full_name(self)
    }
}

impl Target for ActionTarget {
    fn counted(&self) -> String {
        format!("{}/{}", self.cluster, self.object)
    }
}

impl Target for OperationTarget {
    fn counted(&self) -> String {
        match self {
            OperationTarget::App(app) => app.counted(),
            OperationTarget::Object(object) => object.counted(),
        }
    }
}

impl<T: Target> OperationPlan<T> {
    /// Returns the number of different apps or objects that the plan writes to.
    pub fn targets(&self) -> usize {
        let written = self.items.iter().filter(|item| !item.writes.is_empty());
        written.map(|item| item.target.counted()).collect::<BTreeSet<_>>().len()
    }
}

impl<T> OperationPlan<T> {
    /// Returns the plan with other targets.
    pub fn with_targets<U>(self, convert: impl Fn(T) -> U) -> OperationPlan<U> {
        let item = |item: PlannedItem<T>| PlannedItem {
            cluster: item.cluster,
            target: convert(item.target),
            writes: item.writes,
            warnings: item.warnings,
            unchanged: item.unchanged,
            forbidden: item.forbidden,
        };
        let refused =
            |refused: RefusedItem<T>| RefusedItem { target: convert(refused.target), error: refused.error };
        OperationPlan {
            operation: self.operation,
            items: self.items.into_iter().map(item).collect(),
            refused: self.refused.into_iter().map(refused).collect(),
        }
    }
}

impl PlannedItem<AppRef> {
    /// Returns the objects that are patched in other namespaces than that of the app, such as sources: apps of others
    /// may use them too.
    pub fn sources_elsewhere(&self) -> impl Iterator<Item = &ObjectKey> {
        let objects = self.writes.iter().map(|write| &write.object);
        objects.filter(|key| key.namespace != self.target.namespace)
    }
}

/// The object to which an action is applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ActionTarget {
    /// The name of the cluster.
    pub cluster: String,
    /// The object.
    pub object: ObjectKey,
    /// The origin of the script: `user`, `cluster` or `taffrail`; left out if the action was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Cow<'static, str>>,
    /// The ConfigMap that contains the script, such as `ConfigMap argocd/argocd-cm`; left out unless it is a script of
    /// the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script_of: Option<String>,
}

/// The app or object to which an operation is applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum OperationTarget {
    /// An app.
    App(AppRef),
    /// An object.
    Object(ActionTarget),
}

/// The plan of an operation, as a hub answers with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlanAnswer<T = OperationTarget> {
    /// Facts about the fleet from which the plan was made.
    pub fleet: FleetFacts,
    /// The time at which the plan was made, which its writes may contain.
    pub planned_at: Timestamp,
    /// The digest of the plan.
    pub digest: PlanDigest,
    /// The plan.
    pub plan: OperationPlan<T>,
    /// The errors that concern the apps of the plan, or the clusters in which its object was looked for.
    pub errors: Vec<AppError>,
}

impl<T> PlanAnswer<T> {
    /// Returns the answer with other targets.
    pub fn with_targets<U>(self, convert: impl Fn(T) -> U) -> PlanAnswer<U> {
        PlanAnswer {
            fleet: self.fleet,
            planned_at: self.planned_at,
            digest: self.digest,
            plan: self.plan.with_targets(convert),
            errors: self.errors,
        }
    }
}

/// The SHA-256 digest of a plan, in hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct PlanDigest(String);

impl PlanDigest {
    /// Makes a digest from its printed form. A text that is not a digest matches no plan.
    pub fn new(text: impl Into<String>) -> PlanDigest {
        PlanDigest(text.into())
    }
}

impl fmt::Display for PlanDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
