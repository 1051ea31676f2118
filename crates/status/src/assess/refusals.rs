//! Pods and claims that quota or admission refuses to let be made.

use jiff::{SignedDuration, Timestamp};

use crate::assess::case::{Case, Finding, HardCause};
use crate::json::Value;
use crate::object::Object;

/// Controllers try again after at most 1,000 s.
const RECENT: SignedDuration = SignedDuration::from_mins(20);

/// The condition by which a workload says that it may not make what it wants.
pub(super) fn condition(object: &Object<'_>, finding: &mut Finding, name: &str, status: &str) -> bool {
    let Some(condition) = object.condition(name) else { return false };
    let text = |key| condition.get(key).and_then(Value::as_str).unwrap_or_default();
    let is_refused =
        text("status") == status && matches!(&*text("reason"), "FailedCreate" | "ReplicaSetCreateError");
    if is_refused {
        finding.harden(HardCause::Refused, &text("reason"), &*text("message"));
    }
    is_refused
}

/// The events by which a controller says so that has no condition for it.
pub(super) fn events(
    case: &Case<'_>,
    object: &Object<'_>,
    finding: &mut Finding,
    since: Option<Timestamp>,
) -> bool {
    let refusal = case.warnings(object, since).into_iter().find(|event| {
        // The object of the same name that is still being deleted is a matter of seconds.
        let is_in_the_way =
            event.message.contains("already exists") || event.message.contains("being deleted");
        event.reason == "FailedCreate" && !is_in_the_way && case.is_recent(event, RECENT)
    });
    let Some(event) = refusal else { return false };
    finding.harden(HardCause::Refused, &event.reason, &*event.message);
    finding.since = finding.since.or(event.first);
    true
}
