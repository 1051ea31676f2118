//! The problems of Flux sources that are missing, being deleted or suspended, or that cannot be fetched or verified.

use jiff::{SignedDuration, Timestamp};
use taffrail_object::ObjectKey;
use taffrail_object::json::Value;
use taffrail_status::Presence;

use super::{Condition, late, span, text, time, written};
use crate::noting::elapsed;
use crate::objects::Objects;
use crate::problem::{Axis, MAX_UNTRIED_TIME, Problem, ProblemSeverity, SUSPENDED};

/// Returns the problem of a Flux source that does not exist, is being deleted or suspended, cannot be fetched or
/// verified, or was not fetched for long, even if it still holds an older artifact; `None` if it has none or was not
/// observed.
pub(super) fn problem(objects: &dyn Objects, key: &ObjectKey, now: Timestamp) -> Option<Problem> {
    let name = format!("{} {}", key.kind, key.path());
    let found = match objects.get(key.as_ref()) {
        Presence::Present(found) => found.object,
        Presence::Absent => {
            let problem = Problem::new(Axis::Source, "NotFound", ProblemSeverity::Error);
            return Some(problem.says(format!("{name} not found")).about(key));
        }
        Presence::Unobserved(_) => return None,
    };
    if text(found.root(), &["metadata", "deletionTimestamp"]).is_some() {
        let since = time(found.at(&["metadata", "deletionTimestamp"]));
        let is_stuck =
            since.is_some_and(|since| elapsed(objects, since, MAX_UNTRIED_TIME, now) >= MAX_UNTRIED_TIME);
        let severity = if is_stuck { ProblemSeverity::Error } else { ProblemSeverity::Waiting };
        let message = format!("{name} is being deleted: new commits and artifacts are not fetched");
        return Some(
            Problem::new(Axis::Source, "Terminating", severity).since(since).says(message).about(key),
        );
    }
    let is_suspended = found.at(&["spec", "suspend"]).and_then(Value::as_bool) == Some(true);
    let is = |name: &str, status: &str| Condition::find(&found, name).filter(|it| it.is(status));
    let interval = span(&found.text(&["spec", "interval"]));
    // A condition that failed says more than that it is not Ready.
    let failed = ["FetchFailed", "StorageOperationFailed", "BuildFailed", "IncludeUnavailable"];
    let failed = failed.iter().find_map(|name| is(name, "True"));
    let unverified = is("SourceVerified", "False");
    let failing = || {
        is("Ready", "False").filter(|ready| {
            !matches!(&*ready.text("reason"), "Progressing" | "ProgressingWithRetry" | "DependencyNotReady")
        })
    };
    let is_unverified = unverified.is_some();
    let Some(condition) = unverified.or(failed).or_else(failing).or_else(|| is("Stalled", "True")) else {
        if is_suspended {
            let problem = Problem::new(Axis::Source, SUSPENDED, ProblemSeverity::Notice);
            let since = written(&found, &["spec", "suspend"]);
            let message = format!("{name} is suspended: new commits and artifacts are not fetched");
            return Some(problem.since(since).says(message).about(key));
        }
        let ready = Condition::find(&found, "Ready").filter(|ready| !ready.is("True"))?;
        return unfetched(objects, &name, &ready, interval, now).map(|problem| problem.about(key));
    };
    let state = Some(condition.text("type")).filter(|it| it != "Ready").unwrap_or_else(|| {
        let reason = condition.text("reason");
        if reason.is_empty() { "NotReady".to_owned() } else { reason }
    });
    let state = if is_unverified { "VerificationFailed".to_owned() } else { state };
    let since = condition.since();
    // A source that failed less than an interval ago has been, or will be, tried again, unless it is suspended.
    let retries = !is_unverified
        && !is_suspended
        && is("Stalled", "True").is_none()
        && since
            .zip(interval)
            .is_some_and(|(since, interval)| elapsed(objects, since, interval, now) < interval);
    let severity = if retries { ProblemSeverity::Waiting } else { ProblemSeverity::Error };
    let problem = Problem::new(Axis::Source, state, severity).since(since).about(key);
    let suspended = if is_suspended { "; it is suspended" } else { "" };
    Some(problem.says(format!("{name}: {}{suspended}", condition.text("message"))))
}

/// Returns the problem that the controller of a source has not fetched it for its interval (without one, for
/// [`MAX_UNTRIED_TIME`]) or longer, or since an unknown time; `None` before. It is an error after
/// [`late::MAX_SYNC_TIME`], or after the interval if that is longer.
fn unfetched(
    objects: &dyn Objects,
    name: &str,
    ready: &Condition<'_>,
    interval: Option<SignedDuration>,
    now: Timestamp,
) -> Option<Problem> {
    let since = ready.since();
    let severity =
        late::severity(objects, since, interval.unwrap_or(MAX_UNTRIED_TIME), late::MAX_SYNC_TIME, now)?;
    let problem = Problem::new(Axis::Source, "NotFetched", severity).since(since);
    Some(problem.says(format!("{name} has not been fetched yet: {}", ready.text("message"))))
}
