//! The results of a run, for its record and for those who asked for it.

use std::collections::{BTreeMap, BTreeSet};

use taffrail_apps::sets::{MAX_RESULTS, ObjectResult, RunObject, RunResults, SetPhase};
use taffrail_object::{InventoryEntry, ObjectKey};
use taffrail_plan::sync::{RunEnd, SyncRun, SyncTask, TaskOutcome, TaskState, TaskWork};

/// An entry of the inventory that the run left as it is, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeptEntry {
    pub(crate) entry: InventoryEntry,
    pub(crate) reason: String,
}

/// Returns the result of each object, failed ones first.
pub(crate) fn results(run: &SyncRun, kept: &[KeptEntry]) -> Vec<RunObject> {
    let tasks = run.tasks.iter().filter_map(|task| {
        let (result, message) = result(task)?;
        Some(RunObject { object: task.key.clone(), result, message: message.to_owned() })
    });
    let kept = kept.iter().map(|kept| RunObject {
        object: kept.entry.key.clone(),
        result: ObjectResult::Kept,
        message: kept.reason.clone(),
    });
    let mut all: Vec<RunObject> = tasks.chain(kept).collect();
    all.sort_by(|a, b| (a.result, &a.object).cmp(&(b.result, &b.object)));
    all
}

/// Returns the result of a task; `None` for a hook that a run without a failure had no use for.
fn result(task: &SyncTask) -> Option<(ObjectResult, &str)> {
    Some(match (&task.work, &task.state) {
        (_, TaskState::Failed { message, .. }) => (ObjectResult::Failed, message),
        (TaskWork::Hook(_), TaskState::Skipped { .. }) => return None,
        (_, TaskState::Skipped { message }) => (ObjectResult::Skipped, message),
        (_, TaskState::Pending | TaskState::Sent | TaskState::Clearing { .. }) => (ObjectResult::Skipped, ""),
        (TaskWork::Hook(_), TaskState::Done { .. } | TaskState::Ready { .. }) => (ObjectResult::Ran, ""),
        (TaskWork::Prune { .. }, TaskState::Done { .. } | TaskState::Ready { .. }) => {
            (ObjectResult::Pruned, "")
        }
        (TaskWork::Apply { .. }, TaskState::Done { outcome, .. } | TaskState::Ready { outcome, .. }) => {
            let result = match outcome {
                TaskOutcome::Created => ObjectResult::Created,
                TaskOutcome::Changed => ObjectResult::Changed,
                TaskOutcome::Replaced => ObjectResult::Replaced,
                TaskOutcome::Unchanged => ObjectResult::Unchanged,
                TaskOutcome::Deleted => ObjectResult::Pruned,
            };
            (result, "")
        }
    })
}

/// Returns the number of objects by the word of their result.
pub(crate) fn counts(objects: &[RunObject]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for object in objects {
        *counts.entry(object.result.as_str().to_owned()).or_insert(0) += 1;
    }
    counts
}

/// Returns the results as the record keeps them: without objects that are as they were, and not too many.
pub(crate) fn kept_results(number: u64, objects: &[RunObject]) -> RunResults {
    let told = objects.iter().filter(|it| it.result != ObjectResult::Unchanged).take(MAX_RESULTS);
    RunResults { number, objects: told.cloned().collect() }
}

/// Returns the state of a run that ended, with the reason if it failed.
pub(crate) fn phase(end: &RunEnd) -> (SetPhase, String) {
    match end {
        RunEnd::Succeeded => (SetPhase::Succeeded, String::new()),
        RunEnd::Failed(message) => (SetPhase::Failed, message.clone()),
        RunEnd::Terminated => (SetPhase::Terminated, String::new()),
        RunEnd::Superseded => (SetPhase::Superseded, String::new()),
    }
}

/// Returns the entries that a run does not touch, each with the reason that was found when it began.
pub(crate) fn kept_entries(
    inventory: &[InventoryEntry],
    run: &SyncRun,
    reasons: &[KeptEntry],
) -> Vec<KeptEntry> {
    let tasks: BTreeSet<&ObjectKey> = run.tasks.iter().map(|task| &task.key).collect();
    let reasons: BTreeMap<&ObjectKey, &str> =
        reasons.iter().map(|kept| (&kept.entry.key, &*kept.reason)).collect();
    let untouched = inventory.iter().filter(|entry| !tasks.contains(&entry.key));
    let kept = untouched.map(|entry| KeptEntry {
        entry: entry.clone(),
        reason: reasons.get(&entry.key).copied().unwrap_or("it is not declared any more").to_owned(),
    });
    kept.collect()
}

/// Returns the inventory during a run: that of before, and each object that the run may create. Those have no UID yet.
pub(crate) fn inventory_during(before: &[InventoryEntry], run: &SyncRun) -> Vec<InventoryEntry> {
    let mut known: BTreeSet<&ObjectKey> = before.iter().map(|entry| &entry.key).collect();
    let applied =
        run.tasks.iter().filter(|task| matches!(task.work, TaskWork::Apply { .. })).map(|task| &task.key);
    let new: Vec<&ObjectKey> = applied.filter(|key| known.insert(key)).collect();
    let new = new.into_iter().map(|key| InventoryEntry { key: key.clone(), uid: None });
    before.iter().cloned().chain(new).collect()
}

/// Returns the inventory after a run: what it applied, what it could not delete, and what it left as it was.
pub(crate) fn inventory_after(
    before: &[InventoryEntry],
    run: &SyncRun,
    kept: &[KeptEntry],
) -> Vec<InventoryEntry> {
    let before: BTreeMap<&ObjectKey, &InventoryEntry> = before.iter().map(|it| (&it.key, it)).collect();
    let mut after: BTreeMap<ObjectKey, InventoryEntry> = BTreeMap::new();
    for kept in kept {
        after.insert(kept.entry.key.clone(), kept.entry.clone());
    }
    for task in &run.tasks {
        let old = before.get(&task.key).map(|entry| (*entry).clone());
        let entry = match (&task.work, &task.state) {
            (TaskWork::Hook(_), _) => continue,
            (TaskWork::Prune { .. }, TaskState::Ready { .. }) => continue,
            (TaskWork::Prune { uid }, _) => {
                Some(InventoryEntry { key: task.key.clone(), uid: Some(uid.clone()) })
            }
            (TaskWork::Apply { .. }, state) => match state.written() {
                Some((uid, _)) => Some(InventoryEntry { key: task.key.clone(), uid: Some(uid.to_owned()) }),
                // A write whose answer was lost may have created it: its mark tells.
                None if matches!(state, TaskState::Failed { .. }) => {
                    old.or_else(|| Some(InventoryEntry { key: task.key.clone(), uid: None }))
                }
                None => old,
            },
        };
        after.extend(entry.map(|entry| (entry.key.clone(), entry)));
    }
    after.into_values().collect()
}
