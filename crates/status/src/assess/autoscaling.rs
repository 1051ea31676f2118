//! HorizontalPodAutoscalers.

use jiff::SignedDuration;

use crate::assess::case::{Case, Finding};
use crate::assess::edges::references;
use crate::assess::evidence::{Lookup, time};
use crate::json::Value;
use crate::object::Object;
use crate::verdict::Status;

/// Metrics of new Pods come late; the third minute is the first that tells.
const GRACE: SignedDuration = SignedDuration::from_mins(2);

pub(super) fn examine(case: &Case<'_>, autoscaler: &Object<'_>, finding: &mut Finding) {
    if !matches!(finding.status(), Status::Current | Status::InProgress) || finding.is_stale() {
        return;
    }
    let failing = ["AbleToScale", "ScalingActive"].into_iter().filter_map(|name| autoscaler.condition(name));
    let mut failing: Vec<_> = failing
        .filter(|condition| {
            let text = |key| condition.get(key).and_then(Value::as_str).unwrap_or_default();
            text("status") == "False" && text("reason").starts_with("Failed")
        })
        .map(|condition| {
            let created = || time(autoscaler.at(&["metadata", "creationTimestamp"]));
            (time(condition.get("lastTransitionTime")).or_else(created), condition)
        })
        .filter(|(since, _)| since.is_none_or(|since| case.now.duration_since(since) >= GRACE))
        .collect();
    failing.sort_by_key(|(since, _)| *since);
    let Some((since, condition)) = failing.into_iter().next() else { return };
    let text = |key| condition.get(key).and_then(Value::as_str).unwrap_or_default();
    finding.turn(Status::Failed, &text("reason"), &*text("message"), "evidence/autoscaler");
    finding.since = since;
    for reference in references(autoscaler) {
        match case.get(&reference.to) {
            Lookup::Found(target) => finding.follow(case.examine(&target)),
            Lookup::Absent => {
                finding.fact(format!("{} {} does not exist", reference.to.kind, reference.to.name))
            }
            Lookup::Unobserved(_) => {}
        }
    }
    finding.hard = None;
}
