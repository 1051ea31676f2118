//! kstatus' rules for the core group: Pod, PersistentVolumeClaim, Service.

use jiff::{SignedDuration, Timestamp};
use taffrail_object::json::{Kind, Value};

use super::{Subject, fields};
use crate::costs::elapsed;
use crate::verdict::{ComputeError, Verdict};

/// Age from which a Pod that the scheduler calls unschedulable counts as failed.
const SCHEDULE_WINDOW: SignedDuration = SignedDuration::from_secs(15);

pub(super) fn service(subject: &Subject<'_, '_>) -> Result<Verdict, ComputeError> {
    const RULE: &str = "builtin/Service";

    let spec = subject.object.at(&["spec"]);
    let text = |key| spec.and_then(|spec| spec.get(key)).and_then(Value::as_str).unwrap_or_default();
    if text("type") == "LoadBalancer" && text("clusterIP").is_empty() {
        let message = "ClusterIP not set. Service type: LoadBalancer";
        return Ok(Verdict::in_progress("NoIPAssigned", message, RULE));
    }
    Ok(Verdict::current("Service is ready", RULE))
}

pub(super) fn persistent_volume_claim(subject: &Subject<'_, '_>) -> Result<Verdict, ComputeError> {
    const RULE: &str = "builtin/PersistentVolumeClaim";

    let phase = subject.object.at(&["status", "phase"]).and_then(Value::as_str);
    let phase = phase.as_deref().unwrap_or("unknown");
    if phase != "Bound" {
        return Ok(Verdict::in_progress("NotBound", format!("PVC is not Bound. phase: {phase}"), RULE));
    }
    Ok(Verdict::current("PVC is Bound", RULE))
}

pub(super) fn pod(subject: &Subject<'_, '_>) -> Result<Verdict, ComputeError> {
    const RULE: &str = "builtin/Pod";

    let phase = subject.object.text(&["status", "phase"]);
    match &*phase {
        "Succeeded" => Ok(Verdict::current("Pod has completed successfully", RULE)),
        "Failed" => Ok(Verdict::current("Pod has completed, but not successfully", RULE)),
        "Running" => {
            if subject.conditions.iter().any(|condition| condition.is("Ready", "True")) {
                return Ok(Verdict::current("Pod is Ready", RULE));
            }
            let looping = crash_looping(subject)?;
            if looping.is_empty() {
                return Ok(Verdict::in_progress(
                    "PodRunningNotReady",
                    "Pod is running but is not Ready",
                    RULE,
                ));
            }
            let message = format!("Containers in CrashLoop state: {}", looping.join(","));
            Ok(Verdict::failed("ContainerCrashLooping", message, RULE))
        }
        "Pending" => {
            let mut scheduled = subject.conditions.iter();
            let scheduled = scheduled.find(|condition| condition.is("PodScheduled", "False"));
            if !scheduled.is_some_and(|condition| condition.has_reason("Unschedulable")) {
                return Ok(Verdict::in_progress("PodPending", "Pod is in the Pending phase", RULE));
            }
            let age = elapsed(created(subject), SCHEDULE_WINDOW, subject.now, subject.costs);
            Ok(if age < SCHEDULE_WINDOW {
                Verdict::in_progress("PodNotScheduled", "Pod has not been scheduled", RULE)
            } else {
                Verdict::failed("PodUnschedulable", "Pod could not be scheduled", RULE)
            })
        }
        "" => Ok(Verdict::in_progress("PodNotObserved", "Pod phase not available", RULE)),
        _ => Err(ComputeError::UnknownPhase(phase.into_owned())),
    }
}

/// Returns the creation time of the Pod; one that cannot be parsed counts as long ago.
fn created(subject: &Subject<'_, '_>) -> Timestamp {
    let text = subject.object.text(&["metadata", "creationTimestamp"]);
    text.parse().unwrap_or(Timestamp::MIN)
}

/// Returns the names of the containers, without init containers, that wait in a crash loop, in the order of their
/// statuses.
fn crash_looping(subject: &Subject<'_, '_>) -> Result<Vec<String>, ComputeError> {
    let statuses = fields::container_statuses(subject.object)?;
    let mut names = Vec::new();
    for status in statuses.into_iter().flat_map(|list| list.items()).flatten() {
        if let Some(name) = waits_in_crash_loop(status)? {
            names.push(name);
        }
    }
    Ok(names)
}

fn waits_in_crash_loop(status: Value<'_>) -> Result<Option<String>, ComputeError> {
    let shaped = |value: Value<'_>, kind| {
        if value.kind() == kind { Ok(()) } else { Err(ComputeError::BadContainerStatus) }
    };
    shaped(status, Kind::Object)?;
    let Some(name) = status.get("name") else { return Ok(None) };
    shaped(name, Kind::String)?;
    let mut value = status;
    for key in ["state", "waiting"] {
        let Some(inner) = value.get(key) else { return Ok(None) };
        shaped(inner, Kind::Object)?;
        value = inner;
    }
    let Some(reason) = value.get("reason") else { return Ok(None) };
    shaped(reason, Kind::String)?;
    Ok(reason.is_str("CrashLoopBackOff").then(|| name.as_str().unwrap_or_default().into_owned()))
}
