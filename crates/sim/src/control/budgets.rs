//! PodDisruptionBudgets: their status, and the refusal of evictions. The rules are those of Kubernetes'
//! `pkg/controller/disruption`.

use std::sync::Arc;

use serde_json::{Value, json};
use taffrail_object::LabelSelector;
use taffrail_object::kinds::plural;

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

/// Returns the number of Pods that should exist: the sum of `spec.replicas` of the distinct controllers of the selected
/// Pods (0 for one outside of the group `apps`), and one for each Pod without a controller.
fn expected(inner: &Inner, selected: &[&Value]) -> i64 {
    let mut owners: Vec<(String, String, String)> = Vec::new();
    let mut alone = 0;
    for pod in selected {
        let references = pod["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        let Some(owner) = references.into_iter().find(|owner| owner["controller"] == true) else {
            alone += 1;
            continue;
        };
        let namespace = text(&pod["metadata"]["namespace"]);
        let owner = (text(&owner["kind"]), namespace, text(&owner["name"]));
        if !owners.contains(&owner) {
            owners.push(owner);
        }
    }
    let wanted = owners.iter().map(|(kind, namespace, name)| {
        let plural = plural(kind).to_lowercase();
        let found = inner.target("apps", &plural, namespace, name).and_then(|target| inner.tree(&target));
        found.map_or(0, |owner| number(&owner, "/spec/replicas"))
    });
    alone + wanted.sum::<i64>()
}

fn write(inner: &Inner, budget: &Value, selected: &[&Value], healthy: i64) {
    let Ok(target) = inner.target_of(budget) else { return };
    let spec = &budget["spec"];
    let (expected, desired) = match (spec.get("maxUnavailable"), spec.get("minAvailable")) {
        (Some(most), _) => {
            let expected = expected(inner, selected);
            (expected, (expected - share(most, expected, true)).max(0))
        }
        (None, Some(least @ Value::String(_))) => {
            let expected = expected(inner, selected);
            (expected, share(least, expected, true))
        }
        (None, least) => {
            let least = least.and_then(Value::as_i64).unwrap_or(1);
            (i64::try_from(selected.len()).unwrap_or(i64::MAX), least)
        }
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
