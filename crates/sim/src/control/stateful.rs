//! The controller of StatefulSets: the rules of Kubernetes' `pkg/controller/statefulset` that a user who scales,
//! applies, restarts or deletes one can see.

use std::sync::Arc;

use serde_json::{Value, json};

use super::pods::{self, is_ending, is_finished, is_ready};
use super::revisions::{self, Revisions};
use super::rollout::number;
use super::{change, create, is_scripted, owned, text};
use crate::behaviour::Behaviour;
use crate::state::Inner;

const BY: &str = "statefulset-controller";
const REVISION: &str = "controller-revision-hash";

fn revision_of(pod: &Value) -> String {
    text(&pod["metadata"]["labels"][REVISION])
}

/// Returns the ordinal at the end of a Pod's name; `None` if the Pod is not of this set.
fn ordinal(set: &str, pod: &Value) -> Option<i64> {
    pod["metadata"]["name"].as_str()?.strip_prefix(set)?.strip_prefix('-')?.parse().ok()
}

/// Reconciles a StatefulSet, unless it is scripted or being deleted: stores its template as a revision, creates or
/// deletes Pods, and writes its status.
pub(super) fn set(inner: &Arc<Inner>, namespace: &str, name: &str) {
    let Some(target) = inner.target("apps", "statefulsets", namespace, name) else { return };
    let Some(set) = inner.tree(&target) else { return };
    let on = inner.does.on(Behaviour::StatefulSets);
    if is_ending(&set) || is_scripted(&set) || !set["spec"]["template"].is_object() || !on {
        return;
    }
    let used = [text(&set["status"]["currentRevision"]), text(&set["status"]["updateRevision"])];
    let Some(revisions) = revisions::keep(inner, &set, &used) else { return };
    let mut found = pods_of(inner, &set);
    step(inner, &set, &revisions, &mut found);
    write_status(inner, &set, &revisions, &pods_of(inner, &set));
}

fn pods_of(inner: &Inner, set: &Value) -> Vec<Value> {
    let metadata = &set["metadata"];
    let (namespace, name) = (text(&metadata["namespace"]), text(&metadata["name"]));
    let mut found = owned(inner, "", "pods", &namespace, &text(&metadata["uid"]));
    found.retain(|pod| ordinal(&name, pod).is_some());
    found.sort_by_key(|pod| ordinal(&name, pod));
    found
}

/// Creates, replaces or deletes Pods of a StatefulSet: one, after which it waits until that Pod is ready. With the
/// policy `Parallel` it creates and deletes all at once, but still replaces outdated Pods one by one.
fn step(inner: &Arc<Inner>, set: &Value, revisions: &Revisions, found: &mut [Value]) {
    let spec = &set["spec"];
    let name = text(&set["metadata"]["name"]);
    let first = number(set, "/spec/ordinals/start").max(0);
    // An upper limit: creating more Pods would be a mistake.
    let end = first.saturating_add(number(set, "/spec/replicas").clamp(0, 10_000));
    let in_order = spec["podManagementPolicy"] != "Parallel";
    let newest = text(&revisions.newest["metadata"]["name"]);
    let partition = number(set, "/spec/updateStrategy/rollingUpdate/partition");
    let current = text(&set["status"]["currentRevision"]);
    for place in first..end {
        match found.iter().find(|pod| ordinal(&name, pod) == Some(place)) {
            None => {
                // Below the partition, a lost Pod is recreated from the old revision.
                let old = revisions.all.iter().find(|one| one["metadata"]["name"] == *current);
                let revision = match old {
                    Some(old) if place < partition => old,
                    _ => &revisions.newest,
                };
                claim(inner, set, place);
                pods::start(inner, set, BY, pod(set, revision, place));
                if in_order {
                    return;
                }
            }
            Some(pod) if is_ending(pod) => {
                if in_order {
                    return;
                }
            }
            Some(pod) if is_finished(pod) => {
                pods::end(inner, set, BY, pod);
                if in_order {
                    return;
                }
            }
            Some(pod) if !is_ready(pod) && in_order => {
                // A Pod that never becomes ready is replaced by the template that may fix it only if Pods are not
                // managed in order, as in Kubernetes; in order, a user has to delete it.
                return;
            }
            Some(_) => {}
        }
    }
    let outside = |pod: &&Value| ordinal(&name, pod).is_some_and(|place| !(first..end).contains(&place));
    let mut surplus: Vec<&Value> = found.iter().filter(outside).collect();
    surplus.reverse();
    for pod in surplus {
        if !is_ending(pod) {
            pods::end(inner, set, BY, pod);
        }
        if in_order {
            return;
        }
    }
    if spec["updateStrategy"]["type"] == "OnDelete" {
        return;
    }
    for place in (first.max(partition)..end).rev() {
        let Some(pod) = found.iter().find(|pod| ordinal(&name, pod) == Some(place)) else { return };
        if is_ending(pod) {
            return;
        }
        if revision_of(pod) != newest {
            return pods::end(inner, set, BY, pod);
        }
        if !is_ready(pod) {
            return;
        }
    }
}

fn pod(set: &Value, revision: &Value, place: i64) -> Value {
    let set_name = text(&set["metadata"]["name"]);
    let name = format!("{set_name}-{place}");
    let mut pod = pods::pod(set, &revisions::template(revision), &name);
    if let Some(labels) = pod["metadata"]["labels"].as_object_mut() {
        labels.insert(REVISION.to_owned(), revision["metadata"]["name"].clone());
        labels.insert("statefulset.kubernetes.io/pod-name".to_owned(), json!(name));
        labels.insert("apps.kubernetes.io/pod-index".to_owned(), json!(place.to_string()));
    }
    pod["spec"]["hostname"] = json!(name);
    if let Some(service) = set["spec"]["serviceName"].as_str().filter(|service| !service.is_empty()) {
        pod["spec"]["subdomain"] = json!(service);
    }
    let claims = set["spec"]["volumeClaimTemplates"].as_array().into_iter().flatten();
    let mut volumes: Vec<Value> = claims
        .map(|claim| {
            let own = text(&claim["metadata"]["name"]);
            json!({"name": own, "persistentVolumeClaim": {"claimName": format!("{own}-{name}")}})
        })
        .collect();
    if !volumes.is_empty() {
        let others = pod["spec"]["volumes"].as_array().cloned().unwrap_or_default();
        volumes.extend(others.into_iter().filter(|other| {
            set["spec"]["volumeClaimTemplates"]
                .as_array()
                .is_some_and(|all| all.iter().all(|claim| claim["metadata"]["name"] != other["name"]))
        }));
        pod["spec"]["volumes"] = json!(volumes);
    }
    pod
}

/// Creates the PersistentVolumeClaims of the Pod with the ordinal `place` that do not exist yet.
fn claim(inner: &Inner, set: &Value, place: i64) {
    let metadata = &set["metadata"];
    let (namespace, name) = (text(&metadata["namespace"]), text(&metadata["name"]));
    for template in set["spec"]["volumeClaimTemplates"].as_array().into_iter().flatten() {
        let own = format!("{}-{name}-{place}", text(&template["metadata"]["name"]));
        let known =
            inner.target("", "persistentvolumeclaims", &namespace, &own).and_then(|it| inner.tree(&it));
        if known.is_some() {
            continue;
        }
        let labels = &set["spec"]["selector"]["matchLabels"];
        let labels = if labels.is_object() { labels.clone() } else { json!({}) };
        let spec = if template["spec"].is_object() { template["spec"].clone() } else { json!({}) };
        create(
            inner,
            json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": {"name": own, "namespace": namespace, "labels": labels}, "spec": spec,
            }),
        );
    }
}

fn write_status(inner: &Arc<Inner>, set: &Value, revisions: &Revisions, found: &[Value]) {
    let Ok(target) = inner.target_of(set) else { return };
    let count = |test: &dyn Fn(&Value) -> bool| found.iter().filter(|pod| test(pod)).count();
    let newest = text(&revisions.newest["metadata"]["name"]);
    let before = text(&set["status"]["currentRevision"]);
    let mut current = if before.is_empty() { newest.clone() } else { before };
    let alive = |pod: &Value| !is_ending(pod);
    let updated = count(&|pod| alive(pod) && revision_of(pod) == newest);
    let ready = count(&is_ready);
    let wanted = number(set, "/spec/replicas");
    let partition = number(set, "/spec/updateStrategy/rollingUpdate/partition");
    let all_new = i64::try_from(updated.min(ready)).unwrap_or_default() == wanted && found.len() == updated;
    if all_new && partition <= 0 {
        current = newest.clone();
    }
    let of_current = count(&|pod| alive(pod) && revision_of(pod) == current);
    change(inner, &target, |latest| {
        let mut status = json!({
            "observedGeneration": set["metadata"]["generation"], "replicas": found.len(), "availableReplicas": ready,
            "currentRevision": current, "updateRevision": newest, "collisionCount": 0,
        });
        for (key, value) in
            [("readyReplicas", ready), ("updatedReplicas", updated), ("currentReplicas", of_current)]
        {
            if value > 0 {
                status[key] = json!(value);
            }
        }
        if let Some(members) = latest.as_object_mut() {
            members.insert("status".to_owned(), status);
        }
    });
}
