//! Assesses HorizontalPodAutoscalers.

use jiff::SignedDuration;
use taffrail_object::Object;
use taffrail_object::json::{OwnedDocument, Value};

use crate::assess::assessor::{Assessor, Evaluation};
use crate::assess::edges::{Reference, references};
use crate::event::time;
use crate::verdict::Status;

/// Time for which missing metrics are tolerated: the metrics of new Pods arrive late.
const GRACE: SignedDuration = SignedDuration::from_mins(2);

/// Reasons that mean failure although they lack the prefix `Failed`: the Pods to count cannot be determined.
const UNUSABLE: [&str; 2] = ["AmbiguousSelector", "InvalidSelector"];

pub(super) fn examine(case: &Assessor<'_>, autoscaler: &Object<'_>, finding: &mut Evaluation) {
    if !matches!(finding.status(), Status::Current | Status::InProgress) || finding.is_stale() {
        return;
    }
    let annotated = annotated_conditions(autoscaler);
    let condition = |name| {
        let is_it = |condition: &Value<'_>| condition.get("type").is_some_and(|it| it.is_str(name));
        autoscaler.condition(name).or_else(|| annotated.as_ref()?.root().items()?.find(is_it))
    };
    let failing = ["AbleToScale", "ScalingActive"].into_iter().filter_map(condition);
    let mut failing: Vec<_> = failing
        .filter(|condition| {
            let text = |key| condition.get(key).and_then(Value::as_str).unwrap_or_default();
            let reason = text("reason");
            let is_failure = reason.starts_with("Failed") || UNUSABLE.contains(&&*reason);
            text("status") == "False" && is_failure
        })
        .map(|condition| {
            let created = || time(autoscaler.at(&["metadata", "creationTimestamp"]));
            (time(condition.get("lastTransitionTime")).or_else(created), condition)
        })
        .filter(|(since, _)| since.is_none_or(|since| case.elapsed(since, GRACE) >= GRACE))
        .collect();
    failing.sort_by_key(|(since, _)| *since);
    let Some((since, condition)) = failing.into_iter().next() else { return };
    let text = |key| condition.get(key).and_then(Value::as_str).unwrap_or_default();
    finding.turn(Status::Failed, &text("reason"), &*text("message"), "evidence/autoscaler");
    finding.since = since;
    // A target that failed later is not the cause.
    let explains = |target: &Evaluation| {
        target.hard.is_some()
            || target.status() == Status::Failed
            || target.since.zip(since).is_none_or(|(target, since)| target <= since)
    };
    for Reference { to, .. } in references(autoscaler) {
        if let Some(target) = case.get(&to).present() {
            finding.follow(case.examine(&target).filter(explains));
        } else if case.is_missing(&to) {
            finding.lacks(&case.called(&to), &to.name);
        }
    }
    finding.hard = None;
}

/// Returns the conditions of an autoscaler in `autoscaling/v1`, which has no field for them: the API server puts them
/// into an annotation as JSON. `None` if there is no such annotation, or it is not JSON.
fn annotated_conditions(autoscaler: &Object<'_>) -> Option<OwnedDocument> {
    let annotations = autoscaler.at(&["metadata", "annotations"])?;
    let text = annotations.get("autoscaling.alpha.kubernetes.io/conditions")?.as_str()?;
    OwnedDocument::parse(text.into_owned().into_bytes()).ok()
}
