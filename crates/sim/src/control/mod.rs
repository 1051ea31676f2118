//! Controllers: the reactions of a simulated cluster to changes.
//!
//! The controllers of every API server (namespaces, custom resources, dependents) always run, but in a verbatim fleet
//! only that of custom resources; those of the controller manager, the scheduler and the kubelets only if the fleet has
//! controllers. Nothing polls: a change plans the tasks that it requires, and a task that is required several times
//! before it is due runs once.

mod budgets;
mod claims;
mod cron;
mod daemon;
mod definitions;
mod events;
mod garbage;
mod jobs;
mod kubelet;
mod namespaces;
mod nodes;
mod pods;
mod quota;
mod revisions;
mod rollout;
mod services;
mod stateful;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::clock::{later, stamp};
use crate::error::Answered;
use crate::managed::Writer;
use crate::state::Inner;
use crate::store::Object;
use crate::target::{Part, Target};
use crate::task::Task;
use crate::write::WriteOptions;

pub(crate) use kubelet::node;

/// The annotation of objects that controllers and kubelets leave alone, because only a timeline changes them. The
/// controllers of nodes, namespaces, quotas and definitions and the garbage collector do not heed it.
pub(crate) const SCRIPTED: &str = "taffrail.dev/scripted";

fn run(task: &Task, inner: &Arc<Inner>) {
    match task {
        Task::Namespace(name) => namespaces::reconcile(inner, name),
        Task::Definition(name) => definitions::reconcile(inner, name),
        Task::Dependents(uid) => garbage::dependents(inner, uid),
        Task::Owners { group, plural, namespace, name } => {
            garbage::owners(inner, group, plural, namespace, name)
        }
        Task::Deployment(namespace, name) => rollout::deployment(inner, namespace, name),
        Task::ReplicaSet(namespace, name) => rollout::replica_set(inner, namespace, name),
        Task::StatefulSet(namespace, name) => stateful::set(inner, namespace, name),
        Task::DaemonSet(namespace, name) => daemon::set(inner, namespace, name),
        Task::Job(namespace, name) => jobs::job(inner, namespace, name),
        Task::CronJob(namespace, name) => cron::cron_job(inner, namespace, name),
        Task::Nodes => daemon::nodes_changed(inner),
        Task::Budgets(namespace) => budgets::reconcile(inner, namespace),
        Task::Pod(namespace, name) => kubelet::pod(inner, namespace, name),
        Task::Claims(namespace) => claims::release(inner, namespace),
        Task::Services(namespace) => services::reconcile(inner, namespace),
        Task::Node(name) => nodes::reconcile(inner, name),
        Task::NodeGone(name) => nodes::gone(inner, name),
        Task::Eviction(namespace, name) => nodes::evict(inner, namespace, name),
        Task::Quotas(namespace) => quota::reconcile(inner, namespace),
        Task::QuotaChanged(namespace) => quota::changed(inner, namespace),
        Task::Event(namespace, name) => events::expire(inner, namespace, name),
        Task::RenewLeases => nodes::renew_leases(inner),
    }
}

/// Plans the tasks of controllers that a change of an object requires; `gone` is true if it was removed.
pub(crate) fn react(inner: &Inner, target: &Target, object: &Arc<Object>, gone: bool) {
    let resource = &target.resource;
    let name = || target_name(target, object);
    let namespace = || target.namespace.clone();
    let at_once = Duration::ZERO;
    let has = |what: &[u8]| object.head().windows(what.len()).any(|window| window == what);
    if inner.fleet.options.verbatim {
        if resource.is("apiextensions.k8s.io", "customresourcedefinitions") {
            soon(inner, Task::Definition(name()), at_once);
        }
        return;
    }
    let going = gone || has(b"\"deletionTimestamp\"");
    // Events have no dependents, and many of them expire.
    if going && !resource.is("", "events") {
        let uid = object.metadata()["uid"].as_str().unwrap_or_default().to_owned();
        soon(inner, Task::Dependents(uid), at_once);
        if !target.namespace.is_empty() && gone && is_terminating(inner, &target.namespace) {
            soon(inner, Task::Namespace(namespace()), at_once);
        }
    }
    if has(b"\"ownerReferences\"") {
        let (group, plural) = (resource.group.to_string(), resource.plural.to_string());
        if !gone {
            soon(inner, Task::Owners { group, plural, namespace: namespace(), name: name() }, at_once);
        }
        // An owner that waits for this object may be removed now.
        for owner in object.metadata()["ownerReferences"].as_array().into_iter().flatten() {
            let uid = owner["uid"].as_str().unwrap_or_default().to_owned();
            if going {
                soon(inner, Task::Dependents(uid), at_once);
            }
            let controller = text(&owner["kind"]);
            if let (Some(task), true) =
                (Task::of(&controller, namespace(), text(&owner["name"])), inner.fleet.options.controllers)
            {
                soon(inner, task, Duration::from_millis(10));
            }
        }
    }
    match (&*resource.group, &*resource.plural) {
        ("", "namespaces") if !gone => soon(inner, Task::Namespace(name()), at_once),
        ("apiextensions.k8s.io", "customresourcedefinitions") => {
            soon(inner, Task::Definition(name()), at_once)
        }
        _ => {}
    }
    if !inner.fleet.options.controllers {
        return;
    }
    match (&*resource.group, &*resource.plural) {
        ("apps", "deployments" | "replicasets" | "statefulsets" | "daemonsets")
        | ("batch", "jobs" | "cronjobs")
            if !gone =>
        {
            if let Some(task) = Task::of(&resource.kind, namespace(), name()) {
                soon(inner, task, Duration::from_millis(10));
            }
        }
        ("", "nodes") => {
            soon(inner, Task::Nodes, Duration::from_millis(10));
            if gone {
                soon(inner, Task::NodeGone(name()), Duration::from_secs(1));
            } else {
                soon(inner, Task::Node(name()), Duration::from_millis(20));
            }
        }
        ("policy", "poddisruptionbudgets") => {
            soon(inner, Task::Budgets(namespace()), Duration::from_millis(10))
        }
        ("", "pods") => {
            soon(inner, Task::Budgets(namespace()), Duration::from_millis(20));
            if !gone {
                soon(inner, Task::Pod(namespace(), name()), Duration::from_millis(5));
            }
            if going {
                soon(inner, Task::Claims(namespace()), Duration::from_millis(10));
            }
            soon(inner, Task::Services(namespace()), Duration::from_millis(50));
            soon(inner, Task::Quotas(namespace()), Duration::from_millis(100));
        }
        ("", "resourcequotas") => {
            soon(inner, Task::Quotas(namespace()), Duration::from_millis(100));
            soon(inner, Task::QuotaChanged(namespace()), Duration::from_millis(200));
        }
        ("", "persistentvolumeclaims") if going && !gone => {
            soon(inner, Task::Claims(namespace()), Duration::from_millis(10))
        }
        ("", "services") => soon(inner, Task::Services(namespace()), Duration::from_millis(50)),
        _ => {}
    }
}

/// Starts the regular renewal of Leases.
pub(crate) fn keep_leases(inner: &Arc<Inner>) {
    nodes::renew_leases(inner);
}

fn target_name(target: &Target, object: &Object) -> String {
    match target.name.as_str() {
        "" => object.metadata()["name"].as_str().unwrap_or_default().to_owned(),
        name => name.to_owned(),
    }
}

fn is_terminating(inner: &Inner, namespace: &str) -> bool {
    let store = inner.store();
    let found = store.find("", "namespaces").and_then(|(shelf, _)| store.get(shelf, namespace));
    found.is_some_and(|namespace| namespace.metadata().get("deletionTimestamp").is_some())
}

/// Plans a task after `delay`, unless it is already planned for that time or earlier.
pub(crate) fn soon(inner: &Inner, task: Task, delay: Duration) {
    let due = later(inner.fleet.clock.now(), delay);
    {
        let mut pending = inner.pending.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match pending.get(&task) {
            Some(planned) if *planned <= due => return,
            _ => pending.insert(task.clone(), due),
        };
    }
    inner.plan(due, move |inner| {
        {
            let mut pending = inner.pending.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            // Otherwise it was planned again for an earlier time, and has run.
            if pending.get(&task) == Some(&due) {
                pending.remove(&task);
            } else if !pending.contains_key(&task) {
                return;
            }
        }
        run(&task, inner);
    });
}

/// Changes an object as a controller does, without admission, or by the rules of an update if it is being deleted;
/// ignores a missing object. `change` gets the current state, so that changes by others stay; it must not lock the
/// store, and must set observedGeneration to the one that the controller read.
fn change(inner: &Inner, target: &Target, mut change: impl FnMut(&mut Value)) {
    let mut is_ending = false;
    let changed = |mut object: Value| {
        is_ending = object["metadata"].get("deletionTimestamp").is_some();
        if is_ending {
            return None;
        }
        let before = object.clone();
        change(&mut object);
        (object != before).then_some(object)
    };
    inner.impose_change(target, &Writer::default(), changed, |_| ());
    if !is_ending {
        return;
    }
    // An object that is being deleted follows the rules of every update, so that its last finalizer removes it; its
    // status is updated separately.
    let mut status = None;
    let wanted = WriteOptions::default();
    let set = |mut current: Value| -> Answered<Value> {
        let before = current["status"].clone();
        change(&mut current);
        status = current.get("status").filter(|status| **status != before).map(|it| (before, it.clone()));
        Ok(current)
    };
    let _ = inner.update(target, Part::Main, &wanted, set);
    if let Some((before, status)) = status {
        let set = |mut current: Value| -> Answered<Value> {
            if current["status"] == before {
                current["status"] = status;
            }
            Ok(current)
        };
        let _ = inner.update(target, Part::Status, &wanted, set);
    }
}

/// Creates or replaces an object as a controller does; ignores a refusal.
fn create(inner: &Inner, object: Value) {
    if let Ok(target) = inner.target_of(&object) {
        let _ = inner.impose(&target, object, &Writer::default());
    }
}

/// Lists the objects of a resource in a namespace, or in all if `namespace` is empty.
fn all(inner: &Inner, group: &str, plural: &str, namespace: &str) -> Vec<Value> {
    let Some(target) = inner.target(group, plural, namespace, "") else { return Vec::new() };
    let store = inner.store();
    let prefix = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
    let found = store.range(target.shelf, &prefix, None);
    found.map(|(_, object)| object.tree(&target.api_version(), &target.resource.kind)).collect()
}

/// Lists the objects of a resource in a namespace, or in all if that is empty, whose controller has this UID.
fn owned(inner: &Inner, group: &str, plural: &str, namespace: &str, uid: &str) -> Vec<Value> {
    let mut found = all_containing(inner, group, plural, namespace, uid);
    found.retain(|object| {
        let owners = object["metadata"]["ownerReferences"].as_array();
        owners.is_some_and(|owners| {
            owners.iter().any(|owner| owner["uid"] == uid && owner["controller"] == true)
        })
    });
    found
}

/// Lists the objects of a resource in a namespace, or in all if that is empty, whose metadata contain `text`. Only
/// these are parsed, because parsing is expensive.
fn all_containing(inner: &Inner, group: &str, plural: &str, namespace: &str, text: &str) -> Vec<Value> {
    let Some(target) = inner.target(group, plural, namespace, "") else { return Vec::new() };
    let store = inner.store();
    let prefix = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
    let found = store.range(target.shelf, &prefix, None).filter(|(_, object)| contains(object.head(), text));
    found.map(|(_, object)| object.tree(&target.api_version(), &target.resource.kind)).collect()
}

fn contains(head: &[u8], text: &str) -> bool {
    !text.is_empty() && std::str::from_utf8(head).is_ok_and(|head| head.contains(text))
}

/// Returns true if the object has the annotation [`SCRIPTED`], so that only a timeline changes it.
fn is_scripted(object: &Value) -> bool {
    object["metadata"]["annotations"].get(SCRIPTED).is_some()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Builds the owner references of an object whose controller is `owner`.
fn controller(api_version: &str, kind: &str, owner: &Value) -> Value {
    json!([{
        "apiVersion": api_version, "kind": kind, "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true,
    }])
}

/// Sets the condition `kind` in `status` to `value` with the fields `rest`; its transition time changes only with its
/// value, and its `lastUpdateTime`, if `rest` has one, only with value, reason or message.
fn set_condition(inner: &Inner, status: &mut Value, kind: &str, value: &str, rest: &Value) {
    let now = stamp(inner.fleet.clock.now());
    let Some(members) = status.as_object_mut() else { return };
    let Some(conditions) = members.entry("conditions").or_insert_with(|| json!([])).as_array_mut() else {
        return;
    };
    let mut fresh = json!({"type": kind, "status": value, "lastTransitionTime": now});
    for (key, value) in rest.as_object().into_iter().flatten() {
        fresh[key] = value.clone();
    }
    match conditions.iter_mut().find(|condition| condition["type"] == kind) {
        Some(known) => {
            if known["status"] == value
                && let Some(time) = known.get("lastTransitionTime")
            {
                fresh["lastTransitionTime"] = time.clone();
            }
            if let (Some(time), Some(_)) = (known.get("lastUpdateTime"), fresh.get("lastUpdateTime"))
                && known["status"] == value
                && known["reason"] == fresh["reason"]
                && known["message"] == fresh["message"]
            {
                fresh["lastUpdateTime"] = time.clone();
            }
            *known = fresh;
        }
        None => conditions.push(fresh),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client and a controller that count in the same object may not undo each other's counts.
    #[tokio::test]
    async fn concurrent_writes_of_client_and_controller_are_kept() {
        const TIMES: u64 = 5_000;
        let fleet = crate::Fleet::builder().controllers(false).start().await.expect("a fleet");
        let cluster = fleet.cluster("one").await.expect("a cluster");
        let metadata = json!({"name": "counts", "namespace": "default"});
        let counts = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {}});
        cluster.apply(counts.clone()).expect("a ConfigMap");
        let inner = cluster.inner();
        let target = inner.target_of(&counts).expect("its target");
        let count = |object: &mut Value, key: &str| {
            let before = object["data"][key].as_str().and_then(|text| text.parse::<u64>().ok());
            object["data"][key] = json!((before.unwrap_or_default() + 1).to_string());
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (0..TIMES).for_each(|_| change(inner, &target, |object| count(object, "controller")))
            });
            for _ in 0..TIMES {
                let counted = |mut object: Value| {
                    count(&mut object, "client");
                    Ok(object)
                };
                inner.update(&target, Part::Main, &WriteOptions::default(), counted).expect("an update");
            }
        });
        let counted = cluster.get("v1", "ConfigMap", "default", "counts").expect("the ConfigMap");
        assert_eq!(counted["data"], json!({"client": TIMES.to_string(), "controller": TIMES.to_string()}));
    }
}
