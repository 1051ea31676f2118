//! ResourceQuotas, as far as they bound how many Pods a namespace may have: `pods` and `count/pods`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Task, all, change, soon, text};
use crate::cluster::Inner;

const BOUNDS: [&str; 2] = ["pods", "count/pods"];

/// How many Pods count against a bound: those that have ended count for `count/pods` alone.
fn used(bound: &str, pods: &[Value]) -> usize {
    let ended = |pod: &&Value| matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    match bound {
        "pods" => pods.iter().filter(|pod| !ended(pod)).count(),
        _ => pods.len(),
    }
}

/// The bounds of a quota, as they are written.
fn bounds(quota: &Value) -> impl Iterator<Item = (&'static str, usize)> + '_ {
    let hard = |bound: &str| match &quota["spec"]["hard"][bound] {
        Value::String(text) => text.parse().ok(),
        number => number.as_u64().and_then(|number| usize::try_from(number).ok()),
    };
    BOUNDS.into_iter().filter_map(move |bound| Some((bound, hard(bound)?)))
}

/// Why a namespace may have no further Pod.
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

/// Writes into the quotas of a namespace how much is used.
pub(super) fn look(inner: &Arc<Inner>, namespace: &str) {
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

/// Lets those who were refused try again: there may be room now.
pub(super) fn changed(inner: &Arc<Inner>, namespace: &str) {
    for set in all(inner, "apps", "replicasets", namespace) {
        let wanted = set["spec"]["replicas"].as_i64().unwrap_or_default();
        if wanted > set["status"]["replicas"].as_i64().unwrap_or_default() {
            let job = Task::ReplicaSet(namespace.to_owned(), text(&set["metadata"]["name"]));
            soon(inner, job, Duration::from_millis(500));
        }
    }
}
