//! The controllers of Deployments and ReplicaSets: the rules of Kubernetes' `pkg/controller/deployment` and
//! `pkg/controller/replicaset` that a user who scales, applies, deletes or rolls back can see.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::events::{tell, warn};
use super::pods::{self, is_ending, is_finished, is_ready};
use super::{change, controller, create, is_scripted, owned, quota, set_condition, soon, text};
use crate::clock::stamp;
use crate::state::Inner;
use crate::task::Task;

const REVISION: &str = "deployment.kubernetes.io/revision";
/// The type of the condition of a Deployment or ReplicaSet whose Pods are refused.
const REFUSAL: &str = "ReplicaFailure";
/// The time after which a ReplicaSet tries again to create Pods that were refused.
const REFUSAL_RETRY_DELAY: Duration = Duration::from_secs(15);
const HASH: &str = "pod-template-hash";

pub(super) fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
}

/// Returns the number that `value` states: a count, or a text such as `25%`, a percentage of `of`, rounded up if `up`,
/// else down. 0 for any other value.
pub(super) fn share(value: &Value, of: i64, up: bool) -> i64 {
    match value {
        Value::String(text) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or_default();
            let exact = percent.saturating_mul(of);
            if up { (exact + 99) / 100 } else { exact / 100 }
        }
        value => value.as_i64().unwrap_or_default(),
    }
}

fn revision(object: &Value) -> i64 {
    object["metadata"]["annotations"][REVISION]
        .as_str()
        .and_then(|text| text.parse().ok())
        .unwrap_or_default()
}

/// Returns the Pod template of a Deployment or ReplicaSet without the label `pod-template-hash`, to compare templates.
fn bare_template(object: &Value) -> Value {
    let mut template = object["spec"]["template"].clone();
    if let Some(metadata) = template.get_mut("metadata").and_then(Value::as_object_mut) {
        if let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) {
            labels.remove(HASH);
        }
        let none = |labels: &Value| labels.as_object().is_none_or(serde_json::Map::is_empty);
        if metadata.get("labels").is_some_and(none) {
            metadata.remove("labels");
        }
    }
    template
}

/// Returns a hash of a Pod template for names: ten letters and digits without vowels.
pub(super) fn hash_of(template: &Value) -> String {
    let bytes = template.to_string();
    let mut sum =
        bytes.bytes().fold(0x811c_9dc5_u32, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let letters = crate::admission::NAME_LETTERS;
    let mut hash = String::new();
    while hash.len() < 10 {
        hash.push(char::from(letters[sum as usize % letters.len()]));
        sum = sum.rotate_left(7).wrapping_mul(0x9e37_79b1).wrapping_add(17);
    }
    hash
}

/// Reconciles a Deployment, unless it is scripted or being deleted: creates and scales its ReplicaSets, and writes its
/// status.
pub(super) fn deployment(inner: &Arc<Inner>, namespace: &str, name: &str) {
    let Some(target) = inner.target("apps", "deployments", namespace, name) else { return };
    let Some(deployment) = inner.tree(&target) else { return };
    if deployment["metadata"].get("deletionTimestamp").is_some() || is_scripted(&deployment) {
        return;
    }
    // The specification was not validated.
    let spec = &deployment["spec"];
    if !spec["template"]["metadata"].is_object() || !spec["selector"].is_object() {
        return;
    }
    let uid = text(&deployment["metadata"]["uid"]);
    let mut sets = owned(inner, "apps", "replicasets", namespace, &uid);
    sets.sort_by_key(revision);
    let template = bare_template(&deployment);
    let wanted = number(&deployment, "/spec/replicas");
    let recreate = deployment["spec"]["strategy"]["type"] == "Recreate";
    let rolling = &deployment["spec"]["strategy"]["rollingUpdate"];
    let (mut surge, mut unavailable) =
        (share(&rolling["maxSurge"], wanted, true), share(&rolling["maxUnavailable"], wanted, false));
    if recreate {
        (surge, unavailable) = (0, wanted);
    } else if surge == 0 && unavailable == 0 {
        unavailable = 1;
    }
    let paused = deployment["spec"]["paused"] == true;
    let current = sets.iter().position(|set| bare_template(set) == template);
    let old: Vec<&Value> =
        sets.iter().enumerate().filter(|(at, _)| Some(*at) != current).map(|(_, set)| set).collect();
    let newest = sets.iter().map(revision).max().unwrap_or_default();
    match current.and_then(|at| sets.get(at)) {
        None if paused => {}
        None => {
            if recreate && old.iter().any(|set| number(set, "/status/replicas") > 0) {
                for set in &old {
                    scale(inner, &deployment, set, 0);
                }
            } else {
                let total: i64 = old.iter().map(|set| number(set, "/spec/replicas")).sum();
                let first = (wanted + surge - total).clamp(0, wanted);
                new_set(inner, &deployment, &template, newest + 1, first);
            }
        }
        Some(new) => {
            // After a rollback an old ReplicaSet becomes the newest again.
            let turn = if revision(new) < newest { newest + 1 } else { revision(new) };
            let set_target = inner.target("apps", "replicasets", namespace, &text(&new["metadata"]["name"]));
            if let Some(set_target) = set_target.filter(|_| turn != revision(new)) {
                change(inner, &set_target, |set| {
                    set["metadata"]["annotations"][REVISION] = json!(turn.to_string())
                });
            }
            change(inner, &target, |deployment| {
                if !deployment["metadata"]["annotations"].is_object() {
                    deployment["metadata"]["annotations"] = json!({});
                }
                deployment["metadata"]["annotations"][REVISION] = json!(turn.to_string());
            });
            if paused {
                if old.iter().all(|set| number(set, "/spec/replicas") == 0) {
                    scale(inner, &deployment, new, wanted);
                }
            } else {
                step(inner, &deployment, new, &old, wanted, surge, unavailable);
            }
        }
    }
    let mut sets = owned(inner, "apps", "replicasets", namespace, &uid);
    forget_old(inner, &deployment, &mut sets, &template);
    write_status(inner, &deployment, &sets, &template, wanted, unavailable);
}

/// Deletes the oldest ReplicaSets without Pods and with another template beyond the history limit of a Deployment, and
/// removes them from `sets`; does nothing without a limit.
fn forget_old(inner: &Arc<Inner>, deployment: &Value, sets: &mut Vec<Value>, template: &Value) {
    let Some(limit) = deployment["spec"]["revisionHistoryLimit"].as_u64() else { return };
    sets.sort_by_key(revision);
    let is_old = |set: &Value| {
        bare_template(set) != *template
            && number(set, "/spec/replicas") == 0
            && number(set, "/status/replicas") == 0
    };
    let old = sets.iter().filter(|set| is_old(set)).count();
    let mut surplus = old.saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
    sets.retain(|set| {
        if surplus == 0 || !is_old(set) {
            return true;
        }
        surplus -= 1;
        let (namespace, name) = (text(&set["metadata"]["namespace"]), text(&set["metadata"]["name"]));
        if let Some(target) = inner.target("apps", "replicasets", &namespace, &name) {
            inner.remove(&target);
        }
        false
    });
}

/// Does one step of a rolling update to `wanted` Pods: scales the ReplicaSet `new` up or, if nothing is to be added,
/// the ReplicaSets `old` down (and `new`, if it has too many), so that at most `surge` Pods more than wanted exist and
/// at most `unavailable` of the wanted ones are not available.
fn step(
    inner: &Arc<Inner>,
    deployment: &Value,
    new: &Value,
    old: &[&Value],
    wanted: i64,
    surge: i64,
    unavailable: i64,
) {
    let replicas = |set: &Value| number(set, "/spec/replicas");
    let total: i64 = replicas(new) + old.iter().map(|set| replicas(set)).sum::<i64>();
    if replicas(new) > wanted {
        scale(inner, deployment, new, wanted);
    } else if replicas(new) < wanted && total < wanted + surge {
        scale(inner, deployment, new, (replicas(new) + wanted + surge - total).min(wanted));
        return;
    }
    let available = |set: &Value| number(set, "/status/availableReplicas").min(replicas(set));
    let new_unavailable = (replicas(new) - available(new)).max(0);
    let mut may_go = total - (wanted - unavailable) - new_unavailable;
    // Unavailable Pods are removed first, then the oldest ReplicaSets are scaled down.
    let mut left: Vec<(usize, i64)> = old.iter().enumerate().map(|(at, set)| (at, replicas(set))).collect();
    for (at, count) in &mut left {
        let broken = *count - old.get(*at).map_or(0, |set| available(set));
        let less = broken.min(may_go).max(0);
        *count -= less;
        may_go -= less;
    }
    let mut spare: i64 =
        available(new) + old.iter().map(|set| available(set)).sum::<i64>() - (wanted - unavailable);
    for (_, count) in &mut left {
        let less = (*count).min(may_go).min(spare).max(0);
        *count -= less;
        may_go -= less;
        spare -= less;
    }
    for (at, count) in left {
        if let Some(set) = old.get(at).filter(|set| replicas(set) != count) {
            scale(inner, deployment, set, count);
        }
    }
}

fn new_set(inner: &Arc<Inner>, deployment: &Value, template: &Value, turn: i64, replicas: i64) {
    let hash = hash_of(template);
    let mut template = template.clone();
    let mut selector = deployment["spec"]["selector"].clone();
    for labels in [&mut template["metadata"]["labels"], &mut selector["matchLabels"]] {
        if !labels.is_object() {
            *labels = json!({});
        }
        if let Some(labels) = labels.as_object_mut() {
            labels.insert(HASH.to_owned(), json!(hash));
        }
    }
    let name = format!("{}-{hash}", text(&deployment["metadata"]["name"]));
    let wanted = number(deployment, "/spec/replicas");
    create(
        inner,
        json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {
                "name": name, "namespace": deployment["metadata"]["namespace"], "labels": template["metadata"]["labels"],
                "annotations": {
                    REVISION: turn.to_string(), "deployment.kubernetes.io/desired-replicas": wanted.to_string(),
                },
                "ownerReferences": controller("apps/v1", "Deployment", deployment),
            },
            "spec": {"replicas": replicas, "selector": selector, "template": template},
            "status": {"replicas": 0},
        }),
    );
    let message = format!("Scaled up replica set {name} from 0 to {replicas}");
    tell(inner, deployment, "deployment-controller", "ScalingReplicaSet", &message);
    let (namespace, name) =
        (text(&deployment["metadata"]["namespace"]), text(&deployment["metadata"]["name"]));
    soon(inner, Task::Deployment(namespace, name), Duration::from_millis(20));
}

fn scale(inner: &Arc<Inner>, deployment: &Value, set: &Value, replicas: i64) {
    let before = number(set, "/spec/replicas");
    if before == replicas {
        return;
    }
    let (namespace, name) = (text(&set["metadata"]["namespace"]), text(&set["metadata"]["name"]));
    let Some(target) = inner.target("apps", "replicasets", &namespace, &name) else { return };
    change(inner, &target, |set| set["spec"]["replicas"] = json!(replicas));
    let direction = if replicas > before { "up" } else { "down" };
    let message = format!("Scaled {direction} replica set {name} from {before} to {replicas}");
    tell(inner, deployment, "deployment-controller", "ScalingReplicaSet", &message);
}

fn write_status(
    inner: &Arc<Inner>,
    seen: &Value,
    sets: &[Value],
    template: &Value,
    wanted: i64,
    unavailable: i64,
) {
    let Ok(target) = inner.target_of(seen) else { return };
    let sum = |pointer: &str| sets.iter().map(|set| number(set, pointer)).sum::<i64>();
    let (replicas, ready, available) =
        (sum("/status/replicas"), sum("/status/readyReplicas"), sum("/status/availableReplicas"));
    let new = sets.iter().find(|set| bare_template(set) == *template);
    let updated = new.map_or(0, |set| number(set, "/status/replicas"));
    let new_name = new.map(|set| text(&set["metadata"]["name"])).unwrap_or_default();
    let now = stamp(inner.fleet.clock.now());
    let generation = &seen["metadata"]["generation"];
    change(inner, &target, |deployment| {
        let paused = deployment["spec"]["paused"] == true;
        let deadline = number(deployment, "/spec/progressDeadlineSeconds");
        let before = deployment["status"].clone();
        let mut status = json!({"observedGeneration": generation});
        for (key, value) in [
            ("replicas", replicas),
            ("updatedReplicas", updated),
            ("readyReplicas", ready),
            ("availableReplicas", available),
            ("unavailableReplicas", (wanted.max(replicas) - available).max(0)),
        ] {
            if value > 0 {
                status[key] = json!(value);
            }
        }
        if let Some(conditions) = before.get("conditions") {
            status["conditions"] = conditions.clone();
        }
        let enough = available >= wanted - unavailable;
        let (value, reason, message) = if enough {
            ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
        } else {
            ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
        };
        let rest = json!({"reason": reason, "message": message, "lastUpdateTime": now});
        set_condition(inner, &mut status, "Available", value, &rest);

        let complete = updated == wanted && replicas == wanted && available == wanted;
        let moved = ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"]
            .iter()
            .any(|key| before[key].as_i64().unwrap_or_default() != status[key].as_i64().unwrap_or_default());
        let progressing = before["conditions"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|one| one["type"] == "Progressing")
            .cloned();
        let since =
            progressing.as_ref().and_then(|one| one["lastUpdateTime"].as_str()?.parse::<Timestamp>().ok());
        let was_complete = progressing.as_ref().is_some_and(|one| one["reason"] == "NewReplicaSetAvailable");
        let late = !complete
            && !moved
            && !was_complete
            && deadline > 0
            && since.is_some_and(|since| inner.fleet.clock.now().duration_since(since).as_secs() >= deadline);
        let named = |what: &str| format!("ReplicaSet {new_name:?} {what}");
        let told = if paused {
            Some(("Unknown", "DeploymentPaused", "Deployment is paused".to_owned()))
        } else if complete {
            Some(("True", "NewReplicaSetAvailable", named("has successfully progressed.")))
        } else if late {
            Some(("False", "ProgressDeadlineExceeded", named("has timed out progressing.")))
        } else if moved || progressing.is_none() || was_complete {
            Some(("True", "ReplicaSetUpdated", named("is progressing.")))
        } else {
            None
        };
        if let Some((value, reason, message)) = told {
            let rest = json!({"reason": reason, "message": message, "lastUpdateTime": now});
            set_condition(inner, &mut status, "Progressing", value, &rest);
            // Progress updates the time of the condition, although the rest of it stays.
            if moved && reason == "ReplicaSetUpdated" {
                for condition in status["conditions"].as_array_mut().into_iter().flatten() {
                    if condition["type"] == "Progressing" {
                        condition["lastUpdateTime"] = json!(now);
                    }
                }
            }
        }
        // A refusal is a condition of the ReplicaSet, and repeated here.
        let refused = sets.iter().find_map(|set| {
            set["status"]["conditions"].as_array()?.iter().find(|one| one["type"] == REFUSAL)
        });
        match refused {
            Some(refused) => {
                let rest = json!({"reason": refused["reason"], "message": refused["message"], "lastUpdateTime": now});
                set_condition(inner, &mut status, REFUSAL, "True", &rest);
            }
            None => {
                if let Some(conditions) = status["conditions"].as_array_mut() {
                    conditions.retain(|condition| condition["type"] != REFUSAL);
                }
            }
        }
        deployment["status"] = status;
        if !complete && !paused && deadline > 0 {
            let task = Task::Deployment(target.namespace.clone(), target.name.clone());
            soon(inner, task, Duration::from_secs(deadline.unsigned_abs() + 1));
        }
    });
}

/// Reconciles a ReplicaSet, unless it is scripted or being deleted: creates and deletes Pods until it has the desired
/// number or a quota refuses one, and writes its status.
pub(super) fn replica_set(inner: &Arc<Inner>, namespace: &str, name: &str) {
    let Some(target) = inner.target("apps", "replicasets", namespace, name) else { return };
    let Some(set) = inner.tree(&target) else { return };
    if set["metadata"].get("deletionTimestamp").is_some() || is_scripted(&set) {
        return;
    }
    let uid = text(&set["metadata"]["uid"]);
    let mut running = owned(inner, "", "pods", namespace, &uid);
    running.retain(|pod| !is_ending(pod) && !is_finished(pod));
    let wanted = number(&set, "/spec/replicas");
    let found = i64::try_from(running.len()).unwrap_or(i64::MAX);
    let mut refusal = None;
    for _ in found..wanted {
        let pod = format!("{name}-{}", inner.letters(5));
        refusal = quota::refusal(inner, namespace, &pod);
        if let Some(why) = &refusal {
            let message = format!("Error creating: {why}");
            let by = "replicaset-controller";
            warn(inner, &set, by, "FailedCreate", &message);
            soon(inner, Task::ReplicaSet(namespace.to_owned(), name.to_owned()), REFUSAL_RETRY_DELAY);
            break;
        }
        let pod = pods::pod(&set, &set["spec"]["template"], &pod);
        pods::start(inner, &set, "replicaset-controller", pod);
    }
    if found > wanted {
        // Pods that are not ready go first, then the youngest.
        pods::youngest_first(&mut running);
        running.sort_by_key(is_ready);
        let surplus = usize::try_from(found - wanted).unwrap_or_default();
        for pod in running.iter().take(surplus) {
            pods::end(inner, &set, "replicaset-controller", pod);
        }
    }
    let mut pods = owned(inner, "", "pods", namespace, &uid);
    pods.retain(|pod| !is_ending(pod));
    let ready = pods.iter().filter(|pod| is_ready(pod)).count();
    let generation = &set["metadata"]["generation"];
    change(inner, &target, |set| {
        let mut status = json!({"replicas": pods.len(), "observedGeneration": generation});
        if !pods.is_empty() {
            status["fullyLabeledReplicas"] = json!(pods.len());
        }
        if ready > 0 {
            status["readyReplicas"] = json!(ready);
            status["availableReplicas"] = json!(ready);
        }
        if let Some(why) = &refusal {
            // The first refused Pod stays named: a condition with the same meaning is not written again.
            match set["status"].get("conditions").filter(|all| !all.is_null()) {
                Some(conditions) => status["conditions"] = conditions.clone(),
                None => {
                    let rest = json!({"reason": "FailedCreate", "message": why});
                    set_condition(inner, &mut status, REFUSAL, "True", &rest);
                }
            }
        }
        set["status"] = status;
    });
}
