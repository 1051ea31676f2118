//! Garbage collection of the dependents of deleted objects.

use std::sync::Arc;

use serde_json::Value;

use super::contains;
use crate::behaviour::Behaviour;
use crate::state::Inner;
use crate::target::{Part, Target};
use crate::write::{Deletion, Propagation, WriteOptions};

/// Handles the dependents of the owner with this UID: if it is gone, deletes those without another owner, and removes
/// the references to it from the others; if it is being deleted, deletes or releases them as its finalizers say.
pub(super) fn dependents(inner: &Arc<Inner>, uid: &str) {
    if uid.is_empty() {
        return;
    }
    let owner = find(
        inner,
        |head| contains(head, &format!("\"uid\":\"{uid}\"")),
        |object| object["metadata"]["uid"] == uid,
    );
    let dependents = find(inner, |head| contains(head, uid), |object| reference(object, uid).is_some());
    let Some((owner, object)) = owner.into_iter().next() else {
        if inner.does.on(Behaviour::Background) {
            for (dependent, object) in dependents {
                settle(inner, &dependent, &object);
            }
        }
        return;
    };
    let finalizers = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    if object["metadata"].get("deletionTimestamp").is_none() {
        return;
    }
    if finalizers.iter().any(|finalizer| finalizer == "orphan") {
        for (dependent, _) in &dependents {
            drop_references(inner, dependent, &[uid.to_owned()]);
        }
        drop_finalizer(inner, &owner, "orphan");
    }
    if finalizers.iter().any(|finalizer| finalizer == "foregroundDeletion") {
        let mut blocked = false;
        for (dependent, object) in &dependents {
            blocked |=
                reference(object, uid).is_some_and(|reference| reference["blockOwnerDeletion"] == true);
            if object["metadata"].get("deletionTimestamp").is_none() {
                let deletion = Deletion { propagation: Some(Propagation::Foreground), ..Deletion::default() };
                let _ = inner.delete(dependent, &deletion);
            }
        }
        if !blocked {
            drop_finalizer(inner, &owner, "foregroundDeletion");
        }
    }
}

/// Deletes an object if all of its owners are gone; if only some are, removes the references to these. Does nothing if
/// it is being deleted.
pub(super) fn owners(inner: &Arc<Inner>, group: &str, plural: &str, namespace: &str, name: &str) {
    let Some(target) = inner.target(group, plural, namespace, name) else { return };
    let Some(object) = inner.tree(&target) else { return };
    if inner.does.on(Behaviour::AbsentOwners) && object["metadata"].get("deletionTimestamp").is_none() {
        settle(inner, &target, &object);
    }
}

/// Deletes an object if all of its owners are gone; if only some are, removes the references to these.
fn settle(inner: &Arc<Inner>, target: &Target, object: &Value) {
    let owners = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
    let is_there = |owner: &Value| {
        let text = |key: &str| owner[key].as_str().unwrap_or_default().to_owned();
        let (api_version, kind, name, uid) = (text("apiVersion"), text("kind"), text("name"), text("uid"));
        let (group, _) = crate::kinds::split_group_version(&api_version);
        let store = inner.store();
        // An owner of an unknown kind counts as existing.
        let Some((shelf, resource)) = store.find_kind(group, &kind) else { return true };
        let key = if resource.namespaced { crate::target::key(&target.namespace, &name) } else { name };
        store.get(shelf, &key).is_some_and(|owner| contains(owner.head(), &uid))
    };
    let gone: Vec<String> = owners
        .iter()
        .filter(|owner| !is_there(owner))
        .map(|owner| owner["uid"].as_str().unwrap_or_default().to_owned())
        .collect();
    if gone.is_empty() {
        return;
    }
    if gone.len() < owners.len() && inner.does.on(Behaviour::SeveralOwners) {
        drop_references(inner, target, &gone);
        return;
    }
    let deletion = Deletion { propagation: Some(Propagation::Background), ..Deletion::default() };
    let _ = inner.delete(target, &deletion);
}

fn reference<'a>(object: &'a Value, uid: &str) -> Option<&'a Value> {
    object["metadata"]["ownerReferences"].as_array()?.iter().find(|owner| owner["uid"] == uid)
}

/// Lists the objects for whose metadata text `quick` returns true, and then `thorough` for the parsed object.
fn find(
    inner: &Inner,
    quick: impl Fn(&[u8]) -> bool,
    thorough: impl Fn(&Value) -> bool,
) -> Vec<(Target, Value)> {
    let store = inner.store();
    let mut found = Vec::new();
    for (shelf, resource) in store.resources() {
        let Some(version) = resource.versions.first() else { continue };
        for (key, object) in store.range(shelf, "", None).filter(|(_, object)| quick(object.head())) {
            let (namespace, name) = key.rsplit_once('/').unwrap_or(("", key));
            let target = Target {
                shelf,
                resource: resource.clone(),
                version: version.name.clone(),
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            };
            let tree = object.tree(&target.api_version(), &resource.kind);
            if thorough(&tree) {
                found.push((target, tree));
            }
        }
    }
    found
}

fn drop_references(inner: &Inner, target: &Target, uids: &[String]) {
    change(inner, target, |metadata| {
        if let Some(owners) = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut) {
            owners.retain(|owner| !uids.iter().any(|uid| owner["uid"] == **uid));
            if owners.is_empty()
                && let Some(members) = metadata.as_object_mut()
            {
                members.remove("ownerReferences");
            }
        }
    });
}

fn drop_finalizer(inner: &Inner, target: &Target, name: &str) {
    change(inner, target, |metadata| {
        if let Some(finalizers) = metadata.get_mut("finalizers").and_then(Value::as_array_mut) {
            finalizers.retain(|finalizer| finalizer != name);
        }
    });
}

fn change(inner: &Inner, target: &Target, change: impl FnOnce(&mut Value)) {
    let _ = inner.update(target, Part::Main, &WriteOptions::default(), |mut object| {
        if let Some(metadata) = object.get_mut("metadata") {
            change(metadata);
        }
        Ok(object)
    });
}
