//! Options of delivery tools on a declared object.

use serde::{Deserialize, Serialize};
use taffrail_object::{ObjectKey, words};

use super::changes::{ChangeGroup, ChangeRule};
use super::substitution::FieldSubstitution;

/// The value of an option, with the annotation or label that states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// The key of the annotation or label: `argocd.argoproj.io/sync-options`.
    pub stated_by: &'static str,
    /// The line of that key in the file of the object, from 1.
    pub line: u64,
}

/// The consent to delete an object, from the freest to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Removal {
    /// It may be deleted.
    Allowed,
    /// A person must confirm each deletion.
    Confirmed,
    /// It must stay.
    Never,
}

/// The manner of applying an object, from the one that writes most to the one that writes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ApplyMode {
    /// Fields that kubectl left behind are taken over: what Flux does without an option.
    Override,
    /// Fields that kubectl left behind stay.
    Merge,
    /// The object is created if it does not exist, and never changed.
    IfNotPresent,
    /// The object is never written.
    Ignore,
}

/// The phase of a sync in which a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum HookPhase {
    /// Before the objects are applied.
    PreSync,
    /// Together with the objects.
    Sync,
    /// After all objects are healthy.
    PostSync,
    /// After the sync failed.
    SyncFail,
    /// Before the app is deleted.
    PreDelete,
    /// After the app was deleted.
    PostDelete,
}

words! { HookPhase { PreSync, Sync, PostSync, SyncFail, PreDelete, PostDelete } }

/// The time at which a hook is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum HookDeletePolicy {
    /// Before the hook is created the next time.
    BeforeHookCreation,
    /// After the sync succeeded.
    HookSucceeded,
    /// After the sync failed.
    HookFailed,
}

words! { HookDeletePolicy { BeforeHookCreation, HookSucceeded, HookFailed } }

/// The options of delivery tools that an object's annotations and labels state; `None` for those not stated.
///
/// If two tools state one option, the stricter value counts for deletion and the manner of applying, and Argo CD's
/// for waves and hooks, as in Argo CD.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SyncOptions {
    /// Consent to delete the object once it is not declared any more.
    pub prune: Option<Setting<Removal>>,
    /// Consent to delete the object together with its app.
    pub delete: Option<Setting<Removal>>,
    /// Prune the object after all others were applied.
    pub prune_last: Option<Setting<bool>>,
    /// Validate the object by its schema.
    pub validate: Option<Setting<bool>>,
    /// Do not fail where the kind is not served yet.
    pub skip_dry_run_on_missing_resource: Option<Setting<bool>>,
    /// Replace the object instead of applying it.
    pub replace: Option<Setting<bool>>,
    /// Delete and create the object where the server refuses a change.
    pub force: Option<Setting<bool>>,
    /// Apply on the server.
    pub server_side_apply: Option<Setting<bool>>,
    /// The manner of applying.
    pub apply_mode: Option<Setting<ApplyMode>>,
    /// The wave of the sync, in which lower ones come first.
    pub wave: Option<Setting<i64>>,
    /// The phases in which the object runs as a hook; of no phase if it is never applied.
    pub hook: Option<Setting<Vec<HookPhase>>>,
    /// The times at which the hook is deleted.
    pub hook_delete_policies: Option<Setting<Vec<HookDeletePolicy>>>,
    /// Ignore that the live object is not declared.
    pub ignore_extraneous: Option<Setting<bool>>,
    /// Compare by a dry run on the server.
    pub server_side_diff: Option<Setting<bool>>,
    /// Show what webhooks change.
    pub include_mutation_webhook: Option<Setting<bool>>,
    /// Leave the object out of the app's health.
    pub ignore_healthcheck: Option<Setting<bool>>,
    /// The objects that must be applied and healthy before this one.
    pub depends_on: Option<Setting<Vec<ObjectKey>>>,
    /// The fields that take their values from live objects when the object is applied.
    pub substitutions: Option<Setting<Vec<FieldSubstitution>>>,
    /// kapp's statements about the order of changes.
    pub changes: StatedChanges,
}

/// kapp's statements on an object about the order of changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StatedChanges {
    /// The groups to which the change of the object belongs.
    pub groups: Vec<Setting<ChangeGroup>>,
    /// The rules about the change of the object.
    pub rules: Vec<Setting<ChangeRule>>,
    /// Leave most of kapp's own rules out for this object.
    pub skips_default_rules: Option<Setting<bool>>,
    /// Wait for the object where others come after it, and leave writing it to somebody else.
    pub is_foreign: Option<Setting<bool>>,
    /// Leave the object alone: no rule is about it.
    pub is_left_alone: Option<Setting<bool>>,
}

impl SyncOptions {
    /// Returns true if the object runs as a hook in at least one phase.
    pub fn is_hook(&self) -> bool {
        self.hook.as_ref().is_some_and(|hook| !hook.value.is_empty())
    }

    /// Returns true if the object is never applied: a hook that its tool skips, such as a Helm test.
    pub fn is_skipped(&self) -> bool {
        self.hook.as_ref().is_some_and(|hook| hook.value.is_empty())
    }

    /// Returns the wave: 0 if none is stated.
    pub fn wave(&self) -> i64 {
        self.wave.as_ref().map_or(0, |wave| wave.value)
    }
}
