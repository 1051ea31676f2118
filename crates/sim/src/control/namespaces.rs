//! Namespaces: their first objects, and their deletion.

use std::sync::Arc;

use serde_json::{Value, json};

use super::create;
use crate::behaviour::Behaviour;
use crate::state::Inner;
use crate::target::Target;
use crate::write::Deletion;

pub(super) fn reconcile(inner: &Arc<Inner>, name: &str) {
    let Some(target) = inner.target("", "namespaces", "", name) else { return };
    let Some(namespace) = inner.tree(&target) else { return };
    if namespace["metadata"].get("deletionTimestamp").is_some() {
        if inner.does.on(Behaviour::NamespaceEmpties) {
            empty(inner, &target, &namespace);
        }
        return;
    }
    if !inner.fleet.options.controllers {
        return;
    }
    let missing = |plural: &str, name: &str| {
        let target = inner.target("", plural, &target.name, name);
        target.is_some_and(|target| inner.store().get(target.shelf, &target.key()).is_none())
    };
    if missing("serviceaccounts", "default") {
        create(
            inner,
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}),
        );
    }
    if missing("configmaps", "kube-root-ca.crt") {
        create(
            inner,
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kube-root-ca.crt", "namespace": name},
                "data": {"ca.crt": inner.fleet.tls.authority},
            }),
        );
    }
}

/// Deletes the objects of a namespace that is being deleted, and the namespace once it is empty and has no finalizers.
fn empty(inner: &Arc<Inner>, target: &Target, namespace: &Value) {
    let prefix = format!("{}/", target.name);
    let inside: Vec<Target> = {
        let store = inner.store();
        let shelves = store.resources().filter(|(_, resource)| resource.namespaced);
        shelves
            .flat_map(|(shelf, resource)| {
                let prefix = &prefix;
                let version =
                    resource.versions.first().map(|version| version.name.clone()).unwrap_or_default();
                store.range(shelf, prefix, None).map(move |(key, _)| Target {
                    shelf,
                    resource: resource.clone(),
                    version: version.clone(),
                    namespace: target.name.clone(),
                    name: key.strip_prefix(prefix.as_str()).unwrap_or_default().to_owned(),
                })
            })
            .collect()
    };
    let mut left = false;
    for one in inside {
        // Pods of a deleted namespace have no grace period.
        let deletion = Deletion { grace: Some(0), ..Deletion::default() };
        left |= inner.delete(&one, &deletion).is_ok_and(|deleted| !deleted.gone);
    }
    if left {
        return;
    }
    let finalizers = namespace["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty());
    if !finalizers {
        inner.remove(target);
    }
}
