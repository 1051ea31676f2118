//! The syncs of an app that its delivery tool remembers in the declaring object: the one that runs, and earlier ones.
//!
//! A sync is identified by its revision and the time at which it began, so both are read only from fields that the tool
//! does not change for the same sync.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKeyRef};
use taffrail_status::cut;

use super::{Condition, argo, flux, text, time};
use crate::words::Words;

/// The maximum number of syncs that are returned of one app; older ones are left out. The tools themselves keep five or
/// ten.
pub const MAX_SYNCS: usize = 20;

/// The outcome of a sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum SyncResult {
    /// The sync has not ended.
    Running,
    /// The revision was applied.
    Succeeded,
    /// The sync failed; some objects of the revision may have been applied.
    Failed,
}

/// One sync of an app: an attempt of its delivery tool to apply a revision.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SyncAttempt {
    /// The revision; empty if the tool failed before it knew one.
    pub revision: String,
    /// The time at which the sync began; where the tool does not record that, the time at which it ended.
    pub began: Timestamp,
    /// The time at which the sync ended; `None` while it runs, or if the tool does not record it.
    pub ended: Option<Timestamp>,
    /// The outcome.
    pub result: SyncResult,
    /// The message of the delivery tool, at most 4 KiB; empty for syncs of which it does not keep the message.
    pub message: Words,
}

/// Returns the syncs that the declaring object `key` of an app records, the latest first, at most [`MAX_SYNCS`]. Empty
/// for tools other than Flux and Argo CD.
pub fn syncs(key: ObjectKeyRef<'_>, object: &Object<'_>) -> Vec<SyncAttempt> {
    let mut found = match (key.group, key.kind) {
        (flux::KUSTOMIZE, "Kustomization") => of_kustomization(object),
        (flux::HELM, "HelmRelease") => of_helm_release(object),
        (argo::GROUP, "Application") => of_application(object),
        _ => return Vec::new(),
    };
    // Of one sync the first one found has most to say: the sort is stable.
    found.sort_by(|one, other| (other.began, &other.revision).cmp(&(one.began, &one.revision)));
    found.dedup_by(|one, other| (one.began, &one.revision) == (other.began, &other.revision));
    found.truncate(MAX_SYNCS);
    found
}

/// Returns the entries of `status.history`.
fn history<'a>(object: &Object<'a>) -> impl Iterator<Item = Value<'a>> {
    object.at(&["status", "history"]).and_then(Value::items).into_iter().flatten()
}

fn message(text: &str) -> Words {
    cut(text).as_ref().into()
}

/// Returns the last attempt to apply a revision, from the condition `Ready`; `None` while it runs or waits, or if its
/// revision or time is not known.
fn by_condition(object: &Object<'_>) -> Option<SyncAttempt> {
    let ready = Condition::find(object, "Ready")?;
    let revision = |field: &str| text(object.root(), &["status", field]);
    let attempted = revision("lastAttemptedRevision");
    let (result, revision) = match ready.is("True") {
        true => (SyncResult::Succeeded, revision("lastAppliedRevision").or(attempted)?),
        false if ready.is("False") && !is_waiting(&ready.text("reason")) => (SyncResult::Failed, attempted?),
        false => return None,
    };
    let at = ready.since()?;
    let message = message(&ready.text("message"));
    Some(SyncAttempt { revision, began: at, ended: Some(at), result, message })
}

/// Returns true for a reason of the condition `Ready` by which Flux states that it has not tried the revision yet.
fn is_waiting(reason: &str) -> bool {
    matches!(
        reason,
        "Progressing" | "ProgressingWithRetry" | "DependencyNotReady" | "ArtifactFailed" | "SourceNotReady"
    )
}

/// Returns the syncs of a Kustomization: an entry of its history stands for all attempts on a revision with the same
/// outcome. A revision that came back after others is added once more; without a history, the attempt of
/// [`by_condition`] is the only sync.
fn of_kustomization(object: &Object<'_>) -> Vec<SyncAttempt> {
    let entry = |entry: Value<'_>| {
        let result = match text(entry, &["lastReconciledStatus"])?.as_str() {
            "ReconciliationSucceeded" => SyncResult::Succeeded,
            _ => SyncResult::Failed,
        };
        let first = time(entry.get("firstReconciled"))?;
        let last = time(entry.get("lastReconciled")).unwrap_or(first);
        let revision = text(entry, &["metadata", "revision"])?;
        let message = Words::default();
        Some((last, SyncAttempt { revision, began: first, ended: Some(first), result, message }))
    };
    let mut past: Vec<(Timestamp, SyncAttempt)> = history(object).filter_map(entry).collect();
    past.sort_by_key(|(last, _)| std::cmp::Reverse(*last));
    let current = by_condition(object);
    let mut past = past.into_iter();
    let Some((_, mut newest)) = past.next() else { return current.into_iter().collect() };
    let mut found = Vec::new();
    let is_of_newest = |it: &SyncAttempt| (it.result, &it.revision) == (newest.result, &newest.revision);
    let again = current.filter(is_of_newest);
    if let Some(again) = &again {
        newest.message = again.message.clone();
    }
    let others: Vec<(Timestamp, SyncAttempt)> = past.collect();
    // A revision that came back counts in its old entry, but was synced again after all others.
    let came_back = |again: &SyncAttempt| {
        let is_between =
            |(last, other): &(Timestamp, SyncAttempt)| other.began > newest.began && *last < again.began;
        others.iter().any(is_between)
    };
    found.extend(again.filter(came_back));
    found.push(newest);
    found.extend(others.into_iter().map(|(_, attempt)| attempt));
    found
}

/// Returns the syncs of a HelmRelease: each release that it made, and its last attempt if that failed without one, or
/// if there are no releases.
fn of_helm_release(object: &Object<'_>) -> Vec<SyncAttempt> {
    let release = |snapshot: Value<'_>| {
        let result = match text(snapshot, &["status"])?.as_str() {
            "failed" => SyncResult::Failed,
            "pending-install" | "pending-upgrade" | "pending-rollback" => SyncResult::Running,
            "deployed" | "superseded" => SyncResult::Succeeded,
            _ => return None,
        };
        let revision = text(snapshot, &["chartVersion"])?;
        let began = time(snapshot.get("lastDeployed"))?;
        Some(SyncAttempt { revision, began, ended: None, result, message: Words::default() })
    };
    let mut found: Vec<SyncAttempt> = history(object).filter_map(release).collect();
    let Some(mut current) = by_condition(object) else { return found };
    if current.result == SyncResult::Failed
        && let Some(failure) = remedied(object)
    {
        current.message = message(&failure);
    }
    let same = |it: &&mut SyncAttempt| (it.result, &it.revision) == (current.result, &current.revision);
    let is_first = found.is_empty();
    match found.iter_mut().filter(same).max_by_key(|it| it.began) {
        Some(newest) => newest.message = current.message,
        None if current.result == SyncResult::Failed || is_first => found.push(current),
        None => {}
    }
    found
}

/// Returns the message of the failed release that a HelmRelease remedied, and behind it that of the rollback or
/// uninstallation; `None` unless the condition `Ready` has the message of that remedy alone.
fn remedied(object: &Object<'_>) -> Option<String> {
    let failure = flux::failed_release(object)?.text("message");
    let remedy = Condition::find(object, "Remediated")?.text("message");
    let is_told = Condition::find(object, "Ready")?.text("message") == remedy;
    (is_told && !failure.is_empty()).then(|| format!("{failure}; {remedy}"))
}

/// Returns the syncs of an Application: the last operation, if it is a sync and, while it runs, its revision is known;
/// and the syncs in its history, all of which succeeded.
fn of_application(object: &Object<'_>) -> Vec<SyncAttempt> {
    let operation = |state: Value<'_>| {
        let result = match text(state, &["phase"])?.as_str() {
            "Running" | "Terminating" => SyncResult::Running,
            "Succeeded" => SyncResult::Succeeded,
            _ => SyncResult::Failed,
        };
        let began = time(state.get("startedAt"))?;
        // Not every operation is a sync.
        let asked = state.at(&["operation", "sync"])?;
        let synced = argo::revisions(state.get("syncResult"));
        // What is asked for may be the name of a branch: the sync would have two revisions.
        let revision = match result {
            SyncResult::Running => synced?,
            _ => synced.or_else(|| argo::revisions(Some(asked))).unwrap_or_default(),
        };
        let ended = time(state.get("finishedAt")).filter(|_| result != SyncResult::Running);
        let message = message(&text(state, &["message"]).unwrap_or_default());
        Some(SyncAttempt { revision, began, ended, result, message })
    };
    let deployed = |entry: Value<'_>| {
        let ended = time(entry.get("deployedAt"))?;
        let began = time(entry.get("deployStartedAt")).unwrap_or(ended);
        let revision = argo::revisions(Some(entry))?;
        let (result, message) = (SyncResult::Succeeded, Words::default());
        Some(SyncAttempt { revision, began, ended: Some(ended), result, message })
    };
    let last = object.at(&["status", "operationState"]).and_then(operation);
    last.into_iter().chain(history(object).filter_map(deployed)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use taffrail_object::ObjectKey;
    use taffrail_object::json::OwnedDocument;

    use super::*;

    /// Returns the syncs of an object with this status, in words.
    fn syncs_of(group: &str, kind: &str, status: &Value) -> Vec<String> {
        let metadata = json!({"namespace": "shop", "name": "web"});
        let object = json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": metadata, "status": status});
        let text = object.to_string();
        let document = OwnedDocument::parse(text.into_bytes()).unwrap();
        let object = Object::new(document.root()).unwrap();
        let line = |it: SyncAttempt| {
            let time = |time: Timestamp| time.strftime("%H:%M:%S").to_string();
            let ended = it.ended.map(time).unwrap_or_default();
            format!("{} {}-{ended} {:?} {}", it.revision, time(it.began), it.result, it.message.as_str())
        };
        let key = ObjectKey::new(group, kind, "shop", "web");
        syncs(key.as_ref(), &object).into_iter().map(line).collect()
    }

    fn at(time: &str) -> String {
        format!("2026-03-01T{time}Z")
    }

    fn ready(status: &str, reason: &str, time: &str, message: &str) -> Value {
        json!([{"type": "Ready", "status": status, "reason": reason, "lastTransitionTime": at(time), "message": message}])
    }

    #[test]
    fn operation_of_argo_cd_is_the_entry_of_its_history() {
        let operation = |phase: &str| {
            json!({
                "operation": {"sync": {"revision": "main"}}, "phase": phase, "startedAt": at("10:00:00"),
                "finishedAt": at("10:00:05"), "message": "done", "syncResult": {"revision": "b2"}
            })
        };
        let entry = |revision: &str, began: &str, ended: &str| json!({"id": 1, "revision": revision, "deployStartedAt": at(began), "deployedAt": at(ended)});
        let old = entry("a1", "09:00:00", "09:00:04");
        let status = json!({"operationState": operation("Succeeded"), "history": [old, entry("b2", "10:00:00", "10:00:06")]});
        let expected = ["b2 10:00:00-10:00:05 Succeeded done", "a1 09:00:00-09:00:04 Succeeded "];
        assert_eq!(syncs_of("argoproj.io", "Application", &status), expected);
        let status = json!({"operationState": operation("Error"), "history": [old]});
        let expected = ["b2 10:00:00-10:00:05 Failed done", "a1 09:00:00-09:00:04 Succeeded "];
        assert_eq!(syncs_of("argoproj.io", "Application", &status), expected);
        let mut running = operation("Running");
        let of = |state: &Value| syncs_of("argoproj.io", "Application", &json!({"operationState": state}));
        assert_eq!(of(&running), ["b2 10:00:00- Running done"]);
        running["syncResult"] = Value::Null;
        assert_eq!(of(&running), [""; 0]);
        running["phase"] = "Failed".into();
        assert_eq!(of(&running), ["main 10:00:00-10:00:05 Failed done"]);
    }

    #[test]
    fn kustomization_tells_each_entry_of_its_history_and_a_revision_that_came_back() {
        let entry = |revision: &str, status: &str, first: &str, last: &str| {
            json!({
                "digest": revision, "firstReconciled": at(first), "lastReconciled": at(last),
                "lastReconciledStatus": status, "metadata": {"revision": revision}
            })
        };
        let mut status = json!({
            "lastAppliedRevision": "a1", "lastAttemptedRevision": "b2",
            "conditions": ready("False", "HealthCheckFailed", "10:00:01", "timeout"),
            "history": [
                entry("b2", "HealthCheckFailed", "10:00:01", "10:20:00"),
                entry("a1", "ReconciliationSucceeded", "09:00:00", "09:50:00"),
            ],
        });
        let failed = "b2 10:00:01-10:00:01 Failed timeout";
        let first = "a1 09:00:00-09:00:00 Succeeded ";
        assert_eq!(syncs_of(flux::KUSTOMIZE, "Kustomization", &status), [failed, first]);
        status["history"][1]["lastReconciled"] = at("10:30:00").into();
        status["lastAttemptedRevision"] = "a1".into();
        status["conditions"] = ready("True", "ReconciliationSucceeded", "10:30:00", "Applied revision: a1");
        assert_eq!(
            syncs_of(flux::KUSTOMIZE, "Kustomization", &status),
            [
                "a1 10:30:00-10:30:00 Succeeded Applied revision: a1",
                "b2 10:00:01-10:00:01 Failed ",
                "a1 09:00:00-09:00:00 Succeeded Applied revision: a1",
            ]
        );
    }

    #[test]
    fn kustomization_without_history_tells_its_last_attempt() {
        let status = |conditions: Value| json!({"lastAppliedRevision": "a1", "lastAttemptedRevision": "b2", "conditions": conditions});
        let of = |conditions| syncs_of(flux::KUSTOMIZE, "Kustomization", &status(conditions));
        assert_eq!(
            of(ready("True", "ReconciliationSucceeded", "10:00:00", "ok")),
            ["a1 10:00:00-10:00:00 Succeeded ok"]
        );
        assert_eq!(of(ready("False", "BuildFailed", "10:00:00", "no")), ["b2 10:00:00-10:00:00 Failed no"]);
        assert_eq!(of(ready("False", "DependencyNotReady", "10:00:00", "wait")), [""; 0]);
        assert_eq!(of(ready("Unknown", "Progressing", "10:00:00", "")), [""; 0]);
    }

    #[test]
    fn helm_release_tells_its_releases_and_an_attempt_that_made_none() {
        let release = |version: &str, status: &str, time: &str| json!({"chartVersion": version, "status": status, "lastDeployed": at(time)});
        let mut status = json!({
            "lastAttemptedRevision": "1.1.0",
            "conditions": ready("False", "UpgradeFailed", "10:00:09", "timed out"),
            "history": [
                release("1.0.0", "deployed", "10:00:05"), release("1.1.0", "failed", "10:00:00"),
                release("1.0.0", "superseded", "09:00:00"),
            ],
        });
        let of = |status: &Value| syncs_of(flux::HELM, "HelmRelease", status);
        let expected =
            ["1.0.0 10:00:05- Succeeded ", "1.1.0 10:00:00- Failed timed out", "1.0.0 09:00:00- Succeeded "];
        assert_eq!(of(&status), expected);
        status["history"].as_array_mut().unwrap().remove(1);
        let expected = [
            "1.1.0 10:00:09-10:00:09 Failed timed out",
            "1.0.0 10:00:05- Succeeded ",
            "1.0.0 09:00:00- Succeeded ",
        ];
        assert_eq!(of(&status), expected);
    }

    #[test]
    fn failed_upgrade_that_was_rolled_back_tells_its_failure_first() {
        let condition = |kind: &str, status: &str, reason: &str, message: &str| json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": at("10:00:09")});
        let rolled_back = "Helm rollback to previous release shop/web.v1 with chart web@1.0.0 succeeded";
        let failed = "Helm upgrade failed for release shop/web with chart web@1.1.0: timed out";
        let release = |version: &str, status: &str, time: &str| json!({"chartVersion": version, "status": status, "lastDeployed": at(time)});
        let history = [
            release("1.0.0", "deployed", "10:00:08"),
            release("1.1.0", "failed", "10:00:00"),
            release("1.0.0", "superseded", "09:00:00"),
        ];
        let mut status = json!({
            "lastAttemptedRevision": "1.1.0", "history": history,
            "conditions": [
                condition("Ready", "False", "RollbackSucceeded", rolled_back),
                condition("Released", "False", "UpgradeFailed", failed),
                condition("Remediated", "True", "RollbackSucceeded", rolled_back),
            ],
        });
        let of = |status: &Value| syncs_of(flux::HELM, "HelmRelease", status)[1].clone();
        assert_eq!(of(&status), format!("1.1.0 10:00:00- Failed {failed}; {rolled_back}"));
        // A test that failed is what was remedied where the upgrade succeeded.
        status["conditions"][1] = condition("Released", "True", "UpgradeSucceeded", "done");
        status["conditions"].as_array_mut().unwrap().push(condition(
            "TestSuccess",
            "False",
            "TestFailed",
            "test failed",
        ));
        assert_eq!(of(&status), format!("1.1.0 10:00:00- Failed test failed; {rolled_back}"));
    }

    #[test]
    fn long_messages_and_histories_are_cut() {
        let entry = |number: usize| json!({"revision": "r", "deployedAt": at(&format!("10:{:02}:{:02}", number / 60, number % 60))});
        let history: Vec<Value> = (0..100).map(entry).collect();
        let operation = json!({"operation": {"sync": {}}, "phase": "Failed", "startedAt": at("11:00:00"), "message": "x".repeat(10_000)});
        let status = json!({"history": history, "operationState": operation});
        let found = syncs_of("argoproj.io", "Application", &status);
        assert_eq!(found.len(), MAX_SYNCS);
        assert!(
            found[0].starts_with(" 11:00:00- Failed xxx") && found[0].len() < 4_200,
            "{}",
            found[0].len()
        );
    }
}
