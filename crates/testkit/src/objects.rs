//! Objects that many tests start from.

use serde_json::{Value, json};

/// Returns an OpenAPI schema of an object that may have any fields.
pub fn anything() -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// Returns the schema of an object whose `spec`, `status` and `operation` may hold anything; other fields are dropped.
pub fn with_spec_and_status() -> Value {
    json!({"type": "object", "properties": {"spec": anything(), "status": anything(), "operation": anything()}})
}

/// Returns the CustomResourceDefinition of a namespaced kind with one version, this schema and no status subresource.
/// Its plural is the kind in lower case with an `s`, or with `ies` in place of a final `y`.
pub fn definition(group: &str, version: &str, kind: &str, schema: Value) -> Value {
    let singular = kind.to_lowercase();
    let plural = match singular.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{singular}s"),
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": singular},
            "versions": [{"name": version, "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

/// Returns a CustomResourceDefinition with a status subresource added to its first version.
pub fn with_status_subresource(mut definition: Value) -> Value {
    definition["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    definition
}

/// Returns the CustomResourceDefinition of Flux' Kustomizations.
pub fn kustomizations() -> Value {
    definition("kustomize.toolkit.fluxcd.io", "v1", "Kustomization", with_spec_and_status())
}

/// Returns the CustomResourceDefinition of Argo CD's Applications.
pub fn applications() -> Value {
    definition("argoproj.io", "v1alpha1", "Application", with_spec_and_status())
}

/// Returns the CustomResourceDefinition of `Widget` in `example.com/v1`, which may hold anything.
pub fn widgets() -> Value {
    definition("example.com", "v1", "Widget", anything())
}

/// Returns the manifest of a namespace.
pub fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// Returns a Deployment of two replicas that has rolled out, of which `available` are ready and available.
pub fn deployment(namespace: &str, name: &str, available: i64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "generation": 1},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "web:1"}]}}},
        "status": {
            "observedGeneration": 1, "replicas": 2, "updatedReplicas": 2,
            "readyReplicas": available, "availableReplicas": available,
            "conditions": [
                {"type": "Available", "status": "True"},
                {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
            ],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_named_after_their_plural() {
        let names = [kustomizations(), definition("a.b", "v1", "Policy", anything())]
            .map(|definition| definition["metadata"]["name"].clone());
        assert_eq!(names, ["kustomizations.kustomize.toolkit.fluxcd.io", "policies.a.b"]);
    }
}
