//! PersistentVolumeClaims: binding, and protection while a Pod uses them.
//!
//! A claim is bound when the first Pod that uses it gets a node, to a volume that is created for it, as provisioners
//! with `WaitForFirstConsumer` do.

use serde_json::{Value, json};

use super::{all, change, create, is_scripted, pods, text};
use crate::state::Inner;

/// The finalizer that protects a PersistentVolumeClaim while a Pod uses it.
const PROTECTION: &str = "kubernetes.io/pvc-protection";

/// Removes the finalizer [`PROTECTION`] from claims of a namespace that are being deleted, not scripted, and used by no
/// unfinished Pod.
pub(super) fn release(inner: &Inner, namespace: &str) {
    let mut claims = all(inner, "", "persistentvolumeclaims", namespace);
    claims.retain(|claim| {
        let finalizers = claim["metadata"]["finalizers"].as_array();
        let is_held = finalizers.is_some_and(|all| all.iter().any(|finalizer| finalizer == PROTECTION));
        is_held && claim["metadata"].get("deletionTimestamp").is_some() && !is_scripted(claim)
    });
    if claims.is_empty() {
        return;
    }
    let pods = all(inner, "", "pods", namespace);
    for claim in claims {
        let name = text(&claim["metadata"]["name"]);
        let uses = |volume: &Value| volume["persistentVolumeClaim"]["claimName"] == *name;
        let is_used = pods.iter().filter(|pod| !pods::is_finished(pod)).any(|pod| {
            let volumes = pod["spec"]["volumes"].as_array();
            volumes.is_some_and(|volumes| volumes.iter().any(uses))
        });
        if is_used {
            continue;
        }
        let Some(target) = inner.target("", "persistentvolumeclaims", namespace, &name) else { continue };
        change(inner, &target, |claim| {
            if let Some(finalizers) = claim["metadata"]["finalizers"].as_array_mut() {
                finalizers.retain(|finalizer| finalizer != PROTECTION);
            }
        });
    }
}

pub(super) fn bind(inner: &Inner, pod: &Value) {
    let namespace = text(&pod["metadata"]["namespace"]);
    for volume in pod["spec"]["volumes"].as_array().into_iter().flatten() {
        let Some(name) = volume["persistentVolumeClaim"]["claimName"].as_str() else { continue };
        let Some(target) = inner.target("", "persistentvolumeclaims", &namespace, name) else { continue };
        let Some(claim) = inner.tree(&target) else { continue };
        if claim["status"]["phase"] != "Pending"
            || claim["spec"]["volumeName"].is_string()
            || is_scripted(&claim)
        {
            continue;
        }
        let volume = format!("pvc-{}", text(&claim["metadata"]["uid"]));
        let size = claim["spec"]["resources"]["requests"]["storage"].as_str().unwrap_or("1Gi");
        let modes = &claim["spec"]["accessModes"];
        let modes = if modes.is_array() { modes.clone() } else { json!(["ReadWriteOnce"]) };
        create(
            inner,
            json!({
                "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume},
                "spec": {
                    "capacity": {"storage": size}, "accessModes": modes, "persistentVolumeReclaimPolicy": "Delete",
                    "hostPath": {"path": format!("/var/volumes/{volume}"), "type": ""},
                    "claimRef": {
                        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": name,
                        "uid": claim["metadata"]["uid"],
                    },
                },
                "status": {"phase": "Bound"},
            }),
        );
        change(inner, &target, |claim| {
            claim["spec"]["volumeName"] = json!(volume);
            let bound = json!({"phase": "Bound", "accessModes": modes, "capacity": {"storage": size}});
            if let Some(members) = claim.as_object_mut() {
                members.insert("status".to_owned(), bound);
            }
        });
    }
}
