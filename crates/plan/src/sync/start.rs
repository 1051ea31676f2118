//! The beginning of a run.

use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::Value;

use super::run::{
    HookTask, Place, RunPhase, RunPolicy, StepPlan, SyncRun, SyncTask, TaskOutcome, TaskState, TaskWork,
};
use crate::manifests::{DeclaredObject, HookDeletePolicy, HookPhase};
use crate::order::{SyncOrder, SyncStep, Task, TaskPair};

/// The parts of a new run.
#[derive(Clone, Copy)]
pub struct NewRun<'a> {
    /// The id, drawn at random.
    pub id: &'a str,
    /// The digest of the manifests and options.
    pub digest: &'a str,
    /// The revision of the manifests, of which the names of hooks with generated names have a part; empty if it has none.
    pub revision: &'a str,
    /// The time at which it begins.
    pub started: Timestamp,
    /// The rules about failures and deadlines.
    pub policy: &'a RunPolicy,
    /// The steps.
    pub order: &'a SyncOrder,
    /// The declared objects.
    pub objects: &'a [DeclaredObject],
    /// The objects to delete, each with its UID.
    pub pruned: &'a [(taffrail_object::ObjectKey, String)],
    /// Returns the UID of the declared object with this index if it is as declared already.
    pub unchanged: &'a dyn Fn(usize) -> Option<String>,
}

impl SyncRun {
    /// Begins a run. Each hook is a batch of its own, so that its answer is saved before anything else is sent.
    pub fn new(new: &NewRun<'_>) -> SyncRun {
        let mut run = SyncRun {
            version: SyncRun::VERSION,
            id: new.id.to_owned(),
            digest: new.digest.to_owned(),
            started: new.started,
            policy: new.policy.clone(),
            tasks: Vec::new(),
            steps: Vec::new(),
            after_failure: Vec::new(),
            at: Place { step: 0, batch: 0, since: new.started },
            phase: RunPhase::Running,
        };
        let mut of_object = TaskIndex::new();
        for step in &new.order.steps {
            let plan = run.add(step, new, &mut of_object);
            run.steps.push(plan);
        }
        for step in &new.order.after_failure {
            let plan = run.add(step, new, &mut of_object);
            run.after_failure.push(plan);
        }
        for task in &mut run.tasks {
            let (is_prune, after) = match task.work {
                TaskWork::Prune { .. } => (true, &new.order.pruned_after),
                _ => (false, &new.order.after),
            };
            let after = after.get(task.object).into_iter().flatten();
            task.after = after.filter_map(|first| of_object.get(&(is_prune, *first)).copied()).collect();
        }
        for TaskPair { later, first } in &new.order.across {
            if let (Some(later), Some(first)) =
                (of_object.get(&index_of(*later)), of_object.get(&index_of(*first)))
                && let Some(task) = run.tasks.get_mut(*later)
            {
                task.after.push(*first);
            }
        }
        run
    }

    fn add(&mut self, step: &SyncStep, new: &NewRun<'_>, of_object: &mut TaskIndex) -> StepPlan {
        let mut batches: Vec<Vec<usize>> = Vec::new();
        for batch in &step.batches {
            let mut together = Vec::new();
            for task in batch {
                let at = self.tasks.len();
                let index = index_of(*task);
                let Some(task) = task_of(*task, step.phase, new) else { continue };
                of_object.entry(index).or_insert(at);
                match task.work {
                    TaskWork::Hook(_) => batches.push(vec![at]),
                    _ => together.push(at),
                }
                self.tasks.push(task);
            }
            if !together.is_empty() {
                batches.push(together);
            }
        }
        StepPlan { phase: step.phase, wave: step.wave, batches, needs: step.needs.clone() }
    }
}

/// The task of each object, of a hook the first: by true and the index of a pruned object, or false and that of a declared one.
type TaskIndex = HashMap<(bool, usize), usize>;

fn index_of(task: Task) -> (bool, usize) {
    match task {
        Task::Prune(at) => (true, at),
        Task::Hook(at) | Task::Apply(at) => (false, at),
    }
}

fn task_of(task: Task, phase: HookPhase, new: &NewRun<'_>) -> Option<SyncTask> {
    let (object, work, mut key) = match task {
        Task::Prune(at) => {
            let (key, uid) = new.pruned.get(at)?;
            (at, TaskWork::Prune { uid: uid.clone() }, key.clone())
        }
        Task::Apply(at) => {
            let declared = new.objects.get(at)?;
            let ignores_health = declared.options.ignore_healthcheck.as_ref().is_some_and(|it| it.value);
            let work = TaskWork::Apply { ignores_health, may_vanish: may_vanish(declared) };
            (at, work, declared.key.clone())
        }
        Task::Hook(at) => {
            let declared = new.objects.get(at)?;
            let stated = declared.options.hook_delete_policies.as_ref().map(|it| it.value.clone());
            let delete = stated
                .filter(|it| !it.is_empty())
                .unwrap_or_else(|| vec![HookDeletePolicy::BeforeHookCreation]);
            let hook = HookTask { phase, delete, is_released: false, is_settled: false };
            (at, TaskWork::Hook(hook), declared.key.clone())
        }
    };
    let is_generated = matches!(work, TaskWork::Hook(_)) && key.name.is_empty();
    if let Some(prefix) =
        new.objects.get(object).and_then(|it| it.generate_name.as_ref()).filter(|_| is_generated)
    {
        key.name = generated_name(prefix, new, phase);
    }
    let state = match work {
        TaskWork::Apply { .. } => match (new.unchanged)(object) {
            Some(uid) => TaskState::Done { uid, outcome: TaskOutcome::Unchanged },
            None => TaskState::Pending,
        },
        _ => TaskState::Pending,
    };
    Some(SyncTask {
        key,
        work,
        state,
        object,
        after: Vec::new(),
        delay: None,
        is_replaced: false,
        is_doubtful: false,
    })
}

/// Returns the name of a hook whose manifest leaves the name to the server: of its prefix, revision, phase and the time of the
/// run, as Argo CD names it. So it is the same in each process that continues the run.
fn generated_name(prefix: &str, new: &NewRun<'_>, phase: HookPhase) -> String {
    let revision: String = new.revision.chars().filter(char::is_ascii_alphanumeric).take(7).collect();
    let parts = [&*revision, phase.as_str(), &new.started.as_second().to_string()];
    let parts: Vec<&str> = parts.into_iter().filter(|it| !it.is_empty()).collect();
    format!("{prefix}{}", parts.join("-")).to_lowercase()
}

/// Returns true for a Job that the API server deletes some time after it ended.
fn may_vanish(declared: &DeclaredObject) -> bool {
    let ttl = declared.value.pointer("/spec/ttlSecondsAfterFinished");
    (&*declared.key.group, &*declared.key.kind) == ("batch", "Job") && !ttl.is_none_or(Value::is_null)
}
