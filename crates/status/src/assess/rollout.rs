//! Assesses Rollouts of Argo.

use taffrail_object::Object;
use taffrail_object::json::Value;

use crate::assess::assessor::{Assessor, Evaluation};
use crate::assess::{Flags, extension};
use crate::event::time;
use crate::verdict::Status;

/// Marks a Current Rollout that is paused as suspended, and sets it InProgress if it is between two revisions. Then
/// examines it, paused or not, as other custom resources.
pub(super) fn examine(case: &Assessor<'_>, rollout: &Object<'_>, finding: &mut Evaluation) {
    if finding.is_current() && is_paused(rollout) {
        if is_between_revisions(rollout) {
            let message = rollout.text(&["status", "message"]);
            let said =
                if message.trim().is_empty() { String::new() } else { format!(": {}", message.trim()) };
            let text = format!("the Rollout is paused between two revisions{said}");
            finding.turn(Status::InProgress, "Paused", text, "evidence/rollout-paused");
            finding.since = pauses(rollout).filter_map(|pause| time(pause.get("startTime"))).min();
        }
        finding.verdict.suspended = true;
    }
    extension::examine(case, rollout, finding);
}

fn pauses<'a>(rollout: &Object<'a>) -> impl Iterator<Item = Value<'a>> + use<'a> {
    rollout.at(&["status", "pauseConditions"]).and_then(Value::items).into_iter().flatten()
}

fn is_paused(rollout: &Object<'_>) -> bool {
    Flags::of(rollout).paused
        || rollout.text(&["status", "phase"]) == "Paused"
        || pauses(rollout).next().is_some()
}

/// Returns true if the current revision is not the stable one; false if the Rollout does not state a current one.
fn is_between_revisions(rollout: &Object<'_>) -> bool {
    let [current, stable, canary] =
        [&["status", "currentPodHash"][..], &["status", "stableRS"], &["status", "canary", "stableRS"]]
            .map(|path| rollout.text(path));
    // Before v1.0 the stable one was in another field.
    let stable = if stable.is_empty() { canary } else { stable };
    !current.is_empty() && current != stable
}
