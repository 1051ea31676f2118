//! Operations: changes that a user asks for, planned, shown and then written to clusters.
//!
//! This module is the only one that writes to clusters. A plan ([`plan_verb`], `plan_action`) sends nothing: it lists
//! each write with its diff and warnings, and [`OperationPlan::digest`] identifies all of them. A run
//! ([`OperationPlan::run_verb`], `OperationPlan::run_action`) takes the digest of the plan that the user confirmed, so
//! that what is written is what was shown, and reports its progress as [`OperationEvent`]s. If another client changes
//! an object meanwhile, its write is planned again: the same patch is sent, and another one is an error of that object.

#[cfg(feature = "lua")]
mod actions;
#[cfg(feature = "lua")]
mod located;
mod send;
mod verbs;

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use taffrail_api::question::ErrorLevel;
use taffrail_apps::verbs::{DiffLine, Patch};
use taffrail_cluster::{Reason, WriteError, add_causes};
use taffrail_object::ObjectKey;

#[cfg(feature = "lua")]
pub use actions::{ActionRequest, ActionScripts, ActionSettings, ActionTarget, Offer, plan_action};
#[cfg(feature = "lua")]
pub use located::{LocateRequest, Located, LocatedObject, LocatedScripts, locate, locate_in_dump};
pub use verbs::{AppTarget, VerbSettings, plan_verb};

/// Maximum number of times that an action sends a write, and that a verb repeats one, because other clients change
/// the object at the same time; the next conflict is an error.
const MAX_TRIES: usize = 5;

/// One write of a plan: a patch or a creation.
#[derive(Debug, Clone, PartialEq)]
pub enum PlannedWrite {
    /// A patch of an existing object or of its fields.
    Patch {
        /// The key of the object to patch.
        object: ObjectKey,
        /// The patch to send.
        patch: Patch,
        /// The patch to send if the server does not know a field of `patch`; `None` if there is no other.
        alternative: Option<Patch>,
    },
    /// The creation of a new object.
    Create {
        /// The object; its name is empty if the server generates it.
        object: ObjectKey,
        /// The whole new object.
        body: Value,
    },
}

impl PlannedWrite {
    /// Returns the object that is written.
    pub fn object(&self) -> &ObjectKey {
        match self {
            PlannedWrite::Patch { object, .. } | PlannedWrite::Create { object, .. } => object,
        }
    }

    /// Returns the namespace and name of the object; if the server generates the name, its prefix and `…`.
    pub fn called(&self) -> String {
        match self {
            PlannedWrite::Patch { object, .. } => object.path().to_string(),
            PlannedWrite::Create { object, body } => called(object, body),
        }
    }

    /// Returns the JSON merge patch, or the new object.
    pub fn body(&self) -> Value {
        match self {
            PlannedWrite::Patch { patch, .. } => patch.tree(),
            PlannedWrite::Create { body, .. } => body.clone(),
        }
    }

    /// Returns the difference that the write makes, as lines of YAML; all lines of a new object are added ones.
    pub fn lines(&self) -> Vec<DiffLine> {
        match self {
            PlannedWrite::Patch { patch, .. } => patch.lines(),
            PlannedWrite::Create { body, .. } => {
                let text = serde_saphyr::to_string(body).unwrap_or_default();
                text.lines().map(|line| DiffLine::Added(line.to_owned())).collect()
            }
        }
    }

    /// Returns everything that identifies the write. The resource version that a patch is based on is left out: it
    /// differs whenever a controller writes the status.
    fn identity(&self) -> Value {
        let changes = |patch: &Patch| -> Value {
            let fields = patch.changes().iter();
            fields.map(|change| json!([change.path, change.before, change.after])).collect()
        };
        match self {
            PlannedWrite::Patch { object, patch, alternative } => {
                json!(["patch", object, changes(patch), alternative.as_ref().map(changes)])
            }
            PlannedWrite::Create { object, body } => json!(["create", object, body]),
        }
    }
}

/// Returns the namespace and name of a new object, or the prefix and `…` if the server generates the name.
fn called(key: &ObjectKey, object: &Value) -> String {
    match object.pointer("/metadata/generateName").and_then(Value::as_str) {
        Some(begin) if key.name.is_empty() => {
            ObjectKey { name: format!("{begin}…"), ..key.clone() }.path().to_string()
        }
        _ => key.path().to_string(),
    }
}

/// The writes that an operation makes for one target: an app, or an object.
#[derive(Debug)]
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
}

/// Everything that an operation would write, in all clusters.
#[derive(Debug)]
pub struct OperationPlan<T> {
    /// The name of the operation: `reconcile`, `suspend`, `resume`, or that of an action.
    pub operation: String,
    /// The targets that the operation can be applied to, also those with nothing to do.
    pub items: Vec<PlannedItem<T>>,
    /// The targets that the operation cannot be applied to.
    pub refused: Vec<(T, OperationError)>,
}

impl<T> OperationPlan<T> {
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

    /// Checks that the plan has this digest; fails if it has changed since the digest was made.
    fn check(&self, digest: &PlanDigest) -> Result<(), OperationError> {
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

/// The SHA-256 digest of a plan, in hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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

/// The identifier of a run, which the caller chooses. [`OperationEvent::Started`] reports it before the first request
/// is sent, so that it can be stored by then.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OperationId(String);

impl OperationId {
    /// Makes an identifier from a text of the caller's choice.
    pub fn new(text: impl Into<String>) -> OperationId {
        OperationId(text.into())
    }

    /// Makes an identifier of 128 random bits.
    pub fn random() -> OperationId {
        OperationId(format!("{:032x}", fastrand::u128(..)))
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Progress of a run. `item` is the index in [`OperationPlan::items`].
#[derive(Debug)]
pub enum OperationEvent<'e> {
    /// The run begins; nothing was sent yet.
    Started {
        /// The identifier of the run.
        id: &'e OperationId,
        /// The digest of the plan that is run.
        digest: &'e PlanDigest,
    },
    /// An item with writes begins. To this event alone the caller may answer [`Reply::Skip`].
    Begins {
        /// The index of the item.
        item: usize,
    },
    /// A write is about to be sent for the first time.
    Writing {
        /// The index of the item.
        item: usize,
        /// The write that is sent.
        write: &'e PlannedWrite,
        /// True for the alternative of a write whose field the server does not know.
        is_alternative: bool,
    },
    /// The server accepted a write, or stored a part of one before the rest failed.
    Written {
        /// The index of the item.
        item: usize,
        /// The index of the write in the item.
        write: usize,
        /// True if the server stored it; false for a dry run.
        is_stored: bool,
        /// The name of the created object, which the server may have generated; `None` for a patch, or if it is not
        /// known.
        name: Option<String>,
    },
    /// Items wait for their tools, or for their apps to become ready: the index of each, and its state for people.
    Waiting(&'e [(usize, String)]),
    /// The item has ended.
    Ended {
        /// The index of the item.
        item: usize,
        /// The result of the item.
        outcome: Outcome,
    },
}

/// The caller's answer to an [`OperationEvent`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// Go on with the run.
    Continue,
    /// Skip the item that begins: it is not written.
    Skip,
    /// End the run without another request. Those under way are given up: whether they were made is not reported.
    Stop,
}

/// The result of an operation for one item of its plan.
#[derive(Debug)]
pub enum Outcome {
    /// There was nothing to do.
    Unchanged,
    /// The caller answered [`Reply::Skip`].
    Refused,
    /// The server accepted all writes in a dry run.
    Accepted,
    /// All writes were made. If the run waits, the tool has also handled them.
    Done,
    /// The app became ready after the writes.
    Ready {
        /// The message of the app's delivery tool.
        message: String,
        /// True if the app is ready but OutOfSync.
        is_out_of_sync: bool,
        /// The time since the run began.
        after: Duration,
    },
    /// The app failed after the writes.
    Failed {
        /// The reason for the failure.
        why: String,
        /// The time since the run began.
        after: Duration,
    },
    /// The tool handled the change, but the app's state is unknown, because the cluster of its objects was not read.
    Unobservable {
        /// The message: the cluster of the objects, and how to include it.
        why: String,
    },
    /// At the deadline the tool had not handled the change, or the app was not ready.
    TimedOut {
        /// The state that was waited for at the deadline, as people read it.
        why: String,
        /// True if the states of the objects that declare the app, and of those that it has, were live at the deadline.
        is_observed: bool,
        /// The time since the run began.
        after: Duration,
    },
    /// A write failed; writes before it may have been made.
    Error(OperationError),
}

/// The reason why an operation cannot be planned or written for one target.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct OperationError {
    /// [`ErrorLevel::Usage`] if the operation does not exist for the target, does not fit its state or refuses it, or
    /// if a parameter is unknown; otherwise [`ErrorLevel::Unreadable`].
    pub level: ErrorLevel,
    /// The message: what failed, on which object, and why.
    pub message: String,
    /// The next step for the user; `None` if there is nothing to suggest.
    pub hint: Option<String>,
    /// True if the cluster did not answer in time. The message says whether a write may have been made.
    pub is_late: bool,
}

impl OperationError {
    fn usage(message: impl Into<String>) -> OperationError {
        OperationError { level: ErrorLevel::Usage, message: message.into(), hint: None, is_late: false }
    }

    fn unreadable(message: impl Into<String>) -> OperationError {
        OperationError { level: ErrorLevel::Unreadable, message: message.into(), hint: None, is_late: false }
    }

    fn hint(self, hint: impl Into<String>) -> OperationError {
        OperationError { hint: Some(hint.into()), ..self }
    }

    /// Appends `error` and its causes to the message.
    fn with_source(mut self, error: &dyn std::error::Error) -> OperationError {
        add_causes(&mut self.message, Some(error));
        self
    }

    /// Makes the error for a failed write; `what` says what was tried, such as `cannot patch …`.
    fn of_write(what: impl Into<String>, error: &WriteError) -> OperationError {
        let is_late = error.reason() == Reason::Timeout;
        OperationError { is_late, ..OperationError::unreadable(what).with_source(error).hint(error.hint()) }
    }

    /// Makes the error for a write of which the server did not store the fields `fields`.
    fn dropped(name: &str, fields: &[String]) -> OperationError {
        let what = format!("{name}: the server did not keep {}", fields.join(", "));
        OperationError::unreadable(what).hint("a webhook of the cluster may have reverted these fields")
    }

    /// Makes the error for an object that another client changed, so that the planned write no longer fits;
    /// `conflict` describes the change.
    fn changed(name: impl fmt::Display, conflict: &str) -> OperationError {
        let what = format!("{name} was changed meanwhile, so the planned change may not fit: {conflict}");
        OperationError::unreadable(what).hint("check the object, and try again if the change is still needed")
    }
}
