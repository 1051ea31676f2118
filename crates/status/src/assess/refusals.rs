//! Finds refused creations of Pods and claims: by a quota or by admission.

use jiff::{SignedDuration, Timestamp};
use taffrail_object::Object;
use taffrail_object::json::Value;

use crate::assess::assessor::{Assessor, Evaluation, HardCause};
use crate::event::{Event, time};

/// Maximum age of a refusal that counts: controllers retry after at most 1,000 s.
const RECENT: SignedDuration = SignedDuration::from_mins(20);

/// Sets a hard cause and returns true if the object has the condition `name` with `status`, and its reason is a refused
/// creation.
pub(super) fn condition(object: &Object<'_>, finding: &mut Evaluation, name: &str, status: &str) -> bool {
    let Some(condition) = object.condition(name) else { return false };
    let text = |key| condition.get(key).and_then(Value::as_str).unwrap_or_default();
    let is_refused =
        text("status") == status && matches!(&*text("reason"), "FailedCreate" | "ReplicaSetCreateError");
    if is_refused {
        finding.harden(HardCause::Refused, &text("reason"), &*text("message"));
    }
    is_refused
}

/// Sets a hard cause and returns true if a recent Warning event since `since` tells of a refused creation, and no Pod
/// was created after it. Does not count that an object of the same name exists already or is being deleted. For kinds
/// without a condition for refusals.
pub(super) fn events(
    case: &Assessor<'_>,
    object: &Object<'_>,
    finding: &mut Evaluation,
    since: Option<Timestamp>,
) -> bool {
    let refusal = case.warnings(object, since).into_iter().find(|event| {
        // An object of the same name that is still being deleted is gone within seconds.
        let is_in_the_way =
            event.message.contains("already exists") || event.message.contains("being deleted");
        event.reason == "FailedCreate" && !is_in_the_way && case.is_recent(event, RECENT)
    });
    let Some(event) = refusal.filter(|event| !is_over(case, object, event)) else { return false };
    finding.harden(HardCause::Refused, &event.reason, &*event.message);
    finding.since = finding.since.or(event.first);
    true
}

/// Returns true if a Pod of the object was created after the refusal.
///
/// If a quota is used up, a creation and a refusal happen within the same second, so a Pod of that second does not
/// count.
fn is_over(case: &Assessor<'_>, object: &Object<'_>, refusal: &Event<'_>) -> bool {
    let Some(last) = refusal.last else { return false };
    let is_after = |at: Option<Timestamp>| at.is_some_and(|at| at.as_second() > last.as_second());
    let pods = case.owned(object, Some(("", "Pod")));
    pods.iter().any(|pod| is_after(time(pod.at(&["metadata", "creationTimestamp"]))))
        || case
            .events(object, Some(last))
            .iter()
            .any(|event| event.reason == "SuccessfulCreate" && !event.warning && is_after(event.last))
}
