//! PodDisruptionBudgets: their status, and the refusal of evictions. The rules are those of Kubernetes'
//! `pkg/controller/disruption`.

use std::sync::Arc;

use serde_json::{Value, json};
use taffrail_object::LabelSelector;

use super::pods::{is_ending, is_finished, is_ready};
use super::rollout::{number, share};
use super::{all, change, is_scripted, set_condition, text};
use crate::behaviour::Behaviour;
use crate::error::{Answered, ApiError};
use crate::selector::is_selected;
use crate::state::Inner;
use crate::target::Target;

/// Updates the status of all budgets in a namespace, except scripted ones and those that are being deleted.
pub(super) fn reconcile(inner: &Arc<Inner>, namespace: &str) {
    if !inner.does.on(Behaviour::DisruptionBudgets) {
        return;
    }
    let budgets = all(inner, "policy", "poddisruptionbudgets", namespace);
    if budgets.is_empty() {
        return;
    }
    let pods = all(inner, "", "pods", namespace);
    for budget in budgets.iter().filter(|budget| !is_scripted(budget) && !is_ending(budget)) {
        let selector = LabelSelector::of_object(budget.pointer("/spec/selector").map(Into::into));
        let selected: Vec<&Value> =
            pods.iter().filter(|pod| !is_finished(pod) && is_selected(pod, &selector)).collect();
        let healthy = selected.iter().filter(|pod| is_ready(pod) && !is_ending(pod)).count();
        write(inner, budget, &selected, i64::try_from(healthy).unwrap_or(i64::MAX));
    }
}

/// Returns the number of Pods that should exist: the sum of the replicas of the distinct controllers of the selected
/// Pods (0 for one that does not exist), and one for each Pod without a controller.
///
/// # Errors
/// If a controller is of a kind without a scale subresource, such as Job.
fn expected(inner: &Inner, selected: &[&Value]) -> Result<i64, String> {
    let mut owners: Vec<Value> = Vec::new();
    let mut alone = 0;
    for pod in selected {
        let references = pod["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        let Some(owner) = references.into_iter().find(|owner| owner["controller"] == true) else {
            alone += 1;
            continue;
        };
        let metadata = json!({"namespace": pod["metadata"]["namespace"], "name": owner["name"]});
        let owner = json!({"apiVersion": owner["apiVersion"], "kind": owner["kind"], "metadata": metadata});
        if !owners.contains(&owner) {
            owners.push(owner);
        }
    }
    let mut wanted = alone;
    for owner in &owners {
        // A kind that is not served has no objects.
        let Ok(target) = inner.target_of(owner) else { continue };
        let Some(scale) = target.described().and_then(|version| version.scale.as_ref()) else {
            return Err(format!("{} does not implement the scale subresource", target.resource.full_name()));
        };
        let pointer: String = scale.spec_replicas.iter().map(|key| format!("/{key}")).collect();
        wanted += inner.tree(&target).map_or(0, |owner| number(&owner, &pointer));
    }
    Ok(wanted)
}

fn write(inner: &Inner, budget: &Value, selected: &[&Value], healthy: i64) {
    let Ok(target) = inner.target_of(budget) else { return };
    let spec = &budget["spec"];
    let counted = match (spec.get("maxUnavailable"), spec.get("minAvailable")) {
        (Some(most), _) => expected(inner, selected)
            .map(|expected| (expected, (expected - share(most, expected, true)).max(0))),
        (None, Some(least @ Value::String(_))) => {
            expected(inner, selected).map(|expected| (expected, share(least, expected, true)))
        }
        (None, least) => {
            let least = least.and_then(Value::as_i64).unwrap_or(1);
            Ok((i64::try_from(selected.len()).unwrap_or(i64::MAX), least))
        }
    };
    let (expected, desired) = match counted {
        Ok(counted) => counted,
        Err(why) => return write_failure(inner, &target, &why),
    };
    let allowed = if expected > 0 { (healthy - desired).max(0) } else { 0 };
    let generation = &budget["metadata"]["generation"];
    change(inner, &target, |budget| {
        let mut status = json!({
            "currentHealthy": healthy, "desiredHealthy": desired, "disruptionsAllowed": allowed, "expectedPods": expected,
            "observedGeneration": generation,
        });
        if let Some(conditions) = budget["status"].get("conditions") {
            status["conditions"] = conditions.clone();
        }
        let (value, reason) =
            if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
        let why = json!({"reason": reason, "message": "", "observedGeneration": generation});
        set_condition(inner, &mut status, "DisruptionAllowed", value, &why);
        if let Some(members) = budget.as_object_mut() {
            members.insert("status".to_owned(), status);
        }
    });
}

/// Writes that the Pods of a budget could not be counted because of `why`: it allows no disruption.
fn write_failure(inner: &Inner, target: &Target, why: &str) {
    change(inner, target, |budget| {
        let mut status = json!({"currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0});
        for (key, value) in budget["status"].as_object().into_iter().flatten() {
            status[key] = value.clone();
        }
        status["disruptionsAllowed"] = json!(0);
        let mut rest = json!({"reason": "SyncFailed", "message": why});
        if let Some(observed) = status.get("observedGeneration") {
            rest["observedGeneration"] = observed.clone();
        }
        set_condition(inner, &mut status, "DisruptionAllowed", "False", &rest);
        budget["status"] = status;
    });
}

impl Inner {
    /// Fails with 429 if a PodDisruptionBudget does not allow the eviction of a ready Pod, or its controller has not
    /// processed it yet, and with 404 if the Pod does not exist. Pods that are pending, finished or being deleted may
    /// always be evicted.
    pub(crate) fn check_budgets(&self, target: &Target) -> Answered<()> {
        let pod = self.tree(target).ok_or_else(|| ApiError::not_found(&target.resource, &target.name))?;
        let counts = !is_finished(&pod) && !is_ending(&pod) && pod["status"]["phase"] != "Pending";
        if !counts || !self.does.on(Behaviour::DisruptionBudgets) {
            return Ok(());
        }
        for budget in all(self, "policy", "poddisruptionbudgets", &target.namespace) {
            let selector = LabelSelector::of_object(budget.pointer("/spec/selector").map(Into::into));
            if !is_selected(&pod, &selector) {
                continue;
            }
            let (name, status) = (text(&budget["metadata"]["name"]), &budget["status"]);
            if status["observedGeneration"] != budget["metadata"]["generation"] {
                return Err(ApiError::disrupts(&name, "is still being processed by the server."));
            }
            if number(&budget, "/status/disruptionsAllowed") < 1 && is_ready(&pod) {
                let (desired, healthy) =
                    (number(&budget, "/status/desiredHealthy"), number(&budget, "/status/currentHealthy"));
                let why = format!("needs {desired} healthy pods and has {healthy} currently");
                return Err(ApiError::disrupts(&name, &why));
            }
        }
        Ok(())
    }
}
