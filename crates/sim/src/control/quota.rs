//! ResourceQuotas for the number of Pods: `pods` and `count/pods`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{all, change, soon, text};
use crate::state::Inner;
use crate::task::Task;

const BOUNDS: [&str; 2] = ["pods", "count/pods"];

/// Returns the number of Pods that count against the limit `bound`; finished Pods count only for `count/pods`.
fn used(bound: &str, pods: &[Value]) -> usize {
    let ended = |pod: &&Value| matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    match bound {
        "pods" => pods.iter().filter(|pod| !ended(pod)).count(),
        _ => pods.len(),
    }
}

/// Lists the limits for the number of Pods in a ResourceQuota: each name (`pods` or `count/pods`) and its value.
fn bounds(quota: &Value) -> impl Iterator<Item = (&'static str, usize)> + '_ {
    let hard = |bound: &str| match &quota["spec"]["hard"][bound] {
        Value::String(text) => text.parse().ok(),
        number => number.as_u64().and_then(|number| usize::try_from(number).ok()),
    };
    BOUNDS.into_iter().filter_map(move |bound| Some((bound, hard(bound)?)))
}

/// Returns the error message if a quota of the namespace forbids another Pod called `pod`; `None` if it may be
/// created.
pub(super) fn refusal(inner: &Inner, namespace: &str, pod: &str) -> Option<String> {
    let quotas = all(inner, "", "resourcequotas", namespace);
    if quotas.is_empty() {
        return None;
    }
    let pods = all(inner, "", "pods", namespace);
    quotas.iter().find_map(|quota| {
        let exceeded = bounds(quota).find(|(bound, most)| used(bound, &pods) >= *most);
        let (bound, most) = exceeded?;
        let name = text(&quota["metadata"]["name"]);
        Some(format!(
            "pods {pod:?} is forbidden: exceeded quota: {name}, requested: {bound}=1, used: {bound}={}, limited: {bound}={most}",
            used(bound, &pods)
        ))
    })
}

/// Writes the used numbers into the status of all quotas in a namespace.
pub(super) fn reconcile(inner: &Arc<Inner>, namespace: &str) {
    let quotas = all(inner, "", "resourcequotas", namespace);
    if quotas.is_empty() {
        return;
    }
    let pods = all(inner, "", "pods", namespace);
    for quota in &quotas {
        let name = text(&quota["metadata"]["name"]);
        let Some(target) = inner.target("", "resourcequotas", namespace, &name) else { continue };
        change(inner, &target, |quota| {
            let counts = bounds(quota).map(|(bound, _)| (bound, used(bound, &pods).to_string()));
            let used: serde_json::Map<String, Value> =
                counts.map(|(bound, used)| (bound.to_owned(), json!(used))).collect();
            quota["status"] = json!({"hard": quota["spec"]["hard"], "used": used});
        });
    }
}

/// Plans another try in 500 ms for each ReplicaSet of a namespace that has fewer Pods than it wants, because a quota
/// may have room now.
pub(super) fn changed(inner: &Arc<Inner>, namespace: &str) {
    for set in all(inner, "apps", "replicasets", namespace) {
        let wanted = set["spec"]["replicas"].as_i64().unwrap_or_default();
        if wanted > set["status"]["replicas"].as_i64().unwrap_or_default() {
            let job = Task::ReplicaSet(namespace.to_owned(), text(&set["metadata"]["name"]));
            soon(inner, job, Duration::from_millis(500));
        }
    }
}
