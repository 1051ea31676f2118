//! Assesses PodDisruptionBudgets, and the Deployments whose Pods they protect.

use taffrail_object::Object;
use taffrail_object::json::Value;

use crate::assess::assessor::{Assessor, Evaluation};
use crate::event::time;
use crate::options::Budgets;
use crate::verdict::Status;

/// Sets a Current PodDisruptionBudget Failed if its controller cannot determine its Pods, because it then protects
/// none.
pub(super) fn budget(budget: &Object<'_>, finding: &mut Evaluation) {
    let Some(condition) = budget.condition("DisruptionAllowed") else { return };
    let text = |key| condition.get(key).and_then(Value::as_str).unwrap_or_default();
    let is_broken = text("status") == "False" && text("reason") == "SyncFailed";
    if is_broken && finding.is_current() {
        let message = text("message");
        let said =
            if message.trim().is_empty() { "the disruption budget cannot be computed" } else { &message };
        finding.turn(Status::Failed, "SyncFailed", said, "evidence/budget-sync");
        finding.since = time(condition.get("lastTransitionTime"));
    }
}

/// Adds to a Deployment's facts its budgets with fewer healthy Pods than they want. With [`Budgets::Sufficient`], a
/// Deployment in progress becomes Current if it has budgets, each of them is observed in its newest generation and
/// wants at least one Pod, and as many replicas are updated and available as each wants.
pub(super) fn deployment(case: &Assessor<'_>, deployment: &Object<'_>, finding: &mut Evaluation) {
    let labels = deployment.at(&["spec", "template", "metadata", "labels"]);
    let count = |object: &Object<'_>, key| object.at(&["status", key]).and_then(Value::as_i64);
    let mut kept = Vec::new();
    for budget in case.budgets(&deployment.namespace(), labels) {
        let Some(wanted) = count(&budget, "desiredHealthy") else { continue };
        if let Some(healthy) = count(&budget, "currentHealthy").filter(|healthy| *healthy < wanted) {
            let name = budget.name();
            finding.fact(format!("PodDisruptionBudget {name} wants {wanted} healthy Pods, {healthy} are"));
        }
        let is_newest = budget.at(&["metadata", "generation"]).and_then(Value::as_i64);
        let is_newest =
            is_newest.is_none_or(|generation| count(&budget, "observedGeneration") == Some(generation));
        let available = count(deployment, "availableReplicas").unwrap_or(0);
        let updated = count(deployment, "updatedReplicas").unwrap_or(0);
        kept.push(is_newest && wanted > 0 && available.min(updated) >= wanted);
    }
    if case.rules.options.pdb == Budgets::Sufficient
        && finding.status() == Status::InProgress
        && !kept.is_empty()
        && kept.iter().all(|kept| *kept)
    {
        finding.turn(
            Status::Current,
            "",
            "as many Pods are available as the disruption budget wants",
            "evidence/budget",
        );
    }
}
