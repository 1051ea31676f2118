//! Operations: the writes that a user asks for, as they are shown before they are sent, and the progress of their run.
//!
//! An operation is planned first: an [`OperationPlan`] lists each write with its diff and warnings, and its
//! [digest](OperationPlan::digest) identifies all of them. A run takes the digest of the plan that the user confirmed,
//! so that what is written is what was shown, and reports its progress as [`OperationEvent`]s.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use taffrail_apps::verbs::{DiffLine, Patch, TAKE_REQUESTS, Verb};
use taffrail_apps::{App, AppError, AppList, AppQuery, AppRef, Dependents, ReadQuery, full_name};
use taffrail_object::{LabelSelector, ObjectKey};
use taffrail_status::Presence;

use crate::as_text;
use crate::filter::Filter;
use crate::question::{
    AppSelection, AskedFleet, ErrorLevel, FleetFacts, QuestionError, find, inside, resolve_clusters,
};

/// Maximum number of apps of an operation that needs no confirmation of their number.
pub const MOST_UNCOUNTED: usize = 10;

/// The question of `reconcile`, `suspend` and `resume`: the verb, and the apps to which it is applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VerbQuestion {
    /// The verb.
    pub verb: Verb,
    /// The names of the apps, each of which stands for the app in all selected clusters: `NAME`, `NAMESPACE/NAME` or
    /// `[CLUSTER/]DELIVERY/NAMESPACE/NAME`; empty for the Flux and Argo CD apps that `selector` admits.
    #[serde(default, with = "as_text::list")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub names: Vec<AppQuery>,
    /// The label selector that the declaring objects match; `null` for all. Without effect if `names` are given.
    #[serde(default, with = "as_text::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub selector: Option<LabelSelector>,
    /// The namespace and the clusters to which the apps are limited.
    #[serde(default)]
    pub apps: AppSelection,
}

impl VerbQuestion {
    /// Returns true if the verb reads the sources of the apps, too.
    pub fn has_sources(&self) -> bool {
        matches!(self.verb, Verb::Reconcile(how) if how.with_source)
    }

    /// Returns the names of the apps; one without a namespace gets that of the selection.
    pub fn names(&self) -> Vec<AppQuery> {
        let within = |name: &AppQuery| name.clone().within(self.apps.namespace.as_deref());
        self.names.iter().map(within).collect()
    }

    /// Returns the question with the first name of each cluster of `fleet` in place of an alias.
    ///
    /// # Errors
    /// If the question names a cluster that the fleet does not have.
    pub fn resolved(&self, fleet: &dyn AskedFleet) -> Result<VerbQuestion, QuestionError> {
        let mut question = self.clone();
        let names = question.names.iter_mut().flat_map(AppQuery::clusters_mut);
        resolve_clusters(question.apps.clusters.iter_mut().chain(names), &fleet.clusters())?;
        Ok(question)
    }

    /// Returns the query for what the operation needs of each cluster.
    pub fn reads(&self) -> ReadQuery {
        ReadQuery {
            namespace: self.apps.namespace.clone(),
            dependents: match &*self.names() {
                [name] => Dependents::Of(name.clone()),
                _ => Dependents::None,
            },
            app_labels: self.apps.app_labels.clone(),
            ..ReadQuery::default()
        }
    }

    /// Returns the apps of `list`, those of `fleet`, that the question names or selects.
    ///
    /// # Errors
    /// If a name matches no app or several, or may be that of an app that could not be read; if the selection is empty;
    /// and for an unknown cluster.
    pub fn choose<'l>(
        &self,
        fleet: &dyn AskedFleet,
        list: &'l AppList,
    ) -> Result<Vec<&'l App>, QuestionError> {
        let question = self.resolved(fleet)?;
        let (names, AppSelection { namespace, clusters, .. }) = (question.names(), &question.apps);
        let namespace = namespace.as_deref();
        let mut apps = Vec::new();
        for name in &names {
            let hides = |error: &&AppError| {
                TAKE_REQUESTS.into_iter().any(|delivery| name.may_be_hidden(&error.error, Some(delivery)))
            };
            if let Some(error) = list.errors.iter().find(hides) {
                let hidden_by = Box::new(error.clone());
                return Err(QuestionError::NotOnlyApp { name: name.to_string(), hidden_by });
            }
            apps.extend(find(name, namespace, clusters, list)?);
        }
        if !names.is_empty() {
            return Ok(apps);
        }
        let filter = Filter { labels: self.selector.clone(), ..Filter::default() };
        let mut admitted = AppList { apps: list.apps.clone(), ..AppList::default() };
        filter.apps(&mut admitted, &fleet.clusters());
        let inside = inside(namespace, clusters, &admitted);
        let chosen = |app: &&App| {
            TAKE_REQUESTS.contains(&app.app.delivery) && inside.iter().any(|inside| inside.app == app.app)
        };
        let apps: Vec<&App> = list.apps.iter().filter(chosen).collect();
        if apps.is_empty() { Err(QuestionError::NoneSelected) } else { Ok(apps) }
    }
}

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

impl OperationPlan<AppRef> {
    /// Returns the number of different apps of the plan, however many clusters each is in.
    pub fn apps(&self) -> usize {
        let names = self.items.iter().filter(|item| !item.writes.is_empty());
        names.map(|item| full_name(&item.target)).collect::<std::collections::BTreeSet<_>>().len()
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

/// The plan of a verb, as a hub answers with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlanAnswer {
    /// Facts about the fleet from which the plan was made.
    pub fleet: FleetFacts,
    /// The time at which the plan was made, which its writes may contain.
    pub planned_at: Timestamp,
    /// The digest of the plan.
    pub digest: PlanDigest,
    /// The plan.
    pub plan: OperationPlan<AppRef>,
    /// The errors that concern the apps of the plan.
    pub errors: Vec<AppError>,
}

/// The request to run a plan that a hub answered with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunRequest {
    /// The identifier of the run, which the client chooses: a second request with it runs nothing, but gets the events
    /// of the first.
    pub id: OperationId,
    /// The question of the plan.
    pub question: VerbQuestion,
    /// The time at which the plan was made, as its answer says.
    pub planned_at: Timestamp,
    /// The digest of the plan that was shown: if the plan is another by now, nothing is written.
    pub digest: PlanDigest,
    /// The number of different apps with a write, which must be confirmed if there are more than ten; `null` if it is
    /// not.
    #[serde(default)]
    pub confirmed: Option<usize>,
    /// True if the servers only check the writes, and store nothing.
    #[serde(default)]
    pub dry_run: bool,
    /// True to wait until the tools have handled the requests and the apps are ready or have failed.
    #[serde(default)]
    pub waits: bool,
    /// The time for the whole run in milliseconds; at most ten minutes.
    pub timeout_millis: u64,
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

/// The identifier of a run, which the caller chooses. [`OperationEvent::Started`] reports it before the first request
/// is sent, so that it can be stored by then.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct OperationId(String);

impl OperationId {
    /// Makes an identifier from a text of the caller's choice.
    pub fn new(text: impl Into<String>) -> OperationId {
        OperationId(text.into())
    }

    /// Returns the identifier as a text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Progress of a run. `item` is the index in [`OperationPlan::items`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum OperationEvent {
    /// The run begins; nothing was sent yet.
    Started {
        /// The identifier of the run.
        id: OperationId,
        /// The digest of the plan that is run.
        digest: PlanDigest,
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
        write: PlannedWrite,
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
        /// The name of the created object, which the server may have generated; `null` for a patch, or if it is not
        /// known.
        name: Option<String>,
    },
    /// Items wait for their tools, or for their apps to become ready.
    Waiting {
        /// The items.
        items: Vec<WaitingItem>,
    },
    /// The item has ended.
    Ended {
        /// The index of the item.
        item: usize,
        /// The result of the item.
        outcome: Outcome,
    },
    /// The run has ended. Only a hub tells this: without it an answer is not whole.
    Done,
    /// Nothing is new; a hub sends it where nothing else was for a while.
    Alive,
}

/// An item that waits for its tool, or for its app to become ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WaitingItem {
    /// The index of the item.
    pub item: usize,
    /// The state that is waited for, for people.
    pub why: String,
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "result", rename_all = "camelCase", rename_all_fields = "camelCase")]
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
        #[serde(flatten)]
        after: After,
    },
    /// The app failed after the writes.
    Failed {
        /// The reason for the failure.
        why: String,
        /// The time since the run began.
        #[serde(flatten)]
        after: After,
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
        #[serde(flatten)]
        after: After,
    },
    /// A write failed; writes before it may have been made.
    Error {
        /// The reason.
        error: OperationError,
    },
    /// The hub ended before the item did. Nothing was sent again; what the writes would have left was looked for.
    Interrupted {
        /// Whether the objects have the changes.
        trace: WriteTrace,
        /// What was found, for people.
        why: String,
    },
}

/// What an object tells of a write whose answer is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum WriteTrace {
    /// The object has the change.
    Made,
    /// The object is as it was before the change.
    NotMade,
    /// The object is neither as it was nor as the change would leave it, or could not be read.
    Unknown,
}

impl WriteTrace {
    /// Looks for the change of `write` in the object, as it is now.
    pub fn of(write: &PlannedWrite, found: &Presence<'_>) -> WriteTrace {
        match (&write.change, found) {
            (_, Presence::Unobserved(_)) => WriteTrace::Unknown,
            (PlannedChange::Patch { patch, alternative }, Presence::Present(found)) => {
                let has = |patch: &Patch| patch.dropped(&found.object).is_empty();
                if has(patch) || alternative.as_ref().is_some_and(has) {
                    WriteTrace::Made
                } else if patch.is_unmade(&found.object) {
                    WriteTrace::NotMade
                } else {
                    WriteTrace::Unknown
                }
            }
            // It may have been changed, and then deleted.
            (PlannedChange::Patch { .. }, Presence::Absent) => WriteTrace::Unknown,
            // Another client may have created the object.
            (PlannedChange::Create { .. }, Presence::Present(_)) => WriteTrace::Unknown,
            (PlannedChange::Create { .. }, Presence::Absent) => match write.object.name.is_empty() {
                true => WriteTrace::Unknown,
                false => WriteTrace::NotMade,
            },
        }
    }
}

/// A run of an operation, as a hub records it: who asked for it, what was written, and the results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OperationRecord {
    /// The identifier of the run.
    pub id: OperationId,
    /// The name of the token with which it was asked for; left out for the token in the URL that a hub prints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The time at which it began.
    pub began: Timestamp,
    /// The time at which it ended; left out while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// True if the servers only checked the writes.
    pub dry_run: bool,
    /// The name of the operation: `reconcile`, `suspend` or `resume`.
    pub operation: String,
    /// The digest of its plan.
    pub digest: PlanDigest,
    /// The apps of its plan.
    pub items: Vec<RecordedItem>,
}

/// The part of a recorded operation that concerns one app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RecordedItem {
    /// The app.
    pub app: AppRef,
    /// The writes, in order.
    pub writes: Vec<RecordedWrite>,
    /// The result; left out while it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

/// A write of a recorded operation, and how far it came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RecordedWrite {
    /// The write.
    pub write: PlannedWrite,
    /// How far it came, as far as it was recorded.
    pub state: WriteState,
}

/// How far a write came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum WriteState {
    /// It was planned.
    Planned,
    /// It was sent, and its answer is not known.
    Sent,
    /// The server accepted it, in a dry run.
    Accepted,
    /// The server stored it.
    Stored,
}

impl OperationRecord {
    /// Makes the record of a run that begins now with `plan`.
    pub fn new(
        request: &RunRequest,
        by: Option<String>,
        began: Timestamp,
        plan: &PlanAnswer,
    ) -> OperationRecord {
        let item = |item: &PlannedItem<AppRef>| {
            let planned =
                |write: &PlannedWrite| RecordedWrite { write: write.clone(), state: WriteState::Planned };
            RecordedItem {
                app: item.target.clone(),
                writes: item.writes.iter().map(planned).collect(),
                outcome: None,
            }
        };
        OperationRecord {
            id: request.id.clone(),
            by,
            began,
            ended: None,
            dry_run: request.dry_run,
            operation: plan.plan.operation.clone(),
            digest: plan.digest.clone(),
            items: plan.plan.items.iter().map(item).collect(),
        }
    }

    /// Adds what an event tells.
    pub fn note(&mut self, event: &OperationEvent) {
        match event {
            OperationEvent::Writing { item, write, .. } => {
                let Some(item) = self.items.get_mut(*item) else { return };
                let is_open = |recorded: &&mut RecordedWrite| {
                    recorded.state != WriteState::Stored && recorded.write.object == write.object
                };
                if let Some(open) = item.writes.iter_mut().find(is_open) {
                    *open = RecordedWrite { write: write.clone(), state: WriteState::Sent };
                }
            }
            OperationEvent::Written { item, write, is_stored, name } => {
                let item = self.items.get_mut(*item);
                let Some(recorded) = item.and_then(|item| item.writes.get_mut(*write)) else { return };
                recorded.state = if *is_stored { WriteState::Stored } else { WriteState::Accepted };
                if let Some(name) = name {
                    recorded.write.object.name.clone_from(name);
                }
            }
            OperationEvent::Ended { item, outcome } => {
                if let Some(item) = self.items.get_mut(*item) {
                    item.outcome = Some(outcome.clone());
                }
            }
            OperationEvent::Started { .. }
            | OperationEvent::Begins { .. }
            | OperationEvent::Waiting { .. }
            | OperationEvent::Done
            | OperationEvent::Alive => {}
        }
    }

    /// Returns the events that tell what is recorded, for a client that asks later.
    pub fn events(&self) -> Vec<OperationEvent> {
        let (id, digest) = (self.id.clone(), self.digest.clone());
        let mut events = vec![OperationEvent::Started { id, digest }];
        for (item, recorded) in self.items.iter().enumerate() {
            for (write, RecordedWrite { write: planned, state }) in recorded.writes.iter().enumerate() {
                if *state == WriteState::Planned {
                    continue;
                }
                events.push(OperationEvent::Writing { item, write: planned.clone(), is_alternative: false });
                if *state != WriteState::Sent {
                    let is_stored = *state == WriteState::Stored;
                    events.push(OperationEvent::Written { item, write, is_stored, name: None });
                }
            }
            events.extend(recorded.outcome.clone().map(|outcome| OperationEvent::Ended { item, outcome }));
        }
        events.extend(self.ended.map(|_| OperationEvent::Done));
        events
    }
}

/// A time since a run began, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct After {
    /// The time since the run began, in milliseconds.
    pub after_millis: u64,
}

impl From<Duration> for After {
    fn from(time: Duration) -> After {
        After { after_millis: u64::try_from(time.as_millis()).unwrap_or(u64::MAX) }
    }
}

impl From<After> for Duration {
    fn from(after: After) -> Duration {
        Duration::from_millis(after.after_millis)
    }
}

/// The reason why an operation cannot be planned or written for one target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[error("{message}")]
#[serde(rename_all = "camelCase")]
pub struct OperationError {
    /// [`ErrorLevel::Usage`] if the operation does not exist for the target, does not fit its state or refuses it, or
    /// if a parameter is unknown; otherwise [`ErrorLevel::Unreadable`].
    pub level: ErrorLevel,
    /// The message: what failed, on which object, and why.
    pub message: String,
    /// The next step for the user; left out if there is nothing to suggest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// True if the cluster did not answer in time. The message says whether a write may have been made.
    #[serde(default)]
    pub is_late: bool,
}

impl OperationError {
    /// Makes the error of an operation that does not fit its target.
    pub fn usage(message: impl Into<String>) -> OperationError {
        OperationError { level: ErrorLevel::Usage, message: message.into(), hint: None, is_late: false }
    }

    /// Makes the error of something that could not be read or written.
    pub fn unreadable(message: impl Into<String>) -> OperationError {
        OperationError { level: ErrorLevel::Unreadable, message: message.into(), hint: None, is_late: false }
    }

    /// Returns the error with this hint.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> OperationError {
        OperationError { hint: Some(hint.into()), ..self }
    }
}
