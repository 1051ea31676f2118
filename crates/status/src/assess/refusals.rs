//! Pods and claims that quota or admission refuses to let be made.

use jiff::{SignedDuration, Timestamp};
use taffrail_object::Object;
use taffrail_object::json::Value;

use crate::assess::case::{Case, Finding, HardCause};
use crate::assess::event::{Event, time};

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
    let Some(event) = refusal.filter(|event| !is_over(case, object, event)) else { return false };
    finding.harden(HardCause::Refused, &event.reason, &*event.message);
    finding.since = finding.since.or(event.first);
    true
}

/// Whether the object has made a Pod since it was refused one.
///
/// Within one second both happen where a quota is used up, so that is not after it.
fn is_over(case: &Case<'_>, object: &Object<'_>, refusal: &Event<'_>) -> bool {
    let Some(last) = refusal.last else { return false };
    let is_after = |at: Option<Timestamp>| at.is_some_and(|at| at.as_second() > last.as_second());
    let pods = case.owned(object, Some(("", "Pod")));
    pods.iter().any(|pod| is_after(time(pod.at(&["metadata", "creationTimestamp"]))))
        || case
            .events(object, Some(last))
            .iter()
            .any(|event| event.reason == "SuccessfulCreate" && !event.warning && is_after(event.last))
}
