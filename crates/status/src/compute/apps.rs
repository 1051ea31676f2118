//! kstatus' rules for workloads: Deployment, ReplicaSet, StatefulSet, DaemonSet.

use taffrail_object::json::Value;

use super::fields::{Metadata, ObjectStatus};
use super::{Subject, fields};
use crate::verdict::{ComputeError, Condition, ConditionType, Status, Verdict};

/// The value of `progressDeadlineSeconds` that means no deadline.
const NO_DEADLINE: i64 = i32::MAX as i64;

/// Creates an InProgress verdict with a message such as `Available: 2/3`: `what`, `have` and `want` in this order.
fn lacking(rule: &'static str, reason: &'static str, what: &str, have: i64, want: i64) -> Verdict {
    Verdict::in_progress(reason, format!("{what}: {have}/{want}"), rule)
}

fn extra_pods(rule: &'static str, have: i64, want: i64) -> Verdict {
    Verdict::in_progress("ExtraPods", format!("Pending termination: {}", have.wrapping_sub(want)), rule)
}

pub(super) fn deployment(subject: &Subject<'_, '_>) -> Result<Verdict, ComputeError> {
    const RULE: &str = "builtin/apps/Deployment";

    // Without a deadline the controller never writes the condition Progressing.
    let mut progressing = subject.spec("progressDeadlineSeconds", NO_DEADLINE) == NO_DEADLINE;
    let mut available = false;
    for condition in &subject.conditions {
        if condition.is_type("Progressing") {
            if condition.has_reason("ProgressDeadlineExceeded") {
                let stalled = Condition {
                    condition: ConditionType::Stalled,
                    reason: condition.reason().into(),
                    message: condition.message().into(),
                };
                let verdict = Verdict::new(Status::Failed, "Progress deadline exceeded", RULE);
                return Ok(Verdict { conditions: vec![stalled], ..verdict });
            }
            progressing |= condition.has_status("True") && condition.has_reason("NewReplicaSetAvailable");
        } else if condition.is_type("Available") {
            available |= condition.has_status("True");
        }
    }

    let want = subject.spec("replicas", 1);
    let replicas = subject.status("replicas", 0);
    let updated = subject.status("updatedReplicas", 0);
    let ready = subject.status("readyReplicas", 0);
    let have_available = subject.status("availableReplicas", 0);

    Ok(if want > replicas {
        lacking(RULE, "LessReplicas", "Replicas", replicas, want)
    } else if want > updated {
        lacking(RULE, "LessUpdated", "Updated", updated, want)
    } else if replicas > want {
        extra_pods(RULE, replicas, want)
    } else if updated > have_available {
        lacking(RULE, "LessAvailable", "Available", have_available, updated)
    } else if want > ready {
        lacking(RULE, "LessReady", "Ready", ready, want)
    } else if !progressing {
        Verdict::in_progress("ReplicaSetNotAvailable", "ReplicaSet not Available", RULE)
    } else if !available {
        Verdict::in_progress("DeploymentNotAvailable", "Deployment not Available", RULE)
    } else {
        Verdict::current(format!("Deployment is available. Replicas: {replicas}"), RULE)
    })
}

pub(super) fn replica_set(subject: &Subject<'_, '_>) -> Result<Verdict, ComputeError> {
    const RULE: &str = "builtin/apps/ReplicaSet";

    if subject.conditions.iter().any(|condition| condition.is("ReplicaFailure", "True")) {
        return Ok(Verdict::in_progress("ReplicaFailure", "Replica Failure condition. Check Pods", RULE));
    }
    let want = subject.spec("replicas", 1);
    let replicas = subject.status("replicas", 0);
    let ready = subject.status("readyReplicas", 0);
    let available = subject.status("availableReplicas", 0);
    let labelled = subject.status("fullyLabeledReplicas", 0);

    Ok(if want > labelled {
        lacking(RULE, "LessLabelled", "Labelled", labelled, want)
    } else if want > available {
        lacking(RULE, "LessAvailable", "Available", available, want)
    } else if want > ready {
        lacking(RULE, "LessReady", "Ready", ready, want)
    } else if replicas > want {
        extra_pods(RULE, replicas, want)
    } else {
        Verdict::current(format!("ReplicaSet is available. Replicas: {replicas}"), RULE)
    })
}

pub(super) fn stateful_set(subject: &Subject<'_, '_>) -> Result<Verdict, ComputeError> {
    const RULE: &str = "builtin/apps/StatefulSet";

    let strategy = subject.object.at(&["spec", "updateStrategy"]);
    if strategy.and_then(|strategy| strategy.get("type")).is_some_and(|kind| kind.is_str("OnDelete")) {
        return Ok(Verdict::current("StatefulSet is using the ondelete update strategy", RULE));
    }
    let rolling = strategy.and_then(|strategy| strategy.get("rollingUpdate"));
    let partition = fields::count(rolling, "partition", -1);

    let want = subject.spec("replicas", 1);
    let replicas = subject.status("replicas", 0);
    let ready = subject.status("readyReplicas", 0);
    let current = subject.status("currentReplicas", 0);
    let updated = subject.status("updatedReplicas", 0);
    let revision = |key| subject.object.at(&["status", key]).and_then(Value::as_str).unwrap_or_default();

    Ok(if want > replicas {
        lacking(RULE, "LessReplicas", "Replicas", replicas, want)
    } else if want > ready {
        lacking(RULE, "LessReady", "Ready", ready, want)
    } else if replicas > want {
        extra_pods(RULE, replicas, want)
    } else if partition != -1 {
        let rolled = want.wrapping_sub(partition);
        if updated < rolled {
            lacking(RULE, "PartitionRollout", "updated", updated, rolled)
        } else {
            Verdict::current(format!("Partition rollout complete. updated: {updated}"), RULE)
        }
    } else if want > current {
        lacking(RULE, "LessCurrent", "current", current, want)
    } else if revision("currentRevision") != revision("updateRevision") {
        Verdict::in_progress("RevisionMismatch", "Waiting for updated revision to match current", RULE)
    } else {
        Verdict::current(format!("All replicas scheduled as expected. Replicas: {replicas}"), RULE)
    })
}

pub(super) fn daemon_set(subject: &Subject<'_, '_>) -> Result<Verdict, ComputeError> {
    const RULE: &str = "builtin/apps/DaemonSet";

    // The generic rule accepts an object without one of the two, but the DaemonSet controller always writes both.
    let kind = subject.object.kind();
    if Metadata::of(subject.object)?.generation()?.is_none() {
        return Ok(Verdict::in_progress(
            "NoGeneration",
            format!("{kind} metadata.generation not found"),
            RULE,
        ));
    }
    if ObjectStatus::of(subject.object)?.observed_generation()?.is_none() {
        let message = format!("{kind} status.observedGeneration not found");
        return Ok(Verdict::in_progress("NoObservedGeneration", message, RULE));
    }

    let want = subject.status("desiredNumberScheduled", -1);
    if want == -1 {
        return Ok(Verdict::in_progress("NoDesiredNumber", "Missing .status.desiredNumberScheduled", RULE));
    }
    for (key, reason, what) in [
        ("currentNumberScheduled", "LessCurrent", "Current"),
        ("updatedNumberScheduled", "LessUpdated", "Updated"),
        ("numberAvailable", "LessAvailable", "Available"),
        ("numberReady", "LessReady", "Ready"),
    ] {
        let have = subject.status(key, 0);
        if want > have {
            return Ok(lacking(RULE, reason, what, have, want));
        }
    }
    Ok(Verdict::current(format!("All replicas scheduled as expected. Replicas: {want}"), RULE))
}
