//! Assesses Jobs and CronJobs.

use jiff::Timestamp;
use taffrail_object::Object;
use taffrail_object::json::Value;

use crate::assess::assessor::{Assessor, Evaluation, HardCause};
use crate::assess::workloads::{is_terminating, unseen};
use crate::assess::{Flags, pod, refusals};
use crate::event::time;
use crate::verdict::Status;

const POD: (&str, &str) = ("", "Pod");

/// The result of a finished Job.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JobEnd {
    Complete,
    Failed,
}

fn end(job: &Object<'_>) -> Option<JobEnd> {
    let is_true = |name: &str| job.condition_is(name, "True");
    if is_true("Failed") {
        Some(JobEnd::Failed)
    } else if is_true("Complete") {
        Some(JobEnd::Complete)
    } else {
        None
    }
}

pub(super) fn job(case: &Assessor<'_>, job: &Object<'_>, finding: &mut Evaluation) {
    match end(job) {
        Some(JobEnd::Complete) => {}
        Some(JobEnd::Failed) => failed(case, job, finding),
        None if Flags::of(job).suspended => {
            if matches!(finding.status(), Status::InProgress | Status::Current) {
                finding.turn(Status::Current, "", "Job is suspended", "evidence/suspended");
            }
        }
        None => running(case, job, finding),
    }
}

fn failed(case: &Assessor<'_>, job: &Object<'_>, finding: &mut Evaluation) {
    if finding.is_current() {
        return;
    }
    let condition = job.condition("Failed");
    let text = |key| condition.and_then(|it| it.get(key)?.as_str()).unwrap_or_default();
    finding.say(&text("reason"), &*text("message"));
    let pods = case.owned(job, Some(POD));
    let (ended, others): (Vec<_>, Vec<_>) =
        pods.iter().partition(|object| pod::is_in_phase(object, "Failed"));
    // A failure policy names the Pod that made the Job fail.
    let named = |object: &&&Object<'_>| text("message").contains(&format!("/{} ", object.name()));
    let ended = match ended.iter().find(named) {
        Some(named) => vec![*named],
        None => ended,
    };
    if ended.is_empty() {
        finding.follow(others.into_iter().filter_map(|object| case.examine(object)));
        finding.hard = None;
    } else {
        finding.follow(ended.into_iter().map(|object| pod::failed(case, object)));
    }
}

fn running(case: &Assessor<'_>, job: &Object<'_>, finding: &mut Evaluation) {
    if finding.is_stale() {
        return;
    }
    if finding.is_current() {
        let text = finding.text.clone();
        finding.turn(Status::InProgress, "JobInProgress", text, "evidence/job-running");
        finding.since = time(job.at(&["status", "startTime"]));
    }
    let objects = case.owned(job, Some(POD));
    let has_ended =
        |object: &Object<'_>| pod::is_in_phase(object, "Failed") || pod::is_in_phase(object, "Succeeded");
    // New Pods replace those being deleted, unless the Job waits until they have ended.
    let waits = job.at(&["spec", "podReplacementPolicy"]).is_some_and(|policy| policy.is_str("Failed"));
    let counts = |object: &Object<'_>| (waits || !is_terminating(object)) && !has_ended(object);
    let active: Vec<_> = objects.into_iter().filter(counts).collect();
    let mut pods: Vec<_> = active.iter().filter_map(|object| case.examine(object)).collect();
    let may_retry = has_tries_left(job, &active);
    for pod in &mut pods {
        if may_retry && matches!(pod.hard, Some(HardCause::Crash | HardCause::OutOfMemory)) {
            pod.hard = None;
        }
    }
    finding.follow(pods);
    if finding.hard.is_none() && lacks_pods(job) {
        let since = finding.since;
        if refusals::events(case, job, finding, since) {
            finding.below.clear();
        }
    }
    unseen(case, job, finding);
}

/// Returns true if the Job has fewer active Pods than its parallelism, or than it still needs to be complete if that is
/// less.
fn lacks_pods(job: &Object<'_>) -> bool {
    let number = |path: &[&str]| job.at(path).and_then(Value::as_i64);
    let succeeded = number(&["status", "succeeded"]).unwrap_or(0);
    let left = match number(&["spec", "completions"]) {
        Some(completions) => completions.saturating_sub(succeeded),
        // A Job without a number is complete when one Pod succeeds.
        None if succeeded > 0 => 0,
        None => i64::MAX,
    };
    let wanted = number(&["spec", "parallelism"]).unwrap_or(1).min(left);
    number(&["status", "active"]).unwrap_or(0) < wanted
}

/// Returns true if the Job's controller replaces a Pod that fails now: at most `backoffLimit` (6 by default) Pods
/// failed before. With restartPolicy OnFailure, the restarts within `pods` must also be 0 or below the limit.
fn has_tries_left(job: &Object<'_>, pods: &[Object<'_>]) -> bool {
    let number = |path: &[&str]| job.at(path).and_then(Value::as_i64);
    let limit = number(&["spec", "backoffLimit"]).unwrap_or(6);
    let failed = number(&["status", "failed"]).unwrap_or(0);
    let in_place = job
        .at(&["spec", "template", "spec", "restartPolicy"])
        .is_some_and(|policy| policy.is_str("OnFailure"));
    if !in_place {
        return failed <= limit;
    }
    let lists = pods.iter().flat_map(|pod| {
        ["initContainerStatuses", "containerStatuses"].into_iter().filter_map(|key| pod.at(&["status", key]))
    });
    let statuses = lists.filter_map(Value::items).flatten();
    let restarts = statuses.filter_map(|status| status.get("restartCount")?.as_i64());
    let restarts = restarts.fold(0, i64::saturating_add);
    failed <= limit && (restarts < limit || restarts == 0)
}

/// Sets a Current CronJob that is not suspended Failed if its last finished Job failed and no later success is
/// recorded, if an active Job has a hard cause, or if its last run certainly left neither a success nor a Job.
/// Otherwise its message tells if the Pods of an active Job were not observed.
pub(super) fn cron_job(case: &Assessor<'_>, cron_job: &Object<'_>, finding: &mut Evaluation) {
    if Flags::of(cron_job).suspended || !finding.is_current() {
        return;
    }
    let jobs = case.owned(cron_job, Some(("batch", "Job")));
    let status = |key| time(cron_job.at(&["status", key]));
    let (last_run, success) = (status("lastScheduleTime"), status("lastSuccessfulTime"));
    let finished = jobs.iter().filter(|job| end(job).is_some());
    let last = finished.max_by_key(|job| (scheduled(job), job.name()));
    // A later run may have succeeded and been removed already.
    let is_over = |job: &Object<'_>| {
        let ended = super::since::transition(job, "Failed", |status| status == "True");
        success.zip(ended).is_some_and(|(success, ended)| success > ended) && last_run > scheduled(job)
    };
    let failed = last.filter(|job| end(job) == Some(JobEnd::Failed) && !is_over(job));
    let active = jobs.iter().filter(|job| end(job).is_none() && !is_terminating(job));
    let active: Vec<_> = active.filter_map(|job| case.examine(job)).collect();
    // An active Job without information about its Pods looks as if it ran.
    let is_seen = |job: &Evaluation| job.is_current() || job.is_stale() || job.hard.is_some();
    if !active.iter().all(is_seen)
        && !case.evidence.state().is_observed("", "Pod", Some(&cron_job.namespace()))
    {
        finding.text = "the Pods of the CronJob's active Job were not observed".to_owned();
    }
    let cannot_start: Vec<_> = active.into_iter().filter(|job| job.hard.is_some()).collect();
    if let Some(job) = failed {
        let text = format!("the last finished Job {} of the CronJob failed", job.name());
        finding.turn(Status::Failed, "LastJobFailed", text, "evidence/last-job");
        finding.follow(case.examine(job).into_iter().chain(cannot_start));
    } else if !cannot_start.is_empty() {
        let text = "the Pods of the CronJob's active Job cannot run";
        finding.turn(Status::Failed, "ActiveJobFails", text, "evidence/active-job");
        finding.follow(cannot_start);
    } else if let Some(run) = run_without_success(cron_job)
        && jobs.iter().all(|job| scheduled(job) < last_run)
        && !forgets_success(cron_job)
        && case.evidence.state().is_observed("batch", "Job", Some(&cron_job.namespace()))
    {
        let text = format!("the CronJob's run of {run} did not succeed, and left no Job");
        finding.turn(Status::Failed, "LastRunLost", text, "evidence/last-run");
        finding.since = last_run;
    }
    finding.hard = None;
}

/// Returns the time of a CronJob's last run if it has ended and its success is not recorded, but may be lost: Jobs that
/// succeed may be removed at once, and the controller then records no success, so a missing Job proves nothing. Returns
/// `None` for any other CronJob, and for a suspended one.
pub fn unproven_run(cron_job: &Object<'_>) -> Option<Timestamp> {
    run_without_success(cron_job).filter(|_| forgets_success(cron_job) && !Flags::of(cron_job).suspended)
}

/// Returns the time of a CronJob's last run if none of its Jobs is active and no later success is recorded; else
/// `None`.
fn run_without_success(cron_job: &Object<'_>) -> Option<Timestamp> {
    let status = |key| time(cron_job.at(&["status", key]));
    let (run, success) = (status("lastScheduleTime")?, status("lastSuccessfulTime"));
    (success < Some(run) && !has_active(cron_job)).then_some(run)
}

fn has_active(cron_job: &Object<'_>) -> bool {
    let active = cron_job.at(&["status", "active"]).and_then(Value::items);
    active.into_iter().flatten().any(|job| job.get("name").is_some_and(|name| !name.is_null()))
}

/// Returns true if a CronJob keeps no successful Jobs, or its Jobs are removed less than 60 s after they finish: the
/// controller may then not see a success, and does not record it.
fn forgets_success(cron_job: &Object<'_>) -> bool {
    let number = |path: &[&str]| cron_job.at(path).and_then(Value::as_i64);
    number(&["spec", "successfulJobsHistoryLimit"]) == Some(0)
        || number(&["spec", "jobTemplate", "spec", "ttlSecondsAfterFinished"]).is_some_and(|ttl| ttl < 60)
}

/// Returns the time for which a CronJob scheduled the Job: from the Job's annotation, else its creation time; `None` if
/// it has neither.
fn scheduled(job: &Object<'_>) -> Option<Timestamp> {
    let at = job.at(&["metadata", "annotations", "batch.kubernetes.io/cronjob-scheduled-timestamp"]);
    time(at).or_else(|| time(job.at(&["metadata", "creationTimestamp"])))
}
