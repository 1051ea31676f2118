//! The time since when an object is not well, if the object reports it.

use jiff::{SignedDuration, Timestamp};
use taffrail_object::Object;
use taffrail_object::json::Value;

use crate::adverse;
use crate::assess::changes;
use crate::event::time;
use crate::verdict::{Status, Verdict};

/// Returns the time since when `object` is not well by `verdict`: the request of a deletion, the write of a spec that
/// was not observed yet, else the last transition of the condition that decided or that its kind uses for failures,
/// else the start of a Job. `None` if the object is Current or does not tell.
pub(super) fn of(object: &Object<'_>, verdict: &Verdict) -> Option<Timestamp> {
    match verdict.status {
        Status::Current => None,
        Status::Terminating => deleted(object),
        _ if is_unobserved(verdict) => specified(object),
        _ if verdict.rule == "generic/adverse" => adverse::since(object),
        _ => decisive(object, verdict).or_else(|| conditions(object)).or_else(|| {
            match (object.group(), object.kind()) {
                ("batch", "Job") => time(object.at(&["status", "startTime"])),
                _ => None,
            }
        }),
    }
}

/// Returns true if the controller has not observed the newest generation: all conditions are about an older one.
pub(super) fn is_unobserved(verdict: &Verdict) -> bool {
    verdict.conditions.first().is_some_and(|condition| condition.reason == "LatestGenerationNotObserved")
}

/// Returns the time at which the current spec was written: its newest write, or for the first generation the creation;
/// `None` if the object tells neither.
fn specified(object: &Object<'_>) -> Option<Timestamp> {
    let is_first = object.at(&["metadata", "generation"]).and_then(Value::as_i64) == Some(1);
    let created = || time(object.at(&["metadata", "creationTimestamp"])).filter(|_| is_first);
    spec_written(object).or_else(created)
}

/// Returns the time of the newest write of the spec, from the managed fields; `None` if these tell none.
pub fn spec_written(object: &Object<'_>) -> Option<Timestamp> {
    changes::written(object, &["f:spec"]).map(|(when, _)| when)
}

/// Returns true if the time since when an object with this verdict is not well may be taken from [`spec_written`].
pub fn reads_spec_written(object: &Object<'_>, verdict: &Verdict) -> bool {
    is_unobserved(verdict) || is_workload(object)
}

/// Returns the start of a workload's current rollout, before which it counts as well, however old it is; `None` for
/// other kinds.
pub(super) fn rolled_out(object: &Object<'_>) -> Option<Timestamp> {
    is_workload(object).then(|| specified(object)).flatten()
}

fn is_workload(object: &Object<'_>) -> bool {
    matches!(
        (object.group(), object.kind()),
        ("apps" | "extensions", "Deployment" | "ReplicaSet" | "DaemonSet") | ("apps", "StatefulSet")
    )
}

/// Returns the time at which the deletion was requested: `deletionTimestamp`, the end of the grace period, less that
/// period; `None` if the object is not being deleted.
fn deleted(object: &Object<'_>) -> Option<Timestamp> {
    let end = time(object.at(&["metadata", "deletionTimestamp"]))?;
    let grace = object.at(&["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64).unwrap_or(0);
    Some(end.checked_sub(SignedDuration::from_secs(grace.max(0))).unwrap_or(end))
}

/// Returns the last transition of the condition of type `name`; `None` without it, or if `is_bad` returns false for its
/// status.
pub(super) fn transition(
    object: &Object<'_>,
    name: &str,
    is_bad: impl Fn(&str) -> bool,
) -> Option<Timestamp> {
    let condition = object.condition(name)?;
    let status = condition.get("status")?.as_str()?;
    if is_bad(&status) { time(condition.get("lastTransitionTime")) } else { None }
}

/// Returns the last transition of the condition by which kstatus' generic rules decided before the rule of the kind;
/// `None` if they did not decide.
fn decisive(object: &Object<'_>, verdict: &Verdict) -> Option<Timestamp> {
    let name = match verdict.status {
        Status::Failed => "Stalled",
        Status::InProgress => "Reconciling",
        _ => return None,
    };
    let is_it = verdict.rule == "generic/conditions";
    is_it.then(|| transition(object, name, |status| status == "True")).flatten()
}

fn conditions(object: &Object<'_>) -> Option<Timestamp> {
    let at_true = |name: &str| transition(object, name, |status| status == "True");
    let at_false = |name: &str| transition(object, name, |status| status == "False");
    let at_not_true = |name: &str| transition(object, name, |status| status != "True");
    match (object.group(), object.kind()) {
        ("apps" | "extensions", "Deployment") => {
            [at_false("Available"), at_false("Progressing"), at_true("ReplicaFailure")]
                .into_iter()
                .flatten()
                .min()
        }
        ("apps" | "extensions", "ReplicaSet") => at_true("ReplicaFailure"),
        ("", "Pod") => at_not_true("Ready").or_else(|| at_false("PodScheduled")),
        ("batch", "Job") => at_true("Failed"),
        ("apiregistration.k8s.io", "APIService") => at_not_true("Available"),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            at_false("NamesAccepted").or_else(|| at_false("Established"))
        }
        _ => at_not_true("Ready").or_else(|| at_true("Stalled")).or_else(|| at_true("Reconciling")),
    }
}
