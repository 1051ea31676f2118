//! The state of a run, and what it exchanges with its caller.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use taffrail_object::ObjectKey;

use crate::manifests::{HookDeletePolicy, HookPhase};

/// The state of one run, as it is saved.
///
/// It holds no value of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SyncRun {
    /// The version of this form: [`SyncRun::VERSION`].
    pub version: u32,
    /// The id of the run, drawn at random: its hooks bear it.
    pub id: String,
    /// The digest of the manifests and options; a caller with others cannot continue the run.
    pub digest: String,
    /// The time at which it began.
    pub started: Timestamp,
    /// The rules about failures and deadlines.
    pub policy: RunPolicy,
    /// The tasks; everywhere else they are named by their index.
    pub tasks: Vec<SyncTask>,
    /// The steps.
    pub(super) steps: Vec<StepPlan>,
    /// The steps after a failure.
    pub(super) after_failure: Vec<StepPlan>,
    /// The place in the steps, or in those after a failure.
    pub(super) at: Place,
    /// The phase.
    pub phase: RunPhase,
}

impl SyncRun {
    /// The version of the form that this program writes and reads.
    pub const VERSION: u32 = 1;

    /// Returns the end of the run; `None` while it is not ended.
    pub fn end(&self) -> Option<&RunEnd> {
        match &self.phase {
            RunPhase::Ended(end) => Some(end),
            _ => None,
        }
    }

    /// Returns the phase and wave of the present step; `None` after the last one.
    pub fn place(&self) -> Option<StepPlace> {
        let step = self.steps().get(self.at.step)?;
        Some(StepPlace { phase: step.phase, wave: step.wave })
    }

    /// Returns the objects whose state decides when the run goes on: those that its present step waits for, those that must be
    /// ready before it, and those that are being deleted.
    pub fn watched(&self) -> impl Iterator<Item = &ObjectKey> {
        let step = self.steps().get(self.at.step);
        let of_step = step.into_iter().flat_map(|step| step.batches.iter().flatten());
        let tasks = of_step.filter_map(|at| self.tasks.get(*at));
        let waits =
            |task: &&SyncTask| matches!(task.state, TaskState::Done { .. } | TaskState::Clearing { .. });
        tasks.filter(waits).map(|task| &task.key).chain(step.into_iter().flat_map(|step| &step.needs))
    }

    pub(super) fn steps(&self) -> &[StepPlan] {
        match self.phase {
            RunPhase::AfterFailure(_) => &self.after_failure,
            _ => &self.steps,
        }
    }
}

/// The phase and wave of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepPlace {
    /// The phase.
    pub phase: HookPhase,
    /// The wave.
    pub wave: i64,
}

/// The rules of a run about failures and deadlines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunPolicy {
    /// True if the run goes on after a failure, and skips only what comes after the object that failed, as kpt does. False if
    /// it ends after the step, as Argo CD and Flux do.
    pub continues: bool,
    /// True if the run waits until the objects of the last step are ready, too.
    pub waits_at_end: bool,
    /// The maximum time for the run; `None` for no limit.
    pub deadline: Option<SignedDuration>,
    /// The maximum time for each step; `None` for no limit.
    pub step_deadline: Option<SignedDuration>,
    /// The number of times that a write is sent again which the API server could not carry out for now.
    pub retries: u32,
}

/// The place of a run: the step, and the next batch in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Place {
    pub(super) step: usize,
    pub(super) batch: usize,
    /// The time at which the step began.
    pub(super) since: Timestamp,
}

/// A step of a run, with the indices of its tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct StepPlan {
    pub(super) phase: HookPhase,
    pub(super) wave: i64,
    pub(super) batches: Vec<Vec<usize>>,
    pub(super) needs: Vec<ObjectKey>,
}

/// A task: one object, and what is done with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SyncTask {
    /// The object.
    pub key: ObjectKey,
    /// The work.
    pub work: TaskWork,
    /// The state.
    pub state: TaskState,
    /// The index of the object among the declared ones, or among the pruned ones.
    pub object: usize,
    /// The tasks without which this one is skipped, if a run [continues](RunPolicy::continues).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) after: Vec<usize>,
    /// The delay after a write that the API server could not carry out for now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) delay: Option<Delay>,
    /// True if the object was deleted to be created again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_replaced: bool,
    /// True if the task may have been carried out by a process that did not save the answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_doubtful: bool,
}

impl SyncTask {
    /// Returns true unless the task was sent before: what was known of the object then is old.
    pub fn is_first_try(&self) -> bool {
        !self.is_doubtful && !self.is_replaced
    }
}

/// The delay of a task that is sent again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Delay {
    /// The number of times that it was sent in vain.
    pub(super) tries: u32,
    /// The time before which it is not sent again.
    pub(super) until: Timestamp,
    /// The reason that the API server gave.
    pub(super) reason: String,
}

/// The work of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum TaskWork {
    /// Applies a declared object.
    Apply {
        /// True if the object says that its health does not count.
        ignores_health: bool,
        /// True if the object may vanish by itself when it is done: a Job with a time to live.
        may_vanish: bool,
    },
    /// Runs a declared object as a hook.
    Hook(HookTask),
    /// Deletes an object that is not declared any more.
    Prune {
        /// Its UID.
        uid: String,
    },
}

/// A hook of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HookTask {
    /// The phase in which it runs.
    pub phase: HookPhase,
    /// The times at which it is deleted.
    pub delete: Vec<HookDeletePolicy>,
    /// True once the finalizer is removed, or the object is gone.
    pub(super) is_released: bool,
    /// True once the end of the run has nothing more to do with it.
    pub(super) is_settled: bool,
}

/// The state of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum TaskState {
    /// Its turn has not come, or it is sent again.
    Pending,
    /// An object in its way is being deleted.
    Clearing {
        /// The UID of that object.
        uid: String,
        /// True once its deletion was answered.
        is_asked: bool,
    },
    /// It was sent, and not answered yet.
    Sent,
    /// It was carried out, and the object is not ready yet; for a deletion, not gone yet.
    Done {
        /// The UID of the object.
        uid: String,
        /// The outcome of the write.
        outcome: TaskOutcome,
    },
    /// The object is ready; for a hook, it succeeded; for a deletion, it is gone.
    Ready {
        /// The UID of the object.
        uid: String,
        /// The outcome of the write.
        outcome: TaskOutcome,
    },
    /// It failed.
    Failed {
        /// The UID of the object, if it was written.
        uid: Option<String>,
        /// The outcome of the write, if it was written.
        outcome: Option<TaskOutcome>,
        /// The reason.
        message: String,
    },
    /// It was not carried out.
    Skipped {
        /// The reason.
        message: String,
    },
}

impl TaskState {
    /// Returns true if nothing more happens with the task.
    pub fn is_final(&self) -> bool {
        matches!(self, TaskState::Ready { .. } | TaskState::Failed { .. } | TaskState::Skipped { .. })
    }

    /// Returns the UID of the object that the task wrote, and the outcome; `None` if it wrote none.
    pub fn written(&self) -> Option<(&str, TaskOutcome)> {
        match self {
            TaskState::Done { uid, outcome } | TaskState::Ready { uid, outcome } => Some((uid, *outcome)),
            TaskState::Failed { uid: Some(uid), outcome: Some(outcome), .. } => Some((uid, *outcome)),
            _ => None,
        }
    }
}

/// The outcome of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TaskOutcome {
    /// The object was created.
    Created,
    /// The object was changed.
    Changed,
    /// The object was deleted and created again.
    Replaced,
    /// Nothing was written: the object was as declared.
    Unchanged,
    /// The object was deleted.
    Deleted,
}

/// The phase of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RunPhase {
    /// It goes through its steps.
    Running,
    /// It goes through the steps after a failure.
    AfterFailure(RunEnd),
    /// It releases and deletes its hooks.
    Ending(RunEnd),
    /// It is ended.
    Ended(RunEnd),
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RunEnd {
    /// All tasks were carried out.
    Succeeded,
    /// Something failed; holds the first reason.
    Failed(String),
    /// A person ended it.
    Terminated,
    /// A newer revision takes over.
    Superseded,
}

/// An action that the caller carries out after it saved the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunAction {
    /// Applies the object of a task; answers [`Answer::Written`], [`Answer::InTheWay`], [`Answer::Later`] or
    /// [`Answer::Failed`].
    Apply(usize),
    /// Looks for the hook of a task, and creates it if there is none; answers as [`RunAction::Apply`].
    RunHook(usize),
    /// Deletes the object with this UID: that of a prune task, or one that is in the way; answers [`Answer::Deleting`],
    /// [`Answer::Gone`], [`Answer::Later`] or [`Answer::Failed`].
    Delete {
        /// The task.
        task: usize,
        /// The UID.
        uid: String,
    },
    /// Removes the finalizer of a hook; answers [`Answer::Released`], [`Answer::Later`] or [`Answer::Failed`].
    Release {
        /// The task.
        task: usize,
        /// The UID of the hook; `None` for the one that this run may have created.
        uid: Option<String>,
        /// True if the hook is deleted, too.
        deletes: bool,
    },
}

impl RunAction {
    /// Returns the index of its task.
    pub fn task(&self) -> usize {
        match self {
            RunAction::Apply(at) | RunAction::RunHook(at) => *at,
            RunAction::Delete { task, .. } | RunAction::Release { task, .. } => *task,
        }
    }
}

/// The answer to an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The object is as declared.
    Written {
        /// Its UID.
        uid: String,
        /// The outcome.
        outcome: TaskOutcome,
    },
    /// An object must be deleted first: one that cannot be changed in place, or a hook of an earlier run.
    InTheWay {
        /// The UID of that object.
        uid: String,
        /// True if the object itself is replaced.
        replaces: bool,
    },
    /// The object is being deleted.
    Deleting,
    /// There is no such object any more, or another one has its name.
    Gone,
    /// The finalizer is removed, or the object is gone.
    Released {
        /// True if the hook is deleted, too.
        deleted: bool,
    },
    /// The API server cannot do it for now.
    Later(String),
    /// It failed, and would fail again.
    Failed(String),
}

/// An object, as the caller sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObservedObject {
    /// It was not read yet, or cannot be read; holds the reason, which is empty if there is none.
    Unknown(String),
    /// There is no such object.
    Absent,
    /// There is one.
    Present {
        /// Its UID.
        uid: String,
        /// The verdict about it.
        verdict: TaskVerdict,
        /// The reason in words.
        reason: String,
        /// The time since when it is so, if it is known.
        since: Option<Timestamp>,
    },
}

/// The verdict about an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskVerdict {
    /// It is ready; a hook succeeded.
    Ready,
    /// It is not ready yet.
    Waiting,
    /// It has failed; it may recover.
    Failed,
}

/// What the caller saw since the last step.
#[derive(Clone, Copy)]
pub struct Observation<'a> {
    /// The answers to actions, each with its task.
    pub answers: &'a [(usize, Answer)],
    /// Returns an object as it is now.
    pub object: &'a dyn Fn(&ObjectKey) -> ObservedObject,
    /// True if a person wants the run to end.
    pub terminates: bool,
    /// True if there is a newer revision.
    pub is_superseded: bool,
    /// True if this process has just loaded the run: answers of before are lost.
    pub restarted: bool,
}

/// An object that a run waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingFor {
    /// The object.
    pub key: ObjectKey,
    /// The reason in words; empty if none is known.
    pub reason: String,
    /// The time since when it is so.
    pub since: Timestamp,
}
