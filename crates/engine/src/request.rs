//! The requests to the engine, and what it tells while it carries them out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::record::HolderTimes;
use jiff::Timestamp;
use taffrail_apps::sets::{RunObject, SetHolder, SetName, SetSummary, SetVerb};
use taffrail_object::ObjectKey;
use taffrail_plan::diff::ObjectDiff;
use taffrail_plan::manifests::DeclaredObject;
use taffrail_plan::order::{Dialect, SyncOrder};
use taffrail_plan::sync::{RunEnd, RunPolicy, SyncRun, WaitingFor};

/// A file of manifests.
///
/// It may hold values of Secrets: it is not `Debug`.
#[derive(Clone, serde::Serialize, serde::Deserialize)]
pub struct ManifestText {
    /// The name in messages.
    pub path: String,
    /// The content.
    pub content: String,
}

/// The manifests of a request.
#[derive(Clone, Copy)]
pub enum Manifests<'a> {
    /// These files.
    Given(&'a [ManifestText]),
    /// Those that the set kept of the run with this number; `None` for the good one before the last good one.
    OfRun(Option<u64>),
    /// Those that the set kept of its last run.
    Last,
}

/// A request to make a cluster equal to manifests.
#[derive(Debug, Clone)]
pub struct SyncRequest {
    /// The set.
    pub set: SetName,
    /// The command, for the history of the set.
    pub verb: SetVerb,
    /// The person or program that asks: `ann@laptop`.
    pub actor: String,
    /// The revision of the manifests; empty if it is not known.
    pub revision: String,
    /// The namespace of objects without one; `None` for that of the context.
    pub default_namespace: Option<String>,
    /// The tool whose implied order holds.
    pub dialect: Dialect,
    /// The further tools whose annotations hold.
    pub annotations: Vec<Dialect>,
    /// The rules about failures and deadlines.
    pub policy: RunPolicy,
    /// The consent to delete what is not declared any more; `None` to delete nothing.
    pub prune: Option<PruneConsent>,
    /// True to create the namespace of objects that have none yet.
    pub creates_namespace: bool,
    /// True to take fields from other managers.
    pub force_conflicts: bool,
    /// The managers whose fields are taken.
    pub take_over: Vec<String>,
    /// True to delete and create again what cannot be changed in place.
    pub replaces: bool,
    /// The times by which another holder of the set is judged.
    pub holder: HolderTimes,
}

/// The consent to deletions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PruneConsent {
    /// True to delete guarded objects too, and those that demand a confirmation.
    pub allows_guarded: bool,
}

/// The handle by which a run is ended from outside.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Ends the run: its hooks are released, and those that run are deleted.
    pub fn terminate(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns one that ends a run at once.
    pub(crate) fn set() -> Stop {
        Stop(Arc::new(AtomicBool::new(true)))
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What happens while a request is carried out.
#[derive(Debug)]
#[non_exhaustive]
pub enum SyncEvent<'a> {
    /// Another process holds the set; the request waits until its record does not move any more.
    Held(&'a SetHolder),
    /// Something is not as it should be, and the run goes on.
    Warning {
        /// The message.
        message: &'a str,
        /// The hint for the user; empty if there is none.
        hint: &'a str,
    },
    /// A run that another process began is continued.
    Resumed(&'a SyncRun),
    /// The run as it stands now, after each step, with what it waits for.
    Stepped {
        /// The run.
        run: &'a SyncRun,
        /// The objects that it waits for.
        waiting_for: &'a [WaitingFor],
    },
}

/// The caller of a request: it is told what happens, and asked before the first write.
pub trait SyncCaller {
    /// Takes an event.
    fn take(&mut self, event: &SyncEvent<'_>);

    /// Returns true if the run may begin; nothing is written otherwise.
    fn approves(&mut self, plan: &SyncPlan<'_>) -> bool;
}

/// What a run would do.
#[derive(Debug)]
pub struct SyncPlan<'a> {
    /// The declared objects, with what differs.
    pub objects: Vec<PlannedObject<'a>>,
    /// The objects to delete.
    pub pruned: Vec<&'a ObjectKey>,
    /// The objects that are not declared any more, and stay, each with the reason.
    pub kept: Vec<(&'a ObjectKey, &'a str)>,
    /// The order.
    pub order: &'a SyncOrder,
}

/// A declared object before a run.
#[derive(Debug)]
pub struct PlannedObject<'a> {
    /// The object.
    pub declared: &'a DeclaredObject,
    /// The comparison with the live object; `None` for a hook.
    pub diff: Option<&'a ObjectDiff>,
}

/// The outcome of a request.
#[derive(Debug, Clone)]
pub struct SyncReport {
    /// The end of the run.
    pub end: RunEnd,
    /// The number of the run in its set.
    pub number: u64,
    /// The results, also of objects without a change.
    pub objects: Vec<RunObject>,
    /// The state of the set after the run; the default for the inventory of another tool.
    pub summary: SetSummary,
    /// The time at which it began.
    pub started: Timestamp,
    /// The time at which it ended.
    pub ended: Timestamp,
}
