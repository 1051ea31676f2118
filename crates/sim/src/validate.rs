//! Checks of the fields of built-in kinds, as far as clients rely on them: what Kubernetes' validation requires of
//! containers and of Services.

use serde_json::Value;

use crate::error::Cause;
use crate::kinds::Resource;

/// The types of Services.
const SERVICE_TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

/// Lists the errors in an object of a built-in kind; empty if it is valid.
pub(crate) fn faults(resource: &Resource, object: &Value) -> Vec<Cause> {
    if let Some(pod) = pod_spec(resource) {
        return pod_faults(object, pod);
    }
    let kind = &object["spec"]["type"];
    if resource.is("", "services") && kind.as_str().is_some_and(|kind| !SERVICE_TYPES.contains(&kind)) {
        return vec![Cause::unsupported("spec.type", kind, &SERVICE_TYPES)];
    }
    Vec::new()
}

/// Returns the path of the spec of a Pod in objects of a kind; `None` if they have none.
pub(crate) fn pod_spec(resource: &Resource) -> Option<&'static str> {
    match (&*resource.group, &*resource.plural) {
        ("", "pods") => Some("spec"),
        ("apps", "deployments" | "statefulsets" | "daemonsets" | "replicasets") | ("batch", "jobs") => {
            Some("spec.template.spec")
        }
        ("batch", "cronjobs") => Some("spec.jobTemplate.spec.template.spec"),
        _ => None,
    }
}

fn pod_faults(object: &Value, at: &str) -> Vec<Cause> {
    let spec = object.pointer(&format!("/{}", at.replace('.', "/")));
    let Some(spec) = spec.filter(|spec| spec.is_object()) else { return Vec::new() };
    let mut causes = Vec::new();
    for list in ["containers", "initContainers"] {
        let containers = spec[list].as_array();
        if list == "containers" && containers.is_none_or(Vec::is_empty) {
            causes.push(Cause::required(format!("{at}.containers"), ""));
        }
        for (index, container) in containers.into_iter().flatten().enumerate() {
            for field in ["name", "image"] {
                if container[field].as_str().unwrap_or_default().is_empty() {
                    causes.push(Cause::required(format!("{at}.{list}[{index}].{field}"), ""));
                }
            }
        }
    }
    causes
}
