//! DaemonSets: the rules of Kubernetes' `pkg/controller/daemon` that are visible to a user who applies, restarts or
//! deletes one.

use std::sync::Arc;

use serde_json::{Value, json};
use taffrail_object::LabelSelector;

use super::pods::{self, is_ending, is_finished, is_ready};
use super::rollout::share;
use super::{all, change, is_scripted, owned, revisions, soon, text};
use crate::behaviour::Behaviour;
use crate::selector::is_selected;
use crate::state::Inner;
use crate::task::Task;

const BY: &str = "daemonset-controller";
const REVISION: &str = "controller-revision-hash";

/// Plans the reconciliation of all DaemonSets of the cluster in 10 ms, because a node changed.
pub(super) fn nodes_changed(inner: &Inner) {
    for set in all(inner, "apps", "daemonsets", "") {
        let metadata = &set["metadata"];
        let task = Task::DaemonSet(text(&metadata["namespace"]), text(&metadata["name"]));
        soon(inner, task, std::time::Duration::from_millis(10));
    }
}

/// Reconciles a DaemonSet, unless it is scripted or being deleted: creates and deletes its Pods on the nodes, and
/// writes its status.
pub(super) fn set(inner: &Arc<Inner>, namespace: &str, name: &str) {
    let Some(target) = inner.target("apps", "daemonsets", namespace, name) else { return };
    let Some(set) = inner.tree(&target) else { return };
    let on = inner.does.on(Behaviour::DaemonSets);
    if is_ending(&set) || is_scripted(&set) || !set["spec"]["template"].is_object() || !on {
        return;
    }
    let Some(revisions) = revisions::keep(inner, &set, &[]) else { return };
    let hash = text(&revisions.newest["metadata"]["labels"][REVISION]);
    let uid = text(&set["metadata"]["uid"]);
    let template = &set["spec"]["template"];
    let wanted: Vec<String> = all(inner, "", "nodes", "")
        .iter()
        .filter(|node| fits(node, template))
        .map(|node| text(&node["metadata"]["name"]))
        .collect();
    let mut found = owned(inner, "", "pods", namespace, &uid);
    let node_of = |pod: &Value| text(&pod["spec"]["nodeName"]);
    for pod in found.iter().filter(|pod| !is_ending(pod)) {
        if is_finished(pod) || !wanted.contains(&node_of(pod)) {
            pods::end(inner, &set, BY, pod);
        }
    }
    for node in &wanted {
        if !found.iter().any(|pod| node_of(pod) == *node) {
            pods::start(inner, &set, BY, pod(inner, &set, &hash, node));
        }
    }
    found = owned(inner, "", "pods", namespace, &uid);
    if set["spec"]["updateStrategy"]["type"] != "OnDelete" {
        let total = i64::try_from(wanted.len()).unwrap_or(i64::MAX);
        let allowed = share(&set["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"], total, true);
        let missing = found.iter().filter(|pod| is_ending(pod) || !is_ready(pod)).count();
        let mut spare = allowed.max(1) - i64::try_from(missing).unwrap_or(i64::MAX);
        let mut old: Vec<&Value> = found
            .iter()
            .filter(|pod| !is_ending(pod) && pod["metadata"]["labels"][REVISION] != *hash)
            .collect();
        // Pods that are not ready are replaced without counting as unavailable.
        old.sort_by_key(|pod| is_ready(pod));
        for pod in old {
            if is_ready(pod) {
                spare -= 1;
                if spare < 0 {
                    break;
                }
            }
            pods::end(inner, &set, BY, pod);
        }
    }
    found = owned(inner, "", "pods", namespace, &uid);
    let on_its_node = |pod: &Value| !is_ending(pod) && wanted.contains(&node_of(pod));
    let count = |test: &dyn Fn(&Value) -> bool| found.iter().filter(|pod| test(pod)).count();
    let scheduled = count(&on_its_node);
    let ready = count(&|pod| on_its_node(pod) && is_ready(pod));
    let updated = count(&|pod| on_its_node(pod) && pod["metadata"]["labels"][REVISION] == *hash);
    let misplaced = count(&|pod| !is_ending(pod) && !wanted.contains(&node_of(pod)));
    change(inner, &target, |current| {
        let mut status = json!({
            "observedGeneration": set["metadata"]["generation"], "currentNumberScheduled": scheduled,
            "desiredNumberScheduled": wanted.len(), "numberMisscheduled": misplaced, "numberReady": ready,
        });
        for (key, value) in [
            ("updatedNumberScheduled", updated),
            ("numberAvailable", ready),
            ("numberUnavailable", wanted.len().saturating_sub(ready)),
        ] {
            if value > 0 {
                status[key] = json!(value);
            }
        }
        if let Some(members) = current.as_object_mut() {
            members.insert("status".to_owned(), status);
        }
    });
}

/// Returns true if a DaemonSet with this Pod template should run on a node: the node has the selected labels, and the
/// Pods tolerate its taints (all of `node.kubernetes.io/` and all with the effect `PreferNoSchedule` are tolerated).
fn fits(node: &Value, template: &Value) -> bool {
    let wanted = LabelSelector::of_labels(template.pointer("/spec/nodeSelector").map(Into::into));
    let borne = |taint: &Value| {
        let own = template["spec"]["tolerations"].as_array().into_iter().flatten();
        taint["effect"] == "PreferNoSchedule"
            || text(&taint["key"]).starts_with("node.kubernetes.io/")
            || own.into_iter().any(|one| {
                let all = one["operator"] == "Exists" && one.get("key").is_none();
                let same = one["operator"] == "Exists" || one["value"] == taint["value"];
                all || one["key"] == taint["key"] && same
            })
    };
    is_selected(node, &wanted) && node["spec"]["taints"].as_array().into_iter().flatten().all(borne)
}

fn pod(inner: &Inner, set: &Value, hash: &str, node: &str) -> Value {
    let name = format!("{}-{}", text(&set["metadata"]["name"]), inner.letters(5));
    let mut pod = pods::pod(set, &set["spec"]["template"], &name);
    if let Some(labels) = pod["metadata"]["labels"].as_object_mut() {
        labels.insert(REVISION.to_owned(), json!(hash));
    }
    let here = json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]});
    if pod["spec"].get("affinity").is_none() {
        pod["spec"]["affinity"] = json!({
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [here]}},
        });
    }
    let mut tolerations = pod["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
    for (key, effect) in [
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    ] {
        let key = format!("node.kubernetes.io/{key}");
        tolerations.push(json!({"key": key, "operator": "Exists", "effect": effect}));
    }
    pod["spec"]["tolerations"] = json!(tolerations);
    // Only this node is possible, so the scheduler is not needed.
    pod["spec"]["nodeName"] = json!(node);
    let now = crate::clock::stamp(inner.fleet.clock.now());
    pod["status"] = json!({
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now}],
    });
    pod
}
