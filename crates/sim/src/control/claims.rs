//! Volumes for those who wait for them: a claim is bound when the first Pod that uses it gets a node, to a volume made
//! for it, as provisioners with `WaitForFirstConsumer` do it.

use serde_json::{Value, json};

use super::{change, create, is_scripted, text};
use crate::cluster::Inner;

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
