//! The controller of Jobs: the rules of Kubernetes' `pkg/controller/job` that a user who creates, suspends or deletes
//! one can see. Indexed Jobs count their completions like others; their Pods have indexes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::events::record;
use super::pods::{self, is_ending, is_ready};
use super::rollout::number;
use super::{change, is_scripted, owned, set_condition, soon, text};
use crate::behaviour::Behaviour;
use crate::clock::stamp;
use crate::state::Inner;
use crate::task::Task;
use crate::write::{Deletion, Propagation};

const BY: &str = "job-controller";
const INDEX: &str = "batch.kubernetes.io/job-completion-index";

pub(super) fn is(job: &Value, condition: &str) -> bool {
    let conditions = job["status"]["conditions"].as_array().into_iter().flatten();
    conditions.filter(|one| one["type"] == condition).any(|one| one["status"] == "True")
}

/// Returns the whole seconds from `time` to now, negative for a time to come; `None` if it is not a valid time.
fn ago(inner: &Inner, time: &Value) -> Option<i64> {
    let time = time.as_str()?.parse::<Timestamp>().ok()?;
    Some(inner.fleet.clock.now().duration_since(time).as_secs())
}

fn phase(pod: &Value) -> &str {
    pod["status"]["phase"].as_str().unwrap_or_default()
}

/// Reconciles a Job, unless it is scripted or being deleted: creates and deletes its Pods, and writes its status;
/// deletes a finished Job after its time to live.
pub(super) fn job(inner: &Arc<Inner>, namespace: &str, name: &str) {
    let Some(target) = inner.target("batch", "jobs", namespace, name) else { return };
    let Some(job) = inner.tree(&target) else { return };
    let on = inner.does.on(Behaviour::Jobs);
    if is_ending(&job) || is_scripted(&job) || !job["spec"]["template"].is_object() || !on {
        return;
    }
    let again = |delay: i64| {
        let task = Task::Job(namespace.to_owned(), name.to_owned());
        soon(inner, task, Duration::from_secs(delay.max(0).unsigned_abs()));
    };
    if is(&job, "Complete") || is(&job, "Failed") {
        let Some(left) = job["spec"]["ttlSecondsAfterFinished"].as_i64() else { return };
        let conditions = job["status"]["conditions"].as_array();
        let ended = conditions.and_then(|all| all.last()).map(|last| &last["lastTransitionTime"]);
        let passed = ended.and_then(|time| ago(inner, time)).unwrap_or_default();
        if passed < left {
            return again(left - passed);
        }
        let deletion = Deletion { propagation: Some(Propagation::Foreground), ..Deletion::default() };
        let _ = inner.delete(&target, &deletion);
        return;
    }
    let uid = text(&job["metadata"]["uid"]);
    let found = owned(inner, "", "pods", namespace, &uid);
    let succeeded = found.iter().filter(|pod| phase(pod) == "Succeeded").count();
    let failed = found.iter().filter(|pod| phase(pod) == "Failed").count();
    let active: Vec<&Value> =
        found.iter().filter(|pod| !is_ending(pod) && !matches!(phase(pod), "Succeeded" | "Failed")).collect();
    let spec = &job["spec"];
    let parallelism = number(&job, "/spec/parallelism").clamp(0, 10_000);
    let completions = spec["completions"].as_i64();
    let suspended = spec["suspend"] == true;
    let succeeded_count = i64::try_from(succeeded).unwrap_or(i64::MAX);
    let late = spec["activeDeadlineSeconds"].as_i64().and_then(|deadline| {
        let passed = ago(inner, &job["status"]["startTime"])?;
        if passed < deadline {
            again(deadline - passed);
        }
        Some(passed >= deadline)
    });
    let end = if i64::try_from(failed).unwrap_or(i64::MAX) > spec["backoffLimit"].as_i64().unwrap_or(6) {
        Some(("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"))
    } else if late == Some(true) && !suspended {
        Some(("Failed", "DeadlineExceeded", "Job was active longer than specified deadline"))
    } else if completions.map_or(succeeded > 0 && active.is_empty(), |all| succeeded_count >= all) {
        Some(("Complete", "CompletionsReached", "Reached expected number of succeeded pods"))
    } else {
        None
    };
    if end.is_some() || suspended {
        for pod in &active {
            pods::end(inner, &job, BY, pod);
        }
    } else {
        // Without completions, one success means that the other Pods may finish.
        let missing = match completions {
            Some(all) => (all - succeeded_count).min(parallelism),
            None if succeeded > 0 => 0,
            None => parallelism,
        };
        let running = i64::try_from(active.len()).unwrap_or(i64::MAX);
        let mut taken: BTreeSet<i64> = found
            .iter()
            .filter(|pod| phase(pod) != "Failed")
            .filter_map(|pod| pod["metadata"]["annotations"][INDEX].as_str()?.parse().ok())
            .collect();
        for _ in running..missing {
            pods::start(inner, &job, BY, pod(inner, &job, &mut taken));
        }
        let surplus = usize::try_from(running - missing).unwrap_or_default();
        let mut idle: Vec<Value> = active.iter().map(|pod| (*pod).clone()).collect();
        pods::youngest_first(&mut idle);
        idle.sort_by_key(is_ready);
        for pod in idle.iter().take(surplus) {
            pods::end(inner, &job, BY, pod);
        }
    }
    let found = owned(inner, "", "pods", namespace, &uid);
    let active: Vec<&Value> =
        found.iter().filter(|pod| !is_ending(pod) && !matches!(phase(pod), "Succeeded" | "Failed")).collect();
    let ready = active.iter().filter(|pod| is_ready(pod)).count();
    let ending =
        found.iter().filter(|pod| is_ending(pod) && !matches!(phase(pod), "Succeeded" | "Failed")).count();
    let now = stamp(inner.fleet.clock.now());
    let mut told = None;
    change(inner, &target, |job| {
        let before = job["status"].clone();
        let mut status = json!({"ready": ready, "terminating": ending, "uncountedTerminatedPods": {}});
        for key in ["conditions", "startTime"] {
            if let Some(value) = before.get(key) {
                status[key] = value.clone();
            }
        }
        for (key, value) in [("active", active.len()), ("succeeded", succeeded), ("failed", failed)] {
            if value > 0 {
                status[key] = json!(value);
            }
        }
        if suspended {
            if let Some(members) = status.as_object_mut() {
                members.remove("startTime");
            }
            let why = json!({"reason": "JobSuspended", "message": "Job suspended", "lastProbeTime": now});
            told = (!is(job, "Suspended")).then_some(("Suspended", "Job suspended"));
            set_condition(inner, &mut status, "Suspended", "True", &without_probe(&before, "Suspended", why));
        } else {
            if status.get("startTime").is_none() {
                status["startTime"] = json!(now);
            }
            if is(job, "Suspended") {
                let why = json!({"reason": "JobResumed", "message": "Job resumed", "lastProbeTime": now});
                set_condition(inner, &mut status, "Suspended", "False", &why);
                told = Some(("Resumed", "Job resumed"));
            }
        }
        if let Some((kind, reason, message)) = end {
            let why = json!({"reason": reason, "message": message, "lastProbeTime": now});
            let target = if kind == "Complete" { "SuccessCriteriaMet" } else { "FailureTarget" };
            set_condition(inner, &mut status, target, "True", &why);
            set_condition(inner, &mut status, kind, "True", &why);
            if kind == "Complete" {
                status["completionTime"] = json!(now);
                told = Some(("Completed", "Job completed"));
            } else {
                told = Some((reason, message));
            }
        }
        if let Some(members) = job.as_object_mut() {
            members.insert("status".to_owned(), status);
        }
    });
    if let Some((reason, message)) = told {
        let warning = end.is_some_and(|(kind, _, _)| kind == "Failed");
        record(inner, &job, warning, BY, reason, message);
    }
    if spec["ttlSecondsAfterFinished"].is_number() && end.is_some() {
        again(0);
    }
}

/// Returns `why`, the new fields of the condition `kind`, with the `lastProbeTime` that the condition has in the status
/// `before` if it is true there.
fn without_probe(before: &Value, kind: &str, mut why: Value) -> Value {
    let known = before["conditions"].as_array().into_iter().flatten().find(|one| one["type"] == kind);
    if let Some(known) = known.filter(|known| known["status"] == "True") {
        why["lastProbeTime"] = known["lastProbeTime"].clone();
    }
    why
}

fn pod(inner: &Inner, job: &Value, taken: &mut BTreeSet<i64>) -> Value {
    let mut name = text(&job["metadata"]["name"]);
    let index = (job["spec"]["completionMode"] == "Indexed")
        .then(|| (0..).find(|index| !taken.contains(index)).unwrap_or_default());
    if let Some(index) = index {
        taken.insert(index);
        name = format!("{name}-{index}");
    }
    let mut pod = pods::pod(job, &job["spec"]["template"], &format!("{name}-{}", inner.letters(5)));
    if let Some(index) = index {
        for part in ["labels", "annotations"] {
            let metadata = &mut pod["metadata"];
            if !metadata[part].is_object() {
                metadata[part] = json!({});
            }
            metadata[part][INDEX] = json!(index.to_string());
        }
    }
    pod
}
