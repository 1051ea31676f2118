//! kstatus: the status of an object from the object alone.
//!
//! The order of the rules, their reasons and messages are those of `Compute` in kstatus; the first rule that applies
//! decides. Numbers wrap where Go's do.

mod apiextensions;
mod apps;
mod batch;
mod core;
mod fields;

use fields::{Metadata, ObjectCondition, ObjectStatus};
use jiff::Timestamp;
use taffrail_object::Object;

use crate::costs::Costs;
use crate::verdict::{ComputeError, Verdict};

/// The variant of kstatus to follow where the two differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fork {
    /// `github.com/fluxcd/cli-utils`: a suspended Job is judged like any other.
    #[default]
    Flux,
    /// `sigs.k8s.io/cli-utils`: a suspended Job is Current once its condition `Suspended` is True.
    KubernetesSigs,
}

/// The object, and the context that the rule of its kind receives.
struct Subject<'o, 'a> {
    object: &'o Object<'a>,
    conditions: Vec<ObjectCondition<'a>>,
    now: Timestamp,
    /// Records the time at which the verdict changes without a change of the object; `None` to record nothing.
    costs: Option<&'o Costs>,
    fork: Fork,
}

impl Subject<'_, '_> {
    #[inline(always)]
    fn spec(&self, key: &str, default: i64) -> i64 {
        fields::count(self.object.section("spec"), key, default)
    }

    #[inline(always)]
    fn status(&self, key: &str, default: i64) -> i64 {
        fields::count(self.object.section("status"), key, default)
    }
}

/// A function that computes the verdict on an object of one kind.
type KindRule = fn(&Subject<'_, '_>) -> Result<Verdict, ComputeError>;

/// The kinds for which kstatus has rules, by group and kind.
pub const BUILT_IN: [(&str, &str); 16] = [
    ("", "ConfigMap"),
    ("", "PersistentVolumeClaim"),
    ("", "Pod"),
    ("", "Secret"),
    ("", "Service"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apps", "DaemonSet"),
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("batch", "CronJob"),
    ("batch", "Job"),
    ("extensions", "DaemonSet"),
    ("extensions", "Deployment"),
    ("extensions", "ReplicaSet"),
    ("policy", "PodDisruptionBudget"),
];

/// Returns the rule for the kind of `object`, independent of the version; `None` if kstatus has none.
fn rule_for(object: &Object<'_>) -> Option<KindRule> {
    Some(match (object.group(), object.kind()) {
        ("", "Service") => core::service,
        ("", "Pod") => core::pod,
        ("", "Secret") => |_| Ok(always_ready("builtin/Secret")),
        ("", "ConfigMap") => |_| Ok(always_ready("builtin/ConfigMap")),
        ("", "PersistentVolumeClaim") => core::persistent_volume_claim,
        ("apps", "StatefulSet") => apps::stateful_set,
        ("apps" | "extensions", "DaemonSet") => apps::daemon_set,
        ("apps" | "extensions", "Deployment") => apps::deployment,
        ("apps" | "extensions", "ReplicaSet") => apps::replica_set,
        ("policy", "PodDisruptionBudget") => |_| {
            Ok(Verdict::current(
                "AllowedDisruptions has been computed.",
                "builtin/policy/PodDisruptionBudget",
            ))
        },
        ("batch", "CronJob") => |_| Ok(always_ready("builtin/batch/CronJob")),
        ("batch", "Job") => batch::job,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => apiextensions::custom_resource_definition,
        _ => return None,
    })
}

fn always_ready(rule: &'static str) -> Verdict {
    Verdict::current("Resource is always ready", rule)
}

/// Computes the status of `object` as the variant `fork` of kstatus does; returns an error if the object does not have
/// the structure of its kind. Records in `costs` the time at which the verdict changes by itself.
pub(crate) fn compute(
    object: &Object<'_>,
    now: Timestamp,
    costs: Option<&Costs>,
    fork: Fork,
) -> Result<Verdict, ComputeError> {
    let metadata = Metadata::of(object)?;
    if metadata.is_deleted()? {
        return Ok(terminating());
    }
    let generation = metadata.generation()?;
    let status = ObjectStatus::of(object)?;
    // InProgress while the controller has not observed the newest generation; both numbers must exist.
    if let Some(generation) = generation
        && let Some(observed) = status.observed_generation()?
        && generation != observed
    {
        return Ok(not_observed(object.kind(), generation, observed));
    }
    let conditions = status.conditions()?;
    for condition in &conditions {
        if condition.is("Reconciling", "True") {
            return Ok(Verdict::in_progress(condition.reason(), condition.message(), "generic/conditions"));
        }
        if condition.is("Stalled", "True") {
            return Ok(Verdict::failed(condition.reason(), condition.message(), "generic/conditions"));
        }
    }
    if let Some(rule) = rule_for(object) {
        return rule(&Subject { object, conditions, now, costs, fork });
    }
    for condition in conditions.iter().filter(|condition| condition.is_type("Ready")) {
        if condition.has_status("True") {
            return Ok(Verdict::current("Resource is Ready", "generic/ready"));
        }
        if condition.has_status("False") || condition.has_status("Unknown") {
            return Ok(Verdict::in_progress(condition.reason(), condition.message(), "generic/ready"));
        }
    }
    Ok(Verdict::current("Resource is current", "fallback"))
}

pub(crate) fn terminating() -> Verdict {
    Verdict::new(crate::Status::Terminating, "Resource scheduled for deletion", "generic/deletion")
}

pub(crate) fn not_observed(kind: &str, generation: i64, observed: i64) -> Verdict {
    let message = format!("{kind} generation is {generation}, but latest observed generation is {observed}");
    Verdict::in_progress("LatestGenerationNotObserved", message, "generic/generation")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_kind_that_is_listed_has_a_rule() {
        for (group, kind) in BUILT_IN {
            let slash = if group.is_empty() { "" } else { "/" };
            let object = json!({"apiVersion": format!("{group}{slash}v1"), "kind": kind});
            assert!(rule_for(&Object::new((&object).into()).unwrap()).is_some(), "{group} {kind}");
        }
    }
}
