//! kstatus' rule for Jobs.

use taffrail_object::json::Value;

use super::{Fork, Subject};
use crate::verdict::{ComputeError, Verdict};

pub(super) fn job(subject: &Subject<'_, '_>) -> Result<Verdict, ComputeError> {
    const RULE: &str = "builtin/batch/Job";

    let parallelism = subject.spec("parallelism", 1);
    let completions = subject.spec("completions", parallelism);
    let succeeded = subject.status("succeeded", 0);
    let active = subject.status("active", 0);
    let failed = subject.status("failed", 0);
    let suspended = || subject.object.at(&["spec", "suspend"]).and_then(Value::as_bool) == Some(true);

    for condition in &subject.conditions {
        if condition.is("Complete", "True") {
            let message = format!("Job Completed. succeeded: {succeeded}/{completions}");
            return Ok(Verdict::current(message, RULE));
        }
        if condition.is("Failed", "True") {
            return Ok(Verdict::failed(
                "JobFailed",
                format!("Job Failed. failed: {failed}/{completions}"),
                RULE,
            ));
        }
        if subject.fork == Fork::KubernetesSigs && condition.is("Suspended", "True") && suspended() {
            return Ok(Verdict::current("Job is suspended", RULE));
        }
    }
    if subject.object.text(&["status", "startTime"]).is_empty() {
        return Ok(Verdict::in_progress("JobNotStarted", "Job not started", RULE));
    }
    let message = format!("Job in progress. success:{succeeded}, active: {active}, failed: {failed}");
    Ok(Verdict::current(message, RULE))
}
