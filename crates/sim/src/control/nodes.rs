//! Nodes that become unreachable and return, and the Leases of kubelets and leaders: the node lifecycle and taint
//! eviction of kube-controller-manager.
//!
//! The annotation `taffrail.dev/simulate: lost` makes a node's kubelet unreachable.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::events::{tell, warn};
use super::{all, change, contains, create, soon, text};
use crate::clock::stamp;
use crate::state::Inner;
use crate::target::Target;
use crate::task::Task;
use crate::write::Deletion;

/// The interval at which kubelets and leaders renew their Leases.
const LEASE_RENEWAL_INTERVAL: Duration = Duration::from_secs(10);
/// The time for which Pods stay bound to a lost node, in seconds, unless they set their own.
const DEFAULT_TOLERATION_SECONDS: u64 = 300;
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// Returns true if a node simulates that its kubelet is unreachable.
fn is_lost(node: &Value) -> bool {
    node["metadata"]["annotations"]["taffrail.dev/simulate"] == "lost"
}

/// Returns true if a Pod is on a node whose kubelet is unreachable.
pub(super) fn is_on_lost(inner: &Inner, pod: &Value) -> bool {
    let Some(name) = pod["spec"]["nodeName"].as_str() else { return false };
    let Some(target) = inner.target("", "nodes", "", name) else { return false };
    let node = inner.store().get(target.shelf, &target.key()).cloned();
    // Every step of every Pod calls this, so the text is searched before it is parsed.
    node.is_some_and(|node| {
        contains(node.head(), "taffrail.dev/simulate")
            && is_lost(&node.tree(&target.api_version(), &target.resource.kind))
    })
}

/// Updates a node and its Pods after its kubelet became unreachable or returned.
pub(super) fn reconcile(inner: &Arc<Inner>, name: &str) {
    let Some(target) = inner.target("", "nodes", "", name) else { return };
    let Some(node) = inner.tree(&target) else { return };
    let lost = is_lost(&node);
    let known = ready_condition(&node).is_some_and(|ready| ready["status"] == "Unknown");
    if lost == known {
        return;
    }
    let now = stamp(inner.fleet.clock.now());
    change(inner, &target, |node| {
        for condition in node["status"]["conditions"].as_array_mut().into_iter().flatten() {
            let kind = text(&condition["type"]);
            let (status, reason, message) = match (lost, kind.as_str()) {
                (true, _) => ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status."),
                (false, "Ready") => ("True", "KubeletReady", "kubelet is posting ready status"),
                (false, "MemoryPressure") => {
                    ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available")
                }
                (false, "DiskPressure") => {
                    ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure")
                }
                (false, _) => ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
            };
            condition["status"] = json!(status);
            condition["reason"] = json!(reason);
            condition["message"] = json!(message);
            condition["lastTransitionTime"] = json!(now);
            if !lost {
                condition["lastHeartbeatTime"] = json!(now);
            }
        }
        let mut taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
        taints.retain(|taint| taint["key"] != UNREACHABLE);
        if lost {
            for effect in ["NoSchedule", "NoExecute"] {
                taints.push(json!({"key": UNREACHABLE, "effect": effect, "timeAdded": now}));
            }
        }
        match node["spec"].as_object_mut() {
            Some(spec) if taints.is_empty() => drop(spec.remove("taints")),
            Some(spec) => drop(spec.insert("taints".to_owned(), json!(taints))),
            None => {}
        }
    });
    let (reason, message) = if lost {
        ("NodeNotReady", format!("Node {name} status is now: NodeNotReady"))
    } else {
        ("NodeReady", format!("Node {name} status is now: NodeReady"))
    };
    tell(inner, &node, "node-controller", reason, &message);
    for pod in all(inner, "", "pods", "").iter().filter(|pod| pod["spec"]["nodeName"] == name) {
        let (namespace, name) = (text(&pod["metadata"]["namespace"]), text(&pod["metadata"]["name"]));
        let Some(target) = inner.target("", "pods", &namespace, &name) else { continue };
        if lost {
            unheard(inner, &target, pod, &now);
        } else {
            heard(inner, &target, &now);
        }
    }
}

fn ready_condition(object: &Value) -> Option<&Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == "Ready")
}

fn set_ready(pod: &mut Value, status: &str, now: &str) {
    let conditions = pod["status"]["conditions"].as_array_mut().into_iter().flatten();
    for condition in conditions.filter(|one| one["type"] == "Ready" && one["status"] != status) {
        condition["status"] = json!(status);
        condition["lastTransitionTime"] = json!(now);
    }
}

/// Marks a Pod on an unreachable node as not ready, and plans its eviction after the time for which it tolerates that,
/// unless it does so forever.
fn unheard(inner: &Arc<Inner>, target: &Target, pod: &Value, now: &str) {
    if ready_condition(pod).is_some_and(|ready| ready["status"] == "True") {
        change(inner, target, |pod| set_ready(pod, "False", now));
        warn(inner, pod, "node-controller", "NodeNotReady", "Node is not ready");
    }
    let tolerations = pod["spec"]["tolerations"].as_array().into_iter().flatten();
    let own = tolerations
        .filter(|one| one["key"] == UNREACHABLE && one["effect"] != "NoSchedule")
        .map(|one| one["tolerationSeconds"].as_u64())
        .next();
    // A toleration without a time lasts forever.
    if let Some(seconds) = own.unwrap_or(Some(DEFAULT_TOLERATION_SECONDS)) {
        let job = Task::Eviction(target.namespace.clone(), target.name.clone());
        soon(inner, job, Duration::from_secs(seconds));
    }
}

/// Makes a Pod whose containers are ready Ready again after its kubelet returned, unless it is being deleted, and plans
/// its next step in 200 ms, which ends it if it is.
fn heard(inner: &Arc<Inner>, target: &Target, now: &str) {
    change(inner, target, |pod| {
        let statuses = pod["status"]["containerStatuses"].as_array();
        let runs = statuses.is_some_and(|all| all.iter().all(|one| one["ready"] == true));
        if runs && pod["metadata"].get("deletionTimestamp").is_none() {
            set_ready(pod, "True", now);
        }
    });
    soon(inner, Task::Pod(target.namespace.clone(), target.name.clone()), Duration::from_millis(200));
}

/// Deletes a Pod if it is still on an unreachable node; runs when the time for which it tolerates that is over.
pub(super) fn evict(inner: &Arc<Inner>, namespace: &str, name: &str) {
    let Some(target) = inner.target("", "pods", namespace, name) else { return };
    let Some(pod) = inner.tree(&target) else { return };
    if pod["metadata"].get("deletionTimestamp").is_some() || !is_on_lost(inner, &pod) {
        return;
    }
    let message = format!("Marking for deletion Pod {}", target.key());
    let by = "taint-eviction-controller";
    tell(inner, &pod, by, "TaintManagerEviction", &message);
    let _ = inner.delete(&target, &Deletion::default());
}

/// Deletes the Pods of a node that was deleted, without a grace period.
pub(super) fn gone(inner: &Arc<Inner>, name: &str) {
    for pod in all(inner, "", "pods", "").iter().filter(|pod| pod["spec"]["nodeName"] == name) {
        let (namespace, name) = (text(&pod["metadata"]["namespace"]), text(&pod["metadata"]["name"]));
        if let Some(target) = inner.target("", "pods", &namespace, &name) {
            let _ = inner.delete(&target, &Deletion { grace: Some(0), ..Deletion::default() });
        }
    }
}

/// Renews, or creates, the Leases of the controller manager, the scheduler and all nodes that are not lost, and plans
/// the next renewal.
pub(super) fn renew_leases(inner: &Arc<Inner>) {
    let now = inner.fleet.clock.now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
    let renew = |namespace: &str, name: &str, holder: &str, seconds: u64| {
        let target = inner.target("coordination.k8s.io", "leases", namespace, name);
        match target.filter(|target| inner.tree(target).is_some()) {
            Some(target) => change(inner, &target, |lease| lease["spec"]["renewTime"] = json!(now)),
            None => create(
                inner,
                json!({
                    "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                    "metadata": {"name": name, "namespace": namespace},
                    "spec": {
                        "holderIdentity": holder, "leaseDurationSeconds": seconds, "acquireTime": now,
                        "leaseTransitions": 0, "renewTime": now,
                    },
                }),
            ),
        }
    };
    for leader in ["kube-controller-manager", "kube-scheduler"] {
        renew("kube-system", leader, &format!("control-plane-1_{leader}"), 15);
    }
    for node in all(inner, "", "nodes", "").iter().filter(|node| !is_lost(node)) {
        let name = text(&node["metadata"]["name"]);
        renew("kube-node-lease", &name, &name, 40);
    }
    soon(inner, Task::RenewLeases, LEASE_RENEWAL_INTERVAL);
}
