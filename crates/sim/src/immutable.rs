//! Fields that cannot change once an object is there, by the validation of Kubernetes' own kinds.

use serde_json::{Map, Value};

use crate::error::Cause;
use crate::kinds::Resource;

/// The fields of a StatefulSet's spec that may change.
const OF_STATEFUL_SET: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

const FIELD: &str = "field is immutable";
const WHEN_SET: &str = "field is immutable when `immutable` is set";

/// Lists the fields that differ between two states of an object though they cannot change.
pub(crate) fn faults(resource: &Resource, before: &Value, after: &Value) -> Vec<Cause> {
    let differs = |pointer: &str| {
        let at = |object: &Value| object.pointer(pointer).cloned().unwrap_or_default();
        (at(before) != at(after)).then(|| at(after))
    };
    let field = |name: &str| {
        let value = differs(&format!("/{}", name.replace('.', "/")));
        value.map(|value| Cause::invalid(name, &value, FIELD))
    };
    match (&*resource.group, &*resource.plural) {
        ("apps", "deployments" | "daemonsets" | "replicasets") => {
            field("spec.selector").into_iter().collect()
        }
        ("apps", "statefulsets") => {
            let fixed = |object: &Value| without(&object["spec"], &OF_STATEFUL_SET);
            let what = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' \
                are forbidden";
            let is_changed = fixed(before) != fixed(after);
            is_changed.then(|| Cause::forbidden("spec", what)).into_iter().collect()
        }
        ("batch", "jobs") => {
            // The template of a Job that has not begun may change.
            let is_suspended = before["spec"]["suspend"] == true;
            let template = field("spec.template").filter(|_| !is_suspended);
            let others = ["spec.selector", "spec.completionMode"].into_iter().filter_map(field);
            others.chain(template).collect()
        }
        ("", "configmaps" | "secrets") => {
            let kind = field("type").filter(|_| &*resource.plural == "secrets");
            let is_fixed = before["immutable"] == true;
            let parts = ["immutable", "data", "binaryData"].into_iter().filter(|_| is_fixed);
            let parts = parts.filter(|part| differs(&format!("/{part}")).is_some());
            kind.into_iter().chain(parts.map(|part| Cause::forbidden(part, WHEN_SET))).collect()
        }
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => {
            let role = differs("/roleRef");
            role.map(|role| Cause::invalid("roleRef", &role, "cannot change roleRef")).into_iter().collect()
        }
        ("storage.k8s.io", "storageclasses") => {
            let fixed = ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"];
            fixed.into_iter().filter_map(field).collect()
        }
        ("", "services") => {
            let old = before["spec"]["clusterIP"].as_str().unwrap_or_default();
            let kinds = [before, after].map(|object| &object["spec"]["type"]);
            let is_fixed = !old.is_empty() && kinds.iter().all(|kind| **kind != "ExternalName");
            let new = differs("/spec/clusterIP").filter(|_| is_fixed);
            new.map(|new| {
                let all = Value::Array(vec![new]);
                Cause::invalid("spec.clusterIPs[0]", &all, "may not change once set")
            })
            .into_iter()
            .collect()
        }
        _ => Vec::new(),
    }
}

fn without(value: &Value, keys: &[&str]) -> Map<String, Value> {
    let mut members = value.as_object().cloned().unwrap_or_default();
    members.retain(|key, _| !keys.contains(&key.as_str()));
    members
}
