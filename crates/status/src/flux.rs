//! Flux' own objects: Kustomization, HelmRelease and the sources.
//!
//! While a failure is retried, Flux reports `Ready=False` with the reason, and also `Reconciling=True` with
//! `ProgressingWithRetry`. Here `Ready` decides.

use taffrail_object::Object;
use taffrail_object::json::Value;

use crate::compute::{not_observed, terminating};
use crate::verdict::Verdict;

const RULE: &str = "builtin/toolkit.fluxcd.io";

/// Reasons of `Ready=False` that mean waiting for another object or a newer attempt.
const WAITING: [&str; 3] = ["DependencyNotReady", "Progressing", "HealthCheckCanceled"];

/// Kinds whose controller always writes `Ready`; a HelmRepository of OCI charts is the exception.
const RECONCILED: [&str; 8] = [
    "Kustomization",
    "HelmRelease",
    "GitRepository",
    "OCIRepository",
    "Bucket",
    "HelmChart",
    "HelmRepository",
    "ExternalArtifact",
];

/// Returns the verdict on an object in an API group of Flux; `None`, so that kstatus' generic rules decide, for other
/// groups. Unless it is being deleted or stalled, also `None` for a status of `Ready` other than True, False and
/// Unknown, and for an object without `Ready` that is suspended or whose kind is not in [`RECONCILED`]; a
/// HelmRepository of OCI charts without `Ready` is Current.
pub(crate) fn judge(object: &Object<'_>) -> Option<Verdict> {
    let group = object.group();
    if group != "toolkit.fluxcd.io" && !group.ends_with(".toolkit.fluxcd.io") {
        return None;
    }
    if !object.text(&["metadata", "deletionTimestamp"]).is_empty() {
        return Some(terminating());
    }
    let suspended = object.at(&["spec", "suspend"]).and_then(Value::as_bool) == Some(true);
    let is_true = |condition: &Value<'_>| condition.get("status").is_some_and(|status| status.is_str("True"));
    let text = |condition: Value<'_>, key: &str| {
        condition.get(key).and_then(Value::as_str).unwrap_or_default().into_owned()
    };
    let stalled = object.condition("Stalled").filter(is_true);
    let failed = |condition| Verdict::failed(text(condition, "reason"), text(condition, "message"), RULE);
    let Some(ready) = object.condition("Ready") else {
        // No controller reconciles it, and the status that the API gives to a new one stays.
        if object.kind() == "HelmRepository" && object.text(&["spec", "type"]) == "oci" {
            return Some(Verdict::current("Resource is current", RULE));
        }
        if let Some(stalled) = stalled {
            return Some(failed(stalled));
        }
        let waits = RECONCILED.contains(&object.kind()) && !suspended;
        return waits.then(|| Verdict::in_progress("NotReconciled", "waiting to be reconciled", RULE));
    };
    let (reason, message) = (text(ready, "reason"), text(ready, "message"));

    // Suspending increments the generation, which no controller then observes: the last verdict stands.
    let generation = object.at(&["metadata", "generation"]).and_then(Value::as_i64);
    let observed = ready.get("observedGeneration").and_then(Value::as_i64);
    if let (Some(generation), Some(observed), false) = (generation, observed, suspended)
        && generation != observed
    {
        return Some(Verdict { rule: RULE.into(), ..not_observed(object.kind(), generation, observed) });
    }
    let status = text(ready, "status");
    if let Some(stalled) = stalled {
        // A stalled object waits for nothing; Ready has the reason of the failure.
        return Some(failed(if status == "False" { ready } else { stalled }));
    }
    match &*status {
        "True" => {
            if let Some(reconciling) = object.condition("Reconciling").filter(is_true).filter(|_| !suspended)
            {
                let (reason, message) = (text(reconciling, "reason"), text(reconciling, "message"));
                return Some(Verdict::in_progress(reason, message, RULE));
            }
            // The last health check of the applied objects failed, although the rest succeeded.
            let unhealthy = object.condition("Healthy").filter(|it| text(*it, "status") == "False");
            let unhealthy = unhealthy.filter(|it| {
                let seen = it.get("observedGeneration").and_then(Value::as_i64);
                !WAITING.contains(&text(*it, "reason").as_str()) && (seen.is_none() || seen == generation)
            });
            if let Some(unhealthy) = unhealthy.filter(|_| object.kind() == "Kustomization") {
                return Some(failed(unhealthy));
            }
            Some(Verdict::current(message, RULE))
        }
        "False" if !WAITING.contains(&reason.as_str()) => Some(Verdict::failed(reason, message, RULE)),
        "False" | "Unknown" => Some(Verdict::in_progress(reason, message, RULE)),
        _ => None,
    }
}
